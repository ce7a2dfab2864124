//! Everything that can go wrong, at every point where it can: each sweep repeats one small story and breaks it at
//! its first system call, at its second, and so on, and asks after each whether what outlive says is still true.
//!
//! By default a sweep takes a sample of the points; `SWEEP=full` takes them all.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]
#![allow(clippy::disallowed_macros, reason = "a sweep tells how far it has come")]

#[path = "../suite/env.rs"]
#[allow(dead_code, reason = "shared with the suite")]
mod env;
#[path = "../suite/fifo.rs"]
#[allow(dead_code, reason = "shared with the suite")]
mod fifo;
#[path = "../suite/process.rs"]
#[allow(dead_code, reason = "shared with the suite")]
mod process;

mod crowd;
mod disk;
mod model;
mod places;
mod races;
mod recycled;
mod steps;
mod stories;
mod sweep;
mod trace;
mod truth;
mod walk;
