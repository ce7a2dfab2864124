//! Ending every process of a job: ask, wait for the grace to pass, kill, until a pass finds none.
//!
//! Each process is proven again, through a pidfd, right before each signal.

use std::time::Duration;

use nix::libc::{SIGCONT, SIGKILL};

use crate::sys::clock;
use crate::sys::handle::Handle;
use crate::sys::proc::{Seen, Stat, look};

/// How long a killed process may take to go before it counts as a survivor.
pub const KILL_WAIT: Duration = Duration::from_secs(5);

/// Sends signals, in order, to each of these processes as far as it is still the one it was. Returns those
/// that could not be reached, with the reason.
pub fn pass(targets: &[Stat], signals: &[i32]) -> Vec<(Stat, std::io::Error)> {
    let send = |stat: &Stat| -> std::io::Result<()> {
        if let Some(process) = Handle::proven(stat.id())? {
            signals.iter().try_for_each(|&signal| process.signal(signal))?;
        }
        Ok(())
    };
    targets.iter().filter_map(|stat| send(stat).err().map(|error| (stat.clone(), error))).collect()
}

/// The signals of a polite request: a paused process must be able to hear it.
pub fn request(signal: i32) -> Vec<i32> {
    if signal == SIGKILL { vec![SIGKILL] } else { vec![signal, SIGCONT] }
}

/// Ends all that `members` finds, from outside. Returns what is still alive in the end.
pub fn end_all(members: &dyn Fn() -> Vec<Stat>, signal: i32, grace: Duration) -> Vec<Stat> {
    let started = clock::instant();
    let mut left = members();
    if !grace.is_zero() {
        let _ = pass(&left, &request(signal));
        while !left.is_empty() && started.elapsed() < grace {
            wait_for_one(&left, grace.saturating_sub(started.elapsed()));
            left = look_again(members, left);
        }
    }
    let killing = clock::instant();
    while !left.is_empty() && killing.elapsed() < KILL_WAIT {
        let _ = pass(&left, &[SIGKILL]);
        wait_for_one(&left, Duration::from_millis(50));
        left = look_again(members, left);
    }
    left
}

/// The members now, and those of before that live: one that is just ending has lost its mark, but not its files.
fn look_again(members: &dyn Fn() -> Vec<Stat>, before: Vec<Stat>) -> Vec<Stat> {
    let mut left = members();
    for stat in before {
        let known = left.iter().any(|other| other.pid == stat.pid);
        if !known && matches!(look(stat.pid), Seen::Alive(now) if now.start_time == stat.start_time) {
            left.push(stat);
        }
    }
    left
}

/// Blocks until the first of these has ended, or the time is over.
fn wait_for_one(left: &[Stat], limit: Duration) {
    match left.first().map(|stat| Handle::proven(stat.id())) {
        Some(Ok(Some(process))) => drop(process.wait(Some(limit))),
        Some(Ok(None)) | None => {}
        Some(Err(_)) => std::thread::sleep(limit.min(Duration::from_millis(50))),
    }
}
