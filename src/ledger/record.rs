//! The lines of the ledger: what is written, and how whatever was written is read again.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::job::{FORMAT, Launch, Outcome, is_id};

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
pub(super) struct Line<'a, B: Serialize> {
    pub(super) v: u32,
    pub(super) seq: u64,
    pub(super) kind: &'a str,
    #[serde(flatten)]
    pub(super) body: B,
}

#[derive(Serialize)]
pub(super) struct EndedBody<'a> {
    pub(super) id: &'a str,
    pub(super) run: u32,
    #[serde(flatten)]
    pub(super) outcome: &'a Outcome,
}

#[derive(Serialize)]
pub(super) struct NoteBody<'a> {
    pub(super) id: &'a str,
    pub(super) run: u32,
    pub(super) at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<&'a str>,
}

/// A finished job, folded to one line by compaction.
#[derive(Deserialize)]
pub(super) struct FoldedBody {
    pub(super) id: String,
    pub(super) run: u32,
    pub(super) launch: Box<Launch>,
    pub(super) outcome: Outcome,
    #[serde(default)]
    pub(super) emptied: bool,
}

/// The same to be written: launch and outcome as their lines had them.
#[derive(Serialize)]
pub(super) struct FoldedFields<'a> {
    pub(super) id: &'a str,
    pub(super) run: u32,
    pub(super) at: &'a str,
    pub(super) launch: Value,
    pub(super) outcome: Value,
    pub(super) emptied: bool,
}

/// What a line that can be read says.
pub(super) enum Said {
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
pub(super) fn read_line(line: &[u8]) -> Option<(Head<'_>, Said)> {
    read_usual(line).or_else(|| read_any(line))
}

/// Only what every line has.
pub fn head(line: &[u8]) -> Option<Head<'_>> {
    parse(line)
}

/// What a ledger is full of, in the form in which we write it, is gone through once. None if this is no such line.
pub(super) fn read_usual(line: &[u8]) -> Option<(Head<'_>, Said)> {
    let mut head = Head::beginning(line).filter(|head| matches!(&*head.kind, "launched" | "folded"))?;
    let said = read_body(&head, line)?;
    let launch = match &said {
        Said::Launched(launch) => launch,
        Said::Folded(body) => &body.launch,
        _ => return None,
    };
    (head.id, head.run) = (Cow::Owned(launch.id.clone()), launch.run);
    Some((head, said))
}

pub(super) fn read_any(line: &[u8]) -> Option<(Head<'_>, Said)> {
    let head = head(line)?;
    let said = match read_body(&head, line) {
        None if head.v > FORMAT => Said::Other,
        body => body?,
    };
    Some((head, said))
}

/// An id that is none would lead out of the directory of its job.
pub(super) fn read_body(head: &Head, line: &[u8]) -> Option<Said> {
    let launch = || parse::<Box<Launch>>(line).filter(|launch| is_id(&launch.id));
    Some(match &*head.kind {
        "launched" => Said::Launched(launch()?),
        "adopted" => Said::Adopted(launch()?),
        "exited" | "interrupted" => Said::Ended(parse(line)?),
        "folded" => {
            let body: Box<FoldedBody> = parse(line)?;
            let one = is_id(&body.id) && body.launch.id == body.id && body.launch.run == body.run;
            Said::Folded(one.then_some(body)?)
        }
        "emptied" => Said::Emptied,
        "pruned" => Said::Pruned,
        "stop-requested" | "paused" | "resumed" | "restarted" | "on-exit" => Said::Noted,
        _ => Said::Other,
    })
}

/// A line is found to be UTF-8 once, not string by string.
fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Option<T> {
    match std::str::from_utf8(line) {
        Ok(text) => serde_json::from_str(text).ok(),
        Err(_) => serde_json::from_slice(line).ok(),
    }
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
    pub(super) fn line(&self, seq: u64) -> serde_json::Result<Vec<u8>> {
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
