//! What the Rust runtime does for a program before `main`, for a `main` that does without it.

use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::stat::Mode;
use std::os::fd::{BorrowedFd, IntoRawFd};

/// Closed descriptors 0 to 2 become /dev/null, lest a file of ours takes their place; a pipe that nobody reads is an
/// error and not the end.
pub fn without_runtime() {
    // SAFETY: they may be closed; poll(2) says so, and nothing else is done with them.
    let mut standard =
        [0, 1, 2].map(|fd| PollFd::new(unsafe { BorrowedFd::borrow_raw(fd) }, PollFlags::empty()));
    let asked = poll(&mut standard, PollTimeout::ZERO);
    let closed = |fd: &PollFd| fd.revents().is_some_and(|events| events.contains(PollFlags::POLLNVAL));
    if asked.is_err() || standard.iter().any(closed) {
        fill_standard();
    }
    // SAFETY: ignoring runs no code of ours.
    let _ = unsafe { signal(Signal::SIGPIPE, SigHandler::SigIgn) };
}

/// An open takes the lowest number that is free.
fn fill_standard() {
    loop {
        match open("/dev/null", OFlag::O_RDWR, Mode::empty()).map(IntoRawFd::into_raw_fd) {
            Ok(fd) if fd <= 2 => {}
            Ok(fd) => {
                // SAFETY: opened here, and nobody else knows it.
                unsafe { libc::close(fd) };
                return;
            }
            Err(_) => return,
        }
    }
}
