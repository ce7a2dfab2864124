//! Many jobs alive at once.

use std::collections::HashSet;
use std::thread;

use serde_json::Value;

use crate::env::TestEnv;

/// As many as a day of work on a machine leaves: all launched, listed, waited for and stopped, and none is lost.
#[test]
fn a_thousand_jobs_alive_at_once() {
    let jobs = if crate::sweep::full() { 1000 } else { 200 };
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let path = fifo.path().to_owned();
    let ids: HashSet<String> = thread::scope(|scope| {
        let launch = || {
            let one = || env.script("exec sleep 1000", &[&path]);
            (0..jobs / 8).map(|_| one()).collect::<Vec<_>>()
        };
        let launchers: Vec<_> = (0..8).map(|_| scope.spawn(launch)).collect();
        launchers.into_iter().flat_map(|launcher| launcher.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), jobs, "no id is given twice");
    let listed = |words: &[&str], state: &str| -> HashSet<String> {
        let found = env.json(words);
        let of = |job: &Value| {
            assert_eq!(job["state"], state, "{job}");
            job["id"].as_str().unwrap().to_owned()
        };
        found.as_array().unwrap().iter().map(of).collect()
    };
    assert_eq!(listed(&["ls"], "running"), ids);
    // Somebody waits for each of them, and one stop ends them all.
    let mut wait = env.command(["wait", "--json"]);
    let waiting = wait.args(&ids).spawn().unwrap();
    env.outlive(["stop", "--all", "-t", "30"]).ok();
    fifo.end();
    let waited = crate::env::Output::finish(waiting, "wait for all").ended(128 + 15).json();
    assert_eq!(waited.as_array().unwrap().len(), jobs);
    // Before the list, which may fold them.
    let ends = env.records().iter().filter(|record| record["kind"] == "exited").count();
    assert_eq!(ends, jobs, "each end is told once");
    assert_eq!(listed(&["ls", "-a"], "stopped"), ids);
    assert_eq!(env.json(["reap"]), serde_json::json!([]));
    println!("jobs alive at once: {jobs} points, 0 broken");
}
