//! Giving a job that has lost its supervisor a new one.

use std::os::fd::AsRawFd;

use anyhow::{Context, Result, bail};

use crate::assess::{Assessed, Observer};
use crate::brief::{self, Numbers, Strings};
use crate::bytes::Bytes;
use crate::fs::{self, RunLock, open_private};
use crate::job::Launch;
use crate::launch;
use crate::ledger::{self, Patience, Record};
use crate::state::State;
use crate::store;
use crate::sys::handle::Handle;
use crate::sys::proc;
use crate::sys::spawn::{self, Message};

/// Adopts an orphan whose leader lives. The run goes on as it was; its record names the new supervisor.
pub fn adopt(observer: &Observer, job: Assessed) -> Result<Assessed> {
    let id = job.launch.id.clone();
    let _op = observer.op(&id)?;
    let job = observer.assess(job.launch)?;
    if job.state() != State::Orphaned {
        return Ok(job);
    }
    let launch = job.launch;
    let leader = launch.identity.process();
    let Some(process) = Handle::proven(leader)? else {
        bail!("the leader of job {id} is gone; what it left cannot be adopted, only stopped");
    };
    let run = observer.dir.run(&id, launch.run);
    let exit =
        open_private(&run.exit()).with_context(|| format!("cannot open the exit sidecar of job {id}"))?;
    if !RunLock::Both.attempt(&exit)? {
        bail!("job {id} has a supervisor again");
    }
    let control = launch::open_control(&run)?;
    let owner = launch.owner.map(Handle::proven).transpose()?.flatten();
    let line = spawn::exec_self_with_line(crate::SUPERVISE).context("cannot start a supervisor")?;
    // In the places of directory, stdin, stdout and stderr, which are not needed any more: the leader.
    let held = process.fd().map_or(exit.as_raw_fd(), |fd| fd.as_raw_fd());
    let mut fds = vec![exit.as_raw_fd(), control.as_raw_fd(), held, held, held, held];
    fds.extend(owner.as_ref().and_then(Handle::fd).map(|fd| fd.as_raw_fd()));
    brief::send(
        &line.fd,
        numbers(&launch, owner.is_some(), observer.sync),
        &strings(&launch, observer),
        &fds,
    )
    .context("cannot brief the supervisor")?;
    let supervisor = proc::stat(line.pid).map(|stat| stat.id()).context("the new supervisor ended")?;
    // Recorded before we let go of the lock: from then on it must be found where the record says.
    let launch = Box::new(Launch { supervisor, adopted: true, ..*launch });
    fs::replace(&run.launch(), &store::encode_launch(&launch)?, observer.sync)
        .with_context(|| format!("cannot record the new supervisor of job {id}"))?;
    ledger::append(&observer.dir, &[Record::Adopted(launch.clone())], Patience::Command, observer.sync)?;
    drop(exit);
    launch::open_gate(&line.fd).context("cannot tell the new supervisor that it is recorded")?;
    match launch::receive(&line.fd)? {
        Some(Message { tag: Message::LAUNCHED, .. }) => observer.assess(launch),
        _ => bail!("the new supervisor of job {id} ended at once"),
    }
}

/// The time limit of the launch has been running on since; the rest of it is what is left.
fn numbers(launch: &Launch, owner_lives: bool, sync: bool) -> Numbers {
    let lasted = crate::sys::clock::boottime_ms().saturating_sub(launch.boottime_ms);
    Numbers {
        run: launch.run,
        umask: launch.umask,
        timeout_ms: launch.timeout_ms.map(|limit| limit.saturating_sub(lasted).max(1)),
        stop_signal: launch.stop_signal,
        grace_ms: launch.grace_ms,
        on_owner_exit: launch.on_owner_exit,
        sync,
        owner: launch.owner.filter(|_| owner_lives),
        adopt: Some(launch.identity.process()),
        max_output: launch.options.max_output,
        output_offset: launch.output_offset,
    }
}

fn strings<'a>(launch: &'a Launch, observer: &'a Observer) -> Strings<'a> {
    Strings {
        state_dir: observer.dir.path().as_os_str(),
        id: &launch.id,
        on_exit: launch.options.on_exit.as_ref().map_or(std::ffi::OsStr::new(""), Bytes::as_os),
        name: launch.name.as_deref().unwrap_or(""),
        output: launch.output.as_os(),
        candidates: Vec::new(),
        argv: Vec::new(),
        env: Vec::new(),
    }
}
