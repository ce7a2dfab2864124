//! `--max-output`: keeps a job's output from filling the disk without putting a pipe between the two.
//!
//! The first [`HEAD`] bytes and the newest `--max-output` bytes of what the run wrote stay; the middle is given
//! back to the file system while the job writes on. The file's size goes on
//! growing, its disk use does not. A one-shot watch costs an idle job no wake-up and a busy one no speed: on its
//! event, a SIGIO, we sleep half a second, look, and arm it again.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::brief::Numbers;
use crate::sys::watch::WriteSignal;
use crate::sys::{clock, disk};

/// What is kept of the beginning.
pub const HEAD: u64 = 1 << 20;
/// How often a file that is being written is looked at, and how long a job must live before it is watched. Twice a
/// second, so that what is written while a hole is being punched fits in a second's writing, too.
const INTERVAL: Duration = Duration::from_millis(500);
const BLOCK: u64 = 4096;

#[derive(Debug)]
pub(super) struct Cap {
    path: PathBuf,
    /// Where this run's output begins.
    start: u64,
    keep: u64,
    /// Where the next hole begins.
    freed_to: u64,
    /// The output's directory. None until the job has lived long enough: most jobs are over before.
    watch: Option<WriteSignal>,
    /// When to look next; none: when the watch says so.
    look_at: Option<Instant>,
}

impl Cap {
    pub(super) fn new(path: PathBuf, numbers: &Numbers) -> Option<Self> {
        let start = numbers.output_offset;
        Some(Self {
            path,
            start,
            keep: numbers.max_output?,
            freed_to: (start + HEAD).next_multiple_of(BLOCK),
            watch: None,
            look_at: clock::instant().checked_add(INTERVAL),
        })
    }

    /// How long the supervisor may sleep for this.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.look_at.map(|at| at.saturating_duration_since(clock::instant()))
    }

    /// The watch has seen a write: look in a while, not now.
    pub(super) fn written(&mut self) {
        if self.look_at.is_some() {
            return;
        }
        self.look_at = clock::instant().checked_add(INTERVAL);
    }

    /// Looks, if it is time. The watch is armed before the look, so that no write is missed.
    pub(super) fn look_if_due(&mut self) {
        if self.look_at.is_none_or(|at| clock::instant() < at) {
            return;
        }
        self.look_at = None;
        if self.arm().is_err() {
            // Without a watch a look now and then has to do.
            self.look_at = clock::instant().checked_add(INTERVAL * 20);
        }
        let _ = self.look();
    }

    /// Asks for one SIGIO at the next write.
    fn arm(&mut self) -> io::Result<()> {
        let watch = match self.watch.take() {
            Some(watch) => watch,
            None => WriteSignal::of(self.path.parent().ok_or(io::ErrorKind::NotFound)?)?,
        };
        self.watch.insert(watch).arm()
    }

    /// Frees what lies between the head and the newest bytes.
    pub(super) fn look(&mut self) -> io::Result<()> {
        let size = std::fs::metadata(&self.path)?.size();
        let to = size.saturating_sub(self.keep) / BLOCK * BLOCK;
        if to <= self.freed_to || size.saturating_sub(self.start) <= HEAD + self.keep {
            return Ok(());
        }
        let file = OpenOptions::new().write(true).open(&self.path)?;
        disk::punch(&file, self.freed_to, to - self.freed_to)?;
        self.freed_to = to;
        Ok(())
    }
}
