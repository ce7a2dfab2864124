//! The readers by themselves: whatever the bytes are, nobody panics, and what was whole is still read.

#[path = "../../fuzz/checks"]
mod fuzz {
    pub(super) mod identity;
    pub(super) mod ledger;
    pub(super) mod sidecars;
}

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use outlive::control::Request;
use outlive::environment::decode_env;
use outlive::job::{Launch, Outcome, is_id};
use outlive::ledger::{self, Book, fold, parse};
use outlive::store::{Sidecar, parse_launch};
use outlive::sys::proc::parse_stat;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

const LEDGER: &[u8] = include_bytes!("../fixtures/v1/ledger.jsonl");
const LAUNCH: &[u8] = include_bytes!("../fixtures/v1/launch.json");
const EXIT: &[u8] = include_bytes!("../fixtures/v1/exit.json");
const STAT: &[u8] = b"7 (a) R 1 (b)) S 3 4 5 0 -1 0 1 2 3 4 10 20 0 0 20 0 2 0 77 99 5 0 0 0 0";

pub(crate) fn bounded(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// The files of the corpus, by name.
pub(crate) fn corpus(kind: &str) -> Vec<(String, Vec<u8>)> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/corpus").join(kind);
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .flatten()
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    assert!(files.len() > 5, "the corpus of {kind} is there");
    files
}

/// All readers at once.
fn read_as_everything(raw: &[u8]) {
    let book = parse(raw);
    assert!(book.jobs.iter().all(|entry| is_id(&entry.launch.id)));
    fold(raw, &book, u64::MAX, &HashSet::new());
    let _ = Sidecar::parse(raw);
    let _ = parse_launch(raw);
    let _ = decode_env(raw);
    let _ = parse_stat(raw);
    let _ = Request::decode(&String::from_utf8_lossy(raw), 1);
}

/// What a reader keeps of a ledger.
fn seen(book: &Book) -> BTreeMap<String, (Launch, Option<Outcome>, bool)> {
    let one = |entry: &ledger::Entry| {
        (entry.launch.id.clone(), ((*entry.launch).clone(), entry.outcome.clone(), entry.emptied))
    };
    book.jobs.iter().map(one).collect()
}

/// One change that a bad disk, a crash or a hand may make.
#[derive(Clone, Debug)]
pub(crate) enum Harm {
    Flip(Index, u8),
    Cut(Index),
    Drop(Index, usize),
    Zero(Index, usize),
    Insert(Index, Vec<u8>),
    Repeat(Index, usize),
}

pub(crate) fn harm() -> impl Strategy<Value = Harm> {
    let at = any::<Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Harm::Flip(at, byte)),
        at().prop_map(Harm::Cut),
        (at(), 1..200_usize).prop_map(|(at, length)| Harm::Drop(at, length)),
        (at(), 1..600_usize).prop_map(|(at, length)| Harm::Zero(at, length)),
        (at(), prop::collection::vec(any::<u8>(), 1..40)).prop_map(|(at, bytes)| Harm::Insert(at, bytes)),
        (at(), 1..400_usize).prop_map(|(at, length)| Harm::Repeat(at, length)),
    ]
}

pub(crate) fn harmed(raw: &[u8], harms: &[Harm]) -> Vec<u8> {
    harms.iter().fold(raw.to_vec(), |mut raw, harm| {
        if raw.is_empty() {
            return raw;
        }
        let size = raw.len();
        let span = |at: &Index, length: usize| at.index(size)..(at.index(size) + length).min(size);
        match harm {
            Harm::Flip(at, byte) => raw[at.index(size)] ^= byte,
            Harm::Cut(at) => raw.truncate(at.index(size)),
            Harm::Drop(at, length) => drop(raw.drain(span(at, *length))),
            Harm::Zero(at, length) => raw[span(at, *length)].fill(0),
            Harm::Insert(at, bytes) => {
                drop(raw.splice(at.index(size)..at.index(size), bytes.iter().copied()))
            }
            Harm::Repeat(at, length) => {
                let again = raw[span(at, *length)].to_vec();
                raw.splice(at.index(size)..at.index(size), again);
            }
        }
        raw
    })
}

/// Lines as nobody writes them, without line ends.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>().prop_filter("no line end", |&byte| byte != b'\n'), 1..60),
        Just(b"{\"bad".to_vec()),
        Just(vec![0; 100]),
        Just(b"{\"v\":1,\"seq\":3,\"id\":\"a1a1a1a\",\"run\":1,\"kind\":\"launched\"}".to_vec()),
        Just(b"{\"v\":1,\"seq\":3,\"id\":\"a1a1a1a\",\"run\":1,\"kind\":\"exited\"}".to_vec()),
        Just(b"{\"v\":1,\"seq\":3,\"kind\":\"from-the-future\",\"id\":\"a1a1a1a\"}".to_vec()),
    ]
}

/// A record of one of four jobs; some make no sense where they stand, as in a ledger that has lost lines.
pub(crate) fn record() -> impl Strategy<Value = Value> {
    let id = prop::sample::select(vec!["a1a1a1a", "b1b1b1b", "c1c1c1c", "d1d1d1d"]);
    let kinds = vec![
        "launched",
        "launched",
        "exited",
        "exited",
        "interrupted",
        "adopted",
        "emptied",
        "pruned",
        "paused",
        "restarted",
        "from-the-future",
    ];
    (id, 1..4_u32, prop::sample::select(kinds), any::<bool>()).prop_map(|(id, run, kind, lingering)| {
        let mut record = json!({"v": 1, "id": id, "run": run, "kind": kind, "at": "2020-01-01T00:00:00.000Z"});
        let more = match kind {
            "launched" | "adopted" => json!({
                "argv": ["true", kind], "cwd": "/", "output": "/o", "owner": {"pid": 1, "start_time": 9}, "supervisor": {"pid": 4, "start_time": 8},
                "identity": {"pid": 5, "pgid": 5, "sid": 5, "start_time": 9, "place": {"boot_id": "b", "pid_ns": 4}},
            }),
            "exited" | "interrupted" => json!({"state": kind, "exit_code": run, "lingering": lingering}),
            _ => json!({}),
        };
        for (key, value) in more.as_object().unwrap() {
            record[key] = value.clone();
        }
        record
    })
}

pub(crate) fn line(mut record: Value, seq: usize) -> Vec<u8> {
    record["seq"] = seq.into();
    record.to_string().into_bytes()
}

/// Lines that no reader takes in, in order.
fn unread(raw: &[u8]) -> Vec<Vec<u8>> {
    let bad = |line: &&[u8]| !parse(&[*line, b"\n"].concat()).damage.is_empty();
    ledger::lines(raw).filter(bad).map(<[u8]>::to_vec).collect()
}

proptest! {
    #![proptest_config(bounded(400))]

    #[test]
    fn no_reader_panics_at_any_bytes(raw in prop::collection::vec(any::<u8>(), 0..600)) {
        read_as_everything(&raw);
    }

    #[test]
    fn no_reader_panics_at_damaged_files(harms in prop::collection::vec(harm(), 1..5)) {
        for raw in [LEDGER, LAUNCH, EXIT, STAT, b"1 stop 15 10000 stop\n", b"A=1\0B=2\0\0"] {
            let raw = harmed(raw, &harms);
            read_as_everything(&raw);
            fuzz::ledger::check(&raw);
            fuzz::sidecars::check(&raw);
            fuzz::identity::check(&raw);
        }
    }

    /// Whatever stands between them, and however the last line is torn: whole records are read as if alone.
    #[test]
    fn noise_between_lines_costs_no_record(
        lines in prop::collection::vec((record(), prop::option::of(noise())), 1..20),
        torn in prop::option::of(any::<Index>()),
    ) {
        let (mut alone, mut noisy) = (Vec::new(), Vec::new());
        for (at, (record, noise)) in lines.into_iter().enumerate() {
            let line = line(record, at + 1);
            for bytes in [Some(line.clone()), noise.clone()].into_iter().flatten() {
                noisy.extend([&bytes[..], b"\n"].concat());
            }
            alone.extend([&line[..], b"\n"].concat());
            if let Some(noise) = noise {
                prop_assert!(seen(&parse(&noise)).is_empty());
            }
        }
        if let Some(at) = torn {
            noisy.extend(&LAUNCH[..at.index(LAUNCH.len() - 1)]);
        }
        prop_assert_eq!(seen(&parse(&noisy)), seen(&parse(&alone)));
        prop_assert_eq!(parse(&noisy).damage.is_empty(), unread(&noisy).is_empty());
    }

    /// A ledger that ends anywhere is read as far as its lines are whole.
    #[test]
    fn a_cut_ledger_is_read_to_its_last_whole_line(at in any::<Index>()) {
        let at = at.index(LEDGER.len());
        let cut = &LEDGER[..at];
        let whole = cut.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        // Only its end is missing: the record is whole.
        let whole = if LEDGER[at] == b'\n' { at } else { whole };
        prop_assert_eq!(seen(&parse(cut)), seen(&parse(&LEDGER[..whole])));
    }

    #[test]
    fn folding_changes_nothing_and_loses_nothing(
        lines in prop::collection::vec((record(), prop::option::of(noise())), 1..25),
        keep_after in 0..30_u64,
        files in any::<bool>(),
    ) {
        let mut raw = Vec::new();
        for (at, (record, noise)) in lines.into_iter().enumerate() {
            raw.extend([&line(record, at + 1)[..], b"\n"].concat());
            raw.extend(noise.map(|noise| [&noise[..], b"\n"].concat()).unwrap_or_default());
        }
        let before = parse(&raw);
        let left: HashSet<&str> = before.forgotten.iter().map(String::as_str).filter(|_| files).collect();
        let folded = fold(&raw, &before, keep_after, &left);
        let after = parse(&folded);
        prop_assert_eq!(seen(&after), seen(&before));
        prop_assert_eq!(after.last_seq, before.last_seq);
        prop_assert_eq!(unread(&folded), unread(&raw));
        prop_assert_eq!(fold(&folded, &after, keep_after, &left), folded.clone());
        for line in ledger::lines(&raw) {
            let head: Value = serde_json::from_slice(line).unwrap_or_default();
            let must_stay = head["kind"] == "from-the-future" || head["seq"].as_u64() > Some(keep_after);
            if must_stay {
                prop_assert!(ledger::lines(&folded).any(|kept| kept == line), "{}", head);
            }
        }
        if files {
            for id in ["a1a1a1a", "b1b1b1b", "c1c1c1c", "d1d1d1d"] {
                prop_assert_eq!(after.forgotten.contains(id), before.forgotten.contains(id), "files of a pruned job are no job");
            }
        }
    }

    /// Damage in the middle of a ledger: its compaction keeps every line that cannot be read.
    #[test]
    fn folding_a_damaged_ledger_keeps_what_cannot_be_read(harms in prop::collection::vec(harm(), 1..4)) {
        let raw = harmed(LEDGER, &harms);
        let before = parse(&raw);
        prop_assume!(!before.newer);
        let folded = fold(&raw, &before, u64::MAX, &HashSet::new());
        prop_assert_eq!(unread(&folded), unread(&raw));
        prop_assert_eq!(seen(&parse(&folded)), seen(&before));
    }

    /// Half an outcome is none, and neither is a whole one with anything behind it.
    #[test]
    fn half_a_sidecar_is_no_exit(at in any::<Index>(), behind in prop::collection::vec(any::<u8>(), 1..20)) {
        let whole = EXIT.strip_suffix(b"\n").unwrap();
        prop_assert_eq!(Sidecar::parse(&whole[..at.index(whole.len())]).outcome, None);
        prop_assume!(!behind.iter().all(|&byte| byte == 0 || byte.is_ascii_whitespace()));
        prop_assert_eq!(Sidecar::parse(&[whole, &behind].concat()).outcome, None);
    }

    /// A request survives the way, and none is made of noise for another run.
    #[test]
    fn a_request_is_read_by_its_run_only(text in "[ -~]{0,40}", run in 1..9_u32) {
        if let Some(request) = Request::decode(&text, run) {
            prop_assert_eq!(Request::decode(&request.encode(run), run), Some(request));
            prop_assert_eq!(Request::decode(&text, run + 1), None);
            prop_assert!(request.encode(run).len() < 4096);
        }
    }
}

/// The corpus, through everybody and through what the fuzz targets check.
#[test]
fn no_reader_panics_at_the_corpus() {
    // What a fuzzer has found to lead far into the readers has the names it gave.
    let found = ["fuzz-ledger", "fuzz-sidecars", "fuzz-identity"];
    let kinds = ["ledger", "exit", "launch", "identity"].into_iter().chain(found);
    let files = kinds.flat_map(corpus).map(|(_, raw)| raw);
    for raw in files.chain([LEDGER, LAUNCH, EXIT, STAT].map(<[u8]>::to_vec)) {
        read_as_everything(&raw);
        fuzz::ledger::check(&raw);
        fuzz::sidecars::check(&raw);
        fuzz::identity::check(&raw);
    }
}

#[test]
fn nothing_in_the_corpus_of_sidecars_is_an_exit() {
    for (name, raw) in corpus("exit") {
        assert_eq!(Sidecar::parse(&raw[..raw.len().min(4096)]).outcome, None, "{name}");
    }
}
