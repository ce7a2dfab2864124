//! What depends on the system that outlive was built for: docs/platforms.md tells the truth of this build, and what
//! this build cannot do, it says so instead of guessing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::env::{TestEnv, can};
use crate::process::Process;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn document() -> String {
    fs::read_to_string(here("docs/platforms.md")).unwrap()
}

/// The rows, without their code marks, of the table whose head begins with this word.
fn table(document: &str, head: &str) -> Vec<Vec<String>> {
    let rows = document.lines().skip_while(|line| !line.starts_with(&format!("| {head} |"))).skip(2);
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect();
    rows.take_while(|line| line.starts_with('|')).map(cells).collect()
}

fn sources(below: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(here(below)).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(path.to_str().unwrap()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn the_table_of_abilities_is_what_doctor_says() {
    let env = TestEnv::new();
    let column = if cfg!(all(target_os = "linux", not(feature = "portable"))) { 2 } else { 3 };
    let checks = env.outlive(["doctor", "--json"]).json();
    let checks = checks.as_array().unwrap().iter().filter(|check| !check["ability"].is_null());
    let said: Vec<_> = checks.map(|check| (&check["ability"], &check["pass"], &check["cost"])).collect();
    let document = document();
    let rows = table(&document, "ability");
    assert!(rows.len() > 10);
    let told: Vec<_> =
        rows.iter().map(|row| (json!(row[1]), json!(row[column] == "yes"), json!(row[4]))).collect();
    assert_eq!(told.iter().map(|(name, pass, cost)| (name, pass, cost)).collect::<Vec<_>>(), said);
    assert!(rows.iter().all(|row| row[2..4].iter().all(|cell| cell == "yes" || cell == "no")));
}

#[test]
fn the_table_of_skipped_tests_is_what_the_tests_ask_for() {
    let mut asked = BTreeMap::new();
    for path in sources("tests/suite") {
        let text = fs::read_to_string(&path).unwrap();
        let mut test = String::new();
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            if let Some(name) = line.strip_prefix("fn ").and_then(|rest| rest.split('(').next()) {
                name.clone_into(&mut test);
            }
            if let Some((_, rest)) = line.split_once("lacks(\"")
                && let Some((ability, _)) = rest.split_once("\")").filter(|_| path != here(file!()))
            {
                let file = path.file_stem().unwrap().to_str().unwrap();
                asked.insert(format!("{file}::{test}"), ability.to_owned());
            }
        }
    }
    assert!(asked.len() > 5, "{asked:?}");
    let document = document();
    let told: BTreeMap<_, _> =
        table(&document, "test").into_iter().map(|row| (row[1].clone(), row[2].clone())).collect();
    assert_eq!(told, asked);
}

/// A port is a folder: nobody outside it calls what one system alone has.
#[test]
fn what_one_system_alone_has_is_called_in_its_folder() {
    let words = [
        "inotify",
        "signalfd",
        "timerfd",
        "eventfd",
        "epoll",
        "prctl",
        "memfd",
        "PidFd",
        "SYS_",
        "O_PATH",
        "F_NOTIFY",
        "fallocate",
        "\"/proc",
        "os::linux",
        "SIGEV_THREAD_ID",
        "target_os",
        "feature =",
    ];
    let mut seen = 0;
    for path in sources("src") {
        let text = fs::read_to_string(&path).unwrap();
        let calls = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let found: Vec<&str> = calls.filter(|line| words.iter().any(|word| line.contains(word))).collect();
        let name = path.strip_prefix(here("src")).unwrap().to_str().unwrap().to_owned();
        seen += found.len();
        // Where the back-end is chosen, and where the C library's own start is.
        let may = name.starts_with("sys/linux/") || name == "sys/mod.rs" || name == "main.rs";
        // A system's own spelling of an option of ps.
        assert!(may || name == "sys/portable/ps.rs" || found.is_empty(), "{name}: {found:#?}");
    }
    assert!(seen > 20, "the words are those that are used");
}

fn is_orphaned(job: &Value) -> bool {
    (&job["state"], &job["identity"]) == (&json!("orphaned"), &json!("owned"))
}

/// Without an environment its words are its proof. Where they are not known, it is left alone.
#[test]
fn an_orphan_that_has_cleared_its_environment() {
    let env = TestEnv::new();
    let gate = env.gate("gate");
    let id = env.run(["--stdin", gate.path(), "--", "env", "-i", "sleep", "1000"]);
    assert_eq!(env.state_of(&id), "running");
    let leader = env.leader(&id);
    env.kill_supervisor(&id);
    let job = env.job(&id);
    if can("command-lines") {
        assert!(is_orphaned(&job), "{job}");
        env.outlive(["stop", &id]).ok();
        leader.wait();
        return;
    }
    assert_eq!((&job["state"], &job["identity"]), (&json!("unknown"), &json!("unverified")), "{job}");
    env.outlive(["stop", "-t", "0", &id]).ended(1);
    assert_eq!(env.json(["reap"])[0]["action"], "left-alone");
    assert!(Process::open(leader.pid).is_some());
    leader.kill();
}

/// No session, no environment, no parent: only a supervisor that is given it knows it.
#[test]
fn a_daemon_without_a_trace() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let daemon = "env -i setsid -f sh -c 'echo $$ >&3; exec sleep 1000'; echo up >&3; exec sleep 1000";
    let id = env.script(daemon, &[fifo.path()]);
    let lines = [fifo.line(), fifo.line()];
    let pid = lines.iter().find_map(|line| line.parse().ok()).unwrap();
    let daemon = Process::open(pid).unwrap();
    let stop = env.outlive(["stop", &id]).ok();
    if can("subreaper") {
        daemon.wait();
        assert_eq!(stop.stderr, "");
    } else {
        assert!(stop.stderr.contains("cannot be excluded"), "{stop:?}");
        daemon.kill();
    }
    fifo.end();
}

#[test]
fn what_cannot_be_waited_for_or_kept_small() {
    let env = TestEnv::new();
    let port = env.outlive(["run", "--ready-port", "1", "--ready-timeout", "1ms", "--", "sleep", "1000"]);
    if can("ports") {
        port.ended(124);
    } else {
        port.refused(125, "--ready-port");
        assert_eq!(env.json(["ls", "-a"]), json!([]), "nothing was launched");
    }
    let capped = env.outlive(["run", "--max-output", "1M", "--", "true"]).ok();
    assert_eq!(capped.stderr.contains("--max-output has no effect"), !can("holes"), "{capped:?}");
    assert_eq!(env.outlive(["run", "--", "true"]).ok().stderr, "", "by itself it is not asked for");
}
