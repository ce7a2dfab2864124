//! `wait`: block, woken by the kernel, until jobs have ended; return their status.

use std::fs::File;
use std::io::Write;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::App;
use crate::assess::{Assessed, Observer};
use crate::cli::Wait;
use crate::exit::{self, Exit};
use crate::fs::RunLock;
use crate::job::{Launch, ProcessId};
use crate::lookup;
use crate::paths::StateDir;
use crate::state::State;
use crate::store::Sidecar;
use crate::sys::clock;
use crate::sys::pidfd::PidFd;
use crate::view::JobView;

pub fn wait(app: &App, args: &Wait) -> Result<Exit> {
    let deadline = args.timeout.and_then(|limit| clock::instant().checked_add(limit));
    // The runs are fixed now: a later restart does not move what is waited for. A word that names no job has
    // its place in the order of statuses too.
    let found: Vec<Result<Launch>> = if args.jobs.is_empty() {
        every_living(app)?.into_iter().map(Ok).collect()
    } else {
        args.jobs.iter().map(|word| lookup::find(app.dir(), word)).collect()
    };
    for error in found.iter().filter_map(|found| found.as_ref().err()) {
        eprintln!("outlive: {error:#}");
    }
    let known = found.iter().filter(|found| found.is_ok()).count();
    if args.any && known == 0 {
        bail!("no job to wait for");
    }
    let mut exit = Exit::Done;
    let mut views = Vec::new();
    let mut note = |waited: &Waited| views.push(view(waited, &app.observer));
    if args.any {
        let launches = found.into_iter().flatten().collect();
        let waited = first(app, launches, args.group, deadline)?;
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

fn every_living(app: &App) -> Result<Vec<Launch>> {
    Ok(app
        .assess_all(false)?
        .into_iter()
        .filter(|job| job.state().leader_lives())
        .map(|job| job.launch)
        .collect())
}

/// How one wait ended.
#[derive(Debug)]
pub struct Waited {
    job: Assessed,
    timed_out: bool,
}

impl Waited {
    fn status(&self) -> Exit {
        match &self.job.outcome {
            _ if self.timed_out => Exit::TimedOut,
            Some(outcome) => exit::of_outcome(outcome),
            None => Exit::Interrupted,
        }
    }
}

fn view(waited: &Waited, observer: &Observer) -> JobView {
    JobView { timed_out: waited.timed_out.then_some(true), ..JobView::new(&waited.job, observer) }
}

/// Blocks until the leader has ended (or, for `group`, until nothing is left).
pub fn until_over(
    observer: &Observer,
    launch: Launch,
    group: bool,
    deadline: Option<Instant>,
) -> Result<Waited> {
    let mut job = observer.settle(launch)?;
    loop {
        let over = match job.state() {
            state if state.is_final() => true,
            State::Lingering => !group,
            State::Unknown => !job.judgement.supervised,
            _ => false,
        };
        if over {
            return Ok(Waited { job, timed_out: false });
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(clock::instant()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(Waited { job, timed_out: true });
        }
        block(&job, group, left)?;
        // A job that was pruned meanwhile is answered from its sidecar, which is still open here.
        if let Some(outcome) = pruned_outcome(&job)? {
            let job = observer.ended(job.launch, outcome);
            return Ok(Waited { job, timed_out: false });
        }
        job = observer.settle(job.launch)?;
    }
}

/// Sleeps until something about the job may have changed.
fn block(job: &Assessed, group: bool, limit: Option<Duration>) -> Result<()> {
    if job.judgement.supervised {
        let exit = job.exit.as_ref().context("the exit sidecar is gone")?;
        let lock = if group { RunLock::Supervised } else { RunLock::Unended };
        lock.wait_for(exit, limit).with_context(|| format!("cannot wait for job {}", job.id()))?;
        return Ok(());
    }
    // Without a supervisor: one living member after another.
    let leader = ProcessId { pid: job.launch.identity.pid, start_time: job.launch.identity.start_time };
    let members = job.members.iter().map(|stat| stat.id());
    for id in std::iter::once(leader).chain(members) {
        if let Ok(Some(process)) = PidFd::proven(id) {
            process.wait(limit)?;
            return Ok(());
        }
    }
    Ok(())
}

fn pruned_outcome(job: &Assessed) -> Result<Option<crate::job::Outcome>> {
    let Some(exit) = &job.exit else { return Ok(None) };
    let gone = std::os::unix::fs::MetadataExt::nlink(&exit.metadata()?) == 0;
    Ok(if gone { Sidecar::read(exit)?.counting(false) } else { None })
}

/// `--any`: a thread for each job; the first that is over answers.
fn first(app: &App, launches: Vec<Launch>, group: bool, deadline: Option<Instant>) -> Result<Waited> {
    let (send, receive) = mpsc::channel();
    let spare = launches.first().cloned();
    for launch in launches {
        let send = send.clone();
        let observer = Observer::new(StateDir::trusted(app.dir().path()), app.observer.sync);
        std::thread::spawn(move || {
            // Nobody listens any more once another job was first.
            let _ = send.send(until_over(&observer, launch, group, None));
        });
    }
    let answer = match deadline {
        Some(deadline) => receive
            .recv_timeout(deadline.saturating_duration_since(clock::instant()).max(Duration::from_millis(1)))
            .ok(),
        None => receive.recv().ok(),
    };
    match (answer, spare) {
        (Some(waited), _) => waited,
        (None, Some(launch)) => Ok(Waited { job: app.observer.settle(launch)?, timed_out: true }),
        (None, None) => bail!("nothing to wait for"),
    }
}

/// `run --wait`: copies the output through until the job has ended, and returns its status. An interrupt stops
/// the job; any other end of this process leaves it alone.
pub fn stay(app: &App, launch: Launch) -> Result<Exit> {
    if !app.json {
        eprintln!("{}", launch.id);
    }
    let id = launch.id.clone();
    super::stop::on_interrupt(app, &launch)?;
    if !app.json {
        let mut out = std::io::stdout();
        let file = File::open(launch.output.as_path())
            .with_context(|| format!("cannot read the output of job {id}"))?;
        let job = app.observer.assess(launch.clone())?;
        super::logs::copy(
            &file,
            launch.output_offset,
            &mut out,
            super::logs::Until::Ended(&job, &app.observer),
        )?;
        out.flush()?;
    }
    let waited = until_over(&app.observer, launch, false, None)?;
    if app.json {
        super::print_json(&view(&waited, &app.observer))?;
    }
    Ok(waited.status())
}
