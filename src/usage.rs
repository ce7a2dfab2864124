//! Bad usage, in one line: what is wrong with which word, and what to do about it.

use std::error::Error;
use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::Cli;
use crate::exit::Exit;
use crate::lookup::nearest;

/// What other tools call what a command here does.
const ELSEWHERE: [(&str, &[&str]); 6] = [
    ("run", &["start", "exec", "launch", "spawn", "add"]),
    ("ls", &["jobs", "top"]),
    ("show", &["status", "info", "inspect", "describe"]),
    ("stop", &["kill", "end", "terminate"]),
    ("logs", &["log", "output", "tail", "cat", "follow"]),
    ("prune", &["rm", "remove", "delete", "clean", "forget"]),
];

/// What other tools call what an option here does.
const INSTEAD: [(&str, &[&str], &str); 5] = [
    ("stop", &["--force", "-f", "--now"], "to kill at once: -t 0"),
    ("stop", &["-9", "-K", "-k", "--kill"], "to kill at once: -s KILL"),
    ("logs", &["--tail", "-1", "-2", "-3", "-4", "-5", "-6", "-7", "-8", "-9"], "the last lines: -n NUMBER"),
    ("run", &["-n"], "a name: --name NAME"),
    ("run", &["-d", "--detach", "-b", "--background"], "it always lets go of the command"),
];

/// 2 is for usage, but in `run` and `wait` 2 is the job's.
pub fn exit(words: impl Iterator<Item = OsString>) -> Exit {
    match command_word(words) {
        Some(name) if name == "run" || name == "wait" => Exit::Failed,
        _ => Exit::Usage,
    }
}

/// The word that names the command: the first that is neither an option nor an option's value.
pub fn command_word(mut words: impl Iterator<Item = OsString>) -> Option<OsString> {
    while let Some(word) = words.next().filter(|word| word != "--") {
        if word == "--state-dir" || word == "--color" {
            words.next();
        } else if !word.as_encoded_bytes().starts_with(b"-") {
            return Some(word);
        }
    }
    None
}

/// What clap has found, in the words of this program. `command`: the word that names the command, if there is one.
pub fn words(error: &clap::Error, command: Option<&str>) -> String {
    let definition = Cli::command();
    let known = definition
        .get_subcommands()
        .flat_map(|sub| std::iter::once(sub.get_name()).chain(sub.get_all_aliases()));
    let commands: Vec<&str> = known.chain(["help"]).collect();
    let command = command.filter(|word| commands.contains(word));
    let who = command.map_or("outlive".to_owned(), |word| format!("'{word}'"));
    let help = match command {
        None | Some("help") => "see 'outlive help'".to_owned(),
        Some(word) => format!("see 'outlive help {word}'"),
    };
    let one = |kind| strings(error, kind).first().copied().unwrap_or_default();
    // `--timeout <DURATION>`: the option alone.
    let option = |kind| one(kind).split(' ').next().unwrap_or_default();
    let (wrong, next) = match error.kind() {
        ErrorKind::UnknownArgument if one(ContextKind::InvalidArg).starts_with('-') => {
            let given = one(ContextKind::InvalidArg);
            let instead = INSTEAD.iter().find(|(of, words, _)| command == Some(of) && words.contains(&given));
            let next = match one(ContextKind::SuggestedArg) {
                _ if instead.is_some() => instead.map_or_else(String::new, |(.., next)| (*next).to_owned()),
                "" if command == Some("run") => format!("options of the command go after it; {help}"),
                "" => help,
                near => format!("did you mean '{near}'?"),
            };
            (format!("{who} has no option '{given}'"), next)
        }
        ErrorKind::UnknownArgument => {
            (format!("'{}' is one word too many", one(ContextKind::InvalidArg)), help)
        }
        ErrorKind::InvalidSubcommand => {
            let word = one(ContextKind::InvalidSubcommand);
            let next = match known_as(word, &commands) {
                _ if command == Some("help") && nearest(word, &["agents"]).is_some() => {
                    "did you mean 'outlive help agents'?".to_owned()
                }
                Some(name) => format!("did you mean 'outlive {name}'?"),
                None if command.is_some() => help,
                None => format!("to launch it: outlive run -- {word}"),
            };
            (format!("there is no command '{word}'"), next)
        }
        ErrorKind::MissingRequiredArgument => missing(&who, one(ContextKind::InvalidArg), help),
        ErrorKind::ArgumentConflict => {
            let (late, early) = (option(ContextKind::InvalidArg), option(ContextKind::PriorArg));
            let wrong = if late == early {
                format!("'{late}' can be given only once")
            } else {
                format!("'{late}' and '{early}' cannot go together")
            };
            (wrong, help)
        }
        ErrorKind::InvalidValue => {
            let (value, option) = (one(ContextKind::InvalidValue), option(ContextKind::InvalidArg));
            let valid = strings(error, ContextKind::ValidValue);
            let next = match one(ContextKind::SuggestedValue) {
                "" if valid.is_empty() => help,
                "" => format!("one of: {}", valid.join(", ")),
                near => format!("did you mean '{near}'?"),
            };
            if value.is_empty() {
                (format!("'{option}' needs a value"), next)
            } else {
                (format!("'{value}' is not a value of '{option}'"), next)
            }
        }
        ErrorKind::ValueValidation => {
            // What the parser of the value says has its examples already.
            let why = error.source().map(ToString::to_string).unwrap_or_default();
            return format!("{}: {why}", option(ContextKind::InvalidArg));
        }
        ErrorKind::MissingSubcommand => ("no command is given".to_owned(), help),
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            (first.strip_prefix("error: ").unwrap_or(first).to_owned(), help)
        }
    };
    format!("{wrong} ({next})")
}

/// `arg` as clap shows it: `<JOB>...`, or `--name <NAME>`.
fn missing(who: &str, arg: &str, help: String) -> (String, String) {
    let plain: String = arg.chars().filter(|c| !"<>.".contains(*c)).collect();
    match plain.as_str() {
        "COMMAND" => (format!("{who} needs a COMMAND"), "outlive run -- COMMAND [ARGUMENT]...".to_owned()),
        "JOB" => (format!("{who} needs a JOB"), "an id or a name, see 'outlive ls'".to_owned()),
        option => (format!("{who} needs '{option}' as well"), help),
    }
}

fn known_as<'a>(word: &str, commands: &[&'a str]) -> Option<&'a str> {
    let elsewhere = ELSEWHERE.iter().find(|(_, words)| words.contains(&word)).map(|(name, _)| *name);
    commands.iter().copied().find(|name| Some(*name) == elsewhere).or_else(|| nearest(word, commands))
}

fn strings(error: &clap::Error, kind: ContextKind) -> Vec<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text],
        Some(ContextValue::Strings(texts)) => texts.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Vec<OsString> {
        line.split_ascii_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn bad_usage_is_2_but_where_2_may_be_the_jobs() {
        for line in
            ["run", "run --bad x", "--json wait --bad", "--state-dir stop run --", "--color=never run"]
        {
            assert_eq!(exit(split(line).into_iter()).code(), 125, "{line}");
        }
        for line in ["", "--bad", "stop --bad wait", "logs run --bad", "--state-dir run ls --bad", "-- run"] {
            assert_eq!(exit(split(line).into_iter()).code(), 2, "{line}");
        }
    }
}
