//! `events`: the ledger as a stream of JSON lines.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::App;
use crate::cli::Events;
use crate::exit::Exit;
use crate::fs;
use crate::job::check_name;
use crate::ledger::{self, Head};
use crate::output::LOOK_AGAIN;
use crate::paths::StateDir;
use crate::sys::poll_timeout;
use crate::sys::watch::Watch;

/// How long the record of an end may be on its way from a supervisor to the ledger.
const ARRIVAL: Duration = Duration::from_millis(600);

pub fn events(app: &App, args: &Events) -> Result<Exit> {
    // Two readers of one name would both tell the same, each once.
    let _alone = match &args.reader {
        Some(name) => {
            app.dir().prepare()?;
            Some(reader_lock(app.dir(), name)?)
        }
        None => None,
    };
    let mut seen = match &args.reader {
        Some(name) => match read_position(app.dir(), name)? {
            Some(seen) => seen,
            None => {
                // What comes is kept for it from the first call on, even if there is nothing yet.
                write_position(app.dir(), name, 0, app.observer.sync)?;
                0
            }
        },
        None => args.since.unwrap_or(0),
    };
    settle(app)?;
    let mut watched = None;
    loop {
        if args.follow && watched.is_none() {
            // The directory, in which the ledger may be replaced. There may be none yet.
            watched = Watch::of_directory(app.dir().path());
        }
        let raw = ledger::raw(app.dir())?;
        let (text, newest) = select(&raw, seen, args.ends);
        if !super::print_data(&text)? {
            // Nobody has read it: a reader's position stays where it is.
            return Ok(Exit::Done);
        }
        if newest > seen {
            seen = newest;
            if let Some(name) = &args.reader {
                write_position(app.dir(), name, seen, app.observer.sync)?;
            }
        }
        if !args.follow || !sleep(watched.as_ref())? {
            return Ok(Exit::Done);
        }
    }
}

/// Sleeps until there may be something new. False if nobody reads our stdout any longer.
fn sleep(watch: Option<&Watch>) -> Result<bool> {
    let stdout = std::io::stdout();
    // A pipe whose reader has gone away shows POLLERR, whatever is asked for, see poll(2).
    let out = PollFd::new(stdout.as_fd(), PollFlags::empty());
    let changed = watch.map(|watch| PollFd::new(watch.fd(), PollFlags::POLLIN));
    let limit = if watch.is_some() { PollTimeout::NONE } else { poll_timeout(LOOK_AGAIN) };
    let mut fds: Vec<PollFd> = [out].into_iter().chain(changed).collect();
    poll(&mut fds, limit)?;
    let gone = fds[0].revents().is_some_and(|events| events.contains(PollFlags::POLLERR));
    if let Some(watch) = watch {
        watch.forget();
    }
    Ok(!gone)
}

/// What ended unseen is settled first, so that its end is in the stream. A supervisor tells its sidecar first and the
/// ledger then: an end that its waiters know of already gets a moment to arrive.
fn settle(app: &App) -> Result<()> {
    app.assess_all(false)?;
    let mut pause = Duration::from_millis(1);
    while on_its_way(app)? && pause < ARRIVAL {
        std::thread::sleep(pause);
        pause *= 2;
    }
    Ok(())
}

/// Whether a supervisor has recorded an end that the ledger does not know yet.
fn on_its_way(app: &App) -> Result<bool> {
    let mut open = ledger::read(app.dir())?.jobs.into_iter().filter(|entry| entry.outcome.is_none());
    let ended = |entry: ledger::Entry| {
        let job = app.observer.assess(entry.launch);
        job.is_ok_and(|job| job.judgement.supervised && job.outcome.is_some())
    };
    Ok(open.any(ended))
}

/// The lines after `seen`, and the highest number among all. A gap is told where lines were folded away.
fn select(raw: &[u8], seen: u64, ends: bool) -> (Vec<u8>, u64) {
    let mut text = Vec::new();
    let mut newest = seen;
    let whole = raw.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    for line in ledger::lines(&raw[..whole]) {
        let Ok(head) = serde_json::from_slice::<Head>(line) else { continue };
        if head.seq <= seen {
            continue;
        }
        newest = newest.max(head.seq);
        match &*head.kind {
            "compacted" => text.extend(format!("{{\"kind\":\"gap\",\"seq\":{}}}\n", head.seq).into_bytes()),
            kind if ends && !matches!(kind, "exited" | "interrupted" | "folded") => {}
            _ => {
                text.extend_from_slice(line);
                text.push(b'\n');
            }
        }
    }
    (text, newest)
}

/// Its name is no reader's: those do not begin with a dot.
fn reader_lock(dir: &StateDir, name: &str) -> Result<fs::Flock> {
    dir.make_readers()?;
    fs::Flock::take(&dir.readers().join(format!(".{name}")), &format!("the reader '{name}'"))
}

/// None of a reader that has not called yet.
fn read_position(dir: &StateDir, name: &str) -> Result<Option<u64>> {
    let path = dir.readers().join(name);
    match fs::read_regular(&path) {
        Ok(raw) => String::from_utf8_lossy(&raw)
            .trim()
            .parse()
            .map(Some)
            .with_context(|| format!("{} does not hold a number; correct or delete it", path.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn write_position(dir: &StateDir, name: &str, seq: u64, sync: bool) -> Result<()> {
    let path = dir.readers().join(name);
    fs::replace(&path, format!("{seq}\n").as_bytes(), sync)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The highest number that every named reader has seen: what lies above must stay.
pub fn slowest_reader(dir: &StateDir) -> u64 {
    let entries = match (dir.has_readers(), std::fs::read_dir(dir.readers())) {
        (Ok(false), _) => return u64::MAX,
        (Ok(true), Ok(entries)) => entries,
        // Somebody may be waiting there: nothing is folded away.
        _ => return 0,
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| check_name(name).is_ok());
    names.map(|name| read_position(dir, &name).ok().flatten().unwrap_or(0)).min().unwrap_or(u64::MAX)
}
