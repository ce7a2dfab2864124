//! The harnesses in Python and Node: driven through their stdin, killed and started again.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
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
    assert_eq!(harness.json("output build 0 8"), json!(["01234567", 8]));
    assert_eq!(harness.json("output build 8 100"), json!(["89\nabc\n", 15]));
    assert_eq!(harness.json("output build 15 100"), json!(["", 15]));
    harness.kill();
}

#[test]
fn a_harness_in_python() {
    survives("python3", "python.md", "harness.py");
}

#[test]
fn a_harness_in_node() {
    survives("node", "node.md", "harness.mjs");
}
