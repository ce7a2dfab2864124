//! The ends of children, see waitid(2).

use std::io;
use std::mem::MaybeUninit;

use nix::libc;

use crate::sys::check;
use crate::sys::wait::{Child, ChildEnd};

/// Whether every child is dead. Asked about what can come only from the living, the kernel says ECHILD of the dead, and
/// that is quicker than to look at each. (`wait_consider_task` in kernel/exit.c; were it otherwise, this is false.)
pub fn all_dead() -> io::Result<bool> {
    let options = libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: takes numbers; the kernel fills in nothing where there is no room to.
    let asked = unsafe {
        libc::syscall(libc::SYS_waitid, libc::P_ALL, 0, std::ptr::null_mut::<libc::siginfo_t>(), options, 0)
    };
    match check(asked) {
        Ok(_) => Ok(false),
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Asks about a child; the raw call, unlike the library's, also tells what was used.
pub(in crate::sys) fn wait(child: Child, options: i32) -> io::Result<Option<ChildEnd>> {
    let (kind, pid) = match child {
        Child::Any => (libc::P_ALL, 0),
        Child::Pid(pid) => (libc::P_PID, pid),
    };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both buffers are of the kernel's types and live through the call.
    let result =
        unsafe { libc::syscall(libc::SYS_waitid, kind, pid, info.as_mut_ptr(), options, usage.as_mut_ptr()) };
    match check(result) {
        Ok(_) => {}
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(None),
        Err(error) => return Err(error),
    }
    // SAFETY: zeroed memory is a valid value of both types, and the kernel has filled them in.
    let (info, usage) = unsafe { (info.assume_init(), usage.assume_init()) };
    // SAFETY: for waitid these fields of the union are the ones in use, or all zero.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    if pid == 0 {
        return Ok(None);
    }
    let exited = info.si_code == libc::CLD_EXITED;
    let millis = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1000 + u64::try_from(time.tv_usec).unwrap_or(0) / 1000
    };
    Ok(Some(ChildEnd {
        pid,
        code: exited.then_some(status),
        signal: (!exited).then_some(status),
        core_dumped: info.si_code == libc::CLD_DUMPED,
        max_rss_bytes: u64::try_from(usage.ru_maxrss).ok().map(|kib| kib * 1024),
        cpu_ms: Some(millis(usage.ru_utime) + millis(usage.ru_stime)),
    }))
}
