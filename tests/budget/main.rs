//! Costs that are stable where times are not: system calls, flushes, and what a supervisor keeps while it sleeps.
//!
//! The bounds are what was counted when they were written, and a little more. A change that exceeds one shows what
//! it costs; raise the bound only if that is worth it.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]
#![allow(dead_code, reason = "the helpers are shared with the other tests")]
#![allow(clippy::disallowed_macros, reason = "what was counted is told")]

#[path = "../suite/env.rs"]
mod env;
#[path = "../suite/fifo.rs"]
mod fifo;
#[path = "../suite/process.rs"]
mod process;

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::env::{OUTLIVE, Output, TestEnv, eventually, number};

/// The system calls of one process, in order, and what is needed to tell which process it was.
type Calls = BTreeMap<i32, Vec<String>>;

/// None, loudly, where strace is missing or may not trace.
fn strace(env: &TestEnv, sync: bool, words: &[&str]) -> Option<Calls> {
    let trace = env.work().join("trace");
    let mut command = env.program("strace");
    command.args(["-f", "-o"]).arg(&trace).arg(OUTLIVE).args(words);
    if !sync {
        command.env("OUTLIVE_SYNC", "off");
    }
    let usable =
        Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    if !usable.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: strace is missing or may not trace; no system calls were counted");
        return None;
    }
    // strace ends with the last process it follows: the supervisor.
    Output::of(&mut command).ok();
    let mut calls = Calls::new();
    for line in fs::read_to_string(trace).unwrap().lines() {
        let (pid, rest) = line.split_once(' ').unwrap();
        let rest = rest.trim_start();
        // `<... read resumed>` is the second half of a call, `+++` an end, `---` a signal. Without optimization
        // the library asks about each descriptor before it closes it. One `readlink` is made for each part of the
        // path to the state directory, which is wherever temporary files are.
        if !rest.starts_with(['<', '+', '-']) && !rest.contains("F_GETFD") && !rest.starts_with("readlink") {
            let name = rest.split('(').next().unwrap().to_owned();
            calls.entry(pid.parse().unwrap()).or_default().push(name);
        }
    }
    Some(calls)
}

fn count(calls: &[String], name: &str) -> usize {
    calls.iter().filter(|call| *call == name).count()
}

/// How often each call was made, for a message.
fn by_name(calls: &[String]) -> Vec<String> {
    let mut names = BTreeMap::<&str, usize>::new();
    for call in calls {
        *names.entry(call).or_default() += 1;
    }
    names.iter().map(|(name, count)| format!("{name} {count}")).collect()
}

/// Shown with `--nocapture`, to set a bound by.
#[track_caller]
fn within(who: &str, calls: &[String], bound: usize) {
    println!("{who}: {} system calls, at most {bound}", calls.len());
    assert!(
        calls.len() <= bound,
        "{who}: {} system calls, at most {bound}: {:?}",
        calls.len(),
        by_name(calls)
    );
}

/// What launcher and supervisor of one `run -- /bin/true` did.
struct Launch {
    launcher: Vec<String>,
    supervisor: Vec<String>,
}

fn launch(sync: bool) -> Option<Launch> {
    let env = TestEnv::new();
    // The first launch makes the state directory.
    let first = env.run(["--", "/bin/true"]);
    env.outlive(["wait", "--group", &first]).ok();
    let calls = strace(&env, sync, &["run", "--", "/bin/true"])?;
    let job =
        env.json(["ls", "-a"]).as_array().unwrap().iter().find(|job| job["id"] != *first).cloned().unwrap();
    assert_eq!((&job["state"], &job["exit_code"]), (&Value::from("exited"), &Value::from(0)));
    // Under strace in a PID namespace of its own, or not: numbers fit as long as all are of one namespace.
    let supervisor = calls[&number(&job["supervisor"]["pid"])].clone();
    let launcher =
        calls.values().find(|calls| calls[0] == "execve" && calls.iter().any(|c| c == "socketpair"));
    Some(Launch { launcher: launcher.unwrap().clone(), supervisor })
}

#[test]
fn a_launch_makes_few_system_calls() {
    let Some(launch) = launch(true) else { return };
    within("launcher", &launch.launcher, LAUNCHER);
    // Dispositions are set one by one, there being no call for all.
    let others: Vec<String> =
        launch.supervisor.iter().filter(|call| *call != "rt_sigaction").cloned().collect();
    within("supervisor", &others, SUPERVISOR);
    assert!(launch.supervisor.len() - others.len() <= 8, "the leader sets its own");
    for (calls, who) in [(&launch.launcher, "launcher"), (&launch.supervisor, "supervisor")] {
        assert_eq!(count(calls, "rename") + count(calls, "renameat2"), 0, "{who}");
        assert!(count(calls, "execve") <= 1, "{who}");
    }
}

/// The launcher's, from its exec to its end.
const LAUNCHER: usize = 94;
/// The supervisor's whole life but for `rt_sigaction`, for a job that ends at once.
const SUPERVISOR: usize = 70;
/// `wait` and `stop`, all threads.
const WAIT: usize = 54;
const STOP: usize = 78;

#[test]
fn a_launch_and_an_end_take_one_flush_each() {
    let flushes =
        |calls: &[String]| ["fdatasync", "fsync", "sync_file_range", "syncfs"].map(|name| count(calls, name));
    let Some(flushed) = launch(true) else { return };
    assert_eq!((flushes(&flushed.launcher), flushes(&flushed.supervisor)), ([1, 0, 0, 0], [1, 0, 0, 0]));
    let Some(fast) = launch(false) else { return };
    assert_eq!((flushes(&fast.launcher), flushes(&fast.supervisor)), ([0; 4], [0; 4]));
}

#[test]
fn wait_and_stop_make_few_system_calls() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    let all = |calls: &Calls| calls.values().flatten().cloned().collect::<Vec<_>>();
    let Some(calls) = strace(&env, true, &["stop", &id]) else { return };
    fifo.end();
    within("stop", &all(&calls), STOP);
    let ended = env.run(["--", "/bin/true"]);
    env.outlive(["wait", &ended]).ok();
    let Some(calls) = strace(&env, true, &["wait", &ended]) else { return };
    within("wait", &all(&calls), WAIT);
    assert_eq!(calls.len(), 1, "a wait without a limit needs no second thread");
}

/// However long the ledger is.
#[test]
fn run_stop_and_wait_do_not_read_the_ledger() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    if strace(&env, true, &["--version"]).is_none() {
        return;
    }
    for words in [&["run", "--", "/bin/true"][..], &["stop", &id], &["wait", &id]] {
        let trace = env.work().join("reads");
        let mut command = env.program("strace");
        command.args(["-f", "-y", "-e", "trace=read,pread64,readv,preadv,mmap", "-o"]).arg(&trace);
        Output::of(command.arg(OUTLIVE).args(words));
        let text = fs::read_to_string(trace).unwrap();
        assert!(text.contains("exit.json") || words[0] == "run", "strace does not show what is read: {text}");
        let read: Vec<&str> = text.lines().filter(|line| line.contains("ledger.jsonl")).collect();
        assert_eq!(read, [""; 0], "{words:?}");
    }
    fifo.end();
}

/// The kernel takes a lock for each write to a file that was opened once for two descriptors: a tenth of a write of 64
/// bytes.
#[test]
fn a_job_has_an_open_file_for_each_of_its_outputs() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.script("echo out; echo up >&3; exec sleep 1000", &[fifo.path()]);
    fifo.line();
    let position = |fd: u8| {
        let info = fs::read_to_string(format!("/proc/{}/fdinfo/{fd}", env.leader(&id).pid)).unwrap();
        info.lines().find_map(|line| line.strip_prefix("pos:")).unwrap().trim().to_owned()
    };
    assert_eq!([1, 2].map(position), ["4", "0"]);
}

#[test]
fn a_wait_that_can_hold_no_process_does_not_spin() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    env.kill_supervisor(&id);
    if strace(&env, true, &["--version"]).is_none() {
        return;
    }
    let trace = env.work().join("held");
    let mut command = env.program("strace");
    command.args(["-f", "-e", "trace=pidfd_open", "-e", "inject=pidfd_open:error=EMFILE", "-o"]).arg(&trace);
    Output::of(command.arg(OUTLIVE).args(["wait", "-t", "500ms", &id])).ended(124);
    let tried = fs::read_to_string(trace).unwrap().lines().filter(|line| line.contains("INJECTED")).count();
    assert!((1..=100).contains(&tried), "{tried} tries in half a second");
    env.outlive(["stop", "-t", "0", &id]).ok();
    fifo.end();
}

#[test]
fn an_idle_supervisor_is_small_and_asleep() {
    let env = TestEnv::new();
    let mut fifos: Vec<_> = ["a", "b"].into_iter().map(|name| env.fifo(name)).collect();
    let ids: Vec<String> = fifos.iter_mut().map(|fifo| env.sleeper(&[], fifo)).collect();
    let pids: Vec<i32> = ids.iter().map(|id| number(&env.job(id)["supervisor"]["pid"])).collect();
    let pid = pids[0];
    // Once, a second after the start, it looks at the output, and then sleeps until somebody writes there.
    eventually("both watch the output, and sleep", || {
        // The watch of the output's directory takes the place of stdin.
        let watches =
            |pid| process::descriptors(pid).iter().any(|(fd, target)| *fd == 0 && target.contains("/jobs/"));
        pids.iter().all(|&pid| watches(pid) && status(pid, "State").starts_with('S'))
    });
    // Both have come equally far, so the pages of the program are nobody's own.
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let kib = |name: &str| -> u64 {
        let line = rollup.lines().find(|line| line.starts_with(&format!("{name}:"))).unwrap();
        line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let private = kib("Private_Clean") + kib("Private_Dirty");
    println!("supervisor: {private} KiB of private memory, at most {PRIVATE_KIB}");
    assert!(private <= PRIVATE_KIB, "{private} KiB of private memory\n{rollup}");
    assert_eq!(status(pid, "Threads"), "1");
    let open = process::descriptors(pid);
    assert!(open.len() <= 6, "{open:?}");

    // What others do does not wake it.
    let before = switches(pid);
    let other = env.run(["--", "/bin/true"]);
    env.outlive(["wait", &other]).ok();
    env.outlive(["ls", "--all"]).ok();
    env.outlive(["show", &ids[0]]).ok();
    env.outlive(["wait", "-t", "0", &ids[0]]).ended(124);
    env.outlive(["stop", &ids[1]]).ok();
    env.outlive(["events", "--since", "0"]).ok();
    assert_eq!(switches(pid), before, "an idle supervisor was woken");
}

/// Of any build: little of it is code.
const PRIVATE_KIB: u64 = 96;

/// A field of /proc/PID/status.
fn status(pid: i32, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("{name}:"))).unwrap();
    line.split_once(':').unwrap().1.trim().to_owned()
}

fn switches(pid: i32) -> u64 {
    ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"]
        .map(|name| status(pid, name).parse::<u64>().unwrap())
        .iter()
        .sum()
}
