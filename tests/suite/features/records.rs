//! More of the public reports: jobs that steer themselves, restarts elsewhere, callers that get in each other's way.

use std::fs;

use serde_json::json;

use super::Background;
use crate::env::TestEnv;
use crate::process::{self, Process};

/// claude-code#94469, gptme#768
#[test]
fn case_21_a_job_can_stop_itself_and_all() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.script("$O stop $OUTLIVE_JOB_ID; echo never >&3", &[fifo.path()]);
    env.outlive(["wait", "--group", &id]).ended(143);
    assert_eq!((fifo.end(), env.job(&id)["cause"].clone()), (String::new(), json!("stop")));

    let gate = env.gate("gate");
    let other = env.sleeper(&[], &mut fifo);
    let id = env.script("read go <\"$2\"; $O stop --all; echo never >&3", &[fifo.path(), gate.path()]);
    gate.open();
    env.outlive(["wait", "--group", &id, &other]).ended(143);
    assert_eq!(
        (fifo.end(), env.state_of(&id), env.state_of(&other)),
        (String::new(), "stopped".into(), "stopped".into())
    );
}

/// The same without a supervisor: a helper outside of the job does it.
#[test]
fn case_21_an_orphan_can_stop_itself() {
    let env = TestEnv::new();
    let (mut fifo, gate) = (env.fifo("life"), env.gate("gate"));
    let script = "echo up >&3; read go <\"$2\"; $O stop $OUTLIVE_JOB_ID; echo never >&3";
    let id = env.script(script, &[fifo.path(), gate.path()]);
    fifo.line();
    env.kill_supervisor(&id);
    gate.open();
    assert_eq!(fifo.end(), "");
    env.outlive(["wait", "--group", &id]).ended(122);
    let job = env.job(&id);
    assert_eq!(job["state"], "interrupted", "{job}");
}

/// officer
#[test]
fn case_24_a_restart_is_in_the_recorded_directory_or_not_at_all() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let (place, elsewhere) = (env.work().join("place"), env.home());
    fs::create_dir(&place).unwrap();
    let script = "pwd >&3; exec sleep 1000";
    let id = env.script_with(&["-C", place.to_str().unwrap()], script, &[fifo.path()]);
    assert_eq!(fifo.line(), place.to_str().unwrap());
    let restart = || {
        let mut command = env.command(["restart", &id]);
        command.current_dir(&elsewhere);
        Background::start(command).finish()
    };
    restart().ok();
    assert_eq!(fifo.line(), place.to_str().unwrap());
    fs::remove_dir(&place).unwrap();
    restart().refused(1, place.to_str().unwrap());
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["run"]), (&json!("running"), &json!(2)), "it was not stopped");
    env.outlive(["stop", &id]).ok();
    restart().refused(1, place.to_str().unwrap());
    fifo.end();
}

/// docker-py#2655
#[test]
fn case_29_wait_prune_and_restart_at_once_each_get_an_answer() {
    for _ in 0..30 {
        let env = TestEnv::new();
        let id = env.run(["sh", "-c", "exit 7"]);
        env.outlive(["wait", "--group", &id]).ended(7);
        let commands = ["wait", "prune", "restart", "wait", "prune", "restart"];
        let asked = commands.map(|command| (command, Background::start(env.command([command, &id]))));
        for (command, asked) in asked {
            let answer = asked.finish();
            let allowed = match command {
                "wait" => [7, 125],
                _ => [0, 1],
            };
            assert!(allowed.contains(&answer.code), "{command}: {answer:?}");
            // Who did not get what was asked for is told why.
            assert_eq!(matches!(answer.code, 1 | 125), !answer.stderr.is_empty(), "{command}: {answer:?}");
        }
        // What is left is a job that can be waited for, or none.
        let left = env.json(["ls", "-a"]);
        for job in left.as_array().unwrap() {
            env.outlive(["wait", "--group", job["id"].as_str().unwrap()]).ended(7);
        }
        assert_eq!(env.state().join("jobs").join(&id).exists(), left != json!([]), "{left}");
    }
}

/// systemd#8486, actions/runner#598
#[test]
fn case_30_what_is_killed_with_everything_around_it_is_told_at_the_next_call() {
    let env = TestEnv::new();
    let (mut fifo, mut other) = (env.fifo("life"), env.fifo("other"));
    let mark = format!("TRACKING_ID={}", env.work().display());
    let marked = env.sleeper(&["-e", &mark], &mut fifo);
    let unmarked = env.sleeper(&[], &mut other);
    let supervisor = env.supervisor(&marked);
    let found: Vec<Process> =
        process::with_environment(&mark).into_iter().filter_map(Process::open).collect();
    assert!(!found.is_empty());
    supervisor.kill();
    found.iter().for_each(Process::kill);
    fifo.end();
    let told = env.json(["ls", "-a"]);
    let of = |id: &str| told.as_array().unwrap().iter().find(|job| job["id"] == id).unwrap().clone();
    assert_eq!(
        (&of(&marked)["state"], &of(&marked)["cause"]),
        (&json!("interrupted"), &json!("supervisor-lost"))
    );
    assert_eq!(of(&unmarked)["state"], "running");
    env.outlive(["wait", &marked]).ended(122);
    let ends = env.outlive(["events", "--ends"]).ok().stdout;
    assert_eq!(ends.lines().count(), 1, "{ends}");
}
