//! Processes that stand still: held by a tracer, stopped by a signal, or not heard because a FIFO is full.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;

use nix::libc;
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use serde_json::json;

use crate::env::{Output, TestEnv, eventually, lacks, number};
use crate::lock::Held;
use crate::process::{Process, is_alive, is_stopped, start_of};

/// Holds a process as a debugger does. Only the thread that began may ask it for anything.
struct Tracer(Pid);

impl Tracer {
    fn hold(pid: i32) -> Self {
        let pid = Pid::from_raw(pid);
        ptrace::seize(pid, ptrace::Options::empty()).expect("root may trace, and so may a parent");
        ptrace::interrupt(pid).unwrap();
        waitpid(pid, Some(WaitPidFlag::__WALL)).unwrap();
        Self(pid)
    }

    fn let_go(self) {
        ptrace::detach(self.0, None).unwrap();
    }

    /// A tracer learns of the death of what it traces before the parent does, which learns of it only now.
    fn bury(self) {
        waitpid(self.0, Some(WaitPidFlag::__WALL)).unwrap();
    }
}

#[test]
fn a_traced_job_is_paused_and_its_own_all_the_same() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    let tracer = Tracer::hold(env.leader(&id).pid);
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["identity"]), (&json!("paused"), &json!("owned")), "{job}");
    assert_eq!(job["processes"][0]["kernel_state"], "t", "{job}");
    env.outlive(["wait", "-t", "0", &id]).ended(124);
    tracer.let_go();
    assert_eq!(env.state_of(&id), "running");
    let tracer = Tracer::hold(env.leader(&id).pid);
    env.kill_supervisor(&id);
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["identity"]), (&json!("orphaned"), &json!("owned")), "{job}");
    tracer.let_go();
    env.outlive(["stop", &id]).ok();
    fifo.end();
    assert_eq!(env.state_of(&id), "interrupted");
}

#[test]
fn what_was_killed_under_a_tracer_has_a_status_once_the_tracer_lets_go() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    let leader = env.leader(&id);
    let tracer = Tracer::hold(leader.pid);
    let stop = env.command(["stop", "-t", "0", &id]).spawn().unwrap();
    leader.wait();
    fifo.end();
    // Its parent has not been told: neither is it alive nor is it known how it ended.
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["cause"]), (&json!("unknown"), &json!("exit-not-recorded")), "{job}");
    tracer.bury();
    Output::finish(stop, "stop").ok();
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["signal"]["number"]), (&json!("stopped"), &json!(9)), "{job}");
}

/// Whoever fills the FIFO of a stopped supervisor does not keep a stop from being heard.
#[test]
fn a_supervisor_whose_fifo_is_full_is_asked_until_it_hears() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    let supervisor = env.supervisor(&id);
    supervisor.signal(libc::SIGSTOP);
    eventually("the supervisor is stopped", || is_stopped(supervisor.pid));
    let path = env.run_dir(&id, 1).join("control");
    let mut control = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path).unwrap();
    let full = loop {
        if let Err(error) = control.write_all(b"1 nonsense\n") {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    env.outlive(["stop", &id]).ok();
    fifo.end();
    assert_eq!(env.state_of(&id), "stopped");
}

/// The lock of a run is handed over with its file, and the launcher has that open until the gate: stopped before, it
/// holds the lock for a supervisor that may be gone.
#[test]
fn a_stopped_launcher_that_holds_the_lock_it_handed_over_makes_nobody_look_supervised() {
    for supervisor_too in [false, true] {
        // At the gate, a leader has neither mark nor words of the job.
        if supervisor_too && lacks("handles") {
            return;
        }
        let env = TestEnv::new();
        let first = env.run(["true"]);
        env.settled(&first);
        let lock = Held::new(&env.state().join("ledger.lock"));
        let ran = env.work().join("ran");
        let script = format!("echo $$ >{}; exec sleep 1000", ran.display());
        let child = lock.block(&mut env.command(["run", "--name", "web", "--", "sh", "-c", &script]));
        let launcher = Process::open(i32::try_from(child.id()).unwrap()).unwrap();
        launcher.signal(libc::SIGSTOP);
        eventually("the launcher is stopped", || is_stopped(launcher.pid));
        drop(lock);

        let id = std::fs::read_to_string(env.state().join("names/web")).unwrap().trim().to_owned();
        let launch = env.launch_record(&id, 1);
        let leader = number(&launch["identity"]["pid"]);
        let at_the_gate =
            || is_alive(leader) && start_of(leader) == launch["identity"]["start_time"].as_u64();
        assert!(at_the_gate());
        let state = if supervisor_too {
            env.kill_supervisor(&id);
            "orphaned"
        } else {
            "starting"
        };
        assert_eq!(env.state_of(&id), state);
        env.outlive(["wait", "-t", "0", &id]).ended(124);
        env.outlive(["stop", "-t", "0", &id]).ok();
        assert!(!at_the_gate(), "a stop is a stop");
        let state = if supervisor_too { "interrupted" } else { "failed" };
        assert_eq!(env.state_of(&id), state);

        launcher.signal(libc::SIGCONT);
        Output::finish(child, "the launcher goes on").ended(125);
        assert!(!ran.exists(), "nothing was executed");
        env.outlive(["reap"]).ok();
        let job = env.job(&id);
        assert_eq!((&job["state"], &job["exit_code"]), (&json!(state), &json!(null)), "{job}");
        env.outlive(["run", "--name", "web", "true"]).ok();
    }
}
