//! `logs`: the output of a job, to the byte.

use std::io;
use std::time::Duration;

use anyhow::{Context, Result};

use super::App;
use crate::cli::Logs;
use crate::exit::{Exit, Refused};
use crate::job::{Cause, Launch};
use crate::lookup;
use crate::output::{Copied, Until, copy, end_of_run, newest_part, open, tail};
use crate::store;
use crate::sys::clock;
use crate::sys::disk::next_data;

/// How long a restart may take from the end of one run to the launch of the next.
const RESTART_WAIT: Duration = Duration::from_secs(5);

pub fn logs(app: &App, args: &Logs) -> Result<Exit> {
    let latest = lookup::find(app.dir(), &args.job)?;
    let id = latest.id.clone();
    let launch = match args.run {
        Some(run) => {
            let launch = store::read_launch(&app.dir().run(&id, run))?;
            launch
                .ok_or_else(|| Refused(format!("job {id} has no run {run} (the latest is {})", latest.run)))?
        }
        None => latest,
    };
    let path = launch.output.clone();
    let file = match open(path.as_path()) {
        Err(error) if is_missing(&error) => {
            return Err(Refused(format!("the output of job {id} is gone: {}", path.display())).into());
        }
        Err(error) if error.is::<Refused>() => return Err(error),
        opened => {
            opened.with_context(|| format!("cannot read the output of job {id}, {}", path.display()))?
        }
    };
    let end = match args.run {
        Some(_) => end_of_run(&file, app.dir(), &launch)?,
        None => None,
    };
    let first = match args.run {
        Some(_) => launch.output_offset,
        None => 0,
    };
    let length = file.metadata().map_or(0, |meta| meta.len()).min(end.unwrap_or(u64::MAX));
    let start = match (args.since_offset, args.lines) {
        (Some(offset), _) if offset > length => {
            return Err(Refused(format!(
                "the output of job {id} has {length} bytes; there is no offset {offset}"
            ))
            .into());
        }
        (Some(offset), _) => offset,
        (None, Some(lines)) => tail(&file, newest_part(&file, first, length), length, lines)?,
        (None, None) => first,
    };
    // A piece that begins where something was dropped begins with what is left.
    let length = match args.max_bytes {
        Some(most) => length.min(next_data(&file, start).saturating_add(most)),
        None => length,
    };
    let mut out = io::stdout().lock();
    let mut job = app.observer.settle(launch)?;
    let follow = (args.follow || args.follow_restarts) && end.is_none();
    let until = if follow { Until::Empty(&job, &app.observer) } else { Until::Offset(length) };
    let Copied { at: mut reached, mut unread } = copy(&file, start, &mut out, until)?;
    while args.follow_restarts && !unread {
        let Some(next) = next_run(app, &job.launch)? else { break };
        job = app.observer.settle(next)?;
        let until = Until::Empty(&job, &app.observer);
        Copied { at: reached, unread } = copy(&file, reached, &mut out, until)?;
    }
    if args.since_offset.is_some() {
        tell!("offset {reached}\n");
    }
    Ok(Exit::Done)
}

fn is_missing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// The run that follows this one in the same file. If somebody is restarting the job, it is waited for.
fn next_run(app: &App, last: &Launch) -> Result<Option<Box<Launch>>> {
    let asked = clock::instant();
    loop {
        let found = store::read_launch(&app.dir().run(&last.id, last.run + 1))?;
        if let Some(next) = found {
            return Ok(Some(next).filter(|next| next.output == last.output));
        }
        let job = app.observer.assess(Box::new(last.clone()))?;
        let restarting = job.outcome.is_some_and(|outcome| outcome.cause == Some(Cause::Restart));
        if !restarting || asked.elapsed() > RESTART_WAIT {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
