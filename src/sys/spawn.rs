//! The two ways a process is started: the supervisor, which lets go of everything, and the leader, which waits at the
//! gate before it executes its command.

use std::ffi::{CString, c_char, c_int};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::SigSet;
use nix::unistd::{ForkResult, fork};

pub use super::here::spawn::{Title, become_subreaper, default_signals, fork_with_line, name_process, title};
use super::here::spawn::{close_from, own_program, start_with};
use super::{NO_SIGPIPE, check};

/// Where the supervisor finds its end of the line to the launcher.
pub const LINE: RawFd = 3;

/// The near end of a line and the process at its far end.
#[derive(Debug)]
pub struct Line {
    pub fd: UnixStream,
    pub pid: i32,
}

/// Forks and executes this same program with `word` as its only argument and an empty environment: a process
/// that shares no memory with this one and shows none of its arguments.
pub fn exec_self_with_line(word: &str) -> io::Result<Line> {
    let (ours, theirs) = UnixStream::pair()?;
    let name = c"outlive";
    let word = CString::new(word)?;
    let program = own_program()?;
    let argv = [name.as_ptr(), word.as_ptr(), std::ptr::null()];
    let envp: [*const c_char; 1] = [std::ptr::null()];
    // SAFETY: the child calls only functions that are safe after a fork (dup2, fcntl, execve, _exit), so that
    // other threads of this process do not matter.
    let pid = unsafe {
        let forked = fork()?;
        if let ForkResult::Child = forked {
            if theirs.as_raw_fd() == LINE {
                libc::fcntl(LINE, libc::F_SETFD, 0);
            } else {
                libc::dup2(theirs.as_raw_fd(), LINE);
            }
            libc::execve(program.as_ptr(), argv.as_ptr(), envp.as_ptr());
            libc::_exit(127);
        }
        match forked {
            ForkResult::Parent { child } => child.as_raw(),
            ForkResult::Child => 0,
        }
    };
    Ok(Line { fd: ours, pid })
}

/// Has a program begin as the leader of a new session, with no signal blocked or ignored.
pub fn in_a_session_of_its_own(command: &mut Command) {
    // SAFETY: one system call.
    unsafe { command.pre_exec(|| nix::unistd::setsid().map(drop).map_err(Into::into)) };
    with_default_signals(command);
}

/// Has a program begin with no signal blocked or ignored.
pub fn with_default_signals(command: &mut Command) {
    let begin = || {
        // SAFETY: no handler of ours is needed any longer.
        unsafe { default_signals(EVERY_SIGNAL) };
        SigSet::empty().thread_set_mask()?;
        Ok(())
    };
    // SAFETY: between fork and exec only what is safe after a fork: system calls, and nothing is allocated.
    unsafe { command.pre_exec(begin) };
}

/// Goes on in a child, so that whoever started this process is no ancestor of what follows. False in the parent.
pub fn hand_over() -> io::Result<bool> {
    // SAFETY: called while this process has one thread.
    Ok(matches!(unsafe { fork() }?, ForkResult::Child))
}

/// Lets go of everything the caller had: descriptors (but for [`LINE`]), session, directory, signals; those in `heard`
/// can be heard again.
pub fn let_go(heard: impl IntoIterator<Item = c_int>) -> io::Result<UnixStream> {
    nix::unistd::setsid().or_else(|error| {
        if error == nix::errno::Errno::EPERM { Ok(nix::unistd::getpid()) } else { Err(error) }
    })?;
    nix::unistd::chdir("/")?;
    // SAFETY: this process was made to begin here: whatever descriptors it has are its caller's, and no object in it owns
    // one of them; what is opened is closed or put in the place of 0 to 2. No handler of the caller's is needed any more.
    unsafe {
        close_from(LINE + 1);
        libc::fcntl(LINE, libc::F_SETFD, libc::FD_CLOEXEC);
        let null = check(libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC).into())?;
        let null = RawFd::try_from(null).map_err(io::Error::other)?;
        for fd in 0..3 {
            if fd != null {
                check(libc::dup2(null, fd).into())?;
            }
        }
        if null > 2 {
            libc::close(null);
        }
        // The others are the leader's affair.
        default_signals(heard);
    }
    SigSet::all().thread_block()?;
    // SAFETY: descriptor 3 is ours since the fork and nobody else has an owner for it.
    Ok(unsafe { UnixStream::from_raw_fd(LINE) })
}

/// Where signals are numbered higher, those are refused below.
pub const EVERY_SIGNAL: std::ops::RangeInclusive<c_int> = 1..=64;

/// What goes over the line during a launch: a word and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub tag: u8,
    pub value: i32,
}

impl Message {
    pub const LENGTH: usize = 5;
    /// From the leader: ready to execute; its PID.
    pub const AT_GATE: u8 = b'P';
    /// From the supervisor: executed; the leader's PID.
    pub const LAUNCHED: u8 = b'L';
    /// From the supervisor: not executed; the errno of setting up.
    pub const SETUP_FAILED: u8 = b'S';
    /// From the supervisor: not executed; the errno of the exec.
    pub const EXEC_FAILED: u8 = b'F';
    /// From the supervisor: the leader was killed at the gate.
    pub const KILLED_AT_GATE: u8 = b'K';

    pub fn encode(self) -> [u8; Self::LENGTH] {
        let [a, b, c, d] = self.value.to_le_bytes();
        [self.tag, a, b, c, d]
    }

    pub fn decode([tag, a, b, c, d]: [u8; Self::LENGTH]) -> Self {
        Self { tag, value: i32::from_le_bytes([a, b, c, d]) }
    }
}

/// All that the leader needs, laid out before it exists: it shares our memory and may allocate nothing.
#[derive(Debug)]
pub struct Leader<'a> {
    /// The program's possible places, in the order of PATH.
    pub candidates: &'a [*const c_char],
    /// Null-terminated. A free slot precedes it, for the interpreter of a script without `#!`.
    pub argv_with_slot: &'a mut [*const c_char],
    /// Null-terminated.
    pub envp: &'a [*const c_char],
    pub stdio: [RawFd; 3],
    pub cwd: RawFd,
    pub umask: u32,
    /// Closed before the gate: no copy of a lock may outlive the supervisor.
    pub close: &'a [RawFd],
    /// The leader writes its PID here, then waits for one byte; end of file means "do not execute".
    pub gate: RawFd,
}

/// How far the leader came before its exec, or its death, gave our memory back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// Setting up failed with this errno: session or descriptors.
    SetupFailed(i32),
    /// The directory could not be entered.
    DirectoryFailed(i32),
    /// Killed at the gate.
    Gate,
    /// The gate was closed: the launcher has gone.
    BrokenOff,
    /// Executed, or killed in the act.
    Exec,
    /// The exec failed with this errno.
    ExecFailed(i32),
}

/// The first stage, that of memory which is all zero.
const SETUP: i32 = 0;
const DIRECTORY: i32 = 5;
const GATE: i32 = 1;
const BROKEN: i32 = 2;
const EXEC: i32 = 3;
const EXEC_FAILED: i32 = 4;

/// What a leader tells of itself, in memory that it shares with its supervisor.
#[derive(Debug, Default)]
pub(super) struct Progress {
    stage: AtomicI32,
    errno: AtomicI32,
}

impl Clone for Progress {
    fn clone(&self) -> Self {
        let copy = |value: &AtomicI32| AtomicI32::new(value.load(Ordering::SeqCst));
        Self { stage: copy(&self.stage), errno: copy(&self.errno) }
    }
}

impl Progress {
    fn reached(&self) -> Reached {
        let errno = self.errno.load(Ordering::SeqCst);
        match self.stage.load(Ordering::SeqCst) {
            SETUP => Reached::SetupFailed(errno),
            DIRECTORY => Reached::DirectoryFailed(errno),
            GATE => Reached::Gate,
            BROKEN => Reached::BrokenOff,
            EXEC => Reached::Exec,
            _ => Reached::ExecFailed(errno),
        }
    }
}

/// Starts the leader; returns once it has executed its program or is dead.
pub fn start_leader(mut leader: Leader<'_>) -> io::Result<(i32, Reached)> {
    start_with(&mut leader).map(|(pid, progress)| (pid, progress.reached()))
}

/// The leader's own code, in a process of its own.
///
/// # Safety
/// Only for a new process, whose end nothing but the kernel hears of: its memory may be shared. Every signal is blocked,
/// and has its default disposition, because they are unblocked here while the memory still is: no handler may run.
pub(super) unsafe fn be_leader(leader: &mut Leader, progress: &Progress) -> ! {
    // SAFETY: only system calls; the pointers were laid out by the caller and stay valid.
    let errno = unsafe { set_up_and_exec(leader, progress) };
    progress.errno.store(errno, Ordering::SeqCst);
    // SAFETY: ends this process without running anything of the memory it shares.
    unsafe { libc::_exit(127) }
}

/// Returns only with the errno of what failed; `stage` says where.
unsafe fn set_up_and_exec(leader: &mut Leader, progress: &Progress) -> i32 {
    // SAFETY: see `be_leader`.
    unsafe {
        if libc::setsid() < 0 {
            return Errno::last_raw();
        }
        for &fd in leader.close {
            libc::close(fd);
        }
        for (fd, &source) in (0..).zip(&leader.stdio) {
            if libc::dup2(source, fd) < 0 {
                return Errno::last_raw();
            }
        }
        if libc::fchdir(leader.cwd) < 0 {
            progress.stage.store(DIRECTORY, Ordering::SeqCst);
            return Errno::last_raw();
        }
        super::umask(leader.umask);

        progress.stage.store(GATE, Ordering::SeqCst);
        let message = Message { tag: Message::AT_GATE, value: libc::getpid() }.encode();
        // Unheard, it would wait at the gate for ever, and the launcher for its word. A launcher that has gone
        // is seen below.
        let sent = libc::send(leader.gate, message.as_ptr().cast(), message.len(), NO_SIGPIPE.bits());
        if sent < 0 && !matches!(Errno::last_raw(), libc::EPIPE | libc::ECONNRESET) {
            progress.stage.store(SETUP, Ordering::SeqCst);
            return Errno::last_raw();
        }
        super::after_you();
        // What cannot fail is done while the launch is recorded.
        default_signals(EVERY_SIGNAL);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        let mut byte = 0_u8;
        loop {
            match libc::read(leader.gate, (&raw mut byte).cast(), 1) {
                1 => break,
                -1 if Errno::last_raw() == libc::EINTR => {}
                _ => {
                    progress.stage.store(BROKEN, Ordering::SeqCst);
                    return 0;
                }
            }
        }
        progress.stage.store(EXEC, Ordering::SeqCst);
        let mut worst = libc::ENOENT;
        for &program in leader.candidates {
            libc::execve(program, leader.argv_with_slot.as_ptr().add(1), leader.envp.as_ptr());
            if Errno::last_raw() == libc::ENOEXEC {
                // A script without an interpreter line: the shell runs it, as execvp(3) does.
                leader.argv_with_slot[0] = c"/bin/sh".as_ptr();
                leader.argv_with_slot[1] = program;
                libc::execve(c"/bin/sh".as_ptr(), leader.argv_with_slot.as_ptr(), leader.envp.as_ptr());
            }
            match Errno::last_raw() {
                libc::ENOENT | libc::ENOTDIR | libc::ENAMETOOLONG => {}
                libc::EACCES => worst = libc::EACCES,
                other => {
                    worst = other;
                    break;
                }
            }
        }
        progress.stage.store(EXEC_FAILED, Ordering::SeqCst);
        worst
    }
}
