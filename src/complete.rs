//! What may come next on a command line that is being typed. Pure: who is asked about what, and the line itself.
//!
//! The shells' completion scripts are few lines that ask this program (`completions/`): what it knows is what it
//! takes, and no script has to be changed with an option.

use clap::{Arg, ArgAction, Command, ValueHint};

/// A command line up to the word that is being typed.
#[derive(Debug)]
pub struct Line<'a> {
    pub command: &'a Command,
    pub asked: Asked<'a>,
    /// The value of `--state-dir`, if it was given.
    pub state_dir: Option<String>,
    /// The arguments of the command that were given, and the names of the options that cannot be given again.
    pub given: Vec<String>,
}

/// What the word that is being typed has to be.
#[derive(Debug)]
pub enum Asked<'a> {
    Command,
    Option,
    /// A value. What stands before it in the same word is `--name=`, or nothing.
    Value(&'a Arg, &'a str),
    /// A part of a command line of its own, which begins with the word of this number.
    Line(usize),
    Nothing,
}

/// Reads the words after the program's name. The last is the one that is being typed, and may be empty.
pub fn read<'a>(root: &'a Command, words: &'a [String]) -> Line<'a> {
    let mut line = Line { command: root, asked: Asked::Nothing, state_dir: None, given: Vec::new() };
    let Some((current, before)) = words.split_last() else { return line };
    let mut value_of: Option<&Arg> = None;
    let mut options_ended = false;
    let mut positionals = 0;
    for (at, word) in before.iter().enumerate() {
        if let Some(arg) = value_of.take() {
            line.take_value(arg, word);
        } else if !options_ended && word == "--" {
            options_ended = true;
        } else if !options_ended && word.len() > 1 && word.starts_with('-') {
            value_of = line.take_option(word);
        } else if line.command.has_subcommands() {
            match line.command.find_subcommand(word) {
                Some(command) => line.command = command,
                None => return line,
            }
        } else {
            if takes_line(positional(line.command, positionals)) {
                line.asked = Asked::Line(at);
                return line;
            }
            positionals += 1;
            line.given.push(word.clone());
        }
    }
    line.asked = match (value_of, current.split_once('=')) {
        (Some(arg), _) => value(arg, "", before.len()),
        (None, Some((name, _))) if !options_ended && name.starts_with("--") => {
            match long(line.command, &name[2..]) {
                Some(arg) => value(arg, &current[..=name.len()], before.len()),
                None => Asked::Nothing,
            }
        }
        _ if !options_ended && current.starts_with('-') => Asked::Option,
        _ if line.command.has_subcommands() => Asked::Command,
        _ => match positional(line.command, positionals) {
            Some(arg) => value(arg, "", before.len()),
            None if options_ended => Asked::Nothing,
            None => Asked::Option,
        },
    };
    line
}

impl<'a> Line<'a> {
    /// Takes in `--name`, `--name=value`, `-x`, `-xvalue` or `-xyz`. The option whose value comes next, if one does.
    fn take_option(&mut self, word: &str) -> Option<&'a Arg> {
        if let Some(text) = word.strip_prefix("--") {
            let (name, value) =
                text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
            let arg = long(self.command, name)?;
            self.note(arg);
            match value {
                Some(value) => self.take_value(arg, value),
                None => return Some(arg).filter(|arg| takes_value(arg)),
            }
            return None;
        }
        for (at, letter) in word.char_indices().skip(1) {
            let arg = self.command.get_arguments().find(|arg| arg.get_short() == Some(letter))?;
            self.note(arg);
            if takes_value(arg) {
                return Some(arg).filter(|_| at + letter.len_utf8() == word.len());
            }
        }
        None
    }

    fn note(&mut self, arg: &Arg) {
        if !matches!(arg.get_action(), ArgAction::Append) {
            self.given.extend(arg.get_long().map(|name| format!("--{name}")));
        }
    }

    fn take_value(&mut self, arg: &Arg, value: &str) {
        if arg.get_id() == "state_dir" {
            self.state_dir = Some(value.to_owned());
        }
    }
}

fn value<'a>(arg: &'a Arg, prefix: &'a str, at: usize) -> Asked<'a> {
    match arg.get_value_hint() {
        // A shell's line as one word: its first word is a command.
        ValueHint::CommandString if prefix.is_empty() => Asked::Line(at),
        _ if takes_line(Some(arg)) => Asked::Line(at),
        _ => Asked::Value(arg, prefix),
    }
}

fn long<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| arg.get_long() == Some(name))
}

/// The nth argument; the last one may be given again and again.
fn positional(command: &Command, nth: usize) -> Option<&Arg> {
    let all: Vec<&Arg> = command.get_positionals().collect();
    let last = all.last().filter(|arg| matches!(arg.get_action(), ArgAction::Append));
    all.get(nth).or(last).copied()
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

fn takes_line(arg: Option<&Arg>) -> bool {
    arg.is_some_and(|arg| arg.get_value_hint() == ValueHint::CommandWithArguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// What is asked, in a word; `|` stands where the last word begins.
    fn asked(text: &str) -> String {
        let mut root = crate::cli::Cli::command();
        root.build();
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        let line = read(&root, &words);
        let what = match line.asked {
            Asked::Command => "command".to_owned(),
            Asked::Option => "option".to_owned(),
            Asked::Value(arg, prefix) => format!("{prefix}{}", arg.get_id()),
            Asked::Line(at) => format!("line {at}"),
            Asked::Nothing => "nothing".to_owned(),
        };
        format!("{} {what}", line.command.get_name())
    }

    #[test]
    fn every_place_asks_for_something_else() {
        for (text, expected) in [
            ("", "outlive command"),
            ("sto", "outlive command"),
            ("-", "outlive option"),
            ("--json ", "outlive command"),
            ("--color ", "outlive color"),
            ("--color=a", "outlive --color=color"),
            ("--state-dir stop ", "outlive command"),
            ("nosuch ", "outlive nothing"),
            ("ps ", "ls jobs"),
            ("stop ", "stop jobs"),
            ("stop a b ", "stop jobs"),
            ("stop -s ", "stop signal"),
            ("stop -sTERM ", "stop jobs"),
            ("stop -s TERM ", "stop jobs"),
            ("stop --signal=TE", "stop --signal=signal"),
            ("stop --nosuch=x", "stop nothing"),
            ("stop --all ", "stop jobs"),
            ("stop -- -", "stop jobs"),
            ("stop --", "stop option"),
            ("logs ", "logs job"),
            ("logs -fn ", "logs lines"),
            ("logs web ", "logs option"),
            ("reap ", "reap option"),
            ("reap -- ", "reap nothing"),
            ("ls --state ", "ls state"),
            ("ls --state", "ls option"),
            ("run ", "run line 1"),
            ("run --", "run option"),
            ("run -- ", "run line 2"),
            ("run -- --", "run line 2"),
            ("run --wait -l a=b make -", "run line 4"),
            ("run -wl ", "run labels"),
            ("run make -- ", "run line 1"),
            ("run --on-exit ", "run line 2"),
            ("run --output ", "run output"),
            ("run --output=", "run --output=output"),
            ("help ", "help command"),
        ] {
            assert_eq!(asked(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_state_directory_and_what_was_given_are_known() {
        let mut root = crate::cli::Cli::command();
        root.build();
        let of = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let line = read(&root, &words);
            (line.state_dir, line.given)
        };
        let given = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        assert_eq!(
            of("--state-dir /s stop -l a=b --all web "),
            (Some("/s".into()), given(&["--state-dir", "--all", "web"]))
        );
        assert_eq!(of("stop --state-dir=/t "), (Some("/t".into()), given(&["--state-dir"])));
        assert_eq!(of("run -- x --state-dir /u "), (None, given(&[])));
    }
}
