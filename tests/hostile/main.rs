//! Files, crashes and neighbours that mean harm, or look as if they did.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

#[path = "../suite/env.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod env;
#[path = "../suite/fifo.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod fifo;
#[path = "../suite/process.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod process;

mod big;
mod clock;
mod files;
mod fixtures;
mod hosts;
mod listing;
mod matrix;
mod places;
mod power;
mod readers;
mod security;

use env::{OUTLIVE, TestEnv};

/// Somebody who is not the user of these tests.
const NOBODY: &str = "65534";

/// What a test cannot be made to show on this machine is said aloud and not taken for shown.
fn skipped(what: &str, why: &str) {
    let text = format!("SKIPPED: {what}: {why}\n");
    let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
}

/// Whether a program is there and does what it is asked for.
fn works(program: &str, words: &[&str]) -> bool {
    let mut command = std::process::Command::new(program);
    command.args(words).stdin(std::process::Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}

/// Whether tests may become somebody else.
fn can_become_nobody() -> bool {
    works("setpriv", &["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "true"])
}

/// A world whose state directory is nobody's. The binary is copied to where nobody can execute it.
fn world_of_nobody() -> TestEnv {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new();
    let root = env.state().parent().unwrap().to_path_buf();
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o755)).unwrap();
    // By another program: were it open for writing here, a child forked just now by another test would keep it so, and
    // it could not be executed.
    assert!(works("cp", &[OUTLIVE, root.join("outlive").to_str().unwrap()]));
    std::fs::create_dir(env.state()).unwrap();
    for path in [env.state(), env.work(), env.home()] {
        std::os::unix::fs::chown(&path, Some(65534), Some(65534)).unwrap();
    }
    std::fs::set_permissions(env.state(), std::fs::Permissions::from_mode(0o700)).unwrap();
    env
}

/// Runs a shell script as nobody; `$O` is the binary.
fn as_nobody(env: &TestEnv, script: &str, words: &[&str]) -> env::Output {
    let mut command = env.program("setpriv");
    command
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "sh", "-c", script, "sh"])
        .args(words);
    command.env("O", env.state().parent().unwrap().join("outlive"));
    env::Output::of(&mut command)
}
