//! Records of another boot, another host, another PID or time namespace: the process that bears the number now is a
//! stranger, and is left alone.

use std::fs;
use std::process::Stdio;

use outlive::job::{Cause, Identity, Place};
use outlive::members::{Bearer, Mark, provable};
use outlive::state::{Evidence, Leader, Match, Sighting, State, Verdict, compare, judge};
use outlive::store::parse_launch;
use outlive::sys::proc::Stat;
use serde_json::{Value, json};

use crate::env::{OUTLIVE, Output, TestEnv, eventually};
use crate::fifo::Fifo;
use crate::process::{self, Process};
use crate::{NOBODY, as_nobody, can_become_nobody, skipped, works, world_of_nobody};

const OTHER_BOOT: &str = "11111111-2222-3333-4444-555555555555";

/// A job without a supervisor whose record is changed, so that its living leader is a stranger to it.
fn stranger(env: &TestEnv, fifo: &mut Fifo, change: impl Fn(&mut Value)) -> (String, Process) {
    let id = env.sleeper(&["--name", "web"], fifo);
    let leader = env.leader(&id);
    env.kill_supervisor(&id);
    env.forge(&id, |record| change(&mut record["identity"]["place"]));
    (id, leader)
}

#[track_caller]
fn judged(env: &TestEnv, id: &str) -> [Value; 3] {
    let jobs = env.json(["ls", "-a"]);
    let job = jobs.as_array().unwrap().iter().find(|job| job["id"] == id).unwrap().clone();
    ["state", "identity", "cause"].map(|field| job[field].clone())
}

#[track_caller]
fn untouched(leader: &Process) {
    assert!(process::is_alive(leader.pid) && !process::is_stopped(leader.pid), "a stranger was touched");
}

/// The same number, the same start time, the same session, our mark in its environment: and yet another boot.
#[test]
fn another_boot_with_the_same_pid_and_ticks_alive() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let (id, leader) = stranger(&env, &mut fifo, |place| place["boot_id"] = OTHER_BOOT.into());
    let reboot = [json!("interrupted"), json!("stale"), json!("reboot")];
    assert_eq!(judged(&env, &id), reboot);
    env.outlive(["wait", &id]).ended(122);
    env.outlive(["stop", "-t", "0", &id]).ok();
    env.outlive(["pause", &id]).ended(1);
    env.outlive(["resume", &id]).ended(1);
    env.outlive(["reap"]).ok();
    untouched(&leader);
    env.outlive(["restart", &id]).ok();
    assert_eq!(fifo.line(), "up");
    untouched(&leader);
    assert_eq!((&env.job(&id)["run"], &env.job(&id)["state"]), (&json!(2), &json!("running")));
    env.outlive(["stop", "-t", "0", &id]).ok();
    untouched(&leader);
    env.outlive(["prune", &id]).ok();
    untouched(&leader);
    leader.kill();
    fifo.end();
}

/// On a file system of this machine's own, another host name is only that: the directory has been moved, or renamed.
#[test]
fn another_host_on_a_local_file_system_is_a_reboot() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let (id, leader) = stranger(&env, &mut fifo, |place| {
        place["boot_id"] = OTHER_BOOT.into();
        place["host"] = "elsewhere".into();
        place["machine_id"] = "ffffffffffffffffffffffffffffffff".into();
    });
    assert_eq!(judged(&env, &id), [json!("interrupted"), json!("stale"), json!("reboot")]);
    env.outlive(["stop", &id]).ok();
    env.outlive(["reap"]).ok();
    untouched(&leader);
    leader.kill();
    fifo.end();
}

/// A supervisor that holds its lock under another boot is another machine's.
#[test]
fn a_held_lock_of_another_boot_is_another_host() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    let leader = env.leader(&id);
    env.forge(&id, |record| record["identity"]["place"]["boot_id"] = OTHER_BOOT.into());
    assert_eq!(judged(&env, &id), [json!("unknown"), json!("unverified"), json!("other-host")]);
    env.outlive(["wait", "-t", "0", &id]);
    env.outlive(["reap"]).ok();
    env.outlive(["pause", &id]).ended(1);
    env.outlive(["prune", &id]).ended(1);
    untouched(&leader);
    // It can still be asked: a FIFO works on this machine only, and then the supervisor is on it.
    env.outlive(["stop", &id]);
    fifo.end();
}

/// The shared file system, which a test cannot mount everywhere, is a bit of evidence.
#[test]
fn another_host_on_a_shared_file_system_is_unknown() {
    let launch = parse_launch(include_bytes!("../fixtures/v1/launch.json")).unwrap();
    let there = launch.identity.place.clone();
    let here = Place { boot_id: OTHER_BOOT.to_owned(), ..there.clone() };
    let evidence = |here: Place, shared_fs: bool| Evidence {
        here,
        shared_fs,
        supervised: false,
        outcome: None,
        executed: true,
        leader: Leader::Gone,
        members: 0,
        unproven: 0,
    };
    let of = |here: Place, shared: bool| {
        let said = judge(&launch, &evidence(here, shared));
        assert!(!said.may_signal());
        (said.state, said.identity, said.cause)
    };
    let reboot = (State::Interrupted, Verdict::Stale, Some(Cause::Reboot));
    let elsewhere = (State::Unknown, Verdict::Unverified, Some(Cause::OtherHost));
    assert_eq!(of(here.clone(), true), reboot, "host name and machine id agree");
    for host in [
        Place { host: "elsewhere".into(), ..here.clone() },
        Place { machine_id: "f".repeat(32), ..here.clone() },
    ] {
        assert_eq!(of(host.clone(), true), elsewhere);
        assert_eq!(of(host, false), reboot);
    }
    // No machine id equals nothing, not even another one that is missing.
    let mut nameless = launch.clone();
    nameless.identity.place.machine_id.clear();
    let said = judge(&nameless, &evidence(Place { machine_id: String::new(), ..here }, true));
    assert_eq!((said.state, said.cause), (State::Unknown, Some(Cause::OtherHost)));
}

#[test]
fn another_pid_namespace_that_has_ended() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let (id, leader) = stranger(&env, &mut fifo, |place| place["pid_ns"] = 4_026_000_001_u64.into());
    assert_eq!(judged(&env, &id), [json!("interrupted"), json!("stale"), json!("namespace-ended")]);
    for words in [["stop", &id], ["reap", "--json"], ["wait", &id]] {
        env.outlive(words);
    }
    untouched(&leader);
    env.outlive(["restart", &id]).ok();
    assert_eq!(fifo.line(), "up");
    untouched(&leader);
    env.outlive(["stop", &id]).ok();
    untouched(&leader);
    leader.kill();
    fifo.end();
}

/// The lock is held: somebody lives there, and is asked through the FIFO and in no other way.
#[test]
fn another_pid_namespace_that_lives_is_steered_by_its_supervisor() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    env.forge(&id, |record| record["identity"]["place"]["pid_ns"] = 4_026_000_001_u64.into());
    assert_eq!(judged(&env, &id), [json!("running"), json!("unverified"), Value::Null]);
    let reap = env.json(["reap"]);
    assert_eq!(reap, json!([]), "it is not ours to judge, and it is supervised");
    env.outlive(["stop", &id]).ok();
    fifo.end();
    assert_eq!(judged(&env, &id)[0], "stopped");
}

#[test]
fn another_time_namespace_cannot_be_judged() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let (id, leader) = stranger(&env, &mut fifo, |place| place["time_ns"] = 4_026_000_002_u64.into());
    let unknown = [json!("unknown"), json!("unverified"), json!("other-time-namespace")];
    assert_eq!(judged(&env, &id), unknown);
    env.outlive(["stop", &id]).ended(1);
    env.outlive(["wait", "-t", "0", &id]);
    let reap = env.json(["reap"]);
    assert_eq!(reap[0]["action"], "left-alone", "{reap}");
    env.outlive(["pause", &id]).ended(1);
    env.outlive(["restart", &id]).ended(1);
    env.outlive(["prune", &id]).ended(1);
    untouched(&leader);
    assert_eq!(judged(&env, &id), unknown);
    leader.kill();
    fifo.end();
}

/// An owner whose start time cannot be compared is not gone for that.
#[test]
fn an_owner_of_another_time_namespace_is_not_taken_for_dead() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let owner = std::process::id().to_string();
    let id = env.sleeper(&["--owner", &owner], &mut fifo);
    env.forge(&id, |record| {
        record["identity"]["place"]["time_ns"] = 4_026_000_002_u64.into();
        record["owner"]["start_time"] = 1.into();
    });
    assert_eq!(judged(&env, &id), [json!("running"), json!("unverified"), Value::Null]);
    assert_eq!(env.json(["reap"]), json!([]));
    untouched(&env_leader(&env, &id));
    env.outlive(["stop", &id]).ok();
    fifo.end();
}

/// By the record alone, as the namespace was forged.
fn env_leader(env: &TestEnv, id: &str) -> Process {
    let identity = &env.launch_record(id, 1)["identity"];
    Process::exactly(crate::env::number(&identity["pid"]), identity["start_time"].as_u64().unwrap()).unwrap()
}

#[test]
fn a_time_namespace_for_real() {
    if !works("unshare", &["--time", "--boottime", "1000", "--fork", "true"]) {
        return skipped("a time namespace", "unshare --time is not permitted");
    }
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    let leader = env.leader(&id);
    let inside = |words: &[&str]| {
        let mut command = env.program("unshare");
        Output::of(command.args(["--time", "--boottime", "1000", "--fork", crate::env::OUTLIVE]).args(words))
    };
    let seen = |id: &str| {
        let job = inside(&["--json", "show", id]).ok().json();
        ["state", "identity", "cause"].map(|field| job[field].clone())
    };
    assert_eq!(seen(&id), [json!("running"), json!("unverified"), Value::Null]);
    assert_eq!(inside(&["--json", "reap"]).ok().json(), json!([]));
    env.kill_supervisor(&id);
    assert_eq!(seen(&id), [json!("unknown"), json!("unverified"), json!("other-time-namespace")]);
    inside(&["stop", &id]).ended(1);
    inside(&["reap"]).ok();
    untouched(&leader);
    // From here it is known who it is.
    assert_eq!(env.state_of(&id), "orphaned");
    env.outlive(["stop", &id]).ok();
    fifo.end();
    // A job of that namespace, from here.
    let other = inside(&["run", "--", "sh", "-c", "exit 7"]).ok().id();
    env.outlive(["wait", &other]).ended(7);
}

/// A process that /proc does not show, though the kernel knows it, is not gone.
#[test]
fn hidepid_makes_unknown_and_not_gone() {
    let private = ["--mount", "sh", "-c", "mount -t proc -o hidepid=2 proc /proc"];
    if !can_become_nobody() || !works("unshare", &private) {
        return skipped("hidepid", "mounting is not permitted, or not root");
    }
    let env = world_of_nobody();
    // A process of somebody else, which the record names.
    let mut other = env.program("sleep").arg("1000").spawn().unwrap();
    let pid = i32::try_from(other.id()).unwrap();
    let start = process::start_of(pid).unwrap();
    let id = as_nobody(&env, "$O run -- sleep 1001", &[]).ok().id();
    let launch = env.launch_record(&id, 1);
    for who in ["supervisor", "identity"] {
        let pid = crate::env::number(&launch[who]["pid"]);
        Process::exactly(pid, launch[who]["start_time"].as_u64().unwrap()).unwrap().kill();
    }
    env.forge(&id, |record| {
        for field in ["pid", "pgid", "sid"] {
            record["identity"][field] = pid.into();
        }
        record["identity"]["start_time"] = start.into();
    });
    for path in [env.ledger(), env.run_dir(&id, 1).join("launch.json")] {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
    }
    let script = format!(
        "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups \
         sh -c '$O --json show $0; $O stop $0; echo $?; $O reap; $O --json show $0' {id}"
    );
    let mut command = env.program("unshare");
    command.args(["--mount", "sh", "-c", &script]).env("O", env.state().parent().unwrap().join("outlive"));
    let out = Output::of(&mut command).ok();
    let lines: Vec<&str> = out.stdout.lines().collect();
    for line in [lines[0], lines[lines.len() - 1]] {
        let job: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&job["state"], &job["cause"]), (&json!("unknown"), &json!("hidden")), "{out:#?}");
    }
    assert_eq!(lines[1], "1", "{out:#?}");
    assert!(process::is_alive(pid));
    other.kill().unwrap();
    other.wait().unwrap();
}

/// Records that name nobody, everybody or the first process of all prove nothing, whatever fits.
#[test]
fn numbers_that_mean_many_processes_are_never_ours() {
    let launch = parse_launch(include_bytes!("../fixtures/v1/launch.json")).unwrap();
    for number in [i32::MIN, -1, 0, 1] {
        let mut launch = launch.clone();
        launch.identity =
            Identity { pid: number, pgid: number, sid: number, start_time: 9, ..launch.identity };
        let seen = Sighting {
            start_time: 9,
            pgid: number,
            sid: number,
            argv: Some(launch.argv.iter().map(|word| word.0.clone()).collect()),
            marked: Some(true),
            pidfd_inode: launch.identity.pidfd_inode,
            ..Sighting::default()
        };
        assert_eq!(compare(&launch, &seen), Match::Other, "{number}");
        // A foreign session shows as 0 in a PID namespace: everybody of it would be a member.
        let stat = |pid: i32| Stat {
            pid,
            comm: b"x".to_vec(),
            state: b'S',
            ppid: 1,
            pgid: number,
            sid: number,
            threads: 1,
            start_time: 20,
            cpu_ticks: 0,
            rss_bytes: 0,
        };
        let argv = |_: i32| Some(launch.argv.iter().map(|word| word.0.clone()).collect());
        let found = provable(&launch, &[stat(1), stat(40), stat(41)], &|_| Mark::Absent, &argv, Bearer::Open);
        assert!(found.proven.is_empty(), "{number}: {found:?}");
    }
}

/// The same through the program, with numbers that nobody bears.
#[test]
fn a_record_that_names_nobody_is_settled_and_signals_nobody() {
    for number in [0, -1, i32::MIN] {
        let env = TestEnv::new();
        let mut fifo = env.fifo("life");
        let id = env.sleeper(&[], &mut fifo);
        let leader = env.leader(&id);
        env.kill_unseen(&id);
        fifo.end();
        env.forge(&id, |record| {
            for field in ["pid", "pgid", "sid"] {
                record["identity"][field] = number.into();
            }
        });
        for words in [&["stop", "-t", "0", &id][..], &["reap"], &["pause", &id], &["ls", "-a"]] {
            env.outlive(words);
        }
        assert_eq!(env.state_of(&id), "interrupted", "{number}");
        assert!(!process::is_alive(leader.pid));
        assert!(fs::metadata(env.ledger()).is_ok());
    }
}

/// Between a launch's look at the state directory, which is not there, and its next call somebody else makes it.
#[test]
fn a_state_directory_that_another_launch_has_just_made_is_used() {
    let env = TestEnv::new();
    if !works("strace", &["-qq", "-f", "-e", "trace=none", "true"]) {
        return skipped("launches that make the state directory at once", "no strace");
    }
    let trace = env.work().join("trace");
    let mut strace = env.program("strace");
    strace.args(["-e", "trace=statx", "-e", "inject=statx:signal=SIGSTOP:when=1", "-o"]);
    strace.arg(&trace).arg(OUTLIVE).args(["run", "true"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let launch = strace.spawn().unwrap();
    eventually("the launch is stopped", || {
        fs::read_to_string(&trace).is_ok_and(|told| told.contains("stopped by SIGSTOP"))
    });
    env.run(["true"]);
    let strace = launch.id();
    let children = fs::read_to_string(format!("/proc/{strace}/task/{strace}/children")).unwrap();
    Process::open(children.trim().parse().unwrap()).unwrap().signal(nix::libc::SIGCONT);
    Output::finish(launch, "run true").ok();
    assert_eq!(env.json(["ls", "-a"]).as_array().unwrap().len(), 2);
}
