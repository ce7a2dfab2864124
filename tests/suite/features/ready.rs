//! `run` returns when the job is ready, or as soon as it cannot become so.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use serde_json::json;

use super::Background;
use crate::env::{HOLD, Output, TestEnv, can, lacks};
use crate::fifo::{Fifo, Gate};
use crate::process::is_alive;

/// `run` with a condition, and a script that begins with [`HOLD`].
fn starting(env: &TestEnv, condition: &[&str], script: &str, fifo: &Fifo, gate: &Gate) -> Background {
    let script = format!("{HOLD}{script}");
    let fixed = ["--", "sh", "-c", &script, "sh", fifo.path(), gate.path()];
    Background::start(env.command(["run"].iter().chain(condition).chain(&fixed)))
}

/// It waits while the condition is not met, and returns when it is.
fn ready_by(condition: &[&str], act: &str) {
    let env = TestEnv::new();
    let (mut fifo, gate) = (env.fifo("life"), env.gate("gate"));
    let script = format!("echo up >&3; read go <\"$2\"; {act}; exec sleep 1000");
    let mut run = starting(&env, condition, &script, &fifo, &gate);
    assert_eq!(fifo.line(), "up");
    assert!(run.child.as_mut().unwrap().try_wait().unwrap().is_none(), "ready too early");
    gate.open();
    let id = run.finish().ok().id();
    assert_eq!(env.state_of(&id), "running");
}

#[test]
fn a_line_of_the_output_makes_it_ready() {
    ready_by(&["--ready-log", "^listening on [0-9]+$"], "echo warming up; echo listening on 80");
    ready_by(&["--ready-log", "> $"], "printf 'a prompt> '");
    ready_by(&["--ready-log", "here"], "echo over here >&2");
}

#[test]
fn a_file_makes_it_ready() {
    ready_by(&["--ready-file", "there"], ": >there");
    ready_by(&["--ready-file", "there", "--ready-log", "done"], ": >there; echo done");
}

#[test]
fn a_command_makes_it_ready() {
    ready_by(&["--ready-cmd", "test -e there"], ": >there");
}

/// What was there before the launch says nothing about the job.
#[test]
fn what_is_stale_does_not_count() {
    let env = TestEnv::new();
    let (mut fifo, gate) = (env.fifo("life"), env.gate("gate"));
    for name in ["there", "log"] {
        fs::write(env.work().join(name), "ready\n").unwrap();
    }
    for stale in [&["--ready-file", "there"][..], &["--ready-log", "ready", "-o", "log"]] {
        let condition: Vec<&str> = ["--ready-timeout", "100ms"].iter().chain(stale).copied().collect();
        let late = starting(&env, &condition, "exec sleep 1000", &fifo, &gate).finish().ended(124);
        assert!(late.stderr.contains("is not ready"), "{late:?}");
        env.outlive(["stop", &late.id()]).ok();
    }
    let act = "echo up >&3; read go <\"$2\"; rm there; echo ready >there; exec sleep 1000";
    let run = starting(&env, &["--ready-file", "there"], act, &fifo, &gate);
    while fifo.line() != "up" {}
    gate.open();
    run.finish().ok();
}

#[test]
fn a_job_that_takes_too_long_is_left_alive() {
    let env = TestEnv::new();
    let (mut fifo, gate) = (env.fifo("life"), env.gate("gate"));
    let condition = ["--ready-log", "never", "--ready-timeout", "100ms"];
    let late = starting(&env, &condition, "echo up >&3; exec sleep 1000", &fifo, &gate).finish().ended(124);
    assert!(late.stderr.contains("is not ready after 100ms"), "{late:?}");
    assert_eq!((fifo.line(), env.state_of(&late.id())), ("up".into(), "running".into()));
    let late =
        env.outlive(["--json", "run", "--ready-cmd", "false", "--ready-timeout", "0", "sleep", "1000"]);
    let late = late.ended(124);
    assert!(!late.stderr.contains("has not found"), "{late:?}");
    assert_eq!(late.json()["state"], "running");
    let unfound = ["run", "--ready-cmd", "nosuch", "--ready-timeout", "0", "sleep", "1000"];
    let late = env.outlive(unfound).ended(124).stderr;
    assert!(late.contains("it goes on (the shell has not found the command of --ready-cmd)"), "{late}");
}

#[test]
fn a_job_that_ends_first_gives_its_status_and_its_last_words() {
    let env = TestEnv::new();
    for condition in [
        &["--ready-log", "never"][..],
        &["--ready-file", "never"],
        &["--ready-cmd", "false"],
        // One condition that is met is not all of them.
        &["--ready-log", "nothing to serve", "--ready-file", "never"],
    ]
    .into_iter()
    .chain(can("ports").then_some(&["--ready-port", "1"][..]))
    {
        let run =
            |script: &str| env.outlive(["run"].iter().chain(condition).chain(&["--", "sh", "-c", script]));
        let failed = run("seq 20; echo nothing to serve >&2; exit 7").ended(7);
        let shown = failed.stderr.split_once("its last lines:\n").unwrap().1;
        assert!(shown.starts_with("12\n13\n") && shown.ends_with("20\nnothing to serve\n"), "{shown}");
        assert!(failed.stderr.contains("ended before it was ready: exited 7"), "{failed:?}");
        assert_eq!(env.job(&failed.id())["exit_code"], 7);
        run("kill -KILL $$").ended(137);
        // An early success is none.
        let early = run("exit 0").ended(125).stderr;
        assert!(early.ends_with("exited 0; it has written nothing\n"), "{early}");
    }
    env.outlive(["run", "--ready-log", "never", "nosuch"]).refused(127, "cannot execute 'nosuch'");
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The words of a web server, if this machine can run one.
fn server(env: &TestEnv, port: u16) -> Option<Vec<String>> {
    let python = env.program("python3").args(["-c", "import http.server"]).status();
    if !python.is_ok_and(|status| status.success()) {
        // Past the harness, which shows nothing of a test that passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED: there is no python3 to serve anything");
        return None;
    }
    let words = ["python3", "-m", "http.server", "--bind", "127.0.0.1", &port.to_string()];
    Some(words.map(str::to_owned).to_vec())
}

fn serve(env: &TestEnv, port: u16, name: &str) -> Option<Command> {
    let mut command = env.command(["run", "--name", name, "--ready-port", &port.to_string(), "--"]);
    command.args(server(env, port)?);
    Some(command)
}

#[test]
fn a_server_listens_when_run_returns() {
    if lacks("ports") {
        return;
    }
    let env = TestEnv::new();
    let port = free_port();
    let Some(mut command) = serve(&env, port, "web") else { return };
    let id = crate::env::Output::of(&mut command).ok().id();
    TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    assert_eq!(env.state_of(&id), "running");
    // A child of a wrapper is of the job as well.
    let port = free_port();
    let words = server(&env, port).unwrap().join(" ");
    let nested = format!("{words} & wait");
    env.run(["--ready-port", &port.to_string(), "--", "sh", "-c", &nested]);
    TcpStream::connect(("127.0.0.1", port)).expect("it listens");
}

#[test]
fn a_port_that_somebody_else_holds_is_the_servers_failure() {
    if lacks("ports") {
        return;
    }
    let env = TestEnv::new();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let Some(mut command) = serve(&env, port, "web") else { return };
    let failed = crate::env::Output::of(&mut command).ended(1);
    assert!(failed.stderr.contains("ended before it was ready: exited 1"), "{failed:?}");
    assert!(failed.stderr.trim_end().ends_with("Address already in use"), "{failed:?}");
    let job = env.job("web");
    assert_eq!((&job["state"], &job["exit_code"]), (&json!("exited"), &json!(1)));
}

/// Somebody else's server is not this job's.
#[test]
fn a_port_that_somebody_else_holds_makes_nobody_ready() {
    if lacks("ports") {
        return;
    }
    let env = TestEnv::new();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port().to_string();
    let late = env.outlive(["run", "--ready-port", &port, "--ready-timeout", "100ms", "sleep", "1000"]);
    let job = env.job(&late.ended(124).id());
    assert!(is_alive(crate::env::number(&job["pid"])));
}

/// Programs that reap their children by ignoring SIGCHLD start jobs, too.
#[test]
fn what_the_caller_ignores_and_blocks_is_its_own_affair() {
    use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
    let env = TestEnv::new();
    // The standard signals: the C library lets a portable build change none of its own, 32 and 33.
    let none = "! grep -qE '^Sig(Ign|Blk):.*[1-9a-f][0-9a-f]{0,6}$' /proc/self/status";
    let mut command =
        env.command(["run", "--ready-timeout", "5", "--ready-cmd", none, "--", "sleep", "1000"]);
    // SAFETY: system calls that are safe between fork and exec; nothing of ours is run by a signal.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut command, || {
            signal(Signal::SIGCHLD, SigHandler::SigIgn)?;
            signal(Signal::SIGHUP, SigHandler::SigIgn)?;
            SigSet::all().thread_block()?;
            Ok(())
        });
    }
    Output::of(&mut command).ok();
}
