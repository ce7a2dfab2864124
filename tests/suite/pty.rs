//! A terminal whose screen the test reads, see pty(7).

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;

use nix::poll::{PollFd, PollFlags, poll};
use nix::pty::{Winsize, openpty};

use crate::PATIENCE;

pub(crate) struct Terminal {
    /// What is written here is typed.
    pub(crate) master: File,
    slave: OwnedFd,
    seen: String,
}

impl Terminal {
    pub(crate) fn new(rows: u16, columns: u16) -> Self {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(Some(&size), None).unwrap();
        Self { master: pair.master.into(), slave: pair.slave, seen: String::new() }
    }

    pub(crate) fn stdio(&self) -> Stdio {
        self.slave.try_clone().unwrap().into()
    }

    /// Blocks until this has been drawn since the last time; returns what was drawn up to it.
    pub(crate) fn until(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            let mut fds = [PollFd::new(self.master.as_fd(), PollFlags::POLLIN)];
            let ready = poll(&mut fds, u16::try_from(PATIENCE.as_millis()).unwrap()).unwrap();
            assert!(ready > 0, "{text:?} is never drawn: {:?}", self.seen);
            let mut buffer = [0; 4096];
            let read = self.master.read(&mut buffer).unwrap();
            self.seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
    }
}
