//! What a run is launched from, whether a command line asks for it or a record.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::job::{Extras, OnOwnerExit, ProcessId, Stdin};
use crate::sys::handle::Handle;
use crate::sys::proc;

/// Everything that a run is launched from.
#[derive(Debug)]
pub struct Plan {
    pub name: Option<String>,
    pub argv: Vec<OsString>,
    pub cwd: PathBuf,
    /// The whole environment of the command, but for the mark.
    pub env: Vec<(OsString, OsString)>,
    pub umask: u32,
    pub labels: std::collections::BTreeMap<String, String>,
    pub stdin: Stdin,
    /// None: the job's own output.log.
    pub output: Option<PathBuf>,
    pub stderr: Option<PathBuf>,
    pub owner: Option<Owner>,
    pub on_owner_exit: OnOwnerExit,
    pub timeout_ms: Option<u64>,
    pub stop_signal: i32,
    pub grace_ms: u64,
    pub extras: Extras,
}

/// A process on whose behalf a job runs, held so that it stays the one it is.
#[derive(Debug)]
pub struct Owner {
    pub id: ProcessId,
    pub process: Handle,
}

/// Opens the owner first, then looks whether it lives: it is the one that was meant or none.
pub fn find_owner(word: &str) -> Result<Owner> {
    let pid = match word {
        "parent" => nix::unistd::getppid().as_raw(),
        number => number
            .parse()
            .ok()
            .filter(|&pid: &i32| pid > 0)
            .with_context(|| format!("owner '{number}' is not a PID (name a number, or 'parent')"))?,
    };
    let gone = || format!("owner {pid} is not alive; nothing was launched");
    let process = match Handle::open(pid) {
        Err(error) if error.raw_os_error() == Some(nix::libc::ESRCH) => bail!(gone()),
        opened => opened.with_context(|| format!("cannot tell whether owner {pid} is alive"))?,
    };
    let id: ProcessId = match proc::look(pid) {
        proc::Seen::Alive(stat) => stat.id(),
        proc::Seen::Gone => bail!(gone()),
        proc::Seen::Hidden => bail!("owner {pid} cannot be seen; nothing was launched"),
    };
    Ok(Owner { id, process })
}

/// Where the program may be, in the order of PATH; a word with a slash is a path already.
pub fn candidates(argv: &[OsString], env: &[(OsString, OsString)]) -> Result<Vec<PathBuf>> {
    let program = argv.first().context("no command")?;
    if program.is_empty() || program.as_bytes().contains(&b'/') {
        return Ok(vec![PathBuf::from(program)]);
    }
    let path = env
        .iter()
        .rev()
        .find(|(key, _)| key == "PATH")
        .map_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"), |(_, value)| value);
    let place = |dir: &[u8]| {
        Path::new(if dir.is_empty() { OsStr::new(".") } else { OsStr::from_bytes(dir) }).join(program)
    };
    Ok(path.as_bytes().split(|&byte| byte == b':').map(place).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_looked_for_as_execvp_does() {
        let of = |program: &str, path: &str| {
            candidates(&[program.into()], &[("PATH".into(), path.into())]).unwrap()
        };
        assert_eq!(of("x", "/a::b"), [PathBuf::from("/a/x"), "./x".into(), "b/x".into()]);
        assert_eq!(of("./x", "/a"), [PathBuf::from("./x")]);
        assert_eq!(of("", "/a"), [PathBuf::new()]);
    }
}
