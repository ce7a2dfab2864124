//! `prune`: forget finished jobs and their files. Nothing else ever deletes.

use std::time::Duration;

use anyhow::{Context, Result};

use super::App;
use crate::assess::Assessed;
use crate::cli::Prune;
use crate::exit::Exit;
use crate::fs::{self, Flock};
use crate::job::Launch;
use crate::ledger::{self, Book, Patience, Record};
use crate::listing;
use crate::store;
use crate::sys::clock;
use crate::view::JobView;
use crate::words;

pub fn prune(app: &App, args: &Prune) -> Result<Exit> {
    let (mut chosen, mut exit): (Vec<Assessed>, Exit) = if args.jobs.is_empty() {
        (app.assess_all(true)?.into_iter().filter(|job| job.state().is_final()).collect(), Exit::Done)
    } else {
        app.each(&args.jobs, |launch| app.observer.settle(launch))
    };
    chosen.retain(|job| {
        if job.state().is_final() {
            return true;
        }
        notice!(
            "job {} is {}: only a finished job can be pruned (stop it first)",
            job.id(),
            job.state().word()
        );
        exit = exit.first(Exit::NotDone);
        false
    });
    // In the order of their ends. The clock may have been set; what the ledger does not know yet has just ended.
    let book = ledger::read(app.dir())?;
    let seq = |job: &Assessed| book.job(job.id()).and_then(|entry| entry.ended_seq);
    chosen.sort_by_cached_key(|job| seq(job).unwrap_or(u64::MAX));
    if let Some(keep) = args.keep {
        chosen.truncate(chosen.len().saturating_sub(keep));
    }
    if let Some(age) = args.older_than {
        chosen.retain(|job| older(ended_at(job), age));
    }
    let views: Vec<JobView> = chosen
        .iter()
        .map(|job| JobView { action: Some("pruned"), ..JobView::new(job, &app.observer) })
        .collect();
    if args.dry_run {
        report(app, &views)?;
        return Ok(exit);
    }
    // It may take the very room that the records of this need.
    listing::forget(app.dir());
    fs::remove_hidden(&app.dir().jobs());
    if args.jobs.is_empty() {
        finish_broken_off(app, &book)?;
    }
    let mut pruned = Vec::new();
    for (job, view) in chosen.iter().zip(views) {
        match one(app, &job.launch, seq(job).is_some()) {
            Ok(()) => pruned.push(view),
            Err(error) => {
                notice!("cannot prune job {}: {}", job.id(), words::of(&error));
                exit = exit.first(Exit::NotDone);
            }
        }
    }
    if !pruned.is_empty() {
        ledger::compact(app.dir(), super::events::slowest_reader(app.dir()), app.observer.sync)?;
        // Somebody may have made one meanwhile.
        listing::forget(app.dir());
    }
    report(app, &pruned)?;
    Ok(exit)
}

fn report(app: &App, views: &[JobView]) -> Result<()> {
    if app.json {
        return super::print_json(views);
    }
    let ids: String = views.iter().map(|view| format!("{}\n", view.facts.id)).collect();
    super::print(ids.as_bytes())
}

/// What an earlier prune has recorded and not deleted: it would still be found by its id.
fn finish_broken_off(app: &App, book: &Book) -> Result<()> {
    for id in store::ids(app.dir())?.into_iter().filter(|id| book.forgotten.contains(id)) {
        let _op = app.observer.op(&id)?;
        // Somebody may have restarted it meanwhile.
        if ledger::read(app.dir())?.forgotten.contains(&id) {
            store::delete(app.dir(), &id)?;
        }
    }
    Ok(())
}

fn ended_at(job: &Assessed) -> &str {
    job.outcome.as_ref().map_or("", |outcome| outcome.at.as_str())
}

fn older(at: &str, age: Duration) -> bool {
    humantime::parse_rfc3339_weak(at)
        .is_ok_and(|then| clock::wall().duration_since(then).unwrap_or_default() >= age)
}

/// Recorded first, then deleted: what is left of a broken-off prune is debris, not a job.
fn one(app: &App, launch: &Launch, told: bool) -> Result<()> {
    let id = &launch.id;
    let lock = |name: &String| Flock::take(&app.dir().name(name), &format!("the name '{name}'"));
    // In the order of everybody else: name, op, ledger.
    let name = launch.name.as_ref().map(lock).transpose()?;
    let _op = app.observer.op(id)?;
    let again = crate::lookup::latest(app.dir(), id)?.with_context(|| format!("job {id} is gone"))?;
    let job = app.observer.assess(again)?;
    if !job.state().is_final() {
        anyhow::bail!("it is {} again", job.state().word());
    }
    let run = job.launch.run;
    if told {
        job.let_supervisor_finish()?;
    } else {
        app.observer.finish(job)?;
    }
    let note = Record::Note { kind: "pruned", id: id.clone(), run, at: clock::now(), detail: None };
    ledger::append(app.dir(), &[note], Patience::Command, app.observer.sync)?;
    if let (Some(name), Some(held)) = (&launch.name, &name) {
        forget_name(app, name, held, id);
    }
    store::delete(app.dir(), id)
        .context("it is forgotten, but its files are still there ('outlive reap' deletes them)")
}

/// Deleted under its lock, for whoever launches under this name right now waits for that, and finds that it was
/// deleted. An empty file is the lock that was just made for a name that had none.
fn forget_name(app: &App, name: &str, held: &Flock, id: &str) {
    let unused = || held.0.metadata().is_ok_and(|meta| meta.len() == 0);
    let ours = || crate::lookup::named(app.dir(), name).is_ok_and(|now| now.as_deref() == Some(id));
    if unused() || ours() {
        let _ = std::fs::remove_file(app.dir().name(name));
    }
}
