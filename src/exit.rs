//! The exit status of outlive itself.

use crate::job::{Cause, End, Outcome};

/// Every status outlive can end with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done,
    /// Something that was asked for was not done: no such job, survivors.
    NotDone,
    /// Bad usage, but for `run` and `wait`, whose 2 is the job's.
    Usage,
    /// `wait`: interrupted, or cannot be judged.
    Interrupted,
    /// `wait`: the time was over, the wait's or the job's own.
    TimedOut,
    /// outlive itself failed.
    Failed,
    /// The job's own.
    Job(u8),
}

/// An error that lies with what was asked, not with outlive: no such job, or one that this cannot be done to.
#[derive(Debug)]
pub struct Refused(pub String);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl Exit {
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::NotDone => 1,
            Self::Usage => 2,
            Self::Interrupted => 122,
            Self::TimedOut => 124,
            Self::Failed => 125,
            Self::Job(code) => code,
        }
    }

    /// Keeps the first that is not 0.
    pub fn first(self, next: Self) -> Self {
        if self.code() == 0 { next } else { self }
    }
}

/// What `wait` returns for an outcome: never 0 unless the kernel said 0.
pub fn of_outcome(outcome: &Outcome) -> Exit {
    match (outcome.state, outcome.cause) {
        (End::Interrupted, _) => Exit::Interrupted,
        (End::Stopped, Some(Cause::Timeout)) => Exit::TimedOut,
        (End::Failed, cause) => Exit::Job(failure(cause)),
        (End::Exited | End::Stopped, _) => match (outcome.exit_code, outcome.signal) {
            (Some(code), _) => Exit::Job(u8::try_from(code & 0xff).unwrap_or(125)),
            (None, Some(signal)) => Exit::Job(u8::try_from(128 + signal).unwrap_or(125)),
            (None, None) => Exit::Interrupted,
        },
    }
}

/// 127 not found, 126 not executable, 125 anything else that kept a command from being executed.
pub fn failure(cause: Option<Cause>) -> u8 {
    match cause {
        Some(Cause::NotFound) => 127,
        Some(Cause::NotExecutable) => 126,
        _ => 125,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_status() {
        let of = |state, cause, exit_code, signal| {
            of_outcome(&Outcome { exit_code, signal, ..Outcome::bare(state, cause, String::new()) }).code()
        };
        let table = [
            (of(End::Exited, None, Some(0), None), 0),
            (of(End::Exited, None, Some(7), None), 7),
            (of(End::Exited, None, None, Some(15)), 143),
            (of(End::Stopped, Some(Cause::Stop), Some(0), None), 0),
            (of(End::Stopped, Some(Cause::Stop), None, Some(9)), 137),
            (of(End::Stopped, Some(Cause::Timeout), Some(0), None), 124),
            (of(End::Failed, Some(Cause::NotFound), None, None), 127),
            (of(End::Failed, Some(Cause::NotExecutable), None, None), 126),
            (of(End::Failed, Some(Cause::LaunchFailed), None, None), 125),
            (of(End::Interrupted, Some(Cause::SupervisorLost), None, None), 122),
            (of(End::Interrupted, Some(Cause::OwnerGone), Some(0), None), 122),
            (of(End::Exited, None, None, None), 122),
        ];
        for (at, (is, should)) in table.into_iter().enumerate() {
            assert_eq!(is, should, "row {at}");
        }
    }
}
