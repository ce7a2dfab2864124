//! A timer that signals one thread, see timer_create(2).

use std::io;
use std::ptr::null_mut;
use std::time::Duration;

use nix::libc;
use nix::sys::time::TimeSpec;

use crate::sys::check;

/// Sends SIGALRM to a thread, until it is dropped.
#[derive(Debug)]
pub(in crate::sys) struct Ringer(libc::timer_t);

impl Ringer {
    /// At first after `first`, and then every `again`.
    pub(in crate::sys) fn of_this_thread(first: Duration, again: Duration) -> io::Result<Self> {
        // SAFETY: all zero is a valid value.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGALRM;
        event.sigev_notify_thread_id = nix::unistd::gettid().as_raw();
        let mut timer = null_mut();
        // SAFETY: reads one structure and writes one timer.
        check(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) }.into())?;
        let ringer = Self(timer);
        let first = first.clamp(Duration::from_nanos(1), Duration::from_secs(u32::MAX.into()));
        let when = libc::itimerspec {
            it_value: *TimeSpec::from_duration(first).as_ref(),
            it_interval: *TimeSpec::from_duration(again).as_ref(),
        };
        // SAFETY: the timer is ours and the structure is read only.
        check(unsafe { libc::timer_settime(timer, 0, &raw const when, null_mut()) }.into())?;
        Ok(ringer)
    }
}

impl Drop for Ringer {
    fn drop(&mut self) {
        // SAFETY: the timer is ours and is not used any more.
        unsafe { libc::timer_delete(self.0) };
    }
}
