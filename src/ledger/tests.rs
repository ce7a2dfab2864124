use serde_json::Value;

use super::book::read_from;
use super::*;
use crate::job::{Cause, End, Identity, Launch, Outcome, ProcessId};

fn launch(id: &str, run: u32) -> Launch {
    Launch {
        id: id.to_owned(),
        run,
        at: "2020-01-01T00:00:00.000Z".to_owned(),
        boottime_ms: 1,
        name: None,
        argv: vec![(&"true").into()],
        cwd: (&"/").into(),
        umask: 0o022,
        labels: Default::default(),
        stdin: Default::default(),
        output: (&"/o").into(),
        output_offset: 0,
        stderr: None,
        owner: None,
        on_owner_exit: Default::default(),
        timeout_ms: None,
        stop_signal: 15,
        grace_ms: 1,
        options: Default::default(),
        identity: Identity { pid: 5, pgid: 5, sid: 5, start_time: 9, ..Default::default() },
        supervisor: ProcessId { pid: 4, start_time: 8 },
        adopted: false,
    }
}

fn outcome() -> Outcome {
    Outcome { exit_code: Some(7), ..Outcome::bare(End::Exited, None, "2020-01-01T00:00:01.000Z".to_owned()) }
}

#[test]
fn of_what_a_full_disk_took_whole_lines_stay() {
    let of = |taken| whole_lines(b"\nab\ncd\n", taken);
    assert_eq!([0, 1, 2, 3, 4, 6, 7, 99].map(of), [0, 1, 1, 1, 4, 4, 7, 7]);
}

fn text(records: &[(u64, Record)]) -> Vec<u8> {
    records.iter().flat_map(|(seq, record)| record.line(*seq).unwrap()).collect()
}

fn launched(id: &str, run: u32) -> Record {
    Record::Launched(Box::new(launch(id, run)))
}

fn ended(id: &str, run: u32) -> Record {
    Record::Ended { id: id.to_owned(), run, outcome: outcome() }
}

fn pruned(id: &str) -> Record {
    Record::Note { kind: "pruned", id: id.to_owned(), run: 1, at: String::new(), detail: None }
}

#[test]
fn an_end_belongs_to_its_run_only() {
    let book =
        parse(&text(&[(1, launched("a1a1a1a", 1)), (2, launched("a1a1a1a", 2)), (3, ended("a1a1a1a", 1))]));
    assert_eq!((book.jobs.len(), book.last_seq), (1, 3));
    assert!(book.job("a1a1a1a").unwrap().outcome.is_none());
    assert_eq!(book.job("a1a1a1a").unwrap().launch.run, 2);
}

#[test]
fn what_cannot_be_read_is_reported_and_the_rest_is_kept() {
    let mut raw = text(&[(1, launched("a1a1a1a", 1))]);
    raw.extend(b"{\"bad\n\0\0\0\n{\"v\":1,\"seq\":9,\"id\":\"x\",\"kind\":\"from-the-future\"}\n");
    raw.extend(text(&[(10, launched("b1a1a1a", 1))]));
    raw.extend(b"{\"v\":1,\"seq\":11,\"kind\":\"laun");
    let book = parse(&raw);
    assert_eq!((book.jobs.len(), book.last_seq), (2, 10));
    assert_eq!(book.damage, ["its last line is torn", "2 lines cannot be read"]);
}

#[test]
fn a_ledger_reads_the_same_in_blocks_of_any_size() {
    let mut raw = text(&[(1, launched("a1a1a1a", 1)), (2, ended("a1a1a1a", 1))]);
    raw.extend(b"{\"bad\n\n");
    raw.extend(text(&[(3, launched("b1a1a1a", 1)), (5, launched("c1a1a1a", 1))]));
    let shown = |book: &Book| {
        let jobs: Vec<_> =
            book.jobs.iter().map(|job| (&job.launch.id, &job.outcome, job.ended_seq)).collect();
        format!("{jobs:?} {:?} {} {} {}", book.damage, book.last_seq, book.incomplete, book.lines)
    };
    for end in ["", "{\"v\":1,\"seq\":6,\"kind\":\"laun", "{\"v\":1,\"seq\":6,\"kind\":\"noted\"}"] {
        let raw = [&raw, end.as_bytes()].concat();
        let whole = parse(&raw);
        assert_eq!((whole.lines, whole.torn), (5 + usize::from(!end.is_empty()), !end.is_empty()));
        for length in 0..raw.len() as u64 {
            let book = read_from(&raw[..], length).unwrap();
            assert_eq!((shown(&book), book.torn), (shown(&whole), whole.torn), "in blocks of {}", length + 1);
        }
    }
}

#[test]
fn a_newer_format_is_noticed() {
    let book = parse(b"{\"v\":2,\"seq\":1,\"id\":\"x\",\"kind\":\"launched\"}\n");
    assert!(book.newer && !book.damage.is_empty());
}

#[test]
fn pruned_jobs_are_gone_and_the_others_keep_their_place() {
    let book = parse(&text(&[
        (1, launched("a1a1a1a", 1)),
        (2, launched("b1a1a1a", 1)),
        (3, ended("a1a1a1a", 1)),
        (4, pruned("a1a1a1a")),
        (5, ended("b1a1a1a", 1)),
    ]));
    assert_eq!(book.jobs.len(), 1);
    assert!(book.job("a1a1a1a").is_none() && book.job("b1a1a1a").unwrap().outcome.is_some());
}

#[test]
fn folding_changes_nothing_that_a_reader_sees() {
    let mut raw = text(&[
        (1, launched("a1a1a1a", 1)),
        (2, launched("b1a1a1a", 1)),
        (3, ended("a1a1a1a", 1)),
        (4, launched("c1a1a1a", 1)),
        (5, ended("c1a1a1a", 1)),
        (6, pruned("c1a1a1a")),
    ]);
    raw.extend(b"{\"bad\n");
    let before = parse(&raw);
    let folded = fold(&raw, &before, u64::MAX, &HashSet::new());
    let after = parse(&folded);
    assert_eq!(after.last_seq, 6);
    assert_eq!(after.job("a1a1a1a").unwrap().outcome, Some(outcome()));
    assert_eq!(after.job("a1a1a1a").unwrap().launch.as_ref(), &launch("a1a1a1a", 1));
    assert!(after.job("b1a1a1a").unwrap().outcome.is_none() && after.job("c1a1a1a").is_none());
    assert_eq!(after.damage, before.damage);
    assert_eq!(lines(&folded).count(), 4, "a header, one folded job, one live one, the bad line");
    assert_eq!(fold(&folded, &after, u64::MAX, &HashSet::new()), folded, "folding twice is folding once");
}

#[test]
fn lines_a_reader_has_not_seen_are_carried_over() {
    let raw = text(&[
        (1, launched("a1a1a1a", 1)),
        (2, ended("a1a1a1a", 1)),
        (3, launched("b1a1a1a", 1)),
        (4, ended("b1a1a1a", 1)),
    ]);
    let folded = fold(&raw, &parse(&raw), 3, &HashSet::new());
    let kept = String::from_utf8(folded).unwrap();
    assert!(
        kept.contains("\"seq\":4,\"kind\":\"exited\"") && kept.contains("\"seq\":2,\"kind\":\"folded\""),
        "{kept}"
    );
}

#[test]
fn an_interrupted_end_has_its_own_kind() {
    let outcome = Outcome::bare(End::Interrupted, Some(Cause::Reboot), String::new());
    let line = Record::Ended { id: "a1a1a1a".to_owned(), run: 1, outcome }.line(3).unwrap();
    let head: Head = serde_json::from_slice(&line).unwrap();
    assert_eq!((&*head.kind, head.seq), ("interrupted", 3));
}

#[test]
fn a_line_that_comes_after_the_end_does_not_keep_a_job_from_being_folded() {
    for kind in ["on-exit", "from-the-future"] {
        let mut raw = text(&[(1, launched("a1a1a1a", 1)), (2, ended("a1a1a1a", 1))]);
        raw.extend(
            format!("{{\"v\":1,\"seq\":3,\"id\":\"a1a1a1a\",\"run\":1,\"kind\":\"{kind}\"}}\n").into_bytes(),
        );
        let folded = fold(&raw, &parse(&raw), u64::MAX, &HashSet::new());
        let after = parse(&folded);
        assert_eq!(after.job("a1a1a1a").map(|entry| &entry.outcome), Some(&Some(outcome())), "{kind}");
        assert_eq!(after.last_seq, 3, "{kind}");
        assert_eq!(fold(&folded, &after, u64::MAX, &HashSet::new()), folded, "{kind}");
    }
}

#[test]
fn folding_loses_nothing_that_it_cannot_read_or_does_not_know() {
    let mut raw = text(&[(1, launched("a1a1a1a", 1)), (2, ended("a1a1a1a", 1)), (3, ended("b1a1a1a", 1))]);
    // Read as far as its head, but no launch: its job may still have files, and its end stands beside it.
    raw.extend(b"{\"v\":1,\"seq\":4,\"id\":\"b1a1a1a\",\"run\":1,\"kind\":\"launched\"}\n");
    let folded = fold(&raw, &parse(&raw), u64::MAX, &HashSet::new());
    assert_eq!(lines(&folded).count(), 4, "{}", String::from_utf8_lossy(&folded));
    assert_eq!(parse(&folded).damage, parse(&raw).damage);
}

#[test]
fn folding_keeps_the_fields_of_a_newer_outlive() {
    let add = |line: Vec<u8>| {
        let mut value: Value = serde_json::from_slice(&line).unwrap();
        value["future"] = "kept".into();
        format!("{value}\n").into_bytes()
    };
    let raw =
        [launched("a1a1a1a", 1).line(1).unwrap(), ended("a1a1a1a", 1).line(2).unwrap()].map(add).concat();
    let folded = fold(&raw, &parse(&raw), u64::MAX, &HashSet::new());
    let line: Value = serde_json::from_slice(lines(&folded).last().unwrap()).unwrap();
    assert_eq!((&line["launch"]["future"], &line["outcome"]["future"]), (&"kept".into(), &"kept".into()));
}

#[test]
fn an_id_that_leads_elsewhere_is_no_job() {
    for id in ["", "..", "../../etc", "a1a1a1a/../x", "/"] {
        let raw = text(&[(1, launched(id, 1)), (2, ended(id, 1))]);
        let book = parse(&raw);
        assert!(book.jobs.is_empty() && !book.damage.is_empty(), "{id:?}");
    }
}

#[test]
fn a_pruned_job_that_still_has_files_is_told_of() {
    let raw = text(&[(1, launched("a1a1a1a", 1)), (2, ended("a1a1a1a", 1)), (3, pruned("a1a1a1a"))]);
    let mut book = parse(&raw);
    assert!(book.forgotten.contains("a1a1a1a"));
    book.add(Box::new(launch("a1a1a1a", 1)));
    assert!(book.jobs.is_empty(), "what a prune has left is no job");
    assert_eq!(fold(&raw, &book, u64::MAX, &HashSet::from(["a1a1a1a"])), raw);
    assert_eq!(lines(&fold(&raw, &book, u64::MAX, &HashSet::new())).count(), 1);
}
