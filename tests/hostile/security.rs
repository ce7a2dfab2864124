//! Other users, and a state directory that was left open to them once.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::env::{Output, TestEnv};
use crate::{as_nobody, can_become_nobody, process, skipped, world_of_nobody};

const NOBODY: Option<u32> = Some(65534);

fn tree(path: &Path) -> Vec<PathBuf> {
    let meta = fs::symlink_metadata(path).unwrap();
    let below = if meta.is_dir() {
        fs::read_dir(path).unwrap().flatten().map(|entry| entry.path()).collect()
    } else {
        Vec::new()
    };
    std::iter::once(path.to_path_buf()).chain(below.iter().flat_map(|path| tree(path))).collect()
}

#[test]
fn directories_are_0700_and_files_0600_whatever_the_umask() {
    for umask in ["000", "777", "022"] {
        let env = TestEnv::new();
        let script = format!(
            "umask {umask}; id=$($O run --name web --on-exit true -- sh -c 'exit 7'); $O wait --group $id || :; \
             $O restart $id; $O wait --group $id || :; $O pause $id || :; \
             gone=$($O run -- true); $O wait --group $gone; $O prune $gone; \
             rm $OUTLIVE_STATE_DIR/ledger.lock; failed=$($O run -- /nosuch/command || :); \
             $O events --reader inbox; $O ls -a; $O reap"
        );
        let alive = env.bash(&format!("umask {umask}; $O run -- sleep 1000"), &[]).ok().id();
        env.bash(&script, &[]).ok();
        env.kill_unseen(&alive);
        env.bash(&format!("umask {umask}; $O reap; $O ls -a"), &[]).ok();
        let found = tree(&env.state());
        assert!(found.len() > 15, "{found:?}");
        for path in found {
            let meta = fs::symlink_metadata(&path).unwrap();
            let wanted = if meta.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(meta.permissions().mode() & 0o7777, wanted, "umask {umask}: {}", path.display());
        }
    }
}

/// The command has the umask of its caller all the same.
#[test]
fn the_command_has_the_umask_of_its_caller() {
    let env = TestEnv::new();
    let id = env.bash("umask 013; $O run -- sh -c umask", &[]).ok().id();
    env.outlive(["wait", &id]).ok();
    assert_eq!(env.outlive(["logs", &id]).ok().stdout, "0013\n");
}

fn refused_everywhere(env: &TestEnv, why: &str) {
    let before = tree(&env.state());
    for words in
        [&["run", "touch", "executed"][..], &["ls"], &["reap"], &["stop", "--all"], &["events"], &["prune"]]
    {
        let out = env.outlive(words);
        assert!(out.stderr.contains(why) && out.stdout.is_empty(), "{words:?} {out:#?}");
        assert!(out.stderr.contains("OUTLIVE_STATE_DIR"), "says what to set: {out:#?}");
        assert_eq!(out.code, 125, "{words:?}");
    }
    assert!(!env.work().join("executed").exists());
    assert_eq!(tree(&env.state()), before, "nothing was made there");
}

#[test]
fn the_directory_of_somebody_else_is_refused() {
    let env = TestEnv::new();
    fs::create_dir(env.state()).unwrap();
    if chown(env.state(), NOBODY, NOBODY).is_err() {
        return skipped("the directory of somebody else", "not root");
    }
    refused_everywhere(&env, "belongs to user 65534");
}

#[test]
fn a_directory_that_others_may_write_is_refused() {
    for mode in [0o777, 0o770, 0o702, 0o1777] {
        let env = TestEnv::new();
        fs::create_dir(env.state()).unwrap();
        fs::set_permissions(env.state(), fs::Permissions::from_mode(mode)).unwrap();
        refused_everywhere(&env, "writable by others");
    }
}

#[test]
fn a_link_to_the_directory_of_somebody_else_is_refused() {
    let env = TestEnv::new();
    let theirs = env.work().join("theirs");
    fs::create_dir(&theirs).unwrap();
    if chown(&theirs, NOBODY, NOBODY).is_err() {
        return skipped("a link to the directory of somebody else", "not root");
    }
    symlink(&theirs, env.state()).unwrap();
    refused_everywhere(&env, "belongs to user 65534");
    assert_eq!(fs::read_dir(theirs).unwrap().count(), 0);
}

#[test]
fn a_link_in_place_of_a_part_of_the_directory_is_refused() {
    for part in ["jobs", "names"] {
        let env = TestEnv::new();
        env.prepare();
        let theirs = env.work().join("theirs");
        fs::create_dir(&theirs).unwrap();
        let _ = fs::remove_dir(env.state().join(part));
        symlink(&theirs, env.state().join(part)).unwrap();
        refused_everywhere(&env, part);
        assert_eq!(fs::read_dir(theirs).unwrap().count(), 0, "{part}");
    }
}

#[test]
fn a_part_of_the_directory_that_is_somebody_elses_is_refused() {
    for part in ["jobs", "names"] {
        let env = TestEnv::new();
        env.prepare();
        if chown(env.state().join(part), NOBODY, NOBODY).is_err() {
            return skipped("a part that is somebody else's", "not root");
        }
        refused_everywhere(&env, part);
    }
}

#[test]
fn a_link_in_place_of_the_readers_directory_is_not_followed() {
    let env = TestEnv::new();
    let id = env.run(["true"]);
    env.outlive(["wait", "--group", &id]).ok();
    let theirs = env.work().join("theirs");
    fs::create_dir(&theirs).unwrap();
    symlink(&theirs, env.state().join("readers")).unwrap();
    env.outlive(["events", "--reader", "inbox"]).refused(125, "readers");
    env.outlive(["prune"]).ok();
    assert_eq!(fs::read_dir(theirs).unwrap().count(), 0);
}

/// While the directory was open, somebody planted links in it.
#[test]
fn nothing_is_written_through_a_planted_link() {
    for name in
        ["ledger.jsonl", "ledger.lock", "names/web", "readers/inbox", "readers/.inbox", ".ledger.jsonl.1"]
    {
        let env = TestEnv::new();
        env.prepare();
        fs::create_dir(env.state().join("readers")).unwrap();
        fs::set_permissions(env.state().join("readers"), fs::Permissions::from_mode(0o700)).unwrap();
        let victim = env.home().join("victim");
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, env.state().join(name)).unwrap();
        for words in [
            &["run", "--name", "web", "touch", "executed"][..],
            &["ls", "-a"],
            &["reap"],
            &["events", "--reader", "inbox"],
            &["prune"],
            &["show", "web"],
        ] {
            env.outlive(words);
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{name}");
        // What could not be recorded was not executed.
        let told = fs::symlink_metadata(env.ledger()).is_ok_and(|meta| meta.is_file());
        assert!(told || !env.work().join("executed").exists(), "{name}");
        // Nor through one that leads nowhere yet.
        fs::remove_file(&victim).unwrap();
        env.outlive(["run", "--name", "web", "true"]);
        env.outlive(["events", "--reader", "inbox"]);
        assert!(!victim.exists(), "{name}: made through a link");
    }
}

#[test]
fn nothing_is_written_through_a_link_in_a_job() {
    for name in ["output.log", "op", "env", "1/exit.json", "1/launch.json", "1/control"] {
        let env = TestEnv::new();
        let id = env.run(["sh", "-c", "echo mine"]);
        env.outlive(["wait", "--group", &id]).ok();
        let victim = env.home().join("victim");
        fs::write(&victim, "precious").unwrap();
        let path = env.state().join("jobs").join(&id).join(name);
        let _ = fs::remove_file(&path);
        symlink(&victim, &path).unwrap();
        for words in [
            &["restart", &id][..],
            &["wait", "--group", &id],
            &["stop", &id],
            &["reap"],
            &["show", &id],
            &["prune", &id],
        ] {
            env.outlive(words);
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{name} {words:?}");
        }
    }
}

/// Where the user sends output is the user's affair, links included.
#[test]
fn an_output_file_of_the_users_may_be_a_link() {
    let env = TestEnv::new();
    symlink("real", env.work().join("link")).unwrap();
    let id = env.run(["-o", "link", "echo", "one"]);
    env.outlive(["wait", "--group", &id]).ok();
    env.outlive(["restart", &id]).ok();
    env.outlive(["wait", "--group", &id]).ok();
    let text = fs::read_to_string(env.work().join("real")).unwrap();
    assert_eq!(text.matches("one\n").count(), 2, "{text}");
}

#[test]
fn files_of_somebody_else_are_not_believed() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    for name in
        ["ledger.jsonl".to_owned(), format!("jobs/{id}/1/launch.json"), format!("jobs/{id}/1/exit.json")]
    {
        let path = env.state().join(&name);
        if chown(&path, NOBODY, NOBODY).is_err() {
            return skipped("files of somebody else", "not root");
        }
        let out = env.outlive(["ls", "--json"]).ok();
        assert!(
            ["running", "unknown"].contains(&out.json()[0]["state"].as_str().unwrap()),
            "{name}: {out:#?}"
        );
        if name == "ledger.jsonl" {
            env.outlive(["run", "touch", "executed"]).refused(125, "belongs to user 65534");
            assert!(!env.work().join("executed").exists());
        }
        chown(&path, Some(nix::unistd::geteuid().as_raw()), None).unwrap();
    }
    env.outlive(["stop", &id]).ok();
    fifo.end();
}

#[test]
fn another_user_can_neither_look_nor_steer() {
    if !can_become_nobody() {
        return skipped("another user", "no setpriv, or not root");
    }
    // Their home is open to everybody, the state directory is not.
    let env = world_of_nobody();
    fs::remove_dir(env.state()).unwrap();
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    let leader = env.leader(&id);
    let control = env.run_dir(&id, 1).join("control");
    let control = control.to_str().unwrap();
    let state = env.state();
    for script in [
        "ls $OUTLIVE_STATE_DIR",
        "cat $OUTLIVE_STATE_DIR/ledger.jsonl",
        "echo '1 stop 9 0 stop' > $1",
        "printf '1 pause\\n' >> $1",
        "cat $OUTLIVE_STATE_DIR/jobs/*/env",
        "$O ls",
        "$O stop --all",
        "$O reap",
    ] {
        let out = as_nobody(&env, script, &[control]);
        assert!(out.code != 0 && out.stdout.is_empty(), "{script}: {out:#?}");
    }
    assert!(process::is_alive(leader.pid) && !process::is_stopped(leader.pid));
    // Even if the directories are opened, the FIFO is not.
    for path in [&state, &state.join("jobs"), &state.join("jobs").join(&id), &env.run_dir(&id, 1)] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert_ne!(as_nobody(&env, "echo '1 stop 9 0 stop' > $1", &[control]).code, 0);
    assert_ne!(as_nobody(&env, "cat $OUTLIVE_STATE_DIR/jobs/$1/env", &[&id]).code, 0);
    assert_eq!(env.state_of(&id), "running");
    env.outlive(["stop", &id]).ok();
    fifo.end();
}

/// Every file, every listing, every message: a value is in the one file only that is for it.
#[test]
fn values_of_the_environment_are_in_one_file_only() {
    const VALUE: &str = "s3same-0pen-v4lue";
    let env = TestEnv::new();
    let script = "export DEEP=$1; id=$($O run --name web --on-exit true -e SECOND=$1 -- sh -c 'exit 7'); \
        $O wait --group $id || :; $O restart $id; $O wait --group $id || :; $O run --json -- true; \
        $O run -- /nosuch/command || :; live=$($O run -- sleep 1000); $O show $live; $O --json show $live; \
        $O ls -a --json; $O ls -a; $O events; $O show web --json; $O logs web; $O doctor || :; \
        $O stop $live --json; $O reap --json; cat /proc/self/cmdline > /dev/null; echo $id";
    let out = env.bash(script, &[VALUE]).ok();
    assert!(!out.stdout.contains(VALUE) && !out.stderr.contains(VALUE), "{out:#?}");
    let holds = |path: &PathBuf| {
        let raw = fs::read(path).unwrap();
        raw.windows(VALUE.len()).any(|window| window == VALUE.as_bytes())
    };
    let files: Vec<PathBuf> =
        tree(&env.state()).into_iter().filter(|path| fs::symlink_metadata(path).unwrap().is_file()).collect();
    let found: Vec<_> = files.iter().filter(|path| holds(path)).collect();
    assert!(found.iter().all(|path| path.ends_with("env")) && found.len() >= 3, "{found:?}");
    for path in found {
        assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600);
    }
    env.outlive(["prune"]).ok();
    assert_eq!(env.json(["ls", "-a"]), json!([]));
    assert!(tree(&env.state()).iter().all(|path| !path.is_file() || !holds(path)), "pruned and still there");
}

/// Who looks at the process table sees neither the command twice nor a value once.
#[test]
fn a_supervisor_shows_nothing_of_its_job() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let id = env.script_with(&["-e", "TOKEN=s3same-0pen"], "echo up >&3; exec sleep 1000", &[fifo.path()]);
    fifo.line();
    let supervisor = env.supervisor(&id);
    let cmdline = fs::read(format!("/proc/{}/cmdline", supervisor.pid)).unwrap();
    let shown = String::from_utf8_lossy(&cmdline).into_owned();
    assert!(!shown.contains("sleep") && !shown.contains("s3same"), "{shown}");
    Output::of(&mut env.command(["stop", &id])).ok();
    fifo.end();
}
