//! Linux 5.4 or later: procfs, pidfds, subreapers.

pub(super) mod alarm;
pub mod disk;
pub(super) mod handle;
pub(super) mod lock;
pub(super) mod machine;
pub mod port;
pub(super) mod proc;
pub(super) mod sleep;
pub(super) mod spawn;
pub(super) mod wait;
pub mod watch;

use std::io;
use std::os::fd::OwnedFd;

use nix::libc;
use nix::sys::socket::MsgFlags;
use nix::time::ClockId;

use super::ability::Ability;

/// What an old kernel lacks, `machine.rs` looks for.
pub(super) const fn can(_: Ability) -> bool {
    true
}

/// It counts through suspends.
pub(super) const BOOT_CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;

/// How a directory is opened that is only to be entered.
pub const OPEN_DIRECTORY: libc::c_int = libc::O_DIRECTORY | libc::O_PATH;

/// For a send: that nobody reads any more is an error, and no signal.
pub const NO_SIGPIPE: MsgFlags = MsgFlags::MSG_NOSIGNAL;

/// For a receive: no descriptor that comes is left open by an exec.
pub const CLOSE_RECEIVED: MsgFlags = MsgFlags::MSG_CMSG_CLOEXEC;

/// The same for one that has come, where the receive could not see to it.
pub fn close_received(_: &OwnedFd) -> io::Result<()> {
    Ok(())
}

pub fn highest_signal() -> i32 {
    libc::SIGRTMAX()
}
