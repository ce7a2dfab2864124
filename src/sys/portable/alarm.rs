//! A thread that signals another one.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::pthread::{pthread_kill, pthread_self};
use nix::sys::signal::{SigSet, Signal};

/// Sends SIGALRM to a thread, until it is dropped.
#[derive(Debug)]
pub(in crate::sys) struct Ringer {
    /// Dropped to end the one that rings, and that is waited for: it must not ring for a thread that is no more.
    ringing: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Ringer {
    /// At first after `first`, and then every `again`.
    pub(in crate::sys) fn of_this_thread(first: Duration, again: Duration) -> io::Result<Self> {
        let sleeper = pthread_self();
        let (dropped, rest) = channel();
        let ring = move || {
            let _ = SigSet::all().thread_block();
            let mut pause = first;
            while rest.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let _ = pthread_kill(sleeper, Signal::SIGALRM);
                pause = again;
            }
        };
        let thread = std::thread::Builder::new().spawn(ring)?;
        Ok(Self { ringing: Some((dropped, thread)) })
    }
}

impl Drop for Ringer {
    fn drop(&mut self) {
        if let Some((dropped, thread)) = self.ringing.take() {
            drop(dropped);
            let _ = thread.join();
        }
    }
}
