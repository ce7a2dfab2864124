//! Public reports, made small: what was killed or damaged while nobody looked.

use std::fs;

use serde_json::{Value, json};

use crate::env::{Output, TestEnv};
use crate::lock::{Held, Waiter};
use crate::process::{self, is_alive};

/// hcom-mcp#9, openai/codex#29593
#[test]
fn case_12_a_damaged_ledger_is_never_an_empty_list() {
    for damage in [&b"{\"bad"[..], &[0; 4096], b"\n\n{\"v\":1}\nnonsense\n", b""] {
        let env = TestEnv::new();
        let mut fifo = env.fifo("life");
        let live = env.sleeper(&[], &mut fifo);
        let ended = env.run(["true"]);
        env.settled(&ended);
        fs::write(env.ledger(), damage).unwrap();
        let ls = env.outlive(["--json", "ls", "-a"]);
        assert!(ls.stderr.contains("damaged"), "{ls:#?}");
        let mut found: Vec<(Value, Value)> = ls
            .json()
            .as_array()
            .unwrap()
            .iter()
            .map(|job| (job["id"].clone(), job["state"].clone()))
            .collect();
        let mut wanted = vec![(json!(live), json!("running")), (json!(ended), json!("exited"))];
        found.sort_by_key(|(id, _)| id.to_string());
        wanted.sort_by_key(|(id, _)| id.to_string());
        assert_eq!(found, wanted);
        assert!(fs::read(env.ledger()).unwrap() == damage, "a listing wrote to the ledger");
        env.outlive(["reap"]).ok();
        let next = env.run(["true"]);
        assert!(fs::read(env.ledger()).unwrap().starts_with(damage), "what cannot be read was overwritten");
        env.outlive(["wait", &next]).ok();
        env.outlive(["stop", &live]).ok();
        fifo.end();
    }
}

/// podman#439, conmon
#[test]
fn case_14_a_status_that_nobody_saw_is_never_0() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let gate = env.gate("gate");
    let killed = env.sleeper(&[], &mut fifo);
    env.kill_unseen(&killed);
    fifo.end();
    let mut fifo = env.fifo("life of the other");
    let left = env.script("echo up >&3; read go <\"$2\"; exit 0", &[fifo.path(), gate.path()]);
    fifo.line();
    env.kill_supervisor(&left);
    gate.open();
    fifo.end();
    // The end of the FIFO comes a moment before the process is dead.
    for id in [killed, left] {
        env.outlive(["wait", &id]).ended(122);
        let job = env.job(&id);
        assert_eq!((&job["state"], &job["cause"]), (&json!("interrupted"), &json!("supervisor-lost")));
        assert!(job["exit_code"].is_null() && job["signal"].is_null());
        assert_eq!(job["executed"], true);
    }
}

#[test]
fn who_waits_for_a_run_does_not_keep_its_end_from_being_recorded() {
    let env = TestEnv::new();
    env.outlive(["events", "--reader", "inbox"]).ok();
    for next in ["prune", "restart"] {
        let mut fifo = env.fifo(next);
        let id = env.sleeper(&[], &mut fifo);
        env.kill_unseen(&id);
        fifo.end();
        // A waiter that was stopped right after its lock had come.
        let waiter = Waiter::of(&env.run_dir(&id, 1).join("exit.json"));
        let refused = env.outlive([next, &id]);
        assert!(refused.code != 0 && refused.stderr.contains("keeps it locked"), "{refused:#?}");
        assert_eq!(env.state_of(&id), "interrupted");
        drop(waiter);
        env.outlive([next, &id]).ok();
    }
    let events = env.outlive(["events", "--reader", "inbox"]).ok().stdout;
    let kinds = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].clone());
    let told = ["launched", "interrupted", "pruned", "launched", "interrupted", "launched", "restarted"];
    assert_eq!(kinds.collect::<Vec<_>>(), told);
}

/// hermes-agent#31980
#[test]
fn case_15_an_orphan_is_shown_and_can_be_stopped() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.script("(setsid sleep 1001 &); sleep 1002 & echo up >&3; exec sleep 1003", &[fifo.path()]);
    fifo.line();
    env.kill_supervisor(&id);
    let listed = env.json(["ls"]);
    assert_eq!((&listed[0]["id"], &listed[0]["state"]), (&json!(id), &json!("orphaned")));
    assert_eq!(listed[0]["identity"], "owned");
    env.outlive(["wait", "-t", "0", &id]).ended(124);
    let stop = env.outlive(["stop", &id]).ok();
    assert!(stop.stderr.contains("supervisor"), "{stop:?}");
    fifo.end();
    assert_eq!(env.state_of(&id), "interrupted");
}

#[test]
fn case_15_an_orphan_can_be_restarted_and_paused_it_can_not_be() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&["--name", "web"], &mut fifo);
    env.kill_supervisor(&id);
    env.outlive(["pause", &id]).refused(1, "orphaned");
    let next = "without a supervisor (use --replace, 'outlive stop web' or 'outlive reap --orphans adopt')";
    env.outlive(["run", "--name", "web", "--", "true"]).refused(125, next);
    env.outlive(["run", "--name", "web", "--reuse", "--", "true"]).refused(125, next);
    let old = env.leader(&id);
    let restarted = env.json(["restart", &id]);
    assert_eq!(fifo.line(), "up");
    assert_eq!((&restarted[0]["run"], &restarted[0]["state"]), (&json!(2), &json!("running")));
    old.wait();
    let ends: Vec<Value> =
        env.records().into_iter().filter(|record| record["kind"] == "interrupted").collect();
    assert_eq!((ends.len(), &ends[0]["run"]), (1, &json!(1)));
}

/// overmind#50, pueue#311
#[test]
fn case_17_a_killed_outlive_is_in_nobodys_way() {
    let env = TestEnv::new();
    env.prepare();
    // Wherever the kill happens to hit them.
    for words in [&["run", "--name", "web", "--", "true"][..], &["reap"], &["ls", "-a"]] {
        for _ in 0..8 {
            let mut child = env.command(words).spawn().unwrap();
            child.kill().unwrap();
            Output::finish(child, "killed");
        }
    }
    for lock in ["ledger.lock", "names/web"] {
        fs::write(env.state().join(lock), "4194304 left behind\n").unwrap();
    }
    let id = env.run(["--name", "web", "--replace", "--", "sh", "-c", "exit 3"]);
    env.outlive(["wait", "web"]).ended(3);
    env.outlive(["reap"]).ok();
    assert_eq!(env.outlive(["ls", "-q"]).ok().stdout, "");
    for job in env.json(["ls", "-a"]).as_array().unwrap() {
        match (job["state"].as_str().unwrap(), &job["executed"]) {
            ("exited" | "stopped", Value::Bool(true))
            | ("failed", Value::Bool(false))
            | ("interrupted", _) => {}
            _ => panic!("{job}"),
        }
    }
    assert_eq!(env.job(&id)["exit_code"], 3);
}

/// Killed at one certain place: the run has its files, the ledger does not know it, the gate is shut.
#[test]
fn case_17_a_launcher_killed_before_the_record_has_executed_nothing() {
    let env = TestEnv::new();
    env.prepare();
    let lock = Held::new(&env.state().join("ledger.lock"));
    let words = ["run", "--name", "web", "--", "touch", "executed"];
    let mut launcher = lock.block(&mut env.command(words));
    launcher.kill().unwrap();
    Output::finish(launcher, "killed");
    drop(lock);
    // Till its supervisor has noticed, the launch is under way, and the name is taken.
    let job = fs::read_dir(env.state().join("jobs")).unwrap().next().unwrap().unwrap();
    env.settled(job.file_name().to_str().unwrap());
    let id = env.run(["--name", "web", "--", "true"]);
    env.outlive(["wait", &id]).ok();
    env.outlive(["reap"]).ok();
    let jobs = env.json(["ls", "-a"]);
    let broken: Vec<&Value> = jobs.as_array().unwrap().iter().filter(|job| job["id"] != *id).collect();
    assert_eq!(broken.len(), 1, "{jobs}");
    assert_eq!((&broken[0]["state"], &broken[0]["executed"]), (&json!("failed"), &json!(false)));
    assert!(!env.work().join("executed").exists());
}

/// A stop goes on to the end although whoever asked for it is killed.
#[test]
fn case_17_a_stop_outlives_its_asker() {
    for orphan in [false, true] {
        let env = TestEnv::new();
        let mut fifo = env.fifo("life");
        let id = env.script(
            "trap 'echo term >&3' TERM; echo up >&3; while :; do sleep 1000 3>&- & wait $!; done",
            &[fifo.path()],
        );
        fifo.line();
        if orphan {
            env.kill_supervisor(&id);
        }
        let mut stop = env.command(["stop", "-t", "500ms", &id]).spawn().unwrap();
        assert_eq!(fifo.line(), "term");
        stop.kill().unwrap();
        stop.wait().unwrap();
        fifo.end();
        let job = env.json(["wait", "--group", &id])[0].clone();
        let wanted = if orphan { "interrupted" } else { "stopped" };
        assert_eq!(job["state"], wanted, "{job}");
    }
}

/// opencode#23422
#[test]
fn case_23_nothing_is_ever_run_again() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.script("echo once >>ran; echo up >&3; exec sleep 1000", &[fifo.path()]);
    fifo.line();
    env.kill_unseen(&id);
    fifo.end();
    for words in [
        &["reap"][..],
        &["ls"],
        &["wait", &id],
        &["reap", "--orphans", "keep"],
        &["show", &id],
        &["stop", &id],
    ] {
        env.outlive(words);
    }
    assert_eq!(fs::read_to_string(env.work().join("ran")).unwrap(), "once\n");
    assert_eq!(env.state_of(&id), "interrupted");
}

/// jenkinsci/durable-task#66
#[test]
fn case_26_an_empty_or_half_sidecar_is_no_exit() {
    for half in ["", "{", "{\"state\":\"exited\",\"at\":\"2026-01-01T00:00:00Z\",\"exit_code\":0", "\0\0\0\0"]
    {
        let env = TestEnv::new();
        let mut fifo = env.fifo("life");
        let id = env.sleeper(&[], &mut fifo);
        env.kill_unseen(&id);
        fifo.end();
        fs::write(env.run_dir(&id, 1).join("exit.json"), half).unwrap();
        env.outlive(["wait", &id]).ended(122);
        let job = env.job(&id);
        assert_eq!((&job["state"], &job["exit_code"]), (&json!("interrupted"), &Value::Null), "{half:?}");
    }
}

/// systemd#8486, actions/runner#598
#[test]
fn case_30_a_massacre_is_told_at_the_next_call() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.script("sleep 1001 & echo up >&3; exec sleep 1000", &[fifo.path()]);
    fifo.line();
    let supervisor = env.supervisor(&id);
    // Supervisor first, then whatever carries the mark: nobody is left to write anything down.
    supervisor.kill();
    env.leftovers().iter().for_each(process::Process::kill);
    fifo.end();
    assert!(!is_alive(supervisor.pid));
    let ends = env.outlive(["events", "--ends"]).ok().stdout;
    let end: Value = serde_json::from_str(ends.trim()).unwrap();
    assert_eq!((&end["kind"], &end["id"]), (&json!("interrupted"), &json!(id)));
    env.outlive(["wait", &id]).ended(122);
}
