//! Processes as the kernel shows them.
//!
//! A process that is dead but not yet waited for counts as gone: state Z with no other thread. A process that is not
//! shown although the kernel knows its number is hidden, never gone.

use std::io;

use nix::errno::Errno;
use nix::unistd::Pid;

pub use super::here::proc::*;
use crate::job::ProcessId;

/// What there is to see of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    pub pid: i32,
    /// Its name: the kernel's, or where no other is known the command line.
    pub comm: Vec<u8>,
    pub state: u8,
    pub ppid: i32,
    pub pgid: i32,
    pub sid: i32,
    pub threads: u64,
    /// Clock ticks since boot, or where they are not known seconds since 1970.
    pub start_time: u64,
    /// User and system time, in clock ticks.
    pub cpu_ticks: u64,
    pub rss_bytes: u64,
}

impl Stat {
    /// Dead: a zombie with no thread left that runs.
    pub fn dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }

    /// Stopped by a signal or by a tracer.
    pub fn stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }

    pub fn id(&self) -> ProcessId {
        ProcessId { pid: self.pid, start_time: self.start_time }
    }
}

/// What there is to see of one PID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Alive(Stat),
    Gone,
    Hidden,
}

/// Looks one PID up.
pub fn look(pid: i32) -> Seen {
    match stat(pid) {
        Ok(stat) if stat.dead() => Seen::Gone,
        Ok(stat) => Seen::Alive(stat),
        Err(_) if exists(pid) => match stat(pid) {
            Ok(stat) if stat.dead() => Seen::Gone,
            Ok(stat) => Seen::Alive(stat),
            Err(_) if exists(pid) => Seen::Hidden,
            Err(_) => Seen::Gone,
        },
        Err(_) => Seen::Gone,
    }
}

/// Whether the kernel knows the number, may it be looked at or not.
pub fn exists(pid: i32) -> bool {
    pid > 0 && nix::unistd::getsid(Some(Pid::from_raw(pid))) != Err(Errno::ESRCH)
}

/// None for a process that is gone or may not be looked at. Any other failure is ours, such as having no
/// descriptor left, and says nothing about the process.
pub(super) fn seen<T>(looked: io::Result<T>) -> io::Result<Option<T>> {
    match looked {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => Ok(None),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidData => {
                Ok(None)
            }
            _ => Err(error),
        },
    }
}

/// Looks one process up that may be gone by now.
pub fn find(pid: i32) -> io::Result<Option<Stat>> {
    seen(stat(pid))
}

/// Every process that is alive and may be seen.
pub fn table() -> io::Result<Vec<Stat>> {
    let mut table = all()?;
    table.retain(|stat| !stat.dead());
    Ok(table)
}

/// Splits `a\0b\0` into its parts, empty ones included.
pub fn split_nul(raw: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = raw.strip_suffix(b"\0").unwrap_or(raw);
    let none = raw.is_empty();
    whole.split(|&byte| byte == 0).filter(move |_| !none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_arguments_are_arguments() {
        let split = |raw: &'static [u8]| split_nul(raw).collect::<Vec<_>>();
        assert_eq!(split(b"a\0\0b\0"), [&b"a"[..], b"", b"b"]);
        assert_eq!(split(b"\0"), [b""]);
        assert!(split(b"").is_empty());
    }

    #[test]
    fn this_process_is_seen_and_nobody_is_gone() {
        let pid = i32::try_from(std::process::id()).unwrap();
        assert!(matches!(look(pid), Seen::Alive(stat) if stat.pid == pid));
        assert_eq!(look(0), Seen::Gone);
        assert_eq!(look(-1), Seen::Gone);
    }
}
