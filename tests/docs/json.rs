//! docs/json.md, docs/schema and the program say the same: every field, its type, and every word that it may have.

use std::collections::{BTreeMap, BTreeSet};

use outlive::job::Cause;
use outlive::state::State;
use serde_json::{Value, json};

use crate::schema::files;

/// The words of this version that a field may have.
pub(crate) fn examples(schema: &Value) -> BTreeSet<String> {
    let words = schema["examples"].as_array().unwrap_or_else(|| panic!("no words: {schema}"));
    words.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_words_are_those_of_the_program() {
    let files = files();
    let defs = &files["common.json"]["$defs"];
    assert_eq!(examples(&defs["state"]), State::ALL.map(|state| state.word().to_owned()).into());
    // serde names every variant when it meets one that does not exist.
    let error = serde_json::from_str::<Cause>("\"?\"").unwrap_err().to_string();
    let causes: BTreeSet<String> = error.split('`').skip(3).step_by(2).map(str::to_owned).collect();
    assert!(causes.contains("stop") && causes.contains("reboot"), "{error}");
    assert_eq!(examples(&defs["cause"]), causes);
    let document = crate::read("docs/json.md");
    for cause in causes {
        assert!(document.contains(&format!("| `{cause}` | ")), "docs/json.md lacks {cause}");
    }
    for words in [
        &defs["state"],
        &defs["identity"],
        &defs["job"]["properties"]["action"],
        &defs["job"]["properties"]["output"]["properties"]["status"],
        &defs["outcome"]["properties"]["state"],
        &defs["launch"]["properties"]["on_owner_exit"],
        &files["ledger.json"]["properties"]["kind"],
    ] {
        for word in examples(words) {
            assert!(document.contains(&format!("`{word}`")), "docs/json.md lacks {word}");
        }
    }
}

/// The tables of docs/json.md under one heading: each field and its type.
fn table(document: &str, heading: &str) -> Vec<BTreeMap<String, String>> {
    let section = document
        .split("\n#")
        .find(|section| section.trim_start_matches('#').trim_start().starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("docs/json.md has no '{heading}'"));
    let mut tables = Vec::new();
    let mut current: Option<BTreeMap<String, String>> = None;
    for line in section.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        match (&mut current, cells.as_slice()) {
            (_, ["field", "type", ..]) => current = Some(BTreeMap::new()),
            (Some(table), [fields, kind, ..]) if fields.starts_with('`') => {
                table.extend(
                    fields.split(", ").map(|name| (name.trim_matches('`').to_owned(), (*kind).to_owned())),
                );
            }
            (Some(_), _) if !line.starts_with('|') => tables.extend(current.take()),
            _ => {}
        }
    }
    tables.extend(current);
    tables
}

/// The properties of a schema, as docs/json.md calls their types.
fn typed(properties: &Value) -> BTreeMap<String, String> {
    let properties = properties.as_object().unwrap();
    properties.iter().map(|(name, schema)| (name.clone(), type_of(schema))).collect()
}

fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return match name {
            "bytes" => "bytes",
            "seen" | "process" | "labels" => "object",
            _ => "string",
        }
        .to_owned();
    }
    let word = |word: &str| if word == "integer" { "number" } else { word }.to_owned();
    let or = |types: Vec<String>| types.join(" or ");
    match (&schema["type"], &schema["anyOf"], &schema["const"]) {
        (Value::String(kind), ..) if kind == "array" && type_of(&schema["items"]) == "bytes" => {
            "array of bytes".into()
        }
        (Value::String(kind), ..) => word(kind),
        (Value::Array(kinds), ..) => or(kinds.iter().map(|kind| word(kind.as_str().unwrap())).collect()),
        (_, Value::Array(any), _) => or(any.iter().map(type_of).collect()),
        (.., Value::Bool(_)) => "boolean".into(),
        (.., Value::Number(_)) => "number".into(),
        _ => panic!("no type: {schema}"),
    }
}

/// The names of all fields, at any depth.
fn properties(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            found.extend(
                map.get("properties")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flat_map(|map| map.keys().cloned()),
            );
            map.values().for_each(|schema| properties(schema, found));
        }
        Value::Array(schemas) => schemas.iter().for_each(|schema| properties(schema, found)),
        _ => {}
    }
}

#[test]
fn the_reference_and_the_schemas_say_the_same() {
    let (document, files) = (crate::read("docs/json.md"), files());
    let defs = &files["common.json"]["$defs"];
    let same = |heading: &str, nth: usize, fields: BTreeMap<String, String>| {
        assert_eq!(table(&document, heading)[nth], fields, "{heading}");
    };
    let (required, optional): (BTreeMap<_, _>, BTreeMap<_, _>) = {
        let required = defs["job"]["required"].as_array().unwrap().clone();
        typed(&defs["job"]["properties"]).into_iter().partition(|(name, _)| required.contains(&json!(name)))
    };
    same("The job object", 0, required);
    same("The job object", 1, optional);
    same("What `show` adds", 0, typed(&files["show.json"]["properties"]));
    same("The check of `doctor`", 0, typed(&files["doctor.json"]["items"]["properties"]));
    same("The ledger", 0, typed(&files["ledger.json"]["properties"]));
    let mut launch = typed(&defs["launch"]["properties"]);
    // These three are in every record.
    launch.retain(|name, _| !["id", "run", "at"].contains(&name.as_str()));
    same("The launch record", 0, launch);
    same("The exit sidecar", 0, typed(&defs["outcome"]["properties"]));
    for (name, schema) in &files {
        let mut fields = BTreeSet::new();
        properties(schema, &mut fields);
        let missing: Vec<_> =
            fields.iter().filter(|field| !document.contains(&format!("`{field}`"))).collect();
        assert!(missing.is_empty(), "docs/json.md lacks {missing:?} of {name}");
    }
    let printed = table(&document, "What is printed");
    assert!(printed.is_empty(), "a table of commands, not of fields");
    for name in files.keys() {
        assert!(document.contains(&format!("](schema/{name})")), "docs/json.md does not lead to {name}");
    }
}
