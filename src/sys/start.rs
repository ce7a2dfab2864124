//! What the Rust runtime does for a program before `main`, for a `main` that does without it.

use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::stat::Mode;
use std::os::fd::{AsRawFd, IntoRawFd};

/// Closed descriptors 0 to 2 become /dev/null, lest a file of ours takes their place, but for stdout: what was to be
/// told there must not seem to have been. A pipe that nobody reads, or a file that may not grow, is an error and not the
/// end.
pub fn without_runtime() {
    let mut standard = [0, 1, 2].map(|fd| libc::pollfd { fd, events: 0, revents: 0 });
    // SAFETY: three structures are read and written; a number that is not open is what is asked for.
    let asked = unsafe { libc::poll(standard.as_mut_ptr(), 3, 0) };
    if asked < 0 || standard.iter().any(|fd| fd.revents & libc::POLLNVAL != 0) {
        fill_standard();
    }
    for ignored in [Signal::SIGPIPE, Signal::SIGXFSZ] {
        // SAFETY: ignoring runs no code of ours.
        let _ = unsafe { signal(ignored, SigHandler::SigIgn) };
    }
}

/// A caller that ignores SIGCHLD would have our children vanish unseen, and waiting for them fail.
pub fn hear_of_children() {
    // SAFETY: the default disposition runs no code of ours, and nothing here has set another.
    let _ = unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) };
}

/// An open takes the lowest number that is free.
fn fill_standard() {
    loop {
        match open("/dev/null", OFlag::O_RDWR, Mode::empty()) {
            Ok(fd) if fd.as_raw_fd() <= 2 => {
                if fd.into_raw_fd() == 1 {
                    refuse_output();
                }
            }
            _ => return,
        }
    }
}

/// Stdout becomes what cannot be written to. An EBADF would not do: the standard library takes it for success.
fn refuse_output() {
    if let Ok(full) = open("/dev/full", OFlag::O_WRONLY, Mode::empty()) {
        // SAFETY: both descriptors are open, and nothing owns the second.
        unsafe { libc::dup2(full.as_raw_fd(), 1) };
    }
}
