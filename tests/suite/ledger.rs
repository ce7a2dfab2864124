//! What is written down, and what becomes of it when it is damaged, written by others, or written at once.

use std::fs::{self, OpenOptions};
use std::io::Write;

use serde_json::{Value, json};

use crate::env::{Output, TestEnv};
use crate::lock::Held;

fn append(env: &TestEnv, text: &str) {
    OpenOptions::new().append(true).open(env.ledger()).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_torn_line_is_closed_off_and_skipped_with_one_warning() {
    let env = TestEnv::new();
    let first = env.run(["true"]);
    env.settled(&first);
    append(&env, "{\"v\":1,\"seq\":99,\"ki");
    let ls = env.outlive(["ls", "-a", "-q"]).ok();
    assert_eq!(ls.stdout.trim(), first);
    assert_eq!(ls.stderr.lines().count(), 1, "{ls:?}");
    let second = env.run(["true"]);
    env.outlive(["wait", &second]).ok();
    assert!(fs::read_to_string(env.ledger()).unwrap().contains("\n{\"v\":1,\"seq\":99,\"ki\n{"));
    assert_eq!(env.outlive(["ls", "-a", "-q"]).ok().stdout, format!("{first}\n{second}\n"));
}

#[test]
fn a_record_of_an_unknown_kind_is_kept_and_ignored() {
    let env = TestEnv::new();
    let first = env.run(["true"]);
    env.settled(&first);
    let seq = env.records().last().unwrap()["seq"].as_u64().unwrap() + 1;
    let line = format!(
        "{{\"v\":1,\"seq\":{seq},\"kind\":\"danced\",\"id\":\"{first}\",\"run\":1,\"future\":[1]}}\n"
    );
    append(&env, &line);
    let ls = env.outlive(["ls", "-a", "-q"]).ok();
    assert_eq!((ls.stdout.trim(), &*ls.stderr), (&*first, ""));
    let second = env.run(["true"]);
    env.settled(&second);
    env.outlive(["prune"]).ok();
    assert!(fs::read_to_string(env.ledger()).unwrap().contains(&line), "kept through a compaction");
    let seqs: Vec<u64> = env.records().iter().filter_map(|record| record["seq"].as_u64()).collect();
    assert!(seqs.iter().filter(|&&other| other == seq).count() == 1, "{seqs:?}");
}

#[test]
fn a_newer_format_is_read_as_far_as_it_goes_and_not_written_to() {
    let env = TestEnv::new();
    let first = env.run(["true"]);
    env.settled(&first);
    append(&env, "{\"v\":99,\"seq\":99,\"kind\":\"launched\",\"id\":\"z9z9z9z\",\"run\":1}\n");
    let before = fs::read(env.ledger()).unwrap();
    env.outlive(["run", "--", "touch", "executed"]).refused(125, "newer");
    assert!(!env.work().join("executed").exists());
    assert_eq!(fs::read(env.ledger()).unwrap(), before);
    let ls = env.outlive(["ls", "-a", "-q"]);
    assert!(ls.stdout.contains(&first) && ls.stderr.contains("newer"), "{ls:?}");
    let prune = env.outlive(["prune"]);
    assert_ne!(prune.code, 0, "{prune:?}");
    assert_eq!(fs::read(env.ledger()).unwrap(), before);
    assert_eq!(env.state_of(&first), "exited", "nothing was forgotten");
}

#[test]
fn a_lost_ledger_is_noticed_and_jobs_are_found_by_their_files() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let live = env.sleeper(&["--name", "web"], &mut fifo);
    fs::remove_file(env.ledger()).unwrap();
    let ls = env.outlive(["ls", "-q"]);
    assert_eq!((ls.stdout.trim(), ls.stderr.is_empty()), (&*live, false), "{ls:?}");
    env.outlive(["stop", "web"]).ok();
    fifo.end();
    env.outlive(["reap"]).ok();
    assert_eq!(env.json(["ls", "-a"])[0]["state"], "stopped");
}

#[test]
fn each_run_has_one_beginning_and_one_end() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    env.outlive(["pause", &id]).ok();
    env.outlive(["resume", &id]).ok();
    env.outlive(["restart", &id]).ok();
    fifo.line();
    env.outlive(["stop", &id]).ok();
    fifo.end();
    env.settled_run(&id, 2);
    let records = env.records();
    for kind in ["launched", "exited"] {
        let runs: Vec<&Value> = records.iter().filter(|r| r["kind"] == kind).map(|r| &r["run"]).collect();
        assert_eq!(runs, [1, 2], "{kind}");
    }
    for (at, record) in records.iter().enumerate() {
        assert_eq!((&record["v"], &record["seq"], &record["id"]), (&json!(1), &json!(at + 1), &json!(id)));
        assert!(record["at"].as_str().unwrap().ends_with('Z'), "{record}");
    }
    let events = env.outlive(["events"]).ok().stdout;
    assert_eq!(events, fs::read_to_string(env.ledger()).unwrap());
    let kinds: Vec<&str> = records.iter().map(|record| record["kind"].as_str().unwrap()).collect();
    for kind in ["paused", "resumed", "stop-requested", "restarted"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
}

#[test]
fn a_reader_is_told_of_each_end_once() {
    let env = TestEnv::new();
    let read = || env.outlive(["events", "--reader", "inbox", "--ends"]).ok().stdout;
    let ids = |text: &str| -> Vec<String> {
        let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
        text.lines().map(id).collect()
    };
    let first = env.run(["true"]);
    env.settled(&first);
    assert_eq!((ids(&read()), read()), (vec![first.clone()], String::new()));
    let mut fifo = env.fifo("life");
    let second = env.sleeper(&[], &mut fifo);
    env.kill_unseen(&second);
    fifo.end();
    assert_eq!((ids(&read()), read()), (vec![second], String::new()), "settled by whoever asks");
}

#[test]
fn two_restarts_at_once_make_one_new_run() {
    for alive in [true, false] {
        let env = TestEnv::new();
        let (mut fifo, gate) = (env.fifo("life"), env.gate("gate"));
        let id = env.script("echo up >&3; read go <\"$2\"", &[fifo.path(), gate.path()]);
        fifo.line();
        if !alive {
            gate.open();
            env.settled(&id);
        }
        // Both have seen run 1 before either may begin.
        let op = Held::new(&env.state().join("jobs").join(&id).join("op"));
        let both = [(); 2].map(|()| op.block(&mut env.command(["restart", "--json", &id])));
        drop(op);
        for restart in both {
            assert_eq!(Output::finish(restart, "restart").ok().json()[0]["run"], 2);
        }
        assert_eq!(fifo.line(), "up");
        let launched = env.records().iter().filter(|record| record["kind"] == "launched").count();
        assert_eq!((launched, env.state_of(&id)), (2, "running".into()));
    }
}

#[test]
fn reaping_twice_or_at_once_is_the_same_as_once() {
    let env = TestEnv::new();
    let (mut orphan_life, mut lost_life, mut owned_life) = (env.fifo("1"), env.fifo("2"), env.fifo("3"));
    let orphan = env.sleeper(&[], &mut orphan_life);
    let lost = env.sleeper(&[], &mut lost_life);
    let owned = env.sleeper(&[], &mut owned_life);
    env.kill_supervisor(&orphan);
    env.kill_unseen(&lost);
    lost_life.end();
    assert_eq!(env.json(["reap", "--orphans", "keep", "-l", "no=such"]), json!([]));
    let reaped = std::thread::scope(|scope| {
        let reaps = [(); 2].map(|()| scope.spawn(|| env.outlive(["reap", "--json"]).ok().json()));
        reaps.map(|reap| reap.join().unwrap())
    });
    orphan_life.end();
    let told = |id: &str| {
        reaped.iter().flat_map(|jobs| jobs.as_array().unwrap()).filter(|job| job["id"] == id).count()
    };
    assert!((told(&orphan), told(&lost), told(&owned)) >= (1, 1, 0) && told(&owned) == 0, "{reaped:?}");
    assert_eq!(env.json(["reap"]), json!([]));
    assert_eq!(env.state_of(&owned), "running");
    for id in [&orphan, &lost] {
        let ends = env.records().iter().filter(|r| r["id"] == **id && r["kind"] == "interrupted").count();
        assert_eq!((ends, env.state_of(id)), (1, "interrupted".into()));
    }
}

/// A supervisor does not wait long for the ledger: the sidecar is the truth, and others tell the ledger of it.
#[test]
fn an_end_that_only_the_sidecar_knows_is_told_once() {
    for words in [&["reap"][..], &["events", "--ends"], &["ls", "-a"]] {
        let env = TestEnv::new();
        let gate = env.gate("gate");
        let id = env.run(["sh", "-c", "read go <\"$1\"; exit 7", "sh", gate.path()]);
        let lock = Held::new(&env.state().join("ledger.lock"));
        gate.open();
        env.outlive(["wait", &id]).ended(7);
        env.settled(&id);
        drop(lock);
        assert!(env.records().iter().all(|record| record["kind"] == "launched"));
        assert_eq!(env.job(&id)["exit_code"], 7);
        let told = env.outlive(words).ok().stdout;
        assert!(told.contains(&id), "{words:?}: {told:?}");
        assert_eq!(env.json(["reap"]), json!([]));
        let ends = env.records().iter().filter(|record| record["kind"] == "exited").count();
        assert_eq!(ends, 1, "{words:?}");
    }
}

/// `reap` comes between the sidecar and the ledger: the supervisor is about to write there itself.
#[test]
fn an_end_that_is_just_being_recorded_is_not_told_twice() {
    for _ in 0..20 {
        let env = TestEnv::new();
        let id = env.run(["true"]);
        env.outlive(["wait", &id]).ok();
        env.outlive(["reap"]).ok();
        env.settled(&id);
        let ends = env.records().iter().filter(|record| record["kind"] == "exited").count();
        assert_eq!(ends, 1);
    }
}
