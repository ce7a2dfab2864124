//! `pause` and `resume`: the whole job or nothing.

use nix::libc::{SIGCONT, SIGSTOP};
use serde_json::{Value, json};

use crate::env::{TestEnv, eventually, number};
use crate::fifo::Fifo;
use crate::process::{Process, is_stopped};

/// A leader that counts into the FIFO once it may, a child, and one in a session of its own.
fn counting_job(env: &TestEnv, fifo: &mut Fifo) -> String {
    let gate = env.gate("gate");
    let script = "(echo up >&3; exec sleep 1000) & setsid sh -c 'echo up >&3; exec sleep 1000' & \
                  read go <\"$2\"; while :; do i=$((i + 1)); echo $i >&3; done";
    let id = env.script(script, &[fifo.path(), gate.path()]);
    assert_eq!((fifo.line(), fifo.line()), ("up".into(), "up".into()));
    gate.open();
    assert_eq!(fifo.line(), "1");
    id
}

fn processes(env: &TestEnv, id: &str) -> Vec<Value> {
    env.job(id)["processes"].as_array().unwrap().clone()
}

fn states(env: &TestEnv, id: &str) -> Vec<bool> {
    processes(env, id).iter().map(|process| process["kernel_state"] == "T").collect()
}

/// The child of the leader, which shares its group.
fn child(env: &TestEnv, id: &str) -> Process {
    let job = env.job(id);
    let found = processes(env, id);
    let child = found.iter().find(|process| process["ppid"] == job["pid"] && process["pgid"] == job["pid"]);
    Process::open(number(&child.unwrap()["pid"])).unwrap()
}

#[test]
fn the_whole_job_is_paused_and_nothing_is_lost() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = counting_job(&env, &mut fifo);
    for _ in 0..2 {
        env.outlive(["pause", &id]).ok();
        assert_eq!(env.state_of(&id), "paused");
        assert_eq!(states(&env, &id), [true; 3], "leader, child and the one with a session of its own");
    }
    assert!(!is_stopped(number(&env.job(&id)["supervisor"]["pid"])));
    env.outlive(["wait", "-t", "0", &id]).ended(124);
    env.outlive(["resume", &id]).ok();
    assert_eq!((env.state_of(&id), states(&env, &id)), ("running".into(), vec![false; 3]));
    // More than the FIFO can have held when the job was paused.
    for count in 2..=16_000 {
        assert_eq!(fifo.line(), count.to_string());
    }
    let kinds: Vec<Value> = env.records().iter().map(|record| record["kind"].clone()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "resumed").count(), 1, "{kinds:?}");
    assert!(kinds.contains(&json!("paused")), "{kinds:?}");
    env.outlive(["stop", &id]).ok();
    fifo.end();
}

#[test]
fn a_job_stopped_from_outside_is_paused_too() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = counting_job(&env, &mut fifo);
    let leader = env.leader(&id);
    leader.signal(SIGSTOP);
    eventually("the job is paused", || env.state_of(&id) == "paused");
    assert_eq!(env.json(["ls"])[0]["state"], "paused");
    leader.signal(SIGCONT);
    eventually("the job is running", || env.state_of(&id) == "running");
    leader.signal(SIGSTOP);
    eventually("the job is paused", || env.state_of(&id) == "paused");
    env.outlive(["resume", &id]).ok();
    assert_eq!(env.state_of(&id), "running");
}

/// Its state is the leader's; a pause and a resume are about all of it.
#[test]
fn what_was_stopped_in_part_is_paused_and_resumed_as_a_whole() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = counting_job(&env, &mut fifo);
    env.leader(&id).signal(SIGSTOP);
    eventually("the job is paused", || env.state_of(&id) == "paused");
    env.outlive(["pause", &id]).ok();
    assert_eq!(states(&env, &id), [true; 3]);
    env.outlive(["resume", &id]).ok();
    let child = child(&env, &id);
    child.signal(SIGSTOP);
    eventually("the child is stopped", || is_stopped(child.pid));
    env.outlive(["resume", &id]).ok();
    assert_eq!(states(&env, &id), [false; 3]);
}

#[test]
fn a_paused_job_can_be_stopped() {
    for from_outside in [false, true] {
        let env = TestEnv::new();
        let mut fifo = env.fifo("life");
        let id = counting_job(&env, &mut fifo);
        if from_outside {
            env.leader(&id).signal(SIGSTOP);
            eventually("the job is paused", || env.state_of(&id) == "paused");
        } else {
            env.outlive(["pause", &id]).ok();
        }
        env.outlive(["stop", &id]).ok();
        fifo.end();
        let job = env.job(&id);
        assert_eq!((&job["state"], &job["signal"]["name"]), (&json!("stopped"), &json!("SIGTERM")));
    }
}

#[test]
fn what_cannot_be_paused_is_refused() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let ended = env.run(["true"]);
    env.outlive(["wait", &ended]).ok();
    let orphan = env.sleeper(&[], &mut fifo);
    env.kill_supervisor(&orphan);
    for (id, state) in [(&ended, "exited"), (&orphan, "orphaned")] {
        for command in ["pause", "resume"] {
            env.outlive([command, id]).refused(1, &format!("is {state}"));
            let refused = env.outlive(["--json", command, id]).ended(1).json();
            assert_eq!(refused[0]["state"], *state);
        }
        assert!(!env.records().iter().any(|record| record["kind"] == "paused"));
    }
}
