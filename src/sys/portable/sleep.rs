//! What a supervisor sleeps on: a line from its signal handler, and the clock.

use std::io::{self, Read};
use std::os::fd::{AsFd, IntoRawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, sigaction};

use crate::sys::clock;
use crate::sys::sleep::Source;

/// Signals that are heard one at a time.
#[derive(Debug)]
pub struct Signals(UnixStream);

/// The line's end for the handler, and whose it is: a child that has not executed anything yet has both.
static HEARD: AtomicI32 = AtomicI32::new(-1);
static LISTENER: AtomicI32 = AtomicI32::new(0);

/// A full line needs no more: whoever reads it will look at everything.
extern "C" fn hear(signal: libc::c_int) {
    let byte = [u8::try_from(signal).unwrap_or(0)];
    let errno = Errno::last_raw();
    // SAFETY: both calls are safe in a handler. The line stays open as long as this process lives.
    unsafe {
        if libc::getpid() == LISTENER.load(Ordering::SeqCst) {
            libc::write(HEARD.load(Ordering::SeqCst), byte.as_ptr().cast(), 1);
        }
    }
    Errno::set_raw(errno);
}

impl Signals {
    /// From now on these signals, which were blocked, are not.
    pub fn new(signals: &SigSet) -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        HEARD.store(writer.into_raw_fd(), Ordering::SeqCst);
        LISTENER.store(nix::unistd::getpid().as_raw(), Ordering::SeqCst);
        let flags = SaFlags::SA_RESTART | SaFlags::SA_NOCLDSTOP;
        let action = SigAction::new(SigHandler::Handler(hear), flags, SigSet::all());
        for signal in signals {
            // SAFETY: the handler makes only calls that are safe in one.
            unsafe { sigaction(signal, &action) }?;
        }
        signals.thread_unblock()?;
        Ok(Self(reader))
    }

    /// The next one, if there is one.
    pub fn take(&mut self) -> io::Result<Option<i32>> {
        let mut byte = [0];
        match self.0.read(&mut byte) {
            Ok(1) => Ok(Some(byte[0].into())),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn source(&self) -> Source<'_> {
        Source::Fd(self.0.as_fd())
    }
}

/// A time on the boot clock.
#[derive(Debug)]
pub struct Timer(Duration);

impl Timer {
    pub fn after(time: Duration) -> io::Result<Self> {
        Ok(Self(clock::boottime().saturating_add(time)))
    }

    pub fn source(&self) -> Source<'_> {
        let left = self.0.saturating_sub(clock::boottime());
        Source::Look { happened: left.is_zero(), again: left }
    }
}
