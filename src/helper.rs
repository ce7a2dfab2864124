//! Ending a run that nobody supervises: done by this program, executed anew as a helper in a session of its own, so
//! that it goes on to the end if the asker dies, and that the asker may be a member of the job.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::assess::Observer;
use crate::bytes::Bytes;
use crate::fs::RunLock;
use crate::job::{Cause, End, Launch, Outcome};
use crate::ledger::{self, Patience, Record};
use crate::members;
use crate::paths::StateDir;
use crate::state::State;
use crate::sys::handle::Handle;
use crate::sys::proc::{self, Stat};
use crate::sys::{clock, spawn, wait};
use crate::teardown;

/// What a helper may need besides the grace: to wait for the lock of the job, and for what it killed to go.
pub const HELPER_WAIT: Duration = Duration::from_secs(40);

/// What a helper is told.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub state_dir: Bytes,
    pub id: String,
    pub run: u32,
    pub signal: i32,
    pub grace_ms: u64,
    pub cause: Cause,
    pub sync: bool,
}

/// What a helper answers: the survivors' PIDs.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    pub survivors: Vec<i32>,
    pub error: Option<String>,
}

/// The word by which this program is executed as a helper.
pub const HELPER: &str = "outlive:stop";

/// A helper at work.
#[derive(Debug)]
pub struct Helper(UnixStream);

impl Helper {
    pub fn start(order: &Order) -> Result<Self> {
        let line = spawn::exec_self_with_line(HELPER).context("cannot start a helper")?;
        let mut text = serde_json::to_vec(order)?;
        text.push(b'\n');
        (&line.fd).write_all(&text).context("cannot tell the helper")?;
        // It hands over to a child of its own at once, which nobody here is an ancestor of.
        wait_for_child(line.pid);
        Ok(Self(line.fd))
    }

    /// Nobody waits for ever for a helper that does not get on: frozen, stopped, or on a disk that hangs.
    pub fn answer(&self, limit: Duration) -> io::Result<Answer> {
        let mut line = &self.0;
        let mut text = String::new();
        line.set_read_timeout(Some(limit))?;
        line.read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }
}

fn wait_for_child(pid: i32) {
    if let Ok(child) = Handle::open(pid) {
        let _ = child.wait(Some(HELPER_WAIT));
    }
    let _ = wait::reap(wait::Child::Pid(pid));
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
        let found =
            if supervised { observer.descendants(&launch)? } else { provable_now(&observer, &launch)? };
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
    let job = observer.assess(Box::new(launch.clone()))?;
    Ok(if job.judgement.may_signal() { job.members } else { Vec::new() })
}

/// An orphan's status is known to nobody: it was stopped because somebody asked, but how it ended is not told.
fn record_orphan_end(observer: &Observer, launch: Box<Launch>, cause: Cause) -> Result<()> {
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
