//! Jobs that end because of the clock or of their owner.

use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::env::{TestEnv, lacks};

fn owner(env: &TestEnv) -> (Child, String) {
    let mut command = env.program("sleep");
    let child = command.arg("1000").env_clear().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = child.id().to_string();
    (child, pid)
}

#[test]
fn a_timeout_stops_the_job_and_json_tells_it_from_the_waits() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&["-t", "300ms"], &mut fifo);
    env.outlive(["wait", &id]).ended(124);
    fifo.end();
    let job = env.json_of(["wait", &id], 124)[0].clone();
    assert_eq!((&job["state"], &job["cause"]), (&json!("stopped"), &json!("timeout")));
    assert!(job.get("timed_out").is_none(), "{job}");
    let out = env.outlive(["run", "--wait", "-t", "100ms", "--", "sleep", "1000"]).ended(124);
    assert_eq!(out.stdout, "");
}

#[test]
fn a_timeout_strikes_a_paused_job_and_0_is_none() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&["-t", "1s"], &mut fifo);
    env.outlive(["pause", &id]).ok();
    fifo.end();
    env.outlive(["wait", &id]).ended(124);
    let id = env.run(["-t", "0", "--", "true"]);
    env.outlive(["wait", &id]).ok();
}

#[test]
fn the_grace_of_the_job_is_used_and_its_stop_signal() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let options = ["--grace", "200ms", "--stop-signal", "USR1"];
    let id = env.script_with(
        &options,
        "trap 'echo usr1 >&3' USR1; echo up >&3; while :; do sleep 1000 & wait $!; done",
        &[fifo.path()],
    );
    fifo.line();
    env.outlive(["stop", &id]).ok();
    assert_eq!(fifo.end(), "usr1\n");
    assert_eq!(env.job(&id)["signal"]["name"], "SIGKILL");
    env.outlive(["wait", &id]).ended(137);
}

#[test]
fn the_next_reap_stops_what_has_lost_its_owner() {
    // A dead owner that nobody has waited for is as dead.
    for waited in [true, false] {
        let env = TestEnv::new();
        let mut fifo = env.fifo("life");
        let (mut owner, pid) = owner(&env);
        let id = env.sleeper(&["--owner", &pid], &mut fifo);
        assert_eq!(env.json(["reap"]), json!([]), "the owner lives");
        assert_eq!(env.outlive(["ls", "-q", "--owner", &pid]).ok().stdout.trim(), id);
        owner.kill().unwrap();
        let handle = crate::process::Process::open(pid.parse().unwrap()).unwrap();
        handle.wait();
        if waited {
            owner.wait().unwrap();
        }
        assert_eq!(env.job(&id)["owner"]["alive"], false);
        assert_eq!(env.state_of(&id), "running");
        let planned = env.json(["reap", "--dry-run"]);
        assert_eq!((planned[0]["action"].as_str(), env.state_of(&id).as_str()), (Some("stopped"), "running"));
        let reaped = env.json(["reap"]);
        assert_eq!((&reaped[0]["action"], &reaped[0]["id"]), (&json!("stopped"), &json!(id)));
        fifo.end();
        let job = env.job(&id);
        assert_eq!((&job["state"], &job["cause"]), (&json!("interrupted"), &json!("owner-gone")));
        env.outlive(["wait", &id]).ended(122);
        assert_eq!(env.json(["reap"]), json!([]), "twice is the same as once");
        let refusal = env.outlive(["restart", &id]);
        assert!(refusal.code != 0 && refusal.stderr.contains("--owner"), "{refusal:?}");
        owner.wait().unwrap();
    }
}

#[test]
fn an_owner_may_take_its_job_along_or_leave_it_for_good() {
    let env = TestEnv::new();
    let (mut taken_life, mut kept_life) = (env.fifo("taken"), env.fifo("kept"));
    let (mut owner, pid) = owner(&env);
    let taken = env.sleeper(&["--owner", &pid, "--on-owner-exit", "stop"], &mut taken_life);
    let kept = env.sleeper(&["--owner", &pid, "--on-owner-exit", "keep"], &mut kept_life);
    owner.kill().unwrap();
    taken_life.end();
    owner.wait().unwrap();
    env.outlive(["wait", &taken]).ended(122);
    let job = env.job(&taken);
    assert_eq!(
        (&job["cause"], &job["signal"]["number"]),
        (&json!("owner-gone"), &json!(15)),
        "its status is kept"
    );
    assert_eq!(env.json(["reap"]), json!([]));
    assert_eq!(env.state_of(&kept), "running");
}

#[test]
fn the_parent_of_run_can_be_the_owner() {
    let env = TestEnv::new();
    let out =
        env.bash("$O --json run --owner parent --on-owner-exit stop -- sleep 1000; echo $$ >&2", &[]).ok();
    let job = out.json();
    assert_eq!(job["owner"]["pid"].to_string(), out.stderr.trim());
    let id = job["id"].as_str().unwrap();
    env.outlive(["wait", id]).ended(122);
    env.outlive(["run", "--owner", out.stderr.trim(), "--", "true"]).refused(125, "not alive");
    env.outlive(["run", "--owner", "0", "--", "true"]).refused(125, "0");
}

#[test]
fn a_wait_for_all_and_a_wait_for_the_group() {
    let env = TestEnv::new();
    let (mut fifo, gate) = (env.fifo("life"), env.gate("gate"));
    let id = env.script("(echo up >&3; read go <\"$2\") & exit 6", &[fifo.path(), gate.path()]);
    fifo.line();
    env.outlive(["wait", &id]).ended(6);
    assert_eq!(env.state_of(&id), "lingering");
    assert_eq!(env.job(&id)["output"]["status"], "partial");
    env.outlive(["wait", "--group", "-t", "0", &id]).ended(124);
    env.outlive(["wait"]).ok();
    gate.open();
    env.outlive(["wait", "--group", &id]).ended(6);
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["exit_code"]), (&json!("exited"), &json!(6)));
    assert!(job["signal"].is_null() && job["cause"] == Value::Null);
}

/// Each of its parents dies while the supervisor may be looking at its children.
#[test]
fn a_daemon_is_seen_whoever_dies_on_the_way_to_it() {
    const SCRIPT: &str =
        "fork() { if [ \"$1\" = 0 ]; then setsid sleep 1000 & else (fork $(($1 - 1))) & fi; }
        fork 20; exit 7";
    if lacks("subreaper") {
        return;
    }
    let env = TestEnv::new();
    for number in 0..20 {
        let mut fifo = env.fifo(&format!("life-{number}"));
        let id = env.script(SCRIPT, &[fifo.path()]);
        env.outlive(["wait", &id]).ended(7);
        assert_eq!(env.state_of(&id), "lingering");
        env.outlive(["stop", "-t", "0", &id]).ok();
        assert_eq!(fifo.end(), "");
    }
}
