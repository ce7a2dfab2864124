//! Being told of writes: by inotify(7), of which a user has 128 instances, or by a directory's SIGIO.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::path::Path;

use nix::libc;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use crate::sys::check;

/// Becomes readable when something changes. Closing one costs milliseconds.
#[derive(Debug)]
pub struct Watch(Inotify);

impl Watch {
    /// None if the kernel gives this user no more.
    pub fn new() -> Option<Self> {
        Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok().map(Self)
    }

    /// Watches what is written, created and moved in a directory.
    pub fn of_directory(path: &Path) -> Option<Self> {
        let flags = AddWatchFlags::IN_MODIFY | AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO;
        let watch = Self::new()?;
        watch.0.add_watch(path, flags).ok().map(|_| watch)
    }

    /// Waits for the next write to a file, and only that: a standing watch slows the writer down. False if it cannot.
    pub fn next_write(&self, path: &Path) -> bool {
        self.forget();
        self.0.add_watch(path, AddWatchFlags::IN_MODIFY | AddWatchFlags::IN_ONESHOT).is_ok()
    }

    /// Forgets what it has told of.
    pub fn forget(&self) {
        while self.0.read_events().is_ok_and(|events| !events.is_empty()) {}
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Tells of the next write in a directory by SIGIO, see F_NOTIFY in fcntl(2).
#[derive(Debug)]
pub struct WriteSignal(File);

impl WriteSignal {
    /// Its descriptor takes the place of stdin, for which a supervisor has no use: one fewer.
    pub fn of(directory: &Path) -> io::Result<Self> {
        let directory = File::open(directory)?;
        // SAFETY: descriptor 0 is /dev/null here and nothing owns it; from now on the result does.
        unsafe {
            check(libc::dup3(directory.as_raw_fd(), 0, libc::O_CLOEXEC).into())?;
            Ok(Self(File::from_raw_fd(0)))
        }
    }

    /// Asks for one signal, at the next write.
    pub fn arm(&self) -> io::Result<()> {
        /// A file of the directory was written.
        const DN_MODIFY: libc::c_int = 2;
        // SAFETY: the descriptor is open; the request takes an integer.
        check(unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_NOTIFY, DN_MODIFY) }.into()).map(drop)
    }
}
