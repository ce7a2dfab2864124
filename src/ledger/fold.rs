//! Compaction: a finished job becomes one line. Pure.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::book::{Book, Entry, lines};
use super::record::{FoldedFields, Head, Line, Said, read_line};
use crate::job::{FORMAT, Launch};

/// Whether compaction is worth its price: many lines, and most of them foldable.
pub fn worth_compacting(raw_lines: usize, jobs: usize) -> bool {
    raw_lines > 1000 && raw_lines > jobs * 3 / 2
}

/// The pure part of compaction. A job is folded where the newest of its lines stands, and only if all of them may go.
/// Lines that cannot be read, of a kind that is not known here, or of a job that is not known stay where they are.
/// `left`: pruned jobs that still have files are told of, so that nobody takes them for jobs.
pub fn fold(old: &[u8], book: &Book, keep_after: u64, left: &HashSet<&str>) -> Vec<u8> {
    let read: Vec<_> = lines(old).map(|line| (line, read_line(line))).collect();
    let mut jobs: HashMap<&str, Sources> = HashMap::new();
    for (at, (line, read)) in read.iter().enumerate() {
        if let Some((head, said)) = read
            && !matches!(said, Said::Other)
        {
            let run = book.job(&head.id).map(|entry| entry.launch.run);
            jobs.entry(&head.id).or_default().take(at, line, head, said, run);
        }
    }
    // What each job that may be folded becomes: one line, or nothing if it was pruned.
    let fold_job = |id: &str, job: &Sources| -> Option<Vec<u8>> {
        match book.job(id) {
            _ if job.newest > keep_after => None,
            Some(entry) if entry.is_over() => job.folded(entry),
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
pub(super) struct Sources<'a> {
    newest: u64,
    /// The place of its newest line.
    last: usize,
    launch: Option<Source<'a>>,
    outcome: Option<Source<'a>>,
}

#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
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
        let Launch { id, run, at, .. } = &*entry.launch;
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
