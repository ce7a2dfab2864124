//! Requests to a supervisor: one line, one write, into the FIFO of its run.
//!
//! A FIFO works across PID namespaces and costs the supervisor one descriptor. An open FIFO is no proof of life;
//! the asker waits for the facts: the run's lock let go, or the kernel's word about the processes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use nix::libc;
use nix::poll::{PollFd, PollFlags, poll};

use crate::job::Cause;
use crate::paths::RunDir;
use crate::sys::poll_timeout;

/// What a supervisor may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Stop { signal: i32, grace: Duration, cause: Cause },
    Pause,
    Resume,
}

impl Request {
    /// `run word …`: shorter than PIPE_BUF, so that requests never mix.
    pub fn encode(self, run: u32) -> String {
        match self {
            Self::Stop { signal, grace, cause } => {
                // A grace beyond all measure is one that never ends, and not a request that cannot be read.
                let grace = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
                format!("{run} stop {signal} {grace} {}\n", cause.word())
            }
            Self::Pause => format!("{run} pause\n"),
            Self::Resume => format!("{run} resume\n"),
        }
    }

    /// None for a line meant for another run, and for one that cannot be read.
    pub fn decode(line: &str, run: u32) -> Option<Self> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (for_run, words) = words.split_first()?;
        if for_run.parse() != Ok(run) {
            return None;
        }
        match words {
            ["stop", signal, grace, cause] => Some(Self::Stop {
                signal: signal.parse().ok().filter(|signal| (1..=64).contains(signal))?,
                grace: Duration::from_millis(grace.parse().ok()?),
                cause: Cause::of(cause)?,
            }),
            ["pause"] => Some(Self::Pause),
            ["resume"] => Some(Self::Resume),
            _ => None,
        }
    }
}

/// The asker's end of a control FIFO.
#[derive(Debug)]
pub struct Control(File);

impl Control {
    /// None if nobody has it open for reading: the supervisor is gone.
    pub fn open(run: &RunDir) -> io::Result<Option<Self>> {
        match OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
            .open(run.control())
        {
            Ok(file) => Ok(Some(Self(file))),
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands a request over; false if the FIFO is still full after this long, or nobody is there to read it any more.
    pub fn ask(&self, run: u32, request: Request, patience: Duration) -> io::Result<bool> {
        let line = request.encode(run);
        let tried = |result: io::Result<usize>| match result {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::BrokenPipe) => {
                Ok(false)
            }
            Err(error) => Err(error),
        };
        if tried((&self.0).write(line.as_bytes()))? {
            return Ok(true);
        }
        let mut room = [PollFd::new(self.0.as_fd(), PollFlags::POLLOUT)];
        match poll(&mut room, poll_timeout(patience)) {
            Ok(0) => Ok(false),
            _ => tried((&self.0).write(line.as_bytes())),
        }
    }

    /// Whether the supervisor has read everything that was asked.
    pub fn heard(&self) -> bool {
        crate::sys::unread(&self.0).is_none_or(|bytes| bytes == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_for_its_run_only_and_nonsense_is_nobodys() {
        let stop = Request::Stop { signal: 15, grace: Duration::from_millis(1500), cause: Cause::Restart };
        assert_eq!(stop.encode(2), "2 stop 15 1500 restart\n");
        for request in [stop, Request::Pause, Request::Resume] {
            assert_eq!(Request::decode(&request.encode(2), 2), Some(request));
            assert_eq!(Request::decode(&request.encode(2), 3), None);
        }
        let ages = Request::Stop { signal: 15, grace: Duration::MAX, cause: Cause::Stop };
        assert!(Request::decode(&ages.encode(1), 1).is_some());
        for bad in [
            "",
            "2",
            "2 stop",
            "2 stop 0 1 stop",
            "2 stop 99 1 stop",
            "2 stop 15 x stop",
            "2 stop 15 1 nonsense",
            "x pause",
        ] {
            assert_eq!(Request::decode(bad, 2), None, "{bad}");
        }
    }
}
