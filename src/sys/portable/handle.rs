//! A process known by number and start time. It is proven anew before each signal, but a number may become another's
//! in between: systems that can hold a process do better.

use std::cell::Cell;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;

use super::LOOK;
use crate::job::ProcessId;
use crate::sys::check;
use crate::sys::clock;
use crate::sys::proc::{Seen, exists, find, look};
use crate::sys::sleep::Source;
use crate::sys::wait::ChildEnd;

#[derive(Debug)]
pub struct Handle {
    id: ProcessId,
    /// When it was last found alive.
    seen: Cell<Option<Instant>>,
}

impl Handle {
    pub fn open(pid: i32) -> io::Result<Self> {
        match find(pid)? {
            // A dead child, too, can be held until it is waited for.
            Some(stat) => Ok(Self { id: stat.id(), seen: Cell::new(None) }),
            None if exists(pid) => Err(io::ErrorKind::PermissionDenied.into()),
            None => Err(Errno::ESRCH.into()),
        }
    }

    /// What somebody else has sent on: its number and start time are all there is to it.
    pub fn received(_: Option<OwnedFd>, id: ProcessId) -> io::Result<Self> {
        Ok(Self { id, seen: Cell::new(None) })
    }

    /// No descriptor stands for it.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Its end, to be slept on.
    pub fn source(&self) -> Source<'_> {
        Source::Look { happened: self.ended_lately(), again: LOOK }
    }

    /// Opens the process that `id` names; none if it is gone or the number is somebody else's by now.
    pub fn proven(id: ProcessId) -> io::Result<Option<Self>> {
        match look(id.pid) {
            Seen::Alive(stat) => Ok((stat.id() == id).then(|| Self { id, seen: Cell::new(None) })),
            Seen::Gone => Ok(None),
            Seen::Hidden => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// Sends `signal`. A process that is gone by now is no error.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        if Self::proven(self.id)?.is_none() {
            return Ok(());
        }
        // SAFETY: takes two integers. The number is above 0: no process of the table has another.
        match check(unsafe { nix::libc::kill(self.id.pid, signal) }.into()) {
            Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => Ok(()),
            sent => sent.map(drop),
        }
    }

    /// POSIX has no number of a process that is unique for a boot.
    pub fn inode_of(_: i32) -> Option<u64> {
        None
    }

    /// How a process ended is told to its parent only.
    pub fn status(&self, _: Duration) -> Option<ChildEnd> {
        None
    }

    /// Waits until the process has ended; false if the time ran out first.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        if timeout == Some(Duration::ZERO) {
            return Ok(self.ended_lately());
        }
        let deadline = timeout.and_then(|timeout| clock::instant().checked_add(timeout));
        let mut pause = Duration::from_millis(20);
        while !self.ended() {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(clock::instant()));
            if left == Some(Duration::ZERO) {
                return Ok(false);
            }
            std::thread::sleep(left.map_or(pause, |left| left.min(pause)));
            pause = (pause * 2).min(LOOK);
        }
        Ok(true)
    }

    fn ended(&self) -> bool {
        !exists(self.id.pid)
            || match look(self.id.pid) {
                Seen::Alive(stat) => stat.id() != self.id,
                Seen::Gone => true,
                Seen::Hidden => false,
            }
    }

    /// The same, for one who asks again and again: each look runs a ps, whose end is one more thing to wake by.
    fn ended_lately(&self) -> bool {
        let now = clock::instant();
        if self.seen.get().is_some_and(|seen| now.saturating_duration_since(seen) < LOOK) {
            return false;
        }
        let ended = self.ended();
        self.seen.set(Some(now).filter(|_| !ended));
        ended
    }
}
