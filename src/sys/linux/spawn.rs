//! How processes are started on Linux: the supervisor by fork, the leader by a vfork that lasts until its exec.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::libc;
use nix::unistd::{ForkResult, fork};

use super::proc;
use crate::sys::check;
use crate::sys::spawn::{LINE, Leader, Line, Progress, be_leader};

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

fn place_line(line: UnixStream) {
    if line.as_raw_fd() == LINE {
        let _ = line.into_raw_fd();
        return;
    }
    // SAFETY: nothing in this freshly forked process uses descriptor 3 yet, whatever the caller had there.
    unsafe { libc::dup3(line.as_raw_fd(), LINE, libc::O_CLOEXEC) };
}

/// By what this very program is executed again, even if its file was replaced.
pub(in crate::sys) fn own_program() -> io::Result<Cow<'static, CStr>> {
    Ok(Cow::Borrowed(c"/proc/self/exe"))
}

/// Closes this descriptor and all above it.
pub(in crate::sys) fn close_from(first: RawFd) {
    // SAFETY: descriptors that this process alone owns; nothing else holds them.
    if unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) } < 0 {
        close_each(first);
    }
}

/// For kernels before 5.9, which have no close_range(2).
fn close_each(first: RawFd) {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<RawFd> = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|&fd| fd >= first) {
        // SAFETY: as in `let_go`; the directory's own descriptor is closed by now and closing it again fails.
        unsafe { libc::close(fd) };
    }
}

/// These dispositions to their default: what a parent ignores is inherited through fork and exec. The libraries' own
/// signals too, which signal(3) refuses to touch: glibc's posix_spawn leaves 32 ignored.
///
/// # Safety
/// No handler of this process may be needed any longer.
pub unsafe fn default_signals(signals: impl IntoIterator<Item = c_int>) {
    // The kernel's struct sigaction, all zero on every architecture: SIG_DFL, no flags, an empty mask.
    let default = [0_u64; 8];
    let old = std::ptr::null_mut::<libc::c_void>();
    for signal in signals {
        // SAFETY: the default disposition runs no code of ours; numbers that may not be set are refused.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), old, 8) };
    }
}

/// Makes orphaned descendants children of this process, see PR_SET_CHILD_SUBREAPER in prctl(2).
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: takes integers only.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }.into()).map(drop)
}

/// As what a supervisor shows itself in `ps`: 15 bytes, all that the kernel keeps.
pub fn title(id: &str) -> String {
    format!("outlive:{id}")
}

/// Names this process, and what it starts from now on, until that executes something: 15 bytes at most.
pub fn name_process(name: &str) {
    if let Ok(name) = CString::new(name) {
        // SAFETY: the string ends in NUL and lives through the call.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
}

/// Where /proc finds the command line and the environment of this process.
#[derive(Debug)]
pub struct Title([usize; 4]);

impl Title {
    pub fn own() -> Self {
        Self(proc::own_areas().unwrap_or_default())
    }

    /// Shows `name` in place of the command line, and empties what is shown of the environment. The arguments and the
    /// environment must not be used any longer.
    pub fn change(&self, name: &str) {
        let Self([arg_start, arg_end, env_start, env_end]) = *self;
        wipe(arg_start, arg_end);
        wipe(env_start, env_end);
        let room = arg_end.saturating_sub(arg_start).saturating_sub(1).min(name.len());
        if arg_start != 0 && room > 0 {
            // SAFETY: the kernel says that this process's argument area begins here and is at least this long; it
            // is ordinary writable stack, and the caller vouches that nobody reads it any more.
            unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), arg_start as *mut u8, room) };
        }
    }
}

/// Zeroes an area of the stack; whole pages are given back to the kernel, whatever their number.
fn wipe(start: usize, end: usize) {
    const PAGE: usize = 4096;
    if start == 0 || end <= start {
        return;
    }
    let (inner_start, inner_end) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
    // SAFETY: as in `Title::change`: the area is writable private memory of this process that nobody uses any more.
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

struct Shared<'a, 'b> {
    leader: &'a mut Leader<'b>,
    progress: &'a Progress,
}

/// Starts the leader; returns once it has executed its program or is dead.
pub(in crate::sys) fn start_with(leader: &mut Leader<'_>) -> io::Result<(i32, Progress)> {
    const STACK: usize = 64 * 1024;
    let progress = Progress::default();
    let mut shared = Shared { leader, progress: &progress };
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
    Ok((pid, progress))
}

extern "C" fn leader_main(argument: *mut c_void) -> c_int {
    // SAFETY: `start_with` passes a `Shared` that it keeps until this process has executed or ended.
    let Shared { leader, progress } = unsafe { &mut *argument.cast::<Shared>() };
    // SAFETY: this process is new, and its parent had every signal blocked.
    unsafe { be_leader(leader, progress) }
}
