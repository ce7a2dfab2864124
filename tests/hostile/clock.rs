//! A wall clock that is set. The machine's own cannot be set for one test; what a later call can see of it is that
//! every time on disk lies a year ahead, or behind.

use std::fs::{self, File, FileTimes};
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::env::TestEnv;

const YEAR: u64 = 365 * 24 * 3600;

/// Every file of the state directory.
fn files(path: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(path).unwrap().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Sets the clock back a year, or forward: as if all that is there had been written by the other clock.
fn step(env: &TestEnv, back: bool) {
    let year = |text: &str| -> i32 { text.parse::<i32>().unwrap() + if back { 1 } else { -1 } };
    for path in files(&env.state()) {
        if !path.metadata().unwrap().is_file() {
            continue;
        }
        if path.extension().is_some_and(|extension| extension == "json" || extension == "jsonl") {
            let text = fs::read_to_string(&path).unwrap();
            let mut parts = text.split("\"at\":\"");
            let mut other = parts.next().unwrap().to_owned();
            for part in parts {
                other += &format!("\"at\":\"{}{}", year(&part[..4]), &part[4..]);
            }
            fs::write(&path, other).unwrap();
        }
        let file = File::options().append(true).open(&path).unwrap();
        let then = path.metadata().unwrap().modified().unwrap();
        let year = Duration::from_secs(YEAR);
        file.set_times(FileTimes::new().set_modified(if back { then + year } else { then - year })).unwrap();
    }
    let lock = env.state().join("ledger.lock");
    let text = fs::read_to_string(&lock).unwrap();
    let (rest, started) = text.trim_end().rsplit_once(' ').unwrap();
    let started: u64 = started.parse().unwrap();
    let other = if back { started + YEAR } else { started - YEAR };
    fs::write(&lock, format!("{rest} {other}\n")).unwrap();
}

#[test]
fn a_clock_that_was_set_changes_no_state_no_duration_and_no_order() {
    for back in [true, false] {
        let env = TestEnv::new();
        let (mut fifo, mut lost) = (env.fifo("life"), env.fifo("lost"));
        let early = env.run(["--", "sh", "-c", "exit 7"]);
        env.outlive(["wait", "--group", &early]).ended(7);
        let running = env.sleeper(&["--name", "web", "-t", "1h"], &mut fifo);
        let lost_id = env.sleeper(&[], &mut lost);
        env.kill_unseen(&lost_id);
        step(&env, back);

        let of = |id: &str, field: &str| env.job(id)[field].clone();
        for (id, state) in [(&early, "exited"), (&running, "running"), (&lost_id, "interrupted")] {
            assert_eq!(of(id, "state"), state);
        }
        assert!(of(&early, "duration_ms").as_u64().unwrap() < 60_000);
        assert!(of(&running, "duration_ms").as_u64().unwrap() < 60_000);
        let table = env.outlive(["ls", "-a"]).ok();
        assert_eq!((table.stderr.as_str(), table.stdout.lines().count()), ("", 4), "{table:#?}");
        env.outlive(["wait", "-t", "0", &running]).ended(124);
        env.outlive(["wait", &lost_id]).ended(122);
        env.outlive(["reap"]).ok();
        env.outlive(["run", "--name", "web", "true"]).refused(125, "is running already");

        let late = env.run(["--", "sh", "-c", "exit 8"]);
        env.outlive(["wait", "--group", &late]).ended(8);
        let seqs: Vec<u64> = env.records().iter().map(|record| record["seq"].as_u64().unwrap()).collect();
        assert!(seqs.is_sorted_by(|a, b| b - a == 1), "{seqs:?}");
        // Ended before the clock was set, and after: what the times say of their order is not so.
        env.outlive(["prune", "--keep", "1", &early, &late]).ok();
        let left = env.json(["ls", "-a"]);
        let left: Vec<_> = left.as_array().unwrap().iter().map(|job| job["id"].clone()).collect();
        assert_eq!(left, [json!(running), json!(lost_id), json!(late)]);

        env.outlive(["stop", "web"]).ok();
        fifo.end();
        assert_eq!(of(&running, "state"), "stopped");
        assert!(of(&running, "duration_ms").as_u64().unwrap() < 60_000);
        env.outlive(["prune", "--older-than", "1h"]).ok();
        env.outlive(["prune"]).ok();
        assert_eq!(env.json(["ls", "-a"]), json!([]));
    }
}
