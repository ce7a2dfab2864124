//! docs/json.md names every field that is printed or recorded, and every word that a field may have.

use std::collections::BTreeSet;

use outlive::job::Cause;
use outlive::state::State;
use serde_json::Value;

use crate::scratch::Scratch;

/// The names of all fields, at any depth. What is below `labels` is the user's.
fn fields(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                found.insert(key.clone());
                if key != "labels" {
                    fields(value, found);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields(value, found)),
        _ => {}
    }
}

fn gather(text: &str, found: &mut BTreeSet<String>) {
    for line in text.lines().filter(|line| !line.is_empty()) {
        let value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        fields(&value, found);
    }
}

#[test]
fn every_field_is_described() {
    let scratch = Scratch::new("json");
    let owner = std::process::id().to_string();
    let mut found = BTreeSet::new();
    let id = scratch.outlive(&[
        "run",
        "--label",
        "k=v",
        "--owner",
        &owner,
        "--secret-env",
        "NONE*",
        "--",
        "sleep",
        "600",
    ]);
    let id = id.trim();
    let commands: [&[&str]; 12] = [
        &["show", "--json", id],
        &["wait", "--json", "--timeout", "0", id],
        &["pause", "--json", id],
        &["resume", "--json", id],
        &["stop", "--json", id],
        &["run", "--json", "--", "true"],
        &["run", "--", "nosuch-program"],
        &["ls", "--json", "--all"],
        &["reap", "--json"],
        &["doctor", "--json"],
        &["events"],
        &["events", "--ends"],
    ];
    for words in commands {
        if words.first() != Some(&"run") || words.contains(&"--json") {
            gather(&scratch.outlive(words), &mut found);
        } else {
            scratch.outlive(words);
        }
    }
    for file in ["launch.json", "exit.json"] {
        let path = scratch.state_dir().join("jobs").join(id).join("1").join(file);
        gather(&std::fs::read_to_string(path).unwrap(), &mut found);
    }
    gather(&scratch.outlive(&["prune", "--json"]), &mut found);
    gather(&scratch.outlive(&["events"]), &mut found);
    assert!(found.len() > 50, "{found:?}");
    let document = crate::read("docs/json.md");
    let missing: Vec<_> = found.iter().filter(|name| !document.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/json.md lacks {missing:?}");
}

#[test]
fn every_state_and_cause_is_described() {
    let document = crate::read("docs/json.md");
    for state in State::ALL {
        assert!(document.contains(&format!("`{}`", state.word())), "{}", state.word());
    }
    // serde names every variant when it meets one that does not exist.
    let error = serde_json::from_str::<Cause>("\"?\"").unwrap_err().to_string();
    let causes: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
    assert!(causes.contains(&"stop") && causes.contains(&"reboot"), "{error}");
    for cause in causes {
        assert!(document.contains(&format!("| `{cause}` | ")), "{cause}");
    }
}
