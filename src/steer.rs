//! Having a run stopped, by whoever may do it: its supervisor, asked through the control FIFO; or, when that is
//! gone, a helper in a session of its own. Both go on to the end if the asker dies.

use std::fs::File;
use std::io;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::libc;

use crate::assess::{Assessed, Observer};
use crate::control::{Control, Request};
use crate::fs::RunLock;
use crate::helper::{HELPER_WAIT, Helper, Order};
use crate::job::{Cause, Launch};
use crate::store::Sidecar;
use crate::sys::clock;
use crate::sys::handle::Handle;
use crate::sys::proc::{self, Stat};
use crate::teardown::KILL_WAIT;
use crate::waiting;

/// How long a supervisor may take to read a request.
const HEAR_WAIT: Duration = Duration::from_secs(1);

/// A stop to be carried out.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    pub signal: Option<i32>,
    pub grace: Option<Duration>,
    pub cause: Cause,
}

/// How a stop went.
#[derive(Debug)]
pub struct Stopped {
    pub job: Assessed,
    /// What is still alive, with the reason.
    pub survivors: Vec<(Stat, String)>,
    /// The supervisor was gone: processes that escaped without a trace cannot be excluded.
    pub unsupervised: bool,
    /// It had ended before.
    pub already: bool,
}

impl Stopped {
    pub fn complete(&self) -> bool {
        self.survivors.is_empty() && self.job.state().is_final()
    }
}

/// A stop that has been asked for; its end is waited for apart, so that several go on side by side.
#[derive(Debug)]
pub struct Asked {
    job: Assessed,
    stop: Stop,
    how: How,
}

#[derive(Debug)]
enum How {
    Already,
    /// The job may be neither asked nor signalled.
    NotOurs,
    Supervisor(Option<Control>),
    Helper(Helper),
}

/// Asks for a stop and returns at once.
pub fn ask(observer: &Observer, launch: Box<Launch>, stop: Stop) -> Result<Asked> {
    let job = observer.settle(launch)?;
    let how = if job.state().is_final() {
        How::Already
    } else if job.judgement.supervised {
        How::Supervisor(request(observer, &job.launch, stop, Duration::ZERO)?)
    } else if job.judgement.may_signal() {
        How::Helper(start_helper(observer, &job.launch, stop)?)
    } else {
        How::NotOurs
    };
    Ok(Asked { job, stop, how })
}

fn signal_and_grace(launch: &Launch, stop: Stop) -> (i32, Duration) {
    (stop.signal.unwrap_or(launch.stop_signal), stop.grace.unwrap_or(Duration::from_millis(launch.grace_ms)))
}

/// None if the request could not be handed over within this time.
fn request(observer: &Observer, launch: &Launch, stop: Stop, patience: Duration) -> Result<Option<Control>> {
    let (signal, grace) = signal_and_grace(launch, stop);
    let Some(control) = Control::open(&observer.dir.run(&launch.id, launch.run))
        .with_context(|| format!("cannot reach the supervisor of job {}", launch.id))?
    else {
        return Ok(None);
    };
    let asked = control
        .ask(launch.run, Request::Stop { signal, grace, cause: stop.cause }, patience)
        .with_context(|| format!("cannot ask the supervisor of job {}", launch.id))?;
    Ok(asked.then_some(control))
}

impl Asked {
    /// Waits until the stop has been carried out, or cannot be.
    pub fn wait(self, observer: &Observer) -> Result<Stopped> {
        let Self { job, stop, how } = self;
        match how {
            How::Already => Ok(Stopped { job, survivors: Vec::new(), unsupervised: false, already: true }),
            How::NotOurs => {
                let why = job.judgement.why;
                let here = observer.shares_pids(&job.launch);
                let survivors = proc::stat(job.launch.identity.pid)
                    .ok()
                    .filter(|_| here)
                    .map(|stat| (stat, why.to_owned()))
                    .into_iter()
                    .collect();
                Ok(Stopped { job, survivors, unsupervised: true, already: false })
            }
            How::Helper(helper) => finish_helper(observer, job.launch, &helper, stop),
            How::Supervisor(control) => finish_supervised(observer, job, stop, control),
        }
    }
}

/// Waits until the supervisor has recorded an end that left nothing alive, or has let go of the job. False if the
/// time was over first.
fn until_empty(exit: &File, limit: Duration) -> io::Result<bool> {
    let begun = clock::instant();
    if !RunLock::Unended.wait_for(exit, Some(limit))? {
        return Ok(false);
    }
    // What is left for the supervisor to do then, to tell the ledger, is not the asker's affair.
    if Sidecar::read(exit)?.counting(true).is_some_and(|outcome| !outcome.lingering) {
        return Ok(true);
    }
    RunLock::Supervised.wait_for(exit, Some(limit.saturating_sub(begun.elapsed())))
}

fn finish_supervised(
    observer: &Observer,
    job: Assessed,
    stop: Stop,
    control: Option<Control>,
) -> Result<Stopped> {
    let (_, grace) = signal_and_grace(&job.launch, stop);
    let exit = job.exit.as_ref().context("the exit sidecar is gone")?;
    let whole = grace.saturating_add(KILL_WAIT + Duration::from_secs(1));
    let mut ended = until_empty(exit, whole.min(HEAR_WAIT))?;
    if !ended && !control.as_ref().is_some_and(Control::heard) {
        ended = wake(observer, &job, stop)?;
    }
    if !ended {
        ended = until_empty(exit, whole)?;
    }
    if let Some(outcome) = if ended { waiting::recorded(&job)? } else { None } {
        let job = observer.ended(job.launch, outcome);
        return Ok(Stopped { job, survivors: Vec::new(), unsupervised: false, already: false });
    }
    let supervised = ended || job.judgement.supervised;
    let after = observer.settle(job.launch.clone())?;
    if ended && after.judgement.may_signal() {
        // The supervisor died on the way.
        let helper = start_helper(observer, &after.launch, stop)?;
        return finish_helper(observer, after.launch, &helper, stop);
    }
    let left = if ended { after.members.clone() } else { observer.descendants(&after.launch)? };
    let survivors = left.into_iter().map(|stat| (stat.clone(), reason(&stat))).collect();
    Ok(Stopped { job: after, survivors, unsupervised: !supervised, already: false })
}

/// A supervisor that does not hear is stopped or frozen: it is let go on, asked again, and if that does not
/// help, the job is killed directly. SIGCONT is the one signal a supervisor may get. True if it has ended.
fn wake(observer: &Observer, job: &Assessed, stop: Stop) -> Result<bool> {
    let exit = job.exit.as_ref().context("the exit sidecar is gone")?;
    // Elsewhere its number and its start time may be somebody else's.
    let here = job.launch.identity.place.comparable(observer.here());
    if let (true, Ok(Some(supervisor))) = (here, Handle::proven(job.launch.supervisor)) {
        supervisor.signal(libc::SIGCONT)?;
    }
    let control = request(observer, &job.launch, stop, HEAR_WAIT)?;
    if until_empty(exit, HEAR_WAIT)? {
        return Ok(true);
    }
    if control.as_ref().is_some_and(Control::heard) {
        return Ok(false);
    }
    let helper = start_helper(observer, &job.launch, Stop { grace: Some(Duration::ZERO), ..stop })?;
    let _ = helper.answer(HELPER_WAIT);
    Ok(false)
}

/// Why a process is still there.
fn reason(stat: &Stat) -> String {
    match stat.state {
        b'D' => "in uninterruptible sleep".to_owned(),
        b'T' | b't' => "stopped or traced".to_owned(),
        _ => "still alive".to_owned(),
    }
}

fn start_helper(observer: &Observer, launch: &Launch, stop: Stop) -> Result<Helper> {
    let (signal, grace) = signal_and_grace(launch, stop);
    Helper::start(&Order {
        state_dir: observer.dir.path().into(),
        id: launch.id.clone(),
        run: launch.run,
        signal,
        grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        cause: stop.cause,
        sync: observer.sync,
    })
}

fn finish_helper(observer: &Observer, launch: Box<Launch>, helper: &Helper, stop: Stop) -> Result<Stopped> {
    let limit = signal_and_grace(&launch, stop).1.saturating_add(HELPER_WAIT);
    let answer = helper.answer(limit).with_context(|| {
        format!(
            "the helper that is to stop job {} gives no answer (see 'outlive show {}')",
            launch.id, launch.id
        )
    })?;
    if let Some(error) = answer.error {
        anyhow::bail!("cannot stop job {}: {error}", launch.id);
    }
    let job = observer.settle(launch)?;
    if job.judgement.supervised && answer.survivors.is_empty() && !job.state().is_final() {
        // Adopted before the helper had its turn: now there is somebody to ask.
        return ask(observer, job.launch, stop)?.wait(observer);
    }
    let still = answer.survivors.iter().filter_map(|&pid| proc::stat(pid).ok()).filter(|stat| !stat.dead());
    let survivors = still.map(|stat| (stat.clone(), reason(&stat))).collect();
    Ok(Stopped { job, survivors, unsupervised: true, already: false })
}
