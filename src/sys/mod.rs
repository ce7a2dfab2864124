//! Everything that is not POSIX, and everything that may hurt: processes as the kernel shows them, signals,
//! clocks, and the two ways a process is started here.
//!
//! What a system has of its own is in one folder: a port is another one beside `linux`.

mod ability;
mod alarm;
pub mod clock;
pub mod handle;
pub mod lock;
pub mod machine;
pub mod mapping;
pub mod message;
pub mod proc;
pub mod sleep;
pub mod spawn;
pub mod start;
pub mod wait;

// The back-end: the one of this system, or where there is none, what does with POSIX. The feature `portable` is the
// proof that the latter does.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
#[path = "linux/mod.rs"]
mod here;
#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
#[path = "portable/mod.rs"]
mod here;

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use nix::libc;
use nix::poll::PollTimeout;

pub use self::ability::{Ability, can};
pub use self::here::{
    CLOSE_RECEIVED, NO_SIGPIPE, OPEN_DIRECTORY, close_received, disk, highest_signal, port, watch,
};

/// Turns a raw system call's result into a Rust one.
pub(crate) fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Starts a thread. Where there is no room for one, that is an error like another.
pub fn thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().spawn(work).map(drop)
}

/// Lets whoever has just been woken go first. The kernel often puts it on the processor of the one that woke it, where it
/// would not run before that one sleeps. Safe between a fork and an exec.
pub fn after_you() {
    // SAFETY: takes nothing, and cannot fail on any system we know of, see sched_yield(2).
    unsafe { libc::sched_yield() };
}

/// Whose process this is: asked once, nothing here ever changes it.
pub fn user() -> u32 {
    static USER: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *USER.get_or_init(|| nix::unistd::geteuid().as_raw())
}

/// Random bytes from the kernel, 256 at most, see getentropy(3).
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0_u8; N];
    // SAFETY: the buffer is valid for N bytes.
    check(unsafe { libc::getentropy(bytes.as_mut_ptr().cast(), N) }.into())?;
    Ok(bytes)
}

/// Sets the mask for the modes of new files; what it was. Safe between a fork and an exec.
#[allow(clippy::unnecessary_cast, reason = "systems differ in the type")]
pub fn umask(mask: u32) -> u32 {
    // SAFETY: takes and returns an integer, and cannot fail.
    unsafe { libc::umask(mask as libc::mode_t) as u32 }
}

/// How many bytes wait in a pipe to be read, see FIONREAD in ioctl_tty(2) and pipe(7). None if that cannot be told.
pub fn unread(pipe: &impl AsFd) -> Option<usize> {
    let mut waiting: libc::c_int = 0;
    // SAFETY: the descriptor is open and the kernel writes one int.
    check(unsafe { libc::ioctl(pipe.as_fd().as_raw_fd(), libc::FIONREAD, &raw mut waiting) }.into()).ok()?;
    usize::try_from(waiting).ok()
}

/// How many characters fit in a line of the terminal that stdout is.
pub fn terminal_width() -> Option<usize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the kernel fills in one winsize, see ioctl_tty(2).
    check(unsafe { libc::ioctl(1, libc::TIOCGWINSZ, &raw mut size) }.into()).ok()?;
    Some(usize::from(size.ws_col)).filter(|&width| width > 0)
}

/// Rounded up, so that a wait never ends before its time.
pub fn poll_timeout(time: Duration) -> PollTimeout {
    PollTimeout::try_from(time.as_micros().div_ceil(1000).min(i32::MAX as u128)).unwrap_or(PollTimeout::MAX)
}
