//! A home of a test's own, with the program under test in its PATH. Every job in it is ended with it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use outlive::fs::RunLock;

pub(crate) struct Scratch {
    pub(crate) home: PathBuf,
}

const OUTLIVE: &str = env!("CARGO_BIN_EXE_outlive");

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let home = std::env::temp_dir().join(format!("outlive-docs-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&home);
        std::fs::create_dir(&home).expect("a scratch directory");
        Self { home }
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.home.join(".local/state/outlive")
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let bin = PathBuf::from(OUTLIVE);
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("OUTLIVE_"))
        {
            command.env_remove(name);
        }
        command
            .env("PATH", format!("{}:{path}", bin.parent().expect("a directory").display()))
            .env("HOME", &self.home)
            .env_remove("XDG_STATE_HOME")
            .current_dir(&self.home)
            .stdin(Stdio::null());
        command
    }

    /// Runs outlive and returns its stdout, whatever its status.
    pub(crate) fn outlive(&self, words: &[&str]) -> String {
        let output = self.command(OUTLIVE).args(words).output().expect("outlive");
        String::from_utf8(output.stdout).expect("text")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = self.command(OUTLIVE).args(["stop", "--all", "--grace", "0"]).output();
        // A supervisor holds its lock until its --on-exit command has ended, which may write here.
        let below =
            |dir: PathBuf| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
        for exit in below(self.state_dir().join("jobs")).flat_map(below).map(|run| run.join("exit.json")) {
            if let Ok(file) = std::fs::File::open(exit) {
                let _ = RunLock::Supervised.wait(&file);
            }
        }
        let _ = std::fs::remove_dir_all(&self.home);
    }
}
