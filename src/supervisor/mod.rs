//! The supervisor: one small process for each live job, one thread, one loop, asleep until something happens.
//!
//! True while it lives: it holds the run's lock; it is the subreaper of everything the job starts; it has not
//! waited for the leader, so the leader's number is nobody else's. At the leader's end it records the outcome
//! durably before anything else, and only then lets waiters go. It ends when nothing of the job is left.

mod adopt;
mod cap;
mod hook;
mod start;
mod stopping;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::libc;

use self::cap::Cap;
use self::stopping::{Asked, KILL_AGAIN, SHUTDOWN_GRACE};
use crate::brief::{self, Numbers};
use crate::control::Request;
use crate::fs::RunLock;
use crate::job::{Cause, End, Outcome};
use crate::ledger::{self, Patience, Record};
use crate::members::RunMark;
use crate::paths::StateDir;
use crate::store;
use crate::sys::handle::Handle;
use crate::sys::sleep::{Signals, Source, Timer, sleep};
use crate::sys::spawn;
use crate::sys::wait::{Child, ChildEnd, all_dead, peek, reap};
use crate::sys::{Ability, can, clock, proc};

pub use self::cap::HEAD;

/// The whole life of a supervisor, from the fork on.
pub fn serve() -> io::Result<()> {
    let line = spawn::let_go(start::HEARD.map(|signal| signal as i32))?;
    spawn::become_subreaper()?;
    // What needs no brief is done before it comes.
    let signals = Signals::new(&start::HEARD.into_iter().collect());
    let title = spawn::Title::own();
    let Some(brief) = brief::receive(&line)? else { return Ok(()) };
    match start::start(brief, signals, &title, line)? {
        Some(mut supervisor) => supervisor.watch(),
        None => Ok(()),
    }
}

struct Supervisor {
    dir: StateDir,
    id: String,
    name: String,
    on_exit: Vec<u8>,
    numbers: Numbers,
    exit: File,
    control: File,
    signals: Signals,
    owner: Option<Handle>,
    timer: Option<Timer>,
    leader: i32,
    /// The leader of an adopted job, which is not our child.
    adopted: Option<Handle>,
    /// After the leader's end: a living member that is not our child, whose end is the next thing to happen.
    member: Option<Handle>,
    started: Duration,
    /// The outcome is recorded.
    ended: bool,
    lingered: bool,
    /// The PID of the `--on-exit` command while it runs.
    hook: Option<i32>,
    cap: Option<Cap>,
    asked: Option<Asked>,
    /// What the ledger is to be told before the next sleep.
    untold: Vec<Record>,
    /// Something could not be looked at or done for want of means: to be tried again without being woken.
    again: bool,
}

/// How long until what failed for want of means is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// What may wake a supervisor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wake {
    Signal,
    Request,
    OwnerGone,
    TimeOver,
    /// The leader of an adopted job, or a member that is nobody's child here, has ended.
    StrangerEnded,
}

impl Supervisor {
    fn end_record(&self, outcome: &Outcome) -> Record {
        Record::Ended { id: self.id.clone(), run: self.numbers.run, outcome: outcome.clone() }
    }

    /// The loop. Returns when nothing of the job is left. No failure ends it before: a supervisor that gives up
    /// leaves an orphan, and most failures (no descriptor, no memory) pass.
    fn watch(&mut self) -> io::Result<()> {
        loop {
            match self.turn() {
                Ok(true) => break,
                Ok(false) => {}
                Err(_) => {
                    // Not by `poll`, which may be what fails.
                    std::thread::sleep(TRY_AGAIN);
                    self.again = true;
                }
            }
        }
        self.tell_untold();
        // Let go now: closing a watch may take this process milliseconds.
        RunLock::Both.release(&self.exit)
    }

    /// Sleeps once and does what there is to do. True when nothing of the job is left.
    fn turn(&mut self) -> io::Result<bool> {
        if !self.over()? {
            self.tell_untold();
            let woken = self.sleep()?;
            self.again = false;
            if woken.contains(&Wake::Signal) {
                self.signals()?;
            }
            // An end that is already there is recorded before a request is heard.
            if self.over()? {
                return Ok(true);
            }
            if woken.contains(&Wake::Request) {
                self.requests();
            }
            if woken.contains(&Wake::OwnerGone) {
                self.owner = None;
                self.stop(self.numbers.stop_signal, self.grace(), Cause::OwnerGone);
            }
            if woken.contains(&Wake::TimeOver) {
                self.timer = None;
                self.stop(self.numbers.stop_signal, self.grace(), Cause::Timeout);
            }
            if let Some(cap) = &mut self.cap {
                cap.look_if_due();
            }
            self.kill_if_due();
            return Ok(false);
        }
        Ok(true)
    }

    /// Sleeps until something happens, and says what.
    fn sleep(&self) -> io::Result<Vec<Wake>> {
        let stranger = if self.ended { &self.member } else { &self.adopted };
        let sources = [
            (Some(self.signals.source()), Wake::Signal),
            (Some(Source::Fd(self.control.as_fd())), Wake::Request),
            (self.owner.as_ref().map(Handle::source), Wake::OwnerGone),
            (self.timer.as_ref().map(Timer::source), Wake::TimeOver),
            (stranger.as_ref().map(Handle::source), Wake::StrangerEnded),
        ];
        let there: Vec<_> =
            sources.into_iter().filter_map(|(source, wake)| source.map(|source| (source, wake))).collect();
        sleep(&there, self.patience())
    }

    /// How long to sleep: for ever, unless a stop is under way or the output is being watched.
    fn patience(&self) -> Option<Duration> {
        let stop = match &self.asked {
            None | Some(Asked { gave_up: true, .. }) => None,
            Some(Asked { killing_since: Some(_), .. }) => Some(KILL_AGAIN),
            Some(Asked { deadline, .. }) => Some(deadline.saturating_duration_since(clock::instant())),
        };
        let look = self.cap.as_ref().and_then(Cap::patience);
        let again = self.again.then_some(TRY_AGAIN);
        stop.into_iter().chain(look).chain(again).min()
    }

    fn signals(&mut self) -> io::Result<()> {
        // One at a time: if there are more, the next sleep ends at once.
        match self.signals.take()? {
            None | Some(libc::SIGCHLD) => {}
            Some(libc::SIGIO) => self.cap.iter_mut().for_each(Cap::written),
            Some(_) => {
                self.stop(self.numbers.stop_signal, self.grace().min(SHUTDOWN_GRACE), Cause::Shutdown);
            }
        }
        Ok(())
    }

    /// Looks at the children that have ended. True when nothing of the job is left.
    fn over(&mut self) -> io::Result<bool> {
        if self.adopted.is_some() {
            return self.adopted_over();
        }
        while !self.ended {
            match peek(Child::Any)? {
                None => break,
                Some(end) if end.pid == self.leader => self.record(end),
                Some(other) => drop(reap(Child::Pid(other.pid))?),
            }
        }
        if !self.ended {
            return Ok(false);
        }
        if let Some(end) = self.hook.map(|hook| reap(Child::Pid(hook))).transpose()?.flatten() {
            self.hook_ended(end);
        }
        // If nothing was left at the leader's end, nothing can have come since, but for what `--on-exit` does.
        if (self.lingered || self.hook.is_some()) && self.others_alive()? {
            return Ok(false);
        }
        if self.lingered {
            self.lingered = false;
            self.note("emptied", None);
        }
        if self.hook.is_some() {
            // The job is over for everybody else: nobody waits for what `--on-exit` does.
            RunLock::Both.release(&self.exit)?;
            return Ok(false);
        }
        reap(Child::Pid(self.leader))?;
        Ok(true)
    }

    /// Waits for the dead among the adopted; whether any of the job are left. The leader, dead or not, stays.
    fn others_alive(&mut self) -> io::Result<bool> {
        if !can(Ability::Subreaper) {
            return self.strangers_alive();
        }
        let mark = self.mark();
        // One that died since they were listed may have left us a child that was not.
        let mut stale = true;
        while stale {
            if all_dead()? {
                return Ok(false);
            }
            stale = false;
            // Every one is looked at, so that none of the dead stays.
            let mut alive = false;
            for pid in proc::own_children()? {
                if pid == self.leader || Some(pid) == self.hook {
                    continue;
                }
                if reap(Child::Pid(pid))?.is_some() {
                    stale = true;
                } else if let Some(stat) = proc::find(pid)? {
                    alive |= !mark.foreign(&stat)?;
                }
            }
            if alive {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn mark(&self) -> RunMark {
        RunMark::new(&self.id, self.numbers.run, self.dir.path())
    }

    /// Records the leader's end: durable first, then told to waiters, then to the ledger.
    fn record(&mut self, end: ChildEnd) {
        self.ended = true;
        // If that cannot be seen now, it is to be found out: an end without survivors is final at once.
        self.lingered = match self.adopted {
            Some(_) => self.members().map_or(true, |members| !members.is_empty()),
            None => self.others_alive().unwrap_or(true),
        };
        let (state, cause) = match self.asked.as_ref().map(|asked| asked.cause) {
            // An adopted leader whose status the kernel does not tell us.
            _ if end.code.or(end.signal).is_none() => (End::Interrupted, Some(Cause::SupervisorLost)),
            None => (End::Exited, None),
            Some(cause @ (Cause::OwnerGone | Cause::Shutdown)) => (End::Interrupted, Some(cause)),
            Some(cause) => (End::Stopped, Some(cause)),
        };
        let lasted = clock::boottime().saturating_sub(self.started).as_millis();
        let outcome = Outcome {
            exit_code: end.code,
            signal: end.signal,
            core_dumped: end.core_dumped,
            executed: Some(true),
            lingering: self.lingered,
            duration_ms: u64::try_from(lasted).ok(),
            max_rss_bytes: end.max_rss_bytes,
            cpu_ms: end.cpu_ms,
            ..Outcome::bare(state, cause, clock::now())
        };
        // Who learns of its end finds no more of its output than is to be kept.
        if let Some(cap) = &mut self.cap {
            let _ = cap.look();
        }
        // Should the disk refuse, the status is still known to everybody who asks while the machine is up.
        if store::commit_exit(&self.exit, &outcome, self.numbers.sync).is_err() {
            let _ = store::commit_exit(&self.exit, &outcome, false);
        }
        // Waiters sleep on this lock. To split it, the kernel may need memory.
        while RunLock::Unended.release(&self.exit).is_err() {
            std::thread::sleep(TRY_AGAIN);
        }
        crate::sys::after_you();
        let end = self.end_record(&outcome);
        self.tell_ledger(end);
        self.start_hook(&outcome);
    }

    fn note_of(&self, kind: &'static str, detail: Option<String>) -> Record {
        Record::Note { kind, id: self.id.clone(), run: self.numbers.run, at: clock::now(), detail }
    }

    fn note(&mut self, kind: &'static str, detail: Option<String>) {
        let note = self.note_of(kind, detail);
        self.tell_ledger(note);
    }

    fn tell_ledger(&mut self, record: Record) {
        self.untold.push(record);
        self.tell_untold();
    }

    fn tell_untold(&mut self) {
        if !self.untold.is_empty() {
            let records = std::mem::take(&mut self.untold);
            let _ = ledger::append(&self.dir, &records, Patience::Supervisor, false);
        }
    }

    fn requests(&mut self) {
        // To the end: what fills a buffer may end in the middle of a request.
        let mut raw = Vec::new();
        let mut buffer = [0_u8; 4096];
        loop {
            match self.control.read(&mut buffer) {
                Ok(read @ 1..) => raw.extend_from_slice(buffer.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        let text = String::from_utf8_lossy(&raw).into_owned();
        let run = self.numbers.run;
        for request in text.lines().filter_map(|line| Request::decode(line, run)) {
            match request {
                Request::Stop { signal, grace, cause } => self.stop(signal, grace, cause),
                Request::Pause => self.pause(),
                Request::Resume => self.resume(),
            }
        }
    }
}
