//! What `ls --all --json` prints of the jobs that are over, kept from one call to the next: it does not change.
//!
//! `listing` is a cache, and anybody may delete it. It is made of a ledger, and holds for every ledger that begins with
//! the same bytes; if anything about it is not as expected, all is read from the ledger as if there were none. Lines:
//!
//! * the CRC-32 of all that follows,
//! * a [`Header`],
//! * those of the ledger that tell of jobs which were not over,
//! * for each job, in the order of their first launch: its id, and if it was over, behind a tab each, its run, the place
//!   of that in the header, its [`Traces`], and the fields of its [`Facts`].

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::assess::Observer;
use crate::fs;
use crate::job::Place;
use crate::ledger::{self, Book, Entry, SoFar};
use crate::paths::StateDir;
use crate::state::{Judgement, Verdict, gone_from};
use crate::view::{Facts, Now, Traces};

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
    /// Where in the file the jobs begin.
    jobs_at: u64,
    /// For each place: the identity of what ran there, and whether its PIDs mean the same here.
    places: Vec<(Verdict, bool)>,
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
    forget(&observer.dir);
    let made = ledger::raw(&observer.dir).ok().and_then(|raw| make(&raw, observer));
    let written = made.map(|text| fs::write_new(&observer.dir.listing(), &text));
    if let Some(Err(_)) = written {
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

/// None of a ledger with lines that cannot be read, or that lacks some.
fn make(raw: &[u8], observer: &Observer) -> Option<Vec<u8>> {
    let book = ledger::parse(raw);
    if !sound(&book) || book.torn {
        return None;
    }
    let so_far = book.so_far();
    let mut places = Vec::new();
    let mut open = HashSet::new();
    let mut jobs = Vec::with_capacity(raw.len());
    for entry in book.jobs {
        jobs.extend_from_slice(entry.launch.id.as_bytes());
        if entry.is_over() {
            over(entry, observer, &mut places, &mut jobs)?;
        } else {
            open.insert(entry.launch.id.clone());
        }
        jobs.push(b'\n');
    }
    let of_open = |line: &&[u8]| ledger::head(line).is_some_and(|head| open.contains(&*head.id));
    let open: Vec<u8> = ledger::lines(raw).filter(of_open).flat_map(|line| [line, b"\n"].concat()).collect();
    let header = Header {
        v: VERSION,
        ledger: raw.len() as u64,
        ledger_crc32: crc32fast::hash(raw),
        so_far,
        open: open.len() as u64,
        places,
    };
    let mut text = serde_json::to_vec(&header).ok()?;
    text.push(b'\n');
    text.extend(open);
    text.extend(jobs);
    let sum = format!("{}\n", crc32fast::hash(&text));
    Some([sum.as_bytes(), &text].concat())
}

fn over(entry: Entry, observer: &Observer, places: &mut Vec<Place>, line: &mut Vec<u8>) -> Option<()> {
    let (mut launch, outcome) = (*entry.launch, entry.outcome?);
    let judgement = Judgement::over(&launch.identity.place, &outcome, observer.here());
    let place = places.iter().position(|place| *place == launch.identity.place).unwrap_or_else(|| {
        places.push(launch.identity.place.clone());
        places.len() - 1
    });
    let run = launch.run;
    let traces = Traces::take(&mut launch, Some(&outcome), judgement.state);
    let facts = Facts::new(launch, Some(outcome), &judgement, observer);
    line.extend(format!("\t{run}\t{place}\t").into_bytes());
    serde_json::to_writer(&mut *line, &traces).ok()?;
    line.push(b'\t');
    line.extend_from_slice(inside(&serde_json::to_vec(&facts).ok()?)?);
    Some(())
}

/// The fields of a JSON object.
fn inside(object: &[u8]) -> Option<&[u8]> {
    object.strip_prefix(b"{")?.strip_suffix(b"}")
}

/// Whether every line was read, and none is missing.
fn sound(book: &Book) -> bool {
    book.damage.is_empty() && !book.incomplete
}

/// The line of one job.
enum Line<'a> {
    Open { id: &'a str },
    Over { id: &'a str, run: u32, place: usize, traces: &'a str, facts: &'a str },
}

impl<'a> Line<'a> {
    fn read(line: &'a [u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
        let Some((id, rest)) = line.split_once('\t') else { return Some(Self::Open { id: line }) };
        let mut parts = rest.splitn(4, '\t');
        let (run, place) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self::Over { id, run, place, traces: parts.next()?, facts: parts.next()? })
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
        let mut file = BufReader::with_capacity(BLOCK, file);
        let mut line = Vec::new();
        let mut next = |line: &mut Vec<u8>| {
            line.clear();
            file.read_until(b'\n', line).ok().filter(|&read| read > 0)
        };
        let mut jobs_at = next(&mut line)?;
        let sum = std::str::from_utf8(&line).ok()?.trim_end().parse::<u32>().ok()?;
        let mut summed = crc32fast::Hasher::new();
        jobs_at += next(&mut line)?;
        summed.update(&line);
        let header: Header =
            serde_json::from_slice(&line).ok().filter(|header: &Header| header.v == VERSION)?;
        let mut open = Vec::new();
        while (open.len() as u64) < header.open {
            jobs_at += next(&mut line)?;
            open.extend_from_slice(&line);
        }
        summed.update(&open);
        let rest = rest_of_ledger(observer, &header)?;
        let book = Book::resume(header.so_far, &open, &rest);
        if !sound(&book) || book.torn || ledger::promised(dir) > book.last_seq {
            return None;
        }
        let mut over = 0;
        while next(&mut line).is_some() {
            summed.update(&line);
            let job = Line::read(&line).filter(|job| job.fits(&book))?;
            over += usize::from(matches!(job, Line::Over { id, .. } if !told_anew(&book, id)));
        }
        if summed.finalize() != sum {
            return None;
        }
        let here = observer.here();
        let (read, lines, jobs) = (book.lines - header.so_far.lines, book.lines, book.jobs.len() + over);
        let places = header.places.iter().map(|place| (gone_from(place, here), place.comparable(here)));
        Some(Self { read, lines, jobs, jobs_at: jobs_at as u64, places: places.collect(), book, file })
    }

    /// Goes through all jobs in the order of their first launch, until it is told that it is enough.
    pub fn each(mut self, mut tell: impl FnMut(Listed) -> Result<bool>) -> Result<()> {
        self.file.seek(SeekFrom::Start(self.jobs_at)).context("cannot read the listing")?;
        let (mut line, mut text) = (Vec::new(), Vec::new());
        let mut placed = HashSet::new();
        loop {
            line.clear();
            if self.file.read_until(b'\n', &mut line).context("cannot read the listing")? == 0 {
                break;
            }
            let job = Line::read(&line).context("the listing was changed while it was read (try again)")?;
            let (Line::Open { id } | Line::Over { id, .. }) = job;
            let go_on = match (self.book.job(id), job) {
                _ if self.book.forgotten.contains(id) => continue,
                (Some(entry), _) => {
                    placed.insert(id.to_owned());
                    tell(Listed::Entry(entry))?
                }
                (None, Line::Over { place, traces, facts, .. }) => {
                    self.splice(place, traces, facts, &mut text)?;
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

    /// What was kept of a job, and what is so now, as one object.
    fn splice(&self, place: usize, traces: &str, facts: &str, text: &mut Vec<u8>) -> Result<()> {
        let traces: Traces = serde_json::from_str(traces)?;
        let (identity, comparable) = *self.places.get(place).context("a place is missing")?;
        text.clear();
        text.push(b'{');
        text.extend_from_slice(facts.as_bytes());
        let comma = text.len();
        serde_json::to_writer(&mut *text, &Now::look(traces, identity, comparable))?;
        text[comma] = b',';
        Ok(())
    }
}

/// Whether a job that was over is told of anew, or not to be told of any longer.
fn told_anew(book: &Book, id: &str) -> bool {
    book.job(id).is_some() || book.forgotten.contains(id)
}

/// What the ledger has behind what a listing was made of; none if that is not what it begins with.
fn rest_of_ledger(observer: &Observer, header: &Header) -> Option<Vec<u8>> {
    let (mut ledger, _) = ledger::open_to_read(&observer.dir).ok()??;
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
