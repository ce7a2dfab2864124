//! The commands, through the real binary. Every test has a state directory of its own and leaves no process behind.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod callers;
mod cases;
mod env;
mod features;
mod fifo;
mod frozen;
mod launch;
mod ledger;
mod lifetimes;
mod lock;
mod lost;
mod messages;
mod names;
mod odd;
mod once;
mod platforms;
mod process;
mod pty;
mod steering;
mod strangers;

use env::PATIENCE;
