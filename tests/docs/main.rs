//! Holds the documents to the program: completions, manual pages, README, JSON reference.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod demo;
mod help;
mod json;
mod man;
mod readme;
mod scratch;
mod shell;

use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_complete::Shell;

/// The whole command line as clap sees it, help texts included.
fn command() -> clap::Command {
    let mut command = outlive::cli::Cli::command();
    command.build();
    command
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn completions_are_those_of_the_command_line() {
    for (shell, name) in [
        (Shell::Bash, "completions/outlive.bash"),
        (Shell::Zsh, "completions/_outlive"),
        (Shell::Fish, "completions/outlive.fish"),
    ] {
        let mut generated = Vec::new();
        clap_complete::generate(shell, &mut outlive::cli::Cli::command(), "outlive", &mut generated);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path(name), &generated).unwrap();
        }
        let same = std::fs::read(path(name)).is_ok_and(|kept| kept == generated);
        assert!(same, "{name} is out of date; write it with: UPDATE=1 cargo test --test docs");
    }
}

/// Each script is read by its own shell, where that is installed.
#[test]
fn completions_are_understood_by_their_shells() {
    let scripts = [
        ("bash", "completions/outlive.bash", &["--noprofile", "--norc", "-n"][..]),
        ("zsh", "completions/_outlive", &["-f", "-n"][..]),
        ("fish", "completions/outlive.fish", &["--no-config", "--no-execute"][..]),
    ];
    for (shell, script, options) in scripts {
        let Ok(output) = std::process::Command::new(shell).args(options).arg(path(script)).output() else {
            continue;
        };
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn ci_passes_the_tests_as_the_readme_does() {
    assert!(readme::blocks(&read("README.md"), "text").iter().any(|block| block == "cargo test\n"));
    assert!(read(".ci/run").lines().any(|line| line == "cargo test"));
}
