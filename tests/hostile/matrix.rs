//! Every row of the failure matrix names tests that are there.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).unwrap().flatten().map(|entry| entry.path());
    entries
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// The section of docs/design.md.
fn section() -> String {
    let text = fs::read_to_string(root().join("docs/design.md")).unwrap();
    let from = text.find("## What fails").unwrap();
    text[from..].split("\n## ").next().unwrap().to_owned()
}

/// The rows: what fails, and the names of its tests.
fn rows() -> Vec<(String, Vec<String>)> {
    let row = |line: &str| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let (what, tests) = (cells.next()?.to_owned(), cells.next()?.to_owned());
        let names = tests.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Some((what, names))
    };
    let is_row =
        |line: &&str| line.starts_with("| ") && !line.starts_with("| what |") && !line.starts_with("| --");
    section().lines().filter(is_row).filter_map(row).collect()
}

#[test]
fn every_test_that_the_matrix_names_is_there() {
    let mut files = sources(&root().join("tests"));
    files.extend(sources(&root().join("src")));
    let text: String = files.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let rows = rows();
    assert!(rows.len() > 50, "{} rows", rows.len());
    for (what, names) in rows {
        for name in names {
            assert!(text.contains(&format!("fn {name}(")), "{what}: there is no test {name}");
        }
    }
}

#[test]
fn no_row_is_without_a_test() {
    for (what, names) in rows() {
        assert!(!names.is_empty(), "{what}");
    }
}
