//! The listing that `ls --all --json` keeps says what the ledger says, or is not believed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use outlive::assess::Observer;
use outlive::ledger::{self, Entry};
use outlive::listing::{self, Listed, Listing};
use outlive::paths::StateDir;
use outlive::view::JobView;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::env::{OUTLIVE, Output, TestEnv};
use crate::readers::{bounded, harm, harmed, line, record};

const LISTING: &[u8] = include_bytes!("../fixtures/listing/1");

/// A job as a listing has to show it; what is not over has to be looked at, and is shown as it was recorded.
fn shown(entry: &Entry, observer: &Observer) -> Value {
    let over = entry.outcome.clone().filter(|_| entry.is_over());
    match over {
        Some(outcome) => {
            let job = observer.ended(entry.launch.clone(), outcome);
            serde_json::to_value(JobView::new(&job, observer)).unwrap()
        }
        None => json!({"launch": *entry.launch, "outcome": entry.outcome}),
    }
}

fn by_listing(observer: &Observer) -> Option<Vec<Value>> {
    let mut jobs = Vec::new();
    let listing = Listing::open(observer)?;
    let count = listing.jobs;
    let each = listing.each(|job| {
        jobs.push(match job {
            Listed::Over(text) => serde_json::from_slice(text).unwrap(),
            Listed::Entry(entry) => shown(entry, observer),
        });
        Ok(true)
    });
    each.unwrap();
    assert_eq!(jobs.len(), count);
    Some(jobs)
}

fn by_ledger(observer: &Observer) -> Vec<Value> {
    ledger::read(&observer.dir).unwrap().jobs.iter().map(|entry| shown(entry, observer)).collect()
}

fn observer(root: &Path) -> Observer {
    Observer::new(StateDir::trusted(root), false)
}

/// Lines of a ledger, numbered on from `begun`.
fn lines(records: &[Value], begun: usize) -> Vec<u8> {
    let one = |(at, record): (usize, &Value)| [line(record.clone(), begun + at + 1), b"\n".to_vec()].concat();
    records.iter().enumerate().flat_map(one).collect()
}

/// Whatever comes after it, and whatever happens to it.
#[test]
fn a_listing_says_what_the_ledger_says() {
    let env = TestEnv::new();
    env.prepare();
    let observer = observer(&env.state());
    let path = observer.dir.listing();
    proptest!(bounded(300), |(
        before in prop::collection::vec(record(), 0..25),
        after in prop::collection::vec(record(), 0..12),
        harms in prop::collection::vec(harm(), 0..2),
    )| {
        let begun = lines(&before, 0);
        fs::write(env.ledger(), &begun).unwrap();
        listing::keep(&observer);
        let kept = fs::read(&path).unwrap();
        prop_assert_eq!(by_listing(&observer), Some(by_ledger(&observer)), "nothing has happened since");

        fs::write(env.ledger(), [&begun[..], &lines(&after, before.len())].concat()).unwrap();
        let truth = by_ledger(&observer);
        let told = by_listing(&observer);
        prop_assert!(told.as_ref().is_none_or(|told| *told == truth), "{:?} for {:?}", told, truth);
        let kinds = ["pruned", "paused", "restarted", "from-the-future"];
        let plain = after.iter().all(|record| kinds.iter().any(|kind| record["kind"] == *kind));
        prop_assert!(told.is_some() || !plain, "nothing keeps it from being used");

        fs::write(&path, harmed(&kept, &harms)).unwrap();
        let told = by_listing(&observer);
        prop_assert!(told.is_none_or(|told| told == truth), "believed although it is harmed");
    });
}

/// Nor is it believed if the ledger that it was made of is not as it was.
#[test]
fn a_harmed_ledger_is_read_itself() {
    let env = TestEnv::new();
    env.prepare();
    let observer = observer(&env.state());
    proptest!(bounded(300), |(
        records in prop::collection::vec(record(), 1..25),
        harms in prop::collection::vec(harm(), 1..3),
    )| {
        let raw = lines(&records, 0);
        fs::write(env.ledger(), &raw).unwrap();
        listing::keep(&observer);
        let harmed = harmed(&raw, &harms);
        fs::write(env.ledger(), &harmed).unwrap();
        let as_before = harmed.starts_with(&raw);
        let told = by_listing(&observer);
        prop_assert!(as_before || told.is_none());
        prop_assert!(told.is_none_or(|told| told == by_ledger(&observer)));
    });
}

#[test]
fn nothing_is_kept_of_a_ledger_that_cannot_be_read_whole() {
    let job = |seq| lines(&[launched()], seq);
    for (raw, why) in [
        ([job(0), b"{\"bad\n".to_vec()].concat(), "a bad line"),
        ([job(0), b"{\"v\":1".to_vec()].concat(), "a torn line"),
        (job(7), "missing lines"),
    ] {
        let env = TestEnv::new();
        env.prepare();
        fs::write(env.ledger(), raw).unwrap();
        listing::keep(&observer(&env.state()));
        assert!(!env.state().join("listing").exists(), "{why}");
    }
}

fn launched() -> Value {
    json!({
        "v": 1, "id": "a1a1a1a", "run": 1, "kind": "launched", "at": "", "argv": ["true"], "cwd": "/", "output": "/o",
        "supervisor": {"pid": 4, "start_time": 8},
        "identity": {"pid": 5, "pgid": 5, "sid": 5, "start_time": 9, "place": {"boot_id": "b", "pid_ns": 4}},
    })
}

/// What a listing holds has its own version: a change of the facts without a new one would show old facts.
#[test]
fn a_listing_of_this_version_looks_so() {
    let env = TestEnv::new();
    env.prepare();
    fs::write(env.ledger(), include_bytes!("../fixtures/v1/ledger.jsonl")).unwrap();
    let observer = observer(&env.state());
    listing::keep(&observer);
    let kept = fs::read_to_string(observer.dir.listing()).unwrap();
    assert_eq!(
        kept,
        String::from_utf8_lossy(LISTING),
        "raise listing::VERSION, and keep this as tests/fixtures/listing/{}",
        listing::VERSION + 1
    );
    assert_eq!(listing::VERSION, 1, "compare with the fixture of this version");
}

/// A ledger with so many ended jobs that a listing is kept.
fn fill(env: &TestEnv) {
    let mut seq = env.records().last().unwrap()["seq"].as_u64().unwrap();
    let mut text = fs::read(env.ledger()).unwrap();
    for at in 0..400_u32 {
        let id = format!("z{}z{}z{}z", at / 100, at / 10 % 10, at % 10);
        let (mut launch, mut end) =
            (launched(), json!({"kind": "exited", "state": "exited", "exit_code": 7}));
        for record in [&mut launch, &mut end] {
            seq += 1;
            for (key, value) in [
                ("v", json!(1)),
                ("seq", json!(seq)),
                ("id", json!(id)),
                ("run", json!(1)),
                ("at", json!("")),
            ] {
                record[key] = value;
            }
            text.extend(format!("{record}\n").into_bytes());
        }
    }
    fs::write(env.ledger(), text).unwrap();
}

/// The list, without what goes on: how long a job has been running.
fn list(env: &TestEnv) -> Value {
    let mut jobs = env.json(["ls", "-a"]);
    for job in jobs.as_array_mut().unwrap() {
        if job["ended_at"].is_null() {
            job["duration_ms"] = Value::Null;
        }
    }
    jobs
}

/// Both ways at once: the listing is put back afterwards.
fn both_ways(env: &TestEnv) -> Value {
    let path = env.state().join("listing");
    let kept = fs::read(&path).unwrap();
    let told = list(env);
    fs::remove_file(&path).unwrap();
    assert_eq!(told, list(env));
    fs::write(&path, kept).unwrap();
    told
}

fn state_of<'a>(jobs: &'a Value, id: &str) -> &'a Value {
    jobs.as_array().unwrap().iter().find(|job| job["id"] == id).map_or(&Value::Null, |job| &job["state"])
}

#[test]
fn jobs_that_change_after_a_listing_was_kept_are_shown_as_they_are() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let alive = env.sleeper(&[], &mut fifo);
    let again = env.run(["--name", "again", "--", "sh", "-c", "exit 3"]);
    let gone = env.run(["true"]);
    for id in [&again, &gone] {
        env.outlive(["wait", "--group", id]);
        env.settled(id);
    }
    fill(&env);
    let first = list(&env);
    assert_eq!(first.as_array().unwrap().len(), 403);
    assert_eq!(both_ways(&env), first, "nothing has changed");
    let mode = fs::metadata(env.state().join("listing")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);

    let new = env.run(["true"]);
    env.outlive(["wait", "--group", &new]).ok();
    env.outlive(["restart", &again]).ok();
    env.outlive(["wait", "--group", &again]);
    env.outlive(["stop", &alive]).ok();
    fifo.end();
    for id in [&new, &again, &alive] {
        env.settled(id);
    }
    let jobs = both_ways(&env);
    assert_eq!([&new, &alive, &again].map(|id| state_of(&jobs, id)), ["exited", "stopped", "exited"]);
    let run = |jobs: &Value| {
        jobs.as_array().unwrap().iter().find(|job| job["id"] == *again).unwrap()["run"].clone()
    };
    assert_eq!((run(&first), run(&jobs)), (json!(1), json!(2)));

    // What a prune deletes is in no file any longer.
    env.outlive(["prune", &gone]).ok();
    assert!(!env.state().join("listing").exists());
    assert_eq!(state_of(&list(&env), &gone), &Value::Null);
}

/// The last line is the sum of the others.
fn with_right_sum(text: &str) -> String {
    let end = text.trim_end().rfind('\n').unwrap() + 1;
    format!("{}{}\n", &text[..end], crc32fast::hash(&text.as_bytes()[..end]))
}

#[test]
fn a_listing_is_used_and_one_of_another_version_is_not() {
    let env = TestEnv::new();
    let id = env.run(["true"]);
    env.outlive(["wait", "--group", &id]).ok();
    env.settled(&id);
    fill(&env);
    let truth = list(&env);
    let path = env.state().join("listing");
    let kept = fs::read_to_string(&path).unwrap();
    let forged = with_right_sum(&kept.replace("\"exit_code\":7", "\"exit_code\":8"));
    fs::write(&path, &forged).unwrap();
    let told = list(&env);
    assert_eq!(told[5]["exit_code"], 8, "made of the listing");
    for text in [
        // Without its sum; of another version; without its end.
        kept.replace("\"exit_code\":7", "\"exit_code\":8"),
        with_right_sum(&forged.replacen("{\"v\":1", "{\"v\":0", 1)),
        forged[..forged.len() / 2].to_owned(),
        String::new(),
    ] {
        fs::write(&path, text).unwrap();
        assert_eq!(list(&env), truth);
        assert_eq!(fs::read_to_string(&path).unwrap(), kept, "it is made anew");
    }
}

/// What bears the number of a job that is over is looked at each time.
#[test]
fn a_number_that_is_another_s_now_is_told_of() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let stranger = env.sleeper(&[], &mut fifo);
    let id = env.run(["true"]);
    env.outlive(["wait", "--group", &id]).ok();
    env.settled(&id);
    let of = |id: &str| env.launch_record(id, 1)["identity"].clone();
    let (old, new) = (of(&id), of(&stranger));
    let began = old["start_time"].as_u64().unwrap();
    let launch = env.run_dir(&id, 1).join("launch.json");
    for path in [&env.ledger(), &launch] {
        let text = fs::read_to_string(path).unwrap();
        let text = text.replace(&format!("\"pid\":{},", old["pid"]), &format!("\"pid\":{},", new["pid"]));
        // Both may have begun in one tick.
        let text = text.replace(&format!("\"start_time\":{began}"), &format!("\"start_time\":{}", began + 1));
        fs::write(path, text).unwrap();
    }
    fill(&env);
    let identity = |jobs: &Value| {
        jobs.as_array().unwrap().iter().find(|job| job["id"] == *id).unwrap()["identity"].clone()
    };
    assert_eq!(identity(&list(&env)), "recycled", "read from the ledger");
    assert_eq!(identity(&both_ways(&env)), "recycled");
    assert_eq!(env.json(["show", &id])["identity"], "recycled");
    env.outlive(["stop", "-t", "0", &stranger]).ok();
    fifo.end();
    assert_eq!(identity(&both_ways(&env)), "gone");
}

/// One job behind which the ledger says something that a listing cannot follow.
#[test]
fn a_second_launch_of_a_run_that_was_over_is_as_the_ledger_has_it() {
    let env = TestEnv::new();
    env.prepare();
    let observer = observer(&env.state());
    let ended = json!({"v": 1, "id": "a1a1a1a", "run": 1, "kind": "exited", "at": "", "state": "exited", "exit_code": 7});
    let begun = lines(&[launched(), ended], 0);
    fs::write(env.ledger(), &begun).unwrap();
    listing::keep(&observer);
    fs::write(env.ledger(), [&begun[..], &lines(&[launched()], 2)].concat()).unwrap();
    assert_eq!(by_ledger(&observer)[0]["exit_code"], 7);
    assert_eq!(by_listing(&observer), None);
}

#[test]
fn a_filter_finds_the_same_jobs_with_a_listing() {
    let env = TestEnv::new();
    let id = env.run(["-l", "a=b", "--", "sh", "-c", "exit 3"]);
    env.outlive(["wait", "--group", &id]).ended(3);
    env.settled(&id);
    fill(&env);
    assert_eq!(list(&env).as_array().unwrap().len(), 401);
    for words in [&[&*id][..], &["--label", "a=b"], &["--state", "failed"], &["--owner", "77"]] {
        let jobs = env.json([&["ls", "-a"], words].concat());
        let ids: Vec<&str> = jobs.as_array().unwrap().iter().filter_map(|job| job["id"].as_str()).collect();
        let found = words[0] == id || words[0] == "--label";
        assert_eq!(ids, if found { vec![&*id] } else { vec![] }, "{words:?}");
    }
}

/// As a crash without flushes, or a hand, leaves it.
#[test]
fn a_ledger_that_lost_its_end_after_a_listing_was_made_is_called_damaged() {
    let env = TestEnv::new();
    let first = env.run(["true"]);
    env.outlive(["wait", "--group", &first]).ok();
    env.settled(&first);
    fill(&env);
    list(&env);
    assert!(env.state().join("listing").exists());
    let length = fs::metadata(env.ledger()).unwrap().len();
    let lost = env.run(["true"]);
    env.outlive(["wait", "--group", &lost]).ok();
    env.settled(&lost);
    fs::File::options().write(true).open(env.ledger()).unwrap().set_len(length).unwrap();
    let told = env.outlive(["ls", "-a", "--json"]).ok();
    assert!(told.stderr.contains("ends at record"), "{}", told.stderr);
    assert_eq!(state_of(&told.json(), &lost), "exited", "found by its files");
    // What belongs to a newer outlive is not touched.
    let kept = fs::read(env.state().join("listing")).unwrap();
    fs::write(env.state().join("ledger.lock"), "  9 1 1 1 1\n").unwrap();
    list(&env);
    assert_eq!(fs::read(env.state().join("listing")).unwrap(), kept);
}

/// What cannot be taken back must not seem to be all.
#[test]
fn a_listing_that_shrinks_while_it_is_read_is_an_error() {
    let env = TestEnv::new();
    env.prepare();
    let observer = observer(&env.state());
    let ended = json!({"v": 1, "id": "a1a1a1a", "run": 1, "kind": "exited", "at": "", "state": "exited", "exit_code": 7});
    fs::write(env.ledger(), lines(&[launched(), ended], 0)).unwrap();
    listing::keep(&observer);
    let listing = Listing::open(&observer).unwrap();
    fs::File::options().write(true).open(observer.dir.listing()).unwrap().set_len(0).unwrap();
    assert!(listing.each(|_| Ok(true)).unwrap_err().to_string().contains("changed while it was read"));
    // Nor is anything huge read into memory.
    fs::File::options().write(true).open(observer.dir.listing()).unwrap().set_len(1 << 40).unwrap();
    assert!(Listing::open(&observer).is_none());
}

/// Before it is printed: the reader may go away.
#[test]
fn what_nobody_saw_end_is_recorded_before_the_list_is_printed() {
    let env = TestEnv::new();
    let mut fifo = env.fifo("life");
    let lost = env.sleeper(&[], &mut fifo);
    fill(&env);
    list(&env);
    let leader = env.leader(&lost);
    env.kill_supervisor(&lost);
    leader.kill();
    fifo.end();
    let mut list = env.program(OUTLIVE);
    let mut list = list.args(["ls", "-a", "--json"]).spawn().unwrap();
    drop(list.stdout.take());
    list.wait().unwrap();
    let ends = env
        .records()
        .iter()
        .filter(|record| record["id"] == *lost && record["kind"] == "interrupted")
        .count();
    assert_eq!(ends, 1);
}

/// Whatever is in its place, and if there is no room for it.
#[test]
fn a_listing_that_cannot_be_kept_does_no_harm() {
    let env = TestEnv::new();
    let id = env.run(["true"]);
    env.outlive(["wait", "--group", &id]).ok();
    env.settled(&id);
    fill(&env);
    let truth = list(&env);
    let path = env.state().join("listing");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(list(&env), truth);
    fs::remove_dir(&path).unwrap();
    let victim = env.home().join("victim");
    fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, &path).unwrap();
    assert_eq!(list(&env), truth);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    fs::remove_file(&path).unwrap();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(list(&env), truth);
    // No file may grow to the size of one.
    fs::remove_file(&path).unwrap();
    let mut limited = env.program("bash");
    let limited = Output::of(limited.args(["-c", "ulimit -f 4; exec \"$0\" ls -a --json", OUTLIVE])).ok();
    assert_eq!(limited.json().as_array().unwrap().len(), truth.as_array().unwrap().len());
    assert!(!path.exists(), "half of one is not left behind");
    assert_eq!(list(&env), truth);
}
