//! What must be so after anything that went wrong.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;

use serde_json::Value;

use crate::env::{TestEnv, number};
use crate::process::{self, Process};
use crate::sweep::{Scene, Story};

/// A broken promise, in words; none if all is well.
pub(crate) type Verdict = Result<(), String>;

macro_rules! ensure {
    ($holds:expr, $($why:tt)*) => {
        if !$holds {
            return Err(format!($($why)*));
        }
    };
}
pub(crate) use ensure;

const FINAL: [&str; 4] = ["exited", "stopped", "failed", "interrupted"];

fn is_final(job: &Value) -> bool {
    FINAL.contains(&job["state"].as_str().unwrap())
}

/// Every job as `ls -a` tells it, by id.
fn list(env: &TestEnv) -> Result<HashMap<String, Value>, String> {
    let output = env.outlive(["--json", "ls", "-a"]);
    ensure!(output.code == 0, "ls fails: {output:?}");
    let jobs = output.json().as_array().unwrap().clone();
    Ok(jobs.into_iter().map(|job| (job["id"].as_str().unwrap().to_owned(), job)).collect())
}

/// The processes of jobs of this state directory that are alive, by the job they are marked for.
fn marked(env: &TestEnv) -> Vec<(i32, String)> {
    let state = format!("OUTLIVE_STATE_DIR={}", env.state().display());
    let job = |pid: i32| {
        let raw = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let id = raw.split(|&byte| byte == 0).find_map(|word| word.strip_prefix(b"OUTLIVE_JOB_ID="))?;
        Some((pid, String::from_utf8_lossy(id).into_owned()))
    };
    let marked = process::with_environment(&state).into_iter().filter(|&pid| process::is_alive(pid));
    marked.filter_map(job).collect()
}

/// The supervisors that have files of this state directory open.
pub(crate) fn supervisors(env: &TestEnv) -> Vec<i32> {
    let title = |pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.starts_with("outlive"))
    };
    let holds = |pid: &i32| {
        let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        entries.flatten().any(|entry| fs::read_link(entry.path()).is_ok_and(|to| to.starts_with(env.state())))
    };
    let pids = fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(title).filter(holds).collect()
}

/// `printed`: what the broken command said on stdout.
pub(crate) fn check(scene: &Scene, printed: &str, story: &Story) -> Verdict {
    let (env, most) = (&scene.env, story.most);
    let lines = || fs::read_to_string(&scene.ran).map_or(0, |text| text.lines().count());
    soon("nobody of an unknown or ended job lives", || {
        let jobs = list(env)?;
        for (pid, id) in marked(env) {
            let job = jobs.get(&id).ok_or(format!("process {pid} of job {id} runs unrecorded"))?;
            ensure!(!is_final(job) || !process::is_alive(pid), "process {pid} of job {id} lives: {job}");
        }
        Ok(())
    })?;
    let jobs = list(env)?;
    ensure!(lines() <= most, "executed {} times: {jobs:?}", lines());
    for job in jobs.values() {
        honest(job)?;
    }
    // A job that was forgotten may have been executed all the same.
    let never = |job: &Value| job["executed"] == false && job["run"] == 1;
    if jobs.len() == 1 && jobs.values().all(never) && !story.forgets {
        ensure!(lines() == 0, "it was executed: {jobs:?}");
    }
    if jobs.is_empty() && !story.forgets {
        ensure!(lines() == 0, "executed, and nobody knows");
    }
    for id in printed.lines().filter(|line| line.len() == 7) {
        ensure!(jobs.contains_key(id) || story.forgets, "{id} was printed and is not listed");
    }
    let reap = env.outlive(["reap"]);
    ensure!(reap.code == 0, "reap fails: {reap:?}");
    soon("no process is left after reap", || {
        let left = marked(env);
        let jobs = list(env)?;
        let ours =
            left.iter().all(|(_, id)| jobs.get(id).is_some_and(|job| job["supervisor"]["alive"] == true));
        ensure!(ours, "left after reap: {left:?} {jobs:?}");
        Ok(())
    })?;
    let after = list(env)?;
    ensure!(
        !story.forgets || after.keys().all(|id| jobs.contains_key(id)),
        "came back from nowhere: {after:?}"
    );
    for (id, job) in &jobs {
        let now = after.get(id).ok_or(format!("{id} has vanished"))?;
        ensure!(is_final(now) || now["supervisor"]["alive"] == true, "still not over after reap: {now}");
        // A launch that was broken off is recorded by its supervisor, if a moment later.
        if is_final(job) && job["run"] == now["run"] {
            let same = ["state", "exit_code", "signal"].iter().all(|field| job[*field] == now[*field]);
            ensure!(same, "the end of {id} has changed: {job} then {now}");
        }
        honest(now)?;
    }
    soon("ls and show agree", || {
        for (id, now) in list(env)?.iter().filter(|(_, job)| is_final(job)) {
            let shown = env.outlive(["--json", "show", id]);
            ensure!(shown.code == 0, "show fails: {shown:?}");
            let shown = shown.json();
            ensure!(shown["state"] == now["state"] && shown["run"] == now["run"], "ls: {now}, show: {shown}");
        }
        Ok(())
    })?;
    taken(env, after.values())?;
    again(env)?;
    locks(env)?;
    let known: Vec<String> = list(env)?.into_keys().collect();
    soon("no debris is left", || {
        let reap = env.outlive(["reap"]);
        ensure!(reap.code == 0, "the second reap fails: {reap:?}");
        let strange: Vec<String> =
            names(&env.state().join("jobs")).into_iter().filter(|id| !known.contains(id)).collect();
        // What has no lock yet may belong to a launcher that is about to make one.
        let young = |id: &String| !env.run_dir(id, 1).join("exit.json").exists();
        ensure!(strange.iter().all(young), "debris: {strange:?}");
        Ok(())
    })?;
    soon("no supervisor of an ended job is left", || {
        let jobs = list(env)?;
        let alive = jobs.values().filter(|job| job["supervisor"]["alive"] == true).count();
        let found = supervisors(env);
        ensure!(found.len() <= alive, "supervisors {found:?} for {alive} jobs");
        Ok(())
    })
}

/// What is said of a job agrees with the kernel.
fn honest(job: &Value) -> Verdict {
    let pid = number(&job["pid"]);
    let lives = || process::is_alive(pid) && process::start_of(pid) == job["start_time"].as_u64();
    if matches!(job["state"].as_str().unwrap(), "running" | "starting" | "paused") {
        // It may have ended since it was listed; then it is not listed so for long.
        ensure!(lives() || job["supervisor"]["alive"] == true, "said to run: {job}");
    }
    if job["exit_code"] == 0 {
        ensure!(job["executed"] == true, "a status of what was not executed: {job}");
    }
    Ok(())
}

/// The name of a living job is nobody else's.
fn taken<'a>(env: &TestEnv, jobs: impl Iterator<Item = &'a Value>) -> Verdict {
    for job in jobs.filter(|job| !is_final(job)) {
        let Some(name) = job["name"].as_str() else { continue };
        let run = env.outlive(["run", "--name", name, "--", "true"]);
        // A stop whose caller was killed may have come to its end meanwhile.
        let over = || Ok::<_, String>(list(env)?.get(job["id"].as_str().unwrap()).is_some_and(is_final));
        ensure!(run.code == 125 || over()?, "the name '{name}' was given away twice: {run:?}");
    }
    Ok(())
}

/// The next launch works.
fn again(env: &TestEnv) -> Verdict {
    let run = env.outlive(["run", "--", "true"]);
    ensure!(run.code == 0, "the next run fails: {run:?}");
    let wait = env.outlive(["wait", &run.id()]);
    ensure!(wait.code == 0, "the next wait fails: {wait:?}");
    Ok(())
}

/// Nobody is left holding a lock.
fn locks(env: &TestEnv) -> Verdict {
    let mut paths = vec![env.state().join("ledger.lock")];
    paths.extend(names(&env.state().join("names")).iter().map(|name| env.state().join("names").join(name)));
    paths.extend(
        names(&env.state().join("jobs")).iter().map(|id| env.state().join("jobs").join(id).join("op")),
    );
    for path in paths {
        let Ok(file) = File::open(&path) else { continue };
        soon("a lock is free", || {
            ensure!(file.try_lock().is_ok(), "{} is locked", path.display());
            let _ = file.unlock();
            Ok(())
        })?;
    }
    Ok(())
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Asks again and again; the last answer if it never holds.
pub(crate) fn soon(what: &str, mut holds: impl FnMut() -> Verdict) -> Verdict {
    const TRIES: u32 = 400;
    let mut last = Ok(());
    for _ in 0..TRIES {
        last = holds();
        if last.is_ok() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    last.map_err(|why| format!("{what}: {why}"))
}

pub(crate) fn leftovers(env: &TestEnv) -> Vec<Process> {
    env.leftovers()
}
