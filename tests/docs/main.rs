//! Holds the documents to the program: completions, manual pages, README, JSON reference.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod completions;
mod demo;
mod dependencies;
mod help;
mod json;
mod man;
#[path = "../suite/pty.rs"]
mod pty;
mod readme;
mod recipes;
mod schema;
mod scratch;
mod shell;

use std::path::{Path, PathBuf};

use clap::CommandFactory;

use scratch::PATIENCE;

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
fn ci_passes_the_tests_as_the_readme_does() {
    assert!(readme::blocks(&read("README.md"), "text").iter().any(|block| block == "cargo test\n"));
    assert!(read(".ci/run").lines().any(|line| line == "cargo test"));
}
