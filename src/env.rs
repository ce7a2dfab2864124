//! Every environment variable that outlive reads or sets.

use std::env::{var, var_os};
use std::ffi::OsString;

/// The mark of a job's processes: which job, which run, in which state directory.
pub const JOB_ID: &str = "OUTLIVE_JOB_ID";
pub const RUN: &str = "OUTLIVE_RUN";
pub const STATE_DIR: &str = "OUTLIVE_STATE_DIR";

/// `OUTLIVE_SYNC=off`: records are not flushed to the disk, and a power cut may lose the newest. Another word than
/// that or `on` may be meant as either.
pub fn sync() -> anyhow::Result<bool> {
    match var_os("OUTLIVE_SYNC") {
        Some(value) if value == "off" => Ok(false),
        Some(value) if value != "on" && !value.is_empty() => {
            anyhow::bail!("OUTLIVE_SYNC is '{}' (set it to 'on' or 'off')", value.to_string_lossy())
        }
        _ => Ok(true),
    }
}

pub fn state_dir() -> Option<OsString> {
    var_os(STATE_DIR).filter(|value| !value.is_empty())
}

pub fn home() -> Option<OsString> {
    var_os("HOME").filter(|value| !value.is_empty())
}

/// The job this process runs inside of, if any.
pub fn current_job() -> Option<String> {
    var(JOB_ID).ok()
}

pub fn secret_env() -> Vec<String> {
    let list = var("OUTLIVE_SECRET_ENV").unwrap_or_default();
    list.split([',', ' ', ':']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Whether colour is unwanted, see no-color.org and TERM=dumb.
pub fn no_colour() -> bool {
    var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) || var("TERM").is_ok_and(|term| term == "dumb")
}

/// `K=V` for the mark of a run.
pub fn mark(id: &str, run: u32, state_dir: &std::path::Path) -> [(OsString, OsString); 3] {
    [(JOB_ID.into(), id.into()), (RUN.into(), run.to_string().into()), (STATE_DIR.into(), state_dir.into())]
}
