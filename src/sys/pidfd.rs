//! Signals, through a pidfd only: the number cannot be recycled between the proof and the signal.
//!
//! See pidfd_open(2) (Linux 5.3) and pidfd_send_signal(2) (Linux 5.1).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::check;
use super::proc::{Seen, look};
use crate::job::ProcessId;

/// A process that stays the one it was.
#[derive(Debug)]
pub struct PidFd(OwnedFd);

impl PidFd {
    pub fn open(pid: i32) -> io::Result<Self> {
        // SAFETY: takes two integers; the result is checked.
        let fd = check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
        // SAFETY: the kernel has just given us this descriptor; nobody else knows it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(i32::try_from(fd).map_err(io::Error::other)?) }))
    }

    /// Opens the process that `id` names; none if it is gone or the number is somebody else's by now.
    pub fn proven(id: ProcessId) -> io::Result<Option<Self>> {
        let fd = match Self::open(id.pid) {
            Ok(fd) => fd,
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(None),
            Err(error) => return Err(error),
        };
        // Checked after the descriptor was opened: what is seen now is what the descriptor refers to.
        match look(id.pid) {
            Seen::Alive(stat) if stat.start_time == id.start_time => Ok(Some(fd)),
            Seen::Alive(_) | Seen::Gone => Ok(None),
            Seen::Hidden => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// Sends `signal`. A process that is gone by now is no error.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        // SAFETY: the descriptor is open; a null siginfo is allowed.
        let sent = check(unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.0.as_raw_fd(),
                signal,
                std::ptr::null::<libc::c_void>(),
                0,
            )
        });
        match sent {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            sent => sent.map(drop),
        }
    }

    /// The inode, where it is unique: the kernel has pidfs (Linux 6.9).
    pub fn inode(&self) -> Option<u64> {
        const PID_FS_MAGIC: i64 = 0x5049_4446;
        let kind = nix::sys::statfs::fstatfs(&self.0).ok()?.filesystem_type().0;
        if kind as i64 != PID_FS_MAGIC {
            return None;
        }
        nix::sys::stat::fstat(&self.0).ok().map(|stat| stat.st_ino)
    }

    /// Blocks until the process has been waited for by its parent, at most this long.
    pub fn wait_reaped(&self, limit: Duration) {
        // POLLHUP is always reported; nothing else is asked for.
        let _ = poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::empty())], poll_timeout(limit));
    }

    /// Blocks until the process has ended; false if the time ran out first.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        let timeout = timeout.map_or(PollTimeout::NONE, poll_timeout);
        loop {
            let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, timeout) {
                Ok(ready) => return Ok(ready > 0),
                Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Rounded up, so that a wait never ends before its time.
pub fn poll_timeout(time: Duration) -> PollTimeout {
    PollTimeout::try_from(time.as_micros().div_ceil(1000).min(i32::MAX as u128)).unwrap_or(PollTimeout::MAX)
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for PidFd {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

/// Sends a signal to a whole process group at once, so that no fork can slip through.
///
/// Only for the parent of the group's leader, and only while it has not waited for it: the number is then
/// certain to be that group's. Groups that could reach further are refused.
#[allow(
    clippy::disallowed_methods,
    reason = "the caller has not reaped the leader, so the number cannot be another's"
)]
pub fn signal_group_of_unreaped_child(leader: i32, signal: i32) -> io::Result<()> {
    let own_group = nix::unistd::getpgrp().as_raw();
    if leader <= 1 || leader == own_group {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: takes two integers; a negative number names the group, see kill(2).
    match check(unsafe { libc::kill(-leader, signal) }.into()) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        sent => sent.map(drop),
    }
}
