//! The help texts: each says what it is for, and shows how.

use clap::Parser;
use outlive::cli::Cli;

use crate::scratch::Scratch;
use crate::shell;

/// The help text of each command but `help`, as a reader finds it.
fn texts() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for mut sub in crate::command().get_subcommands().cloned() {
        if sub.get_name() != "help" {
            all.push((sub.get_name().to_owned(), sub.render_long_help().to_string()));
        }
    }
    all
}

/// The lines below `Examples:`, without what is said of them: two spaces or more stand before that.
fn examples(text: &str) -> String {
    let lines = text.lines().skip_while(|line| *line != "Examples:").skip(1);
    let lines = lines.take_while(|line| line.starts_with("  ")).map(str::trim_start);
    lines.map(|line| format!("{}\n", line.split("  ").next().unwrap_or_default())).collect()
}

#[test]
fn every_help_text_has_examples_that_are_well_formed() {
    for (name, text) in texts() {
        let script = examples(&text);
        let found = shell::commands(&script);
        assert!(!found.is_empty() && found.len() == script.matches("outlive ").count(), "{name}: {script}");
        for words in found {
            if let Err(error) = Cli::try_parse_from(&words) {
                panic!("{name}: {words:?}: {error}");
            }
        }
    }
}

/// Nobody has to ask twice: whoever asks for help, and however, is told the same.
#[test]
fn there_is_one_help_text_for_each_command() {
    let scratch = Scratch::new("help");
    for (name, _) in texts() {
        let text = scratch.outlive(&["help", &name]);
        assert!(text.contains("Usage: outlive "), "{name}: {text}");
        assert_eq!(scratch.outlive(&[&name, "--help"]), text, "{name}");
        assert_eq!(scratch.outlive(&[&name, "-h"]), text, "{name}");
    }
    assert!(scratch.outlive(&["help", "agents"]).contains("outlive wait"));
}

#[test]
fn a_line_of_a_help_text_fits_a_narrow_terminal() {
    for sub in crate::command().get_subcommands() {
        let own = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(own.lines().all(|line| line.len() <= 80), "{}:\n{own}", sub.get_name());
    }
}
