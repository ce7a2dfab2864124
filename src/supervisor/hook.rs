//! `--on-exit`: a command that is run once the end of the leader is recorded.
//!
//! It is no member of the job: a stop does not reach it, and its failure is its own. It is told by `OUTLIVE_*`
//! variables and has the job's environment and directory otherwise.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use super::Supervisor;
use crate::env;
use crate::environment::read_env;
use crate::fs::Flock;
use crate::job::Outcome;
use crate::ledger::SUPERVISORS_PATIENCE;
use crate::state::State;
use crate::store;
use crate::sys::spawn;

impl Supervisor {
    /// Starts the command, if one was given.
    pub(super) fn start_hook(&mut self, outcome: &Outcome) {
        if self.on_exit.is_empty() {
            return;
        }
        let job = self.dir.job(&self.id);
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(OsStr::from_bytes(&self.on_exit));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.env_clear().envs(read_env(&job).unwrap_or_default());
        let text = |value: Option<i32>| value.map(|number| number.to_string()).unwrap_or_default();
        command
            .env(env::STATE_DIR, self.dir.path())
            // Marked for no job, so that neither it nor what it starts is taken for a member of this one.
            .env(env::JOB_ID, "")
            .env("OUTLIVE_ID", &self.id)
            .env("OUTLIVE_NAME", &self.name)
            .env(env::RUN, self.numbers.run.to_string())
            .env("OUTLIVE_STATE", State::from(outcome.state).word())
            .env("OUTLIVE_CAUSE", outcome.cause.map(|cause| cause.word()).unwrap_or_default())
            .env("OUTLIVE_EXIT_CODE", text(outcome.exit_code))
            .env("OUTLIVE_SIGNAL", text(outcome.signal));
        if let Ok(Some(launch)) = store::read_launch(&self.dir.run(&self.id, self.numbers.run)) {
            command.env("OUTLIVE_OUTPUT", launch.output.as_os());
            command.current_dir(launch.cwd.as_path());
        }
        spawn::in_a_session_of_its_own(&mut command);
        match command.spawn() {
            Ok(child) => self.hook = i32::try_from(child.id()).ok(),
            Err(error) => self.note("on-exit", Some(format!("not started: {}", crate::words::plain(&error)))),
        }
    }

    /// Takes note of the command's end.
    pub(super) fn hook_ended(&mut self, end: crate::sys::wait::ChildEnd) {
        self.hook = None;
        let how = match (end.code, end.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => crate::units::signal_name(signal),
            (None, None) => "unknown".to_owned(),
        };
        // A prune holds this from the record of it until everything is deleted: of a job that is forgotten nothing
        // more is said.
        if let Ok(_op) = Flock::attempt_for(&self.dir.job(&self.id).op(), SUPERVISORS_PATIENCE) {
            self.note("on-exit", Some(how));
        }
    }
}
