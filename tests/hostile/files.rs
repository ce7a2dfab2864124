//! A state directory with damaged files in it, through the program: what can be known is told, what cannot is said
//! to be unknown, nothing is lost, and nothing that is alive is forgotten.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::env::{Output, TestEnv};
use crate::readers::corpus;
use crate::{as_nobody, can_become_nobody, process, skipped, world_of_nobody};

/// A job that ended with 7, recorded everywhere.
fn ended(env: &TestEnv) -> String {
    let id = env.run(["sh", "-c", "exit 7"]);
    env.outlive(["wait", "--group", &id]).ended(7);
    // The record of its end follows the waiters' release.
    crate::env::eventually("the ledger knows the end", || {
        env.records().iter().any(|record| record["kind"] == "exited" && record["id"] == *id)
    });
    id
}

/// What `ls --all` says of a job.
#[track_caller]
fn listed(env: &TestEnv, id: &str) -> Value {
    let out = env.outlive(["ls", "--json", "-a"]).ok();
    let jobs = out.json();
    let found = jobs.as_array().unwrap().iter().find(|job| job["id"] == id);
    found.unwrap_or_else(|| panic!("{id} has vanished: {out:#?}")).clone()
}

fn append(env: &TestEnv, raw: &[u8]) -> Vec<u8> {
    let whole = [fs::read(env.ledger()).unwrap(), raw.to_vec()].concat();
    fs::write(env.ledger(), &whole).unwrap();
    whole
}

#[test]
fn a_ledger_with_anything_at_its_end_is_listed_and_kept() {
    for (name, raw) in corpus("ledger") {
        let env = TestEnv::new();
        let id = ended(&env);
        let before = append(&env, &raw);
        assert_eq!(listed(&env, &id)["exit_code"], 7, "{name}");
        env.outlive(["reap"]).ok();
        env.outlive(["wait", &id]).ended(7);
        let run = env.outlive(["run", "sh", "-c", "exit 3"]);
        let refuses = ["newer", "last-seq"].contains(&&*name);
        if refuses {
            let why = if name == "newer" { "newer" } else { "sequence numbers" };
            run.refused(125, why);
        } else {
            let next = run.ok().id();
            env.outlive(["wait", &next]).ended(3);
            assert_eq!(listed(&env, &next)["exit_code"], 3, "{name}");
        }
        let after = fs::read(env.ledger()).unwrap();
        assert!(after.starts_with(&before), "{name}: what could not be read is lost");
    }
}

#[test]
fn a_ledger_that_lost_its_beginning_is_made_good_by_the_files() {
    for (name, raw) in corpus("ledger") {
        let env = TestEnv::new();
        let mut fifo = env.fifo("life");
        let (id, alive) = (ended(&env), env.sleeper(&[], &mut fifo));
        let listed = |env: &TestEnv, id: &str| {
            let out = env.outlive(["ls", "--json", "-a"]).ok();
            let jobs = out.json();
            let found = jobs.as_array().unwrap().iter().find(|job| job["id"] == id);
            found.unwrap_or_else(|| panic!("{name}: {id} has vanished: {out:#?}")).clone()
        };
        fs::write(env.ledger(), &raw).unwrap();
        if name == "last-seq" {
            // Nothing can be recorded any more, and nothing is missed: each job is found all the same.
            assert_eq!(env.job(&id)["exit_code"], 7);
            continue;
        }
        assert_eq!(listed(&env, &id)["exit_code"], 7, "{name}");
        assert_eq!(listed(&env, &alive)["state"], "running", "{name}");
        env.outlive(["stop", &alive]).ok();
        fifo.end();
        assert_eq!(listed(&env, &alive)["state"], "stopped", "{name}");
        assert!(fs::read(env.ledger()).unwrap().starts_with(&raw), "{name}");
    }
}

#[test]
fn a_newer_ledger_is_listed_and_not_written() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let (id, alive) = (ended(&env), env.sleeper(&["--name", "web"], &mut fifo));
    let newer = append(&env, b"{\"v\":2,\"seq\":99,\"id\":\"q1q1q1q\",\"kind\":\"launched\",\"new\":[]}\n");
    let list = env.outlive(["ls", "-a", "--json"]).ok();
    assert!(list.stderr.contains("newer"), "{list:#?}");
    assert_eq!(
        (&listed(&env, &id)["exit_code"], &listed(&env, &alive)["state"]),
        (&json!(7), &json!("running"))
    );
    // Nothing is executed that cannot be recorded.
    env.outlive(["run", "touch", "executed"]).refused(125, "newer");
    env.outlive(["restart", &id]).ended(125);
    env.outlive(["wait", "--group", &id]).ended(125);
    assert!(!env.work().join("executed").exists());
    let prune = env.outlive(["prune", &id]);
    assert!(prune.code != 0 && prune.stderr.contains("newer"), "{prune:#?}");
    assert_eq!(fs::read(env.ledger()).unwrap(), newer, "a newer ledger was written to");
    // What runs can still be stopped; its end is in its sidecar.
    env.outlive(["stop", "web"]).ok();
    fifo.end();
    env.outlive(["wait", &alive]).ended(143);
    assert_eq!(fs::read(env.ledger()).unwrap(), newer);
}

#[test]
fn a_ledger_of_zeros_that_is_as_long_as_it_should_be_costs_no_record() {
    let env = TestEnv::new();
    let id = ended(&env);
    // In place, so that length and inode are those that ledger.lock tells.
    let length = fs::metadata(env.ledger()).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(env.ledger()).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![0; usize::try_from(length).unwrap()], 0).unwrap();
    // As after a power loss: the machine was started again.
    let lock = env.state().join("ledger.lock");
    let text = fs::read_to_string(&lock).unwrap();
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    fs::write(&lock, format!("{} 1\n", words[..4].join(" "))).unwrap();
    let next = env.run(["sh", "-c", "exit 3"]);
    env.outlive(["wait", &next]).ended(3);
    let raw = fs::read(env.ledger()).unwrap();
    let book = outlive::ledger::parse(&raw);
    assert!(
        book.job(&next).is_some(),
        "the record stands in a line of zeros: {}",
        String::from_utf8_lossy(&raw)
    );
    assert_eq!((&listed(&env, &id)["exit_code"], &listed(&env, &next)["exit_code"]), (&json!(7), &json!(3)));
}

#[test]
fn a_directory_in_place_of_the_ledger() {
    let env = TestEnv::new();
    let id = ended(&env);
    fs::remove_file(env.ledger()).unwrap();
    fs::create_dir(env.ledger()).unwrap();
    let list = env.outlive(["ls", "-a", "--json"]).ok();
    assert!(
        list.stderr.contains("ledger.jsonl: not a regular file (move it away); nothing was changed"),
        "{list:#?}"
    );
    assert_eq!(listed(&env, &id)["exit_code"], 7);
    env.outlive(["run", "touch", "executed"]).refused(125, "ledger");
    assert!(!env.work().join("executed").exists());
    assert_ne!(env.outlive(["doctor"]).code, 0);
}

#[allow(clippy::disallowed_methods, reason = "nothing here has to survive a crash")]
fn rename(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::rename(from, to)
}

#[test]
fn a_fifo_in_place_of_a_file_blocks_nobody() {
    let env = TestEnv::new();
    let id = ended(&env);
    env.outlive(["events", "--reader", "r"]).ok();
    let files = [
        "ledger.jsonl",
        "ledger.lock",
        "names/web",
        "readers/r",
        "readers/.r",
        &format!("jobs/{id}/op"),
        &format!("jobs/{id}/env"),
        &format!("jobs/{id}/output.log"),
        &format!("jobs/{id}/1/launch.json"),
        &format!("jobs/{id}/1/exit.json"),
    ];
    for name in files {
        let path = env.state().join(name);
        let aside = env.work().join("aside");
        let there = rename(&path, &aside).is_ok();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for words in [
            &["ls", "-a"][..],
            &["show", &id],
            &["show", "web"],
            &["logs", &id],
            &["wait", &id],
            &["reap", "--dry-run"],
            &["reap"],
            &["doctor"],
            &["events"],
            &["events", "--reader", "r"],
            &["prune", "--keep", "9"],
        ] {
            // That it ends is the test.
            assert!(env.outlive(words).code < 126, "{name} {words:?}");
        }
        fs::remove_file(&path).unwrap();
        if there {
            rename(&aside, &path).unwrap();
        }
    }
    assert_eq!(listed(&env, &id)["exit_code"], 7);
}

/// It says which file is in the way, and what to do.
#[test]
fn what_is_no_file_in_place_of_a_file_is_named() {
    let env = TestEnv::new();
    let id = ended(&env);
    env.outlive(["events", "--reader", "r"]).ok();
    let output = format!("jobs/{id}/output.log");
    let cases: [(&str, &[&str], i32); 5] = [
        ("names/web", &["run", "--name", "web", "true"], 125),
        ("ledger.lock", &["run", "true"], 125),
        ("readers/r", &["events", "--reader", "r"], 125),
        (&output, &["restart", &id], 125),
        (&format!("jobs/{id}/op"), &["restart", &id], 125),
    ];
    for (name, words, code) in cases {
        let path = env.state().join(name);
        let aside = env.work().join("aside");
        let there = rename(&path, &aside).is_ok();
        let plant: [&dyn Fn() -> bool; 3] = [
            &|| nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).is_ok(),
            &|| std::os::unix::fs::symlink("/dev/null", &path).is_ok(),
            &|| std::os::unix::net::UnixListener::bind(&path).is_ok(),
        ];
        for plant in plant {
            // The supervisor of a launch that was refused may still be making a file of the name.
            crate::env::eventually("it is planted", || {
                let _ = fs::remove_file(&path);
                plant()
            });
            let said = format!("{}: not a regular file (move it away)", path.display());
            env.outlive(words).refused(code, &said);
            fs::remove_file(&path).unwrap();
        }
        if there {
            rename(&aside, &path).unwrap();
        }
    }
}

#[test]
fn a_job_without_a_sidecar_that_is_a_file_can_be_pruned() {
    let env = TestEnv::new();
    let id = ended(&env);
    let exit = env.run_dir(&id, 1).join("exit.json");
    fs::remove_file(&exit).unwrap();
    fs::create_dir(&exit).unwrap();
    assert_eq!(env.job(&id)["exit_code"], 7, "the ledger knows");
    assert_eq!(env.outlive(["prune", &id]).ok().stdout, format!("{id}\n"));
}

/// Where the output goes is the user's affair; that it cannot be read back is said and blocks nobody.
#[test]
fn an_output_that_is_no_file_is_not_read() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("out");
    let id = env.run(["-o", fifo.path(), "--", "sh", "-c", "echo hello; exit 7"]);
    assert_eq!(fifo.line(), "hello");
    env.outlive(["wait", "--group", &id]).ended(7);
    env.outlive(["logs", &id]).refused(1, "is a FIFO: what went there cannot be read back");
    let shown = env.outlive(["show", &id]).ok().stdout;
    assert!(shown.contains(&format!("{} (a FIFO, complete)", fifo.path())), "{shown}");
    env.outlive(["restart", &id]).ok();
    assert_eq!(fifo.line(), "hello");
    env.outlive(["run", "--ready-log", "x", "-o", fifo.path(), "true"]).refused(125, "is a FIFO");
    env.outlive(["run", "--wait", "-o", "/dev/null", "--", "sh", "-c", "echo hello; exit 7"]).ended(7);
    env.outlive(["run", "--ready-cmd", "true", "-o", "/dev/null", "--", "sleep", "1000"]).ok();
    env.outlive(["run", "--ready-cmd", "false", "-o", "/dev/null", "false"]).ended(1);
}

#[test]
fn a_ledger_that_may_not_be_read() {
    if !can_become_nobody() {
        return skipped("a ledger that may not be read", "no setpriv, or not root");
    }
    let env = world_of_nobody();
    let script = "id=$($O run -- sh -c 'exit 7') && { $O wait $id || [ $? = 7 ]; } && echo $id && \
        chmod 000 $OUTLIVE_STATE_DIR/ledger.jsonl && $O ls -a --json && $O run touch executed; echo $?";
    let out = as_nobody(&env, script, &[]);
    let lines: Vec<&str> = out.stdout.lines().collect();
    let [id, list, code] = lines[..] else { panic!("{out:#?}") };
    let list: Value = serde_json::from_str(list).unwrap();
    assert_eq!((&list[0]["id"], &list[0]["exit_code"]), (&json!(id), &json!(7)), "{out:#?}");
    assert_eq!(code, "125");
    assert!(out.stderr.contains("permission denied") && !env.work().join("executed").exists(), "{out:#?}");
}

#[test]
fn the_directory_of_an_ended_job_is_gone() {
    let env = TestEnv::new();
    let (id, other) = (ended(&env), ended(&env));
    fs::remove_dir_all(env.state().join("jobs").join(&id)).unwrap();
    for _ in 0..2 {
        assert_eq!(env.job(&id)["exit_code"], 7, "the ledger knows how it ended");
        env.outlive(["wait", &id]).ended(7);
        assert_eq!(
            (&listed(&env, &id)["state"], &listed(&env, &other)["state"]),
            (&json!("exited"), &json!("exited"))
        );
        env.outlive(["reap"]).ok();
        env.outlive(["stop", &id]).ok();
    }
    assert_eq!(env.job(&id)["output"]["status"], "unavailable");
    let restart = env.outlive(["restart", &id]);
    assert!(
        restart.code != 0 && restart.stderr.contains("environment"),
        "it would have another one: {restart:#?}"
    );
    env.outlive(["prune", &id]).ok();
    env.outlive(["show", &id]).refused(1, "no job");
}

#[test]
fn all_directories_are_gone() {
    let env = TestEnv::new();
    let id = ended(&env);
    fs::remove_dir_all(env.state().join("jobs")).unwrap();
    fs::remove_dir_all(env.state().join("names")).unwrap();
    assert_eq!(listed(&env, &id)["exit_code"], 7);
    env.outlive(["wait", &id]).ended(7);
    env.outlive(["reap"]).ok();
    let next = env.run(["--name", "web", "true"]);
    env.outlive(["wait", &next]).ok();
}

#[test]
fn the_directory_of_a_living_job_is_gone() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let (other, id) = (ended(&env), env.sleeper(&[], &mut fifo));
    let leader = env.leader(&id);
    fs::remove_dir_all(env.state().join("jobs").join(&id)).unwrap();
    assert_eq!(listed(&env, &other)["state"], "exited");
    // Nobody can ask its supervisor any more, and nobody can tell that there is one.
    assert!(process::is_alive(leader.pid));
    assert_eq!(listed(&env, &id)["state"], "orphaned");
    let stop = env.outlive(["stop", &id]);
    fifo.end();
    let now = listed(&env, &id);
    assert!(["interrupted", "exited", "stopped"].contains(&now["state"].as_str().unwrap()), "{now}");
    assert!(now["exit_code"].is_null(), "no status of its own making: {now} {stop:#?}");
    env.outlive(["reap"]).ok();
}

/// The latest run is the one the ledger knows, whatever became of its files.
#[test]
fn a_launch_record_that_is_damaged_does_not_bring_an_earlier_run_back() {
    let damages: [&dyn Fn(&Path); 4] = [
        &|path| fs::write(path, &fs::read(path).unwrap()[..200]).unwrap(),
        &|path| fs::write(path, [0; 700]).unwrap(),
        &|path| fs::remove_file(path).unwrap(),
        &|path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        },
    ];
    for (at, damage) in damages.iter().enumerate() {
        let env = TestEnv::new();
        let mut fifo = env.fifo("life");
        let id = env.script("[ $OUTLIVE_RUN = 1 ] && exit 7; echo up >&3; exec sleep 1000", &[fifo.path()]);
        env.outlive(["wait", &id]).ended(7);
        env.outlive(["restart", &id]).ok();
        assert_eq!(fifo.line(), "up");
        damage(&env.run_dir(&id, 2).join("launch.json"));
        let job = env.job(&id);
        assert_eq!((&job["run"], &job["state"]), (&json!(2), &json!("running")), "{at}");
        env.outlive(["wait", "-t", "0", &id]).ended(124);
        env.outlive(["reap"]).ok();
        assert_eq!(listed(&env, &id)["state"], "running", "{at}");
        env.outlive(["stop", &id]).ok();
        fifo.end();
        assert_eq!((&env.job(&id)["run"], &env.job(&id)["state"]), (&json!(2), &json!("stopped")), "{at}");
        assert_eq!(env.job(&id)["runs"][0]["exit_code"], 7);
    }
}

#[test]
fn launch_records_of_the_corpus_are_nobodys() {
    for (name, raw) in corpus("launch") {
        let env = TestEnv::new();
        let id = ended(&env);
        fs::write(env.run_dir(&id, 1).join("launch.json"), &raw).unwrap();
        assert_eq!(env.job(&id)["exit_code"], 7, "{name}");
        env.outlive(["reap"]).ok();
        assert_eq!(listed(&env, &id)["exit_code"], 7, "{name}");
        // Neither record can be read: it cannot be shown, and is not thrown away either.
        fs::write(env.ledger(), b"{\"bad\n").unwrap();
        env.outlive(["reap"]).ok();
        assert!(env.run_dir(&id, 1).join("exit.json").exists(), "{name}: reap has deleted a job");
    }
}

#[test]
fn a_sidecar_that_is_damaged_makes_no_end() {
    for (name, raw) in corpus("exit") {
        let env = TestEnv::new();
        let mut fifo = env.fifo("life");
        let (done, id) = (ended(&env), env.sleeper(&[], &mut fifo));
        let replace = |id: &str| {
            let file = fs::OpenOptions::new().write(true).open(env.run_dir(id, 1).join("exit.json")).unwrap();
            file.set_len(0).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, &raw, 0).unwrap();
        };
        // The ledger knows what the sidecar has forgotten.
        replace(&done);
        assert_eq!(env.job(&done)["exit_code"], 7, "{name}");
        // A living job has not ended, whatever is written there.
        replace(&id);
        assert_eq!(env.state_of(&id), "running", "{name}");
        env.kill_unseen(&id);
        fifo.end();
        for _ in 0..2 {
            let job = listed(&env, &id);
            assert_eq!((&job["state"], &job["exit_code"]), (&json!("interrupted"), &Value::Null), "{name}");
            env.outlive(["wait", &id]).ended(122);
        }
        let ends = env
            .records()
            .iter()
            .filter(|record| record["id"] == *id && record["kind"] == "interrupted")
            .count();
        assert_eq!(ends, 1, "{name}: its end is told once");
    }
}

#[test]
fn a_directory_in_place_of_a_sidecar() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let (done, id) = (ended(&env), env.sleeper(&[], &mut fifo));
    let leader = env.leader(&id);
    for id in [&done, &id] {
        let path = env.run_dir(id, 1).join("exit.json");
        rename(&path, &env.work().join(id)).unwrap();
        fs::create_dir(&path).unwrap();
    }
    assert_eq!(listed(&env, &done)["exit_code"], 7);
    let job = listed(&env, &id);
    assert_eq!((&job["state"], &job["identity"]), (&json!("unknown"), &json!("unverified")), "{job}");
    for words in [["stop", &id], ["restart", &id], ["pause", &id], ["prune", &id]] {
        let out = env.outlive(words);
        assert!(out.code != 0 && out.stderr.contains(&id), "{out:#?}");
    }
    env.outlive(["reap"]);
    assert!(process::is_alive(leader.pid), "what cannot be judged is left alone");
    leader.kill();
    fifo.end();
}

#[test]
fn a_damaged_name_gives_no_second_job_the_name() {
    for raw in [&b"garbage\n"[..], b"\xff\xfe", b"a1a1a1a\n", b"../../x\n", &[0; 64]] {
        let env = TestEnv::new();
        let mut fifo = env.fifo("life");
        let id = env.sleeper(&["--name", "web"], &mut fifo);
        fs::write(env.state().join("names/web"), raw).unwrap();
        assert_eq!(env.job("web")["id"], *id);
        env.outlive(["run", "--name", "web", "true"]).refused(125, "is running already");
        assert_eq!(env.outlive(["run", "--name", "web", "--reuse", "true"]).ok().id(), id);
        env.outlive(["stop", "web"]).ok();
        fifo.end();
        let next = env.run(["--name", "web", "true"]);
        assert_eq!(env.job("web")["id"], *next);
    }
}

#[test]
fn a_directory_in_place_of_a_name() {
    let env = TestEnv::new();
    let id = ended(&env);
    fs::create_dir(env.state().join("names/web")).unwrap();
    env.outlive(["run", "--name", "web", "true"]).refused(125, "web");
    env.outlive(["show", "web"]).refused(1, "no job");
    assert_eq!(env.job(&id)["exit_code"], 7);
}

#[test]
fn half_an_environment_is_not_restarted_with() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    let path = env.state().join("jobs").join(&id).join("env");
    let whole = fs::read(&path).unwrap();
    for raw in [&whole[..whole.len() / 2], &[], &vec![0; whole.len()]] {
        fs::write(&path, raw).unwrap();
        env.outlive(["restart", &id]).refused(1, "environment");
        assert_eq!((&env.job(&id)["run"], &env.job(&id)["state"]), (&json!(1), &json!("running")));
    }
    fs::write(&path, &whole).unwrap();
    env.outlive(["restart", &id]).ok();
    assert_eq!(fifo.line(), "up");
}

#[test]
fn a_prune_that_was_broken_off_is_finished_and_brings_nothing_back() {
    let env = TestEnv::new();
    let (id, other) = (ended(&env), ended(&env));
    let kept = env.work().join("kept");
    copy(&env.state().join("jobs").join(&id), &kept);
    env.outlive(["prune", &id]).ok();
    // As it is between the record and the deletion: the record, and all the files or some of them.
    let files = ["", "1/exit.json", "1/launch.json", "op"];
    for (missing, finish) in files.into_iter().flat_map(|file| [(file, "reap"), (file, "prune")]) {
        let job = env.state().join("jobs").join(&id);
        copy(&kept, &job);
        append(
            &env,
            format!("{{\"v\":1,\"seq\":50,\"id\":\"{id}\",\"run\":1,\"kind\":\"pruned\",\"at\":\"\"}}\n")
                .as_bytes(),
        );
        let _ = fs::remove_file(job.join(missing));
        // Another prune folds the ledger, and still nobody takes the files for a job.
        let third = ended(&env);
        env.outlive(["prune", &third]).ok();
        let jobs = env.json(["ls", "-a"]);
        assert_eq!((jobs.as_array().unwrap().len(), &jobs[0]["id"]), (1, &json!(other)), "{missing}");
        let keep = if finish == "prune" { &["--keep", "9"][..] } else { &[] };
        env.outlive([finish].iter().chain(keep)).ok();
        assert!(!job.exists(), "{finish} {missing}");
        assert_eq!(env.json(["ls", "-a"]).as_array().unwrap().len(), 1, "{missing}");
    }
    let told =
        env.records().iter().filter(|record| record["id"] == *id && record["kind"] == "launched").count();
    assert_eq!(told, 0);
}

fn copy(from: &Path, to: &Path) {
    Output::of(
        std::process::Command::new("cp")
            .arg("-a")
            .args([from, to])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped()),
    )
    .ok();
}

#[test]
fn a_position_of_a_reader_that_is_garbage_loses_nothing() {
    let env = TestEnv::new();
    let id = ended(&env);
    env.outlive(["events", "--reader", "inbox"]).ok();
    fs::write(env.state().join("readers/inbox"), "garbage").unwrap();
    env.outlive(["events", "--reader", "inbox"]).refused(125, "correct or delete it");
    env.outlive(["prune", &id]).ok();
    let kinds: Vec<_> = env.records().iter().map(|record| record["kind"].clone()).collect();
    assert_eq!(kinds[..2], [json!("launched"), json!("exited")], "what it may not have seen is kept");
}

#[test]
fn a_state_directory_that_cannot_be_written_is_told_the_truth_about() {
    if !can_become_nobody() {
        return skipped("a read-only state directory", "no setpriv, or not root");
    }
    let env = world_of_nobody();
    let script = "id=$($O run -- sh -c 'exit 7') && { $O wait $id || [ $? = 7 ]; } && echo $id";
    let id = as_nobody(&env, script, &[]).ok().id();
    for path in [env.state(), env.state().join("jobs")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o500)).unwrap();
    }
    as_nobody(&env, "$O wait $1", &[&id]).ended(7);
    let list = as_nobody(&env, "$O ls -a --json", &[]).ok().json();
    assert_eq!((&list[0]["id"], &list[0]["exit_code"]), (&json!(id), &json!(7)));
    as_nobody(&env, "$O run touch executed", &[])
        .refused(125, "permission denied (set OUTLIVE_STATE_DIR to ");
    assert!(!env.work().join("executed").exists());
    let lacks = as_nobody(&env, "$O doctor", &[]).ended(1).stdout;
    assert!(lacks.contains("LACK  files can be made in the state directory: "), "{lacks}");
    // What cannot be deleted is said, and does not look as if it were whole.
    as_nobody(&env, "$O prune", &[]).refused(1, "permission denied ('outlive reap' deletes them)");
    as_nobody(&env, "$O reap", &[]).refused(1, "cannot clear what is left of job ");
    for path in [env.state(), env.state().join("jobs")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
    }
    for words in ["ls", "run touch executed", "doctor"] {
        let out = as_nobody(&env, &format!("$O {words}"), &[]);
        out.refused(
            125,
            &format!("permission denied (chmod u+rwx {}, if it is yours)", env.state().display()),
        );
    }
    for path in [env.state(), env.state().join("jobs")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    }
    as_nobody(&env, "$O reap", &[]).ok();
    assert_eq!(fs::read_dir(env.state().join("jobs")).unwrap().count(), 0);
}

#[test]
fn durations_beyond_all_measure() {
    let env = TestEnv::new();
    let ages = "10000000000000000000";
    let id = env.run(["--timeout", ages, "--grace", ages, "sleep", "1000"]);
    env.outlive(["wait", "-t", "0", &id]).ended(124);
    env.outlive(["stop", "-t", ages, &id]).ok();
    assert_eq!(env.state_of(&id), "stopped");
}
