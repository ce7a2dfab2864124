//! Jobs that end with somebody, or after some time; and the cause that says so.

use nix::libc::{SIGKILL, SIGTERM};
use serde_json::json;

use super::Background;
use crate::env::{Output, TestEnv};
use crate::process::is_alive;

/// A zombie is dead: nobody waits for the owner here while its death is noticed.
#[test]
fn a_job_ends_with_its_owner() {
    for signal in [SIGTERM, SIGKILL] {
        let env = TestEnv::new();
        let mut fifo = env.fifo("life");
        let owner = Background::idle(&env);
        let id = env.sleeper(&["--owner", &owner.pid().to_string(), "--on-owner-exit", "stop"], &mut fifo);
        assert_eq!(env.job(&id)["owner"], json!({"pid": owner.pid(), "alive": true}));
        owner.die_of(signal);
        fifo.end();
        env.outlive(["wait", "--group", &id]).ended(122);
        let job = env.job(&id);
        assert_eq!((&job["state"], &job["cause"]), (&json!("interrupted"), &json!("owner-gone")));
        assert_eq!((&job["signal"]["name"], &job["exit_code"]), (&json!("SIGTERM"), &json!(null)));
        assert_eq!(job["owner"]["alive"], false);
        let late = env.outlive(["run", "--owner", &owner.pid().to_string(), "true"]);
        late.refused(125, "is not alive; nothing was launched");
    }
}

#[test]
fn the_shell_that_launches_can_be_the_owner() {
    let env = TestEnv::new();
    let (mut fifo, gate) = (env.fifo("life"), env.gate("gate"));
    let launch = "$O run --owner parent --on-owner-exit stop -- sh -c 'exec 3>\"$1\"; echo up >&3; exec sleep 1000' sh \"$1\"; \
                  read go <\"$2\"";
    let mut command = env.program("bash");
    command.args(["-ec", launch, "bash", fifo.path(), gate.path()]);
    let shell = Background::start(command);
    assert_eq!(fifo.line(), "up");
    assert_eq!(env.json(["ls"])[0]["owner"]["pid"], shell.pid());
    gate.open();
    let id = shell.finish().ok().id();
    fifo.end();
    env.outlive(["wait", "--group", &id]).ended(122);
    assert_eq!(env.job(&id)["cause"], "owner-gone");
}

#[test]
fn a_job_that_is_to_be_kept_outlives_its_owner() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let owner = Background::idle(&env);
    let pid = owner.pid().to_string();
    let id = env.sleeper(&["--owner", &pid, "--on-owner-exit", "keep"], &mut fifo);
    owner.die_of(SIGKILL);
    assert_eq!(env.json(["reap"]), json!([]));
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["owner"]["alive"]), (&json!("running"), &json!(false)));
    assert_eq!(env.json(["ls", "--owner", &pid])[0]["id"], *id);
}

#[test]
fn the_next_reap_stops_what_nobody_owns() {
    let env = TestEnv::new();
    let (mut fifo, mut other) = (env.fifo("life"), env.fifo("other"));
    let owner = Background::idle(&env);
    let id = env.sleeper(&["--owner", &owner.pid().to_string()], &mut fifo);
    let unowned = env.sleeper(&[], &mut other);
    assert_eq!(env.json(["reap"]), json!([]), "the owner lives");
    owner.die_of(SIGTERM);
    assert_eq!(env.state_of(&id), "running");
    let planned = env.json(["reap", "--dry-run"]);
    assert_eq!((&planned[0]["action"], &planned[0]["state"]), (&json!("stopped"), &json!("running")));
    let said = env.outlive(["reap", "--dry-run"]).ok().stdout;
    assert_eq!(said, format!("{id}: would be stopped, running: its owner is gone\n"));
    let done = env.json(["reap"]);
    assert_eq!(done.as_array().unwrap().len(), 1);
    assert_eq!((&done[0]["id"], &done[0]["action"]), (&json!(id), &json!("stopped")));
    assert!(done[0]["reason"].as_str().unwrap().contains("owner"), "{}", done[0]["reason"]);
    fifo.end();
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["cause"]), (&json!("interrupted"), &json!("owner-gone")));
    assert_eq!((env.json(["reap"]), env.state_of(&unowned)), (json!([]), "running".into()));
    env.outlive(["restart", &id]).refused(1, "is gone: name a new one with --owner");
    let owner = Background::idle(&env);
    env.outlive(["restart", "--owner", &owner.pid().to_string(), &id]).ok();
    assert_eq!((fifo.line(), env.job(&id)["owner"]["pid"].clone()), ("up".into(), json!(owner.pid())));
}

#[test]
fn a_time_limit_ends_the_job_and_says_so() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    // It is counted whether the job is paused or not.
    let id = env.sleeper(&["-t", "500ms"], &mut fifo);
    env.outlive(["pause", &id]);
    env.outlive(["wait", "--group", &id]).ended(124);
    fifo.end();
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["cause"]), (&json!("stopped"), &json!("timeout")));
    assert_eq!(job["signal"]["name"], "SIGTERM");
    let waited = env.json(["wait", &id]);
    assert!(waited[0].get("timed_out").is_none(), "the job's limit is not the wait's");
    env.outlive(["run", "--wait", "-t", "10ms", "sleep", "1000"]).ended(124);
    // One that obeys with a status of its own is stopped all the same; one that does not is killed.
    let polite = "trap 'exit 3' TERM; echo up >&3; while :; do sleep 1000 & wait; done";
    let id = env.script_with(&["-t", "500ms"], polite, &[fifo.path()]);
    env.outlive(["wait", &id]).ended(124);
    assert_eq!((env.job(&id)["exit_code"].clone(), env.state_of(&id)), (json!(3), "stopped".into()));
    let deaf = "trap '' TERM; echo up >&3; while :; do sleep 1000; done";
    let id = env.script_with(&["-t", "500ms", "--grace", "100ms"], deaf, &[fifo.path()]);
    env.outlive(["wait", &id]).ended(124);
    assert_eq!(env.job(&id)["signal"]["name"], "SIGKILL");
    let id = env.run(["-t", "0", "true"]);
    env.outlive(["wait", &id]).ok();
}

#[test]
fn the_cause_says_who_ended_it() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let cause = |id: &str| {
        let job = env.job(id);
        (job["state"].as_str().unwrap().to_owned(), job["cause"].as_str().map(str::to_owned))
    };
    let stopped = env.sleeper(&["--name", "web"], &mut fifo);
    env.outlive(["stop", "web"]).ok();
    assert_eq!(cause(&stopped), ("stopped".into(), Some("stop".into())));
    let replaced = env.sleeper(&["--name", "web"], &mut fifo);
    let next = env.sleeper(&["--name", "web", "--replace"], &mut fifo);
    assert_eq!(cause(&replaced), ("stopped".into(), Some("replaced".into())));
    assert_eq!(env.job("web")["id"], *next);
    env.leader(&next).kill();
    env.outlive(["wait", "--group", &next]).ended(137);
    assert_eq!(cause(&next), ("exited".into(), None), "nobody asked through outlive");
    // Nothing that was asked for is told as lost.
    let ends = env.outlive(["events", "--ends"]).ok().stdout;
    assert!(!ends.contains("\"interrupted\""), "{ends}");
}

#[test]
fn a_name_that_is_alive_is_refused_reused_or_replaced() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&["--name", "web"], &mut fifo);
    env.outlive(["run", "--name", "web", "true"]).refused(125, "use --reuse or --replace");
    let reused = Output::of(&mut env.command(["run", "--name", "web", "--reuse", "true"])).ok().id();
    assert_eq!((&reused, env.state_of(&id)), (&id, "running".into()));
    assert!(is_alive(crate::env::number(&env.job(&id)["pid"])));
}
