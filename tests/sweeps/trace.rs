//! Breaks one system call of one process: the process is killed as it makes it, or the call fails.
//!
//! A tracer of our own, because what matters is *which* process: the launcher, what it starts, or what that
//! starts; the processes of the job are let go of as soon as they execute anything else than outlive.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::libc;

use crate::env::OUTLIVE;
use crate::process::Process;

/// Which process is meant, by its distance from the one that is executed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The command itself.
    Caller = 0,
    /// What it starts: a supervisor, or a helper.
    Child = 1,
    /// What that starts: a leader before its exec, or the helper in its own session.
    Grandchild = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Kill,
    Fail(i32),
}

/// The `nth` call (from 1) of the process in this role is broken; with `call`, only calls of that number count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) role: Role,
    pub(crate) call: Option<i64>,
    pub(crate) nth: u32,
    pub(crate) act: Act,
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Traced {
    /// The number of the call that was broken; none: there was no such point.
    pub(crate) hit: Option<i64>,
    /// 128 + n if signal n ended it.
    pub(crate) code: i32,
    pub(crate) seen: u32,
}

struct Tracee {
    role: i32,
    process: i32,
    failing: Option<i32>,
}

struct Tracer {
    fault: Fault,
    seen: u32,
    hit: Option<i64>,
    tracees: HashMap<i32, Tracee>,
    /// New processes that stopped before their parent told of them.
    early: HashSet<i32>,
    /// Somebody's child will never be told of.
    untold: bool,
}

/// Runs a command under the tracer until everything that is traced has ended. `after` is done once the command
/// itself has, so that what it started can come to its end.
pub(crate) fn run(mut command: Command, fault: Fault, after: impl FnOnce()) -> Traced {
    // SAFETY: one system call, which is safe between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    #[allow(clippy::zombie_processes, reason = "the tracer waits for it")]
    let child = command.spawn().expect("ptrace is permitted");
    let caller = i32::try_from(child.id()).unwrap();
    let mut tracer =
        Tracer { fault, seen: 0, hit: None, tracees: HashMap::new(), early: HashSet::new(), untold: false };
    tracer.tracees.insert(caller, Tracee { role: 0, process: caller, failing: None });
    let mut code = None;
    let mut first = true;
    let mut after = Some(after);
    while let Some((pid, status)) = next_stop() {
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            tracer.tracees.remove(&pid);
            if pid == caller {
                let signalled = libc::WIFSIGNALED(status);
                let number = if signalled { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) };
                code = Some(number);
                after.take().into_iter().for_each(|after| after());
            }
        } else if first {
            first = false;
            let options = libc::PTRACE_O_TRACESYSGOOD
                | libc::PTRACE_O_TRACEFORK
                | libc::PTRACE_O_TRACEVFORK
                | libc::PTRACE_O_TRACECLONE
                | libc::PTRACE_O_TRACEEXEC
                | libc::PTRACE_O_EXITKILL;
            ask(libc::PTRACE_SETOPTIONS, pid, usize::try_from(options).unwrap());
            ask(libc::PTRACE_SYSCALL, pid, 0);
        } else {
            tracer.stopped(pid, status);
        }
    }
    Traced { hit: tracer.hit, code: code.unwrap(), seen: tracer.seen }
}

/// The next tracee of this thread that has stopped or ended.
fn next_stop() -> Option<(i32, i32)> {
    let mut status = 0;
    loop {
        // SAFETY: writes one int. `__WNOTHREAD`: other tests have children of their own.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
        if pid > 0 {
            return Some((pid, status));
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => {}
            _ => return None,
        }
    }
}

/// A request whose tracee may have been killed meanwhile.
fn ask(request: libc::c_uint, pid: i32, data: usize) {
    // SAFETY: these requests take numbers only.
    unsafe { libc::ptrace(request, pid, 0, data) };
}

impl Tracer {
    fn stopped(&mut self, pid: i32, status: i32) {
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        if !self.tracees.contains_key(&pid) {
            if self.untold {
                ask(libc::PTRACE_DETACH, pid, 0);
            } else {
                self.early.insert(pid);
            }
            return;
        }
        match event {
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                self.born(pid, event);
            }
            libc::PTRACE_EVENT_EXEC => {
                let job = std::fs::read_link(format!("/proc/{pid}/exe"))
                    .is_ok_and(|exe| exe.as_os_str() != OUTLIVE);
                if job {
                    self.tracees.remove(&pid);
                    ask(libc::PTRACE_DETACH, pid, 0);
                    return;
                }
            }
            _ if signal == libc::SIGTRAP | 0x80 && self.system_call(pid) => return,
            _ if signal == libc::SIGTRAP | 0x80 => {}
            // The stop of a new process is the tracer's; other signals are its own.
            _ if signal != libc::SIGSTOP => {
                ask(libc::PTRACE_SYSCALL, pid, usize::try_from(signal).unwrap());
                return;
            }
            _ => {}
        }
        ask(libc::PTRACE_SYSCALL, pid, 0);
    }

    /// A thread has its process's role, a process the next one.
    fn born(&mut self, parent: i32, event: i32) {
        let mut child: libc::c_ulong = 0;
        // SAFETY: writes one unsigned long.
        let told = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, parent, 0, &raw mut child) };
        // A parent that was killed meanwhile tells nothing, and nobody will tell of its child. (To wait for number 0
        // would take away the end of any child of this program.)
        if told < 0 || child == 0 {
            self.untold = true;
            self.early.drain().for_each(|pid| ask(libc::PTRACE_DETACH, pid, 0));
            return;
        }
        let child = i32::try_from(child).unwrap();
        let of = &self.tracees[&parent];
        let thread = event == libc::PTRACE_EVENT_CLONE;
        let role = if thread { of.role } else { of.role + 1 };
        let process = if thread { of.process } else { child };
        if !self.early.remove(&child) && !waits(child) {
            return;
        }
        if role > self.fault.role as i32 {
            ask(libc::PTRACE_DETACH, child, 0);
        } else {
            self.tracees.insert(child, Tracee { role, process, failing: None });
            ask(libc::PTRACE_SYSCALL, child, 0);
        }
    }

    /// True if the process was killed.
    fn system_call(&mut self, pid: i32) -> bool {
        // SAFETY: all zero is a valid value, and the kernel fills in no more than its size.
        let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::ptrace_syscall_info>();
        // SAFETY: as above.
        unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, pid, size, &raw mut info) };
        let Some(tracee) = self.tracees.get_mut(&pid) else { return false };
        if info.op == libc::PTRACE_SYSCALL_INFO_EXIT {
            if let Some(errno) = tracee.failing.take() {
                set_result(pid, -i64::from(errno));
            }
            return false;
        }
        if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY || tracee.role != self.fault.role as i32 {
            return false;
        }
        // SAFETY: at an entry this is the field in use.
        let number = i64::try_from(unsafe { info.u.entry.nr }).unwrap();
        if self.fault.call.is_some_and(|call| call != number) {
            return false;
        }
        self.seen += 1;
        if self.seen != self.fault.nth {
            return false;
        }
        self.hit = Some(number);
        match self.fault.act {
            Act::Kill => {
                if let Some(process) = Process::open(tracee.process) {
                    process.signal(libc::SIGKILL);
                }
                true
            }
            Act::Fail(errno) => {
                tracee.failing = Some(errno);
                skip_call(pid);
                false
            }
        }
    }
}

/// Waits for the first stop of a new process. False if it was killed before.
fn waits(pid: i32) -> bool {
    let mut status = 0;
    // SAFETY: writes one int.
    let got = unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
    got == pid && libc::WIFSTOPPED(status)
}

#[cfg(target_arch = "x86_64")]
fn with_registers(pid: i32, change: impl Fn(&mut libc::user_regs_struct)) {
    // SAFETY: all zero is a valid value; the kernel fills in and reads the whole structure.
    unsafe {
        let mut registers: libc::user_regs_struct = std::mem::zeroed();
        libc::ptrace(libc::PTRACE_GETREGS, pid, 0, &raw mut registers);
        change(&mut registers);
        libc::ptrace(libc::PTRACE_SETREGS, pid, 0, &raw const registers);
    }
}

/// A number that no call has: the kernel does nothing.
#[cfg(target_arch = "x86_64")]
fn skip_call(pid: i32) {
    with_registers(pid, |registers| registers.orig_rax = u64::MAX);
}

#[cfg(target_arch = "x86_64")]
fn set_result(pid: i32, value: i64) {
    with_registers(pid, |registers| registers.rax = value.cast_unsigned());
}

#[cfg(not(target_arch = "x86_64"))]
fn skip_call(_: i32) {
    unimplemented!("calls are made to fail on x86_64 only");
}

#[cfg(not(target_arch = "x86_64"))]
fn set_result(_: i32, _: i64) {}
