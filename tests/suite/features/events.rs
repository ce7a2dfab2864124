//! The ledger as a stream; what ended while nobody looked is told at the next contact.

use nix::fcntl::{FcntlArg, fcntl};
use serde_json::{Value, json};

use super::{Background, writing_end};
use crate::env::{Output, TestEnv};

fn read(output: &Output) -> Vec<Value> {
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn events(env: &TestEnv, options: &[&str]) -> Vec<Value> {
    read(&env.outlive(["events"].iter().chain(options)).ok())
}

fn seqs(events: &[Value]) -> Vec<u64> {
    events.iter().map(|event| event["seq"].as_u64().unwrap()).collect()
}

fn ended(env: &TestEnv) -> String {
    let id = env.run(["true"]);
    env.outlive(["wait", "--group", &id]).ok();
    id
}

#[test]
fn what_comes_is_kept_for_a_reader_that_has_found_nothing_yet() {
    let env = TestEnv::new();
    env.outlive(["events", "--reader", "inbox"]).ok();
    let id = ended(&env);
    env.outlive(["prune", &id]).ok();
    let kinds = events(&env, &["--reader", "inbox"]).into_iter().map(|event| event["kind"].clone());
    assert_eq!(kinds.collect::<Vec<_>>(), ["launched", "exited", "pruned"]);
}

#[test]
fn a_reader_that_keeps_the_number_sees_each_record_once() {
    let env = TestEnv::new();
    ended(&env);
    let all = events(&env, &[]);
    let kinds: Vec<&Value> = all.iter().map(|event| &event["kind"]).collect();
    assert_eq!((kinds, seqs(&all)), (vec![&json!("launched"), &json!("exited")], vec![1, 2]));
    assert_eq!(seqs(&events(&env, &["--since", "1"])), [2]);
    assert!(events(&env, &["--since", "2"]).is_empty());
    let id = ended(&env);
    let later = events(&env, &["--since", "2"]);
    assert_eq!(seqs(&later), [3, 4]);
    assert!(later.iter().all(|event| event["id"] == *id));
    assert_eq!(seqs(&events(&env, &["--ends"])), [2, 4]);
    assert_eq!(seqs(&events(&env, &["--ends", "--since", "2"])), [4]);
}

#[test]
fn everything_that_happens_is_an_event() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&["--on-exit", "exit 3"], &mut fifo);
    for command in ["pause", "resume", "restart", "stop"] {
        env.outlive([command, &id]).ok();
    }
    fifo.end();
    crate::env::eventually("the command of --on-exit has ended twice", || {
        events(&env, &[]).iter().filter(|event| event["kind"] == "on-exit").count() == 2
    });
    let all = events(&env, &[]);
    for kind in ["launched", "paused", "resumed", "stop-requested", "exited", "restarted", "on-exit"] {
        assert!(all.iter().any(|event| event["kind"] == kind), "no {kind} in {all:?}");
    }
    let detail = |run: u32| {
        all.iter().find(|event| event["kind"] == "stop-requested" && event["run"] == run).unwrap()["detail"]
            .clone()
    };
    assert_eq!((detail(1), detail(2)), (json!("restart"), json!("stop")));
}

#[test]
fn followers_hear_of_things_as_they_happen() {
    let env = TestEnv::new();
    let (mut out, mut ends, mut inbox) = (env.fifo("out"), env.fifo("ends"), env.fifo("inbox"));
    let first = ended(&env);
    let _all = Background::into(&env, ["events", "-f", "--since", "1"], &out);
    let _ends = Background::into(&env, ["events", "-f", "--ends"], &ends);
    let reader = Background::into(&env, ["events", "-f", "--ends", "--reader", "me"], &inbox);
    let parse = |line: String| serde_json::from_str::<Value>(&line).unwrap();
    for fifo in [&mut out, &mut ends, &mut inbox] {
        assert_eq!(parse(fifo.line())["id"], *first);
    }
    let second = env.run(["sh", "-c", "exit 7"]);
    assert_eq!(parse(out.line())["kind"], "launched");
    for fifo in [&mut out, &mut ends, &mut inbox] {
        let event = parse(fifo.line());
        assert_eq!((&event["id"], &event["exit_code"]), (&json!(second), &json!(7)));
    }
    // A follower does not go on without the one who reads it.
    drop(inbox);
    reader.finish().ok();
}

#[test]
fn a_follower_may_be_there_before_the_first_job() {
    let env = TestEnv::new();
    let mut out = env.fifo("out");
    let _all = Background::into(&env, ["events", "-f"], &out);
    let id = env.run(["true"]);
    assert_eq!(serde_json::from_str::<Value>(&out.line()).unwrap()["id"], *id);
}

#[test]
fn a_named_reader_is_told_each_once_and_keeps_its_own_place() {
    let env = TestEnv::new();
    let id = ended(&env);
    let told = |name: &str| seqs(&events(&env, &["--ends", "--reader", name]));
    assert_eq!((told("a"), told("a")), (vec![2], vec![]));
    env.outlive(["restart", &id]).ok();
    env.outlive(["wait", "--group", &id]).ok();
    let newest = *seqs(&events(&env, &["--ends"])).last().unwrap();
    assert_eq!((told("b"), told("b")), (vec![2, newest], vec![]));
    assert_eq!((told("a"), told("a")), (vec![newest], vec![]));
    env.outlive(["events", "--reader", "../a"]).refused(2, "not a name");
}

/// At least once: a reader that is killed in the middle of its output is told the same again.
#[test]
fn a_killed_reader_loses_nothing() {
    let env = TestEnv::new();
    for _ in 0..12 {
        ended(&env);
    }
    let wanted = seqs(&events(&env, &[]));
    let mut fifo = env.fifo("narrow");
    let out = writing_end(&fifo);
    fcntl(&out, FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
    let mut command = env.command(["events", "--reader", "me"]);
    command.stdout(out);
    let reader = Background::start(command);
    // It has begun to print, and cannot have come to the end of what it has to say.
    assert_eq!(serde_json::from_str::<Value>(&fifo.line()).unwrap()["seq"], 1);
    drop(reader);
    assert_eq!(seqs(&events(&env, &["--reader", "me"])), wanted);
    assert!(events(&env, &["--reader", "me"]).is_empty());
}

#[test]
fn what_nobody_could_read_has_not_been_told() {
    let env = TestEnv::new();
    ended(&env);
    let fifo = env.fifo("broken");
    let out = writing_end(&fifo);
    drop(fifo);
    let mut command = env.command(["events", "--reader", "me"]);
    command.stdout(out);
    Background::start(command).finish().ok();
    assert_eq!(seqs(&events(&env, &["--reader", "me"])), [1, 2]);
}

#[test]
fn an_end_that_nobody_saw_is_in_the_stream() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    assert!(events(&env, &["--ends", "--reader", "me"]).is_empty());
    env.kill_unseen(&id);
    let told = events(&env, &["--ends", "--reader", "me"]);
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0]["id"], &told[0]["kind"]), (&json!(id), &json!("interrupted")));
    assert_eq!((&told[0]["cause"], &told[0]["exit_code"]), (&json!("supervisor-lost"), &json!(null)));
    assert!(events(&env, &["--ends", "--reader", "me"]).is_empty());
}

#[test]
fn what_was_folded_away_is_a_gap() {
    let env = TestEnv::new();
    let (first, second) = (ended(&env), ended(&env));
    env.outlive(["prune", &first]).ok();
    let all = events(&env, &[]);
    let gap = all[0].clone();
    assert_eq!(gap["kind"], "gap");
    assert!(all[1..].iter().all(|event| event["id"] == *second || event["kind"] == "pruned"), "{all:?}");
    let past = gap["seq"].as_u64().unwrap();
    assert!(events(&env, &["--since", &past.to_string()]).iter().all(|event| event["kind"] != "gap"));
    assert_eq!(events(&env, &["--reader", "late"])[0], gap);
}

#[test]
fn what_a_named_reader_has_not_seen_is_not_folded_away() {
    let env = TestEnv::new();
    ended(&env);
    events(&env, &["--reader", "slow"]);
    let id = ended(&env);
    env.outlive(["prune", &id]).ok();
    env.outlive(["prune"]).ok();
    let told = events(&env, &["--reader", "slow"]);
    let of_second: Vec<&Value> =
        told.iter().filter(|event| event["id"] == *id).map(|event| &event["kind"]).collect();
    assert_eq!(of_second, ["launched", "exited", "pruned"], "{told:?}");
    assert!(told.iter().all(|event| event["kind"] != "gap"), "{told:?}");
}

/// Two of one name at once tell everything once between them.
#[test]
fn two_at_once_under_one_name_tell_each_once() {
    let env = TestEnv::new();
    for _ in 0..5 {
        ended(&env);
    }
    let readers: Vec<Background> =
        (0..4).map(|_| Background::start(env.command(["events", "--reader", "me"]))).collect();
    let mut told: Vec<u64> =
        readers.into_iter().flat_map(|reader| seqs(&read(&reader.finish().ok()))).collect();
    told.sort_unstable();
    assert_eq!(told, (1..=10).collect::<Vec<u64>>());
}
