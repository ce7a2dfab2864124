//! The ledger as a whole, read in one pass.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use super::record::{Head, Said, read_line};
use crate::job::{FORMAT, Launch, Outcome};

/// What the ledger says of one job: its latest run.
#[derive(Clone, Debug)]
pub struct Entry {
    pub launch: Box<Launch>,
    pub outcome: Option<Outcome>,
    /// The number of the record that tells of its end: ends have the order of these, whatever the clock says.
    pub ended_seq: Option<u64>,
    /// A job that lingered has nothing left.
    pub emptied: bool,
}

impl Entry {
    fn new(launch: Box<Launch>) -> Self {
        Self { launch, outcome: None, ended_seq: None, emptied: false }
    }

    /// It has ended and nothing of it is left alive.
    pub fn is_over(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| !outcome.lingering || self.emptied)
    }
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
    /// The jobs that records tell of out of turn: of a run which no line before does, or of a job that was pruned.
    pub strays: HashSet<String>,
    /// How many lines the ledger has.
    pub lines: usize,
    /// The last line has no end.
    pub torn: bool,
    /// How many lines cannot be read, and whether the last is one of them.
    bad: usize,
    last_bad: bool,
}

/// How far a ledger has been read: all that its beginning has to do with what comes after it, but for the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoFar {
    last_seq: u64,
    compacted: u64,
    pub lines: usize,
}

impl Book {
    /// Reads on. `open`: the lines so far of the jobs that are still to be known.
    pub fn resume(so_far: SoFar, open: &[u8], rest: &[u8]) -> Self {
        let SoFar { last_seq, compacted, lines } = so_far;
        let mut book = Self { last_seq, compacted, ..Self::default() };
        book.take_lines(open);
        book.strays.clear();
        book.lines = lines;
        book.take_lines(rest);
        book.finish()
    }

    pub fn so_far(&self) -> SoFar {
        SoFar { last_seq: self.last_seq, compacted: self.compacted, lines: self.lines }
    }

    /// What is known of a ledger that cannot be read at all.
    pub fn unreadable(why: String) -> Self {
        Self { damage: vec![why], ..Self::default() }
    }

    pub fn job(&self, id: &str) -> Option<&Entry> {
        self.index.get(id).and_then(|&at| self.jobs.get(at))
    }

    /// Adds a job that the ledger does not know, found by its files. What was pruned has no job any more.
    pub fn add(&mut self, launch: Box<Launch>) {
        if !self.forgotten.contains(&launch.id) {
            self.launched(launch);
        }
    }

    fn launched(&mut self, launch: Box<Launch>) {
        if self.forgotten.remove(&launch.id) {
            self.strays.insert(launch.id.clone());
        }
        match self.index.get(&launch.id).and_then(|&at| self.jobs.get_mut(at)) {
            Some(entry) if entry.launch.run < launch.run => {
                *entry = Entry::new(launch);
            }
            Some(_) => {}
            None => {
                self.index.insert(launch.id.clone(), self.jobs.len());
                self.jobs.push(Entry::new(launch));
            }
        }
    }

    fn ended(&mut self, head: &Head, outcome: Outcome, emptied: bool) {
        if let Some(entry) = self.entry_of(head) {
            entry.outcome = Some(outcome);
            entry.ended_seq = Some(head.seq);
            entry.emptied |= emptied;
        }
    }

    /// The entry is taken out at the end of reading: one by one would be quadratic.
    fn pruned(&mut self, id: &str) {
        self.pruned.extend(self.index.remove(id));
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
            Said::Launched(launch) => self.launched(launch),
            Said::Adopted(launch) => {
                if let Some(entry) = self.entry_of(&head) {
                    entry.launch = launch;
                }
            }
            Said::Ended(outcome) => self.ended(&head, outcome, false),
            Said::Folded(folded) => {
                self.launched(folded.launch);
                self.ended(&head, folded.outcome, folded.emptied);
            }
            Said::Emptied => {
                if let Some(entry) = self.entry_of(&head) {
                    entry.emptied = true;
                }
            }
            Said::Pruned => self.pruned(&head.id),
            Said::Noted | Said::Other => {}
        }
        true
    }

    fn take_lines(&mut self, raw: &[u8]) {
        for line in lines(raw) {
            self.last_bad = !self.take(line);
            self.lines += 1;
            self.bad += usize::from(self.last_bad);
        }
        self.torn = raw.last().map_or(self.torn, |&byte| byte != b'\n');
    }

    /// Everything has been read.
    fn finish(mut self) -> Self {
        self.drop_pruned();
        let half = self.torn && self.last_bad;
        if half {
            self.damage.push("its last line is torn".to_owned());
        }
        let bad = self.bad - usize::from(half);
        if bad > 0 {
            self.damage.push(format!("{bad} line{} cannot be read", if bad == 1 { "" } else { "s" }));
        }
        if self.newer {
            self.damage.push("it holds records of a newer format".to_owned());
        }
        self
    }

    fn entry_of(&mut self, head: &Head) -> Option<&mut Entry> {
        let known = self.index.get(&*head.id).copied();
        match known.filter(|&at| self.jobs.get(at).is_some_and(|entry| entry.launch.run == head.run)) {
            Some(at) => self.jobs.get_mut(at),
            None => {
                self.strays.insert(head.id.clone().into_owned());
                None
            }
        }
    }
}

/// The raw lines of the ledger, without their ends.
pub fn lines(raw: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', raw).chain([raw.len()]);
    let line = move |end| raw.get(std::mem::replace(&mut start, end + 1)..end).unwrap_or_default();
    ends.map(line).filter(|line| !line.is_empty())
}

/// The pure part of reading.
pub fn parse(raw: &[u8]) -> Book {
    let mut book = Book::default();
    book.take_lines(raw);
    book.finish()
}

/// How much of a ledger is in memory at a time.
const BLOCK: usize = 256 * 1024;

/// Reads a ledger of about this length, block by block.
pub fn read_from(mut ledger: impl Read, length: u64) -> io::Result<Book> {
    let mut book = Book::default();
    // One byte more than there is, to find its end in one read.
    let size = usize::try_from(length).unwrap_or(BLOCK).saturating_add(1);
    let mut block = vec![0; size.min(BLOCK)];
    let mut filled = 0;
    loop {
        match ledger.read(&mut block[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if filled < block.len() {
            continue;
        }
        let lines = memchr::memrchr(b'\n', &block).map_or(0, |end| end + 1);
        book.take_lines(&block[..lines]);
        block.copy_within(lines.., 0);
        filled -= lines;
        if lines == 0 {
            block.resize(block.len() * 2, 0);
        }
    }
    book.take_lines(&block[..filled]);
    Ok(book.finish())
}
