//! The supervisor: one small process for each live job, one thread, one loop, asleep until something happens.
//!
//! True while it lives: it holds the run's lock; it is the subreaper of everything the job starts; it has not
//! waited for the leader, so the leader's number is nobody else's. At the leader's end it records the outcome
//! durably before anything else, and only then lets waiters go. It ends when nothing of the job is left.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::brief::{self, Brief, Numbers};
use crate::control::Request;
use crate::fs::RunLock;
use crate::job::{Cause, End, Launch, OnOwnerExit, Outcome};
use crate::ledger::{self, Patience, Record};
use crate::members::{self, RunMark, supervisor_title};
use crate::paths::StateDir;
use crate::store;
use crate::sys::pidfd::{PidFd, poll_timeout, signal_group_of_unreaped_child};
use crate::sys::spawn::{self, Leader, Message, Reached};
use crate::sys::wait::{Child, ChildEnd, peek, reap};
use crate::sys::{clock, proc};
use crate::teardown::{self, KILL_WAIT};

/// The grace of a supervisor that is itself told to end: whoever shuts a machine down does not wait long.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// How often a kill is repeated while something is left.
const KILL_AGAIN: Duration = Duration::from_millis(20);

/// The whole life of a supervisor, from the fork on.
pub fn serve() -> io::Result<()> {
    let line = spawn::let_go()?;
    spawn::become_subreaper()?;
    let Some(brief) = brief::receive(&line)? else { return Ok(()) };
    match start(brief, line)? {
        Some(mut supervisor) => supervisor.watch(),
        None => Ok(()),
    }
}

struct Supervisor {
    dir: StateDir,
    id: String,
    numbers: Numbers,
    exit: File,
    control: File,
    signals: SignalFd,
    owner: Option<PidFd>,
    timer: Option<TimerFd>,
    leader: i32,
    started: Duration,
    /// The outcome is recorded.
    ended: bool,
    lingered: bool,
    asked: Option<Asked>,
}

/// A stop under way.
struct Asked {
    cause: Cause,
    /// When to begin killing.
    deadline: Instant,
    killing_since: Option<Instant>,
    gave_up: bool,
}

/// Starts the leader and tells the launcher how that went. None if nothing was executed.
fn start(brief: Brief, line: OwnedFd) -> io::Result<Option<Supervisor>> {
    let numbers = brief.numbers;
    let [state_dir, id, ..] = brief.fixed();
    let dir = StateDir::trusted(Path::new(OsStr::from_bytes(state_dir)));
    let id = String::from_utf8_lossy(id).into_owned();
    spawn::retitle(&supervisor_title(&id));

    let missing = || io::Error::from(io::ErrorKind::InvalidData);
    let mut fds = brief.fds.iter();
    let mut next = || fds.next().ok_or_else(missing);
    let (exit, control, cwd, stdin, stdout, stderr) = (next()?, next()?, next()?, next()?, next()?, next()?);
    let owner = next().ok();

    let signals = SignalFd::with_flags(&watched_signals(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    let started = clock::boottime();
    let mut tables = brief.tables();
    let leader = Leader {
        candidates: &tables.candidates,
        argv_with_slot: &mut tables.argv,
        envp: &tables.envp,
        stdio: [stdin.as_raw_fd(), stdout.as_raw_fd(), stderr.as_raw_fd()],
        cwd: cwd.as_raw_fd(),
        umask: numbers.umask,
        close: &[exit.as_raw_fd(), control.as_raw_fd(), signals.as_raw_fd()],
        gate: line.as_raw_fd(),
    };
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
    let (pid, reached) = spawn::start_leader(leader)?;

    let exit = File::from(exit.try_clone()?);
    let control = File::from(control.try_clone()?);
    let owner = owner
        .filter(|_| numbers.on_owner_exit == OnOwnerExit::Stop)
        .map(|fd| fd.try_clone())
        .transpose()?
        .map(PidFd::from);
    drop(tables);
    drop(brief);
    let mut supervisor = Supervisor {
        dir,
        id,
        numbers,
        exit,
        control,
        signals,
        owner,
        timer: None,
        leader: pid,
        started,
        ended: false,
        lingered: false,
        asked: None,
    };
    let (tag, value) = match supervisor.never_executed(reached) {
        None => (Message::LAUNCHED, pid),
        Some((outcome, tag, errno)) => {
            let _ = reap(Child::Pid(pid));
            supervisor.record_failure(&outcome, reached);
            (tag, errno)
        }
    };
    if tag == Message::LAUNCHED {
        let _ = store::mark_executed(&supervisor.exit);
        raise_limits();
    }
    let message = Message { tag, value }.encode();
    let _ = nix::sys::socket::send(line.as_raw_fd(), &message, nix::sys::socket::MsgFlags::MSG_NOSIGNAL);
    drop(line);
    if tag != Message::LAUNCHED {
        return Ok(None);
    }
    supervisor.timer = numbers.timeout_ms.map(timer).transpose()?;
    Ok(Some(supervisor))
}

/// Everything by which somebody may tell a process to end, and the ends of children.
fn watched_signals() -> SigSet {
    [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT].into_iter().collect()
}

/// A limit on the size of files is the job's, not its record's.
fn raise_limits() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_FSIZE)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_FSIZE, hard, hard);
    }
}

/// A timer on the boot clock: it counts through suspends.
fn timer(milliseconds: u64) -> io::Result<TimerFd> {
    let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
    let after = TimeSpec::from_duration(Duration::from_millis(milliseconds.max(1)));
    timer.set(Expiration::OneShot(after), TimerSetTimeFlags::empty())?;
    Ok(timer)
}

impl Supervisor {
    /// If the leader never executed its command: how that is recorded, and what the launcher is told.
    fn never_executed(&self, reached: Reached) -> Option<(Outcome, u8, i32)> {
        let failed = |cause: Cause, reason: String| {
            let mut outcome = Outcome::bare(End::Failed, Some(cause), clock::now());
            outcome.executed = Some(false);
            outcome.reason = Some(reason);
            outcome.duration_ms = Some(0);
            outcome
        };
        let told = |errno: i32| io::Error::from_raw_os_error(errno).to_string();
        match reached {
            // Executed, or killed in the act: a dead leader that still bears our name never was the command.
            Reached::Exec => match peek(Child::Pid(self.leader)) {
                Ok(Some(_))
                    if proc::stat(self.leader)
                        .is_ok_and(|stat| stat.comm == supervisor_title(&self.id).as_bytes()) =>
                {
                    Some((
                        failed(Cause::LaunchBrokenOff, "killed before the command was executed".to_owned()),
                        Message::KILLED_AT_GATE,
                        0,
                    ))
                }
                _ => None,
            },
            Reached::Gate => Some((
                failed(Cause::LaunchBrokenOff, "killed before the command was executed".to_owned()),
                Message::KILLED_AT_GATE,
                0,
            )),
            Reached::BrokenOff => Some((
                failed(
                    Cause::LaunchBrokenOff,
                    "the launcher ended before the launch was recorded".to_owned(),
                ),
                Message::KILLED_AT_GATE,
                0,
            )),
            Reached::SetupFailed(errno) => {
                Some((failed(Cause::LaunchFailed, told(errno)), Message::SETUP_FAILED, errno))
            }
            Reached::ExecFailed(errno) => {
                let cause = if errno == libc::ENOENT || errno == libc::ENOTDIR {
                    Cause::NotFound
                } else {
                    Cause::NotExecutable
                };
                Some((failed(cause, told(errno)), Message::EXEC_FAILED, errno))
            }
        }
    }

    /// A failure is recorded as far as its launch was.
    fn record_failure(&self, outcome: &Outcome, reached: Reached) {
        let _ = store::commit_exit(&self.exit, outcome, self.numbers.sync);
        let Ok(Some(launch)) = store::read_launch(&self.dir.run(&self.id, self.numbers.run)) else { return };
        let mut records = Vec::new();
        if reached == Reached::BrokenOff && !ledger::read(&self.dir).is_ok_and(|book| knows(&book, &launch)) {
            records.push(Record::Launched(Box::new(launch)));
        }
        records.push(self.end_record(outcome));
        let _ = ledger::append(&self.dir, &records, Patience::Supervisor, self.numbers.sync);
    }

    fn end_record(&self, outcome: &Outcome) -> Record {
        Record::Ended { id: self.id.clone(), run: self.numbers.run, outcome: outcome.clone() }
    }

    /// The loop. Returns when nothing of the job is left.
    fn watch(&mut self) -> io::Result<()> {
        loop {
            if self.children()? {
                return Ok(());
            }
            let (signals, control, owner, timer) = {
                let mut fds = vec![
                    PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
                    PollFd::new(self.control.as_fd(), PollFlags::POLLIN),
                ];
                fds.extend(self.owner.as_ref().map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)));
                fds.extend(self.timer.as_ref().map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)));
                match poll(&mut fds, self.patience()) {
                    Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                    Err(error) => return Err(error.into()),
                }
                let ready = |at: usize| fds.get(at).is_some_and(|fd| fd.any().unwrap_or(false));
                // The owner's descriptor, if there is one, comes before the timer's.
                let owned = usize::from(self.owner.is_some());
                (
                    ready(0),
                    ready(1),
                    self.owner.is_some() && ready(2),
                    self.timer.is_some() && ready(2 + owned),
                )
            };
            if signals {
                self.signals()?;
            }
            // An end that is already there is recorded before a request is heard.
            if self.children()? {
                return Ok(());
            }
            if control {
                self.requests();
            }
            if owner {
                self.owner = None;
                self.stop(self.numbers.stop_signal, self.grace(), Cause::OwnerGone);
            }
            if timer {
                self.timer = None;
                self.stop(self.numbers.stop_signal, self.grace(), Cause::Timeout);
            }
            self.kill_if_due();
        }
    }

    fn grace(&self) -> Duration {
        Duration::from_millis(self.numbers.grace_ms)
    }

    /// How long to sleep: for ever, unless a stop is under way.
    fn patience(&self) -> PollTimeout {
        match &self.asked {
            None | Some(Asked { gave_up: true, .. }) => PollTimeout::NONE,
            Some(Asked { killing_since: Some(_), .. }) => poll_timeout(KILL_AGAIN),
            Some(Asked { deadline, .. }) => {
                poll_timeout(deadline.saturating_duration_since(clock::instant()))
            }
        }
    }

    fn signals(&mut self) -> io::Result<()> {
        while let Some(info) = self.signals.read_signal()? {
            if info.ssi_signo != libc::SIGCHLD.unsigned_abs() {
                self.stop(self.numbers.stop_signal, self.grace().min(SHUTDOWN_GRACE), Cause::Shutdown);
            }
        }
        Ok(())
    }

    /// Looks at the children that have ended. True when nothing of the job is left.
    fn children(&mut self) -> io::Result<bool> {
        while !self.ended {
            match peek(Child::Any)? {
                None => break,
                Some(end) if end.pid == self.leader => self.record(end),
                Some(other) => drop(reap(Child::Pid(other.pid))?),
            }
        }
        if !self.ended || self.others_alive() {
            return Ok(false);
        }
        reap(Child::Pid(self.leader))?;
        if self.lingered {
            self.note("emptied", None);
        }
        Ok(true)
    }

    /// Waits for the dead among the adopted; whether any of the job are left. The leader, dead or not, stays.
    fn others_alive(&self) -> bool {
        let me = i32::try_from(std::process::id()).unwrap_or(0);
        let mark = self.mark();
        let alive = |&pid: &i32| {
            pid != self.leader
                && matches!(reap(Child::Pid(pid)), Ok(None))
                && proc::stat(pid).is_ok_and(|stat| !mark.foreign(&stat))
        };
        proc::children(me).iter().filter(|pid| alive(pid)).count() > 0
    }

    fn mark(&self) -> RunMark {
        RunMark::new(&self.id, self.numbers.run, self.dir.path())
    }

    /// Records the leader's end: durable first, then told to waiters, then to the ledger.
    fn record(&mut self, end: ChildEnd) {
        self.ended = true;
        self.lingered = self.others_alive();
        let (state, cause) = match self.asked.as_ref().map(|asked| asked.cause) {
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
            max_rss_bytes: Some(end.max_rss_bytes),
            cpu_ms: Some(end.cpu_ms),
            ..Outcome::bare(state, cause, clock::now())
        };
        // Should the disk refuse, the status is still known to everybody who asks while the machine is up.
        if store::commit_exit(&self.exit, &outcome, self.numbers.sync).is_err() {
            let _ = store::commit_exit(&self.exit, &outcome, false);
        }
        let _ = RunLock::Unended.release(&self.exit);
        let _ = ledger::append(&self.dir, &[self.end_record(&outcome)], Patience::Supervisor, false);
    }

    fn note(&self, kind: &'static str, detail: Option<String>) {
        let note =
            Record::Note { kind, id: self.id.clone(), run: self.numbers.run, at: clock::now(), detail };
        let _ = ledger::append(&self.dir, &[note], Patience::Supervisor, false);
    }

    fn requests(&mut self) {
        let mut buffer = [0_u8; 4096];
        let Ok(read) = self.control.read(&mut buffer) else { return };
        let text = String::from_utf8_lossy(buffer.get(..read).unwrap_or_default()).into_owned();
        let run = self.numbers.run;
        for request in text.lines().filter_map(|line| Request::decode(line, run)) {
            match request {
                Request::Stop { signal, grace, cause } => self.stop(signal, grace, cause),
                Request::Pause => self.pause(),
                Request::Resume => {
                    let _ = teardown::pass(&self.members(), &[libc::SIGCONT]);
                    self.note("resumed", None);
                }
            }
        }
    }

    fn members(&self) -> Vec<proc::Stat> {
        let me = i32::try_from(std::process::id()).unwrap_or(0);
        members::supervised(me, &self.mark())
    }

    /// Asks the whole job to end. A later request may shorten the grace, never lengthen it.
    fn stop(&mut self, signal: i32, grace: Duration, cause: Cause) {
        let deadline = clock::instant()
            .checked_add(grace)
            .unwrap_or_else(|| clock::instant() + Duration::from_secs(u32::MAX.into()));
        let first = self.asked.is_none();
        let asked = self.asked.get_or_insert(Asked { cause, deadline, killing_since: None, gave_up: false });
        asked.deadline = asked.deadline.min(deadline);
        if asked.gave_up {
            (asked.gave_up, asked.killing_since) = (false, None);
        }
        if !grace.is_zero() {
            let _ = teardown::pass(&self.members(), &teardown::request(signal));
        }
        self.kill_if_due();
        if first {
            self.note("stop-requested", Some(cause.word()));
        }
    }

    /// Kills what is left once the grace has passed; called again every [`KILL_AGAIN`].
    fn kill_if_due(&mut self) {
        let now = clock::instant();
        let Some(asked) = &mut self.asked else { return };
        if now < asked.deadline || asked.gave_up {
            return;
        }
        if now.duration_since(*asked.killing_since.get_or_insert(now)) > KILL_WAIT {
            asked.gave_up = true;
            return;
        }
        // The leader has not been waited for, so its group's number is still its own.
        let _ = signal_group_of_unreaped_child(self.leader, libc::SIGKILL);
        let _ = teardown::pass(&self.members(), &[libc::SIGKILL]);
    }

    /// Stops every process of the job; if one cannot be stopped, none is.
    fn pause(&mut self) {
        let mut stopped = 0;
        // Until a pass finds nothing new: a member may fork before its turn comes.
        loop {
            let members = self.members();
            if !teardown::pass(&members, &[libc::SIGSTOP]).is_empty() {
                let _ = teardown::pass(&members, &[libc::SIGCONT]);
                return;
            }
            if members.len() == stopped {
                break;
            }
            stopped = members.len();
        }
        self.note("paused", None);
    }
}

fn knows(book: &ledger::Book, launch: &Launch) -> bool {
    book.job(&launch.id).is_some_and(|entry| entry.launch.run >= launch.run)
}
