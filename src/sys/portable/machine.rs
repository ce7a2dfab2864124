//! What this machine shows of its processes.

use super::proc;
use crate::sys::machine::Check;

/// What `doctor` looks at, and what a lack costs.
pub fn checks() -> Vec<Check> {
    let me = nix::unistd::getpid().as_raw();
    vec![
        Check::new(
            "ps shows this process",
            proc::stat(me).is_ok_and(|stat| stat.pid == me),
            "no process can be proven; install ps (Debian: procps) in /bin or /usr/bin",
        ),
        Check::new(
            "ps shows process 1",
            !proc::boot_id().is_empty(),
            "a reboot cannot be told; nothing can be launched",
        ),
        Check::new(
            "ps shows the environments of this user's processes",
            proc::environ(me).is_ok_and(|environ| environ.is_some()),
            "a job that has lost its supervisor stays unverified",
        ),
    ]
}
