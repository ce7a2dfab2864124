//! Having a run stopped, by whoever may do it: its supervisor, asked through the control FIFO; or, when that is
//! gone, a helper in a session of its own. Both go on to the end if the asker dies.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::libc;
use serde::{Deserialize, Serialize};

use crate::assess::{Assessed, Observer};
use crate::bytes::Bytes;
use crate::control::{Control, Request};
use crate::fs::RunLock;
use crate::job::{Cause, End, Launch, Outcome};
use crate::ledger::{self, Patience, Record};
use crate::members::{self, RunMark};
use crate::paths::StateDir;
use crate::state::State;
use crate::store::Sidecar;
use crate::sys::handle::Handle;
use crate::sys::proc::{self, Stat};
use crate::sys::{clock, spawn, wait};
use crate::teardown::{self, KILL_WAIT};

/// How long a supervisor may take to read a request.
const HEAR_WAIT: Duration = Duration::from_secs(1);

/// What a helper may need besides the grace: to wait for the lock of the job, and for what it killed to go.
const HELPER_WAIT: Duration = Duration::from_secs(40);

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
    Helper(UnixStream),
}

/// Asks for a stop and returns at once.
pub fn ask(observer: &Observer, launch: Launch, stop: Stop) -> Result<Asked> {
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
                let survivors = proc::stat(job.launch.identity.pid)
                    .ok()
                    .map(|stat| (stat, why.to_owned()))
                    .into_iter()
                    .collect();
                Ok(Stopped { job, survivors, unsupervised: true, already: false })
            }
            How::Helper(line) => finish_helper(observer, job.launch, line, stop),
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
    let supervised = ended || job.judgement.supervised;
    let after = observer.settle(job.launch.clone())?;
    if ended && after.judgement.may_signal() {
        // The supervisor died on the way.
        let line = start_helper(observer, &after.launch, stop)?;
        return finish_helper(observer, after.launch, line, stop);
    }
    let left = if ended { after.members.clone() } else { supervised_members(observer, &after.launch)? };
    let survivors = left.into_iter().map(|stat| (stat.clone(), reason(&stat))).collect();
    Ok(Stopped { job: after, survivors, unsupervised: !supervised, already: false })
}

fn supervised_members(observer: &Observer, launch: &Launch) -> io::Result<Vec<Stat>> {
    members::supervised(launch.supervisor.pid, &RunMark::new(&launch.id, launch.run, observer.dir.path()))
}

/// A supervisor that does not hear is stopped or frozen: it is let go on, asked again, and if that does not
/// help, the job is killed directly. SIGCONT is the one signal a supervisor may get. True if it has ended.
fn wake(observer: &Observer, job: &Assessed, stop: Stop) -> Result<bool> {
    let exit = job.exit.as_ref().context("the exit sidecar is gone")?;
    if let Ok(Some(supervisor)) = Handle::proven(job.launch.supervisor) {
        supervisor.signal(libc::SIGCONT)?;
    }
    let control = request(observer, &job.launch, stop, HEAR_WAIT)?;
    if until_empty(exit, HEAR_WAIT)? {
        return Ok(true);
    }
    if control.as_ref().is_some_and(Control::heard) {
        return Ok(false);
    }
    let line = start_helper(observer, &job.launch, Stop { grace: Some(Duration::ZERO), ..stop })?;
    let _ = read_answer(&line, HELPER_WAIT);
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

/// What a helper is told.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    state_dir: Bytes,
    id: String,
    run: u32,
    signal: i32,
    grace_ms: u64,
    cause: Cause,
    sync: bool,
}

/// What a helper answers: the survivors' PIDs.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Answer {
    survivors: Vec<i32>,
    error: Option<String>,
}

/// The word by which this program is executed as a helper.
pub const HELPER: &str = "outlive:stop";

fn start_helper(observer: &Observer, launch: &Launch, stop: Stop) -> Result<UnixStream> {
    let (signal, grace) = signal_and_grace(launch, stop);
    let order = Order {
        state_dir: observer.dir.path().into(),
        id: launch.id.clone(),
        run: launch.run,
        signal,
        grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        cause: stop.cause,
        sync: observer.sync,
    };
    let line = spawn::exec_self_with_line(HELPER).context("cannot start a helper")?;
    let mut text = serde_json::to_vec(&order)?;
    text.push(b'\n');
    (&line.fd).write_all(&text).context("cannot tell the helper")?;
    // It hands over to a child of its own at once, which nobody here is an ancestor of.
    wait_for_child(line.pid);
    Ok(line.fd)
}

fn wait_for_child(pid: i32) {
    if let Ok(child) = Handle::open(pid) {
        let _ = child.wait(Some(HELPER_WAIT));
    }
    let _ = wait::reap(wait::Child::Pid(pid));
}

/// Nobody waits for ever for a helper that does not get on: frozen, stopped, or on a disk that hangs.
fn read_answer(mut line: &UnixStream, limit: Duration) -> io::Result<Answer> {
    let mut text = String::new();
    line.set_read_timeout(Some(limit))?;
    line.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

fn finish_helper(observer: &Observer, launch: Launch, line: UnixStream, stop: Stop) -> Result<Stopped> {
    let limit = signal_and_grace(&launch, stop).1.saturating_add(HELPER_WAIT);
    let answer = read_answer(&line, limit).with_context(|| {
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

/// The whole life of a helper: detach, take `op`, prove, end, record.
pub fn help() -> Result<()> {
    let mut line = spawn::let_go([])?;
    if !spawn::hand_over()? {
        return Ok(());
    }
    spawn::name_process("outlive:helper");
    spawn::Title::own().change("outlive:helper");
    let mut text = Vec::new();
    let mut byte = [0_u8];
    while line.read(&mut byte)? == 1 && byte != *b"\n" {
        text.push(byte[0]);
    }
    let order: Order = serde_json::from_slice(&text)?;
    let answer = match carry_out(&order) {
        Ok(survivors) => Answer { survivors, error: None },
        Err(error) => Answer { survivors: Vec::new(), error: Some(crate::words::of(&error)) },
    };
    let _ = line.write_all(&serde_json::to_vec(&answer)?);
    Ok(())
}

fn carry_out(order: &Order) -> Result<Vec<i32>> {
    let observer = Observer::new(StateDir::trusted(order.state_dir.as_path()), order.sync);
    let _op = observer.op(&order.id)?;
    let run_dir = observer.dir.run(&order.id, order.run);
    let launch = match crate::store::read_launch(&run_dir)? {
        Some(launch) => launch,
        None => crate::lookup::latest(&observer.dir, &order.id)?
            .filter(|launch| launch.run == order.run)
            .context("its launch record is gone")?,
    };
    let job = observer.assess(launch.clone())?;
    let supervised = job.judgement.supervised;
    if job.state().is_final() || !job.judgement.may_signal() {
        return Ok(Vec::new());
    }
    let note = Record::Note {
        kind: "stop-requested",
        id: order.id.clone(),
        run: order.run,
        at: clock::now(),
        detail: Some(order.cause.word()),
    };
    let _ = ledger::append(&observer.dir, &[note], Patience::Command, false);
    let look = || -> Result<Vec<Stat>> {
        let found = if supervised {
            supervised_members(&observer, &launch)?
        } else {
            provable_now(&observer, &launch)?
        };
        let never = members::untouchable(&proc::table()?, proc::own_stat()?.id());
        Ok(found.into_iter().filter(|stat| !never.contains(&stat.pid)).collect())
    };
    // A look that fails does not mean that nobody is left: what was seen last still counts.
    let last = RefCell::new(look()?);
    let members = || -> Vec<Stat> {
        if let Ok(found) = look() {
            last.replace(found);
        }
        last.borrow().clone()
    };
    let left = teardown::end_all(&members, order.signal, Duration::from_millis(order.grace_ms));
    if left.is_empty() && !supervised {
        record_orphan_end(&observer, launch, order.cause)?;
    }
    Ok(left.iter().map(|stat| stat.pid).collect())
}

/// The provable members now, the leader among them if it still is the one recorded.
fn provable_now(observer: &Observer, launch: &Launch) -> Result<Vec<Stat>> {
    let job = observer.assess(launch.clone())?;
    Ok(if job.judgement.may_signal() { job.members } else { Vec::new() })
}

/// An orphan's status is known to nobody: it was stopped because somebody asked, but how it ended is not told.
fn record_orphan_end(observer: &Observer, launch: Launch, cause: Cause) -> Result<()> {
    let path = observer.dir.run(&launch.id, launch.run).exit();
    let file = crate::fs::open_private(&path).with_context(|| format!("cannot open {}", path.display()))?;
    let job = observer.assess(launch.clone())?;
    if job.outcome.is_some() || job.state() != State::Interrupted || !RunLock::Both.attempt(&file)? {
        return Ok(());
    }
    let outcome =
        Outcome { executed: Some(true), ..Outcome::bare(End::Interrupted, Some(cause), clock::now()) };
    observer.commit(&launch, &file, &outcome)
}
