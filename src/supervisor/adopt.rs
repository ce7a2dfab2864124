//! A supervisor for a job that has lost its own.
//!
//! It is not the leader's parent: it sees the end through a pidfd, and the status only where the kernel tells it
//! to others (PIDFD_GET_INFO with exit information, Linux 6.15). Elsewhere the run is `interrupted`; a status is
//! never invented. It is no subreaper of the job either: only what can be proven counts as the job's.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::Supervisor;
use crate::assess::Observer;
use crate::job::ProcessId;
use crate::members::Bearer;
use crate::sys::handle::Handle;
use crate::sys::proc::Stat;
use crate::sys::wait::ChildEnd;

/// How long the leader's parent may take to wait for it; only then is the status told.
const REAP_WAIT: Duration = Duration::from_secs(5);

impl Supervisor {
    /// As `over` for a job of one's own.
    pub(super) fn adopted_over(&mut self) -> io::Result<bool> {
        let Some(leader) = &self.adopted else { return Ok(true) };
        if !self.ended {
            if !leader.wait(Some(Duration::ZERO))? {
                return Ok(false);
            }
            let end = leader.status(REAP_WAIT);
            self.record(ChildEnd { pid: self.leader, ..end.unwrap_or_default() });
        }
        let over = !self.strangers_alive()?;
        if over && self.lingered {
            self.lingered = false;
            self.note("emptied", None);
        }
        Ok(over)
    }

    /// Whether any of the job are left, where nobody tells of their ends: that of one is awaited after another.
    pub(super) fn strangers_alive(&mut self) -> io::Result<bool> {
        if let Some(member) = &self.member
            && !member.wait(Some(Duration::ZERO))?
        {
            return Ok(true);
        }
        let mut left = self.members()?;
        if left.is_empty() {
            // One that was just being forked may have been missed; what it left is seen now.
            left = self.members()?;
        }
        self.member = left.iter().find_map(|stat| Handle::proven(stat.id()).transpose()).transpose()?;
        Ok(self.member.is_some())
    }

    /// Every process that can be proven to belong to the adopted job.
    pub(super) fn adopted_members(&self) -> io::Result<Vec<Stat>> {
        let observer = Observer::new(self.dir.clone(), self.numbers.sync);
        let run = self.dir.run(&self.id, self.numbers.run);
        let Some(launch) = crate::store::read_launch(&run).map_err(io::Error::other)? else {
            return Ok(Vec::new());
        };
        let bearer = if self.ended { Bearer::Open } else { Bearer::Leader };
        Ok(observer.provable(&launch, bearer)?.proven)
    }
}

/// What `brief.fds` holds for an adoption, in the same places as for a launch.
pub(super) fn leader(fds: &[OwnedFd], id: ProcessId) -> io::Result<Handle> {
    Handle::received(fds.get(2).map(OwnedFd::try_clone).transpose()?, id)
}
