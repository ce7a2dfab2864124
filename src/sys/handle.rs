//! A process that stays the one it was, and the signals that are sent: proven first, each time.

use std::io;

use nix::libc;

use super::check;
pub use super::here::handle::Handle;

/// Sends a signal to a whole process group at once, so that no fork can slip through.
///
/// Only for the parent of the group's leader, and only while it has not waited for it: the number is then
/// certain to be that group's. Groups that could reach further are refused.
#[allow(
    clippy::disallowed_methods,
    reason = "the caller has not reaped the leader, so the number cannot be another's"
)]
pub fn signal_group_of_unreaped_child(leader: i32, signal: i32) -> io::Result<()> {
    let own_group = nix::unistd::getpgrp().as_raw();
    if leader <= 1 || leader == own_group {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: takes two integers; a negative number names the group, see kill(2).
    match check(unsafe { libc::kill(-leader, signal) }.into()) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        sent => sent.map(drop),
    }
}
