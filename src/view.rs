//! A job as users see it: the JSON object, the same everywhere, and the row of a table.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::assess::{Assessed, Observer, alive};
use crate::bytes::Bytes;
use crate::job::{End, Launch, Place, ProcessId};
use crate::state::{State, Verdict};
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
    pub cause: Option<String>,
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
        let launch = &job.launch;
        let outcome = job.outcome.as_ref();
        let state = job.state();
        let place = &launch.identity.place;
        let comparable = place.comparable(observer.here());
        let process = |id: ProcessId| ProcessView { pid: id.pid, alive: alive(id, comparable) };
        let supervisor = ProcessView {
            pid: launch.supervisor.pid,
            alive: if job.judgement.supervised { Some(true) } else { Some(false) },
        };
        // A time namespace has a boot clock of its own; a PID namespace has not.
        let (here, boot) = (observer.here(), |place: &Place| (place.boot_id.clone(), place.time_ns));
        let running =
            || clock::boottime_ms().checked_sub(launch.boottime_ms).filter(|_| boot(place) == boot(here));
        Self {
            schema: SCHEMA,
            id: launch.id.clone(),
            name: launch.name.clone(),
            state: state.word(),
            identity: job.judgement.identity.word(),
            cause: job.judgement.cause.map(|cause| cause.word()),
            run: launch.run,
            argv: launch.argv.clone(),
            cwd: launch.cwd.clone(),
            pid: launch.identity.pid,
            pgid: launch.identity.pgid,
            sid: launch.identity.sid,
            start_time: launch.identity.start_time,
            boot_id: place.boot_id.clone(),
            exit_code: outcome.and_then(|outcome| outcome.exit_code),
            signal: outcome
                .and_then(|outcome| outcome.signal)
                .map(|number| SignalView { name: signal_name(number), number }),
            core_dumped: outcome.is_some_and(|outcome| outcome.core_dumped),
            executed: match outcome {
                Some(outcome) => outcome.executed,
                None => {
                    (state != State::Starting && job.judgement.identity == Verdict::Owned).then_some(true)
                }
            },
            supervisor,
            owner: launch.owner.map(process),
            labels: launch.labels.clone(),
            started_at: launch.at.clone(),
            ended_at: outcome.map(|outcome| outcome.at.clone()),
            duration_ms: match outcome {
                Some(outcome) => outcome.duration_ms,
                None if state.leader_lives() => running(),
                None => None,
            },
            max_rss_bytes: outcome.and_then(|outcome| outcome.max_rss_bytes),
            cpu_ms: outcome.and_then(|outcome| outcome.cpu_ms),
            output: output(job),
            action: None,
            reason: outcome.and_then(|outcome| outcome.reason.clone()),
            survivors: None,
            timed_out: None,
        }
    }
}

/// The output is complete once the run has ended and every writer is gone.
fn output(job: &Assessed) -> OutputView {
    let path = job.launch.output.clone();
    let meta = std::fs::metadata(path.as_path()).ok();
    let bytes = meta.as_ref().map(std::fs::Metadata::len);
    if meta.is_some_and(|meta| capped(&job.launch, &meta)) {
        return OutputView { path, bytes, status: "truncated" };
    }
    let status = match (bytes, job.state(), &job.outcome) {
        (None, ..) => "unavailable",
        (Some(_), State::Exited | State::Stopped | State::Failed, _) => "complete",
        // A status of its own making, though nobody asked: every writer had gone before it was recorded.
        (Some(_), State::Interrupted, Some(outcome))
            if outcome.state == End::Interrupted && outcome.exit_code.or(outcome.signal).is_some() =>
        {
            "complete"
        }
        _ => "partial",
    };
    OutputView { path, bytes, status }
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
    if let Some(cause) = view.cause.as_deref().filter(|&cause| cause != "stop" || view.state == "interrupted")
    {
        add(cause);
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
