//! Processes as procfs shows them, see proc(5). Without that file system nothing can be seen.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

use crate::job::Place;
use crate::sys::proc::{Stat, seen, split_nul};

pub fn stat(pid: i32) -> io::Result<Stat> {
    if pid <= 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    parse_stat(&read_small(&format!("/proc/{pid}/stat"))?).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// This process's own line.
pub fn own_stat() -> io::Result<Stat> {
    parse_stat(&read_small("/proc/self/stat")?).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Reads a procfs file that fits one read; these files change from one read to the next.
fn read_small(path: &str) -> io::Result<Vec<u8>> {
    let mut buffer = [0_u8; 1024];
    let read = fs::File::open(path)?.read(&mut buffer)?;
    Ok(buffer[..read].to_vec())
}

/// Reads a procfs file of any length; that it has no size to be asked for is known.
fn read_whole(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut raw = Vec::with_capacity(4096);
    fs::File::open(path)?.take(u64::MAX).read_to_end(&mut raw)?;
    Ok(raw)
}

const PAGE: u64 = 4096;

/// The name may hold spaces and parentheses, so the fields are counted from the last `)`.
pub fn parse_stat(line: &[u8]) -> Option<Stat> {
    let open = line.iter().position(|&byte| byte == b'(')?;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let pid = std::str::from_utf8(&line[..open]).ok()?.trim().parse().ok()?;
    let comm = line.get(open + 1..close)?.to_vec();
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Field 3 of the manual page is fields[0] here.
    let number = |field: usize| fields.get(field - 3).and_then(|text| text.parse::<u64>().ok());
    let signed = |field: usize| fields.get(field - 3).and_then(|text| text.parse::<i32>().ok());
    Some(Stat {
        pid,
        comm,
        state: *fields.first()?.as_bytes().first()?,
        ppid: signed(4)?,
        pgid: signed(5)?,
        sid: signed(6)?,
        threads: number(20)?,
        start_time: number(22)?,
        cpu_ticks: number(14)?.saturating_add(number(15)?),
        rss_bytes: number(24).unwrap_or(0).saturating_mul(PAGE),
    })
}

/// Addresses of this process's argument and environment areas: start and end of each.
pub(super) fn own_areas() -> io::Result<[usize; 4]> {
    let line = read_small("/proc/self/stat")?;
    let name_end = line.iter().rposition(|&byte| byte == b')').ok_or(io::ErrorKind::InvalidData)?;
    let mut fields = line[name_end + 1..].split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let mut address = |skip| std::str::from_utf8(fields.nth(skip)?).ok()?.parse().ok();
    // Fields 48 to 51; the first one here is field 3.
    Ok([45, 0, 0, 0].map(|skip| address(skip).unwrap_or(0)))
}

/// The command line; none when it cannot be read. A kernel thread's and a zombie's is empty.
pub fn cmdline(pid: i32) -> io::Result<Option<Vec<Vec<u8>>>> {
    let raw = seen(read_whole(format!("/proc/{pid}/cmdline")))?;
    Ok(raw.map(|raw| split_nul(&raw).map(<[u8]>::to_vec).collect()))
}

/// Whether the process is on its way out: it runs no more code of its own and has given its memory back, its command
/// line and environment with it, but is not dead yet. Flag PF_EXITING in field 9 of /proc/PID/stat.
pub fn exiting(pid: i32) -> bool {
    const PF_EXITING: u64 = 4;
    let Ok(line) = read_small(&format!("/proc/{pid}/stat")) else { return false };
    let after_name = line.iter().rposition(|&byte| byte == b')').and_then(|at| line.get(at + 1..));
    let flags = after_name.and_then(|rest| {
        std::str::from_utf8(rest).ok()?.split_ascii_whitespace().nth(6)?.parse::<u64>().ok()
    });
    flags.is_some_and(|flags| flags & PF_EXITING != 0)
}

/// The environment the process was executed with; none when it may not be read.
pub fn environ(pid: i32) -> io::Result<Option<Vec<u8>>> {
    seen(read_whole(format!("/proc/{pid}/environ")))
}

/// The environments of processes: each is read when it is asked for.
#[derive(Debug)]
pub struct Environs;

impl Environs {
    pub fn of(_: &[Stat]) -> io::Result<Self> {
        Ok(Self)
    }

    pub fn get(&self, pid: i32) -> io::Result<Option<Vec<u8>>> {
        environ(pid)
    }
}

/// The children of this process, which has one thread.
pub fn own_children() -> io::Result<Vec<i32>> {
    match read_whole("/proc/thread-self/children") {
        Ok(list) => Ok(numbers(&list)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            children(i32::try_from(std::process::id()).map_err(io::Error::other)?)
        }
        Err(error) => Err(error),
    }
}

fn numbers(list: &[u8]) -> Vec<i32> {
    let words = list.split(u8::is_ascii_whitespace);
    words.filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok()).collect()
}

/// The children of a process, over all its threads: exact for the caller's own, a sample for others'.
pub fn children(pid: i32) -> io::Result<Vec<i32>> {
    let Some(tasks) = seen(fs::read_dir(format!("/proc/{pid}/task")))? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for task in tasks {
        let Some(task) = seen(task)? else { continue };
        match read_whole(task.path().join("children")) {
            Ok(list) => found.extend(numbers(&list)),
            // A kernel without CONFIG_PROC_CHILDREN: ask every process for its parent.
            Err(error) if error.kind() == io::ErrorKind::NotFound && task.path().exists() => {
                return Ok(all()?.iter().filter(|stat| stat.ppid == pid).map(|stat| stat.pid).collect());
            }
            Err(error) => drop(seen::<()>(Err(error))?),
        }
    }
    Ok(found)
}

/// Every process that may be seen, the dead that were not waited for included.
pub fn all() -> io::Result<Vec<Stat>> {
    let mut table = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        table.extend(seen(stat(pid))?);
    }
    Ok(table)
}

fn line(path: &str) -> String {
    read_small(path).map(|raw| String::from_utf8_lossy(&raw).trim().to_owned()).unwrap_or_default()
}

/// Read once: it lasts longer than any process.
pub fn boot_id() -> String {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    BOOT_ID.get_or_init(|| line("/proc/sys/kernel/random/boot_id")).clone()
}

/// The boot, namespaces and machine this process is in.
pub fn place() -> Place {
    let inode = |path: &str| fs::metadata(path).map_or(0, |meta| meta.ino());
    Place {
        boot_id: boot_id(),
        pid_ns: inode("/proc/self/ns/pid"),
        time_ns: inode("/proc/self/ns/time"),
        host: nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        machine_id: line("/etc/machine-id"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_is_no_trap() {
        let line = b"7 (a) R 1 (b)) S 3 4 5 0 -1 0 1 2 3 4 10 20 0 0 20 0 2 0 77 99 5 0 0 0 0";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.pid, stat.comm.as_slice(), stat.state), (7, &b"a) R 1 (b)"[..], b'S'));
        assert_eq!((stat.ppid, stat.pgid, stat.sid, stat.threads), (3, 4, 5, 2));
        assert_eq!((stat.start_time, stat.cpu_ticks, stat.rss_bytes), (77, 30, 5 * PAGE));
    }

    #[test]
    fn half_a_line_is_nothing() {
        for bad in [&b""[..], b"7", b"7 (x", b"7 (x)", b"7 (x) S 1 2", b") (", b"\0\0"] {
            assert_eq!(parse_stat(bad), None);
        }
    }

    #[test]
    fn a_zombie_with_threads_left_lives() {
        let of = |threads: &str| {
            let line = format!("7 (x) Z 3 4 5 0 -1 0 1 2 3 4 10 20 0 0 20 0 {threads} 0 77 99 5");
            parse_stat(line.as_bytes()).unwrap().dead()
        };
        assert!(of("1") && !of("2"));
    }

    proptest! {
        #[test]
        fn any_name_of_a_process_is_read(comm in prop::collection::vec(1..=u8::MAX, 0..16), pid in 1..i32::MAX) {
            let fields = " S 3 4 5 0 -1 0 1 2 3 4 10 20 0 0 20 0 2 0 77 99 5 0 0 0 0";
            let line = [format!("{pid} (").as_bytes(), &comm, b")", fields.as_bytes()].concat();
            let stat = parse_stat(&line).unwrap();
            prop_assert_eq!((stat.pid, stat.comm, stat.pgid, stat.start_time), (pid, comm, 4, 77));
        }

        #[test]
        fn numbers_of_the_kernel_may_be_as_large_as_they_like(a in any::<u64>(), b in any::<u64>()) {
            let line = format!("7 (x) S 3 4 5 0 -1 0 1 2 3 4 {a} {b} 0 0 20 0 2 0 77 99 5");
            prop_assert_eq!(parse_stat(line.as_bytes()).unwrap().cpu_ticks, a.saturating_add(b));
        }
    }
}
