//! Output that cannot fill the disk, and streams that are kept apart.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::env::{TestEnv, eventually, lacks};
use crate::fifo::{Fifo, Gate};

const MIB: u64 = 1 << 20;
/// Holes begin and end with blocks of the file system; metadata may take a few more.
const SLACK: u64 = 64 << 10;
/// Lines of 16 bytes in each step of [`writer`].
const STEP: u64 = 4 * MIB / 16;

/// A job that writes 4 MiB of numbered lines each time it may go on.
fn writer(env: &TestEnv, options: &[&str], fifo: &Fifo, gate: &Gate) -> String {
    let script = format!(
        "while read go <\"$2\"; do seq -f %015.0f $((n * {STEP})) $((n * {STEP} + {STEP} - 1)); n=$((n + 1)); echo $n >&3; done"
    );
    env.script_with(options, &script, &[fifo.path(), gate.path()])
}

fn line(number: u64) -> String {
    format!("{number:015}\n")
}

fn lines(from: u64, to: u64) -> String {
    (from..to).map(line).collect()
}

fn disk_use(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks() * 512
}

fn output(env: &TestEnv, id: &str) -> PathBuf {
    env.job(id)["output"]["path"].as_str().unwrap().into()
}

#[test]
fn the_head_and_the_newest_are_kept_and_the_middle_given_back() {
    if lacks("holes") {
        return;
    }
    let env = TestEnv::new();
    let (mut fifo, gate) = (env.fifo("life"), env.gate("gate"));
    let id = writer(&env, &["--max-output", "1M"], &fifo, &gate);
    let path = output(&env, &id);
    // The job writes on without being held up, whether anybody has looked or not.
    for step in 1..=4 {
        gate.open();
        assert_eq!(fifo.line(), step.to_string());
        if step % 2 == 0 {
            eventually("the middle is given back", || disk_use(&path) <= 2 * MIB + SLACK);
        }
    }
    let end = 4 * STEP;
    let job = env.job(&id);
    assert_eq!((&job["output"]["status"], &job["output"]["bytes"]), (&json!("truncated"), &json!(16 * MIB)));
    let logs = env.outlive(["logs", &id]).ok();
    assert!(logs.stdout.starts_with(&lines(0, MIB / 16)), "the head");
    assert!(logs.stdout.ends_with(&lines(end - MIB / 16, end)), "the newest");
    assert!((logs.raw.len() as u64) <= 2 * MIB + SLACK && !logs.raw.contains(&0));
    assert!(logs.stderr.contains("of output were dropped here (--max-output)"), "{}", logs.stderr);
    assert_eq!(env.outlive(["logs", "-n", "5", &id]).ok().stdout, lines(end - 5, end));
    let newest = env.outlive(["logs", "-n", "10000000", &id]).ok();
    assert!(newest.stdout.ends_with(&lines(end - MIB / 16, end)) && !newest.raw.contains(&0));
    // A read that begins where nothing is left goes on with what is.
    let resumed = env.outlive(["logs", "--since-offset", &(4 * MIB).to_string(), &id]).ok();
    assert!(resumed.stdout.ends_with(&lines(end - MIB / 16, end)) && !resumed.raw.contains(&0));
    assert!(resumed.stderr.ends_with(&format!("offset {}\n", 16 * MIB)), "{}", resumed.stderr);
    // Piece by piece, what is left is read once, whatever was dropped between.
    let (mut pieces, mut offset) = (Vec::<u8>::new(), "0".to_owned());
    while offset != (16 * MIB).to_string() {
        let piece = env.outlive(["logs", "--since-offset", &offset, "--max-bytes", "300000", &id]).ok();
        assert!(piece.raw.len() <= 300_000);
        pieces.extend(&piece.raw);
        offset = piece.stderr.trim_end().rsplit_once("offset ").unwrap().1.to_owned();
    }
    assert!(pieces == logs.raw);
    env.outlive(["stop", &id]).ok();
    fifo.end();
    assert_eq!(env.job(&id)["output"]["status"], "truncated");
    assert!(env.outlive(["logs", &id]).ok().raw == logs.raw);
}

/// claude-code#31048
/// However fast it was.
#[test]
fn a_job_that_is_over_before_it_is_looked_at_leaves_no_more_than_is_kept() {
    if lacks("holes") {
        return;
    }
    let env = TestEnv::new();
    let id = env.run(["--max-output", "100K", "head", "-c", "16M", "/dev/zero"]);
    env.outlive(["wait", &id]).ok();
    let used = disk_use(&output(&env, &id));
    assert!(used <= MIB + (100 << 10) + SLACK, "{used}");
    assert_eq!(env.job(&id)["output"]["status"], "truncated");
}

#[test]
fn case_18_a_job_that_prints_without_end_fills_no_disk() {
    if lacks("holes") {
        return;
    }
    let env = TestEnv::new();
    let id = env.run(["--max-output", "1M", "yes"]);
    let path = output(&env, &id);
    let size = || fs::metadata(&path).unwrap().len();
    eventually("most of it was given back", || size() > 8 * MIB && disk_use(&path) < size() / 2);
    let before = size();
    eventually("the job writes on", || size() > before);
    assert_eq!(env.outlive(["logs", "-n", "5", &id]).ok().stdout, "y\n".repeat(5));
    assert_eq!(env.job(&id)["output"]["status"], "truncated");
    env.outlive(["stop", &id]).ok();
    assert_eq!(env.state_of(&id), "stopped");
}

#[test]
fn a_file_of_ones_own_is_capped_only_if_asked() {
    if lacks("holes") {
        return;
    }
    let env = TestEnv::new();
    let (mut fifo, gate) = (env.fifo("life"), env.gate("gate"));
    let cap = |id: &str| env.launch_record(id, 1)["options"]["max_output"].clone();
    assert_eq!(cap(&env.run(["true"])), json!(1024 * MIB));
    assert_eq!(cap(&env.run(["--max-output", "none", "true"])), json!(null));
    assert_eq!(cap(&env.run(["-o", "mine", "true"])), json!(null));
    assert_eq!(cap(&env.run(["-o", "mine", "--max-output", "2M", "true"])), json!(2 * MIB));

    // What was in it before is not the job's, and stays.
    let path = env.work().join("mine");
    let before = "before\n".repeat(usize::try_from(MIB / 7).unwrap() + 1);
    fs::write(&path, &before).unwrap();
    let id = writer(&env, &["-o", "mine", "--max-output", "1M"], &fifo, &gate);
    for _ in 0..2 {
        gate.open();
        fifo.line();
    }
    eventually("the middle is given back", || disk_use(&path) <= 3 * MIB + SLACK);
    let logs = env.outlive(["logs", &id]).ok();
    assert!(logs.stdout.starts_with(&(before.clone() + &lines(0, MIB / 16))));
    assert!(logs.stdout.ends_with(&lines(2 * STEP - MIB / 16, 2 * STEP)));
    let of_run = env.outlive(["logs", "--run", "1", &id]).ok();
    assert_eq!(of_run.raw.len() + before.len(), logs.raw.len());
    env.outlive(["stop", &id]).ok();
    env.outlive(["prune", &id]).ok();
    assert!(path.exists());
}

#[test]
fn output_below_the_cap_is_complete() {
    let env = TestEnv::new();
    let (mut fifo, gate) = (env.fifo("life"), env.gate("gate"));
    let id = writer(&env, &["--max-output", "16M"], &fifo, &gate);
    for _ in 0..2 {
        gate.open();
        fifo.line();
    }
    assert_eq!(env.job(&id)["output"]["status"], "partial");
    env.outlive(["stop", &id]).ok();
    assert_eq!(env.job(&id)["output"]["status"], "complete");
    let logs = env.outlive(["logs", &id]).ok();
    assert!(logs.stdout == lines(0, 2 * STEP) && logs.stderr.is_empty());
}

#[test]
fn streams_can_be_kept_apart() {
    let env = TestEnv::new();
    fs::write(env.work().join("errors"), "earlier\n").unwrap();
    let words = ["--stderr", "errors", "--", "sh", "-c", "echo out; echo err >&2; echo out again"];
    let id = env.run(words);
    env.outlive(["wait", &id]).ok();
    assert_eq!(env.outlive(["logs", &id]).ok().stdout, "out\nout again\n");
    let errors = || fs::read_to_string(env.work().join("errors")).unwrap();
    assert_eq!(errors(), "earlier\nerr\n");
    env.outlive(["restart", &id]).ok();
    env.outlive(["wait", &id]).ok();
    env.outlive(["prune", &id]).ok();
    assert_eq!(errors(), "earlier\nerr\nerr\n");
}
