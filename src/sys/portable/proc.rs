//! Processes as ps(1) shows them.

use std::collections::HashMap;
use std::io;
use std::sync::OnceLock;

pub use super::ps::parse_stat;
use super::ps::{self, Which};
use crate::job::{FIRST_PROCESS, Place};
use crate::sys::proc::Stat;

pub fn stat(pid: i32) -> io::Result<Stat> {
    if pid <= 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    ps::table(Which::One(pid))?.into_iter().next().ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// This process's own row.
pub fn own_stat() -> io::Result<Stat> {
    stat(own_pid())
}

fn own_pid() -> i32 {
    nix::unistd::getpid().as_raw()
}

/// Every process that may be seen, the dead that were not waited for included.
pub fn all() -> io::Result<Vec<Stat>> {
    ps::table(Which::All)
}

/// The command line as a list: ps joins its words, and nobody can tell them apart again.
pub fn cmdline(_: i32) -> io::Result<Option<Vec<Vec<u8>>>> {
    Ok(None)
}

/// Whether the process is on its way out: it has let go of its memory. Where ps does not say so, it is not known.
pub fn exiting(pid: i32) -> bool {
    ps::exiting(pid)
}

/// How often a process is looked at again that executes one command after another.
const CHANGES: usize = 5;

/// The environment the process was executed with; none when it is not shown.
pub fn environ(pid: i32) -> io::Result<Option<Vec<u8>>> {
    let which = Which::One(pid);
    for _ in 0..CHANGES {
        let (mut found, changed) = ps::environments(which, &ps::table(which)?)?;
        if changed.is_empty() {
            return Ok(found.remove(&pid));
        }
    }
    Ok(None)
}

/// The environments of all these processes.
#[derive(Debug)]
pub struct Environs(HashMap<i32, Vec<u8>>);

impl Environs {
    pub fn of(table: &[Stat]) -> io::Result<Self> {
        let (mut found, changed) = ps::environments(Which::All, table)?;
        for pid in changed {
            found.extend(environ(pid)?.map(|environment| (pid, environment)));
        }
        Ok(Self(found))
    }

    pub fn get(&self, pid: i32) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.get(&pid).cloned())
    }
}

/// The children of this process.
pub fn own_children() -> io::Result<Vec<i32>> {
    children(own_pid())
}

pub fn children(pid: i32) -> io::Result<Vec<i32>> {
    Ok(all()?.iter().filter(|stat| stat.ppid == pid).map(|stat| stat.pid).collect())
}

/// Process 1 lives as long as its system, or its container, does.
pub fn boot_id() -> String {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    let of = || stat(1).map(|init| format!("{FIRST_PROCESS}{}", init.start_time)).unwrap_or_default();
    BOOT_ID.get_or_init(of).clone()
}

/// The boot and machine this process is in.
pub fn place() -> Place {
    Place {
        boot_id: boot_id(),
        // POSIX has no such thing: there is one, and it is known.
        pid_ns: 1,
        time_ns: 0,
        host: nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        machine_id: std::fs::read_to_string("/etc/machine-id").unwrap_or_default().trim().to_owned(),
    }
}
