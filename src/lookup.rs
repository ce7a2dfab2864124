//! Which job is meant: an id, a name (the latest job of that name), or an unambiguous beginning of an id.

use std::io;

use anyhow::{Context, Result};

use crate::exit::Refused;
use crate::fs;
use crate::job::{Launch, is_id, is_id_prefix};
use crate::ledger::{self, Book};
use crate::paths::StateDir;
use crate::store;
use crate::sys::proc;

/// The job was there when this command began.
pub fn pruned(id: &str) -> Refused {
    Refused(format!("job {id} was pruned meanwhile"))
}

const SHORTEST_PREFIX: usize = 4;

/// The latest run of the job that `word` names.
pub fn find(dir: &StateDir, word: &str) -> Result<Box<Launch>> {
    let id = find_id(dir, word)?;
    latest(dir, &id)?.ok_or_else(|| Refused(format!("no job '{word}' (see 'outlive ls --all')")).into())
}

/// The latest run of a job: from its own files, or from the ledger where they may not be all.
///
/// The ledger is flushed at a launch and `launch.json` is not: after a crash, or if it was damaged, the newest run
/// that has one need not be the latest.
pub fn latest(dir: &StateDir, id: &str) -> Result<Option<Box<Launch>>> {
    let (found, later) = store::latest_launch(dir, id)?;
    let this_boot = |launch: &Launch| launch.identity.place.boot_id == proc::boot_id();
    if !later && found.as_deref().is_some_and(this_boot) {
        return Ok(found);
    }
    let book = match ledger::read(dir) {
        Err(error) if found.is_none() => return Err(error),
        book => book.unwrap_or_default(),
    };
    let told = book.job(id).map(|entry| entry.launch.clone());
    Ok(match (found, told) {
        (Some(found), Some(told)) if told.run > found.run => Some(told),
        // A run that was not in the ledger when the machine went down was never executed.
        (Some(found), Some(told)) if found.run > told.run && !this_boot(&found) && book.damage.is_empty() => {
            Some(told)
        }
        (found, told) => found.or(told),
    })
}

fn find_id(dir: &StateDir, word: &str) -> Result<String> {
    if is_id(word) && dir.job(word).0.is_dir() {
        return Ok(word.to_owned());
    }
    if let Some(id) = named(dir, word)? {
        return Ok(id);
    }
    if word.len() >= SHORTEST_PREFIX && is_id_prefix(word) {
        let mut ids: Vec<String> = store::ids(dir)?.into_iter().filter(|id| id.starts_with(word)).collect();
        ids.sort();
        match ids.as_slice() {
            [] => {}
            [id] => return Ok(id.clone()),
            several => {
                return Err(Refused(format!("'{word}' could be any of {}", several.join(", "))).into());
            }
        }
    }
    if word.is_empty() {
        let next = "did the command fail that was to print it?";
        return Err(Refused(format!("no job '': the id or name is empty ({next})")).into());
    }
    // Names and directories may be lost where the ledger is not.
    let book = ledger::read(dir)?;
    let known = book
        .jobs
        .iter()
        .rev()
        .find(|entry| entry.launch.id == word || entry.launch.name.as_deref() == Some(word));
    if let Some(entry) = known {
        return Ok(entry.launch.id.clone());
    }
    Err(Refused(format!("no job '{word}' ({})", hint(dir, word, &book.jobs))).into())
}

/// What somebody may have meant who asked for a job that does not exist.
fn hint(dir: &StateDir, word: &str, jobs: &[ledger::Entry]) -> String {
    if jobs.is_empty() {
        return format!("{} has none; start one: outlive run -- COMMAND", dir.path().display());
    }
    let names: Vec<&str> = jobs.iter().filter_map(|entry| entry.launch.name.as_deref()).collect();
    let ids = || jobs.iter().rev().map(|entry| entry.launch.id.as_str());
    let begun = || ids().find(|id| is_id_prefix(word) && id.starts_with(word));
    let mistyped = || ids().find(|id| is_id(word) && distance(word, id) == 1);
    // A name that is near is a guess; an id that begins so is none.
    match begun().or_else(|| nearest(word, &names)).or_else(mistyped) {
        Some(near) => format!("did you mean '{near}'?"),
        None if word.bytes().all(|byte| byte.is_ascii_digit()) => {
            "a job is called by its id or name, not by a PID; see 'outlive ls --all'".to_owned()
        }
        None => "see 'outlive ls --all'".to_owned(),
    }
}

/// The id that the file of a name holds, if that job still exists.
pub fn named(dir: &StateDir, name: &str) -> Result<Option<String>> {
    if crate::job::check_name(name).is_err() {
        return Ok(None);
    }
    let path = dir.name(name);
    match fs::read_regular(&path) {
        Ok(raw) => {
            let id = String::from_utf8_lossy(&raw).trim().to_owned();
            Ok(Some(id).filter(|id| is_id(id) && dir.job(id).0.is_dir()))
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(error).with_context(|| format!("cannot read {}", path.display()))
        }
        Err(_) => Ok(None),
    }
}

/// The newest job of this name in the ledger.
pub fn named_in_ledger(dir: &StateDir, name: &str) -> Result<Option<String>> {
    let book = ledger::read(dir)?;
    let last = book.jobs.iter().rev().find(|entry| entry.launch.name.as_deref() == Some(name));
    Ok(last.map(|entry| entry.launch.id.clone()))
}

/// The name with the fewest edits to `word`, if they are few.
pub fn nearest<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let near = names.iter().map(|name| (distance(word, name), *name)).min()?;
    (near.0 <= 2.max(word.len() / 3) && near.0 < word.len()).then_some(near.1)
}

/// Levenshtein's edit distance.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let next = (diagonal + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], next);
        }
    }
    row[b.len()]
}

/// Adds the jobs that only their files tell of, if the ledger lacks something; how many. `tell` hears of those that
/// cannot be read.
pub fn add_by_files(dir: &StateDir, book: &mut Book, tell: impl Fn(&anyhow::Error)) -> Result<usize> {
    if book.damage.is_empty() && !book.incomplete {
        return Ok(0);
    }
    let known = book.jobs.len();
    for id in store::ids(dir)? {
        if book.damage.is_empty() && book.job(&id).is_some() {
            continue;
        }
        match store::latest_launch(dir, &id) {
            Ok((Some(launch), _)) => book.add(launch),
            Ok((None, _)) => {}
            Err(error) => tell(&error),
        }
    }
    Ok(book.jobs.len() - known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        assert_eq!(nearest("wbe", &["web", "worker"]), Some("web"));
        assert_eq!(nearest("nosuch", &["web", "worker"]), None);
        assert_eq!(nearest("x", &[]), None);
    }
}
