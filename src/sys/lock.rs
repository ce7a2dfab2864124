//! Locks on bytes of a file that belong to the open file: open-file-description locks, see F_OFD_SETLK in fcntl(2).
//!
//! They are POSIX since 2024. Linux, macOS and illumos have them.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;

use super::alarm::Alarm;
use super::clock;
pub use super::here::lock::holders;

// Systems differ in the type of these numbers, not in that of the fields they are for.
const READ: libc::c_short = libc::F_RDLCK as libc::c_short;
const WRITE: libc::c_short = libc::F_WRLCK as libc::c_short;
const FREE: libc::c_short = libc::F_UNLCK as libc::c_short;

fn request(bytes: Range<i64>, kind: libc::c_short) -> libc::flock {
    libc::flock {
        l_type: kind,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: bytes.start,
        l_len: bytes.end - bytes.start,
        l_pid: 0,
    }
}

fn fcntl(file: &impl AsFd, command: libc::c_int, request: &mut libc::flock) -> Result<(), Errno> {
    // SAFETY: the descriptor is open, and the kernel reads and writes one structure of this type.
    Errno::result(unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, request) }).map(drop)
}

/// How long those that wait for a lock may take to let go of it once they have it.
const WAITERS_TURN: Duration = Duration::from_secs(2);

/// Takes the lock if nobody holds it. Whoever has just been woken by its end holds it for a moment, and is waited for.
pub fn attempt(file: &impl AsFd, bytes: Range<i64>) -> io::Result<bool> {
    let begun = clock::instant();
    loop {
        match fcntl(file, libc::F_OFD_SETLK, &mut request(bytes.clone(), WRITE)) {
            Ok(()) => return Ok(true),
            Err(Errno::EAGAIN | Errno::EACCES) => {}
            Err(error) => return Err(error.into()),
        }
        if held(file, bytes.clone())? {
            return Ok(false);
        }
        if begun.elapsed() > WAITERS_TURN {
            let why = "a process that waits for the job keeps it locked (is it stopped?)";
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub fn release(file: &impl AsFd, bytes: Range<i64>) -> io::Result<()> {
    Ok(fcntl(file, libc::F_OFD_SETLK, &mut request(bytes, FREE))?)
}

/// Whether somebody else has taken it; nothing is taken by asking, and who waits for its end does not count.
pub fn held(file: &impl AsFd, bytes: Range<i64>) -> io::Result<bool> {
    let mut request = request(bytes, READ);
    fcntl(file, libc::F_OFD_GETLK, &mut request)?;
    Ok(request.l_type != FREE)
}

/// Blocks until nobody holds it.
pub fn wait(file: &impl AsFd, bytes: Range<i64>) -> io::Result<()> {
    block(file, bytes, || false).map(drop)
}

/// The same with a limit: false if it is still held then.
pub fn wait_for(file: &impl AsFd, bytes: Range<i64>, limit: Duration) -> io::Result<bool> {
    if !held(file, bytes.clone())? {
        return Ok(true);
    }
    match Alarm::after(limit) {
        Ok(alarm) => block(file, bytes, || alarm.over()),
        // Timers count as pending signals, of which a user may have only so many.
        Err(_) => look_until(file, bytes, limit),
    }
}

/// The same without being woken.
fn look_until(file: &impl AsFd, bytes: Range<i64>, limit: Duration) -> io::Result<bool> {
    let begun = clock::instant();
    while held(file, bytes.clone())? {
        let left = limit.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(false);
        }
        std::thread::sleep(left.min(Duration::from_millis(10)));
    }
    Ok(true)
}

/// False if it was interrupted and that is enough.
fn block(file: &impl AsFd, bytes: Range<i64>, enough: impl Fn() -> bool) -> io::Result<bool> {
    loop {
        match fcntl(file, libc::F_OFD_SETLKW, &mut request(bytes.clone(), READ)) {
            Ok(()) => return release(file, bytes).map(|()| true),
            Err(Errno::EINTR) if enough() => return Ok(false),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
