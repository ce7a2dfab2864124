//! What is depended on, held to deny.toml wherever the tests run: cargo-deny itself need not be there.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::{path, read};

/// A list of deny.toml: `allow`, the licences; `skip`, what may be there in two versions.
fn listed(name: &str) -> BTreeSet<String> {
    let text = read("deny.toml");
    let list = text.lines().find_map(|line| line.strip_prefix(&format!("{name} = ["))).unwrap();
    list.trim_end_matches(']').split(", ").map(|word| word.trim_matches('"').to_owned()).collect()
}

/// Whether the terms can be met by allowed licences alone. Every part that is joined by AND must be, brackets or not:
/// stricter than the expression, and never laxer.
fn fits(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let one = |part: &str| {
        let part = part.replace('/', " OR ");
        part.split(" OR ").any(|licence| allowed.contains(licence.trim_matches(['(', ')', ' '])))
    };
    expression.split(" AND ").all(one)
}

#[test]
fn every_licence_is_one_of_those_allowed() {
    let mut command = Command::new(env!("CARGO"));
    let words =
        ["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", "host-tuple"];
    let output = command.args(words).current_dir(path("")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 20, "{} packages", packages.len());
    let allowed = listed("allow");
    for package in packages {
        let licence = package["license"].as_str().unwrap_or("none");
        assert!(fits(licence, &allowed), "{}: {licence}", package["name"]);
    }
}

#[test]
fn an_expression_is_met_as_a_whole() {
    let allowed = ["MIT", "Unicode-3.0"].map(str::to_owned).into();
    for met in ["MIT", "GPL-3.0 OR MIT", "GPL-3.0/MIT", "(MIT OR Apache-2.0) AND Unicode-3.0"] {
        assert!(fits(met, &allowed), "{met}");
    }
    for unmet in ["", "none", "GPL-3.0", "MIT AND GPL-3.0", "(GPL-3.0 OR BSL-1.0) AND MIT", "MITNFA"] {
        assert!(!fits(unmet, &allowed), "{unmet}");
    }
}

/// From the one registry, no repository, and no package in two versions.
#[test]
fn every_dependency_comes_from_the_registry_and_once() {
    // Which it is, is cargo's affair; that there is one only is ours.
    let mut registry = None;
    for lock in ["Cargo.lock", "fuzz/Cargo.lock"] {
        let text = read(lock);
        let mut names = BTreeSet::new();
        for package in text.split("[[package]]").skip(1) {
            let of = |key: &str| {
                let line = package.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")))?;
                Some(line.trim_matches('"').to_owned())
            };
            let name = of("name").unwrap();
            match of("source") {
                None => assert!(name.starts_with("outlive"), "{lock}: {name} comes from nowhere"),
                Some(source) => {
                    assert!(source.starts_with("registry+"), "{lock}: {name} is from {source}");
                    assert_eq!(*registry.get_or_insert(source.clone()), source, "{lock}: {name}");
                    assert!(of("checksum").is_some(), "{lock}: {name} has no checksum");
                }
            }
            let twice = !names.insert(name.clone());
            assert!(!twice || listed("skip").contains(&name), "{lock}: {name} in two versions");
        }
        assert!(names.len() > 20, "{lock}: {} packages", names.len());
    }
}
