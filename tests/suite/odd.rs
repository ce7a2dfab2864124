//! Jobs that are hard to keep track of, and supervisors that do not answer.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::libc;
use serde_json::json;

use crate::env::{Output, TestEnv, eventually};
use crate::process::{Process, is_stopped};

/// What the command line became after the launch still proves whose process it is.
#[test]
fn an_orphan_is_proven_through_exec_chains_and_wrappers() {
    let env = TestEnv::new();
    let script = env.work().join("script");
    fs::write(&script, "#!/bin/sh\nread go\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    // A name like this breaks whoever counts the fields of /proc/PID/stat from the left.
    fs::copy("/bin/sleep", env.work().join("a) R 1 (b")).unwrap();
    let gate = env.gate("gate");
    for words in [
        &["nice", "env", "A=1", "sh", "-c", "exec sleep 1000"][..],
        &["./script", "a b", ""],
        &["./a) R 1 (b", "1000"],
        &["setsid", "--wait", "sleep", "1000"],
        &["bash", "-c", "exec -a '' sleep 1000"],
    ] {
        let id = env.run(["--stdin", gate.path(), "--"].iter().chain(words));
        assert_eq!(env.state_of(&id), "running", "{words:?}");
        let leader = env.leader(&id);
        env.kill_supervisor(&id);
        let job = env.job(&id);
        assert_eq!((&job["state"], &job["identity"]), (&json!("orphaned"), &json!("owned")), "{words:?}");
        env.outlive(["stop", &id]).ok();
        leader.wait();
    }
    assert!(env.leftovers().is_empty());
}

#[test]
fn a_job_that_starts_itself_again_is_stopped() {
    for orphan in [false, true] {
        let env = TestEnv::new();
        let mut fifo = env.fifo("life");
        let script = "trap '' TERM; (trap '' TERM; while :; do sh -c 'sleep 1000'; done) & echo up >&3; \
                      while :; do setsid sh -c 'sleep 1000'; done";
        let id = env.script(script, &[fifo.path()]);
        fifo.line();
        if orphan {
            env.kill_supervisor(&id);
        }
        env.outlive(["stop", "-t", "200ms", &id]).ok();
        fifo.end();
        assert_eq!(env.state_of(&id), if orphan { "interrupted" } else { "stopped" });
    }
}

/// The leader may be gone before the others are asked, who have another parent then.
#[test]
fn whom_a_leader_that_ends_at_once_leaves_behind_is_asked_too() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    // Not before the sleep has replaced the shell, which would take the signal for its own trap.
    let child = "(trap 'echo asked >&3; exit' TERM; sh -c 'echo up >&3; exec sleep 1000' & wait) & ";
    for own_groups in ["", "set -m; ", "", "set -m; "] {
        let id = env.script(&format!("{own_groups}{}wait", child.repeat(6)), &[fifo.path()]);
        (0..6).for_each(|_| assert_eq!(fifo.line(), "up"));
        // Who is not asked would be killed, but not before this test has lost its patience.
        env.outlive(["stop", "-t", "10m", &id]).ok();
        assert_eq!(fifo.end(), "asked\n".repeat(6));
        assert_eq!(env.job(&id)["signal"]["name"], "SIGTERM");
    }
}

#[test]
fn what_is_started_in_answer_to_a_stop_is_not_asked() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let gate = env.gate("gate");
    // Both commands that clean up tell how they ended; the second is in a group of its own.
    let script = "gate=$2; tidy() { sh -c 'echo cleans up >&3; read go <\"$0\"' \"$gate\"; echo $? >&3; }
        trap 'tidy; set -m; tidy; exit' TERM; echo up >&3; sleep 1000 & wait";
    for _ in 0..8 {
        let id = env.script(script, &[fifo.path(), gate.path()]);
        assert_eq!(fifo.line(), "up");
        let stop = env.command(["stop", "-t", "10m", &id]).spawn().unwrap();
        for _ in 0..2 {
            assert_eq!(fifo.line(), "cleans up");
            gate.open();
            assert_eq!(fifo.line(), "0");
        }
        Output::finish(stop, "stop").ok();
        fifo.end();
    }
}

#[test]
fn a_supervisor_that_was_stopped_is_woken() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    let supervisor = env.supervisor(&id);
    supervisor.signal(libc::SIGSTOP);
    eventually("the supervisor is stopped", || is_stopped(supervisor.pid));
    assert_eq!(env.state_of(&id), "running", "its lock is held");
    env.outlive(["stop", &id]).ok();
    fifo.end();
    assert_eq!(env.state_of(&id), "stopped");
}

#[test]
fn a_supervisor_that_is_told_to_end_takes_its_job_along() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    env.supervisor(&id).signal(libc::SIGTERM);
    fifo.end();
    env.outlive(["wait", &id]).ended(122);
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["cause"]), (&json!("interrupted"), &json!("shutdown")));
    assert_eq!(job["signal"]["number"], 15, "the kernel's word is kept");
}

#[test]
fn stops_at_once_agree() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.script("trap '' TERM; echo up >&3; while :; do sleep 1000; done", &[fifo.path()]);
    fifo.line();
    let slow = env.command(["stop", "-t", "1h", &id]).spawn().unwrap();
    let stops: Vec<Output> = std::thread::scope(|scope| {
        let stops = [(); 3].map(|()| scope.spawn(|| env.outlive(["stop", "-t", "100ms", &id])));
        stops.map(|stop| stop.join().unwrap()).into()
    });
    assert!(stops.iter().all(|stop| stop.code == 0), "{stops:#?}");
    Output::finish(slow, "a shorter grace holds for all").ok();
    fifo.end();
    env.settled(&id);
    let ends = env.records().iter().filter(|record| record["kind"] == "exited").count();
    assert_eq!((ends, env.job(&id)["cause"].as_str()), (1, Some("stop")));
    env.outlive(["stop", &id]).ok();
}

#[test]
fn an_exit_that_races_a_stop_has_one_end() {
    for _ in 0..10 {
        let env = TestEnv::new();
        let (mut fifo, gate) = (env.fifo("life"), env.gate("gate"));
        let id = env.script("echo up >&3; read go <\"$2\"; exit 5", &[fifo.path(), gate.path()]);
        fifo.line();
        std::thread::scope(|scope| {
            let stop = scope.spawn(|| env.outlive(["stop", &id]));
            gate.open();
            assert_eq!(stop.join().unwrap().code, 0);
        });
        fifo.end();
        let job = env.job(&id);
        let fate =
            (job["state"].as_str().unwrap(), job["exit_code"].as_i64(), job["signal"]["number"].as_i64());
        assert!(matches!(fate, ("exited" | "stopped", Some(5), None) | ("stopped", None, Some(15))), "{job}");
    }
}

#[test]
fn a_copy_of_a_state_directory_has_no_power_over_the_jobs_of_the_first() {
    let env = TestEnv::new();
    let id = env.run(["sleep", "1000"]);
    let copy = env.work().join("copy");
    let copied = format!("cp -a $OUTLIVE_STATE_DIR '{}'", copy.display());
    env.bash(&copied, &[]).ok();
    for words in [&["reap"][..], &["stop", "--all", "-t", "0"], &["ls"]] {
        Output::of(env.command(words).env("OUTLIVE_STATE_DIR", &copy));
        assert_eq!(env.state_of(&id), "running", "{words:?} on the copy");
    }
}

/// A child that inherits everything may be killed by hand without harm to what is recorded.
#[test]
fn a_leader_killed_by_hand_has_that_signal() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    let leader: Process = env.leader(&id);
    leader.kill();
    env.outlive(["wait", &id]).ended(137);
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["signal"]["name"]), (&json!("exited"), &json!("SIGKILL")));
    fifo.end();
}
