//! `wait`: block, woken by the kernel, until jobs have ended; return their status.

use std::io::Write;
use std::sync::mpsc;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::App;
use crate::assess::Observer;
use crate::cli::Wait;
use crate::exit::Exit;
use crate::job::{Cause, End, Launch};
use crate::lookup;
use crate::output::{self, Until};
use crate::sys::clock;
use crate::view::{JobView, state_words};
use crate::waiting::{Waited, until_over};
use crate::words;

/// What a shell reports of a program that wrote into a pipe nobody reads: 128 + SIGPIPE.
const SIGPIPE_STATUS: u8 = 141;

pub fn wait(app: &App, args: &Wait) -> Result<Exit> {
    let deadline = args.timeout.and_then(|limit| clock::instant().checked_add(limit));
    // The runs are fixed now: a later restart does not move what is waited for. A word that names no job has
    // its place in the order of statuses too.
    let found: Vec<Result<Box<Launch>>> = if args.jobs.is_empty() {
        every_living(app)?.map(Ok).collect()
    } else {
        args.jobs.iter().map(|word| lookup::find(app.dir(), word)).collect()
    };
    for error in found.iter().filter_map(|found| found.as_ref().err()) {
        notice!("{}", words::of(error));
    }
    let known = found.iter().filter(|found| found.is_ok()).count();
    if args.any && known == 0 {
        bail!("no job to wait for (see 'outlive ls --all')");
    }
    if found.is_empty() {
        notice!("no job is alive: there is nothing to wait for");
    }
    let mut exit = Exit::Done;
    let mut views = Vec::new();
    let mut note = |waited: &Waited| {
        explain(waited, &app.observer);
        if app.json {
            views.push(view(waited, &app.observer));
        }
    };
    if args.any {
        let waited = first(app, found.into_iter().flatten(), args.group, deadline)?;
        note(&waited);
        exit = waited.status();
    } else {
        for found in found {
            let Ok(launch) = found else {
                exit = exit.first(Exit::Failed);
                continue;
            };
            let waited = until_over(&app.observer, launch, args.group, deadline)?;
            note(&waited);
            exit = exit.first(waited.status());
        }
    }
    if app.json {
        super::print_json(&views)?;
    }
    Ok(exit)
}

fn every_living(app: &App) -> Result<impl Iterator<Item = Box<Launch>>> {
    Ok(app.assess_all(false)?.into_iter().filter(|job| job.state().leader_lives()).map(|job| job.launch))
}

fn view(waited: &Waited, observer: &Observer) -> JobView {
    JobView { timed_out: waited.timed_out.then_some(true), ..JobView::new(&waited.job, observer) }
}

/// A status that is not the command's own is explained on stderr.
fn explain(waited: &Waited, observer: &Observer) {
    let id = waited.job.id();
    let plain = waited.job.outcome.as_ref().is_some_and(|outcome| {
        outcome.exit_code.is_some()
            && matches!(outcome.state, End::Exited | End::Stopped)
            && outcome.cause != Some(Cause::Timeout)
    });
    if waited.timed_out {
        notice!("job {id} goes on: the wait is over, the job is not");
    } else if !plain {
        let words = state_words(&JobView::new(&waited.job, observer));
        notice!("job {id}: {words} (see 'outlive show {id}')");
    }
}

/// `--any`: the first, in the order given, that is over already; else a thread for each job, and the first that
/// is over answers.
fn first(
    app: &App,
    launches: impl Iterator<Item = Box<Launch>>,
    group: bool,
    deadline: Option<Instant>,
) -> Result<Waited> {
    let mut open = Vec::new();
    for launch in launches {
        let now = until_over(&app.observer, launch, group, Some(clock::instant()))?;
        if !now.timed_out {
            return Ok(now);
        }
        open.push(now);
    }
    let (send, receive) = mpsc::channel();
    for waited in &open {
        let (send, launch) = (send.clone(), waited.job.launch.clone());
        let observer = app.observer.clone();
        crate::sys::thread(move || {
            // Nobody listens any more once another job was first.
            let _ = send.send(until_over(&observer, launch, group, None));
        })
        .context("cannot wait for several jobs at once")?;
    }
    let answer = match deadline {
        Some(deadline) => receive.recv_timeout(deadline.saturating_duration_since(clock::instant())).ok(),
        None => receive.recv().ok(),
    };
    // The time was over first: any of them says so.
    answer.unwrap_or_else(|| open.into_iter().next().context("no job to wait for"))
}

/// `run --wait`: copies the output through until the job has ended, and returns its status. An interrupt stops
/// the job; any other end of this process leaves it alone.
pub fn stay(app: &App, launch: Box<Launch>) -> Result<Exit> {
    if !app.json {
        tell!("{}\n", launch.id);
    }
    let id = launch.id.clone();
    super::stop::on_interrupt(app, &launch)?;
    // Nothing can be copied from where the user has sent it, if that is no file.
    if !app.json && output::not_a_file(launch.output.as_path()).is_none() {
        let mut out = std::io::stdout();
        let file = output::open(launch.output.as_path())
            .with_context(|| format!("cannot read the output of job {id}"))?;
        let job = app.observer.assess(launch.clone())?;
        let until = Until::Ended(&job, &app.observer);
        if output::copy(&file, launch.output_offset, &mut out, until)?.unread {
            notice!("nobody reads the output any more; job {id} goes on (see 'outlive logs {id}')");
            return Ok(Exit::Job(SIGPIPE_STATUS));
        }
        out.flush()?;
    }
    let waited = until_over(&app.observer, launch, false, None)?;
    explain(&waited, &app.observer);
    if app.json {
        super::print_json(&view(&waited, &app.observer))?;
    }
    Ok(waited.status())
}
