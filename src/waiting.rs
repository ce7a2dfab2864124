//! Blocking until a run is over, woken by the kernel: by its lock, or where nobody supervises it, by a pidfd.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::assess::{Assessed, Observer};
use crate::exit::{self, Exit};
use crate::fs::RunLock;
use crate::job::{Launch, Outcome};
use crate::state::State;
use crate::store::Sidecar;
use crate::sys::clock;
use crate::sys::handle::Handle;

/// How long to wait for a process that cannot be held: no descriptor is left, or the kernel hides it.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How one wait ended.
#[derive(Debug)]
pub struct Waited {
    pub job: Assessed,
    pub timed_out: bool,
}

impl Waited {
    pub fn status(&self) -> Exit {
        match &self.job.outcome {
            _ if self.timed_out => Exit::TimedOut,
            Some(outcome) => exit::of_outcome(outcome),
            None => Exit::Interrupted,
        }
    }
}

/// Blocks until the leader has ended (or, for `group`, until nothing is left).
pub fn until_over(
    observer: &Observer,
    launch: Box<Launch>,
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
        if let Some(outcome) = recorded(&job)? {
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
    let leader = job.launch.identity.process();
    let members = job.members.iter().map(|stat| stat.id());
    let mut unseen = false;
    for id in std::iter::once(leader).chain(members) {
        match Handle::proven(id) {
            Ok(Some(process)) => return Ok(process.wait(limit).map(drop)?),
            Ok(None) => {}
            Err(_) => unseen = true,
        }
    }
    // Where none can be had, nobody wakes us.
    if unseen {
        std::thread::sleep(limit.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN));
    }
    Ok(())
}

/// An end that left nothing alive, from the sidecar that is open here: nothing need be looked at any more. If the job
/// was pruned meanwhile, nothing more can be.
pub fn recorded(job: &Assessed) -> Result<Option<Outcome>> {
    let Some(exit) = &job.exit else { return Ok(None) };
    let sidecar = Sidecar::read(exit)?;
    if let Some(outcome) = sidecar.clone().counting(true).filter(|outcome| !outcome.lingering) {
        return Ok(Some(outcome));
    }
    let pruned = std::os::unix::fs::MetadataExt::nlink(&exit.metadata()?) == 0;
    Ok(if pruned { sidecar.counting(false) } else { None })
}
