//! What a supervisor sleeps on: descriptors for signals and time, see signalfd(2) and timerfd_create(2).

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::sys::sleep::Source;

/// Signals that this process has blocked, to be heard one at a time.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl Signals {
    pub fn new(signals: &SigSet) -> io::Result<Self> {
        Ok(Self(SignalFd::with_flags(signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?))
    }

    /// The next one, if there is one.
    pub fn take(&mut self) -> io::Result<Option<i32>> {
        Ok(self.0.read_signal()?.and_then(|info| i32::try_from(info.ssi_signo).ok()))
    }

    pub fn source(&self) -> Source<'_> {
        Source::Fd(self.0.as_fd())
    }
}

/// A timer on the boot clock: it counts through suspends.
#[derive(Debug)]
pub struct Timer(TimerFd);

impl Timer {
    pub fn after(time: Duration) -> io::Result<Self> {
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, flags)?;
        timer.set(Expiration::OneShot(TimeSpec::from_duration(time)), TimerSetTimeFlags::empty())?;
        Ok(Self(timer))
    }

    pub fn source(&self) -> Source<'_> {
        Source::Fd(self.0.as_fd())
    }
}
