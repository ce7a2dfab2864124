//! An alarm for one thread, rung by another: for calls that block and know no time limit.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::pthread::{pthread_kill, pthread_self};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::sys::clock;

/// From its time on, and until it is dropped, a call of this thread that blocks fails with EINTR.
#[derive(Debug)]
pub(crate) struct Alarm {
    /// Dropped to end the one that rings, and that is waited for: it must not ring for a thread that is no more.
    ringing: Option<(Sender<()>, JoinHandle<()>)>,
    /// What this thread had blocked before.
    mask: SigSet,
    /// None: later than can be told.
    due: Option<Instant>,
}

/// It rings again and again: the first time may be right before the call that it is to interrupt.
const AGAIN: Duration = Duration::from_millis(5);

extern "C" fn interrupt(_: nix::libc::c_int) {}

impl Alarm {
    pub(crate) fn after(time: Duration) -> io::Result<Self> {
        let handler = SigAction::new(SigHandler::Handler(interrupt), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler does nothing, and the signal has no other use here.
        unsafe { sigaction(Signal::SIGALRM, &handler) }?;
        let due = clock::instant().checked_add(time);
        let sleeper = pthread_self();
        let (dropped, rest) = channel();
        let ring = move || {
            let _ = SigSet::all().thread_block();
            let mut pause = time;
            while rest.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let _ = pthread_kill(sleeper, Signal::SIGALRM);
                pause = AGAIN;
            }
        };
        let ringer = std::thread::Builder::new().spawn(ring)?;
        let mask = SigSet::thread_get_mask()?;
        SigSet::from(Signal::SIGALRM).thread_unblock()?;
        Ok(Self { ringing: Some((dropped, ringer)), mask, due })
    }

    pub(crate) fn over(&self) -> bool {
        self.due.is_some_and(|due| clock::instant() >= due)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some((dropped, ringer)) = self.ringing.take() {
            drop(dropped);
            let _ = ringer.join();
        }
        let _ = self.mask.thread_set_mask();
    }
}
