//! An alarm for one thread: for calls that block and know no time limit.

use std::io;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use super::clock;
use super::here::alarm::Ringer;

/// From its time on, and until it is dropped, a call of this thread that blocks fails with EINTR.
#[derive(Debug)]
pub(super) struct Alarm {
    /// None before it is set. It ends before the mask is as it was.
    ringer: Option<Ringer>,
    /// What this thread had blocked before.
    mask: SigSet,
    /// None: later than can be told.
    due: Option<Instant>,
}

/// It rings again and again: the first time may be right before the call that it is to interrupt.
const AGAIN: Duration = Duration::from_millis(5);

extern "C" fn interrupt(_: libc::c_int) {}

impl Alarm {
    pub(super) fn after(time: Duration) -> io::Result<Self> {
        let handler = SigAction::new(SigHandler::Handler(interrupt), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler does nothing, and the signal has no other use here.
        unsafe { sigaction(Signal::SIGALRM, &handler) }?;
        let mask = SigSet::thread_get_mask()?;
        let mut alarm = Self { ringer: None, mask, due: clock::instant().checked_add(time) };
        SigSet::from(Signal::SIGALRM).thread_unblock()?;
        alarm.ringer = Some(Ringer::of_this_thread(time, AGAIN)?);
        Ok(alarm)
    }

    pub(super) fn over(&self) -> bool {
        self.due.is_some_and(|due| clock::instant() >= due)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.ringer = None;
        let _ = self.mask.thread_set_mask();
    }
}
