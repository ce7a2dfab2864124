//! What is drawn on a terminal, and what is not drawn without one.

use std::os::unix::process::CommandExt;

use nix::libc;

use super::Background;
use crate::env::{TestEnv, can, eventually};
use crate::process::is_alive;
use crate::pty::Terminal;

#[test]
fn a_live_table_needs_a_terminal() {
    let env = TestEnv::new();
    env.outlive(["ls", "--watch"]).refused(2, "--watch draws on a terminal");
    env.outlive(["ls", "--json", "--watch"]).refused(2, "--watch draws on a terminal");
}

#[test]
fn a_live_table_follows_what_happens() {
    let env = TestEnv::new();
    let (mut fifo, mut terminal) = (env.fifo("life"), Terminal::new(24, 120));
    let id = env.sleeper(&["--name", "first"], &mut fifo);
    let mut command = env.command(["ls", "--watch"]);
    command.env("TERM", "xterm").stdout(terminal.stdio()).stderr(terminal.stdio());
    let watch = Background::start(command);
    let drawn = terminal.until("sleep 1000");
    assert!(drawn.contains("COMMAND") && drawn.contains(&id) && drawn.contains("running"), "{drawn:?}");
    env.outlive(["pause", &id]).ok();
    terminal.until("paused");
    env.sleeper(&["--name", "second"], &mut fifo);
    terminal.until("second");
    drop(watch);
    assert_eq!(env.state_of(&id), "paused");
}

#[test]
fn long_work_shows_how_far_it_is_on_a_terminal_only() {
    let env = TestEnv::new();
    let (mut fifo, mut terminal) = (env.fifo("life"), Terminal::new(24, 120));
    for _ in 0..3 {
        env.sleeper(&[], &mut fifo);
    }
    let mut command = env.command(["stop", "--all"]);
    command.stderr(terminal.stdio());
    let stopped = Background::start(command).finish().ok();
    assert_eq!(stopped.stdout, "");
    terminal.until("1 of 3");
    terminal.until("3 of 3");
    for _ in 0..3 {
        env.sleeper(&[], &mut fifo);
    }
    let told = env.outlive(["stop", "--all"]).ok().stderr;
    // What this build cannot exclude, it says once.
    assert_eq!(told.lines().count(), usize::from(!can("subreaper")), "{told}");
    fifo.end();
}

/// JSON says the same, and the terminal obeys nothing in it; piped, it stays as it is.
#[test]
fn json_on_a_terminal_has_no_control_characters() {
    let env = TestEnv::new();
    let id = env.run(["-l", "k=\u{9b}2J\x7f", "true"]);
    env.outlive(["wait", "--group", &id]).ok();
    env.settled(&id);
    for words in [&["ls", "-a", "--json"][..], &["show", "--json", &id], &["events"]] {
        let mut terminal = Terminal::new(24, 120);
        let mut command = env.command(words);
        command.stdout(terminal.stdio());
        Background::start(command).finish().ok();
        let drawn = terminal.until("\n");
        assert!(drawn.contains("\"k\":\"\\u009b2J\\u007f\""), "{drawn:?}");
        assert!(env.outlive(words).ok().stdout.contains("\"k\":\"\u{9b}2J\x7f\""));
    }
}

/// gemini-cli#13225, claude-code#27959
#[test]
fn case_28_the_death_of_the_shell_and_its_terminal_is_not_the_jobs() {
    let env = TestEnv::new();
    let (mut fifo, mut terminal) = (env.fifo("life"), Terminal::new(24, 120));
    let script = "$O run -- sh -c 'exec 3>\"$1\"; echo up >&3; exec sleep 1000' sh \"$1\"; echo launched; \
                  kill -HUP -- -$$; kill -KILL -- -$$";
    let mut command = env.program("bash");
    command.args(["-c", script, "bash", fifo.path()]);
    command.stdin(terminal.stdio()).stdout(terminal.stdio()).stderr(terminal.stdio());
    // SAFETY: two system calls that are safe between fork and exec.
    unsafe {
        command.pre_exec(|| {
            nix::unistd::setsid()?;
            match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let shell = Background::start(command);
    let shown = terminal.until("launched");
    let id = shown.lines().next().unwrap().trim_end().to_owned();
    assert!(shell.finish().code > 128);
    drop(terminal);
    assert_eq!((fifo.line(), env.state_of(&id)), ("up".into(), "running".into()));
    let pid = crate::env::number(&env.job(&id)["pid"]);
    // A hang-up would have reached it by now: the job is asked to do something, and does it.
    env.outlive(["pause", &id]).ok();
    env.outlive(["resume", &id]).ok();
    eventually("the job goes on", || is_alive(pid));
    env.outlive(["wait", "-t", "0", &id]).ended(124);
}
