//! A home of a test's own, with the program under test in its PATH. Every job in it is ended with it.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use outlive::paths::StateDir;
use outlive::store;
use outlive::sys::handle::Handle;
use outlive::sys::proc;

pub(crate) struct Scratch {
    pub(crate) home: PathBuf,
}

const OUTLIVE: &str = env!("CARGO_BIN_EXE_outlive");

/// After this long something that a test blocks on counts as hanging.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

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

    /// Blocks until every supervisor is gone: each lives until its --on-exit command has ended, which may write here.
    fn supervisors_end(&self) {
        let Ok(dir) = StateDir::resolve(Some(self.state_dir())) else { return };
        let here = proc::place();
        let runs = |id: String| {
            let job = dir.job(&id);
            job.runs().into_iter().filter_map(move |run| store::read_launch(&job.run(run)).ok().flatten())
        };
        for launch in store::ids(&dir).unwrap_or_default().into_iter().flat_map(runs) {
            // What was in a container has ended with it.
            if !launch.identity.place.comparable(&here) {
                continue;
            }
            if let Ok(Some(supervisor)) = Handle::proven(launch.supervisor) {
                let ended = supervisor.wait(Some(PATIENCE)).is_ok_and(|ended| ended);
                assert!(ended || std::thread::panicking(), "the supervisor of {} does not end", launch.id);
            }
        }
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
        self.supervisors_end();
        // Whoever still writes here has outlived its test.
        let removed = std::fs::remove_dir_all(&self.home);
        assert!(removed.is_ok() || std::thread::panicking(), "{}: {removed:?}", self.home.display());
    }
}
