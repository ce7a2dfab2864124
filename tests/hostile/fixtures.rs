//! Records as format 1 wrote them. The files are kept for good: what they say here, they say to every later version.

use std::fs;
use std::path::PathBuf;

use outlive::bytes::Bytes;
use outlive::job::{Cause, End, OnOwnerExit, ProcessId, Stdin};
use outlive::ledger::parse;
use outlive::store::{Sidecar, parse_launch};
use serde_json::json;

use crate::env::TestEnv;

fn fixture(name: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1").join(name)).unwrap()
}

#[test]
fn format_1_launch_record() {
    let launch = parse_launch(&fixture("launch.json")).unwrap();
    assert_eq!((&*launch.id, launch.run, launch.name.as_deref()), ("a1b2c3d", 2, Some("web")));
    assert_eq!(launch.argv, ["sh", "-c", "exit 7"].map(|word| Bytes::from(&word)));
    assert_eq!(
        (launch.cwd.display(), launch.umask, launch.output_offset),
        ("/srv/app".to_owned(), 0o022, 64)
    );
    assert_eq!((launch.stop_signal, launch.grace_ms, launch.timeout_ms), (15, 10_000, None));
    assert_eq!((launch.labels["env"].as_str(), launch.labels.len()), ("prod", 2));
    assert_eq!((launch.stdin, launch.on_owner_exit, launch.adopted), (Stdin::Null, OnOwnerExit::Reap, false));
    assert_eq!(launch.options.max_output, Some(1 << 30));
    let identity = &launch.identity;
    assert_eq!((identity.pid, identity.pgid, identity.sid, identity.start_time), (1311, 1311, 1311, 90800));
    assert_eq!(identity.pidfd_inode, Some(3933));
    assert_eq!(identity.place.boot_id, "5e1f0a4c-1b7d-4c3e-9f0a-2d6b8c4e7a91");
    assert_eq!((identity.place.pid_ns, identity.place.time_ns), (4026531836, 4026531834));
    assert_eq!((&*identity.place.host, identity.place.machine_id.len()), ("vintage", 32));
    assert_eq!(launch.supervisor, ProcessId { pid: 1310, start_time: 90800 });
}

#[test]
fn format_1_exit_sidecar() {
    let raw = fixture("exit.json");
    let outcome = Sidecar::parse(&raw).counting(true).unwrap();
    assert_eq!(
        (outcome.state, outcome.exit_code, outcome.signal, outcome.cause),
        (End::Exited, Some(7), None, None)
    );
    assert_eq!((outcome.executed, outcome.core_dumped, outcome.lingering), (Some(true), false, false));
    assert_eq!(
        (outcome.duration_ms, outcome.max_rss_bytes, outcome.cpu_ms),
        (Some(20), Some(4112384), Some(2))
    );
    let unended = Sidecar::parse(raw.strip_suffix(b"\n").unwrap());
    assert_eq!((unended.clone().counting(true), unended.counting(false)), (None, Some(outcome)));
}

#[test]
fn format_1_ledger() {
    let book = parse(&fixture("ledger.jsonl"));
    assert_eq!((book.damage.clone(), book.last_seq, book.newer), (vec![], 33, false));
    let ids: Vec<&str> = book.jobs.iter().map(|entry| &*entry.launch.id).collect();
    assert_eq!(ids, ["f0l1d2e", "a1b2c3d", "l1n2g3r", "x1y2z3w", "o1r2p3h", "i1n2t3r"]);
    assert!(book.forgotten.contains("p1r2u3n"));
    let end = |id: &str| book.job(id).unwrap().outcome.clone().unwrap();
    let status = |id: &str| (end(id).state, end(id).cause, end(id).exit_code, end(id).signal);
    assert_eq!(status("f0l1d2e"), (End::Exited, None, Some(0), None));
    assert_eq!(status("a1b2c3d"), (End::Exited, None, Some(7), None));
    assert_eq!(status("x1y2z3w"), (End::Failed, Some(Cause::NotFound), None, None));
    assert_eq!(status("i1n2t3r"), (End::Interrupted, Some(Cause::SupervisorLost), None, None));
    assert_eq!(book.job("a1b2c3d").unwrap().launch.run, 2);
    let lingered = book.job("l1n2g3r").unwrap();
    assert!(end("l1n2g3r").lingering && lingered.emptied);
    assert_eq!(lingered.launch.owner, Some(ProcessId { pid: 1000, start_time: 500 }));
    assert_eq!(lingered.launch.on_owner_exit, OnOwnerExit::Stop);
    let orphan = book.job("o1r2p3h").unwrap();
    assert!(orphan.outcome.is_none() && orphan.launch.adopted && orphan.launch.supervisor.pid == 1650);
    assert_eq!(orphan.launch.options.on_exit, Some(Bytes::from(&"echo done")));
    assert_eq!(orphan.launch.options.secret_env, ["TOKEN"]);
    let failed = &book.job("x1y2z3w").unwrap().launch;
    assert_eq!(
        failed.argv.iter().map(|word| word.0.clone()).collect::<Vec<_>>(),
        [b"nosuch".to_vec(), "caf\u{e9}".as_bytes().to_vec(), b"a\xff".to_vec()]
    );
    assert_eq!(failed.stdin, Stdin::File(Bytes::from(&"/srv/app/in")));
}

/// The same through the program, which may also write on.
#[test]
fn format_1_state_directory() {
    let env = TestEnv::new();
    env.prepare();
    fs::write(env.ledger(), fixture("ledger.jsonl")).unwrap();
    fs::create_dir(env.state().join("jobs/a1b2c3d")).unwrap();
    fs::create_dir(env.run_dir("a1b2c3d", 2)).unwrap();
    fs::write(env.run_dir("a1b2c3d", 2).join("launch.json"), fixture("launch.json")).unwrap();
    fs::write(env.run_dir("a1b2c3d", 2).join("exit.json"), fixture("exit.json")).unwrap();
    let jobs = env.json(["ls", "-a"]);
    let rows: Vec<_> =
        jobs.as_array().unwrap().iter().map(|job| json!([job["id"], job["state"], job["cause"]])).collect();
    assert_eq!(
        rows,
        [
            json!(["f0l1d2e", "exited", null]),
            json!(["a1b2c3d", "exited", null]),
            json!(["l1n2g3r", "exited", null]),
            json!(["x1y2z3w", "failed", "not-found"]),
            // Nobody had told its end, and the boot was another.
            json!(["o1r2p3h", "interrupted", "reboot"]),
            json!(["i1n2t3r", "interrupted", "supervisor-lost"]),
        ]
    );
    env.outlive(["wait", "web"]).ended(7);
    env.outlive(["wait", "nightly"]).ended(0);
    env.outlive(["wait", "x1y2z3w"]).ended(127);
    env.outlive(["wait", "o1r2p3h"]).ended(122);
    env.outlive(["show", "p1r2u3n"]).refused(1, "no job");
    let id = env.run(["sh", "-c", "exit 3"]);
    env.outlive(["wait", &id]).ended(3);
    env.outlive(["prune"]).ok();
    assert_eq!(env.json(["ls", "-a"]), json!([]));
    let newest = env.records().iter().filter_map(|record| record["seq"].as_u64()).max();
    assert!(newest > Some(33), "numbers go on where they were");
}
