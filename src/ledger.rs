//! The ledger: `ledger.jsonl`, one JSON record a line, appended under the flock of `ledger.lock`.
//!
//! True at every moment: a line that was once whole stays as it was until compaction folds it; sequence numbers
//! rise by one and are never used twice; a line that cannot be read is reported, kept and skipped. Readers take
//! no lock. `ledger.lock` holds the format version, the last sequence number, the length and inode of the ledger it
//! was true for, and when the machine was started: if those fit, an append reads nothing of the ledger; if not, its
//! tail.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fs::{self, Flock};
use crate::job::{FORMAT, Launch, Outcome, is_id};
use crate::paths::StateDir;
use crate::sys::clock;

/// What a line says, besides its number.
#[derive(Clone, Debug)]
pub enum Record {
    Launched(Box<Launch>),
    /// A run has a new supervisor: its launch record as it is now.
    Adopted(Box<Launch>),
    /// The end of a run: `exited`, or `interrupted` for an end that nobody saw.
    Ended {
        id: String,
        run: u32,
        outcome: Outcome,
    },
    /// Something that happened to a run: `stop-requested`, `paused`, `resumed`, `restarted`, `emptied` (what lingered
    /// is gone), `on-exit` (its command has ended), `pruned`.
    Note {
        kind: &'static str,
        id: String,
        run: u32,
        at: String,
        detail: Option<String>,
    },
}

#[derive(Serialize)]
struct Line<'a, B: Serialize> {
    v: u32,
    seq: u64,
    kind: &'a str,
    #[serde(flatten)]
    body: B,
}

#[derive(Serialize)]
struct EndedBody<'a> {
    id: &'a str,
    run: u32,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

#[derive(Serialize)]
struct NoteBody<'a> {
    id: &'a str,
    run: u32,
    at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

/// A finished job, folded to one line by compaction.
#[derive(Deserialize)]
struct FoldedBody {
    id: String,
    run: u32,
    launch: Launch,
    outcome: Outcome,
    #[serde(default)]
    emptied: bool,
}

/// The same to be written: launch and outcome as their lines had them.
#[derive(Serialize)]
struct FoldedFields<'a> {
    id: &'a str,
    run: u32,
    at: &'a str,
    launch: Value,
    outcome: Value,
    emptied: bool,
}

/// What a line that can be read says.
enum Said {
    Launched(Box<Launch>),
    Adopted(Box<Launch>),
    Ended(Outcome),
    Folded(Box<FoldedBody>),
    Emptied,
    Pruned,
    /// Something that happened to a job, of which a reader keeps nothing.
    Noted,
    /// A kind that is not known here.
    Other,
}

/// Reads one line; none if it cannot be.
fn read_line(line: &[u8]) -> Option<(Head<'_>, Said)> {
    read_usual(line).or_else(|| read_any(line))
}

/// What a ledger is full of, in the form in which we write it, is gone through once. None if this is no such line.
fn read_usual(line: &[u8]) -> Option<(Head<'_>, Said)> {
    let mut head = Head::beginning(line).filter(|head| matches!(&*head.kind, "launched" | "folded"))?;
    let said = read_body(&head, line)?;
    let launch = match &said {
        Said::Launched(launch) => launch.as_ref(),
        Said::Folded(body) => &body.launch,
        _ => return None,
    };
    (head.id, head.run) = (Cow::Owned(launch.id.clone()), launch.run);
    Some((head, said))
}

fn read_any(line: &[u8]) -> Option<(Head<'_>, Said)> {
    let head = serde_json::from_slice::<Head>(line).ok()?;
    let said = match read_body(&head, line) {
        None if head.v > FORMAT => Said::Other,
        body => body?,
    };
    Some((head, said))
}

/// An id that is none would lead out of the directory of its job.
fn read_body(head: &Head, line: &[u8]) -> Option<Said> {
    let launch =
        || serde_json::from_slice::<Launch>(line).ok().filter(|launch| is_id(&launch.id)).map(Box::new);
    Some(match &*head.kind {
        "launched" => Said::Launched(launch()?),
        "adopted" => Said::Adopted(launch()?),
        "exited" | "interrupted" => Said::Ended(serde_json::from_slice(line).ok()?),
        "folded" => {
            let body: FoldedBody = serde_json::from_slice(line).ok()?;
            let one = is_id(&body.id) && body.launch.id == body.id && body.launch.run == body.run;
            Said::Folded(one.then(|| Box::new(body))?)
        }
        "emptied" => Said::Emptied,
        "pruned" => Said::Pruned,
        "stop-requested" | "paused" | "resumed" | "restarted" | "on-exit" => Said::Noted,
        _ => Said::Other,
    })
}

/// What every line has.
#[derive(Debug, Deserialize)]
pub struct Head<'a> {
    pub v: u32,
    #[serde(default)]
    pub seq: u64,
    #[serde(borrow, default)]
    pub id: Cow<'a, str>,
    #[serde(default)]
    pub run: u32,
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
}

impl<'a> Head<'a> {
    /// Version, number and kind, if a line begins with them as ours do: `{"v":1,"seq":7,"kind":"launched"`.
    fn beginning(line: &'a [u8]) -> Option<Self> {
        let number = |text: &'a [u8]| {
            let (digits, rest) = text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count());
            Some((std::str::from_utf8(digits).ok()?.parse::<u64>().ok()?, rest))
        };
        let (version, rest) = number(line.strip_prefix(br#"{"v":"#)?)?;
        let (seq, rest) = number(rest.strip_prefix(br#","seq":"#)?)?;
        let rest = rest.strip_prefix(br#","kind":""#)?;
        let kind = std::str::from_utf8(rest.split(|&byte| byte == b'"').next()?).ok()?;
        let v = u32::try_from(version).ok()?;
        Some(Self { v, seq, id: Cow::Borrowed(""), run: 0, kind: Cow::Borrowed(kind) })
    }
}

impl Record {
    fn line(&self, seq: u64) -> serde_json::Result<Vec<u8>> {
        let v = FORMAT;
        let mut text = match self {
            Self::Launched(launch) => {
                serde_json::to_vec(&Line { v, seq, kind: "launched", body: launch.as_ref() })
            }
            Self::Adopted(launch) => {
                serde_json::to_vec(&Line { v, seq, kind: "adopted", body: launch.as_ref() })
            }
            Self::Ended { id, run, outcome } => {
                let kind =
                    if outcome.state == crate::job::End::Interrupted { "interrupted" } else { "exited" };
                serde_json::to_vec(&Line { v, seq, kind, body: EndedBody { id, run: *run, outcome } })
            }
            Self::Note { kind, id, run, at, detail } => {
                let body = NoteBody { id, run: *run, at, detail: detail.as_deref() };
                serde_json::to_vec(&Line { v, seq, kind, body })
            }
        }?;
        text.push(b'\n');
        Ok(text)
    }
}

/// How long an append waits for the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// As a command does: say so after a second, give up after thirty.
    Command,
    /// As a supervisor does: a second, without a word.
    Supervisor,
}

/// Appends records as one write, then flushes. Returns the sequence number of the last.
pub fn append(dir: &StateDir, records: &[Record], patience: Patience, sync: bool) -> Result<u64> {
    let lock = lock(dir, patience)?;
    let mut ledger = open(dir)?;
    let (len, inode) = length_and_inode(&ledger)
        .with_context(|| format!("cannot use the ledger {}", dir.ledger().display()))?;
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
        // A full disk may have taken a part of the line: take back what is ours while the lock is held.
        let _ = ledger.set_len(len);
        return Err(error).with_context(|| format!("cannot write to the ledger {}", dir.ledger().display()));
    }
    let added = u64::try_from(text.len()).unwrap_or_default();
    Known { version: FORMAT, seq, len: len + added, inode, started: clock::started() }.write(&lock.0);
    drop(lock);
    fs::flush(&ledger, sync).context("cannot flush the ledger to the disk")?;
    Ok(seq)
}

fn lock(dir: &StateDir, patience: Patience) -> Result<Flock> {
    let path = dir.ledger_lock();
    if patience == Patience::Command {
        return Flock::take(&path, "the ledger");
    }
    let mut pause = Duration::from_millis(1);
    let mut left = Duration::from_secs(1);
    loop {
        if let Some(lock) = Flock::attempt(&path)? {
            return Ok(lock);
        }
        if left.is_zero() {
            bail!("the ledger is locked");
        }
        std::thread::sleep(pause.min(left));
        left = left.saturating_sub(pause);
        pause *= 2;
    }
}

fn open(dir: &StateDir) -> Result<File> {
    let path = dir.ledger();
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600).custom_flags(nix::libc::O_NOFOLLOW);
    options.open(&path).with_context(|| format!("cannot open the ledger {}", path.display()))
}

fn length_and_inode(file: &File) -> io::Result<(u64, u64)> {
    fs::check_own(file).map(|meta| (meta.len(), meta.ino()))
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

/// What the ledger says of one job: its latest run.
#[derive(Clone, Debug)]
pub struct Entry {
    pub launch: Launch,
    pub outcome: Option<Outcome>,
    /// A job that lingered has nothing left.
    pub emptied: bool,
}

/// The ledger, read in one pass.
#[derive(Debug, Default)]
pub struct Book {
    /// In the order of their first launch.
    pub jobs: Vec<Entry>,
    index: HashMap<String, usize>,
    pruned: Vec<usize>,
    /// The ids of pruned jobs, as far as the ledger still tells of them.
    pub forgotten: HashSet<String>,
    /// One message for each kind of trouble met; empty if every line was read.
    pub damage: Vec<String>,
    /// A record of a newer format was met: do not write.
    pub newer: bool,
    pub last_seq: u64,
    /// Numbers are missing that no compaction accounts for: a crash, or a hand, has taken records away.
    pub incomplete: bool,
    /// The highest number among the lines that compaction has dropped.
    compacted: u64,
    /// How many lines the ledger has.
    pub lines: usize,
}

impl Book {
    /// What is known of a ledger that cannot be read at all.
    pub fn unreadable(why: String) -> Self {
        Self { damage: vec![why], ..Self::default() }
    }

    pub fn job(&self, id: &str) -> Option<&Entry> {
        self.index.get(id).and_then(|&at| self.jobs.get(at))
    }

    /// Adds a job that the ledger does not know, found by its files. What was pruned has no job any more.
    pub fn add(&mut self, launch: Launch) {
        if !self.forgotten.contains(&launch.id) {
            self.launched(launch);
        }
    }

    fn launched(&mut self, launch: Launch) {
        self.forgotten.remove(&launch.id);
        match self.index.get(&launch.id).and_then(|&at| self.jobs.get_mut(at)) {
            Some(entry) if entry.launch.run < launch.run => {
                *entry = Entry { launch, outcome: None, emptied: false }
            }
            Some(_) => {}
            None => {
                self.index.insert(launch.id.clone(), self.jobs.len());
                self.jobs.push(Entry { launch, outcome: None, emptied: false });
            }
        }
    }

    fn ended(&mut self, id: &str, run: u32, outcome: Outcome, emptied: bool) {
        if let Some(entry) = self.entry_of(id, run) {
            entry.outcome = Some(outcome);
            entry.emptied |= emptied;
        }
    }

    /// The entry is taken out at the end of reading: one by one would be quadratic.
    fn pruned(&mut self, id: &str) {
        self.forgotten.insert(id.to_owned());
        if let Some(at) = self.index.remove(id) {
            self.pruned.push(at);
        }
        self.forgotten.insert(id.to_owned());
    }

    fn drop_pruned(&mut self) {
        if self.pruned.is_empty() {
            return;
        }
        let gone: HashSet<usize> = self.pruned.drain(..).collect();
        let jobs = std::mem::take(&mut self.jobs).into_iter().enumerate();
        self.jobs = jobs.filter(|(at, _)| !gone.contains(at)).map(|(_, entry)| entry).collect();
        self.index = self.jobs.iter().enumerate().map(|(at, entry)| (entry.launch.id.clone(), at)).collect();
    }

    /// Takes one line in. False if it cannot be read.
    fn take(&mut self, line: &[u8]) -> bool {
        let Some((head, said)) = read_line(line) else { return false };
        if head.kind == "compacted" {
            self.compacted = self.compacted.max(head.seq);
        }
        self.incomplete |= head.seq > self.last_seq.max(self.compacted).saturating_add(1);
        self.last_seq = self.last_seq.max(head.seq);
        self.newer |= head.v > FORMAT;
        match said {
            Said::Launched(launch) => self.launched(*launch),
            Said::Adopted(launch) => {
                if let Some(entry) = self.entry_of(&head.id, head.run) {
                    entry.launch = *launch;
                }
            }
            Said::Ended(outcome) => self.ended(&head.id, head.run, outcome, false),
            Said::Folded(folded) => {
                self.launched(folded.launch);
                self.ended(&head.id, head.run, folded.outcome, folded.emptied);
            }
            Said::Emptied => {
                if let Some(entry) = self.entry_of(&head.id, head.run) {
                    entry.emptied = true;
                }
            }
            Said::Pruned => self.pruned(&head.id),
            Said::Noted | Said::Other => {}
        }
        true
    }

    fn entry_of(&mut self, id: &str, run: u32) -> Option<&mut Entry> {
        let at = self.index.get(id)?;
        self.jobs.get_mut(*at).filter(|entry| entry.launch.run == run)
    }
}

/// The raw lines of the ledger, without their ends; the second value is false if the last one is torn.
pub fn lines(raw: &[u8]) -> (impl Iterator<Item = &[u8]>, bool) {
    let whole = raw.last().is_none_or(|&byte| byte == b'\n');
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', raw).chain((!whole).then_some(raw.len()));
    let line = move |end| raw.get(std::mem::replace(&mut start, end + 1)..end).unwrap_or_default();
    (ends.map(line).filter(|line| !line.is_empty()), whole)
}

/// The ledger's content; empty if there is none yet.
pub fn raw(dir: &StateDir) -> Result<Vec<u8>> {
    let path = dir.ledger();
    match fs::open_regular(&path) {
        Ok(mut file) => {
            let mut raw = Vec::with_capacity(
                usize::try_from(file.metadata().map_or(0, |meta| meta.len())).unwrap_or(0) + 1,
            );
            file.seek(SeekFrom::Start(0))
                .and_then(|_| file.read_to_end(&mut raw))
                .with_context(|| format!("cannot read the ledger {}", path.display()))?;
            Ok(raw)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot open the ledger {}", path.display())),
    }
}

/// Reads the whole ledger.
pub fn read(dir: &StateDir) -> Result<Book> {
    let mut raw = self::raw(dir)?;
    if raw.last().is_some_and(|&byte| byte != b'\n') {
        // Torn, or just being written: with the lock in hand nobody writes.
        if let Ok(Some(_lock)) = Flock::attempt(&dir.ledger_lock()) {
            raw = self::raw(dir)?;
        }
    }
    let mut book = parse(&raw);
    let promised =
        File::open(dir.ledger_lock()).ok().and_then(|file| Known::read(&file)).map_or(0, |known| known.seq);
    if promised > book.last_seq && book.damage.is_empty() {
        // The lock file may be ahead of what we read if somebody has just appended; never behind.
        let again = parse(&self::raw(dir)?);
        if again.last_seq < promised {
            book = again;
            book.damage.push(format!("ends at record {}, although {promised} were written", book.last_seq));
        } else {
            book = again;
        }
    }
    Ok(book)
}

/// The pure part of reading.
pub fn parse(raw: &[u8]) -> Book {
    let mut book = Book::default();
    let (lines, whole) = lines(raw);
    let mut bad = 0;
    let mut last_bad = false;
    for line in lines {
        last_bad = !book.take(line);
        book.lines += 1;
        bad += usize::from(last_bad);
    }
    book.drop_pruned();
    if last_bad && !whole {
        bad -= 1;
        book.damage.push("its last line is torn".to_owned());
    }
    if bad > 0 {
        book.damage.push(format!("{bad} line{} cannot be read", if bad == 1 { "" } else { "s" }));
    }
    if book.newer {
        book.damage.push("it holds records of a newer format".to_owned());
    }
    book
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
    let saved = lines(&old).0.count().saturating_sub(lines(&folded).0.count());
    if saved == 0 {
        return Ok(0);
    }
    fs::replace(&dir.ledger(), &folded, sync)
        .with_context(|| format!("cannot replace the ledger {}", dir.ledger().display()))?;
    let (len, inode) = length_and_inode(&File::open(dir.ledger())?)?;
    let seq = known.max(book.last_seq);
    Known { version: FORMAT, seq, len, inode, started: clock::started() }.write(&lock.0);
    Ok(saved)
}

/// Whether compaction is worth its price: many lines, and most of them foldable.
pub fn worth_compacting(raw_lines: usize, jobs: usize) -> bool {
    raw_lines > 1000 && raw_lines > jobs * 3 / 2
}

/// The pure part of compaction. A job is folded where the newest of its lines stands, and only if all of them may go.
/// Lines that cannot be read, of a kind that is not known here, or of a job that is not known stay where they are.
/// `left`: pruned jobs that still have files are told of, so that nobody takes them for jobs.
pub fn fold(old: &[u8], book: &Book, keep_after: u64, left: &HashSet<&str>) -> Vec<u8> {
    let read: Vec<_> = lines(old).0.map(|line| (line, read_line(line))).collect();
    let mut jobs: HashMap<&str, Sources> = HashMap::new();
    for (at, (line, read)) in read.iter().enumerate() {
        if let Some((head, said)) = read
            && !matches!(said, Said::Other)
        {
            let run = book.job(&head.id).map(|entry| entry.launch.run);
            jobs.entry(&head.id).or_default().take(at, line, head, said, run);
        }
    }
    let over =
        |entry: &Entry| entry.outcome.as_ref().is_some_and(|outcome| !outcome.lingering || entry.emptied);
    // What each job that may be folded becomes: one line, or nothing if it was pruned.
    let fold_job = |id: &str, job: &Sources| -> Option<Vec<u8>> {
        match book.job(id) {
            _ if job.newest > keep_after => None,
            Some(entry) if over(entry) => job.folded(entry),
            None if book.forgotten.contains(id) && !left.contains(id) => Some(Vec::new()),
            _ => None,
        }
    };
    let folded: HashMap<&str, (usize, Vec<u8>)> =
        jobs.iter().filter_map(|(id, job)| Some((*id, (job.last, fold_job(id, job)?)))).collect();
    let mut body = Vec::with_capacity(old.len());
    let mut dropped = 0;
    for (at, (line, read)) in read.iter().enumerate() {
        let of_job = match read {
            Some((_, Said::Other)) | None => None,
            Some((head, _)) => folded.get(&*head.id),
        };
        match (read, of_job) {
            (Some((head, _)), Some((last, text))) => {
                if *last == at {
                    body.extend_from_slice(text);
                }
                dropped = dropped.max(head.seq);
            }
            (Some((head, _)), None) if head.kind == "compacted" => dropped = dropped.max(head.seq),
            _ => {
                body.extend_from_slice(line);
                body.push(b'\n');
            }
        }
    }
    if dropped == 0 {
        return old.to_vec();
    }
    let mut new = format!("{{\"v\":{FORMAT},\"seq\":{dropped},\"kind\":\"compacted\"}}\n").into_bytes();
    new.extend(body);
    new
}

/// Where in the ledger the facts of one job stand.
#[derive(Default)]
struct Sources<'a> {
    newest: u64,
    /// The place of its newest line.
    last: usize,
    launch: Option<Source<'a>>,
    outcome: Option<Source<'a>>,
}

#[derive(Clone, Copy)]
enum Source<'a> {
    Line(&'a [u8]),
    Folded(&'a [u8]),
}

impl<'a> Sources<'a> {
    /// As a reader takes them: the first launch of the latest run, its last adoption, its last end.
    fn take(&mut self, at: usize, line: &'a [u8], head: &Head, said: &Said, run: Option<u32>) {
        if head.seq >= self.newest {
            (self.newest, self.last) = (head.seq, at);
        }
        if matches!(said, Said::Pruned) {
            (self.launch, self.outcome) = (None, None);
        }
        if Some(head.run) != run {
            return;
        }
        match said {
            Said::Launched(_) => self.launch = self.launch.or(Some(Source::Line(line))),
            Said::Adopted(_) => self.launch = self.launch.and(Some(Source::Line(line))),
            Said::Ended(_) => self.outcome = self.launch.and(Some(Source::Line(line))),
            Said::Folded(_) => {
                self.launch = self.launch.or(Some(Source::Folded(line)));
                self.outcome = Some(Source::Folded(line));
            }
            _ => {}
        }
    }

    /// The line of a finished job. It is made of the lines themselves: fields that a newer outlive has written stay.
    /// None if one of those fields cannot be read: then the lines stay.
    fn folded(&self, entry: &Entry) -> Option<Vec<u8>> {
        let part = |source: Option<Source>, name: &str| -> Option<Value> {
            match source? {
                Source::Folded(line) => serde_json::from_slice::<Map>(line).ok()?.remove(name),
                Source::Line(line) => {
                    let mut whole: Map = serde_json::from_slice(line).ok()?;
                    let of_line = ["v", "seq", "kind", "id", "run"];
                    let unneeded = if name == "launch" { &of_line[..3] } else { &of_line[..] };
                    whole.retain(|key, _| !unneeded.contains(&&**key));
                    Some(Value::Object(whole))
                }
            }
        };
        let Launch { id, run, at, .. } = &entry.launch;
        let body = FoldedFields {
            id,
            run: *run,
            at,
            launch: part(self.launch, "launch")?,
            outcome: part(self.outcome, "outcome")?,
            emptied: entry.emptied,
        };
        let mut text =
            serde_json::to_vec(&Line { v: FORMAT, seq: self.newest, kind: "folded", body }).ok()?;
        text.push(b'\n');
        Some(text)
    }
}

type Map = serde_json::Map<String, Value>;

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
