//! The manual pages are written by hand; here they are held to the options that exist, in both directions.
//!
//! `outlive.1` is the overview, and has the options that every command takes. A command has a page of its own,
//! `outlive-COMMAND.1`, with its own options.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use clap::Parser;
use outlive::cli::Cli;
use outlive::state::State;

use crate::shell;

type Options = BTreeSet<String>;

const OVERVIEW: &str = "outlive";

/// What a reader may rely on finding, in the order of mdoc(7).
const SECTIONS: [&str; 8] =
    ["NAME", "SYNOPSIS", "DESCRIPTION", "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES", "SEE ALSO"];

/// Commands without a page: `help` prints what the others have.
const WITHOUT: [&str; 1] = ["help"];

/// The pages by name, and their text.
fn pages() -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(crate::path("man")).unwrap();
    let page = |path: &Path| {
        assert_eq!(path.extension().unwrap(), "1", "{}", path.display());
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(path).unwrap())
    };
    entries.map(|entry| page(&entry.unwrap().path())).collect()
}

/// The options of each command, under the name of its page; those of every command under that of the overview.
fn existing() -> BTreeMap<String, Options> {
    let command = crate::command();
    let own = |arg: &clap::Arg| {
        let short = arg.get_short_and_visible_aliases().unwrap_or_default().into_iter();
        let long = arg.get_long_and_visible_aliases().unwrap_or_default().into_iter();
        short.map(|c| format!("-{c}")).chain(long.map(|word| format!("--{word}"))).collect::<Vec<_>>()
    };
    let mut all = BTreeMap::new();
    all.insert(OVERVIEW.to_owned(), command.get_arguments().flat_map(own).collect());
    for sub in command.get_subcommands().filter(|sub| !WITHOUT.contains(&sub.get_name())) {
        let options = sub
            .get_arguments()
            .filter(|arg| !arg.is_global_set() && arg.get_id() != "help" && arg.get_id() != "version");
        all.insert(format!("{OVERVIEW}-{}", sub.get_name()), options.flat_map(own).collect());
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
    // `.It Fl a , -all`: what follows a comma is an option too, and so is what follows a bar in a synopsis.
    for pair in words.windows(2) {
        match (pair[0], pair[1].strip_prefix('-')) {
            (",", Some(long)) if line.starts_with(".It Fl") => found.push(format!("--{long}")),
            ("|", None) if line.starts_with(".Op Fl") && pair[1].len() == 1 => {
                found.push(format!("-{}", pair[1]));
            }
            _ => {}
        }
    }
    found
}

/// The lines of one section.
fn section<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let heading = format!(".Sh {name}");
    let below = page.lines().skip_while(|line| **line != *heading).skip(1);
    below.take_while(|line| !line.starts_with(".Sh ")).collect()
}

/// What a page lists with `.It Fl`.
fn listed(name: &str, page: &str) -> Options {
    let mut options = Options::new();
    for option in page.lines().filter(|line| line.starts_with(".It Fl")).flat_map(mentioned) {
        assert!(options.insert(option.clone()), "{name}: {option} is listed twice");
    }
    options
}

#[test]
fn each_command_has_its_page_with_its_options_and_no_other() {
    let listed: BTreeMap<_, _> =
        pages().iter().map(|(name, page)| (name.clone(), listed(name, page))).collect();
    assert_eq!(listed, existing());
}

#[test]
fn no_option_is_mentioned_that_does_not_exist() {
    let existing = existing();
    let any: Options = existing.values().flatten().cloned().collect();
    for (name, page) in pages() {
        for option in page.lines().filter(|line| line.starts_with('.')).flat_map(mentioned) {
            assert!(any.contains(&option), "{name}: there is no {option}");
        }
        // A synopsis has the options of its own command: all, or the word for them.
        let synopsis = section(&page, "SYNOPSIS");
        let shown: Options = synopsis.iter().copied().flat_map(mentioned).collect();
        for option in &shown {
            assert!(existing[&name].contains(option), "{name}: the synopsis has {option}");
        }
        let hidden = existing[&name].iter().filter(|option| !shown.contains(*option)).count();
        let both = existing[&name].iter().filter(|option| !option.starts_with("--")).count();
        let all = synopsis.contains(&".Op Ar options") || name == OVERVIEW;
        assert!(all || hidden == both, "{name}: the synopsis has {shown:?} of {:?}", existing[&name]);
    }
}

#[test]
fn every_page_has_its_sections_and_says_what_it_is() {
    for (name, page) in pages() {
        let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".Sh ")).collect();
        let required: Vec<&str> = headings.iter().copied().filter(|name| SECTIONS.contains(name)).collect();
        assert_eq!(required, SECTIONS, "{name}");
        for heading in headings {
            let lines = section(&page, heading);
            assert!(lines.iter().any(|line| !line.starts_with(".\\\"")), "{name}: nothing below {heading}");
        }
        let nm = |line: &&str| line.split_whitespace().nth(1) == Some(&name);
        assert!(section(&page, "NAME").iter().any(nm), "{name}: another name");
    }
}

#[test]
fn references_lead_to_pages() {
    let pages = pages();
    for (name, page) in &pages {
        let own = |line: &&str| line.starts_with(".Xr outlive") || line.starts_with(".It Xr outlive");
        for line in page.lines().filter(own) {
            let to = line.split_whitespace().find(|word| word.starts_with("outlive")).unwrap();
            assert!(pages.contains_key(to), "{name}: there is no {to}");
        }
    }
    let overview = &pages[OVERVIEW];
    for name in pages.keys().filter(|name| *name != OVERVIEW) {
        let index = section(overview, "COMMANDS").contains(&&*format!(".It Xr {name} 1"));
        let also =
            section(overview, "SEE ALSO").iter().any(|line| line.starts_with(&format!(".Xr {name} 1")));
        assert!(index && also, "the overview does not lead to {name}");
        let back = section(&pages[name], "SEE ALSO").contains(&".Xr outlive 1 ,")
            || section(&pages[name], "SEE ALSO").contains(&".Xr outlive 1");
        assert!(back, "{name} does not lead to the overview");
    }
}

/// The shell lines of a page, as they are printed.
fn examples(page: &str) -> String {
    let mut script = String::new();
    let mut literal = false;
    for line in section(page, "EXAMPLES") {
        match line {
            ".Ed" => literal = false,
            _ if line.starts_with(".Bd -literal") => literal = true,
            _ if literal => script.push_str(&format!("{line}\n")),
            _ => script.extend(line.strip_prefix(".Dl ").map(|line| format!("{line}\n"))),
        }
    }
    script.replace("\\-", "-").replace("\\e", "\\").replace("\\&", "")
}

#[test]
fn the_examples_are_well_formed() {
    for (name, page) in pages() {
        let script = examples(&page);
        let found = shell::commands(&script);
        assert_eq!(found.len(), script.matches("outlive ").count(), "{name}: {found:?}\n{script}");
        assert!(!found.is_empty(), "{name} has no example");
        // With their indent they fit 80 columns: a formatter would break them.
        let long = script.lines().find(|line| line.len() > 69);
        assert_eq!(long, None, "{name}");
        for words in found {
            if let Err(error) = Cli::try_parse_from(&words) {
                panic!("{name}: {words:?}: {error}");
            }
        }
    }
}

#[test]
fn the_overview_and_the_readme_have_every_state() {
    let (overview, readme) = (crate::read("man/outlive.1"), crate::read("README.md"));
    for state in State::ALL {
        let word = state.word();
        assert!(overview.lines().any(|line| line == format!(".It {word}")), "manual page: {word}");
        assert!(readme.contains(&format!("| `{word}` | ")), "README: {word}");
    }
}

#[test]
fn every_variable_is_described() {
    let all: String = pages().into_values().collect();
    let source = crate::read("src/env.rs");
    let names = source
        .split('"')
        .filter(|word| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'));
    for name in names {
        assert!(all.contains(&format!("Ev {name}")), "{name}");
    }
}

/// Where mandoc is installed, as CI has it.
#[test]
fn the_pages_are_clean() {
    for name in pages().keys() {
        let page = crate::path("man").join(format!("{name}.1"));
        let Ok(lint) = Command::new("mandoc").args(["-T", "lint", "-W", "warning"]).arg(&page).output()
        else {
            return;
        };
        assert!(lint.status.success(), "{}", String::from_utf8_lossy(&lint.stdout));
    }
}
