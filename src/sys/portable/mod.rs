//! Any POSIX system: the process table as ps(1) shows it, and ends that are noticed by looking.
//!
//! Where a system can do more than POSIX, this is where a port begins: `ability.rs` has what is missing, and
//! docs/platforms.md by which of its calls macOS and the BSDs could give it.

pub(super) mod alarm;
pub mod disk;
pub(super) mod handle;
pub(super) mod lock;
pub(super) mod machine;
pub mod port;
pub(super) mod proc;
mod ps;
pub(super) mod sleep;
pub(super) mod spawn;
pub(super) mod wait;
pub mod watch;

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::libc;
use nix::sys::signal::Signal;
use nix::sys::socket::MsgFlags;
use nix::time::ClockId;

use super::ability::Ability;

pub(super) const fn can(_: Ability) -> bool {
    false
}

/// How often something is looked at that the kernel tells nobody of.
const LOOK: Duration = Duration::from_millis(500);

/// Whether it counts through suspends is the system's affair.
pub(super) const BOOT_CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;

/// How a directory is opened that is only to be entered.
pub const OPEN_DIRECTORY: libc::c_int = libc::O_DIRECTORY;

/// For a send: that nobody reads any more is an error, and no signal.
pub const NO_SIGPIPE: MsgFlags = MsgFlags::from_bits_retain(libc::MSG_NOSIGNAL);

/// For a receive: no descriptor that comes is left open by an exec.
pub const CLOSE_RECEIVED: MsgFlags = MsgFlags::empty();

/// The same for one that has come, where the receive could not see to it.
pub fn close_received(fd: &OwnedFd) -> io::Result<()> {
    fcntl(fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    Ok(())
}

pub fn highest_signal() -> i32 {
    Signal::iterator().map(|signal| signal as i32).max().unwrap_or(libc::SIGTERM)
}
