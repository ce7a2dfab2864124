//! Forgetting what has ended; and whether everything is well.

use std::fs;
use std::io::Write;

use serde_json::{Value, json};

use crate::env::TestEnv;

fn ended(env: &TestEnv, words: &[&str]) -> String {
    let id = env.run(words);
    env.outlive(["wait", "--group", &id]).ok();
    id
}

fn known(env: &TestEnv) -> Vec<String> {
    let jobs = env.json(["ls", "-a"]);
    jobs.as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect()
}

/// Lets a job have ended at another time.
fn ended_at(env: &TestEnv, id: &str, at: &str) {
    let path = env.run_dir(id, 1).join("exit.json");
    let mut exit: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    exit["at"] = json!(at);
    fs::write(path, format!("{exit}\n")).unwrap();
    let forged = env.records().into_iter().map(|mut record| {
        if record["kind"] == "exited" && record["id"] == id {
            record["at"] = json!(at);
        }
        format!("{record}\n")
    });
    fs::write(env.ledger(), forged.collect::<String>()).unwrap();
}

#[test]
fn only_what_was_named_and_has_ended_is_forgotten() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let live = env.sleeper(&[], &mut fifo);
    let pruned = ended(&env, &["--name", "old", "-o", "kept.log", "echo", "kept"]);
    let other = ended(&env, &["true"]);
    env.outlive(["prune", &live]).refused(1, "only a finished job can be pruned");
    let done = env.outlive(["--json", "prune", &live, "old", "nosuch"]).ended(1).json();
    assert_eq!(done.as_array().unwrap().len(), 1);
    assert_eq!((&done[0]["id"], &done[0]["action"]), (&json!(pruned), &json!("pruned")));
    assert!(!env.state().join("jobs").join(&pruned).exists());
    assert_eq!(fs::read_to_string(env.work().join("kept.log")).unwrap(), "kept\n", "it is not outlive's");
    assert_eq!(known(&env), [live.clone(), other.clone()]);
    env.outlive(["wait", "old"]).refused(125, "no job 'old'");
    env.outlive(["logs", &pruned]).refused(1, "no job");
    assert_eq!(env.outlive(["prune"]).ok().stdout, format!("{other}\n"));
    assert_eq!((known(&env), env.state_of(&live)), (vec![live], "running".into()));
    assert_eq!(env.outlive(["prune"]).ok().stdout, "");
}

/// A name goes with the job that bore it last, and only with that.
#[test]
fn a_name_is_forgotten_with_its_job() {
    let env = TestEnv::new();
    let names = || fs::read_dir(env.state().join("names")).unwrap().count();
    let (first, second) = (ended(&env, &["--name", "web", "true"]), ended(&env, &["--name", "web", "true"]));
    env.outlive(["prune", &first]).ok();
    assert_eq!(env.outlive(["show", "--json", "web"]).ok().json()["id"], json!(second));
    env.outlive(["prune", &second]).ok();
    assert_eq!(names(), 0);
    let third = ended(&env, &["--name", "web", "true"]);
    fs::remove_file(env.state().join("names/web")).unwrap();
    env.outlive(["prune", &third]).ok();
    assert_eq!(names(), 0, "the lock that prune has made itself");
}

#[test]
fn a_dry_run_names_what_would_be_forgotten_and_forgets_nothing() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let live = env.sleeper(&[], &mut fifo);
    let (a, b) = (ended(&env, &["true"]), ended(&env, &["true"]));
    [&a, &b].into_iter().for_each(|id| env.settled(id));
    let before = env.records();
    assert_eq!(env.outlive(["prune", "--dry-run"]).ok().stdout, format!("{a}\n{b}\n"));
    assert_eq!(env.outlive(["prune", "--dry-run", "--keep", "1"]).ok().stdout, format!("{a}\n"));
    let planned = env.json(["prune", "--dry-run", &b]);
    env.outlive(["prune", "--dry-run", &live]).refused(1, "only a finished job can be pruned");
    assert_eq!((known(&env), env.records()), (vec![live, a, b.clone()], before));
    assert_eq!(env.json(["prune", &b]), planned, "it says what is done then");
}

#[test]
fn age_and_number_choose_what_is_kept() {
    let env = TestEnv::new();
    let ids: Vec<String> = (0..4).map(|_| ended(&env, &["true"])).collect();
    for (id, at) in ids.iter().zip(["2001-01-01", "2001-01-02", "2001-01-03"]) {
        ended_at(&env, id, &format!("{at}T00:00:00.000Z"));
    }
    assert_eq!(env.outlive(["prune", "--keep", "9"]).ok().stdout, "");
    assert_eq!(env.outlive(["prune", "--keep", "3"]).ok().stdout, format!("{}\n", ids[0]));
    assert_eq!(env.outlive(["prune", "--older-than", "365000d"]).ok().stdout, "");
    assert_eq!(
        env.outlive(["prune", "--older-than", "1h", "--keep", "2"]).ok().stdout,
        format!("{}\n", ids[1])
    );
    assert_eq!(env.outlive(["prune", "--older-than", "1h"]).ok().stdout, format!("{}\n", ids[2]));
    assert_eq!(known(&env), [ids[3].clone()]);
    assert_eq!(env.outlive(["prune", "--older-than", "0"]).ok().stdout, format!("{}\n", ids[3]));
    assert!(known(&env).is_empty());
}

#[test]
fn doctor_is_a_table_of_checks() {
    let env = TestEnv::new();
    ended(&env, &["true"]);
    let checks = env.outlive(["doctor", "--json"]).json();
    let checks = checks.as_array().unwrap();
    assert!(checks.len() >= 6);
    let text = env.outlive(["doctor"]);
    for (check, line) in checks.iter().zip(text.stdout.lines()) {
        let what = check["check"].as_str().unwrap();
        let word = if check["pass"] == true { "pass" } else { "LACK" };
        assert!(line.starts_with(&format!("{word}  {what}")), "{line}");
        assert!(check["cost"].as_str().is_some_and(|cost| !cost.is_empty()), "{check}");
    }
    let lacks = checks.iter().filter(|check| check["pass"] == false).count();
    assert_eq!((text.code, text.stdout.lines().count()), (i32::from(lacks > 0), checks.len()));
}

#[test]
fn doctor_tells_a_lack_and_what_it_costs() {
    let env = TestEnv::new();
    ended(&env, &["true"]);
    let lacks = |line: &str| line.starts_with("LACK  the ledger can be read: ");
    assert!(!env.outlive(["doctor"]).stdout.lines().any(lacks));
    let mut ledger = fs::OpenOptions::new().append(true).open(env.ledger()).unwrap();
    ledger.write_all(b"{\"bad\n").unwrap();
    let told = env.outlive(["doctor"]).ended(1).stdout;
    let line = told.lines().find(|line| lacks(line)).expect("a lack");
    assert!(
        line.contains("1 line cannot be read") && line.contains("jobs are found by their files"),
        "{line}"
    );
    let checks = env.outlive(["--json", "doctor"]).ended(1).json();
    let lacking = checks.as_array().unwrap().iter().find(|check| check["check"] == "the ledger can be read");
    assert_eq!(lacking.unwrap()["pass"], false);
}
