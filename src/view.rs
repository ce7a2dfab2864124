//! A job as users see it: the JSON object, the same everywhere, and the row of a table.

use std::collections::BTreeMap;

use serde::Serialize;

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
    pub schema: u32,
    pub id: String,
    pub name: Option<String>,
    pub state: &'static str,
    pub identity: &'static str,
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
    pub owner: Option<ProcessView>,
    pub labels: BTreeMap<String, String>,
    pub started_at: String,
    pub ended_at: Option<String>,
    pub duration_ms: Option<u64>,
    pub max_rss_bytes: Option<u64>,
    pub cpu_ms: Option<u64>,
    pub output: OutputView,
    /// What a command did about it, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Processes that are still alive although they should not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survivors: Option<Vec<Survivor>>,
    /// The wait was over before the job was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
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

    fn made_of(launch: Launch, outcome: Option<Outcome>, judgement: &Judgement, observer: &Observer) -> Self {
        let Judgement { state, identity, supervised, .. } = *judgement;
        let here = observer.here();
        let place = &launch.identity.place;
        let comparable = place.comparable(here);
        let process = |id: ProcessId| ProcessView { pid: id.pid, alive: alive(id, comparable) };
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
        let (bytes, status) = output(&launch, state, outcome.as_ref());
        let signal = outcome.as_ref().and_then(|outcome| outcome.signal);
        Self {
            schema: SCHEMA,
            id: launch.id,
            name: launch.name,
            state: state.word(),
            identity: identity.word(),
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
            owner: launch.owner.map(process),
            labels: launch.labels,
            started_at: launch.at,
            duration_ms,
            max_rss_bytes: outcome.as_ref().and_then(|outcome| outcome.max_rss_bytes),
            cpu_ms: outcome.as_ref().and_then(|outcome| outcome.cpu_ms),
            output: OutputView { path: launch.output, bytes, status },
            action: None,
            survivors: None,
            timed_out: None,
            ended_at: outcome.as_ref().map(|outcome| outcome.at.clone()),
            reason: outcome.and_then(|outcome| outcome.reason),
        }
    }
}

/// The size of the output and what it is worth: it is complete once the run has ended and every writer is gone.
fn output(launch: &Launch, state: State, outcome: Option<&Outcome>) -> (Option<u64>, &'static str) {
    let Ok(meta) = std::fs::metadata(launch.output.as_path()) else { return (None, "unavailable") };
    let status = match (state, outcome) {
        _ if capped(launch, &meta) => "truncated",
        (State::Exited | State::Stopped | State::Failed, _) => "complete",
        // A status of its own making, though nobody asked: every writer had gone before it was recorded.
        (State::Interrupted, Some(outcome))
            if outcome.state == End::Interrupted && outcome.exit_code.or(outcome.signal).is_some() =>
        {
            "complete"
        }
        _ => "partial",
    };
    (Some(meta.len()), status)
}

/// Whether the cap on the output has freed a part of the file.
fn capped(launch: &Launch, meta: &std::fs::Metadata) -> bool {
    let Some(cap) = launch.options.max_output else { return false };
    let written = meta.len().saturating_sub(launch.output_offset);
    let on_disk = std::os::unix::fs::MetadataExt::blocks(meta) * 512;
    written > cap.saturating_add(crate::supervisor::HEAD) && on_disk < meta.len() / 4096 * 4096
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
