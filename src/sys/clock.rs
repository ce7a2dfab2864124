//! The clocks. Everything else is handed the time.

use std::time::{Duration, Instant, SystemTime};

use nix::time::clock_gettime;

use super::here::BOOT_CLOCK;

/// Now, as RFC 3339 in UTC with milliseconds. For people and for order; never compared.
#[allow(clippy::disallowed_methods, reason = "this is where the clock is read")]
pub fn now() -> String {
    rfc3339(SystemTime::now())
}

pub fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// Wall-clock time, for the age of a record in a table.
#[allow(clippy::disallowed_methods, reason = "this is where the clock is read")]
pub fn wall() -> SystemTime {
    SystemTime::now()
}

#[allow(clippy::disallowed_methods, reason = "this is where the clock is read")]
pub fn instant() -> Instant {
    Instant::now()
}

/// Time since boot, suspends included where the system counts them: no step of the wall clock touches it.
pub fn boottime() -> Duration {
    clock_gettime(BOOT_CLOCK).map_or(Duration::ZERO, Duration::from)
}

pub fn boottime_ms() -> u64 {
    u64::try_from(boottime().as_millis()).unwrap_or(u64::MAX)
}

/// When this machine was started, in seconds, as far as the wall clock can tell: it says that the machine was started
/// again, and nothing else is made of it.
pub fn started() -> u64 {
    wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().saturating_sub(boottime()).as_secs()
}

/// Clock ticks a second, the unit of start times and CPU times in /proc, see sysconf(3).
pub fn ticks_per_second() -> u64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)
        .ok()
        .flatten()
        .and_then(|n| u64::try_from(n).ok())
        .unwrap_or(100)
}
