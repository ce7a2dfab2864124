//! Everything known about a job, and how it is known.

use serde_json::{Value, json};

use super::Background;
use crate::env::{TestEnv, eventually, number};

#[test]
fn show_tells_everything_to_programs() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let owner = Background::idle(&env);
    let pid = owner.pid().to_string();
    let options = ["--name", "web", "-l", "tier=front", "--owner", &pid];
    let script = "echo out; (echo up >&3; exec sleep 1000) & echo up >&3; wait";
    let id = env.script_with(&options, script, &[fifo.path()]);
    fifo.line();
    fifo.line();
    let child = |job: &Value| {
        let processes = job["processes"].as_array().unwrap();
        processes.iter().find(|process| process["command"] == "sleep 1000").cloned()
    };
    eventually("the child has executed its command", || child(&env.job(&id)).is_some());
    let job = env.job("web");
    assert_eq!((&job["schema"], &job["id"], &job["name"]), (&json!(1), &json!(id), &json!("web")));
    assert_eq!(
        (&job["state"], &job["identity"], &job["run"]),
        (&json!("running"), &json!("owned"), &json!(1))
    );
    assert_eq!((&job["pgid"], &job["sid"]), (&job["pid"], &job["pid"]));
    assert_eq!((&job["argv"][0], job["cwd"].as_str()), (&json!("sh"), env.work().to_str()));
    assert_eq!((&job["supervisor"]["alive"], &job["executed"]), (&json!(true), &json!(true)));
    assert_eq!(job["owner"], json!({"pid": owner.pid(), "alive": true}));
    assert_eq!((&job["labels"], &job["output"]["bytes"]), (&json!({"tier": "front"}), &json!(4)));
    for open in ["exit_code", "signal", "ended_at", "cause"] {
        assert!(job[open].is_null(), "{open}: {job}");
    }
    assert!(job["duration_ms"].is_u64() && job["start_time"].is_u64() && job["started_at"].is_string());
    assert!(job["known_by"].as_str().is_some_and(|why| why.contains("lock is held")), "{}", job["known_by"]);
    let processes = job["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 2);
    for process in processes {
        assert!(process["cpu_ms"].is_u64() && process["rss_bytes"].as_u64().unwrap() > 0, "{process}");
        assert_eq!((&process["pgid"], &process["sid"]), (&job["pid"], &job["pid"]));
    }
    let sleep = child(&job).unwrap();
    assert_eq!(sleep["ppid"], job["pid"]);
    // It has only just begun to sleep, if at all.
    assert!(["S", "R", "D"].contains(&sleep["kernel_state"].as_str().unwrap()), "{sleep}");
    let runs = job["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &runs[0]["run"], &runs[0]["started_at"]), (1, &json!(1), &job["started_at"]));
    assert!(runs[0].get("state").is_none(), "it has not ended");
}

#[test]
fn show_tells_how_runs_ended_and_how_that_is_known() {
    let env = TestEnv::new();
    let id = env.run(["sh", "-c", "echo out of $OUTLIVE_RUN; exit 7"]);
    env.outlive(["wait", &id]).ended(7);
    env.outlive(["restart", &id]).ok();
    env.outlive(["wait", &id]).ended(7);
    let ended = env.job(&id);
    assert_eq!((&ended["run"], &ended["exit_code"], &ended["processes"]), (&json!(2), &json!(7), &json!([])));
    for (run, number) in ended["runs"].as_array().unwrap().iter().zip([1, 2]) {
        assert_eq!(
            (&run["run"], &run["state"], &run["exit_code"]),
            (&json!(number), &json!("exited"), &json!(7))
        );
    }
    let mut fifo = env.fifo("life");
    let orphan = env.sleeper(&[], &mut fifo);
    let owned = env.job(&orphan)["known_by"].clone();
    env.kill_supervisor(&orphan);
    let job = env.job(&orphan);
    assert_eq!((&job["state"], &job["supervisor"]["alive"]), (&json!("orphaned"), &json!(false)));
    assert_eq!((&job["processes"][0]["pid"], job["processes"].as_array().unwrap().len()), (&job["pid"], 1));
    let known_by = [&ended["known_by"], &owned, &job["known_by"]];
    for (at, why) in known_by.iter().enumerate() {
        assert!(
            why.as_str().is_some_and(|why| !why.is_empty()) && !known_by[..at].contains(why),
            "{known_by:?}"
        );
    }
}

#[test]
fn show_tells_everything_to_people() {
    let env = TestEnv::new();
    let (mut fifo, gate) = (env.fifo("life"), env.gate("gate"));
    let script = "seq 9; echo up >&3; read go <\"$2\"; exit 7";
    let id = env.script_with(&["--name", "web", "-l", "a=b"], script, &[fifo.path(), gate.path()]);
    fifo.line();
    let text = env.outlive(["show", "web"]).ok().stdout;
    let pid = number(&env.job(&id)["pid"]);
    let lines = |text: &str, keys: &[&str]| {
        for key in keys {
            assert!(text.lines().any(|line| line.starts_with(key)), "no line {key:?} in\n{text}");
        }
    };
    lines(
        &text,
        &[
            &format!("job         {id} (web)"),
            "state       running",
            "known by    ",
            "identity    owned",
            "run         1",
            "command     sh -c ",
            "directory   /",
            &format!("process     pid {pid} pgid {pid} sid {pid}"),
            "supervisor  pid ",
            "started     2",
            "lasted      ",
            "label       a=b",
            "output      /",
            &format!("alive       {pid} "),
        ],
    );
    assert!(text.ends_with("last lines:\n5\n6\n7\n8\n9\n"), "{text}");
    gate.open();
    env.outlive(["wait", &id]).ended(7);
    env.outlive(["restart", &id]).ok();
    fifo.line();
    lines(&env.outlive(["show", &id]).ok().stdout, &["run         2", "earlier run 1 started 2"]);
    gate.open();
    env.outlive(["wait", &id]).ended(7);
    let text = env.outlive(["show", &id]).ok().stdout;
    lines(&text, &["state       exited 7", "ended       2"]);
    assert!(text.contains(", exited 7\n") && !text.contains("\nalive "), "{text}");
}

/// The boot clock of another time namespace is another clock.
#[test]
fn how_long_is_not_told_by_another_clock() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    assert!(env.job(&id)["duration_ms"].is_u64());
    env.forge(&id, |launch| launch["identity"]["place"]["time_ns"] = json!(1));
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["duration_ms"]), (&json!("running"), &json!(null)));
    let table = env.outlive(["ls"]).ok().stdout;
    let row: Vec<&str> = table.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(row[2..5], ["running", &job["pid"].to_string(), "-"], "{table}");
    env.leader(&id).kill();
    fifo.end();
}
