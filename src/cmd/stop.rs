//! `stop`: end jobs, and say what is left of them.

use std::sync::Once;

use anyhow::Result;
use nix::sys::signal::{SigSet, Signal};

use super::{App, Progress};
use crate::assess::Observer;
use crate::cli;
use crate::exit::Exit;
use crate::job::{Cause, Launch};
use crate::steer::{self, Asked, Stop, Stopped};
use crate::sys::{Ability, can};
use crate::view::{JobView, Survivor};
use crate::words;

pub fn stop(app: &App, args: &cli::Stop) -> Result<Exit> {
    let how = Stop { signal: args.signal, grace: args.grace, cause: Cause::Stop };
    let mut launches = Vec::new();
    let mut exit = Exit::Done;
    if args.all || !args.labels.is_empty() {
        let book = app.book()?;
        if !app.json {
            super::tell_unlabelled(&book, &args.labels);
        }
        let all = app.assess_book(book, false)?.into_iter().map(|job| job.launch);
        launches.extend(all.filter(|launch| super::labelled(launch, &args.labels)));
    }
    let (named, named_exit) = app.each(&args.jobs, Ok);
    exit = exit.first(named_exit);
    launches.extend(named);
    // The job we run inside of comes last: nobody would be left to ask for the others.
    let inside = crate::env::current_job();
    launches.sort_by_key(|launch| inside.as_deref() == Some(&launch.id));
    launches.dedup_by(|a, b| a.id == b.id);

    // All are asked first, then all are waited for: their graces pass side by side.
    let mut asked: Vec<Asked> = Vec::new();
    for launch in launches {
        match steer::ask(&app.observer, launch, how) {
            Ok(stop) => asked.push(stop),
            Err(error) => {
                notice!("{}", words::of(&error));
                exit = exit.first(super::exit_of(&error));
            }
        }
    }
    let mut views = Vec::new();
    let progress = Progress::new("stopping", asked.len());
    for (done, stop) in asked.into_iter().enumerate() {
        progress.show(done);
        match stop.wait(&app.observer) {
            Ok(stopped) => {
                exit = exit.first(report(&stopped));
                if app.json {
                    views.push(view(&stopped, &app.observer));
                }
            }
            Err(error) => {
                notice!("{}", words::of(&error));
                exit = exit.first(super::exit_of(&error));
            }
        }
    }
    progress.clear();
    if app.json {
        super::print_json(&views)?;
    }
    Ok(exit)
}

/// Tells on stderr what is not as it should be.
pub fn report(stopped: &Stopped) -> Exit {
    let job = &stopped.job;
    if stopped.complete() {
        if stopped.unsupervised && !stopped.already {
            notice!(
                "job {} had lost its supervisor; nothing provably its own is left, but escaped processes cannot be excluded",
                job.id()
            );
        } else if !stopped.already && !can(Ability::Subreaper) {
            static SAID: Once = Once::new();
            SAID.call_once(|| {
                notice!("nothing that can be seen is left, but here escaped processes cannot be excluded (see 'outlive doctor')");
            });
        }
        return Exit::Done;
    }
    for (stat, reason) in &stopped.survivors {
        notice!(
            "process {} ({}) of job {} is still alive: {reason}",
            stat.pid,
            String::from_utf8_lossy(&stat.comm),
            job.id()
        );
    }
    if stopped.survivors.is_empty() {
        notice!(
            "job {} was not stopped, it is {}: {}; left alone",
            job.id(),
            job.state().word(),
            job.judgement.why
        );
    }
    Exit::NotDone
}

pub fn view(stopped: &Stopped, observer: &Observer) -> JobView {
    let survivor = |(stat, reason): &(crate::sys::proc::Stat, String)| Survivor {
        pid: stat.pid,
        command: String::from_utf8_lossy(&stat.comm).into_owned(),
        reason: reason.clone(),
    };
    JobView {
        survivors: Some(stopped.survivors.iter().map(survivor).collect()),
        ..JobView::new(&stopped.job, observer)
    }
}

/// From now on an interrupt from the keyboard stops the job; a second one kills it.
pub fn on_interrupt(app: &App, launch: &Launch) -> Result<()> {
    let interrupt: SigSet = [Signal::SIGINT].into_iter().collect();
    interrupt.thread_block()?;
    let observer = app.observer.clone();
    let launch = launch.clone();
    crate::sys::thread(move || {
        let mut grace = None;
        while interrupt.wait().is_ok() {
            let stop = Stop { signal: None, grace, cause: Cause::Stop };
            if let Err(error) = steer::ask(&observer, Box::new(launch.clone()), stop) {
                notice!("{}", words::of(&error));
            }
            grace = Some(std::time::Duration::ZERO);
        }
    })?;
    Ok(())
}
