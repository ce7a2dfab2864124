//! A job as users see it: the JSON object, the same everywhere, and the row of a table.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::assess::{Assessed, Observer, alive};
use crate::bytes::Bytes;
use crate::job::{Cause, End, Launch, Outcome, ProcessId};
use crate::state::{Judgement, State, Verdict};
use crate::sys::clock;
use crate::units::signal_name;
use crate::words::printable;

/// Version of the JSON objects. Fields are only ever added.
pub const SCHEMA: u32 = 1;

/// The job object.
#[derive(Clone, Debug, Serialize)]
pub struct JobView {
    #[serde(flatten)]
    pub facts: Facts,
    #[serde(flatten)]
    pub now: Now,
    /// What a command did about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<&'static str>,
    /// Processes that are still alive although they should not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survivors: Option<Vec<Survivor>>,
    /// The wait was over before the job was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
}

/// What stays as it is once a run is over. Whoever changes a field, its name or its place here has listings that were
/// kept made anew: [`crate::listing::VERSION`].
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    pub schema: u32,
    pub id: String,
    pub name: Option<String>,
    pub state: &'static str,
    pub cause: Option<Cause>,
    pub run: u32,
    pub argv: Vec<Bytes>,
    pub cwd: Bytes,
    pub pid: i32,
    pub pgid: i32,
    pub sid: i32,
    /// Clock ticks since boot.
    pub start_time: u64,
    pub boot_id: String,
    pub exit_code: Option<i32>,
    pub signal: Option<SignalView>,
    pub core_dumped: bool,
    pub executed: Option<bool>,
    pub supervisor: ProcessView,
    pub labels: BTreeMap<String, String>,
    pub started_at: String,
    pub ended_at: Option<String>,
    pub duration_ms: Option<u64>,
    pub max_rss_bytes: Option<u64>,
    pub cpu_ms: Option<u64>,
    /// Why it ended so, or why a command did what it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What has to be looked at each time, also of a run that is over.
#[derive(Clone, Debug, Serialize)]
pub struct Now {
    pub identity: &'static str,
    pub owner: Option<ProcessView>,
    pub output: OutputView,
}

/// Where to look for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traces {
    pub owner: Option<ProcessId>,
    pub output: Bytes,
    pub output_offset: u64,
    pub max_output: Option<u64>,
    /// Every writer has gone: what the file holds is all there will be.
    pub complete: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct SignalView {
    pub name: String,
    pub number: i32,
}

#[derive(Clone, Debug, Serialize)]
pub struct ProcessView {
    pub pid: i32,
    /// None where it cannot be told.
    pub alive: Option<bool>,
}

#[derive(Clone, Debug, Serialize)]
pub struct OutputView {
    pub path: Bytes,
    /// Size of the file now; none if it is gone.
    pub bytes: Option<u64>,
    pub status: &'static str,
}

/// How large a file is, in bytes: as a whole, and what of it takes room.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub length: u64,
    pub on_disk: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Survivor {
    pub pid: i32,
    pub command: String,
    pub reason: String,
}

impl JobView {
    pub fn new(job: &Assessed, observer: &Observer) -> Self {
        Self::made_of((*job.launch).clone(), job.outcome.clone(), &job.judgement, observer)
    }

    /// The same of a job that is not needed any longer: in a long list, copies would take a good part of the time.
    pub fn of(job: Assessed, observer: &Observer) -> Self {
        Self::made_of(*job.launch, job.outcome, &job.judgement, observer)
    }

    fn made_of(
        mut launch: Launch,
        outcome: Option<Outcome>,
        judgement: &Judgement,
        observer: &Observer,
    ) -> Self {
        let traces = Traces::take(&mut launch, outcome.as_ref(), judgement.state);
        let comparable = launch.identity.place.comparable(observer.here());
        let now = Now::look(traces, judgement.identity, comparable, &Size::of);
        let facts = Facts::new(launch, outcome, judgement, observer);
        Self { facts, now, action: None, survivors: None, timed_out: None }
    }
}

impl Facts {
    pub fn new(launch: Launch, outcome: Option<Outcome>, judgement: &Judgement, observer: &Observer) -> Self {
        let Judgement { state, identity, supervised, .. } = *judgement;
        let (place, here) = (&launch.identity.place, observer.here());
        // A time namespace has a boot clock of its own; a PID namespace has not.
        let same_clock = (&place.boot_id, place.time_ns) == (&here.boot_id, here.time_ns);
        let running = || clock::boottime_ms().checked_sub(launch.boottime_ms).filter(|_| same_clock);
        let executed = match &outcome {
            Some(outcome) => outcome.executed,
            None => (state != State::Starting && identity == Verdict::Owned).then_some(true),
        };
        let duration_ms = match &outcome {
            Some(outcome) => outcome.duration_ms,
            None if state.leader_lives() => running(),
            None => None,
        };
        let signal = outcome.as_ref().and_then(|outcome| outcome.signal);
        Self {
            schema: SCHEMA,
            id: launch.id,
            name: launch.name,
            state: state.word(),
            cause: judgement.cause,
            run: launch.run,
            argv: launch.argv,
            cwd: launch.cwd,
            pid: launch.identity.pid,
            pgid: launch.identity.pgid,
            sid: launch.identity.sid,
            start_time: launch.identity.start_time,
            boot_id: launch.identity.place.boot_id,
            exit_code: outcome.as_ref().and_then(|outcome| outcome.exit_code),
            signal: signal.map(|number| SignalView { name: signal_name(number), number }),
            core_dumped: outcome.as_ref().is_some_and(|outcome| outcome.core_dumped),
            executed,
            supervisor: ProcessView { pid: launch.supervisor.pid, alive: Some(supervised) },
            labels: launch.labels,
            started_at: launch.at,
            duration_ms,
            max_rss_bytes: outcome.as_ref().and_then(|outcome| outcome.max_rss_bytes),
            cpu_ms: outcome.as_ref().and_then(|outcome| outcome.cpu_ms),
            ended_at: outcome.as_ref().map(|outcome| outcome.at.clone()),
            reason: outcome.and_then(|outcome| outcome.reason),
        }
    }
}

impl Traces {
    /// Takes the path of the output out of the launch.
    pub fn take(launch: &mut Launch, outcome: Option<&Outcome>, state: State) -> Self {
        let complete = match (state, outcome) {
            (State::Exited | State::Stopped | State::Failed, _) => true,
            // A status of its own making, though nobody asked: every writer had gone before it was recorded.
            (State::Interrupted, Some(outcome)) => {
                outcome.state == End::Interrupted && outcome.exit_code.or(outcome.signal).is_some()
            }
            _ => false,
        };
        Self {
            owner: launch.owner,
            output: std::mem::take(&mut launch.output),
            output_offset: launch.output_offset,
            max_output: launch.options.max_output,
            complete,
        }
    }

    /// The size of the output and what it is worth.
    fn output(self, size_of: &dyn Fn(&Path) -> Option<Size>) -> OutputView {
        let Some(size) = size_of(self.output.as_path()) else {
            return OutputView { path: self.output, bytes: None, status: "unavailable" };
        };
        let status = match (self.capped(size), self.complete) {
            (true, _) => "truncated",
            (false, true) => "complete",
            (false, false) => "partial",
        };
        OutputView { path: self.output, bytes: Some(size.length), status }
    }

    /// Whether the cap on the output has freed a part of the file.
    fn capped(&self, size: Size) -> bool {
        let Some(cap) = self.max_output else { return false };
        let written = size.length.saturating_sub(self.output_offset);
        written > cap.saturating_add(crate::supervisor::HEAD) && size.on_disk < size.length / 4096 * 4096
    }
}

impl Size {
    pub fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok()?;
        Some(Self { length: meta.len(), on_disk: meta.blocks() * 512 })
    }
}

impl Now {
    /// `comparable`: whether the owner's PID and start time mean the same here.
    pub fn look(
        traces: Traces,
        identity: Verdict,
        comparable: bool,
        size_of: &dyn Fn(&Path) -> Option<Size>,
    ) -> Self {
        let owner = traces.owner.map(|id| ProcessView { pid: id.pid, alive: alive(id, comparable) });
        Self { identity: identity.word(), owner, output: traces.output(size_of) }
    }
}

/// The command as one line a person can read; words that a shell would split or change are quoted.
pub fn command_line(argv: &[Bytes]) -> String {
    let plain = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./:=,+@%".contains(&byte))
    };
    let word = |bytes: &Bytes| {
        let text = bytes.display();
        let text = printable(&text);
        if plain(&text) { text.into_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// The state with what is worth knowing beside it: `exited 7`, `stopped SIGTERM`, `interrupted reboot`.
pub fn state_words(view: &JobView) -> String {
    let view = &view.facts;
    let mut words = view.state.to_owned();
    let mut add = |word: &str| {
        words.push(' ');
        words.push_str(word);
    };
    if matches!(view.state, "exited" | "stopped" | "lingering") {
        match (&view.signal, view.exit_code) {
            (Some(signal), _) => add(&signal.name),
            (None, Some(code)) => add(&code.to_string()),
            (None, None) => {}
        }
    }
    // That a stopped job was stopped needs no saying.
    if let Some(cause) = view.cause.filter(|&cause| cause != Cause::Stop || view.state == "interrupted") {
        add(&cause.word());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_quoted_where_it_must_be() {
        let of = |words: &[&str]| command_line(&words.iter().map(Bytes::from).collect::<Vec<_>>());
        assert_eq!(of(&["sh", "-c", "a b", "", "it's", "x\ny"]), "sh -c 'a b' '' 'it'\\''s' 'x\\ny'");
    }
}
