//! What is recorded about a job: the words of the ledger, of `launch.json` and of the exit sidecar.
//!
//! A job is one command with an id; a run is its nth start. Everything that identifies a process belongs to a
//! run. Fields are only ever added; readers ignore those they do not know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bytes::Bytes;

/// Version of the records on disk. A reader that meets a higher one must not write.
pub const FORMAT: u32 = 1;

/// The nth start of a job, its identity included. Written before the command is executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    pub id: String,
    pub run: u32,
    /// RFC 3339, UTC.
    pub at: String,
    /// Milliseconds of CLOCK_BOOTTIME, which no clock change touches.
    #[serde(default)]
    pub boottime_ms: u64,
    #[serde(default)]
    pub name: Option<String>,
    pub argv: Vec<Bytes>,
    pub cwd: Bytes,
    #[serde(default = "default_umask")]
    pub umask: u32,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub stdin: Stdin,
    pub output: Bytes,
    /// Size of the output file when this run began; what lies below is not this run's.
    #[serde(default)]
    pub output_offset: u64,
    #[serde(default)]
    pub stderr: Option<Bytes>,
    #[serde(default)]
    pub owner: Option<ProcessId>,
    #[serde(default)]
    pub on_owner_exit: OnOwnerExit,
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    #[serde(default = "default_stop_signal")]
    pub stop_signal: i32,
    #[serde(default = "default_grace")]
    pub grace_ms: u64,
    #[serde(default)]
    pub options: Extras,
    pub identity: Identity,
    pub supervisor: ProcessId,
    /// The supervisor is not the one that launched the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
}

/// Options that `restart` repeats and that have no part in judging a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extras {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_exit: Option<Bytes>,
    /// Bytes; absent: no cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_env: Vec<String>,
}

fn default_umask() -> u32 {
    0o022
}

fn default_stop_signal() -> i32 {
    15
}

pub const DEFAULT_GRACE_MS: u64 = 10_000;

fn default_grace() -> u64 {
    DEFAULT_GRACE_MS
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stdin {
    #[default]
    Null,
    Inherit,
    File(Bytes),
}

/// What becomes of a job whose owner has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnOwnerExit {
    /// The next `reap` stops it.
    #[default]
    Reap,
    /// Nobody stops it.
    Keep,
    /// Its supervisor stops it at once.
    Stop,
}

/// A process that cannot be mistaken for a later one of the same number on the same boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    pub pid: i32,
    /// Clock ticks since boot: field 22 of /proc/PID/stat, see proc_pid_stat(5). Elsewhere seconds since 1970.
    pub start_time: u64,
}

/// How the name of a boot begins that is the start time of process 1.
pub const FIRST_PROCESS: &str = "init-";

/// Where PIDs and ticks mean something: one boot of one machine, one PID and one time namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    pub boot_id: String,
    /// Inode of /proc/PID/ns/pid, see namespaces(7).
    pub pid_ns: u64,
    /// Inode of /proc/PID/ns/time; 0 where the kernel has none.
    #[serde(default)]
    pub time_ns: u64,
    #[serde(default)]
    pub host: String,
    /// Empty where /etc/machine-id is missing: it then equals nothing.
    #[serde(default)]
    pub machine_id: String,
}

impl Place {
    /// Whether a PID and a start time mean the same in both.
    pub fn comparable(&self, other: &Self) -> bool {
        (&self.boot_id, self.pid_ns, self.time_ns) == (&other.boot_id, other.pid_ns, other.time_ns)
    }

    /// Whether both name boots in the same way: a build that does with POSIX knows a boot by its first process only.
    pub fn names_boots_as(&self, other: &Self) -> bool {
        self.boot_id.starts_with(FIRST_PROCESS) == other.boot_id.starts_with(FIRST_PROCESS)
    }

    /// Without these nothing that was recorded can be compared with what is seen.
    pub fn known(&self) -> bool {
        !self.boot_id.is_empty() && self.pid_ns != 0
    }
}

/// Who the leader of a run is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub pid: i32,
    pub pgid: i32,
    pub sid: i32,
    pub start_time: u64,
    /// Inode of the process's pidfd, unique per boot where the kernel has pidfs (Linux 6.9).
    #[serde(default)]
    pub pidfd_inode: Option<u64>,
    pub place: Place,
}

impl Identity {
    pub fn process(&self) -> ProcessId {
        ProcessId { pid: self.pid, start_time: self.start_time }
    }
}

/// How a run ended. Fixed once, at the leader's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    Exited,
    Stopped,
    Failed,
    Interrupted,
}

/// Why a run ended as it did, or why it cannot be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    Stop,
    Timeout,
    Replaced,
    Restart,
    OwnerGone,
    Shutdown,
    Orphan,
    SupervisorLost,
    LostAtLaunch,
    Reboot,
    NamespaceEnded,
    NotFound,
    NotExecutable,
    BadDirectory,
    LaunchFailed,
    LaunchBrokenOff,
    OtherHost,
    OtherTimeNamespace,
    ExitNotRecorded,
    Unproven,
    Hidden,
    Contradictory,
}

impl Cause {
    /// The cause that this word names.
    pub fn of(word: &str) -> Option<Self> {
        serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
    }

    /// The word used in JSON and in tables.
    pub fn word(self) -> String {
        serde_json::to_value(self).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// The outcome of a run: the content of the exit sidecar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub state: End,
    /// RFC 3339, UTC.
    pub at: String,
    #[serde(default, deserialize_with = "known_cause")]
    pub cause: Option<Cause>,
    #[serde(default)]
    pub exit_code: Option<i32>,
    #[serde(default)]
    pub signal: Option<i32>,
    #[serde(default)]
    pub core_dumped: bool,
    /// Whether the command was ever executed; none when the disk cannot tell.
    #[serde(default)]
    pub executed: Option<bool>,
    /// Other processes of the job were alive when its leader ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lingering: bool,
    #[serde(default)]
    pub reason: Option<String>,
    #[serde(default)]
    pub duration_ms: Option<u64>,
    #[serde(default)]
    pub max_rss_bytes: Option<u64>,
    #[serde(default)]
    pub cpu_ms: Option<u64>,
}

/// A cause that a newer outlive gives is none here: it must not hide how the run ended.
fn known_cause<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Option<Cause>, D::Error> {
    Ok(Option::<String>::deserialize(source)?.and_then(|word| Cause::of(&word)))
}

impl Outcome {
    /// An outcome about which nothing but its kind is known.
    pub fn bare(state: End, cause: Option<Cause>, at: String) -> Self {
        Self {
            state,
            at,
            cause,
            exit_code: None,
            signal: None,
            core_dumped: false,
            executed: None,
            lingering: false,
            reason: None,
            duration_ms: None,
            max_rss_bytes: None,
            cpu_ms: None,
        }
    }
}

/// An id is seven characters, letters and digits in turn, as `k3f9a7b`: short, never a number, and no word that
/// anybody would give as a name.
pub const ID_LENGTH: usize = 7;

/// Shapes random bytes into an id.
pub fn id_from(random: [u8; ID_LENGTH]) -> String {
    let shape = |(at, byte): (usize, u8)| {
        if at % 2 == 0 { char::from(b'a' + byte % 26) } else { char::from(b'0' + byte % 10) }
    };
    random.into_iter().enumerate().map(shape).collect()
}

/// Whether `text` could be the beginning of an id.
pub fn is_id_prefix(text: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| {
        if at % 2 == 0 { byte.is_ascii_lowercase() } else { byte.is_ascii_digit() }
    };
    !text.is_empty() && text.len() <= ID_LENGTH && text.bytes().enumerate().all(fits)
}

pub fn is_id(text: &str) -> bool {
    text.len() == ID_LENGTH && is_id_prefix(text)
}

/// Names are `[A-Za-z0-9._-]`, at most 64 bytes, without a leading `-` or `.`, and never shaped like an id.
pub fn check_name(name: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name.len() > 64 {
        return Err(format!("'{name}' is not a name (1 to 64 characters)"));
    }
    if name.starts_with(['-', '.']) || !name.bytes().all(allowed) {
        return Err(format!(
            "'{name}' is not a name (letters, digits, '.', '_' and '-', not starting with '-' or '.')"
        ));
    }
    if is_id(name) {
        return Err(format!("'{name}' is shaped like a job id (choose another name)"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_alternate_and_names_do_not_look_like_them() {
        let id = id_from([0, 255, 26, 10, 3, 9, 25]);
        assert_eq!(id, "a5a0d9z");
        assert!(is_id(&id) && is_id_prefix("k3f9") && !is_id("k3f9"));
        assert!(check_name("website").is_ok() && check_name("a.b_c-1").is_ok() && check_name("k3f9").is_ok());
        for bad in ["", "-x", ".x", "a b", "a/b", "k3f9a7b", "ä", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn unknown_fields_are_ignored_and_missing_ones_have_their_default() {
        let old = r#"{"id":"a1b2c3d","run":1,"at":"","argv":["x"],"cwd":"/","output":"/o","future":{"x":[1]},
            "identity":{"pid":2,"pgid":2,"sid":2,"start_time":9,"place":{"boot_id":"b","pid_ns":4}},
            "supervisor":{"pid":1,"start_time":8}}"#;
        let launch: Launch = serde_json::from_str(old).unwrap();
        assert_eq!((launch.grace_ms, launch.stop_signal, launch.umask), (10_000, 15, 0o022));
        assert_eq!(launch.identity.place.machine_id, "");
    }
}
