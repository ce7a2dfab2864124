//! The ends of children, see waitid(2).

use std::io;

use nix::libc;

pub use super::here::wait::all_dead;
use super::here::wait::wait;

/// How a child ended, and what it used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChildEnd {
    pub pid: i32,
    /// Exit code, or none if a signal ended it.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub core_dumped: bool,
    /// None where the kernel does not tell.
    pub max_rss_bytes: Option<u64>,
    pub cpu_ms: Option<u64>,
}

/// Which child is meant.
#[derive(Clone, Copy, Debug)]
pub enum Child {
    Any,
    Pid(i32),
}

/// Shows a child that has ended without taking it away: its number stays its own.
pub fn peek(child: Child) -> io::Result<Option<ChildEnd>> {
    wait(child, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT)
}

/// Takes a child that has ended away; none if it has not.
pub fn reap(child: Child) -> io::Result<Option<ChildEnd>> {
    wait(child, libc::WEXITED | libc::WNOHANG)
}
