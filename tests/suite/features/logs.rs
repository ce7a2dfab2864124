//! The output of jobs, to the byte.

use std::fs;
use std::io::Write;

use serde_json::json;

use super::{Background, writing_end};
use crate::env::{OUTLIVE, TestEnv};
use crate::fifo::Fifo;

#[test]
fn every_byte_comes_out_as_it_was_written() {
    let env = TestEnv::new();
    // More than any buffer holds, and no newline at the end.
    let bytes: Vec<u8> = (0..=255).cycle().take(200_001).collect();
    fs::write(env.work().join("bytes"), &bytes).unwrap();
    let id = env.run(["cat", "bytes"]);
    env.outlive(["wait", &id]).ok();
    assert!(env.outlive(["logs", &id]).ok().raw == bytes);
    assert!(env.outlive(["--json", "logs", &id]).ok().raw == bytes);
}

#[test]
fn the_last_lines_are_counted_from_the_end() {
    let env = TestEnv::new();
    let long = "x".repeat(100_000);
    let texts = ["a\nb\nc\n", "a\nb\nc", "", "\n\n", "no newline", &format!("{long}\n{long}\nend\n")];
    for text in texts {
        fs::write(env.work().join("text"), text).unwrap();
        let id = env.run(["cat", "text"]);
        env.outlive(["wait", &id]).ok();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for count in [0, 1, 2, 3, 100] {
            let wanted = lines[lines.len().saturating_sub(count)..].concat();
            let shown = env.outlive(["logs", "-n", &count.to_string(), &id]).ok().stdout;
            assert!(shown == wanted, "the last {count} lines of {text:.60?}: {shown:.60?}");
        }
    }
}

#[test]
fn each_run_has_its_own_part() {
    let env = TestEnv::new();
    let id = env.run(["sh", "-c", "echo first of $OUTLIVE_RUN; printf 'unfinished %s' $OUTLIVE_RUN"]);
    env.outlive(["wait", &id]).ok();
    for _ in 2..=3 {
        env.outlive(["restart", &id]).ok();
        env.outlive(["wait", &id]).ok();
    }
    let of = |options: &[&str]| env.outlive(["logs", &id].iter().chain(options)).ok().stdout;
    for run in ["1", "2", "3"] {
        assert_eq!(of(&["--run", run]), format!("first of {run}\nunfinished {run}"));
        assert_eq!(of(&["--run", run, "-n", "1"]), format!("unfinished {run}"));
        assert_eq!(of(&["--run", run, "-n", "9"]), format!("first of {run}\nunfinished {run}"));
    }
    assert_eq!(of(&[]).matches("first of").count(), 3);
    env.outlive(["logs", "--run", "4", &id]).refused(1, "no run 4");
}

/// Bounded reads, each going on where the last one stopped: together they are the whole.
#[test]
fn reads_can_be_resumed() {
    let env = TestEnv::new();
    let (mut fifo, gate) = (env.fifo("life"), env.gate("gate"));
    let steps = "printf 'one\\ntw'; echo up >&3; read go <\"$2\"; \
                 printf 'o\\n\\nthr'; echo up >&3; read go <\"$2\"; printf ee";
    let id = env.script(steps, &[fifo.path(), gate.path()]);
    let read = |offset: u64| {
        let read = env.outlive(["logs", "--since-offset", &offset.to_string(), &id]).ok();
        let next = read.stderr.strip_prefix("offset ").unwrap().trim_end().parse().unwrap();
        assert_eq!(next, offset + read.raw.len() as u64);
        (read.stdout, next)
    };
    fifo.line();
    let (first, offset) = read(0);
    let (nothing, same) = read(offset);
    assert_eq!((&*first, &*nothing, same), ("one\ntw", "", offset));
    gate.open();
    fifo.line();
    let (second, offset) = read(offset);
    assert_eq!(second, "o\n\nthr");
    gate.open();
    env.outlive(["wait", &id]).ok();
    let (third, end) = read(offset);
    assert_eq!(first + &second + &third, env.outlive(["logs", &id]).ok().stdout);
    env.outlive(["logs", "--since-offset", &(end + 1).to_string(), &id]).refused(1, "there is no offset");
    fifo.end();
}

#[test]
fn following_ends_with_the_job_and_misses_nothing() {
    let env = TestEnv::new();
    let (mut fifo, gate, mut out) = (env.fifo("life"), env.gate("gate"), env.fifo("out"));
    fs::write(env.work().join("much"), "0123456789abcde\n".repeat(200_000)).unwrap();
    // What the leader leaves behind writes the end of it.
    let script = "echo one; echo up >&3; read go <\"$2\"; cat much; (read go <\"$2\"; printf last) &";
    let id = env.script(script, &[fifo.path(), gate.path()]);
    fifo.line();
    let followers = [&["logs", "-f"][..], &["logs", "-f", "--run", "1"], &["logs", "-f", "-n", "1"]];
    let all: Vec<Background> = followers
        .iter()
        .map(|words| Background::start(env.command(words.iter().copied().chain([&*id]))))
        .collect();
    let shown = Background::into(&env, ["logs", "-f", &id], &out);
    assert_eq!(out.line(), "one");
    gate.open();
    env.outlive(["wait", &id]).ok();
    assert_eq!((out.line(), env.state_of(&id)), ("0123456789abcde".to_owned(), "lingering".to_owned()));
    // Read from now on by somebody else, so that nobody is held up.
    let rest = std::thread::spawn(move || out.end());
    gate.open();
    env.outlive(["wait", "--group", &id]).ok();
    let whole = [b"one\n", &*fs::read(env.work().join("much")).unwrap(), b"last"].concat();
    for (follower, words) in all.into_iter().zip(followers) {
        let followed = follower.finish().ok().raw;
        // Where the last line begins depends on when it was looked for.
        let begins = if words.contains(&"-n") { whole.len() - followed.len() } else { 0 };
        assert!(whole[begins..] == followed, "{words:?}");
        assert!(begins == 0 || whole[begins - 1] == b'\n', "{words:?}");
    }
    shown.finish().ok();
    assert_eq!(rest.join().unwrap().len(), 3_200_000 - 16 + 4);
    assert!(env.outlive(["logs", "-f", &id]).ok().raw == whole, "of a job that has ended");
    fifo.end();
}

/// The next run goes on in the same file.
#[test]
fn following_does_not_go_on_into_the_next_run() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.script("printf 'run %s' $OUTLIVE_RUN; echo up >&3; exec sleep 1000", &[fifo.path()]);
    for run in 1..=8 {
        fifo.line();
        let mut out = env.fifo(&format!("out{run}"));
        let words = ["logs", "-f", "--run", &run.to_string(), &id].map(str::to_owned);
        let follower = Background::into(&env, words, &out);
        env.outlive(["restart", &id]).ok();
        follower.finish().ok();
        assert_eq!(out.end(), format!("run {run}"));
    }
}

/// Unless it is asked to.
#[test]
fn following_goes_on_into_the_next_run_if_asked() {
    let env = TestEnv::new();
    let (mut fifo, mut out) = (env.fifo("life"), env.fifo("out"));
    let id = env.script("echo run $OUTLIVE_RUN; echo up >&3; exec sleep 1000", &[fifo.path()]);
    fifo.line();
    let follower = Background::into(&env, ["logs", "-F", &id], &out);
    assert_eq!(out.line(), "run 1");
    for run in 2..=3 {
        env.outlive(["restart", &id]).ok();
        fifo.line();
        assert!(out.line().starts_with(&format!("--- outlive: run {run} of {id} at ")));
        assert_eq!(out.line(), format!("run {run}"));
    }
    env.outlive(["stop", &id]).ok();
    follower.finish().ok();
    assert_eq!(out.end(), "");
    fifo.end();
}

#[test]
fn a_follower_ends_with_its_reader() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let silent = env.script("echo one; echo up >&3; exec sleep 1000", &[fifo.path()]);
    fifo.line();
    let busy = env.run(["--max-output", "1M", "yes", "one"]);
    for id in [silent, busy] {
        let shown = env.bash("set -o pipefail; $O logs -f \"$1\" | head -n 1", &[&id]).ok();
        assert_eq!((&*shown.stdout, &*shown.stderr), ("one\n", ""));
    }
}

/// A user may have few inotify instances, and other programs may have taken them all.
#[test]
fn followers_do_without_inotify() {
    let env = TestEnv::new();
    let (mut fifo, gate) = (env.fifo("life"), env.gate("gate"));
    let (mut out, mut events) = (env.fifo("out"), env.fifo("events"));
    let none_left = "echo 0 >/proc/sys/user/max_inotify_instances && exec \"$@\"";
    let without = |words: &[&str]| {
        let mut command = env.program("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", none_left, "sh"]).args(words);
        command
    };
    if !without(&["true"]).status().is_ok_and(|status| status.success()) {
        let _ = writeln!(std::io::stderr(), "SKIPPED: no user namespace can be made here");
        return;
    }
    let id = env.script("echo one; echo up >&3; read go <\"$2\"; echo two", &[fifo.path(), gate.path()]);
    fifo.line();
    let follow = |words: &[&str], out: &Fifo| {
        let mut command = without(words);
        command.stdout(writing_end(out));
        Background::start(command)
    };
    let logs = follow(&[OUTLIVE, "logs", "-f", &id], &out);
    let _events = follow(&[OUTLIVE, "events", "-f", "--ends"], &events);
    assert_eq!(out.line(), "one");
    gate.open();
    assert_eq!(out.end(), "two\n");
    assert_eq!(logs.finish().ok().stderr, "");
    assert!(events.line().contains(&id));
}

#[test]
fn the_status_of_an_output_is_true() {
    let env = TestEnv::new();
    let (mut fifo, mut unseen, gate) = (env.fifo("life"), env.fifo("unseen"), env.gate("gate"));
    let status = |id: &str| env.job(id)["output"]["status"].as_str().unwrap().to_owned();

    // A writer outlives the leader.
    let script = "(echo up >&3; exec sleep 1000) & echo up >&3; read go <\"$2\"";
    let id = env.script(script, &[fifo.path(), gate.path()]);
    fifo.line();
    fifo.line();
    assert_eq!((env.state_of(&id), status(&id)), ("running".into(), "partial".into()));
    gate.open();
    env.outlive(["wait", &id]).ok();
    assert_eq!((env.state_of(&id), status(&id)), ("lingering".into(), "partial".into()));
    env.outlive(["stop", &id]).ok();
    fifo.end();
    assert_eq!((env.state_of(&id), status(&id)), ("exited".into(), "complete".into()));

    let id = env.sleeper(&[], &mut unseen);
    env.kill_unseen(&id);
    assert_eq!((env.state_of(&id), status(&id)), ("interrupted".into(), "partial".into()));

    let id = env.run(["echo", "gone"]);
    env.outlive(["wait", &id]).ok();
    let output = env.job(&id)["output"].clone();
    assert_eq!((&output["bytes"], &output["status"]), (&json!(5), &json!("complete")));
    fs::remove_file(output["path"].as_str().unwrap()).unwrap();
    let output = env.job(&id)["output"].clone();
    assert_eq!((&output["bytes"], &output["status"]), (&json!(null), &json!("unavailable")));
    env.outlive(["logs", &id]).refused(1, "is gone: ");
}
