//! The supervisor's part of a launch: start the leader, see whether it executed its command, tell the launcher.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::libc;
use nix::sys::signal::Signal;

use super::adopt;
use super::{Cap, Supervisor};
use crate::brief::Brief;
use crate::job::{Cause, End, Launch, OnOwnerExit, Outcome};
use crate::ledger::{self, Book, Patience, Record};
use crate::paths::StateDir;
use crate::store;
use crate::sys::handle::Handle;
use crate::sys::sleep::{Signals, Timer};
use crate::sys::spawn::{self, Leader, Message, Reached};
use crate::sys::wait::{Child, peek, reap};
use crate::sys::{NO_SIGPIPE, clock, proc};

/// Starts the leader and tells the launcher how that went. None if nothing was executed.
pub(super) fn start(
    mut brief: Brief,
    signals: io::Result<Signals>,
    title: &spawn::Title,
    line: UnixStream,
) -> io::Result<Option<Supervisor>> {
    match prepare(&mut brief, signals, &line) {
        Ok((supervisor, reached)) => {
            let Some(failure) = never_executed(&supervisor, reached) else {
                let _ = store::mark_executed(&supervisor.exit);
                title.change(&spawn::title(&supervisor.id));
                tell(&line, Message::LAUNCHED, supervisor.leader);
                raise_limits();
                return Ok(Some(supervisor));
            };
            let _ = reap(Child::Pid(supervisor.leader));
            record_failure(&supervisor, &failure.outcome, reached);
            tell(&line, failure.tag, failure.errno);
            Ok(None)
        }
        Err(error) => {
            tell(&line, Message::SETUP_FAILED, error.raw_os_error().unwrap_or(libc::EIO));
            Err(error)
        }
    }
}

fn tell(line: &UnixStream, tag: u8, value: i32) {
    // A launcher that has gone away needs to hear nothing.
    let _ = nix::sys::socket::send(line.as_raw_fd(), &Message { tag, value }.encode(), NO_SIGPIPE);
    crate::sys::after_you();
}

/// Everything that may fail is done before the leader is started: afterwards, the job must be supervised.
fn prepare(
    brief: &mut Brief,
    signals: io::Result<Signals>,
    line: &UnixStream,
) -> io::Result<(Supervisor, Reached)> {
    let numbers = brief.numbers;
    let [state_dir, id, on_exit, name, output] = brief.fixed().map(<[u8]>::to_vec);
    let dir = StateDir::trusted(Path::new(OsStr::from_bytes(&state_dir)));
    let id = String::from_utf8_lossy(&id).into_owned();
    spawn::name_process(&spawn::title(&id));

    let adopted = match numbers.adopt {
        Some(id) => Some(adopt::leader(&brief.fds, id)?),
        None => None,
    };
    let mut fds = std::mem::take(&mut brief.fds).into_iter();
    let mut next = || fds.next().ok_or(io::ErrorKind::InvalidData);
    let (exit, control, cwd, stdin, stdout, stderr) = (next()?, next()?, next()?, next()?, next()?, next()?);
    let owner = match numbers.owner.filter(|_| numbers.on_owner_exit == OnOwnerExit::Stop) {
        Some(id) => Some(Handle::received(next().ok(), id)?),
        None => None,
    };
    let mut supervisor = Supervisor {
        dir,
        id,
        name: String::from_utf8_lossy(&name).into_owned(),
        on_exit,
        numbers,
        exit: File::from(exit),
        control: File::from(control),
        signals: signals?,
        owner,
        timer: numbers
            .timeout_ms
            .map(|limit| Timer::after(Duration::from_millis(limit.max(1))))
            .transpose()?,
        leader: numbers.adopt.map_or(0, |id| id.pid),
        adopted,
        member: None,
        started: clock::boottime(),
        ended: false,
        lingered: false,
        hook: None,
        cap: Cap::new(Path::new(OsStr::from_bytes(&output)).to_path_buf(), &numbers),
        asked: None,
        untold: Vec::new(),
        again: false,
    };
    crate::sys::umask(0o077);
    if supervisor.adopted.is_some() {
        let launch = store::read_launch(&supervisor.dir.run(&supervisor.id, numbers.run)).ok().flatten();
        supervisor.started = Duration::from_millis(launch.map_or(0, |launch| launch.boottime_ms));
        await_gate(line)?;
        return Ok((supervisor, Reached::Exec));
    }
    let mut tables = brief.tables();
    let leader = Leader {
        candidates: &tables.candidates,
        argv_with_slot: &mut tables.argv,
        envp: &tables.envp,
        stdio: [stdin.as_raw_fd(), stdout.as_raw_fd(), stderr.as_raw_fd()],
        cwd: cwd.as_raw_fd(),
        umask: numbers.umask,
        close: &[supervisor.exit.as_raw_fd(), supervisor.control.as_raw_fd()],
        gate: line.as_raw_fd(),
    };
    let (pid, reached) = spawn::start_leader(leader)?;
    supervisor.leader = pid;
    Ok((supervisor, reached))
}

/// Whoever holds the lock of a run is its supervisor only once it is recorded as such: an adopter that ended before
/// leaves an orphan.
fn await_gate(mut line: &UnixStream) -> io::Result<()> {
    line.read_exact(&mut [0])
}

/// Everything by which somebody may tell a process to end, the ends of children, and writes of the output.
pub(super) const HEARD: [Signal; 6] = {
    use Signal::{SIGCHLD, SIGHUP, SIGINT, SIGIO, SIGQUIT, SIGTERM};
    [SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGIO]
};

/// A limit on the size of files is the job's, not its record's.
fn raise_limits() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_FSIZE)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_FSIZE, hard, hard);
    }
}

/// A command that was not executed: how that is recorded, and what the launcher is told.
struct Failure {
    outcome: Outcome,
    tag: u8,
    errno: i32,
}

fn never_executed(supervisor: &Supervisor, reached: Reached) -> Option<Failure> {
    let failure = |cause: Cause, reason: String, tag: u8, errno: i32| {
        let outcome = Outcome {
            executed: Some(false),
            reason: Some(reason),
            duration_ms: Some(0),
            ..Outcome::bare(End::Failed, Some(cause), clock::now())
        };
        Some(Failure { outcome, tag, errno })
    };
    let told = |errno: i32| crate::words::plain(&io::Error::from_raw_os_error(errno));
    let killed = || "killed before the command was executed".to_owned();
    match reached {
        // Executed, or killed in the act: a dead leader that still bears our name never was the command.
        Reached::Exec => {
            let title = spawn::title(&supervisor.id);
            let never = || proc::stat(supervisor.leader).is_ok_and(|stat| stat.comm == title.as_bytes());
            match peek(Child::Pid(supervisor.leader)) {
                Ok(Some(_)) if never() => {
                    failure(Cause::LaunchBrokenOff, killed(), Message::KILLED_AT_GATE, 0)
                }
                _ => None,
            }
        }
        Reached::Gate => failure(Cause::LaunchBrokenOff, killed(), Message::KILLED_AT_GATE, 0),
        Reached::BrokenOff => {
            let reason = "the launcher ended before the launch was recorded".to_owned();
            failure(Cause::LaunchBrokenOff, reason, Message::KILLED_AT_GATE, 0)
        }
        Reached::DirectoryFailed(errno) => {
            failure(Cause::BadDirectory, told(errno), Message::SETUP_FAILED, errno)
        }
        Reached::SetupFailed(errno) => {
            failure(Cause::LaunchFailed, told(errno), Message::SETUP_FAILED, errno)
        }
        Reached::ExecFailed(errno) if errno == libc::ENOENT || errno == libc::ENOTDIR => {
            failure(Cause::NotFound, told(errno), Message::EXEC_FAILED, errno)
        }
        Reached::ExecFailed(errno) => failure(Cause::NotExecutable, told(errno), Message::EXEC_FAILED, errno),
    }
}

/// A failure is recorded as far as its launch was.
fn record_failure(supervisor: &Supervisor, outcome: &Outcome, reached: Reached) {
    let Supervisor { dir, id, numbers, exit, .. } = supervisor;
    let _ = store::commit_exit(exit, outcome, numbers.sync);
    let Ok(Some(launch)) = store::read_launch(&dir.run(id, numbers.run)) else { return };
    let mut records = Vec::new();
    if reached == Reached::BrokenOff && !ledger::read(dir).is_ok_and(|book| knows(&book, &launch)) {
        records.push(Record::Launched(launch));
    }
    records.push(supervisor.end_record(outcome));
    let _ = ledger::append(dir, &records, Patience::Supervisor, numbers.sync);
}

fn knows(book: &Book, launch: &Launch) -> bool {
    book.job(&launch.id).is_some_and(|entry| entry.launch.run >= launch.run)
}
