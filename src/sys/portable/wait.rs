//! The ends of children, see waitid(2).

use std::io;
use std::mem::MaybeUninit;

use nix::libc;

use crate::sys::check;
use crate::sys::wait::{Child, ChildEnd};

/// Whether every child is dead: not to be had at once.
pub fn all_dead() -> io::Result<bool> {
    Ok(false)
}

/// Asks about a child. What it used is not told before it is waited for.
pub(in crate::sys) fn wait(child: Child, options: i32) -> io::Result<Option<ChildEnd>> {
    let (kind, pid) = match child {
        Child::Any => (libc::P_ALL, 0),
        Child::Pid(pid) => (libc::P_PID, libc::id_t::try_from(pid).map_err(io::Error::other)?),
    };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the buffer is of the library's type and lives through the call.
    match check(unsafe { libc::waitid(kind, pid, info.as_mut_ptr(), options) }.into()) {
        Ok(_) => {}
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(None),
        Err(error) => return Err(error),
    }
    // SAFETY: zeroed memory is a valid value, and the library has filled it in.
    let info = unsafe { info.assume_init() };
    // SAFETY: for waitid these fields are the ones in use, or all zero.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    let exited = info.si_code == libc::CLD_EXITED;
    Ok((pid != 0).then(|| ChildEnd {
        pid,
        code: exited.then_some(status),
        signal: (!exited).then_some(status),
        core_dumped: info.si_code == libc::CLD_DUMPED,
        ..ChildEnd::default()
    }))
}
