//! A process held by a pidfd: the number cannot be recycled between the proof and the signal.
//!
//! See pidfd_open(2) (Linux 5.3) and pidfd_send_signal(2) (Linux 5.1).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::job::ProcessId;
use crate::sys::proc::{Seen, look};
use crate::sys::sleep::Source;
use crate::sys::wait::ChildEnd;
use crate::sys::{check, poll_timeout};

/// A process that stays the one it was.
#[derive(Debug)]
pub struct Handle(OwnedFd);

impl Handle {
    pub fn open(pid: i32) -> io::Result<Self> {
        // SAFETY: takes two integers; the result is checked.
        let fd = check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
        // SAFETY: the kernel has just given us this descriptor; nobody else knows it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(i32::try_from(fd).map_err(io::Error::other)?) }))
    }

    /// What somebody else has sent on: the descriptor is all there is to it.
    pub fn received(fd: Option<OwnedFd>, _: ProcessId) -> io::Result<Self> {
        fd.map(Self).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The descriptor, to be sent on.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }

    /// Its end, to be slept on.
    pub fn source(&self) -> Source<'_> {
        Source::Fd(self.0.as_fd())
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

    /// The inode of a process, where it is unique for a boot: the kernel has pidfs (Linux 6.9).
    pub fn inode_of(pid: i32) -> Option<u64> {
        const PID_FS_MAGIC: i64 = 0x5049_4446;
        let Self(process) = Self::open(pid).ok()?;
        let kind = nix::sys::statfs::fstatfs(&process).ok()?.filesystem_type().0;
        if kind as i64 != PID_FS_MAGIC {
            return None;
        }
        nix::sys::stat::fstat(&process).ok().map(|stat| stat.st_ino)
    }

    /// How the process ended, if the kernel tells that to others than its parent (Linux 6.15): `pidfd_info` in
    /// linux/pidfd.h. It is told once the parent has waited for it, for which that has as long as this.
    pub fn status(&self, limit: Duration) -> Option<ChildEnd> {
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
        // POLLHUP says that it was waited for. It is always reported; nothing else is asked for.
        let _ = poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::empty())], poll_timeout(limit));
        let mut info = Info { mask: EXIT, ..Info::default() };
        // SAFETY: the descriptor is open and the structure is of the size that the request's number says.
        let asked = unsafe { libc::ioctl(self.0.as_raw_fd(), GET_INFO, &raw mut info) };
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
