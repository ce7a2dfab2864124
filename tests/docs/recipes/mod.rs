//! docs/recipes: each page's files are taken from the page and run, as whoever uses them would.

mod ci;
mod container;
mod harness;
mod scripts;

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use crate::scratch::Scratch;

/// The block of a page that is this file: its fence names it behind the language.
fn file(page: &str, name: &str) -> String {
    let text = crate::read(&format!("docs/recipes/{page}"));
    let mut blocks = text.split("\n```").filter_map(|block| block.split_once('\n'));
    let found = blocks.find(|(fence, _)| fence.split(' ').nth(1) == Some(name));
    found.unwrap_or_else(|| panic!("{page} has no {name}")).1.to_owned() + "\n"
}

/// Puts it into the home of a test.
fn place(scratch: &Scratch, page: &str, name: &str) -> PathBuf {
    write(scratch, name, &file(page, name))
}

fn write(scratch: &Scratch, name: &str, text: &str) -> PathBuf {
    let path = scratch.home.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Runs a command until it has ended and nobody holds its pipes any longer, as a runner, sshd or cron does.
fn run(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr))
}

fn job(scratch: &Scratch, name: &str) -> Value {
    serde_json::from_str(&scratch.outlive(&["show", "--json", name])).unwrap_or(Value::Null)
}

fn state(scratch: &Scratch, name: &str) -> String {
    job(scratch, name)["state"].as_str().unwrap_or("none").to_owned()
}

/// Whether a program is here; what could not be tried without it is told.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        let _ = writeln!(std::io::stderr(), "SKIPPED: there is no {program}: its recipe was not tried");
    }
    found
}

fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

#[test]
fn every_page_is_listed_and_run() {
    let index = crate::read("docs/recipes/README.md");
    let tests: String = ["ci", "container", "harness", "scripts"]
        .map(|name| crate::read(&format!("tests/docs/recipes/{name}.rs")))
        .concat();
    for entry in std::fs::read_dir(crate::path("docs/recipes")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "README.md" || index.contains(&format!("]({name})")), "{name} is not in the index");
        assert!(name == "README.md" || tests.contains(&format!("\"{name}\"")), "{name} is not run");
    }
    assert!(crate::read("README.md").contains("](docs/recipes/README.md)"));
}

/// One screen: what an agent is given has to fit beside what it does.
#[test]
fn the_page_for_agents_is_one_screen() {
    let page = crate::read("docs/agents.md");
    assert!(page.lines().count() <= 50, "{} lines", page.lines().count());
    let long = page.lines().find(|line| line.chars().count() > 118);
    assert_eq!(long, None);
    for word in outlive::state::State::ALL.map(outlive::state::State::word) {
        assert!(page.contains(&format!("`{word}`")), "{word}");
    }
}
