//! The ledger: `ledger.jsonl`, one JSON record a line, appended under the flock of `ledger.lock`.
//!
//! True at every moment: a line that was once whole stays as it was until compaction folds it; sequence numbers
//! rise by one and are never used twice; a line that cannot be read is reported, kept and skipped. Readers take
//! no lock. `ledger.lock` holds the format version, the last sequence number, the length and inode of the ledger it
//! was true for, and when the machine was started: if those fit, an append reads nothing of the ledger; if not, its
//! tail.

mod book;
mod fold;
mod record;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::fs::{self, Flock};
use crate::job::FORMAT;
use crate::paths::StateDir;
use crate::sys::clock;

pub use self::book::{Book, Entry, SoFar, lines, parse, read_from};
pub use self::fold::{fold, worth_compacting};
pub use self::record::{Head, Record, head};

/// How long an append waits for the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// As a command does: say so after a second, give up after thirty.
    Command,
    /// As a supervisor does: a second, without a word.
    Supervisor,
}

/// A supervisor has a job to look after.
pub const SUPERVISORS_PATIENCE: Duration = Duration::from_secs(1);

/// Appends records as one write, then flushes. Returns the sequence number of the last.
pub fn append(dir: &StateDir, records: &[Record], patience: Patience, sync: bool) -> Result<u64> {
    let lock = lock(dir, patience)?;
    let (mut ledger, meta) = open(dir)?;
    let (len, inode) = (meta.len(), meta.ino());
    let known = Known::read(&lock.0);
    let (mut seq, torn) = match &known {
        Some(known) if known.fits(len, inode) => (known.seq, false),
        _ => {
            let tail = read_tail(&ledger, len)?;
            (tail.seq.max(known.as_ref().map_or(0, |known| known.seq)), tail.torn)
        }
    };
    if let Some(known) = known.filter(|known| known.version > FORMAT) {
        bail!(
            "the ledger was written by a newer outlive (format {}, this one knows {FORMAT}); nothing was written",
            known.version
        );
    }
    let mut text = if torn { b"\n".to_vec() } else { Vec::new() };
    for record in records {
        seq = seq.checked_add(1).context("the ledger has used up its sequence numbers")?;
        text.extend(record.line(seq).context("cannot encode a ledger record")?);
    }
    if let Err(error) = ledger.write_all(&text) {
        // A full disk may have taken a part: half a line is taken back while the lock is held. A whole one may have been
        // read by now, and its number must not be used again.
        let taken = ledger.metadata().map_or(0, |meta| meta.len().saturating_sub(len));
        let _ = ledger.set_len(len + whole_lines(&text, taken));
        return Err(error).with_context(|| format!("cannot write to the ledger {}", dir.ledger().display()));
    }
    let added = u64::try_from(text.len()).unwrap_or_default();
    Known { version: FORMAT, seq, len: len + added, inode, started: clock::started() }.write(&lock.0);
    drop(lock);
    fs::flush(&ledger, sync).context("cannot flush the ledger to the disk")?;
    Ok(seq)
}

/// How much of what has been taken of a text are whole lines.
fn whole_lines(text: &[u8], taken: u64) -> u64 {
    let taken = usize::try_from(taken).unwrap_or(usize::MAX).min(text.len());
    memchr::memrchr(b'\n', &text[..taken]).map_or(0, |end| end as u64 + 1)
}

fn lock(dir: &StateDir, patience: Patience) -> Result<Flock> {
    let path = dir.ledger_lock();
    if patience == Patience::Command {
        return Flock::take(&path, "the ledger");
    }
    Flock::attempt_for(&path, SUPERVISORS_PATIENCE)?.context("the ledger is locked")
}

fn open(dir: &StateDir) -> Result<(File, std::fs::Metadata)> {
    let path = dir.ledger();
    fs::open_own(OpenOptions::new().read(true).append(true).create(true), &path)
        .with_context(|| format!("cannot open the ledger {}", path.display()))
}

/// The content of `ledger.lock`: fixed width, so that it is replaced by one write.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    version: u32,
    seq: u64,
    len: u64,
    inode: u64,
    /// When the machine had been started, see [`clock::started`]. A power loss may leave a ledger of the right length
    /// whose last block holds zeros: a record that is put behind them would be a part of their line.
    started: u64,
}

/// A wall clock that was set looks like another start, and then the tail is read.
const SAME_START: u64 = 2;

impl Known {
    fn read(file: &File) -> Option<Self> {
        let mut buffer = [0_u8; 128];
        let read = file.read_at(&mut buffer, 0).ok()?;
        let text = std::str::from_utf8(buffer.get(..read)?).ok()?;
        let words: Vec<u64> = text.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        let [version, seq, len, inode, started] = words.try_into().ok()?;
        Some(Self { version: u32::try_from(version).ok()?, seq, len, inode, started })
    }

    /// Whether the ledger is as it was left, on this boot.
    fn fits(&self, len: u64, inode: u64) -> bool {
        (self.len, self.inode) == (len, inode) && self.started.abs_diff(clock::started()) <= SAME_START
    }

    /// Best effort: if it cannot be written, the next writer reads the tail.
    fn write(&self, file: &File) {
        let Self { version, seq, len, inode, started } = self;
        let text = format!("{version:>3} {seq:>20} {len:>20} {inode:>20} {started:>20}\n");
        let _ = file.write_all_at(text.as_bytes(), 0);
    }
}

struct Tail {
    seq: u64,
    torn: bool,
}

/// The highest number among the last lines, and whether the last line lacks its end.
fn read_tail(file: &File, len: u64) -> Result<Tail> {
    let mut window = 64 * 1024_u64;
    loop {
        let start = len.saturating_sub(window);
        let mut raw = vec![0_u8; usize::try_from(len - start)?];
        file.read_exact_at(&mut raw, start).context("cannot read the tail of the ledger")?;
        let torn = raw.last().is_some_and(|&byte| byte != b'\n');
        let first = if start == 0 {
            0
        } else {
            raw.iter().position(|&byte| byte == b'\n').map_or(raw.len(), |at| at + 1)
        };
        let seqs = raw[first..]
            .split(|&byte| byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<Head>(line).ok());
        let mut newest = None;
        for head in seqs {
            if head.v > FORMAT {
                bail!(
                    "the ledger has a record of a newer format ({}, this outlive knows {FORMAT}); nothing was written",
                    head.v
                );
            }
            newest = newest.max(Some(head.seq));
        }
        if newest.is_some() || start == 0 {
            return Ok(Tail { seq: newest.unwrap_or(0), torn });
        }
        window *= 8;
    }
}

/// The ledger's content; empty if there is none yet.
pub fn raw(dir: &StateDir) -> Result<Vec<u8>> {
    let Some((mut ledger, length)) = open_to_read(dir)? else { return Ok(Vec::new()) };
    let mut raw = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    ledger.read_to_end(&mut raw).with_context(|| cannot_read(dir))?;
    Ok(raw)
}

/// With its length; none if there is no ledger yet.
pub fn open_to_read(dir: &StateDir) -> Result<Option<(File, u64)>> {
    let path = dir.ledger();
    match fs::open_regular(&path) {
        Ok(file) => {
            let length = file.metadata().map_or(0, |meta| meta.len());
            Ok(Some((file, length)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot open the ledger {}", path.display())),
    }
}

fn cannot_read(dir: &StateDir) -> String {
    format!("cannot read the ledger {}", dir.ledger().display())
}

/// Reads the whole ledger.
pub fn read(dir: &StateDir) -> Result<Book> {
    let mut book = read_once(dir)?;
    if book.torn {
        // Torn, or just being written: with the lock in hand nobody writes.
        if let Ok(Some(_lock)) = Flock::attempt(&dir.ledger_lock()) {
            book = read_once(dir)?;
        }
    }
    let promised = promised(dir).unwrap_or(0);
    if promised > book.last_seq && book.damage.is_empty() {
        // The lock file may be ahead of what we read if somebody has just appended; never behind.
        book = read_once(dir)?;
        if book.last_seq < promised {
            book.damage.push(format!("ends at record {}, although {promised} were written", book.last_seq));
        }
    }
    Ok(book)
}

/// The number of the last record that was written, as far as that is known; none if by a newer outlive.
pub fn promised(dir: &StateDir) -> Option<u64> {
    let lock = fs::open_regular(&dir.ledger_lock()).ok();
    let known = lock.and_then(|file| Known::read(&file));
    known.map_or(Some(0), |known| (known.version <= FORMAT).then_some(known.seq))
}

fn read_once(dir: &StateDir) -> Result<Book> {
    let Some((ledger, length)) = open_to_read(dir)? else { return Ok(Book::default()) };
    book::read_from(ledger, length).with_context(|| cannot_read(dir))
}

/// Folds every finished job to one line and drops those that were pruned. Lines that cannot be read, and those
/// numbered above `keep_after`, are carried over as they are. Returns how many lines were saved.
pub fn compact(dir: &StateDir, keep_after: u64, sync: bool) -> Result<usize> {
    let lock = Flock::take(&dir.ledger_lock(), "the ledger")?;
    let old = raw(dir)?;
    let known = Known::read(&lock.0).map_or(0, |known| known.seq);
    let book = parse(&old);
    if book.newer {
        bail!("the ledger holds records of a newer format; it is left as it is");
    }
    // As long as files of a pruned job are left, the ledger has to know that they are no job's.
    let left: HashSet<&str> = book
        .forgotten
        .iter()
        .map(String::as_str)
        .filter(|id| dir.job(id).0.symlink_metadata().is_ok())
        .collect();
    let folded = fold(&old, &book, keep_after, &left);
    let saved = lines(&old).count().saturating_sub(lines(&folded).count());
    if saved == 0 {
        return Ok(0);
    }
    fs::replace(&dir.ledger(), &folded, sync)
        .with_context(|| format!("cannot replace the ledger {}", dir.ledger().display()))?;
    let meta = fs::open_regular(&dir.ledger())?.metadata()?;
    let (len, inode) = (meta.len(), meta.ino());
    let seq = known.max(book.last_seq);
    Known { version: FORMAT, seq, len, inode, started: clock::started() }.write(&lock.0);
    Ok(saved)
}
