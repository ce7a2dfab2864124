//! What this kernel can do.

use super::{handle::Handle, proc};
use crate::sys::machine::Check;

/// What `doctor` looks at, and what a lack costs.
pub fn checks() -> Vec<Check> {
    let me = i32::try_from(std::process::id()).unwrap_or(0);
    vec![
        Check::new(
            "/proc shows this process",
            proc::stat(me).is_ok_and(|stat| stat.pid == me),
            "no process can be proven; mount /proc of this PID namespace",
        ),
        Check::new(
            "the kernel has pidfds (Linux 5.3)",
            Handle::open(me).is_ok(),
            "no process can be signalled safely; nothing works",
        ),
        Check::new(
            "pidfds have inodes of their own (Linux 6.9)",
            Handle::inode_of(me).is_some(),
            "an orphan that cleared its environment and rewrote its title stays unverified",
        ),
        Check::new(
            "children are listed in /proc (CONFIG_PROC_CHILDREN)",
            std::path::Path::new("/proc/self/task").join(me.to_string()).join("children").exists(),
            "supervisors read the whole process table instead",
        ),
        Check::new(
            "the kernel tells others than the parent how a process ended (Linux 6.15)",
            kernel_at_least(6, 15),
            "an adopted job's end is 'interrupted', without its status",
        ),
        Check::new(
            "directories notify (fs.dir-notify-enable)",
            std::fs::read_to_string("/proc/sys/fs/dir-notify-enable").is_ok_and(|text| text.trim() == "1"),
            "supervisors look at an output that is capped every ten seconds; sysctl fs.dir-notify-enable=1",
        ),
    ]
}

fn kernel_at_least(major: u32, minor: u32) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-', '+']).map_while(|word| word.trim().parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}
