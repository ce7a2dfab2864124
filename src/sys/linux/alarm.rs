//! An alarm for one thread, see timer_create(2): for calls that block and know no time limit.

use std::io;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::time::TimeSpec;

use crate::sys::{check, clock};

/// From its time on, and until it is dropped, a call of this thread that blocks fails with EINTR.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: libc::timer_t,
    /// What this thread had blocked before.
    mask: SigSet,
    /// None: later than can be told.
    due: Option<Instant>,
}

/// It rings again and again: the first time may be right before the call that it is to interrupt.
const AGAIN: Duration = Duration::from_millis(5);

extern "C" fn interrupt(_: libc::c_int) {}

impl Alarm {
    pub(crate) fn after(time: Duration) -> io::Result<Self> {
        let handler = SigAction::new(SigHandler::Handler(interrupt), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler does nothing, and the signal has no other use here.
        unsafe { sigaction(Signal::SIGALRM, &handler) }?;
        let mask = SigSet::thread_get_mask()?;
        SigSet::from(Signal::SIGALRM).thread_unblock()?;
        // SAFETY: all zero is a valid value.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGALRM;
        event.sigev_notify_thread_id = nix::unistd::gettid().as_raw();
        let mut timer = null_mut();
        // SAFETY: reads one structure and writes one timer.
        check(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) }.into())?;
        let alarm = Self { timer, mask, due: clock::instant().checked_add(time) };
        let first = TimeSpec::from_duration(
            time.clamp(Duration::from_nanos(1), Duration::from_secs(u32::MAX.into())),
        );
        let when = libc::itimerspec {
            it_value: *first.as_ref(),
            it_interval: *TimeSpec::from_duration(AGAIN).as_ref(),
        };
        // SAFETY: the timer is ours and the structure is read only.
        check(unsafe { libc::timer_settime(timer, 0, &raw const when, null_mut()) }.into())?;
        Ok(alarm)
    }

    pub(crate) fn over(&self) -> bool {
        self.due.is_some_and(|due| clock::instant() >= due)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: the timer is ours and is not used any more.
        unsafe { libc::timer_delete(self.timer) };
        let _ = self.mask.thread_set_mask();
    }
}
