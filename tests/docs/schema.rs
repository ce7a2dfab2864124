//! docs/schema: what the program prints and records is what the schemas say, and nothing else.
//!
//! A published schema takes what may come: fields that are not in it (`"unevaluatedProperties": true`) and words that
//! are not among its `examples`. A strict one, made of it here, takes neither: whatever this version prints is in it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::Command;

use jsonschema::{Registry, Validator};
use serde_json::{Value, json};

use crate::json::examples;
use crate::scratch::Scratch;

const BASE: &str = "json-schema:///";

/// The schemas by the names of their files, ready to validate.
struct Schemas(BTreeMap<String, Validator>);

impl Schemas {
    fn published() -> Self {
        Self::with(|_| {})
    }

    fn strict() -> Self {
        Self::with(restrict)
    }

    fn with(change: fn(&mut Value)) -> Self {
        let mut all = files();
        all.values_mut().for_each(change);
        let uri = |name: &String| format!("{BASE}{name}");
        let mut registry = Registry::new();
        for (name, schema) in &all {
            registry = registry.add(uri(name), schema).unwrap();
        }
        let registry = registry.prepare().unwrap();
        let build = |(name, schema): (&String, &Value)| {
            let options = jsonschema::options().with_registry(&registry).with_base_uri(uri(name));
            (name.clone(), options.build(schema).unwrap_or_else(|error| panic!("{name}: {error}")))
        };
        Self(all.iter().map(build).collect())
    }

    fn errors(&self, schema: &str, value: &Value) -> Vec<String> {
        let told = |error: jsonschema::ValidationError| format!("{}: {error}", error.instance_path());
        self.0[schema].iter_errors(value).map(told).collect()
    }
}

pub(crate) fn files() -> BTreeMap<String, Value> {
    let entries = std::fs::read_dir(crate::path("docs/schema")).unwrap().map(Result::unwrap);
    let read = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, value)
    };
    entries.map(read).collect()
}

fn restrict(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(open) = map.get_mut("unevaluatedProperties") {
                assert_eq!(open, true, "a published schema takes fields that are not in it");
                *open = false.into();
            }
            if let Some(words) = map.remove("examples") {
                map.insert("enum".into(), words);
            }
            map.values_mut().for_each(restrict);
        }
        Value::Array(values) => values.iter_mut().for_each(restrict),
        _ => {}
    }
}

/// A document, and the schema it has to fit.
type Document = (&'static str, Value);

/// Scenes in a state directory, and all that was printed and recorded meanwhile.
struct Gathered<'a> {
    scratch: &'a Scratch,
    documents: Vec<Document>,
}

impl<'a> Gathered<'a> {
    fn new(scratch: &'a Scratch) -> Self {
        Self { scratch, documents: Vec::new() }
    }

    /// Runs a command and keeps what it prints; returns that.
    fn call(&mut self, schema: &'static str, words: &[&str]) -> Value {
        let text = self.scratch.outlive(words);
        assert_eq!(text.lines().count(), 1, "{words:?}: {text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        self.documents.push((schema, value.clone()));
        value
    }

    fn launch(&mut self, words: &[&str]) -> String {
        let job = self.call("job.json", &[&["run", "--json"], words].concat());
        job["id"].as_str().unwrap().to_owned()
    }

    fn show(&mut self, job: &str) -> Value {
        self.call("show.json", &["show", "--json", job])
    }

    /// Keeps the records as they are now.
    fn read_records(&mut self) {
        for words in [&["events"][..], &["events", "--ends"]] {
            let events = self.scratch.outlive(words);
            self.documents
                .extend(events.lines().map(|line| ("event.json", serde_json::from_str(line).unwrap())));
        }
        let state_dir = self.scratch.state_dir();
        let ledger = std::fs::read_to_string(state_dir.join("ledger.jsonl")).unwrap();
        self.documents
            .extend(ledger.lines().map(|line| ("ledger.json", serde_json::from_str(line).unwrap())));
        let below =
            |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        for run in below(&state_dir.join("jobs")).flat_map(|job| below(&job).collect::<Vec<_>>()) {
            for (file, schema) in [("launch.json", "launch.json"), ("exit.json", "exit.json")] {
                let text = std::fs::read_to_string(run.join(file)).unwrap_or_default();
                // It is empty till the exec.
                if !text.is_empty() {
                    self.documents.push((schema, serde_json::from_str(&text).unwrap()));
                }
            }
        }
    }
}

/// Kills a process of a job, by the number that the tool has just told, and waits for its death.
fn kill(job: &Value, process: &str) {
    let pid = job.pointer(process).unwrap().to_string();
    assert!(Command::new("kill").args(["-s", "KILL", &pid]).status().unwrap().success());
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // What nobody has waited for yet is dead all the same.
    while stat().rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z")) {
        std::thread::yield_now();
    }
}

/// Every command and every state, with real jobs.
fn gather(scratch: &Scratch) -> Vec<Document> {
    let mut all = Gathered::new(scratch);
    let owner = std::process::id().to_string();
    all.call("doctor.json", &["doctor", "--json"]);
    all.call("jobs.json", &["ls", "--json"]);

    // All that a launch can be given; and bytes that are no text.
    std::fs::write(scratch.home.join("in"), "").unwrap();
    #[rustfmt::skip]
    let full = all.launch(&[
        "--name", "full", "-l", "k=v", "-l", "other=", "--owner", &owner, "--on-owner-exit", "stop",
        "--secret-env", "NONE*", "--on-exit", "exit 3", "--stdin", "in", "--stderr", "err", "-o", "out",
        "--timeout", "1h", "--grace", "1", "--stop-signal", "INT", "--max-output", "2M", "--", "sleep", "600",
    ]);
    let mut bytes = scratch.command("outlive");
    bytes.args(["run", "--json", "--", "printf", "%s"]).arg(std::ffi::OsString::from_vec(vec![0xff]));
    let bytes = bytes.output().unwrap();
    all.documents.push(("job.json", serde_json::from_slice(&bytes.stdout).unwrap()));
    all.call("jobs.json", &["pause", "--json", "full"]);
    all.show("full");
    all.call("jobs.json", &["resume", "--json", "full"]);
    all.call("jobs.json", &["wait", "--json", "-t", "0", "full"]);
    all.call("jobs.json", &["restart", "--json", "full"]);
    all.read_records();
    all.call("jobs.json", &["stop", "--json", "full"]);
    all.show(&full);

    // How a run can end.
    all.call("job.json", &["run", "--json", "--wait", "--name", "exits", "--", "sh", "-c", "exit 3"]);
    let job = all.launch(&["--", "sh", "-c", "kill -KILL $$"]);
    all.call("jobs.json", &["wait", "--json", &job]);
    all.call("jobs.json", &["wait", "--json", &job, "exits"]);
    let job = all.launch(&["--timeout", "0.01", "--", "sleep", "600"]);
    all.call("jobs.json", &["wait", "--json", &job]);
    all.launch(&["--name", "missing", "--", "nosuch-program"]);
    all.show("missing");
    scratch.outlive(&["run", "-C", "/nosuch-directory", "--", "true"]);
    let job = all.launch(&["-o", "gone", "--", "true"]);
    all.call("jobs.json", &["wait", "--json", &job]);
    std::fs::remove_file(scratch.home.join("gone")).unwrap();
    all.show(&job);

    // What its leader leaves behind, and what its supervisor does.
    let job = all.launch(&["--name", "lingers", "--", "sh", "-c", "sleep 600 & exit 0"]);
    all.call("jobs.json", &["wait", "--json", &job]);
    all.show(&job);
    all.call("jobs.json", &["stop", "--json", &job]);
    let job = all.launch(&["--name", "orphan", "--", "sleep", "600"]);
    let seen = all.show(&job);
    kill(&seen, "/supervisor/pid");
    all.call("jobs.json", &["wait", "--json", "-t", "0", &job]);
    all.show(&job);
    all.call("reap.json", &["reap", "--json", "--orphans", "keep"]);
    all.call("reap.json", &["reap", "--json", "--orphans", "adopt", "--dry-run"]);
    all.call("reap.json", &["reap", "--json", "--orphans", "adopt"]);
    kill(&all.show(&job), "/supervisor/pid");
    all.read_records();
    all.call("reap.json", &["reap", "--json"]);
    let job = all.launch(&["--name", "lost", "--", "sleep", "600"]);
    let seen = all.show(&job);
    kill(&seen, "/supervisor/pid");
    kill(&seen, "/pid");
    all.call("reap.json", &["reap", "--json"]);
    all.show(&job);

    // A launch on its way: the launch is recorded in its file, and its launcher waits for the ledger.
    let lock = outlive::fs::Flock::take(&scratch.state_dir().join("ledger.lock"), "the ledger").unwrap();
    let mut launcher =
        scratch.command("outlive").args(["run", "--name", "starts", "--", "true"]).spawn().unwrap();
    while all.scratch.outlive(&["show", "--json", "starts"]).is_empty() {
        std::thread::yield_now();
    }
    all.show("starts");
    drop(lock);
    launcher.wait().unwrap();

    // One that cannot be judged: its ticks are those of another time namespace.
    let job = all.launch(&["--name", "strange", "--", "sleep", "600"]);
    kill(&all.show(&job), "/supervisor/pid");
    let launch = scratch.state_dir().join("jobs").join(&job).join("1/launch.json");
    let mut record: Value = serde_json::from_slice(&std::fs::read(&launch).unwrap()).unwrap();
    let time_ns = std::mem::replace(&mut record["identity"]["place"]["time_ns"], 1.into());
    std::fs::write(&launch, record.to_string()).unwrap();
    let forged = scratch.state_dir().join("ledger.jsonl");
    let ledger = std::fs::read_to_string(&forged).unwrap();
    let swap = |text: &str, from: &Value, to: &Value| {
        let line = |line: &str| match line.contains(&job) {
            true => line.replace(&format!("\"time_ns\":{from}"), &format!("\"time_ns\":{to}")),
            false => line.to_owned(),
        };
        text.lines().map(|text| line(text) + "\n").collect::<String>()
    };
    std::fs::write(&forged, swap(&ledger, &time_ns, &1.into())).unwrap();
    all.show(&job);
    all.call("jobs.json", &["stop", "--json", &job]);
    all.call("reap.json", &["reap", "--json"]);
    std::fs::write(&forged, swap(&ledger, &1.into(), &time_ns)).unwrap();
    record["identity"]["place"]["time_ns"] = time_ns;
    std::fs::write(&launch, record.to_string()).unwrap();
    scratch.outlive(&["stop", "-t", "0", &job]);

    // What a launch that was broken off has left, and what is forgotten.
    std::fs::create_dir_all(scratch.state_dir().join("jobs/a1b2c3d/1")).unwrap();
    std::fs::write(scratch.state_dir().join("jobs/a1b2c3d/1/exit.json"), "").unwrap();
    all.call("reap.json", &["reap", "--json"]);
    all.call("jobs.json", &["ls", "--json", "--all"]);
    all.read_records();
    all.call("jobs.json", &["prune", "--json", "--dry-run"]);
    scratch.outlive(&["prune", "exits"]);
    // What a reader has not seen is not folded away.
    scratch.outlive(&["events", "--reader", "slow"]);
    all.call("jobs.json", &["prune", "--json", "--keep", "3"]);
    all.read_records();
    all.documents
}

/// The words that one field has in all documents.
fn words_of(documents: &[Document], schemas: &[&str], field: &str) -> BTreeSet<String> {
    let chosen = documents.iter().filter(|(schema, _)| schemas.contains(schema));
    let each = chosen.flat_map(|(_, value)| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]));
    each.filter_map(|value| Some(value.get(field)?.as_str()?.to_owned())).collect()
}

#[test]
fn what_is_printed_and_recorded_fits() {
    let scratch = Scratch::new("schema");
    let documents = gather(&scratch);
    let (published, strict) = (Schemas::published(), Schemas::strict());
    for (schema, value) in &documents {
        for (which, schemas) in [("", &published), (" (strict)", &strict)] {
            let errors = schemas.errors(schema, value);
            assert!(errors.is_empty(), "docs/schema/{schema}{which}: {errors:#?}\n{value:#}");
        }
    }
    // Nothing is left out.
    let files = files();
    let used: BTreeSet<&str> = documents.iter().map(|(schema, _)| *schema).collect();
    let there: BTreeSet<&str> =
        files.keys().map(String::as_str).filter(|name| *name != "common.json").collect();
    assert_eq!(used, there);
    let defs = &files["common.json"]["$defs"];
    assert_eq!(words_of(&documents, &["show.json"], "state"), examples(&defs["state"]));
    let kinds = words_of(&documents, &["ledger.json"], "kind");
    assert_eq!(kinds, examples(&files["ledger.json"]["properties"]["kind"]));
    assert_eq!(
        words_of(&documents, &["reap.json", "jobs.json"], "action"),
        &examples(&defs["job"]["properties"]["action"]) | &BTreeSet::from(["cleared".to_owned()])
    );
    each_wrong_document_fails(&documents, &published, &strict);
}

/// Without any of its fields, with one of another type, or with one that nobody described.
fn each_wrong_document_fails(documents: &[Document], published: &Schemas, strict: &Schemas) {
    let mut tried = 0;
    for (schema, value) in documents {
        let first = match value {
            Value::Array(values) => values.first(),
            value => Some(value),
        };
        let Some(Value::Object(object)) = first else { continue };
        let wrap = |object: &serde_json::Map<String, Value>| match value {
            Value::Array(_) => json!([object]),
            _ => json!(object),
        };
        for field in object.keys() {
            // A list in place of what is none, and a word in place of a list.
            let mut wrong = object.clone();
            wrong[field] = if object[field].is_array() { json!("?") } else { json!([1]) };
            assert!(
                !published.errors(schema, &wrap(&wrong)).is_empty(),
                "{schema} takes any {field}: {wrong:?}"
            );
            tried += 1;
        }
        let mut more = object.clone();
        more.insert("from_the_future".into(), json!({ "x": [1] }));
        assert_eq!(published.errors(schema, &wrap(&more)), [""; 0], "{schema} takes no new field");
        assert!(!strict.errors(schema, &wrap(&more)).is_empty(), "{schema}");
    }
    assert!(tried > 1000, "{tried}");
    let job =
        documents.iter().find(|(schema, _)| *schema == "job.json").map(|(_, value)| value.clone()).unwrap();
    for field in job.as_object().unwrap().keys() {
        let mut less = job.clone();
        less.as_object_mut().unwrap().remove(field);
        assert!(!published.errors("job.json", &less).is_empty(), "job.json does without {field}");
    }
    let mut new_word = job;
    new_word["state"] = "hibernating".into();
    assert_eq!(published.errors("job.json", &new_word), [""; 0]);
    assert!(!strict.errors("job.json", &new_word).is_empty());
}

#[test]
fn records_of_each_format_fit() {
    let published = Schemas::published();
    for (file, schema) in
        [("launch.json", "launch.json"), ("exit.json", "exit.json"), ("ledger.jsonl", "ledger.json")]
    {
        for line in crate::read(&format!("tests/fixtures/v1/{file}")).lines() {
            let errors = published.errors(schema, &serde_json::from_str(line).unwrap());
            assert!(errors.is_empty(), "{file}: {errors:#?}\n{line}");
        }
    }
}
