//! `reap --orphans adopt`: a job that has lost its supervisor gets a new one.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use nix::libc::{self, SIGKILL};
use nix::poll::{PollFd, PollFlags, poll};
use serde_json::{Value, json};

use super::Background;
use crate::env::{TestEnv, can};

/// Takes a job's supervisor away and has it adopted.
fn adopted(env: &TestEnv, id: &str) -> Value {
    let before = env.job(id);
    env.kill_supervisor(id);
    assert_eq!(env.state_of(id), "orphaned");
    let planned = env.json(["reap", "--orphans", "adopt", "--dry-run"]);
    assert_eq!((&planned[0]["action"], env.state_of(id)), (&json!("adopted"), "orphaned".into()));
    let done = env.json(["reap", "--orphans", "adopt"]);
    assert_eq!((&done[0]["id"], &done[0]["action"]), (&json!(id), &json!("adopted")), "{done}");
    let job = env.job(id);
    assert_eq!((&job["identity"], &job["supervisor"]["alive"]), (&json!("owned"), &json!(true)));
    assert_eq!((&job["pid"], &job["run"]), (&before["pid"], &before["run"]));
    assert_ne!(job["supervisor"]["pid"], before["supervisor"]["pid"]);
    job
}

/// Whether the kernel tells the status of a process to others than its parent (`PIDFD_GET_INFO` with exit
/// information, Linux 6.15), and the parent of orphans waits for them: found out by trying.
fn ends_are_told(env: &TestEnv) -> bool {
    // Only a pidfd can be asked.
    if !can("handles") {
        return false;
    }
    let gate = env.gate("probe");
    let orphan = "sh -c 'read go <\"$1\"; exit 7' sh \"$1\" >/dev/null 2>&1 & echo $!";
    let pid: i32 = env.bash(orphan, &[gate.path()]).ok().stdout.trim_end().parse().unwrap();
    // SAFETY: pidfd_open(2) takes two numbers and returns a new descriptor or -1.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: the orphan waits at the gate, so the kernel has just made this descriptor for us.
    let process = unsafe { OwnedFd::from_raw_fd(i32::try_from(raw).unwrap()) };
    gate.open();
    let limit: u16 = 2000;
    if poll(&mut [PollFd::new(process.as_fd(), PollFlags::empty())], limit).unwrap() == 0 {
        return false;
    }
    const EXIT: u64 = 1 << 3;
    // struct pidfd_info of linux/pidfd.h in its first size, 64 bytes, as _IOWR(0xFF, 11) has it; the first of its
    // words is the mask.
    let mut info = [EXIT, 0, 0, 0, 0, 0, 0, 0];
    const GET_INFO: libc::c_ulong = (3 << 30) | (64 << 16) | (0xFF << 8) | 11;
    // SAFETY: the descriptor is open and the buffer is as large as the request says.
    let asked = unsafe { libc::ioctl(process.as_raw_fd(), GET_INFO, info.as_mut_ptr()) };
    asked == 0 && info[0] & EXIT != 0
}

#[test]
fn an_adopted_job_is_running_again() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let script = "(echo up >&3; exec sleep 1000) & setsid sh -c 'echo up >&3; exec sleep 1000' & \
                  echo up >&3; wait; wait";
    let id = env.script(script, &[fifo.path()]);
    assert_eq!([fifo.line(), fifo.line(), fifo.line()], ["up"; 3]);
    assert_eq!(adopted(&env, &id)["state"], "running");
    assert_eq!(env.json(["reap"]), json!([]), "an adopted job is no orphan");
    let stopped = |id: &str| -> Vec<bool> {
        let job = env.job(id);
        job["processes"].as_array().unwrap().iter().map(|process| process["kernel_state"] == "T").collect()
    };
    env.outlive(["pause", &id]).ok();
    assert_eq!((env.state_of(&id), stopped(&id)), ("paused".into(), vec![true; 3]));
    env.outlive(["resume", &id]).ok();
    assert_eq!((env.state_of(&id), stopped(&id)), ("running".into(), vec![false; 3]));
    // And once more, after a second loss.
    env.outlive(["pause", &id]).ok();
    assert_eq!(adopted(&env, &id)["state"], "paused");
    env.outlive(["stop", &id]).ok();
    fifo.end();
    let job = env.job(&id);
    let (state, cause) =
        if ends_are_told(&env) { ("stopped", "stop") } else { ("interrupted", "supervisor-lost") };
    assert_eq!((&job["state"], &job["cause"]), (&json!(state), &json!(cause)));
    assert_eq!(env.records().iter().filter(|record| record["kind"] == "adopted").count(), 2);
}

#[test]
fn the_end_of_an_adopted_job_is_noticed_and_its_status_never_invented() {
    let env = TestEnv::new();
    let (mut fifo, mut told, gate) = (env.fifo("life"), env.fifo("told"), env.gate("gate"));
    let tell = format!("TOLD={}", told.path());
    let hook = "echo $OUTLIVE_STATE:$OUTLIVE_EXIT_CODE >\"$TOLD\"";
    let script = "echo up >&3; read go <\"$2\"; exit 7";
    let id = env.script_with(&["--on-exit", hook, "-e", &tell], script, &[fifo.path(), gate.path()]);
    fifo.line();
    adopted(&env, &id);
    let wait = Background::start(env.command(["wait", &id]));
    gate.open();
    fifo.end();
    let told_by_kernel = ends_are_told(&env);
    let job = env.json(["wait", &id])[0].clone();
    if told_by_kernel {
        wait.finish().ended(7);
        assert_eq!(told.line(), "exited:7");
        assert_eq!((&job["state"], &job["exit_code"]), (&json!("exited"), &json!(7)));
    } else {
        wait.finish().ended(122);
        assert_eq!(told.line(), "interrupted:");
        assert_eq!((&job["state"], &job["exit_code"]), (&json!("interrupted"), &json!(null)));
        assert_eq!(job["cause"], "supervisor-lost");
    }
}

#[test]
fn an_adopted_job_keeps_its_time_limit_and_its_owner() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    // The limit may be over before the adoption: then it counts at once.
    let id = env.sleeper(&["-t", "3s"], &mut fifo);
    adopted(&env, &id);
    env.outlive(["wait", "--group", &id]);
    fifo.end();
    let requested = |id: &str| {
        let records = env.records();
        let found = records.iter().find(|record| record["kind"] == "stop-requested" && record["id"] == id);
        found.unwrap()["detail"].clone()
    };
    assert_eq!(requested(&id), "timeout");
    let owner = Background::idle(&env);
    let id = env.sleeper(&["--owner", &owner.pid().to_string(), "--on-owner-exit", "stop"], &mut fifo);
    adopted(&env, &id);
    owner.die_of(SIGKILL);
    fifo.end();
    env.outlive(["wait", "--group", &id]).ended(122);
    assert_eq!(requested(&id), "owner-gone");
}

#[test]
fn orphans_are_kept_or_stopped_as_asked() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    env.kill_supervisor(&id);
    let kept = env.json(["reap", "--orphans", "keep"]);
    assert_eq!((&kept[0]["action"], env.state_of(&id)), (&json!("kept"), "orphaned".into()));
    let stopped = env.json(["reap"]);
    assert_eq!((&stopped[0]["action"], &stopped[0]["state"]), (&json!("stopped"), &json!("interrupted")));
    fifo.end();
    assert_eq!(env.job(&id)["cause"], "orphan");
}
