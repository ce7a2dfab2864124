//! A supervisor for a job that has lost its own.
//!
//! It is not the leader's parent: it sees the end through a pidfd, and the status only where the kernel tells it
//! to others (PIDFD_GET_INFO with exit information, Linux 6.15). Elsewhere the run is `interrupted`; a status is
//! never invented. It is no subreaper of the job either: only what can be proven counts as the job's.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::libc;

use super::Supervisor;
use crate::assess::Observer;
use crate::sys::check;
use crate::sys::pidfd::PidFd;
use crate::sys::proc::Stat;
use crate::sys::wait::ChildEnd;

/// How long the leader's parent may take to wait for it; only then is the status told.
const REAP_WAIT: Duration = Duration::from_secs(5);

/// How a supervisor holds on to a leader that is not its child.
#[derive(Debug)]
pub(super) struct Adopted {
    pub(super) leader: PidFd,
    /// After the leader's end: a living member, whose end is the next thing to happen.
    pub(super) member: Option<PidFd>,
}

impl Supervisor {
    /// As `over` for a job of one's own.
    pub(super) fn adopted_over(&mut self) -> io::Result<bool> {
        let Some(adopted) = &mut self.adopted else { return Ok(true) };
        if !self.ended {
            if !adopted.leader.wait(Some(Duration::ZERO))? {
                return Ok(false);
            }
            let end = adopted.leader.exit_info(REAP_WAIT);
            self.record(ChildEnd { pid: self.leader, ..end.unwrap_or_default() });
        }
        let left = self.members()?;
        let member = left.iter().find_map(|stat| PidFd::proven(stat.id()).transpose()).transpose()?;
        let over = member.is_none();
        if let Some(adopted) = &mut self.adopted {
            adopted.member = member;
        }
        if over && self.lingered {
            self.lingered = false;
            self.note("emptied", None);
        }
        Ok(over)
    }

    /// Every process that can be proven to belong to the adopted job.
    pub(super) fn adopted_members(&self) -> io::Result<Vec<Stat>> {
        let observer = Observer::new(self.dir.clone(), self.numbers.sync);
        let run = self.dir.run(&self.id, self.numbers.run);
        let Some(launch) = crate::store::read_launch(&run).map_err(io::Error::other)? else {
            return Ok(Vec::new());
        };
        Ok(observer.provable(&launch, !self.ended)?.proven)
    }
}

/// What `brief.fds` holds for an adoption, in the same places as for a launch.
pub(super) fn pidfd(fds: &[OwnedFd]) -> io::Result<PidFd> {
    let fd = fds.get(2).ok_or(io::ErrorKind::InvalidData)?;
    Ok(PidFd::from(fd.try_clone()?))
}

impl PidFd {
    /// How the process ended, if the kernel tells that to others than its parent: `pidfd_info` in linux/pidfd.h.
    fn exit_info(&self, limit: Duration) -> Option<ChildEnd> {
        #[repr(C)]
        #[derive(Default)]
        struct Info {
            mask: u64,
            cgroup: u64,
            ids: [u32; 11],
            exit_code: i32,
        }
        const EXIT: u64 = 1 << 3;
        // _IOWR(0xFF, 11, struct pidfd_info), with the size of its first version.
        const GET_INFO: libc::c_ulong =
            (3 << 30) | ((size_of::<Info>() as libc::c_ulong) << 16) | (0xFF << 8) | 11;
        self.wait_reaped(limit);
        let mut info = Info { mask: EXIT, ..Info::default() };
        // SAFETY: the descriptor is open and the structure is of the size that the request's number says.
        let asked =
            unsafe { libc::ioctl(std::os::fd::AsFd::as_fd(self).as_raw_fd(), GET_INFO, &raw mut info) };
        check(asked.into()).ok()?;
        if info.mask & EXIT == 0 {
            return None;
        }
        let status = info.exit_code;
        let signalled = libc::WIFSIGNALED(status);
        Some(ChildEnd {
            code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            signal: signalled.then(|| libc::WTERMSIG(status)),
            core_dumped: signalled && libc::WCOREDUMP(status),
            ..ChildEnd::default()
        })
    }
}
