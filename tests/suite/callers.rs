//! Three kinds of caller: a script that stops at the first error, steps whose processes are all killed in between,
//! and a program that reads pipes and does not wait for ever.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::libc;
use serde_json::json;

use crate::env::{Output, TestEnv, eventually, number};
use crate::process::{Process, group_of, is_alive, with_environment};

#[test]
fn a_script_that_stops_at_the_first_error() {
    let env = TestEnv::new();
    let gate = env.gate("gate");
    let script = r#"
        set -euo pipefail
        id=$($O run --name build -- sh -c 'read go <"$1"; echo built; exit 7' sh "$1")
        $O ls | grep -q "$id"
        $O wait -t 0 build || test $? = 124
        echo go >"$1"
        if $O wait "$id"; then echo wrong; else echo "status $?"; fi
        $O logs build
        $O stop build
        $O restart build >/dev/null
        $O stop -t 0 build
        $O ls -a --json | grep -q '"stopped"'
        $O prune build
        test "$($O ls -a --json)" = '[]'
        echo done
    "#;
    let out = env.bash(script, &[gate.path()]).ok();
    assert_eq!(out.stdout.lines().next(), Some("status 7"));
    assert!(out.stdout.contains("\nbuilt\n") && out.stdout.ends_with("\ndone\n"), "{out:?}");
}

/// Runs one step in a session of its own, then kills whatever is left of its process group.
fn step(env: &TestEnv, script: &str) -> Output {
    let mut command = env.program("bash");
    command.args(["-ec", script]);
    // SAFETY: setsid(2) is async-signal-safe.
    unsafe { command.pre_exec(|| nix::unistd::setsid().map(drop).map_err(Into::into)) };
    let child = command.spawn().unwrap();
    let group = i32::try_from(child.id()).unwrap();
    let out = Output::finish(child, script);
    for pid in with_environment(&format!("OUTLIVE_STATE_DIR={}", env.state().display())) {
        if group_of(pid) == Some(group)
            && let Some(process) = Process::open(pid)
        {
            process.kill();
        }
    }
    out
}

#[test]
fn steps_whose_process_groups_are_killed_in_between() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let start = format!(
        "sleep 1000 </dev/null >/dev/null 2>&1 & \
         $O run --name server -- sh -c 'exec 3>\"$1\"; echo up >&3; exec sleep 1000' sh '{}' >id; cat id",
        fifo.path()
    );
    let id = step(&env, &start).ok().id();
    fifo.line();
    assert_eq!(step(&env, "$O ls -q").ok().stdout.trim(), id);
    assert_eq!(step(&env, "$O show --json server").ok().json()["state"], "running");
    step(&env, "$O wait -t 0 server").ended(124);
    step(&env, "$O stop server").ok();
    fifo.end();
    step(&env, "$O wait server").ended(143);
    step(&env, "$O prune server").ok();
}

#[test]
fn a_program_with_pipes_and_a_time_limit() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    // To the end of both pipes, though the job lives on.
    let id = env.sleeper(&[], &mut fifo);
    assert_eq!(env.state_of(&id), "running");
    // The limit strikes the wait; the job does not care.
    let mut wait = env.command(["wait", &id]).spawn().unwrap();
    wait.kill().unwrap();
    assert_eq!(Output::finish(wait, "wait").code, 137);
    let mut stay =
        env.command(["run", "--wait", "--", "sh", "-c", "echo up; exec sleep 1000"]).spawn().unwrap();
    let mut first = [0; 3];
    stay.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"up\n");
    stay.kill().unwrap();
    let stay = Output::finish(stay, "run --wait");
    let left = stay.stderr.trim();
    assert_eq!((env.state_of(left), env.state_of(&id)), ("running".into(), "running".into()));
}

#[test]
fn run_wait_copies_the_output_and_returns_the_status() {
    let env = TestEnv::new();
    let out =
        env.outlive(["run", "--wait", "--", "sh", "-c", "printf 'a\\0b'; echo end >&2; exit 9"]).ended(9);
    assert_eq!(out.raw, b"a\0bend\n");
    env.job(out.stderr.trim());
    let shown = env.json_of(["run", "--wait", "--", "sh", "-c", "echo no; exit 9"], 9);
    assert_eq!(
        (&shown["state"], &shown["exit_code"]),
        (&json!("exited"), &json!(9)),
        "only the final object"
    );
}

#[test]
fn an_interrupt_stops_the_job_that_run_waits_for_and_a_hangup_does_not() {
    for (signal, ends) in [(libc::SIGINT, true), (libc::SIGHUP, false), (libc::SIGTERM, false)] {
        let env = TestEnv::new();
        let mut fifo = env.fifo("life");
        let script = "exec 3>\"$1\"; echo up; exec sleep 1000";
        let mut stay =
            env.command(["run", "--wait", "--", "sh", "-c", script, "sh", fifo.path()]).spawn().unwrap();
        let mut first = [0; 3];
        stay.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        Process::open(i32::try_from(stay.id()).unwrap()).unwrap().signal(signal);
        let stay = Output::finish(stay, "run --wait");
        let id = stay.stderr.lines().next().unwrap();
        assert_eq!(stay.code, if ends { 143 } else { 128 + signal }, "{stay:?}");
        assert_eq!(env.state_of(id), if ends { "stopped" } else { "running" });
        if ends {
            fifo.end();
        }
    }
}

/// gemini-cli#13225, claude-code#27959
#[test]
fn case_28_a_job_outlives_the_terminal_it_was_started_from() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let (terminal, name) = open_terminal();
    let script = format!(
        "$O run -- sh -c 'exec 3>\"$1\"; echo up >&3; exec sleep 1000' sh '{}' >id; exec sleep 1000",
        fifo.path()
    );
    let side = || Stdio::from(OpenOptions::new().read(true).write(true).open(&name).unwrap());
    let mut command: Command = env.program("setsid");
    command.args(["--ctty", "bash", "-ec", &script]).stdin(side()).stdout(side()).stderr(side());
    let mut shell = command.spawn().unwrap();
    drop(command);
    fifo.line();
    let id_file = env.work().join("id");
    eventually("run has printed the id", || std::fs::read(&id_file).is_ok_and(|id| id.ends_with(b"\n")));
    let id = std::fs::read_to_string(&id_file).unwrap().trim().to_owned();
    // Hung up: the kernel tells the session's leader and the foreground group.
    drop(terminal);
    shell.wait().unwrap();
    let job = env.job(&id);
    assert_eq!(job["state"], "running");
    let (leader, supervisor) = (number(&job["pid"]), number(&job["supervisor"]["pid"]));
    assert!(is_alive(leader) && is_alive(supervisor));
    assert_eq!(group_of(leader), Some(leader), "a group of its own");
    assert_ne!(group_of(supervisor), group_of(leader));
    env.outlive(["stop", &id]).ok();
    fifo.end();
}

/// A pseudo-terminal: its controlling end, and the path of the other; see pts(4).
fn open_terminal() -> (File, String) {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/ptmx").unwrap();
    let (mut number, unlocked): (libc::c_uint, libc::c_int) = (0, 0);
    // SAFETY: both requests read or write one int, and the descriptor is open.
    unsafe {
        assert_eq!(libc::ioctl(terminal.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked), 0);
        assert_eq!(libc::ioctl(terminal.as_raw_fd(), libc::TIOCGPTN, &raw mut number), 0);
    }
    (terminal, format!("/dev/pts/{number}"))
}

/// Timers count as pending signals.
#[test]
fn a_user_who_may_have_no_signal_pending_waits_all_the_same() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    let script = "ulimit -i 0; \"$O\" wait -t 100ms \"$1\" || [ $? = 124 ]; \"$O\" stop -t 1 \"$1\"";
    let output = env.bash(script, &[&id]);
    assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{output:#?}");
    fifo.end();
}
