//! How a command comes to be executed, whatever the caller is like.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use nix::libc;
use serde_json::{Value, json};

use crate::env::{Output, TestEnv};
use crate::process::descriptors;

#[test]
fn options_end_at_the_first_word_of_the_command() {
    let env = TestEnv::new();
    let out = env.outlive(["run", "--wait", "echo", "--help", "--name", "x", "--", "-C"]).ok();
    assert_eq!(out.stdout, "--help --name x -- -C\n");
    let out = env.outlive(["run", "--wait", "--", "echo", "--json"]).ok();
    assert_eq!(out.stdout, "--json\n");
    let out = env.outlive(["run", "-w", "echo", "run", "wait"]).ok();
    assert_eq!(out.stdout, "run wait\n");
}

#[test]
fn bad_usage_is_2_but_125_where_2_could_be_the_jobs() {
    let env = TestEnv::new();
    for words in [
        &["run"][..],
        &["run", "--nonsense", "--", "true"],
        &["run", "-t", "soon", "--", "true"],
        &["run", "--reuse", "--", "true"],
        &["wait", "--nonsense"],
        &["wait", "-t", "soon", "x"],
    ] {
        env.outlive(words).refused(125, "");
    }
    for words in
        [&["stop"][..], &["nonsense"], &["ls", "--nonsense"], &["stop", "-s", "NONE", "x"], &["logs"], &[]]
    {
        env.outlive(words).refused(2, "");
    }
    env.outlive(["--help"]).ok();
    env.outlive(["run", "--help"]).ok();
    env.outlive(["--version"]).ok();
    assert_eq!(env.outlive(["ls", "-a", "--json"]).ok().stdout, "[]\n", "nothing was launched");
}

#[test]
fn json_has_one_shape_everywhere() {
    let env = TestEnv::new();
    let gate = env.gate("gate");
    let words = ["run", "-l", "k=v", "--name", "n", "--", "sh", "-c", "read go <\"$1\"", "sh", gate.path()];
    let run = env.json(words);
    let id = run["id"].as_str().unwrap().to_owned();
    let show = env.json(["show", &id]);
    let keys = |job: &Value| job.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert!(keys(&run).iter().all(|key| show.get(key).is_some()), "{show}");
    assert_eq!(
        (&show["schema"], &show["name"], &show["labels"]),
        (&json!(1), &json!("n"), &json!({"k": "v"}))
    );
    assert_eq!(
        (&show["exit_code"], &show["signal"], &show["owner"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(show["supervisor"]["alive"], true);
    assert_eq!(
        (&show["pid"], &show["pid"]),
        (&show["pgid"], &show["sid"]),
        "a session and a group of its own"
    );
    assert_eq!(show["output"]["status"], "partial");
    for words in [&["ls"][..], &["pause", &id], &["resume", &id], &["wait", "-t", "0", &id]] {
        let jobs = env.json_of(words, if words[0] == "wait" { 124 } else { 0 });
        let jobs = jobs.as_array().unwrap();
        assert_eq!((jobs.len(), &jobs[0]["id"]), (1, &json!(id)));
        assert!(keys(&run).iter().all(|key| jobs[0].get(key).is_some()), "{words:?}");
    }
    gate.open();
    let waited = env.json(["wait", &id])[0].clone();
    assert_eq!((&waited["state"], &waited["exit_code"]), (&json!("exited"), &json!(0)));
    env.outlive(["wait", "--group", &id]).ok();
    let restarted = env.json(["restart", &id]);
    assert_eq!((restarted[0]["run"].as_i64(), restarted[0]["id"].as_str()), (Some(2), Some(&*id)));
    let stopped = env.json(["stop", "-t", "0", &id]);
    assert_eq!((&stopped[0]["state"], &stopped[0]["survivors"]), (&json!("stopped"), &json!([])));
    assert_eq!(env.job(&id)["output"]["status"], "complete");
    assert_eq!(env.json(["prune"])[0]["id"], json!(id));
    assert_eq!(env.json(["ls", "-a"]), json!([]));
}

#[test]
fn a_caller_without_descriptors_can_launch() {
    let env = TestEnv::new();
    let out =
        env.bash("$O run --name bare -- sh -c 'echo out; echo err >&2; exec sleep 1000' <&- >&- 2>&-", &[]);
    assert_ne!(out.code, 127, "{out:?}");
    let job = env.job("bare");
    assert_eq!(job["state"], "running");
    let of_job = descriptors(i32::try_from(job["pid"].as_i64().unwrap()).unwrap());
    assert_eq!(of_job.iter().map(|(fd, _)| *fd).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(of_job[0].1 == "/dev/null" && of_job[1].1 == job["output"]["path"], "{of_job:?}");
    env.outlive(["stop", "bare"]).ok();
    assert_eq!(env.outlive(["logs", "bare"]).ok().stdout, "out\nerr\n");
    for record in env.records() {
        assert!(record["seq"].is_u64(), "the id went into the ledger: {record}");
    }
}

#[test]
fn signals_that_the_caller_blocks_or_ignores_are_the_callers() {
    let env = TestEnv::new();
    let mut command =
        env.command(["run", "--wait", "--", "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]);
    // SAFETY: sigprocmask(2) and signal(2) are async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            let mut all = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
            libc::sigfillset(all.as_mut_ptr());
            libc::sigprocmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut());
            for ignored in [libc::SIGCHLD, libc::SIGHUP, libc::SIGTERM, libc::SIGPIPE, libc::SIGXFSZ] {
                libc::signal(ignored, libc::SIG_IGN);
            }
            Ok(())
        });
    }
    let mut said = Output::of(&mut command).ok().stdout;
    if cfg!(feature = "portable") {
        // The C library lets nobody change its own: 32, which its posix_spawn leaves ignored, and 33.
        said = said.replace("SigIgn:\t0000000080000000", "SigIgn:\t0000000000000000");
    }
    assert_eq!(said, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

#[test]
fn a_stop_works_for_a_caller_that_blocks_signals() {
    let env = TestEnv::new();
    let script = "trap '' TERM HUP CHLD INT; id=$($O run -- sleep 1000); $O stop $id; $O wait $id";
    env.bash(script, &[]).ended(143);
}

#[test]
fn a_deleted_directory_is_no_place_to_launch_from() {
    let env = TestEnv::new();
    let in_deleted = |script: &str| env.bash(&format!("mkdir d; cd d; rmdir ../d; {script}"), &[]);
    in_deleted("$O run -- true").refused(125, "--cwd");
    let id = in_deleted("$O run -C / -- pwd").ok().id();
    in_deleted(&format!("$O wait {id}; $O ls -a >/dev/null; $O logs {id}")).ok();
    assert_eq!(env.outlive(["logs", &id]).ok().stdout, "/\n");
}

#[test]
fn no_home_and_no_state_directory_is_refused() {
    let env = TestEnv::new();
    for words in [&["run", "--", "true"][..], &["ls"], &["wait"], &["stop", "--all"]] {
        let mut command = env.command(words);
        Output::of(command.env_remove("HOME").env_remove("OUTLIVE_STATE_DIR"))
            .refused(125, "OUTLIVE_STATE_DIR");
    }
    let mut command = env.command(["run", "--wait", "--", "true"]);
    Output::of(command.env_remove("OUTLIVE_STATE_DIR")).ok();
    let state = env.home().join(".local/state/outlive");
    assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o700);
    let mut command = env.command(["ls", "-a", "--json"]);
    let listed = Output::of(command.env_remove("OUTLIVE_STATE_DIR")).ok().json();
    assert_eq!(listed[0]["state"], "exited");
}

#[test]
fn a_state_directory_that_others_can_write_is_refused() {
    let env = TestEnv::new();
    fs::create_dir(env.state()).unwrap();
    for mode in [0o777, 0o770, 0o722] {
        fs::set_permissions(env.state(), fs::Permissions::from_mode(mode)).unwrap();
        env.outlive(["run", "--", "true"]).refused(125, "writable by others");
        env.outlive(["ls"]).refused(125, "writable by others");
    }
    fs::set_permissions(env.state(), fs::Permissions::from_mode(0o700)).unwrap();
    env.outlive(["run", "--wait", "--", "true"]).ok();
}

#[test]
fn files_are_private_whatever_the_umask_and_the_job_has_the_callers() {
    let env = TestEnv::new();
    let id = env.bash("umask 0; $O run -- touch made", &[]).ok().id();
    env.outlive(["wait", "--group", &id]).ok();
    let open = env.bash("find $OUTLIVE_STATE_DIR -perm /077", &[]).ok().stdout;
    assert_eq!(open, "", "others can read these");
    assert_eq!(fs::metadata(env.work().join("made")).unwrap().permissions().mode() & 0o777, 0o666);
}

#[test]
fn words_of_a_megabyte_reach_the_command() {
    let env = TestEnv::new();
    let word = "x".repeat(10_000);
    let fixed = ["--wait", "--", "sh", "-c", "echo $# ${#100}", "sh"];
    let words = ["run"].into_iter().chain(fixed).chain(std::iter::repeat_n(&*word, 105));
    assert_eq!(env.outlive(words).ok().stdout, "105 10000\n");
    let jobs = env.json(["ls", "-a"]);
    assert_eq!(jobs[0]["argv"].as_array().unwrap().len(), 109);
}

#[test]
fn words_are_bytes() {
    let env = TestEnv::new();
    let odd = OsString::from_vec(b"a\xff\xfe \n".to_vec());
    let words: Vec<&OsStr> =
        ["--", "printf", "<%s>"].iter().map(OsStr::new).chain([&*odd, OsStr::new("")]).collect();
    let id = env.run(&words);
    env.outlive(["wait", &id]).ok();
    assert_eq!(env.outlive(["logs", &id]).ok().raw, b"<a\xff\xfe \n><>");
    assert_eq!(env.job(&id)["argv"], json!(["printf", "<%s>", {"hex": "61fffe200a"}, ""]));
    env.outlive(["restart", &id]).ok();
    env.outlive(["wait", &id]).ok();
    assert_eq!(env.outlive(["logs", "--run", "2", &id]).ok().raw, b"<a\xff\xfe \n><>");
    // The unfinished line was finished for the marker only.
    assert_eq!(env.outlive(["logs", "--run", "1", &id]).ok().raw, b"<a\xff\xfe \n><>");
    let place = env.work().join(OsStr::from_bytes(b"p\xff"));
    fs::create_dir(&place).unwrap();
    let words = [OsStr::new("-C"), place.as_os_str(), OsStr::new("pwd")];
    let id = env.run(words);
    env.outlive(["wait", &id]).ok();
    assert_eq!(env.outlive(["logs", &id]).ok().raw.trim_ascii_end(), place.as_os_str().as_bytes());
}

#[test]
fn input_and_output_go_where_they_were_sent() {
    let env = TestEnv::new();
    fs::write(env.work().join("in"), "from a file\n").unwrap();
    fs::write(env.work().join("out"), "before\n").unwrap();
    let script = "cat; echo err >&2";
    let options =
        ["run", "--wait", "--stdin", "in", "-o", "out", "--stderr", "err", "--", "sh", "-c", script];
    assert_eq!(env.outlive(options).ok().stdout, "from a file\n");
    assert_eq!(fs::read_to_string(env.work().join("out")).unwrap(), "before\nfrom a file\n");
    assert_eq!(fs::read_to_string(env.work().join("err")).unwrap(), "err\n");
    let out = env.bash("echo piped | $O run --wait --stdin inherit -- cat", &[]).ok();
    assert_eq!(out.stdout, "piped\n");
    let out = env.bash("echo piped | $O run --wait -- cat", &[]).ok();
    assert_eq!(out.stdout, "", "nothing to read unless asked");
    let out = env.outlive([
        "run",
        "--wait",
        "-e",
        "A=b=c",
        "--",
        "sh",
        "-c",
        "echo $A $OUTLIVE_RUN $OUTLIVE_JOB_ID",
    ]);
    assert_eq!(out.stdout, format!("b=c 1 {}\n", out.stderr.trim()));
}
