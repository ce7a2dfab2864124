//! `pause` and `resume`: the whole job or nothing, by its supervisor.

use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::App;
use crate::assess::Assessed;
use crate::cli::Jobs;
use crate::control::{Control, Request};
use crate::exit::Exit;
use crate::job::Launch;
use crate::state::{State, Verdict};
use crate::sys::clock;
use crate::view::JobView;

/// How long a supervisor may take to do it.
const LIMIT: Duration = Duration::from_secs(5);

pub fn pause(app: &App, args: &Jobs) -> Result<Exit> {
    each(app, args, Request::Pause, State::Paused)
}

pub fn resume(app: &App, args: &Jobs) -> Result<Exit> {
    each(app, args, Request::Resume, State::Running)
}

fn each(app: &App, args: &Jobs, request: Request, wanted: State) -> Result<Exit> {
    let (done, exit) = app.each(&args.jobs, |launch| one(app, launch, request, wanted));
    let (views, exit) = done.into_iter().fold((Vec::new(), exit), |(mut views, exit), (job, done)| {
        views.push(JobView::new(&job, &app.observer));
        (views, exit.first(done))
    });
    if app.json {
        super::print_json(&views)?;
    }
    Ok(exit)
}

fn one(app: &App, launch: Box<Launch>, request: Request, wanted: State) -> Result<(Assessed, Exit)> {
    let job = app.observer.settle(launch)?;
    if job.judgement.supervised && job.judgement.identity == Verdict::Unverified {
        notice!(
            "job {} is in another namespace: from here it cannot be seen whether it is paused (do it there)",
            job.id()
        );
        return Ok((job, Exit::NotDone));
    }
    if reached(app, &job, wanted) {
        return Ok((job, Exit::Done));
    }
    let (id, run) = (job.launch.id.clone(), job.launch.run);
    if !job.judgement.supervised || !matches!(job.state(), State::Running | State::Paused) {
        let hint = match job.state() {
            State::Orphaned => " (give it a supervisor: outlive reap --orphans adopt)",
            state if state.is_final() => " (start it again: outlive restart)",
            _ => "",
        };
        notice!("job {id} is {}: it can be neither paused nor resumed{hint}", job.state().word());
        return Ok((job, Exit::NotDone));
    }
    let Some(control) = Control::open(&app.dir().run(&id, run))
        .with_context(|| format!("cannot reach the supervisor of job {id}"))?
    else {
        bail!("the supervisor of job {id} is gone (see 'outlive show {id}')");
    };
    control.ask(run, request, LIMIT).with_context(|| format!("cannot ask the supervisor of job {id}"))?;
    // The kernel tells nobody but the parent that a process was stopped, so this looks again until it was.
    let asked = clock::instant();
    let mut pause = Duration::from_millis(1);
    let mut launch = job.launch;
    loop {
        let job = app.observer.settle(launch)?;
        if reached(app, &job, wanted) {
            return Ok((job, Exit::Done));
        }
        if job.state().is_final() {
            return Ok((job, Exit::NotDone));
        }
        if asked.elapsed() > LIMIT {
            if job.state() == wanted {
                notice!("not every process of job {id} is {}", wanted.word());
            } else {
                notice!("job {id} is still {}", job.state().word());
            }
            return Ok((job, Exit::NotDone));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
        launch = job.launch;
    }
}

/// The state is the leader's. It takes all the others too: somebody may have stopped a part of the job only, and a
/// supervisor signals one process after another.
fn reached(app: &App, job: &Assessed, wanted: State) -> bool {
    let stopped = wanted == State::Paused;
    job.state() == wanted
        && super::show::processes(app, job)
            .is_ok_and(|processes| processes.iter().all(|process| process.stopped() == stopped))
}
