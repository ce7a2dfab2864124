//! The manual page is written by hand; here it is held to the options that exist, in both directions.

use std::collections::{BTreeMap, BTreeSet};

use clap::Parser;
use outlive::cli::Cli;
use outlive::state::State;

type Options = BTreeSet<String>;

/// The options of each command, under its name and visible aliases; those of every command under `""`.
fn existing() -> BTreeMap<String, Options> {
    let command = crate::command();
    let own = |arg: &clap::Arg| {
        let short = arg.get_short_and_visible_aliases().unwrap_or_default().into_iter();
        let long = arg.get_long_and_visible_aliases().unwrap_or_default().into_iter();
        short.map(|c| format!("-{c}")).chain(long.map(|word| format!("--{word}"))).collect::<Vec<_>>()
    };
    let mut all = BTreeMap::new();
    all.insert(String::new(), command.get_arguments().flat_map(own).collect());
    for sub in command.get_subcommands() {
        let names: Vec<&str> = std::iter::once(sub.get_name()).chain(sub.get_visible_aliases()).collect();
        let options = sub
            .get_arguments()
            .filter(|arg| !arg.is_global_set() && arg.get_id() != "help" && arg.get_id() != "version");
        all.insert(names.join(", "), options.flat_map(own).collect());
    }
    all
}

/// The options that follow `Fl` in one line of mdoc(7).
fn mentioned(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let mut found = Vec::new();
    for pair in words.windows(2).filter(|pair| pair[0].trim_start_matches('.') == "Fl") {
        match pair[1].strip_prefix('-') {
            Some("") => {}
            Some(long) => found.push(format!("--{long}")),
            None => found.extend(pair[1].chars().map(|short| format!("-{short}"))),
        }
    }
    // `.It Fl a , -all`: what follows a comma is an option too.
    for pair in words.windows(2).filter(|pair| pair[0] == ",") {
        if let Some(long) = pair[1].strip_prefix('-').filter(|_| line.starts_with(".It Fl")) {
            found.push(format!("--{long}"));
        }
    }
    found
}

/// What the page lists with `.It Fl`, by command.
fn listed(page: &str) -> BTreeMap<String, Options> {
    let mut all = BTreeMap::new();
    let mut at = None;
    for line in page.lines() {
        if let Some(name) = line.strip_prefix(".Sh ") {
            at = (name == "OPTIONS").then(String::new);
        }
        if let Some(name) = line.strip_prefix(".Ss ") {
            at = Some(name.to_owned());
        }
        if let Some(at) = &at {
            let options: &mut Options = all.entry(at.clone()).or_default();
            if line.starts_with(".It Fl") {
                for option in mentioned(line) {
                    assert!(options.insert(option.clone()), "{at}: {option} is listed twice");
                }
            }
        }
    }
    all
}

#[test]
fn the_page_lists_every_command_and_option_and_no_other() {
    assert_eq!(listed(&crate::read("man/outlive.1")), existing());
}

#[test]
fn the_page_mentions_no_option_that_does_not_exist() {
    let page = crate::read("man/outlive.1");
    let existing = existing();
    let any: Options = existing.values().flatten().cloned().collect();
    let mut section = String::new();
    for (at, line) in
        page.lines().enumerate().filter(|(_, line)| line.starts_with('.') && !line.starts_with(".\\\""))
    {
        if let Some(name) = line.strip_prefix(".Sh ").or_else(|| line.strip_prefix(".Ss ")) {
            section = name.to_owned();
        }
        for option in mentioned(line) {
            assert!(any.contains(&option), "line {}: there is no {option}", at + 1);
            // A synopsis names the options of its own command only.
            if let (true, Some(own)) = (line.starts_with(".Op"), existing.get(&section)) {
                assert!(own.contains(&option), "line {}: {section} has no {option}", at + 1);
            }
        }
    }
}

#[test]
fn the_examples_are_well_formed() {
    let page = crate::read("man/outlive.1");
    let mut examples = 0;
    for line in page.lines().filter_map(|line| line.strip_prefix(".Dl outlive ")) {
        let words = std::iter::once("outlive".to_owned())
            .chain(line.split(' ').map(|word| word.replace("\\-", "-").replace("\\&", "")));
        if let Err(error) = Cli::try_parse_from(words) {
            panic!("{line}: {error}");
        }
        examples += 1;
    }
    assert!(examples > 3);
}

#[test]
fn the_page_and_the_readme_have_every_state() {
    let (page, readme) = (crate::read("man/outlive.1"), crate::read("README.md"));
    for state in State::ALL {
        let word = state.word();
        assert!(page.lines().any(|line| line == format!(".It {word}")), "manual page: {word}");
        assert!(readme.contains(&format!("| `{word}` | ")), "README: {word}");
    }
}

#[test]
fn the_page_has_every_variable() {
    let page = crate::read("man/outlive.1");
    let source = crate::read("src/env.rs");
    let names = source
        .split('"')
        .filter(|word| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'));
    for name in names {
        assert!(page.contains(&format!("Ev {name}")), "{name}");
    }
}
