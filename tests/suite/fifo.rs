//! A FIFO between a job and its test: a line arrives when the job has got somewhere, the end arrives when the last
//! process that holds the FIFO is gone.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::libc;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::stat::Mode;

use crate::env::PATIENCE;

#[derive(Debug)]
pub(crate) struct Fifo {
    path: PathBuf,
    reader: File,
}

impl Fifo {
    /// The reading end is open from the start, so that a job never blocks on opening the other.
    pub(crate) fn new(path: PathBuf) -> Self {
        nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        let reader = Self::open(&path);
        Self { path, reader }
    }

    fn open(path: &Path) -> File {
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).unwrap()
    }

    pub(crate) fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    /// Blocks until the job writes a line. A writer that leaves without one is followed by the next.
    pub(crate) fn line(&mut self) -> String {
        let mut line = Vec::new();
        loop {
            match self.byte() {
                Some(b'\n') => return String::from_utf8(line).unwrap(),
                Some(byte) => line.push(byte),
                // The new end is open before the old one is closed: nothing that was written is lost.
                None => self.reader = Self::open(&self.path),
            }
        }
    }

    /// Blocks until nobody holds the FIFO any more; returns what was still written.
    pub(crate) fn end(&mut self) -> String {
        let mut rest = Vec::new();
        while let Some(byte) = self.byte() {
            rest.push(byte);
        }
        String::from_utf8(rest).unwrap()
    }

    /// None once there was a writer and none is left.
    fn byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        loop {
            let mut fds = [PollFd::new(self.reader.as_fd(), PollFlags::POLLIN)];
            let ready = poll(&mut fds, u16::try_from(PATIENCE.as_millis()).unwrap()).unwrap();
            assert!(ready > 0, "nothing comes from {}, and it does not end", self.path.display());
            match self.reader.read(&mut byte) {
                Ok(0) => return None,
                Ok(_) => return Some(byte[0]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// A FIFO that a job reads from, to be let go on by its test.
#[derive(Debug)]
pub(crate) struct Gate {
    path: PathBuf,
    both: File,
}

impl Gate {
    /// Open at both ends, so that neither side ever blocks on opening it.
    pub(crate) fn new(path: PathBuf) -> Self {
        nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        let both = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        Self { path, both }
    }

    pub(crate) fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    /// Lets one `read` of the job return.
    pub(crate) fn open(&self) {
        self.say("go\n");
    }

    /// The same with these words for it to read.
    pub(crate) fn say(&self, words: &str) {
        (&self.both).write_all(words.as_bytes()).unwrap();
    }
}
