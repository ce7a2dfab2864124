//! The harnesses in Python and Node: driven through their stdin, killed and started again.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use outlive::sys::{Ability, can};
use serde_json::{Value, json};

use super::{has, job, place, state};
use crate::scratch::Scratch;

struct Harness {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Harness {
    fn start(scratch: &Scratch, program: &str, script: &Path) -> Self {
        let mut command = scratch.command(program);
        let mut child = command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, stdin, stdout: BufReader::new(stdout) }
    }

    fn ask(&mut self, line: &str) -> String {
        writeln!(self.stdin, "{line}").unwrap();
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }

    fn json(&mut self, line: &str) -> Value {
        serde_json::from_str(&self.ask(line)).unwrap()
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn survives(program: &str, page: &str, file: &str) {
    if !has(program) {
        return;
    }
    let scratch = Scratch::new(file);
    let script = place(&scratch, page, file);
    let fifo = scratch.home.join("go-on");
    mkfifo(&fifo, Mode::from_bits_truncate(0o600)).unwrap();
    super::write(&scratch, "build", "#!/bin/sh\necho 0123456789\nread line <go-on\necho abc\nexit 3\n");

    let mut harness = Harness::start(&scratch, program, &script);
    let build = harness.ask("start build ./build");
    assert_eq!(build, job(&scratch, "build")["id"]);
    harness.ask("start-with-me helper sleep 600");
    assert_eq!(harness.ask("state build 0"), if program == "node" { "running null" } else { "running None" });
    assert_eq!(harness.json("news"), json!([]));
    harness.kill();

    // What was to end with it has; what ends meanwhile is told to the next one, once.
    scratch.outlive(&["wait", "--timeout", "60", "helper"]);
    assert_eq!(
        (state(&scratch, "helper"), state(&scratch, "build")),
        ("interrupted".into(), "running".into())
    );
    std::fs::write(&fifo, "\n").unwrap();
    scratch.outlive(&["wait", "build"]);
    let mut harness = Harness::start(&scratch, program, &script);
    let helper = job(&scratch, "helper")["id"].clone();
    let news = harness.json("news");
    assert!(news.as_array().unwrap().contains(&json!([build, "exited", 3])), "{news}");
    assert!(news.as_array().unwrap().iter().any(|end| end[0] == helper && end[1] == "interrupted"), "{news}");
    assert_eq!(harness.json("news"), json!([]));
    assert_eq!(harness.ask("state build 5"), "exited 3");

    // Its output comes in pieces of a size that the harness chooses.
    assert_eq!(harness.json("output build 0 8"), json!(["01234567", 8, []]));
    assert_eq!(harness.json("output build 8 100"), json!(["89\nabc\n", 15, []]));
    assert_eq!(harness.json("output build 15 100"), json!(["", 15, []]));

    // Somebody else's job is no news.
    scratch.outlive(&["run", "--wait", "true"]);
    assert_eq!(harness.json("news"), json!([]));
    for question in ["state nosuch 0", "output nosuch 0 8"] {
        let answer = harness.ask(question);
        assert!(answer.starts_with("outlive: no job 'nosuch'"), "{answer}");
    }
    harness.kill();
}

/// Pieces do not break characters, and a part that was dropped is skipped once and told.
fn reads_in_pieces(program: &str, page: &str, file: &str) {
    if !has(program) {
        return;
    }
    let scratch = Scratch::new(&format!("{file}-pieces"));
    let script = place(&scratch, page, file);
    scratch.outlive(&["run", "--name", "short", "--wait", "--", "printf", "a\u{e4}\u{20ac}\u{1f600}z"]);
    // Each line has 16 bytes.
    let long = "seq -f '%012.0f \u{e4}' 200000; exec sleep 600";
    scratch.outlive(&["run", "--name", "long", "--max-output", "100k", "--", "sh", "-c", long]);
    let dropped = || job(&scratch, "long")["output"]["status"] == "truncated";
    let drops = can(Ability::Holes);
    if drops {
        let tries = std::iter::repeat_with(|| scratch.outlive(&["wait", "--timeout", "0.1", "long"]));
        assert!(tries.take(600).any(|_| dropped()), "nothing was dropped in a minute");
    } else {
        scratch.outlive(&["wait", "--timeout", "1", "long"]);
    }
    let mut harness = Harness::start(&scratch, program, &script);
    let mut read = |job: &str, limit: u64| {
        let (mut whole, mut notices, mut offset) = (String::new(), Vec::new(), 0);
        loop {
            let piece = harness.json(&format!("output {job} {offset} {limit}"));
            if piece[1] == offset {
                return (whole, notices);
            }
            whole += piece[0].as_str().unwrap();
            notices.extend(piece[2].as_array().unwrap().clone());
            offset = piece[1].as_u64().unwrap();
        }
    };
    assert_eq!(read("short", 4), ("a\u{e4}\u{20ac}\u{1f600}z".into(), vec![]));
    let (whole, notices) = read("long", 65537);
    let numbers: Vec<u64> =
        whole.lines().filter_map(|line| line.strip_suffix(" \u{e4}")?.parse().ok()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "each line once");
    assert_eq!((numbers.first(), numbers.last()), (Some(&1), Some(&200_000)));
    let dropped = notices.iter().any(|notice| notice.as_str().unwrap().contains("were dropped here"));
    assert_eq!((dropped, numbers.len() < 200_000), (drops, drops), "{notices:?}");
    harness.kill();
}

#[test]
fn a_harness_in_python_reads_in_pieces() {
    reads_in_pieces("python3", "python.md", "harness.py");
}

#[test]
fn a_harness_in_node_reads_in_pieces() {
    reads_in_pieces("node", "node.md", "harness.mjs");
}

#[test]
fn a_harness_in_python() {
    survives("python3", "python.md", "harness.py");
}

#[test]
fn a_harness_in_node() {
    survives("node", "node.md", "harness.mjs");
}
