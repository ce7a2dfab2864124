//! Everything that is not POSIX, and everything that may hurt: processes as the kernel shows them, signals,
//! clocks, and the two ways a process is started here.
//!
//! A port to another system replaces the files below this one. Linux 5.4 or later is what they are written for.

pub mod clock;
pub mod pidfd;
pub mod proc;
pub mod spawn;
pub mod start;
pub mod wait;

use std::io;

/// Turns a raw system call's result into a Rust one.
pub(crate) fn check(result: nix::libc::c_long) -> io::Result<nix::libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Starts a thread. Where there is no room for one, that is an error like another.
pub fn thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().spawn(work).map(drop)
}

/// Whose process this is: asked once, nothing here ever changes it.
pub fn user() -> u32 {
    static USER: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *USER.get_or_init(|| nix::unistd::geteuid().as_raw())
}

/// Random bytes from the kernel, see getrandom(2).
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0_u8; N];
    // SAFETY: the buffer is valid for N bytes; up to 256 bytes are never delivered in part.
    check(unsafe { nix::libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) } as nix::libc::c_long)?;
    Ok(bytes)
}
