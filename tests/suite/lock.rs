//! Locks that a test holds, to have outlive wait at one certain place.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command};

use nix::fcntl::{FcntlArg, Flock, FlockArg, fcntl};
use nix::libc;

/// Holds the lock of a run as one does that was waiting for its end.
pub(crate) struct Waiter(#[expect(dead_code, reason = "held, not used")] File);

impl Waiter {
    pub(crate) fn of(exit: &Path) -> Self {
        let file = File::open(exit).unwrap();
        let whole = libc::flock {
            l_type: libc::F_RDLCK as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        };
        fcntl(&file, FcntlArg::F_OFD_SETLK(&whole)).unwrap();
        Self(file)
    }
}

pub(crate) struct Held(#[expect(dead_code, reason = "held, not used")] Flock<File>);

impl Held {
    pub(crate) fn new(path: &Path) -> Self {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).unwrap();
        Self(Flock::lock(file, FlockArg::LockExclusive).unwrap())
    }

    /// Starts a command that needs the lock; returns when it says that it waits.
    pub(crate) fn block(&self, command: &mut Command) -> Child {
        let mut child = command.spawn().unwrap();
        let stderr = child.stderr.as_mut().unwrap();
        let (mut said, mut byte) = (Vec::new(), [0]);
        while stderr.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            said.push(byte[0]);
        }
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("waiting for the lock"), "{said}");
        child
    }
}
