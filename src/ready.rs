//! Readiness: `run` returns once the job is ready, or as soon as it cannot become so.
//!
//! A port counts only if a process of the job listens on it: a server that finds its port taken is not ready
//! because the other one answers. A file counts only if it was not there, or was another, before the launch.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use regex_lite::Regex;

use crate::assess::Observer;
use crate::job::Launch;
use crate::output::{self, Watched};
use crate::sys::clock;
use crate::sys::handle::Handle;
use crate::sys::port::Listeners;
use crate::sys::spawn;

/// How often a condition is looked at that the kernel tells nobody of.
const INTERVAL: Duration = Duration::from_millis(25);

/// What is waited for; all of it.
#[derive(Debug, Default)]
pub struct Conditions {
    pub log: Option<Regex>,
    pub port: Option<u16>,
    pub file: Option<NewFile>,
    pub command: Option<std::ffi::OsString>,
}

/// What a shell returns if it has not found the command.
const NOT_FOUND: i32 = 127;

/// A file that must appear, or be replaced or changed.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    before: Option<(u64, u64, i64, i64)>,
}

impl NewFile {
    pub fn expected(path: PathBuf) -> Self {
        let before = stamp(&path);
        Self { path, before }
    }

    fn there(&self) -> bool {
        let now = stamp(&self.path);
        now.is_some() && now != self.before
    }
}

fn stamp(path: &Path) -> Option<(u64, u64, i64, i64)> {
    std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino(), meta.mtime(), meta.mtime_nsec()))
}

/// How the wait for readiness ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    Ended,
    /// `unfound`: the shell has not found the readiness command.
    TimedOut {
        unfound: bool,
    },
}

impl Conditions {
    pub fn none(&self) -> bool {
        self.log.is_none() && self.port.is_none() && self.file.is_none() && self.command.is_none()
    }
}

/// Waits until every condition has been met once.
pub fn wait(
    observer: &Observer,
    launch: &Launch,
    mut open: Conditions,
    limit: Duration,
) -> Result<Readiness> {
    let watched = Watched::new(launch, observer, false)?;
    let deadline = clock::instant().checked_add(limit);
    let mut log = open.log.is_some().then(|| LogReader::new(launch)).transpose()?;
    loop {
        // Asked first: what the job did before its end is then certainly seen.
        let over = watched.over();
        let late = || deadline.is_some_and(|deadline| clock::instant() >= deadline);
        let probed = look(observer, launch, &mut open, &mut log, &|| late() || watched.over())?;
        if open.none() {
            return Ok(Readiness::Ready);
        }
        if over {
            return Ok(Readiness::Ended);
        }
        if late() {
            return Ok(Readiness::TimedOut { unfound: probed == Some(NOT_FOUND) });
        }
        watched.wait(INTERVAL)?;
    }
}

/// Strikes out what is met by now. What the command returned, if one was run and has ended by itself.
fn look(
    observer: &Observer,
    launch: &Launch,
    open: &mut Conditions,
    log: &mut Option<LogReader>,
    too_late: &dyn Fn() -> bool,
) -> Result<Option<i32>> {
    if let (Some(regex), Some(log)) = (&open.log, log)
        && log.matches(regex).context("cannot read the output")?
    {
        open.log = None;
    }
    if open.file.as_ref().is_some_and(NewFile::there) {
        open.file = None;
    }
    if open.port.is_some_and(|port| listens(observer, launch, port)) {
        open.port = None;
    }
    let Some(command) = &open.command else { return Ok(None) };
    let code = status(command, launch.cwd.as_path(), too_late).context("cannot run the readiness command")?;
    if code == Some(0) {
        open.command = None;
    }
    Ok(code)
}

/// Runs the command. One that hangs is killed when it is too late for it.
fn status(command: &OsStr, dir: &Path, too_late: &dyn Fn() -> bool) -> io::Result<Option<i32>> {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).current_dir(dir);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    spawn::with_default_signals(&mut shell);
    let mut child = shell.spawn()?;
    // Not waited for yet, so the number is still the child's.
    let process = Handle::open(i32::try_from(child.id()).map_err(io::Error::other)?)?;
    while !process.wait(Some(INTERVAL))? {
        if too_late() {
            process.signal(nix::libc::SIGKILL)?;
            break;
        }
    }
    Ok(child.wait()?.code())
}

/// The lines a run has written so far, the last one as far as it goes.
struct LogReader {
    file: File,
    at: u64,
    rest: Vec<u8>,
}

impl LogReader {
    fn new(launch: &Launch) -> Result<Self> {
        let path = launch.output.as_path();
        let file =
            output::open(path).with_context(|| format!("cannot read the output {}", path.display()))?;
        Ok(Self { file, at: launch.output_offset, rest: Vec::new() })
    }

    fn matches(&mut self, regex: &Regex) -> io::Result<bool> {
        let mut block = [0_u8; 16 * 1024];
        loop {
            let read = self.file.read_at(&mut block, self.at)?;
            if read == 0 {
                return Ok(false);
            }
            self.at += read as u64;
            self.rest.extend_from_slice(&block[..read]);
            if self
                .rest
                .split(|&byte| byte == b'\n')
                .any(|line| regex.is_match(&String::from_utf8_lossy(line)))
            {
                return Ok(true);
            }
            let whole = self.rest.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            self.rest.drain(..whole);
        }
    }
}

/// Whether a process of the job has a listening TCP socket on this port.
fn listens(observer: &Observer, launch: &Launch, port: u16) -> bool {
    let listeners = Listeners::on(port);
    if listeners.none() {
        return false;
    }
    let members = observer.descendants(launch).unwrap_or_default();
    members.iter().any(|stat| listeners.held_by(stat.pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_readiness_command_that_hangs_is_not_waited_for() {
        let of =
            |command: &str, late: bool| status(OsStr::new(command), Path::new("/"), &move || late).unwrap();
        assert_eq!((of("true", false), of("exit 3", false)), (Some(0), Some(3)));
        assert_eq!(of("exec sleep 600", true), None);
    }
}
