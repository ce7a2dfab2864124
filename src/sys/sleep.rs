//! Sleeping until something happens.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

pub use super::here::sleep::{Signals, Timer};
use super::poll_timeout;

/// What may end a sleep.
#[derive(Debug)]
pub enum Source<'a> {
    /// A descriptor that becomes readable.
    Fd(BorrowedFd<'a>),
    /// Something that the kernel tells nobody of: whether it has happened, and when to look again.
    Look { happened: bool, again: Duration },
}

/// Sleeps until one of these has happened, at most this long. Says which have.
pub fn sleep<W: Copy>(sources: &[(Source, W)], limit: Option<Duration>) -> io::Result<Vec<W>> {
    let looks = sources.iter().filter_map(|(source, _)| match source {
        Source::Fd(_) => None,
        Source::Look { happened: true, .. } => Some(Duration::ZERO),
        Source::Look { again, .. } => Some(*again),
    });
    let limit = looks.chain(limit).min().map_or(PollTimeout::NONE, poll_timeout);
    let mut fds: Vec<PollFd> = sources.iter().filter_map(|(source, _)| poll_fd(source)).collect();
    match poll(&mut fds, limit) {
        Ok(_) => {}
        Err(Errno::EINTR) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    }
    let mut polled = fds.iter();
    let mut happened = |source: &Source| match source {
        Source::Fd(_) => polled.next().and_then(PollFd::any).unwrap_or(false),
        Source::Look { happened, .. } => *happened,
    };
    Ok(sources.iter().filter(|(source, _)| happened(source)).map(|(_, wake)| *wake).collect())
}

fn poll_fd<'a>(source: &Source<'a>) -> Option<PollFd<'a>> {
    match source {
        Source::Fd(fd) => Some(PollFd::new(*fd, PollFlags::POLLIN)),
        Source::Look { .. } => None,
    }
}
