//! The two ways a process is started: the supervisor by fork, the leader by a vfork that lasts until its exec.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::libc;
use nix::sys::signal::SigSet;
use nix::unistd::{ForkResult, fork};

use super::{check, proc};

/// Where the supervisor finds its end of the line to the launcher.
pub const LINE: RawFd = 3;

/// The near end of a line and the process at its far end.
#[derive(Debug)]
pub struct Line {
    pub fd: UnixStream,
    pub pid: i32,
}

/// Forks. `None` in the child, whose line is descriptor [`LINE`]. Only for a process with one thread.
pub fn fork_with_line() -> io::Result<Option<Line>> {
    let (ours, theirs) = UnixStream::pair()?;
    // SAFETY: called while this process has one thread, so the child may do anything.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(Some(Line { fd: ours, pid: child.as_raw() })),
        ForkResult::Child => {
            drop(ours);
            place_line(theirs);
            Ok(None)
        }
    }
}

/// Forks and executes this same program with `word` as its only argument and an empty environment: a process
/// that shares no memory with this one and shows none of its arguments.
pub fn exec_self_with_line(word: &str) -> io::Result<Line> {
    let (ours, theirs) = UnixStream::pair()?;
    let name = c"outlive";
    let word = CString::new(word)?;
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
            libc::execve(c"/proc/self/exe".as_ptr(), argv.as_ptr(), envp.as_ptr());
            libc::_exit(127);
        }
        match forked {
            ForkResult::Parent { child } => child.as_raw(),
            ForkResult::Child => 0,
        }
    };
    Ok(Line { fd: ours, pid })
}

/// Goes on in a child, so that whoever started this process is no ancestor of what follows. False in the parent.
pub fn hand_over() -> io::Result<bool> {
    // SAFETY: called while this process has one thread.
    Ok(matches!(unsafe { fork() }?, ForkResult::Child))
}

fn place_line(line: UnixStream) {
    if line.as_raw_fd() == LINE {
        let _ = line.into_raw_fd();
        return;
    }
    // SAFETY: nothing in this freshly forked process uses descriptor 3 yet, whatever the caller had there.
    unsafe { libc::dup3(line.as_raw_fd(), LINE, libc::O_CLOEXEC) };
}

/// Lets go of everything the caller had: descriptors (but for [`LINE`]), session, directory, signals.
pub fn let_go() -> io::Result<UnixStream> {
    nix::unistd::setsid().or_else(|error| {
        if error == nix::errno::Errno::EPERM { Ok(nix::unistd::getpid()) } else { Err(error) }
    })?;
    nix::unistd::chdir("/")?;
    // SAFETY: plain system calls on descriptors that this process alone owns; nothing else holds them.
    unsafe {
        let first = libc::c_uint::try_from(LINE + 1).unwrap_or(4);
        if libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) < 0 {
            close_each(first);
        }
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
        default_signals();
    }
    SigSet::all().thread_block()?;
    // SAFETY: descriptor 3 is ours since the fork and nobody else has an owner for it.
    Ok(unsafe { UnixStream::from_raw_fd(LINE) })
}

/// For kernels before 5.9, which have no close_range(2).
fn close_each(first: libc::c_uint) {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<RawFd> = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|&fd| fd >= RawFd::try_from(first).unwrap_or(RawFd::MAX)) {
        // SAFETY: as in `let_go`; the directory's own descriptor is closed by now and closing it again fails.
        unsafe { libc::close(fd) };
    }
}

/// Every disposition to its default: what a parent ignores is inherited through fork and exec. The libraries' own
/// signals too, which signal(3) refuses to touch: glibc's posix_spawn leaves 32 ignored.
///
/// # Safety
/// No handler of this process may be needed any longer.
unsafe fn default_signals() {
    // The kernel's struct sigaction, all zero on every architecture: SIG_DFL, no flags, an empty mask.
    let default = [0_u64; 8];
    let old = std::ptr::null_mut::<libc::c_void>();
    for signal in 1..=64 {
        // SAFETY: the default disposition runs no code of ours; numbers that may not be set are refused.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), old, 8) };
    }
}

/// Makes orphaned descendants children of this process, see PR_SET_CHILD_SUBREAPER in prctl(2).
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: takes integers only.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }.into()).map(drop)
}

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

/// Shows this process under `name` (15 bytes at most) in place of its name and its command line, and empties
/// what /proc shows of its environment. Its arguments and environment must not be used any longer.
pub fn retitle(name: &str) {
    if let Ok(name) = CString::new(name) {
        // SAFETY: the string ends in NUL and lives through the call.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
    let Ok(stat) = proc::own_stat() else { return };
    let [arg_start, arg_end, env_start, env_end] = stat.areas;
    wipe(arg_start, arg_end);
    wipe(env_start, env_end);
    let room = arg_end.saturating_sub(arg_start).saturating_sub(1).min(name.len());
    if arg_start != 0 && room > 0 {
        // SAFETY: the kernel says that this process's argument area begins here and is at least this long; it
        // is ordinary writable stack, and the caller vouches that nobody reads it any more.
        unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), arg_start as *mut u8, room) };
    }
}

/// Zeroes an area of the stack; whole pages are given back to the kernel, whatever their number.
fn wipe(start: usize, end: usize) {
    const PAGE: usize = 4096;
    if start == 0 || end <= start {
        return;
    }
    let (inner_start, inner_end) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
    // SAFETY: as in `retitle`: the area is writable private memory of this process that nobody uses any more.
    // Whole private anonymous pages read as zero after MADV_DONTNEED, see madvise(2).
    unsafe {
        if inner_end > inner_start
            && libc::madvise(inner_start as *mut c_void, inner_end - inner_start, libc::MADV_DONTNEED) == 0
        {
            std::ptr::write_bytes(start as *mut u8, 0, inner_start - start);
            std::ptr::write_bytes(inner_end as *mut u8, 0, end - inner_end);
        } else {
            std::ptr::write_bytes(start as *mut u8, 0, end - start);
        }
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

const SETUP: i32 = 0;
const DIRECTORY: i32 = 5;
const GATE: i32 = 1;
const BROKEN: i32 = 2;
const EXEC: i32 = 3;
const EXEC_FAILED: i32 = 4;

struct Shared<'a> {
    leader: Leader<'a>,
    stage: AtomicI32,
    errno: AtomicI32,
}

/// Starts the leader; returns once it has executed its program or is dead.
pub fn start_leader(leader: Leader<'_>) -> io::Result<(i32, Reached)> {
    const STACK: usize = 64 * 1024;
    let mut shared = Shared { leader, stage: AtomicI32::new(SETUP), errno: AtomicI32::new(0) };
    // SAFETY: an anonymous mapping of our own, unmapped below. CLONE_VFORK suspends this thread until the child
    // has executed or ended, so `shared` and the stack outlive the child's use of them; this process has one
    // thread and every signal blocked, so no handler runs in the child. The child only makes system calls.
    let pid = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        let stack = libc::mmap(std::ptr::null_mut(), STACK, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if stack == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let pid = libc::clone(leader_main, stack.byte_add(STACK), flags, (&raw mut shared).cast());
        let result = check(pid.into());
        libc::munmap(stack, STACK);
        i32::try_from(result?).map_err(io::Error::other)?
    };
    let errno = shared.errno.load(Ordering::SeqCst);
    let reached = match shared.stage.load(Ordering::SeqCst) {
        SETUP => Reached::SetupFailed(errno),
        DIRECTORY => Reached::DirectoryFailed(errno),
        GATE => Reached::Gate,
        BROKEN => Reached::BrokenOff,
        EXEC => Reached::Exec,
        _ => Reached::ExecFailed(errno),
    };
    Ok((pid, reached))
}

extern "C" fn leader_main(argument: *mut c_void) -> c_int {
    // SAFETY: `start_leader` passes a `Shared` that it keeps until this process has executed or ended.
    let shared = unsafe { &mut *argument.cast::<Shared>() };
    // SAFETY: only system calls; the pointers were laid out by the caller and stay valid.
    let errno = unsafe { set_up_and_exec(shared) };
    shared.errno.store(errno, Ordering::SeqCst);
    // SAFETY: ends this process without running anything of the memory it shares.
    unsafe { libc::_exit(127) }
}

/// Returns only with the errno of what failed; `stage` says where.
unsafe fn set_up_and_exec(shared: &mut Shared) -> i32 {
    let leader = &mut shared.leader;
    // SAFETY: see `leader_main`.
    unsafe {
        if libc::setsid() < 0 {
            return *libc::__errno_location();
        }
        for &fd in leader.close {
            libc::close(fd);
        }
        for (fd, &source) in (0..).zip(&leader.stdio) {
            if libc::dup2(source, fd) < 0 {
                return *libc::__errno_location();
            }
        }
        if libc::fchdir(leader.cwd) < 0 {
            shared.stage.store(DIRECTORY, Ordering::SeqCst);
            return *libc::__errno_location();
        }
        libc::umask(leader.umask);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());

        shared.stage.store(GATE, Ordering::SeqCst);
        let message = Message { tag: Message::AT_GATE, value: libc::getpid() }.encode();
        // Unheard, it would wait at the gate for ever, and the launcher for its word. A launcher that has gone
        // is seen below.
        let sent = libc::send(leader.gate, message.as_ptr().cast(), message.len(), libc::MSG_NOSIGNAL);
        if sent < 0 && !matches!(*libc::__errno_location(), libc::EPIPE | libc::ECONNRESET) {
            shared.stage.store(SETUP, Ordering::SeqCst);
            return *libc::__errno_location();
        }
        let mut byte = 0_u8;
        loop {
            match libc::read(leader.gate, (&raw mut byte).cast(), 1) {
                1 => break,
                -1 if *libc::__errno_location() == libc::EINTR => {}
                _ => {
                    shared.stage.store(BROKEN, Ordering::SeqCst);
                    return 0;
                }
            }
        }
        shared.stage.store(EXEC, Ordering::SeqCst);
        let mut worst = libc::ENOENT;
        for &program in leader.candidates {
            libc::execve(program, leader.argv_with_slot.as_ptr().add(1), leader.envp.as_ptr());
            if *libc::__errno_location() == libc::ENOEXEC {
                // A script without an interpreter line: the shell runs it, as execvp(3) does.
                leader.argv_with_slot[0] = c"/bin/sh".as_ptr();
                leader.argv_with_slot[1] = program;
                libc::execve(c"/bin/sh".as_ptr(), leader.argv_with_slot.as_ptr(), leader.envp.as_ptr());
            }
            match *libc::__errno_location() {
                libc::ENOENT | libc::ENOTDIR | libc::ENAMETOOLONG => {}
                libc::EACCES => worst = libc::EACCES,
                other => {
                    worst = other;
                    break;
                }
            }
        }
        shared.stage.store(EXEC_FAILED, Ordering::SeqCst);
        worst
    }
}
