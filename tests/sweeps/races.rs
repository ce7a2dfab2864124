//! Many callers at once, and somebody who kills them.

use std::collections::HashSet;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::libc;

use crate::env::{Output, TestEnv, number};
use crate::process::{self, Process};

/// Numbers that look random and can be had again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Kills whatever of outlive works on this state directory, now and then.
fn reap_at_random(env: &TestEnv, done: &AtomicBool) -> usize {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ u64::from(std::process::id()));
    let mut killed = 0;
    let mark = format!("OUTLIVE_STATE_DIR={}", env.state().display());
    while !done.load(Ordering::SeqCst) {
        let comm = |pid: i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let ours = |pid: &i32| {
            comm(*pid).starts_with("outlive") && (process::with_mark(*pid, &mark) || open_below(*pid, env))
        };
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let found: Vec<i32> =
            pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(ours).collect();
        for pid in found.into_iter().filter(|_| dice.roll(5) == 0) {
            // Held first, then looked at again: the number may be a stranger's by now.
            if let Some(process) = Process::open(pid).filter(|_| ours(&pid)) {
                process.signal(libc::SIGKILL);
                killed += 1;
            }
        }
    }
    killed
}

#[test]
fn launchers_and_supervisors_killed_at_random() {
    let rounds = if crate::sweep::full() { 64 } else { 2 };
    let env = TestEnv::new();
    let (done, ids) = (AtomicBool::new(false), Mutex::new(HashSet::new()));
    let job = |number: usize| format!("echo $$ >>{}/ran-{number}", env.work().display());
    let killed = thread::scope(|scope| {
        let killer = scope.spawn(|| reap_at_random(&env, &done));
        let launchers: Vec<_> = (0..16)
            .map(|launcher| {
                let (env, ids, job) = (&env, &ids, &job);
                scope.spawn(move || {
                    for round in 0..rounds {
                        let run = env.outlive(["run", "--", "sh", "-c", &job(launcher * rounds + round)]);
                        assert!([0, 125, 137].contains(&run.code), "{run:?}");
                        ids.lock().unwrap().extend(run.stdout.lines().map(str::to_owned));
                    }
                })
            })
            .collect();
        launchers.into_iter().for_each(|launcher| launcher.join().unwrap());
        done.store(true, Ordering::SeqCst);
        killer.join().unwrap()
    });
    env.outlive(["stop", "--all", "-t", "0"]);
    env.outlive(["reap"]).ok();
    crate::env::eventually("every job has ended", || {
        env.json(["ls"]).as_array().unwrap().is_empty() && env.outlive(["reap"]).code == 0
    });
    let jobs = env.json(["ls", "-a"]);
    let known: HashSet<&str> =
        jobs.as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap()).collect();
    for id in ids.lock().unwrap().iter() {
        assert!(known.contains(id.as_str()), "{id} was printed and is lost");
    }
    let mut executions = 0;
    for number in 0..16 * rounds {
        let ran = fs::read_to_string(env.work().join(format!("ran-{number}"))).unwrap_or_default();
        assert!(ran.lines().count() <= 1, "executed twice");
        executions += ran.lines().count();
    }
    let begun = jobs.as_array().unwrap().iter().filter(|job| job["executed"] != false).count();
    assert!(executions <= begun, "{executions} executions, {begun} jobs that may have been executed");
    let launches = 16 * rounds;
    let known = known.len();
    println!(
        "launches killed at random: {launches} points, 0 broken, {killed} killed, {executions} executed, {known} recorded"
    );
}

#[test]
fn two_of_a_kind_at_once() {
    let rounds = if crate::sweep::full() { 20 } else { 3 };
    for _ in 0..rounds {
        let env = TestEnv::new();
        let mut fifo = env.fifo("fifo");
        let id = env.sleeper(&[], &mut fifo);
        let both = |one: &[&str], two: &[&str]| -> (Output, Output) {
            let (one, two) = (env.command(one).spawn().unwrap(), env.command(two).spawn().unwrap());
            (Output::finish(one, "the first"), Output::finish(two, "the second"))
        };
        // Two restarts make one new run.
        let (one, two) = both(&["restart", "-t", "0", &id], &["restart", "-t", "0", &id]);
        assert_eq!((one.code, two.code), (0, 0), "{one:?} {two:?}");
        let run = number(&env.job(&id)["run"]);
        assert!((2..=3).contains(&run), "run {run}");
        assert_eq!(env.state_of(&id), "running");
        // Two reaps of a lost job settle it once.
        let (leader, supervisor) = (env.leader(&id), number(&env.job(&id)["supervisor"]["pid"]));
        Process::open(supervisor).unwrap().kill();
        leader.kill();
        let (one, two) = both(&["reap"], &["reap"]);
        assert_eq!((one.code, two.code), (0, 0), "{one:?} {two:?}");
        let ends = |id: &str| {
            let of = |record: &&serde_json::Value| record["kind"] == "interrupted" && record["id"] == id;
            env.records().iter().filter(of).count()
        };
        assert_eq!(ends(&id), 1);
        // An answer to a wait is the recorded outcome, or that there is no such job, or no longer.
        let done = env.run(["--", "sh", "-c", "exit 5"]);
        env.outlive(["wait", &done]).ended(5);
        let (prune, wait) = both(&["prune", &done], &["wait", &done]);
        assert_eq!(prune.code, 0, "{prune:?}");
        let gone = ["no job", "was pruned meanwhile"].iter().any(|words| wait.stderr.contains(words));
        assert!(wait.code == 5 || (wait.code == 125 && gone), "{wait:?}");
        // A stop meets an end.
        let brief = env.run(["--", "true"]);
        let (stop, wait) = both(&["stop", &brief], &["wait", &brief]);
        assert_eq!(stop.code, 0, "{stop:?}");
        let job = env.job(&brief);
        let told = match job["exit_code"].as_i64() {
            Some(code) => wait.code == i32::try_from(code).unwrap(),
            None => wait.code == 128 + number(&job["signal"]["number"]),
        };
        assert!(told, "{wait:?} {job}");
    }
}

/// A launch is none of a reap's business, however far it has come.
#[test]
fn reaps_beside_launches() {
    let (launchers, rounds) = if crate::sweep::full() { (8, 100) } else { (4, 8) };
    let env = TestEnv::new();
    let done = AtomicBool::new(false);
    let job = |number: usize| format!("echo $$ >>{}/ran-{number}; exit 5", env.work().display());
    let reaps = thread::scope(|scope| {
        let reaper = scope.spawn(|| {
            let mut reaps = 0;
            while !done.load(Ordering::SeqCst) {
                // A directory whose lock a reap gets first is nobody's yet: the launcher begins anew elsewhere.
                let done = env.json(["reap", "--orphans", "adopt"]);
                let harmless = done.as_array().unwrap().iter().all(|job| job["action"] == "cleared");
                assert!(harmless, "a launch under way was reaped: {done}");
                reaps += 1;
            }
            reaps
        });
        let launching: Vec<_> = (0..launchers)
            .map(|launcher| {
                let (env, job) = (&env, &job);
                scope.spawn(move || {
                    for round in 0..rounds {
                        let id = env.run(["--", "sh", "-c", &job(launcher * rounds + round)]);
                        env.outlive(["wait", &id]).ended(5);
                        // A reap may be about a job that ends just now, and is to tell nothing of it.
                        env.outlive(["wait", "--group", &id]).ended(5);
                    }
                })
            })
            .collect();
        let ended: Vec<_> = launching.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::SeqCst);
        ended.into_iter().for_each(|ended| ended.unwrap());
        reaper.join().unwrap()
    });
    let jobs = env.json(["ls", "-a"]);
    let jobs = jobs.as_array().unwrap();
    assert!(jobs.iter().all(|job| job["state"] == "exited" && job["exit_code"] == 5), "{jobs:?}");
    assert_eq!(jobs.len(), launchers * rounds);
    for number in 0..launchers * rounds {
        let ran = fs::read_to_string(env.work().join(format!("ran-{number}"))).unwrap();
        assert_eq!(ran.lines().count(), 1, "executed once");
    }
    println!("launches beside reaps: {} points, 0 broken, {reaps} reaps", jobs.len());
}

/// A stop that meets a reap, whichever of the two ends the job: a stop is a stop, and the end is told once.
#[test]
fn reaps_beside_stops() {
    let rounds = if crate::sweep::full() { 40 } else { 4 };
    for round in 0..rounds {
        let env = TestEnv::new();
        let (mut fifo, mut owned_fifo) = (env.fifo("orphan"), env.fifo("owned"));
        let orphan = env.sleeper(&[], &mut fifo);
        let mut owner = env.program("sleep").arg("1000").spawn().unwrap();
        let owned = env.sleeper(&["--owner", &owner.id().to_string()], &mut owned_fifo);
        env.kill_supervisor(&orphan);
        owner.kill().unwrap();
        owner.wait().unwrap();
        let what = ["stop", "adopt"][round % 2];
        let commands = [
            &["reap", "--orphans", what][..],
            &["stop", "-t", "5", &orphan, &owned],
            &["reap", "--orphans", what],
            &["stop", "-t", "5", &owned, &orphan],
        ];
        let children = commands.map(|words| (env.command(words).spawn().unwrap(), words));
        for (child, words) in children {
            let output = Output::finish(child, "reap or stop");
            assert_eq!(output.code, 0, "{words:?}: {output:#?}");
        }
        fifo.end();
        owned_fifo.end();
        let ends = ["exited", "interrupted"];
        for (id, states) in
            [(&orphan, &["interrupted", "stopped"][..]), (&owned, &["stopped", "interrupted"])]
        {
            // The supervisor of the one that is supervised writes to the ledger last.
            env.outlive(["wait", "--group", id]);
            let job = env.job(id);
            assert!(states.contains(&job["state"].as_str().unwrap()), "{job}");
            let of = |record: &&serde_json::Value| {
                record["id"] == **id && ends.contains(&record["kind"].as_str().unwrap())
            };
            assert_eq!(env.records().iter().filter(of).count(), 1, "{id} {:#?}", env.records());
        }
    }
}

fn open_below(pid: i32, env: &TestEnv) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    entries.flatten().any(|entry| fs::read_link(entry.path()).is_ok_and(|to| to.starts_with(env.state())))
}
