//! How processes are started on any POSIX system: the supervisor by executing this program again, the leader by a fork
//! that is waited for until its exec.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::io::{self, Read};
use std::mem::size_of;
use std::num::NonZeroUsize;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStringExt;

use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::unistd::{ForkResult, SysconfVar, fork, sysconf};

use crate::sys::spawn::{EVERY_SIGNAL, Leader, Line, Progress, be_leader, exec_self_with_line};

/// Starts the supervisor by executing this program again: no process can change what ps shows of it, and it is not to
/// show the words of the job's command. Never returns in the child.
pub fn fork_with_line() -> io::Result<Option<Line>> {
    exec_self_with_line(crate::SUPERVISE).map(Some)
}

/// As what a supervisor shows itself in ps: by the word it is executed with.
pub fn title(_: &str) -> String {
    crate::SUPERVISE.to_owned()
}

/// Nothing can be changed about it.
pub fn name_process(_: &str) {}

/// Nor about that.
#[derive(Debug)]
pub struct Title;

impl Title {
    pub fn own() -> Self {
        Self
    }

    pub fn change(&self, _: &str) {}
}

/// By what this very program is executed again.
pub(in crate::sys) fn own_program() -> io::Result<Cow<'static, CStr>> {
    Ok(Cow::Owned(CString::new(std::env::current_exe()?.into_os_string().into_vec())?))
}

/// Closes this descriptor and all above it.
pub(in crate::sys) fn close_from(first: RawFd) {
    let listed = std::fs::read_dir("/dev/fd").into_iter().flatten().flatten();
    let open: Vec<RawFd> = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    // Where only the first three are listed, it is no list.
    let known = open.iter().any(|&fd| fd > 2);
    let limit = sysconf(SysconfVar::OPEN_MAX).ok().flatten().and_then(|limit| RawFd::try_from(limit).ok());
    let all = if known { open } else { (first..limit.unwrap_or(1024)).collect() };
    for fd in all.into_iter().filter(|&fd| fd >= first) {
        // SAFETY: descriptors that this process alone owns; to close one that is not open fails.
        unsafe { libc::close(fd) };
    }
}

/// These dispositions to their default: what a parent ignores is inherited through fork and exec.
///
/// # Safety
/// No handler of this process may be needed any longer.
pub unsafe fn default_signals(signals: impl IntoIterator<Item = c_int>) {
    for signal in signals {
        // SAFETY: the default disposition runs no code of ours; numbers that may not be set are refused.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// The system's first process adopts what a job leaves behind.
pub fn become_subreaper() -> io::Result<()> {
    Ok(())
}

/// Starts the leader; returns once it has executed its program or is dead: then the last copy of a pipe is closed.
pub(in crate::sys) fn start_with(leader: &mut Leader<'_>) -> io::Result<(i32, Progress)> {
    let shared = Shared::new()?;
    let (mut begun, held) = io::pipe()?;
    let mut before = SigSet::empty();
    nix::sys::signal::sigprocmask(SigmaskHow::SIG_BLOCK, Some(&SigSet::all()), Some(&mut before))?;
    // SAFETY: this process has one thread, so the child may do anything; it makes system calls only.
    let forked = unsafe { fork() };
    if let Ok(ForkResult::Child) = forked {
        // SAFETY: the handlers are the supervisor's. This process is new, and every signal is blocked.
        unsafe {
            default_signals(EVERY_SIGNAL);
            be_leader(leader, shared.progress())
        }
    }
    before.thread_set_mask()?;
    let ForkResult::Parent { child } = forked? else { return Err(io::ErrorKind::Other.into()) };
    drop(held);
    while begun.read(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {}
    Ok((child.as_raw(), shared.progress().clone()))
}

/// A page that this process has in common with its leader.
struct Shared(std::ptr::NonNull<std::ffi::c_void>);

const SIZE: NonZeroUsize = NonZeroUsize::new(size_of::<Progress>()).expect("not empty");

impl Shared {
    fn new() -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let page = unsafe {
            mmap_anonymous(None, SIZE, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED)
        };
        Ok(Self(page?))
    }

    fn progress(&self) -> &Progress {
        // SAFETY: a page is aligned for it, and all zero is how it begins; it consists of atomics.
        unsafe { self.0.cast::<Progress>().as_ref() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: our own mapping; no reference into it outlives `self`.
        let _ = unsafe { munmap(self.0, SIZE.get()) };
    }
}
