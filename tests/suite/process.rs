//! Processes seen and signalled from the tests, each one named by its number and its start time.

use std::fs;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use nix::libc;
use nix::poll::{PollFd, PollFlags, poll};

use crate::env::{PATIENCE, can};

/// A process held by its pidfd: the number cannot come to mean another one.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    handle: OwnedFd,
}

impl Process {
    /// None if it is gone. The caller must know that the number is not a stranger's, or use [`Self::exactly`].
    pub(crate) fn open(pid: i32) -> Option<Self> {
        assert!(pid > 1, "{pid} is not a process of ours");
        // SAFETY: pidfd_open(2) takes two numbers and returns a new descriptor or -1.
        let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let raw = i32::try_from(raw).ok().filter(|&raw| raw >= 0)?;
        // SAFETY: the kernel has just made this descriptor for us.
        Some(Self { pid, handle: unsafe { OwnedFd::from_raw_fd(raw) } })
    }

    /// The process that bore this number since this start time, if it lives.
    pub(crate) fn exactly(pid: i32, start_time: u64) -> Option<Self> {
        // A test may have made a record that names nobody.
        if pid <= 1 {
            return None;
        }
        Self::open(pid).filter(|_| is_alive(pid) && start_of(pid) == Some(start_time))
    }

    pub(crate) fn signal(&self, signal: i32) {
        use std::os::fd::AsRawFd;
        let (fd, none) = (self.handle.as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
        // SAFETY: pidfd_send_signal(2) with an open pidfd and no siginfo.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, none, 0) };
    }

    /// Blocks until it is dead.
    pub(crate) fn wait(&self) {
        let mut fds = [PollFd::new(self.handle.as_fd(), PollFlags::POLLIN)];
        let ready = poll(&mut fds, u16::try_from(PATIENCE.as_millis()).unwrap()).unwrap();
        assert!(ready > 0, "process {} does not end", self.pid);
    }

    pub(crate) fn kill(&self) {
        self.signal(libc::SIGKILL);
        self.wait();
    }
}

/// The fields of /proc/PID/stat after the name, so that field N of the manual page is `[N - 3]`.
fn fields(pid: i32) -> Option<Vec<String>> {
    let raw = String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?).into_owned();
    Some(raw[raw.rfind(')')? + 1..].split_ascii_whitespace().map(str::to_owned).collect())
}

/// When a process began, as this build records it: in clock ticks, or to the second.
pub(crate) fn start_of(pid: i32) -> Option<u64> {
    let ticks = fields(pid)?.get(19)?.parse().ok()?;
    Some(if can("start-times") { ticks } else { second_of(ticks) })
}

/// The second of the wall clock, as ps works it out.
fn second_of(ticks: u64) -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let boot: u64 = stat.lines().find_map(|line| line.strip_prefix("btime ")?.parse().ok()).unwrap();
    let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).unwrap().unwrap();
    boot + ticks / u64::try_from(per_second).unwrap()
}

pub(crate) fn group_of(pid: i32) -> Option<i32> {
    fields(pid)?.get(2)?.parse().ok()
}

/// A zombie is not alive.
pub(crate) fn is_alive(pid: i32) -> bool {
    fields(pid).is_some_and(|fields| !matches!(&*fields[0], "Z" | "X"))
}

pub(crate) fn is_stopped(pid: i32) -> bool {
    fields(pid).is_some_and(|fields| fields[0] == "T")
}

/// The PID namespace in which the numbers of this test are meant, as this build records it: a portable one knows but one.
pub(crate) fn own_namespace() -> u64 {
    if !can("namespaces") {
        return 1;
    }
    std::os::unix::fs::MetadataExt::ino(&fs::metadata("/proc/self/ns/pid").unwrap())
}

/// Every process whose environment holds this entry.
pub(crate) fn with_environment(entry: &str) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|found| found.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| pid > 1 && with_mark(pid, entry)).collect()
}

pub(crate) fn with_mark(pid: i32, entry: &str) -> bool {
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|raw| raw.split(|&byte| byte == 0).any(|word| word == entry.as_bytes()))
}

/// What the descriptors of a process lead to, by number.
pub(crate) fn descriptors(pid: i32) -> Vec<(i32, String)> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let mut found: Vec<(i32, String)> = entries
        .filter_map(|entry| {
            let target = fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned();
            Some((entry.file_name().to_str()?.parse().ok()?, target))
        })
        .collect();
    found.sort();
    found
}
