//! The files of one job: its runs, their launch records, and the exit sidecar.
//!
//! The sidecar `exit.json` is created, given room and locked before anybody can see the run. Its commit is one
//! flush and no new directory entry: the JSON is written without its final newline, flushed, then ended. It
//! counts when it is whole and ends in a newline, or is whole and the lock is free. `{"executed":true}` in it is
//! no end: it says that the command has begun.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::fs::{self, RunLock};
use crate::job::{FORMAT, Launch, Outcome};
use crate::paths::{RunDir, StateDir};
use crate::sys::disk;

/// Room kept for an exit: more than any outcome takes.
pub const EXIT_ROOM: i64 = 4096;

/// What an exit sidecar says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sidecar {
    pub outcome: Option<Outcome>,
    pub executed: bool,
    /// Ends in a newline.
    pub committed: bool,
}

#[derive(Deserialize)]
struct Executed {
    executed: bool,
}

impl Sidecar {
    /// Reads what is there; anything half-written is no exit.
    pub fn read(file: &File) -> io::Result<Self> {
        let mut raw = vec![0_u8; EXIT_ROOM as usize];
        let mut length = 0;
        loop {
            match file.read_at(&mut raw[length..], length as u64) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self::parse(&raw[..length]))
    }

    /// A power loss may leave a zero where the newline was to be: what was flushed before it is whole all the same.
    pub fn parse(raw: &[u8]) -> Self {
        let written = raw.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        match serde_json::from_slice::<Outcome>(&raw[..written]) {
            Ok(outcome) => {
                let executed = outcome.executed == Some(true);
                Self { outcome: Some(outcome), executed, committed: raw.ends_with(b"\n") }
            }
            Err(_) => {
                let executed = serde_json::from_slice::<Executed>(raw).is_ok_and(|begun| begun.executed);
                Self { outcome: None, executed, committed: false }
            }
        }
    }

    /// The outcome, if it counts.
    pub fn counting(self, supervised: bool) -> Option<Outcome> {
        self.outcome.filter(|_| self.committed || !supervised)
    }
}

/// Says that the command has begun. Not flushed: it matters only while this machine is up.
pub fn mark_executed(file: &File) -> io::Result<()> {
    file.write_all_at(EXECUTED, 0)
}

/// Takes away what a crash may have left in a sidecar that is no exit: half a longer outcome, or zeros. One that is
/// written over it would never count before them. What is kept of the file keeps its room on the disk.
pub fn clear_leftovers(file: &File) -> io::Result<()> {
    let kept = EXECUTED.len() as u64;
    if file.metadata()?.len() > kept { file.set_len(kept) } else { Ok(()) }
}

const EXECUTED: &[u8] = b"{\"executed\":true}";

/// Makes an outcome the run's end. Returns once it is durable.
pub fn commit_exit(file: &File, outcome: &Outcome, sync: bool) -> io::Result<()> {
    let text = serde_json::to_vec(outcome)?;
    file.write_all_at(&text, 0)?;
    fs::flush(file, sync)?;
    file.write_all_at(b"\n", text.len() as u64)
}

/// Creates the sidecar of a new run: empty, with room, and locked. None if somebody who clears debris was faster
/// than our lock.
pub fn create_exit(run: &RunDir) -> Result<Option<File>> {
    let path = run.exit();
    let file = match fs::create_new(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.with_context(|| format!("cannot create {}", path.display()))?,
    };
    reserve_exit(&file).with_context(|| format!("no room on the disk for {}", path.display()))?;
    let locked = RunLock::Both.attempt(&file).with_context(|| format!("cannot lock {}", path.display()))?;
    let linked = file.metadata().is_ok_and(|meta| meta.nlink() > 0);
    Ok((locked && linked).then_some(file))
}

/// Keeps the room that the record of an exit takes at most.
pub fn reserve_exit(file: &File) -> io::Result<()> {
    disk::reserve(file, EXIT_ROOM)
}

#[derive(serde::Serialize)]
struct LaunchFile<'a> {
    v: u32,
    kind: &'static str,
    #[serde(flatten)]
    launch: &'a Launch,
}

/// The content of `launch.json`, the copy of the launch record by which a run is found without the ledger.
pub fn encode_launch(launch: &Launch) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec(&LaunchFile { v: FORMAT, kind: "launched", launch })?;
    text.push(b'\n');
    Ok(text)
}

/// Writes the `launch.json` of a new run.
pub fn write_launch(run: &RunDir, launch: &Launch) -> Result<()> {
    let path = run.launch();
    fs::write_new(&path, &encode_launch(launch)?).with_context(|| format!("cannot write {}", path.display()))
}

/// Reads one run's launch record; none if there is none, or if it is torn, no file, or another run's.
pub fn read_launch(run: &RunDir) -> Result<Option<Box<Launch>>> {
    let path = run.launch();
    match fs::read_regular(&path) {
        Ok(raw) => Ok(parse_launch(&raw).filter(|launch| run.is_of(launch))),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(error).with_context(|| format!("cannot read {}", path.display()))
        }
        Err(_) => Ok(None),
    }
}

/// None for anything that is not a whole launch record.
pub fn parse_launch(raw: &[u8]) -> Option<Box<Launch>> {
    serde_json::from_slice(raw).ok()
}

/// The launch record of a job's latest run that has one, and whether a later run has a directory without one.
pub fn latest_launch(dir: &StateDir, id: &str) -> Result<(Option<Box<Launch>>, bool)> {
    let job = dir.job(id);
    let mut later = false;
    for run in job.runs().into_iter().rev() {
        if let Some(launch) = read_launch(&job.run(run))? {
            return Ok((Some(launch), later));
        }
        later = true;
    }
    Ok((None, later))
}

/// Deletes the files of a job that the ledger says is pruned, out of sight in one step: whoever waits for its lock
/// must not find that gone and the rest still there.
pub fn delete(dir: &StateDir, id: &str) -> Result<()> {
    let job = dir.job(id);
    match fs::remove_whole(&job.0) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot delete {}", job.0.display()))
        }
        _ => Ok(()),
    }
}

/// The ids of every job that has a directory.
pub fn ids(dir: &StateDir) -> Result<Vec<String>> {
    let path = dir.jobs();
    let entries = match std::fs::read_dir(&path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot list {}", path.display())),
    };
    let id = |entry: std::fs::DirEntry| {
        entry.file_name().into_string().ok().filter(|name| crate::job::is_id(name))
    };
    Ok(entries.flatten().filter_map(id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::End;

    #[test]
    fn an_end_counts_over_whatever_a_crash_has_left() {
        let outcome = Outcome::bare(End::Interrupted, None, String::new());
        for (at, left) in [vec![0; 4000], b"{\"state\":\"exited\",".repeat(40), vec![]].iter().enumerate() {
            let path = std::env::temp_dir().join(format!("outlive-exit-{}-{at}", std::process::id()));
            let file = fs::create_new(&path).unwrap();
            file.write_all_at(left, 0).unwrap();
            clear_leftovers(&file).unwrap();
            commit_exit(&file, &outcome, false).unwrap();
            assert_eq!(Sidecar::read(&file).unwrap().counting(true), Some(outcome.clone()));
            std::fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn a_cause_of_a_newer_outlive_does_not_hide_the_end() {
        let raw = b"{\"state\":\"exited\",\"at\":\"\",\"cause\":\"from-the-future\",\"exit_code\":7}\n";
        let outcome = Sidecar::parse(raw).counting(true).unwrap();
        assert_eq!((outcome.exit_code, outcome.cause), (Some(7), None));
    }

    #[test]
    fn empty_half_or_begun_is_no_exit() {
        let outcome = Outcome {
            exit_code: Some(3),
            executed: Some(true),
            ..Outcome::bare(End::Exited, None, String::new())
        };
        let whole = serde_json::to_vec(&outcome).unwrap();
        for raw in
            [&b""[..], b"{", b"\0\0\0\0", b"{\"executed\":true}", &whole[..whole.len() - 1], &whole[..9]]
        {
            assert_eq!(Sidecar::parse(raw).outcome, None, "{raw:?}");
        }
        assert!(Sidecar::parse(b"{\"executed\":true}").executed);
        let unended = Sidecar::parse(&whole);
        assert_eq!(unended.clone().counting(true), None, "the supervisor has not flushed it yet");
        assert_eq!(unended.counting(false), Some(outcome.clone()));
        let zeroed = Sidecar::parse(&[&whole[..], b"\0"].concat());
        assert_eq!((zeroed.clone().counting(true), zeroed.counting(false)), (None, Some(outcome.clone())));
        let ended = Sidecar::parse(&[whole, b"\n".to_vec()].concat());
        assert_eq!(ended.counting(true), Some(outcome));
    }
}
