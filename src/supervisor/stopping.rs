//! Stopping, pausing and resuming a job, by its own supervisor.
//!
//! The supervisor sees every process of the job, adopted ones included, and has not waited for the leader: the
//! number of the leader's group cannot be anybody else's.

use std::io;
use std::time::{Duration, Instant};

use nix::libc;

use super::Supervisor;
use crate::job::Cause;
use crate::members;
use crate::sys::handle::signal_group_of_unreaped_child;
use crate::sys::wait::all_dead;
use crate::sys::{Ability, can, clock, proc};
use crate::teardown::{self, KILL_WAIT};

/// The grace of a supervisor that is itself told to end: whoever shuts a machine down does not wait long.
pub(super) const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// How often a kill is repeated while something is left.
pub(super) const KILL_AGAIN: Duration = Duration::from_millis(20);

/// A stop under way.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) cause: Cause,
    /// When to begin killing.
    pub(super) deadline: Instant,
    pub(super) killing_since: Option<Instant>,
    pub(super) gave_up: bool,
}

impl Supervisor {
    pub(super) fn grace(&self) -> Duration {
        Duration::from_millis(self.numbers.grace_ms)
    }

    pub(super) fn members(&self) -> io::Result<Vec<proc::Stat>> {
        self.members_but(None)
    }

    /// Those that are not this one, of which it is known that it is one.
    fn members_but(&self, told: Option<i32>) -> io::Result<Vec<proc::Stat>> {
        if self.adopted.is_some() {
            return self.adopted_members();
        }
        // Orphans are this process's children: whoever lives descends from one that does.
        if can(Ability::Subreaper) && all_dead()? {
            return Ok(Vec::new());
        }
        let me = i32::try_from(std::process::id()).unwrap_or(0);
        let mut members = members::supervised(me, &self.mark(), told)?;
        members.retain(|stat| ![self.hook, told].contains(&Some(stat.pid)));
        Ok(members)
    }

    /// Signals the whole job. The leader's group at once, so that nobody in it can fork past the signal; whoever is
    /// elsewhere is found before, because what is started in answer to the signal, to clean up, is not to get it.
    fn signal(&self, signals: &[i32]) {
        let leader = self.adopted.is_none().then_some(self.leader);
        let mut members = self.members_but(leader).unwrap_or_default();
        if let Some(leader) = leader {
            // It has not been waited for, so its group's number is still its own.
            for &signal in signals {
                let _ = signal_group_of_unreaped_child(leader, signal);
            }
            members.retain(|stat| stat.pgid != leader);
        }
        let _ = teardown::pass(&members, signals);
    }

    /// Asks the whole job to end. A later request may shorten the grace, never lengthen it.
    pub(super) fn stop(&mut self, signal: i32, grace: Duration, cause: Cause) {
        let deadline = clock::instant()
            .checked_add(grace)
            .unwrap_or_else(|| clock::instant() + Duration::from_secs(u32::MAX.into()));
        let first = self.asked.is_none();
        let asked = self.asked.get_or_insert(Asked { cause, deadline, killing_since: None, gave_up: false });
        asked.deadline = asked.deadline.min(deadline);
        if asked.gave_up {
            (asked.gave_up, asked.killing_since) = (false, None);
        }
        if !grace.is_zero() {
            self.signal(&teardown::request(signal));
        }
        self.kill_if_due();
        if first {
            // The end may be there already; both are told at once then.
            let note = self.note_of("stop-requested", Some(cause.word()));
            self.untold.push(note);
        }
    }

    /// Kills what is left once the grace has passed; called again every [`KILL_AGAIN`].
    pub(super) fn kill_if_due(&mut self) {
        let now = clock::instant();
        let Some(asked) = &mut self.asked else { return };
        if now < asked.deadline || asked.gave_up {
            return;
        }
        if now.duration_since(*asked.killing_since.get_or_insert(now)) > KILL_WAIT {
            asked.gave_up = true;
            return;
        }
        self.signal(&[libc::SIGKILL]);
    }

    /// Stops every process of the job; if one cannot be stopped, none is.
    pub(super) fn pause(&mut self) {
        let mut stopped = 0;
        // Until a pass finds nothing new: a member may fork before its turn comes.
        loop {
            let Ok(members) = self.members() else { return };
            if !teardown::pass(&members, &[libc::SIGSTOP]).is_empty() {
                let _ = teardown::pass(&members, &[libc::SIGCONT]);
                return;
            }
            if members.len() == stopped {
                break;
            }
            stopped = members.len();
        }
        self.note("paused", None);
    }

    pub(super) fn resume(&mut self) {
        self.signal(&[libc::SIGCONT]);
        self.note("resumed", None);
    }
}
