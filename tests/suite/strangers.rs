//! Public reports, made small: processes that are not the job's, however much they look like it.

use std::fs;
use std::process::{Child, Stdio};

use nix::libc;
use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::process;

/// A process that is no job's.
struct Stranger(Child);

impl Stranger {
    fn new(env: &TestEnv, words: &[&str]) -> Self {
        let mut command = env.program("setsid");
        command.args(words).env_clear().stdout(Stdio::null()).stderr(Stdio::null());
        let stranger = Self(command.spawn().unwrap());
        // Only once it is executed does it have its own command line and session.
        crate::env::eventually("the stranger is executed", || {
            fs::read(format!("/proc/{}/cmdline", stranger.0.id())).is_ok_and(|raw| {
                raw.split(|&byte| byte == 0)
                    .filter(|word| !word.is_empty())
                    .eq(words.iter().map(|w| w.as_bytes()))
            })
        });
        stranger
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }

    fn lives(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_supervisor_of_another_namespace_is_not_looked_for_in_this_one() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    let supervisor = env.supervisor(&id);
    supervisor.signal(libc::SIGSTOP);
    // Here its number and its start time are a stranger's, which has been stopped, or has a child.
    let stranger = Stranger::new(&env, &["sleep", "1000"]);
    process::Process::open(stranger.pid()).unwrap().signal(libc::SIGSTOP);
    crate::env::eventually("the stranger is stopped", || process::is_stopped(stranger.pid()));
    let forge = |pid: i32| {
        env.forge(&id, |launch| {
            launch["identity"]["place"]["pid_ns"] = json!(7);
            launch["identity"]["pid"] = json!(stranger.pid());
            launch["supervisor"] = json!({"pid": pid, "start_time": process::start_of(pid).unwrap()});
        });
    };
    forge(i32::try_from(std::process::id()).unwrap());
    assert_eq!(env.job(&id)["processes"], json!([]));
    forge(stranger.pid());
    let stopped = env.json_of(["stop", "-t", "0", &id], 1);
    assert_eq!((&stopped[0]["state"], &stopped[0]["survivors"]), (&json!("running"), &json!([])));
    assert!(process::is_stopped(stranger.pid()));
    supervisor.signal(libc::SIGCONT);
    fifo.end();
    supervisor.wait();
}

/// lionagi#3402, pueue#302, atuin#4034
#[test]
fn case_13_a_stranger_under_a_recorded_number_lives() {
    type Forge = fn(&mut Value, i32);
    let other_start: Forge = |launch, pid| {
        for field in ["pid", "pgid", "sid"] {
            launch["identity"][field] = json!(pid);
        }
        launch["identity"]["start_time"] = json!(process::start_of(pid).unwrap() - 1);
    };
    let other_boot: Forge = |launch, pid| {
        for field in ["pid", "pgid", "sid"] {
            launch["identity"][field] = json!(pid);
        }
        launch["identity"]["start_time"] = json!(process::start_of(pid).unwrap());
        let boot = &mut launch["identity"]["place"]["boot_id"];
        *boot = json!(format!("{}0", boot.as_str().unwrap()));
    };
    for (forge, cause, identity) in
        [(other_start, "supervisor-lost", "recycled"), (other_boot, "reboot", "stale")]
    {
        for command in ["stop", "reap", "ls", "wait", "restart"] {
            let env = TestEnv::new();
            let mut fifo = env.fifo("life");
            let id = env.sleeper(&[], &mut fifo);
            env.kill_unseen(&id);
            fifo.end();
            // The very same command: only the start time, or the boot, tells them apart.
            let mut stranger = Stranger::new(&env, &["sleep", "1000"]);
            env.forge(&id, |launch| forge(launch, stranger.pid()));
            let words: &[&str] = match command {
                "ls" => &["ls", "-a"],
                "reap" => &["reap"],
                _ => &[command, &id],
            };
            env.outlive(words).ended(if command == "wait" { 122 } else { 0 });
            assert!(stranger.lives(), "{command} ended a stranger");
            let ended: Vec<Value> =
                env.records().into_iter().filter(|record| record["kind"] == "interrupted").collect();
            assert_eq!(ended.len(), 1, "{command}");
            assert_eq!((&ended[0]["run"], &ended[0]["cause"]), (&json!(1), &json!(cause)), "{command}");
            if command != "restart" {
                let job = env.job(&id);
                assert_eq!((&job["state"], &job["identity"]), (&json!("interrupted"), &json!(identity)));
            }
        }
    }
}

/// The same number and even the same start time, but nothing else speaks for it: left alone, and said so.
#[test]
fn case_13_what_cannot_be_proven_is_left_alone() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    env.kill_unseen(&id);
    fifo.end();
    let mut stranger = Stranger::new(&env, &["sleep", "1234"]);
    env.forge(&id, |launch| {
        for field in ["pid", "pgid", "sid"] {
            launch["identity"][field] = json!(stranger.pid());
        }
        launch["identity"]["start_time"] = json!(process::start_of(stranger.pid()).unwrap());
        launch["identity"]["pidfd_inode"] = Value::Null;
    });
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["identity"]), (&json!("unknown"), &json!("unverified")));
    let stop = env.outlive(["stop", "-t", "0", &id]).ended(1);
    assert!(stop.stderr.contains("left alone") || stop.stderr.contains("still alive"), "{stop:?}");
    assert_eq!(env.json(["reap"])[0]["action"], "left-alone");
    let restart = env.outlive(["restart", &id]);
    assert!(restart.code != 0 && restart.stderr.contains("proves that it is ours"), "{restart:?}");
    env.outlive(["wait", &id]).ended(122);
    assert!(stranger.lives());
}

/// pingdotgg/t3code#22324
#[test]
fn case_16_what_a_wrapper_left_behind_is_reaped_and_its_double_is_not() {
    // Second round: the server wipes its environment, so that only its session speaks for it.
    for server in ["exec sleep 4242", "sleep 4241 & exec env -i sleep 4242"] {
        let env = TestEnv::new();
        let (mut fifo, gate) = (env.fifo("life"), env.gate("gate"));
        let script = format!("(read go <\"$2\"; echo up >&3; {server}) & exit 0");
        let id = env.script(&script, &[fifo.path(), gate.path()]);
        env.outlive(["wait", &id]).ok();
        assert_eq!(env.state_of(&id), "lingering");
        env.kill_supervisor(&id);
        gate.open();
        fifo.line();
        let mut double = Stranger::new(&env, &["sleep", "4242"]);
        let reaped = env.json(["reap"]);
        let found = (&reaped[0]["action"], &reaped[0]["id"]);
        assert_eq!(found, (&json!("stopped"), &json!(id)), "{server}");
        fifo.end();
        assert!(double.lives());
        let job = env.job(&id);
        assert_eq!((&job["state"], &job["exit_code"]), (&json!("exited"), &json!(0)), "its end was known");
    }
}
