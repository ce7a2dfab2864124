//! Who is it, and what state is it in? A pure decision over what was recorded and what the kernel shows now.
//!
//! Nothing here reads a file or a clock. Every state that is not final is worked out afresh from this at each
//! invocation and never believed from disk. The order of the questions matters: a counting exit sidecar first,
//! then the lock, then place (boot, namespaces), then the process itself.

use serde::{Deserialize, Serialize};

use crate::job::{Cause, End, Identity, Launch, Outcome, Place};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Starting,
    Running,
    Paused,
    Lingering,
    Orphaned,
    Exited,
    Stopped,
    Failed,
    Interrupted,
    Unknown,
}

impl State {
    pub const ALL: [Self; 10] = [
        Self::Starting,
        Self::Running,
        Self::Paused,
        Self::Lingering,
        Self::Orphaned,
        Self::Exited,
        Self::Stopped,
        Self::Failed,
        Self::Interrupted,
        Self::Unknown,
    ];

    /// Nothing will ever change it.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Exited | Self::Stopped | Self::Failed | Self::Interrupted)
    }

    /// The leader has not ended, or cannot be shown to have.
    pub fn leader_lives(self) -> bool {
        matches!(self, Self::Starting | Self::Running | Self::Paused | Self::Orphaned)
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Lingering => "lingering",
            Self::Orphaned => "orphaned",
            Self::Exited => "exited",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Unknown => "unknown",
        }
    }
}

impl From<End> for State {
    fn from(end: End) -> Self {
        match end {
            End::Exited => Self::Exited,
            End::Stopped => Self::Stopped,
            End::Failed => Self::Failed,
            End::Interrupted => Self::Interrupted,
        }
    }
}

/// What is known about the process that was recorded. Only `Owned` may ever be signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Owned,
    Gone,
    Recycled,
    Stale,
    Unverified,
    None,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Self::Owned => "owned",
            Self::Gone => "gone",
            Self::Recycled => "recycled",
            Self::Stale => "stale",
            Self::Unverified => "unverified",
            Self::None => "none",
        }
    }
}

/// The recorded leader's number, as the kernel shows it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leader {
    Gone,
    /// The kernel knows the number but does not show the process.
    Hidden,
    Alive(Sighting),
}

/// A living process. What could not be read is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sighting {
    pub start_time: u64,
    pub pgid: i32,
    pub sid: i32,
    pub stopped: bool,
    /// Still our own code, waiting to execute the command.
    pub at_gate: bool,
    pub argv: Option<Vec<Vec<u8>>>,
    /// Whether its environment carries this run's mark.
    pub marked: Option<bool>,
    pub pidfd_inode: Option<u64>,
}

/// All that a judgement rests on.
#[derive(Clone, Debug)]
pub struct Evidence {
    pub here: Place,
    /// The state directory is on a file system that several machines can share.
    pub shared_fs: bool,
    /// Whether the run's lock is held, that is, whether a supervisor lives.
    pub supervised: bool,
    pub outcome: Option<Outcome>,
    /// The sidecar says that the command was executed.
    pub executed: bool,
    pub leader: Leader,
    /// Living members of the job other than its leader.
    pub members: usize,
    /// Living processes that may be members, but cannot be proven to be.
    pub unproven: usize,
}

/// How the state of a run is known that has its end recorded.
const RECORDED: &str = "the exit sidecar counts";

/// What may be said of a run, and by `why` how it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub state: State,
    pub identity: Verdict,
    pub cause: Option<Cause>,
    /// A supervisor lives and can be asked through the control FIFO.
    pub supervised: bool,
    pub why: &'static str,
}

impl Judgement {
    /// Of a run that has ended, of which nothing is left.
    pub fn over(outcome: &Outcome, identity: Verdict) -> Self {
        Self { state: outcome.state.into(), identity, cause: outcome.cause, supervised: false, why: RECORDED }
    }

    /// Whether processes of this run may be signalled by somebody who is not its supervisor.
    pub fn may_signal(&self) -> bool {
        self.identity == Verdict::Owned
            && matches!(
                self.state,
                State::Orphaned | State::Lingering | State::Running | State::Paused | State::Starting
            )
    }
}

/// Judges one run.
pub fn judge(launch: &Launch, evidence: &Evidence) -> Judgement {
    let say = |state, identity, cause, why| Judgement {
        state,
        identity,
        cause,
        supervised: evidence.supervised,
        why,
    };
    if let Some(outcome) = &evidence.outcome {
        // Its supervisor knows better than who looks from outside, and stays as long as anything is left.
        let left = evidence.supervised && outcome.lingering;
        return if left || evidence.members > 0 {
            say(
                State::Lingering,
                Verdict::Owned,
                outcome.cause,
                "the leader's exit is recorded and members still live",
            )
        } else {
            let (there, here) = (&launch.identity.place, &evidence.here);
            let start_time = launch.identity.start_time;
            let identity =
                ended_identity(gone_from(there, here), there.comparable(here), start_time, &evidence.leader);
            say(outcome.state.into(), identity, outcome.cause, RECORDED)
        };
    }
    if !evidence.here.known() {
        return say(
            State::Unknown,
            Verdict::Unverified,
            Some(Cause::Hidden),
            "the kernel does not tell which boot and PID namespace this is",
        );
    }
    if !launch.identity.place.names_boots_as(&evidence.here) {
        return say(
            State::Unknown,
            Verdict::Unverified,
            Some(Cause::OtherHost),
            "recorded by an outlive that was built for another system",
        );
    }
    if evidence.supervised {
        supervised(&launch.identity, evidence, say)
    } else {
        unsupervised(launch, evidence, say)
    }
}

/// The lock is held. That is necessary, not sufficient: the process must still fit the record.
fn supervised(
    recorded: &Identity,
    evidence: &Evidence,
    say: impl Fn(State, Verdict, Option<Cause>, &'static str) -> Judgement,
) -> Judgement {
    let there = &recorded.place;
    if there.boot_id != evidence.here.boot_id {
        return say(
            State::Unknown,
            Verdict::Unverified,
            Some(Cause::OtherHost),
            "the lock is held and the boot is another: a supervisor on another host",
        );
    }
    if there.pid_ns != evidence.here.pid_ns {
        return say(State::Running, Verdict::Unverified, None, "the lock is held from another PID namespace");
    }
    if there.time_ns != evidence.here.time_ns {
        return say(
            State::Running,
            Verdict::Unverified,
            None,
            "the lock is held from another time namespace",
        );
    }
    match &evidence.leader {
        Leader::Alive(seen) if seen.start_time == recorded.start_time && seen.sid == recorded.sid => {
            let state = match seen {
                Sighting { at_gate: true, .. } => State::Starting,
                Sighting { stopped: true, .. } => State::Paused,
                _ => State::Running,
            };
            say(state, Verdict::Owned, None, "the lock is held and start time and session fit the record")
        }
        Leader::Alive(_) => say(
            State::Unknown,
            Verdict::Unverified,
            Some(Cause::Contradictory),
            "the lock is held, but the process does not fit the record",
        ),
        Leader::Hidden => say(
            State::Unknown,
            Verdict::Unverified,
            Some(Cause::Hidden),
            "the kernel does not show the process",
        ),
        Leader::Gone => say(
            State::Unknown,
            Verdict::Gone,
            Some(Cause::ExitNotRecorded),
            "the leader is dead and its supervisor has not recorded how",
        ),
    }
}

/// The lock is free and there is no exit: the supervisor is gone.
fn unsupervised(
    launch: &Launch,
    evidence: &Evidence,
    say: impl Fn(State, Verdict, Option<Cause>, &'static str) -> Judgement,
) -> Judgement {
    let there = &launch.identity.place;
    let here = &evidence.here;
    let lost = if evidence.executed { Cause::SupervisorLost } else { Cause::LostAtLaunch };
    if there.boot_id != here.boot_id {
        let same_machine =
            there.host == here.host && there.machine_id == here.machine_id && !here.machine_id.is_empty();
        return if evidence.shared_fs && !same_machine {
            say(
                State::Unknown,
                Verdict::Unverified,
                Some(Cause::OtherHost),
                "recorded on another host that shares this directory",
            )
        } else {
            say(State::Interrupted, Verdict::Stale, Some(Cause::Reboot), "recorded under an earlier boot")
        };
    }
    if there.pid_ns != here.pid_ns {
        return say(
            State::Interrupted,
            Verdict::Stale,
            Some(Cause::NamespaceEnded),
            "recorded in another PID namespace, and its supervisor is gone",
        );
    }
    if there.time_ns != here.time_ns {
        return say(
            State::Unknown,
            Verdict::Unverified,
            Some(Cause::OtherTimeNamespace),
            "start times of another time namespace cannot be compared",
        );
    }
    let recycled = match &evidence.leader {
        Leader::Hidden => {
            return say(
                State::Unknown,
                Verdict::Unverified,
                Some(Cause::Hidden),
                "the kernel does not show the process",
            );
        }
        Leader::Alive(seen) => match compare(launch, seen) {
            Match::Proven(why) => {
                return say(State::Orphaned, Verdict::Owned, Some(Cause::SupervisorLost), why);
            }
            Match::Unproven => {
                return say(
                    State::Unknown,
                    Verdict::Unverified,
                    Some(Cause::Unproven),
                    "number, start time and group fit, but nothing proves that it is ours",
                );
            }
            Match::Other => true,
        },
        Leader::Gone => false,
    };
    if evidence.members > 0 {
        return say(
            State::Orphaned,
            Verdict::Owned,
            Some(Cause::SupervisorLost),
            "the leader is gone, but proven members of its job live",
        );
    }
    if evidence.unproven > 0 {
        return say(
            State::Unknown,
            Verdict::Unverified,
            Some(Cause::Unproven),
            "the leader is gone and its session lives, but nothing proves that it is ours",
        );
    }
    if recycled {
        say(State::Interrupted, Verdict::Recycled, Some(lost), "the number belongs to another process now")
    } else {
        say(State::Interrupted, Verdict::Gone, Some(lost), "neither supervisor nor process is left")
    }
}

/// The identity shown beside a final state. `place`: what [`gone_from`] says; `comparable`: whether ticks are.
pub fn ended_identity(place: Verdict, comparable: bool, start_time: u64, leader: &Leader) -> Verdict {
    match (leader, place) {
        (Leader::Gone, verdict) | (_, verdict @ (Verdict::Stale | Verdict::Unverified)) => verdict,
        (Leader::Alive(seen), _) if comparable && seen.start_time != start_time => Verdict::Recycled,
        (Leader::Alive(_) | Leader::Hidden, _) => Verdict::Unverified,
    }
}

/// The identity of a run that has ended whose number is nobody's now: it depends on where it ran alone.
pub fn gone_from(there: &Place, here: &Place) -> Verdict {
    if !here.known() || !there.names_boots_as(here) {
        Verdict::Unverified
    } else if there.boot_id != here.boot_id || there.pid_ns != here.pid_ns {
        Verdict::Stale
    } else {
        Verdict::Gone
    }
}

/// How well a living process fits a record of this boot and these namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    Proven(&'static str),
    Unproven,
    Other,
}

/// PID, start time and group must fit, and one more proof must be there.
pub fn compare(launch: &Launch, seen: &Sighting) -> Match {
    let recorded = &launch.identity;
    let inodes_differ = matches!((recorded.pidfd_inode, seen.pidfd_inode), (Some(a), Some(b)) if a != b);
    // 0 and below name groups, 1 is the first process of all: no leader ever bore them.
    if recorded.pid <= 1
        || recorded.sid <= 1
        || seen.start_time != recorded.start_time
        || seen.pgid != recorded.pgid
        || seen.sid != recorded.sid
        || inodes_differ
    {
        return Match::Other;
    }
    if recorded.pidfd_inode.is_some() && recorded.pidfd_inode == seen.pidfd_inode {
        return Match::Proven("pid, start time, group and pidfd inode fit");
    }
    if seen.marked == Some(true) {
        return Match::Proven("pid, start time and group fit, and its environment names this run");
    }
    let recorded: Vec<&[u8]> = launch.argv.iter().map(|word| word.0.as_slice()).collect();
    match &seen.argv {
        Some(argv) if same_command(&recorded, argv) => {
            Match::Proven("pid, start time, group and command line fit")
        }
        _ => Match::Unproven,
    }
}

/// Whether the command line now can be what the recorded one became: the same; with words put in front by a
/// wrapper; or with words taken from its front by an exec chain. Lists are compared, never joined text.
pub fn same_command(recorded: &[&[u8]], now: &[Vec<u8>]) -> bool {
    let now: Vec<&[u8]> = now.iter().map(Vec::as_slice).collect();
    !recorded.is_empty() && !now.is_empty() && (now.ends_with(recorded) || recorded.ends_with(&now))
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
