//! What `ls --all --json` prints of the jobs that are over, kept from one call to the next: it does not change.
//!
//! `listing` is a cache, and anybody may delete it. It is made of a ledger, and holds for every ledger that begins with
//! the same bytes; if anything about it is not as expected, all is read from the ledger as if there were none. Lines:
//!
//! * a [`Header`],
//! * those of the ledger that tell of jobs which were not over,
//! * for each job, in the order of their first launch: its id, and if it was over, behind a tab each, its run, the place
//!   of that in the header, its leader's PID and start time, its [`Traces`], and the fields of its [`Facts`],
//! * the CRC-32 of all that.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::fcntl::AtFlags;
use nix::sys::stat::fstatat;
use serde::{Deserialize, Serialize};

use crate::assess::{self, Observer};
use crate::fs;
use crate::job::{Place, ProcessId};
use crate::launch;
use crate::ledger::{self, Book, Entry, SoFar};
use crate::paths::StateDir;
use crate::state::{Judgement, Verdict, gone_from};
use crate::view::{Facts, Now, Size, Traces};

/// One higher with each change of what is kept: a listing of another version is none.
pub const VERSION: u32 = 1;

/// With fewer lines than these a ledger is read about as fast.
const WORTH_KEEPING: usize = 500;

/// How much of a file is in memory at a time.
const BLOCK: usize = 64 * 1024;

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    v: u32,
    /// What it was made of: the beginning of the ledger, in bytes, and its sum.
    ledger: u64,
    ledger_crc32: u32,
    so_far: SoFar,
    /// The length of the ledger's lines that follow; bytes.
    open: u64,
    /// How many lines of jobs come after them.
    jobs: usize,
    places: Vec<Place>,
}

/// A listing that holds, and what the ledger tells besides.
#[derive(Debug)]
pub struct Listing {
    /// The jobs that were not over then, or that came after it.
    book: Book,
    /// How many lines of the ledger were read for it.
    pub read: usize,
    /// How many lines the ledger has, and of how many jobs.
    pub lines: usize,
    pub jobs: usize,
    file: BufReader<File>,
    /// Where in the file the jobs begin, and how many lines they have.
    jobs_at: u64,
    listed: usize,
    /// For each place: the identity of what ran there if it is gone, and whether its PIDs mean the same here.
    places: Vec<(Verdict, bool)>,
    outputs: Outputs,
}

/// A job of a listing.
#[derive(Debug)]
pub enum Listed<'a> {
    /// One that is over, as the text of its JSON object.
    Over(&'a [u8]),
    Entry(&'a Entry),
}

/// Makes a listing of the ledger as it is now. Best effort: without one, the ledger is read. Half of one, as a crash
/// leaves it, is none; who reads the old one goes on with it.
pub fn keep(observer: &Observer) {
    // What a newer outlive has written is left as it is.
    if ledger::promised(&observer.dir).is_none() {
        return;
    }
    forget(&observer.dir);
    let Ok(file) = fs::create_new(&observer.dir.listing()) else { return };
    if !make(observer, file).is_ok_and(|made| made) {
        forget(&observer.dir);
    }
}

/// What is pruned is not kept either.
pub fn forget(dir: &StateDir) {
    let _ = std::fs::remove_file(dir.listing());
}

/// Whether it pays to make one anew: `read` lines out of `lines` were read for want of it.
pub fn worth_keeping(read: usize, lines: usize) -> bool {
    read > WORTH_KEEPING.max(lines / 4)
}

/// False if there is no ledger of which one can be made.
fn make(observer: &Observer, file: File) -> Result<bool> {
    let dir = &observer.dir;
    let Some((ledger, length)) = ledger::open_to_read(dir)? else { return Ok(false) };
    let book = ledger::read_from((&ledger).take(length), length)?;
    if !is_whole(&book, dir) {
        return Ok(false);
    }
    let open: HashSet<&str> =
        book.jobs.iter().filter(|entry| !entry.is_over()).map(|entry| entry.launch.id.as_str()).collect();
    let (ledger_crc32, open) = lines_of(&open, &ledger, length)?;
    let (mut places, mut numbers) = (Vec::new(), HashMap::new());
    for place in book.jobs.iter().map(|entry| &entry.launch.identity.place) {
        numbers.entry(place.clone()).or_insert_with(|| {
            places.push(place.clone());
            places.len() - 1
        });
    }
    let header = Header {
        v: VERSION,
        ledger: length,
        ledger_crc32,
        so_far: book.so_far(),
        open: open.len() as u64,
        jobs: book.jobs.len(),
        places,
    };
    let mut out = BufWriter::with_capacity(BLOCK, file);
    let mut summed = crc32fast::Hasher::new();
    let mut write = |text: &[u8]| {
        summed.update(text);
        out.write_all(text)
    };
    write(&serde_json::to_vec(&header)?)?;
    write(b"\n")?;
    write(&open)?;
    for entry in book.jobs {
        let place = numbers.get(&entry.launch.identity.place).copied().unwrap_or_default();
        write(&line_of(entry, place, observer)?)?;
    }
    writeln!(out, "{}", summed.finalize())?;
    out.flush()?;
    // What was pruned meanwhile is in no other file by now.
    let now = ledger::open_to_read(dir)?.context("the ledger is gone")?.0;
    Ok(now.metadata()?.ino() == ledger.metadata()?.ino())
}

/// The sum of a ledger of this length, and those of its lines that tell of one of these jobs.
fn lines_of(jobs: &HashSet<&str>, ledger: &File, length: u64) -> Result<(u32, Vec<u8>)> {
    let mut ledger = BufReader::with_capacity(BLOCK, ledger);
    ledger.rewind()?;
    let mut ledger = ledger.take(length);
    let mut summed = crc32fast::Hasher::new();
    let (mut line, mut found) = (Vec::new(), Vec::new());
    while ledger.read_until(b'\n', &mut line)? > 0 {
        summed.update(&line);
        if !jobs.is_empty() && ledger::head(&line).is_some_and(|head| jobs.contains(&*head.id)) {
            found.extend_from_slice(&line);
        }
        line.clear();
    }
    Ok((summed.finalize(), found))
}

fn line_of(entry: Entry, place: usize, observer: &Observer) -> Result<Vec<u8>> {
    let over = entry.is_over();
    let (mut launch, outcome) = (*entry.launch, entry.outcome);
    let mut line = launch.id.clone().into_bytes();
    if let Some(outcome) = outcome.filter(|_| over) {
        // Who bears its number now is none of its facts.
        let judgement = Judgement::over(&outcome, Verdict::Gone);
        let (run, ProcessId { pid, start_time }) = (launch.run, launch.identity.process());
        let traces = Traces::take(&mut launch, Some(&outcome), judgement.state);
        let facts = serde_json::to_vec(&Facts::new(launch, Some(outcome), &judgement, observer))?;
        line.extend(format!("\t{run}\t{place}\t{pid}\t{start_time}\t").into_bytes());
        serde_json::to_writer(&mut line, &traces)?;
        line.push(b'\t');
        line.extend_from_slice(inside(&facts).context("no object")?);
    }
    line.push(b'\n');
    Ok(line)
}

/// The fields of a JSON object.
fn inside(object: &[u8]) -> Option<&[u8]> {
    object.strip_prefix(b"{")?.strip_suffix(b"}")
}

/// Whether every line was read, and none is missing.
fn is_whole(book: &Book, dir: &StateDir) -> bool {
    let promised = ledger::promised(dir).is_some_and(|seq| seq <= book.last_seq);
    book.damage.is_empty() && !book.incomplete && !book.torn && promised
}

/// The line of one job.
enum Line<'a> {
    Open { id: &'a str },
    Over { id: &'a str, run: u32, place: usize, leader: ProcessId, traces: &'a str, facts: &'a str },
}

impl<'a> Line<'a> {
    fn read(line: &'a [u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
        let Some((id, rest)) = line.split_once('\t') else { return Some(Self::Open { id: line }) };
        let mut parts = rest.splitn(6, '\t');
        let (run, place) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let leader = ProcessId { pid: parts.next()?.parse().ok()?, start_time: parts.next()?.parse().ok()? };
        Some(Self::Over { id, run, place, leader, traces: parts.next()?, facts: parts.next()? })
    }

    /// Whether what the ledger tells besides goes with it.
    fn fits(&self, book: &Book) -> bool {
        let (Self::Open { id } | Self::Over { id, .. }) = *self;
        let known = match *self {
            Self::Open { .. } => book.job(id).is_some() || book.forgotten.contains(id),
            Self::Over { run, .. } => book.job(id).is_none_or(|entry| entry.launch.run > run),
        };
        known && !book.strays.contains(id)
    }
}

impl Listing {
    /// None if there is none that holds.
    pub fn open(observer: &Observer) -> Option<Self> {
        let dir = &observer.dir;
        let file = fs::open_regular(&dir.listing()).ok()?;
        let (ledger, length) = ledger::open_to_read(dir).ok()??;
        // However long the line of something else may be, it is not read into memory.
        let most = length.saturating_mul(4).saturating_add(BLOCK as u64);
        file.metadata().ok().filter(|meta| meta.len() <= most)?;
        let mut file = BufReader::with_capacity(BLOCK, file);
        let mut summed = crc32fast::Hasher::new();
        let mut line = Vec::new();
        let mut next = |line: &mut Vec<u8>| {
            line.clear();
            file.read_until(b'\n', line).ok().filter(|&read| read > 0)
        };
        let mut jobs_at = next(&mut line)?;
        summed.update(&line);
        let header: Header =
            serde_json::from_slice(&line).ok().filter(|header: &Header| header.v == VERSION)?;
        let mut open = Vec::new();
        while (open.len() as u64) < header.open {
            jobs_at += next(&mut line)?;
            open.extend_from_slice(&line);
        }
        summed.update(&open);
        let rest = rest_of_ledger(ledger, &header)?;
        let book = Book::resume(header.so_far, &open, &rest);
        if !is_whole(&book, dir) {
            return None;
        }
        let mut over = 0;
        for _ in 0..header.jobs {
            next(&mut line)?;
            summed.update(&line);
            let job = Line::read(&line).filter(|job| job.fits(&book))?;
            over += usize::from(matches!(job, Line::Over { id, .. } if !told_anew(&book, id)));
        }
        next(&mut line)?;
        if line != format!("{}\n", summed.finalize()).into_bytes() || next(&mut line).is_some() {
            return None;
        }
        let here = observer.here();
        let (read, lines, jobs) = (book.lines - header.so_far.lines, book.lines, book.jobs.len() + over);
        let places = header.places.iter().map(|place| (gone_from(place, here), place.comparable(here)));
        Some(Self {
            read,
            lines,
            jobs,
            jobs_at: jobs_at as u64,
            listed: header.jobs,
            outputs: Outputs::new(dir),
            places: places.collect(),
            book,
            file,
        })
    }

    /// What is to be looked at as if there were no listing.
    pub fn entries(&self) -> &[Entry] {
        &self.book.jobs
    }

    /// Goes through all jobs in the order of their first launch, until it is told that it is enough.
    pub fn each(mut self, mut tell: impl FnMut(Listed) -> Result<bool>) -> Result<()> {
        self.file.seek(SeekFrom::Start(self.jobs_at)).context("cannot read the listing")?;
        let (mut line, mut text) = (Vec::new(), Vec::new());
        let mut placed = HashSet::new();
        for _ in 0..self.listed {
            line.clear();
            self.file.read_until(b'\n', &mut line).context("cannot read the listing")?;
            let job = Line::read(&line).context("the listing was changed while it was read (try again)")?;
            let (Line::Open { id } | Line::Over { id, .. }) = job;
            let go_on = match (self.book.job(id), job) {
                _ if self.book.forgotten.contains(id) => continue,
                (Some(entry), _) => {
                    placed.insert(id.to_owned());
                    tell(Listed::Entry(entry))?
                }
                (None, Line::Over { place, leader, traces, facts, .. }) => {
                    let (verdict, comparable) = *self.places.get(place).context("a place is missing")?;
                    let identity = assess::over(verdict, comparable, leader);
                    let traces = serde_json::from_str(traces)?;
                    let now = Now::look(traces, identity, comparable, &|path| self.outputs.size_of(path));
                    splice(facts, &now, &mut text)?;
                    tell(Listed::Over(&text))?
                }
                (None, Line::Open { .. }) => continue,
            };
            if !go_on {
                return Ok(());
            }
        }
        for entry in self.book.jobs.iter().filter(|entry| !placed.contains(&entry.launch.id)) {
            if !tell(Listed::Entry(entry))? {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// What was kept of a job, and what is so now, as one object.
fn splice(facts: &str, now: &Now, object: &mut Vec<u8>) -> Result<()> {
    object.clear();
    object.push(b'{');
    object.extend_from_slice(facts.as_bytes());
    let comma = object.len();
    serde_json::to_writer(&mut *object, now)?;
    object[comma] = b',';
    Ok(())
}

/// The outputs in the directory of jobs are looked at from there: to walk to each from the root takes a third of the time.
#[derive(Debug)]
struct Outputs {
    jobs: PathBuf,
    opened: Option<File>,
}

impl Outputs {
    fn new(dir: &StateDir) -> Self {
        Self { jobs: dir.jobs(), opened: launch::open_directory(&dir.jobs()).ok() }
    }

    fn size_of(&self, path: &Path) -> Option<Size> {
        match (&self.opened, path.strip_prefix(&self.jobs)) {
            (Some(jobs), Ok(below)) => {
                let stat = fstatat(jobs, below, AtFlags::empty()).ok()?;
                let of = |number: i64| u64::try_from(number).unwrap_or_default();
                Some(Size { length: of(stat.st_size), on_disk: of(stat.st_blocks) * 512 })
            }
            _ => Size::of(path),
        }
    }
}

/// Whether a job that was over is told of anew, or not to be told of any longer.
fn told_anew(book: &Book, id: &str) -> bool {
    book.job(id).is_some() || book.forgotten.contains(id)
}

/// What the ledger has behind what a listing was made of; none if that is not what it begins with.
fn rest_of_ledger(mut ledger: File, header: &Header) -> Option<Vec<u8>> {
    let mut beginning = (&mut ledger).take(header.ledger);
    let mut summed = crc32fast::Hasher::new();
    let (mut block, mut length) = (vec![0; BLOCK], 0);
    loop {
        let read = beginning.read(&mut block).ok()?;
        if read == 0 {
            break;
        }
        summed.update(&block[..read]);
        length += read as u64;
    }
    if (length, summed.finalize()) != (header.ledger, header.ledger_crc32) {
        return None;
    }
    let mut rest = Vec::new();
    ledger.read_to_end(&mut rest).ok()?;
    Some(rest)
}
