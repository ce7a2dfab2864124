//! `logs`: the output of a job, to the byte.

use std::fs::File;
use std::io;

use anyhow::{Context, Result};

use super::{App, Refused};
use crate::cli::Logs;
use crate::exit::Exit;
use crate::lookup;
use crate::output::{Until, copy, end_of_run, newest_part, tail};
use crate::store;

pub fn logs(app: &App, args: &Logs) -> Result<Exit> {
    let latest = lookup::find(app.dir(), &args.job)?;
    let id = latest.id.clone();
    let launch = match args.run {
        Some(run) => {
            let launch = store::read_launch(&app.dir().run(&id, run))?;
            launch.ok_or_else(|| {
                lookup::NoSuchJob(format!("job {id} has no run {run} (the latest is {})", latest.run))
            })?
        }
        None => latest,
    };
    let path = launch.output.clone();
    let file = File::open(path.as_path())
        .with_context(|| format!("the output of job {id} is not there any more: {}", path.display()))?;
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
    let mut out = io::stdout().lock();
    let job = app.observer.settle(launch)?;
    let until =
        if args.follow && end.is_none() { Until::Empty(&job, &app.observer) } else { Until::Offset(length) };
    let reached = copy(&file, start, &mut out, until)?.at;
    if args.since_offset.is_some() {
        tell!("offset {reached}\n");
    }
    Ok(Exit::Done)
}
