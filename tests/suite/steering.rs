//! Public reports, made small: stopping, pausing, restarting, and who may ask.

use std::fs;

use nix::libc;
use serde_json::{Value, json};

use crate::env::{Output, TestEnv, eventually};
use crate::lock::Held;
use crate::process::is_stopped;

/// uutils#12693
#[test]
fn case_19_what_cannot_be_executed_says_why() {
    let env = TestEnv::new();
    env.outlive(["run", "--", "nosuch"]).refused(127, "nosuch");
    env.outlive(["run", "--", "/tmp"]).refused(126, "/tmp");
    env.outlive(["run", "-C", "/gone", "--", "true"]).refused(125, "/gone");
    env.outlive(["run", "--", "./script"]).refused(127, "./script");
    fs::write(env.work().join("script"), "echo no").unwrap();
    env.outlive(["run", "--", "./script"]).refused(126, "./script");
    assert_eq!(env.json(["ls"]), json!([]), "nothing is shown running");
    for job in env.json(["ls", "-a"]).as_array().unwrap() {
        assert_eq!((&job["state"], &job["executed"]), (&json!("failed"), &json!(false)), "{job}");
        let code = if job["cause"] == "not-found" { 127 } else { 126 };
        env.outlive(["wait", job["id"].as_str().unwrap()]).ended(code);
    }
}

/// docker/compose#12063, docker/cli#7221
#[test]
fn case_20_wait_for_the_first_or_for_all() {
    let env = TestEnv::new();
    let gate = env.gate("gate");
    let slow = env.run(["sh", "-c", "read go <\"$1\"; exit 4", "sh", gate.path()]);
    let quick = env.run(["sh", "-c", "exit 3"]);
    env.outlive(["wait", "--any", &slow, &quick]).ended(3);
    let first = env.json_of(["wait", "--any", &slow, &quick], 3);
    assert_eq!(first.as_array().unwrap().iter().map(|job| &job["id"]).collect::<Vec<_>>(), [&json!(quick)]);
    gate.open();
    env.outlive(["wait", &slow, &quick]).ended(4);
    env.outlive(["wait", &quick, &slow]).ended(3);
    let both = env.json_of(["wait", &quick, &slow], 3);
    assert_eq!(both.as_array().unwrap().iter().map(|job| &job["exit_code"]).collect::<Vec<_>>(), [3, 4]);
}

/// claude-code#94469, gptme#768
#[test]
fn case_21_a_job_may_stop_itself_and_all() {
    for (words, orphan) in
        [("$OUTLIVE_JOB_ID", false), ("--all", false), ("$OUTLIVE_JOB_ID", true), ("--all", true)]
    {
        let env = TestEnv::new();
        let (mut bystander, mut fifo, gate) = (env.fifo("other"), env.fifo("life"), env.gate("gate"));
        let other = env.sleeper(&[], &mut bystander);
        let script = format!("echo up >&3; read go <\"$2\"; $O stop {words}; exec sleep 1000");
        let id = env.script(&script, &[fifo.path(), gate.path()]);
        fifo.line();
        if orphan {
            env.kill_supervisor(&id);
        }
        gate.open();
        fifo.end();
        let ended = env.json(["wait", "--group", "-t", "30", &id])[0].clone();
        let wanted = if orphan { "interrupted" } else { "stopped" };
        assert_eq!(ended["state"], wanted, "{words} {ended}");
        if words == "--all" {
            bystander.end();
            // Its files are closed a moment before it is dead.
            env.outlive(["wait", "--group", &other]).ended(143);
            assert_eq!(env.state_of(&other), "stopped");
        } else {
            assert_eq!(env.state_of(&other), "running");
        }
    }
}

/// A job started from inside a job is a job of its own.
#[test]
fn case_21_an_inner_job_outlives_the_stop_of_the_outer() {
    let env = TestEnv::new();
    let (mut outer_life, mut inner_life) = (env.fifo("outer"), env.fifo("inner"));
    let script = "$O run -- sh -c 'exec 3>\"$1\"; echo up >&3; exec sleep 1000' sh \"$2\" 3>&- >inner.id; \
                  echo up >&3; exec sleep 1000";
    let outer = env.script(script, &[outer_life.path(), inner_life.path()]);
    outer_life.line();
    inner_life.line();
    let inner = fs::read_to_string(env.work().join("inner.id")).unwrap().trim().to_owned();
    env.outlive(["stop", &outer]).ok();
    outer_life.end();
    assert_eq!((env.state_of(&outer), env.state_of(&inner)), ("stopped".into(), "running".into()));
    env.outlive(["stop", &inner]).ok();
    inner_life.end();
}

/// claude-code#16135
#[test]
fn case_22_a_shell_that_shares_the_launchers_group_lives() {
    let env = TestEnv::new();
    let script =
        "id=$($O run -- sleep 1000); $O stop $id; id=$($O run -- sleep 1000); $O stop -t 0 $id; echo alive";
    assert_eq!(env.bash(script, &[]).ok().stdout, "alive\n");
}

#[test]
fn case_24_restart_runs_in_the_recorded_directory_or_refuses() {
    let env = TestEnv::new();
    let place = env.work().join("place");
    fs::create_dir(&place).unwrap();
    let mut fifo = env.fifo("life");
    let script = "pwd; echo up >&3; exec sleep 1000";
    let id = env.script_with(&["-C", "place"], script, &[fifo.path()]);
    fifo.line();
    Output::of(env.command(["restart", &id]).current_dir("/")).ok();
    fifo.line();
    assert_eq!(env.outlive(["logs", "--run", "2", &id]).ok().stdout.trim(), place.to_str().unwrap());
    fs::remove_dir(&place).unwrap();
    let refusal = env.outlive(["restart", &id]);
    assert!(refusal.code != 0 && refusal.stderr.contains(place.to_str().unwrap()), "{refusal:?}");
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["run"]), (&json!("running"), &json!(2)), "refused before it was stopped");
}

#[test]
fn case_25_paused_by_whomever() {
    let env = TestEnv::new();
    let (mut fifo, gate) = (env.fifo("life"), env.gate("gate"));
    let script = "echo up >&3; while read go; do echo \"$go\" >&3; done <\"$2\"";
    let id = env.script(script, &[fifo.path(), gate.path()]);
    fifo.line();
    env.outlive(["pause", &id]).ok();
    assert_eq!(env.state_of(&id), "paused");
    gate.open();
    env.outlive(["pause", &id]).ok();
    env.outlive(["resume", &id]).ok();
    assert_eq!((fifo.line(), env.state_of(&id)), ("go".into(), "running".into()), "something was lost");
    let leader = env.leader(&id);
    leader.signal(libc::SIGSTOP);
    eventually("the leader is stopped", || is_stopped(leader.pid));
    assert_eq!(env.state_of(&id), "paused");
    env.outlive(["stop", &id]).ok();
    fifo.end();
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["signal"]["number"]), (&json!("stopped"), &json!(15)), "it heard TERM");
}

/// marcusquinn/aidevops#18094
#[test]
fn case_27_a_daemon_holds_no_lock() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    // As a daemon does it: a session of its own, forked again, its descriptors on /dev/null.
    let script = "setsid sh -c '(echo up >&3; exec sleep 1000 </dev/null >/dev/null 2>&1) & exit 0'";
    let id = env.script_with(&["--name", "daemon"], script, &[fifo.path()]);
    fifo.line();
    env.outlive(["wait", &id]).ok();
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["exit_code"]), (&json!("lingering"), &json!(0)));
    env.outlive(["wait", "--group", "-t", "0", &id]).ended(124);
    let next = "is lingering: it has ended, but processes it started are alive (use --replace, or 'outlive stop daemon')";
    env.outlive(["run", "--name", "daemon", "--", "true"]).refused(125, next);
    env.outlive(["run", "--name", "daemon", "--reuse", "--", "true"]).refused(125, next);
    env.outlive(["prune", &id]).refused(1, "lingering");
    assert_eq!(env.json(["reap"]), json!([]), "it is supervised");
    env.outlive(["ls"]).ok();
    env.outlive(["stop", &id]).ok();
    fifo.end();
    assert_eq!(env.job(&id)["state"], "exited", "a stop does not change how the leader ended");
    env.outlive(["prune", &id]).ok();
    assert!(!env.state().join("jobs").join(&id).exists());
}

/// docker-py#2655
#[test]
fn case_29_wait_prune_and_restart_of_one_job_at_once() {
    for _ in 0..5 {
        let env = TestEnv::new();
        let gate = env.gate("gate");
        let id = env.run(["sh", "-c", "read go <\"$1\"; exit 5", "sh", gate.path()]);
        let (waited, pruned, restarted) = std::thread::scope(|scope| {
            let wait = scope.spawn(|| env.outlive(["wait", &id]));
            // For the second run too.
            gate.open();
            gate.open();
            env.outlive(["wait", &id]);
            let prune = scope.spawn(|| env.outlive(["prune", &id]));
            let restart = scope.spawn(|| env.outlive(["restart", &id]));
            (wait.join().unwrap(), prune.join().unwrap(), restart.join().unwrap())
        });
        // It may have come when the job was pruned already.
        let none = waited.stderr.contains("no job") || waited.stderr.contains("pruned meanwhile");
        assert!(waited.code == 5 || waited.code == 125 && none, "{waited:?}");
        let exists = env.state().join("jobs").join(&id).exists();
        match (pruned.code, restarted.code) {
            // Pruned when its second run had ended, or instead of it.
            (0, _) => assert!(!exists),
            (1, 0) => assert_eq!(env.job(&id)["run"], 2),
            _ => panic!("neither: {pruned:?} {restarted:?}"),
        }
        let shown: Value = env.json(["ls", "-a"]);
        assert_eq!(shown.as_array().unwrap().len(), usize::from(exists));
    }
}

/// Both wait for the job at the same place; whoever comes second finds a job or none, never half of one.
#[test]
fn case_29_prune_and_restart_that_wait_for_each_other() {
    for prune_first in [true, false] {
        let env = TestEnv::new();
        let id = env.run(["true"]);
        env.settled(&id);
        let op = Held::new(&env.state().join("jobs").join(&id).join("op"));
        let mut words = [["prune", &*id], ["restart", &*id]];
        if !prune_first {
            words.reverse();
        }
        let both = words.map(|words| op.block(&mut env.command(words)));
        drop(op);
        let [first, second] = both.map(|child| Output::finish(child, "prune or restart"));
        assert!((first.code == 0) || (second.code == 0), "{first:?} {second:?}");
        let jobs = env.json(["ls", "-a"]);
        let left = fs::read_dir(env.state().join("jobs")).unwrap().count();
        assert_eq!(jobs.as_array().unwrap().len(), left, "{first:?} {second:?}");
        for job in jobs.as_array().unwrap() {
            assert_eq!(job["run"], 2, "{job}");
        }
    }
}

/// Who asks from inside would be stopped before the next run is started.
#[test]
fn a_job_neither_restarts_nor_replaces_itself_but_has_it_done() {
    let env = TestEnv::new();
    let mut told = env.fifo("told");
    let script = "[ $OUTLIVE_RUN = 1 ] || { echo again >\"$1\"; exec sleep 1000; }
        $O restart web 2>said; echo $? >\"$1\"
        $O run --name web --replace -- true 2>>said; echo $? >\"$1\"
        $O run -- $O restart web; exec sleep 1000";
    let id = env.run(["--name", "web", "--", "sh", "-c", script, "sh", told.path()]);
    assert_eq!((told.line(), told.line()), ("1".into(), "125".into()));
    let said = fs::read_to_string(env.work().join("said")).unwrap();
    let next = format!("(have another job ask: outlive run -- outlive restart {id})\n");
    assert!(said.contains(&next) && said.contains("is not replaced: whoever asks from inside"), "{said}");
    assert_eq!(told.line(), "again");
    assert_eq!((&env.job(&id)["run"], &env.job(&id)["state"]), (&json!(2), &json!("running")));
}
