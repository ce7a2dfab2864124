//! Public reports about tools that do a part of this job, made small: launching, waiting, printing.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::env::{TestEnv, number};
use crate::process::{descriptors, is_alive};

/// process-compose#520
#[test]
fn case_01_stop_takes_what_ignores_term_after_the_leader_went() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.script(
        "(trap '' TERM; echo up >&3; exec sleep 1000) & trap 'exit 0' TERM; echo up >&3; wait",
        &[fifo.path()],
    );
    assert_eq!((fifo.line(), fifo.line()), ("up".into(), "up".into()));
    let (asked, grace) = (now(), Duration::from_secs(1));
    env.outlive(["stop", "-t", "1", &id]).ok();
    assert!(asked.elapsed() >= grace, "killed before the grace had passed");
    assert!(asked.elapsed() < grace * 8, "the default grace was waited for");
    fifo.end();
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["exit_code"]), (&json!("stopped"), &json!(0)), "the leader obeyed");
}

/// dumb-init#191, supervisor#1101
#[test]
fn case_02_stop_takes_what_has_a_session_of_its_own() {
    for script in [
        "setsid sh -c 'echo up >&3; exec sleep 1001' & exec sleep 10001",
        "(setsid sh -c 'echo up >&3; exec sleep 1001' &); exec sleep 10001",
        // Forked twice: adopted by the supervisor, in a session that is not its leader's.
        "(setsid sh -c '(echo up >&3; exec sleep 1001) & exit' &); exec sleep 10001",
    ] {
        let env = TestEnv::new();
        let mut fifo = env.fifo("life");
        let id = env.script(script, &[fifo.path()]);
        fifo.line();
        env.outlive(["stop", &id]).ok();
        fifo.end();
        assert_eq!(env.state_of(&id), "stopped");
    }
}

/// opencode#48414, prime-agent#1198
#[test]
fn case_03_run_keeps_nothing_of_its_caller() {
    let env = TestEnv::new();
    // That the script's own output ends is a part of the test.
    let out = env
        .bash(
            "out=$($O run -- sleep 1000); echo $out; $O run -- sleep 1000 | cat; \
             exec 9>lock; flock 9; $O run -- sleep 1000; exec 9>&-; flock -n lock true",
            &[],
        )
        .ok();
    let ids: Vec<&str> = out.stdout.lines().collect();
    assert_eq!(ids.len(), 3);
    for id in ids {
        let job = env.job(id);
        let of_job = descriptors(number(&job["pid"]));
        assert_eq!(of_job.iter().map(|(fd, _)| *fd).collect::<Vec<_>>(), [0, 1, 2], "{of_job:?}");
        assert_eq!(of_job[0].1, "/dev/null");
        assert_eq!(of_job[1].1, job["output"]["path"]);
        assert_eq!(of_job[2].1, job["output"]["path"]);
        let supervisor = number(&job["supervisor"]["pid"]);
        let of_supervisor = descriptors(supervisor);
        // From half a second on, it is told there of what is written in the output's directory.
        let directory = Path::new(job["output"]["path"].as_str().unwrap()).parent().unwrap();
        let stdin = Path::new(&of_supervisor[0].1);
        assert!([Path::new("/dev/null"), directory].contains(&stdin), "{of_supervisor:?}");
        assert!(of_supervisor.iter().all(|(_, to)| !to.starts_with("pipe:") && !to.ends_with("/lock")));
        assert_eq!(fs::read_link(format!("/proc/{supervisor}/cwd")).unwrap().to_str(), Some("/"));
    }
}

/// docker/cli#582
#[test]
fn case_04_a_wait_that_times_out_leaves_the_job_alone() {
    let env = TestEnv::new();
    let id = env.run(["sleep", "1000"]);
    let asked = now();
    env.outlive(["wait", "-t", "1", &id]).ended(124);
    assert!(asked.elapsed() >= Duration::from_secs(1));
    env.outlive(["wait", "-t", "0", &id]).ended(124);
    let job = env.job(&id);
    assert_eq!(job["state"], "running");
    assert!(is_alive(number(&job["pid"])));
    let waited = env.json(["wait", "-t", "0", &id]);
    assert_eq!((&waited[0]["timed_out"], &waited[0]["state"]), (&json!(true), &json!("running")));
}

/// systemd#22812
#[test]
fn case_05_death_by_a_signal_is_never_0() {
    let env = TestEnv::new();
    let id = env.run(["sh", "-c", "kill -TERM $$"]);
    env.outlive(["wait", &id]).ended(143);
    let job = env.job(&id);
    assert_eq!(job["state"], "exited", "nobody asked through outlive");
    assert_eq!(job["signal"], json!({"name": "SIGTERM", "number": 15}));
    assert!(job["exit_code"].is_null());
}

/// pueue#434, claude-code#81270
#[test]
fn case_06_a_status_can_be_asked_for_again_and_by_others() {
    let env = TestEnv::new();
    let id = env.run(["sh", "-c", "exit 7"]);
    env.outlive(["wait", &id]).ended(7);
    env.outlive(["wait", &id]).ended(7);
    env.bash("exec $O wait $1", &[&id]).ended(7);
}

/// pueue#108, #436
#[test]
fn case_07_a_bad_job_is_reported_and_the_good_one_is_done() {
    let env = TestEnv::new();
    env.outlive(["wait", "nosuch"]).refused(125, "no job 'nosuch'");
    for command in ["stop", "restart", "logs", "pause", "resume", "show", "prune"] {
        env.outlive([command, "nosuch"]).refused(1, "no job 'nosuch'");
    }
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    // The first status that is not 0, in the order given.
    env.outlive(["wait", "-t", "0", "nosuch", &id]).refused(125, "no job 'nosuch'");
    env.outlive(["wait", "-t", "0", &id, "nosuch"]).refused(124, "no job 'nosuch'");
    env.outlive(["pause", "nosuch", &id]).refused(1, "no job 'nosuch'");
    assert_eq!(env.state_of(&id), "paused");
    env.outlive(["resume", "nosuch", &id]).refused(1, "no job 'nosuch'");
    env.outlive(["restart", &id, "nosuch"]).ended(1);
    assert_eq!((env.job(&id)["run"].clone(), fifo.line()), (json!(2), "up".into()));
    env.outlive(["stop", "nosuch", &id]).refused(1, "no job 'nosuch'");
    fifo.end();
}

/// pueue#158, systemd#23631
#[test]
fn case_08_words_reach_the_command_to_the_byte() {
    let env = TestEnv::new();
    let words = ["a  b", "it's", "$$", "", "*", "x\ny", "--", "--help"];
    let wanted: String = words.iter().map(|word| format!("<{word}>\n")).collect();
    let id = env.run(["--", "printf", "<%s>\\n"].iter().chain(&words));
    env.outlive(["wait", &id]).ok();
    assert_eq!(env.outlive(["logs", &id]).ok().stdout, wanted);
    env.outlive(["restart", &id]).ok();
    env.outlive(["wait", &id]).ok();
    assert_eq!(env.outlive(["logs", "--run", "2", &id]).ok().stdout, wanted);
    assert_eq!(env.outlive(["logs", "--run", "1", &id]).ok().stdout, wanted);
    let all = env.outlive(["logs", &id]).ok().stdout;
    let marker = all.strip_prefix(&wanted).unwrap().strip_suffix(&wanted).unwrap();
    assert!(marker.contains("run 2") && marker.ends_with('\n') && marker.lines().count() == 1, "{marker:?}");
}

/// pm2#1283, #2471, pueue#297
#[test]
fn case_09_restart_has_the_first_environment() {
    let env = TestEnv::new();
    let words = ["run", "--", "sh", "-c", "echo A=$A B=$B"];
    let id = crate::env::Output::of(env.command(words).env("A", "1")).ok().id();
    env.outlive(["wait", &id]).ok();
    crate::env::Output::of(env.command(["restart", &id]).env("A", "2").env("B", "3")).ok();
    env.outlive(["wait", &id]).ok();
    assert_eq!(env.outlive(["logs", "--run", "2", &id]).ok().stdout, "A=1 B=\n");
}

/// The other half of case 9: what is secret is never written, and comes from whoever restarts.
#[test]
fn case_09_a_secret_comes_from_the_caller_of_restart() {
    let env = TestEnv::new();
    let words = ["run", "--secret-env", "TOKEN", "--", "sh", "-c", "echo ${#TOKEN}"];
    let id = crate::env::Output::of(env.command(words).env("TOKEN", "sesame")).ok().id();
    env.outlive(["wait", &id]).ok();
    let refusal = env.outlive(["restart", &id]);
    assert!(refusal.code != 0 && refusal.stderr.contains("TOKEN"), "{refusal:?}");
    assert_eq!(env.job(&id)["run"], 1);
    let restart = crate::env::Output::of(env.command(["restart", &id]).env("TOKEN", "lentil soup")).ok();
    assert!(restart.stderr.contains("TOKEN"), "{restart:?}");
    env.outlive(["wait", &id]).ok();
    assert_eq!(env.outlive(["logs", "--run", "1", "-n", "1", &id]).ok().stdout, "6\n");
    assert_eq!(env.outlive(["logs", "--run", "2", &id]).ok().stdout, "11\n");
    let found = env.bash("grep -rE 'sesame|lentil' $OUTLIVE_STATE_DIR", &[]);
    assert_eq!((found.code, &*found.stdout), (1, ""), "a secret is on the disk");
}

/// pm2#281, pueue#562
#[test]
fn case_10_nothing_is_an_empty_array() {
    let env = TestEnv::new();
    for words in [
        &["ls", "--json"][..],
        &["ls", "--json", "-a"],
        &["wait", "--json"],
        &["stop", "--json", "--all"],
        &["stop", "--json", "-l", "a=b"],
        &["reap", "--json"],
        &["prune", "--json"],
    ] {
        assert_eq!(env.outlive(words).ok().stdout, "[]\n", "{words:?}");
    }
    assert_eq!(env.outlive(["ls"]).ok().stdout, "");
    env.outlive(["wait", "--any"]).ended(125);
}

/// envdrift#492
#[test]
fn case_11_fifty_launches_at_once_are_fifty_jobs() {
    let env = TestEnv::new();
    let ids: Vec<String> = std::thread::scope(|scope| {
        let launches: Vec<_> = (0..50).map(|_| scope.spawn(|| env.run(["true"]))).collect();
        launches.into_iter().map(|launch| launch.join().unwrap()).collect()
    });
    let distinct: std::collections::HashSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), 50);
    env.outlive(["wait"].into_iter().chain(ids.iter().map(String::as_str))).ok();
    let jobs = env.json(["ls", "-a"]);
    let jobs = jobs.as_array().unwrap();
    assert_eq!(jobs.len(), 50);
    for job in jobs {
        assert!(ids.iter().any(|id| job["id"] == **id));
        assert_eq!((&job["state"], &job["exit_code"]), (&json!("exited"), &json!(0)), "{job}");
    }
    let seqs: Vec<u64> = env.records().iter().map(|record| record["seq"].as_u64().unwrap()).collect();
    assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "{seqs:?}");
}

#[allow(clippy::disallowed_methods, reason = "tests may look at the clock")]
fn now() -> Instant {
    Instant::now()
}
