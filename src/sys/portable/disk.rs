//! Room on the disk: nothing is kept and nothing given back.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Command;

use super::ps::output_of;

/// POSIX reserves by lengthening the file, and the length of a sidecar says something.
pub fn reserve(_: &File, _: i64) -> io::Result<()> {
    Ok(())
}

pub fn can_punch(_: &File) -> bool {
    false
}

pub fn punch(_: &File, _: u64, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Nobody makes holes here.
pub fn next_data(_: &File, at: u64) -> u64 {
    at
}

pub fn next_hole(_: &File, _: u64) -> u64 {
    u64::MAX
}

/// Whether several machines can share the file system: df(1) names its source as `host:path` or `//host/share`.
pub fn is_shared(path: &Path) -> bool {
    let mut df = Command::new("df");
    df.arg("-P").arg(path).env_clear().env("PATH", "/bin:/usr/bin").env("LC_ALL", "C");
    // What cannot be looked at may be another machine's.
    let Ok((_, text)) = output_of(&mut df) else { return true };
    let source = text.lines().nth(1).and_then(|row| row.split_ascii_whitespace().next());
    source.is_none_or(|source| source.contains(':') || source.starts_with("//"))
}
