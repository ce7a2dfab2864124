//! What the shells' completion scripts ask. The first line of the answer is what the shell itself has to add (`words
//! KIND`: nothing, `files`, `directories`, `command N`: what follows the first N words, the program's name included, is
//! a command line of its own); the others are candidates, each with a tab and its description.
//!
//! It runs while somebody types: it makes and changes nothing, takes no lock, waits for nobody and prints no error.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;

use clap::{Arg, CommandFactory, ValueHint};
use nix::sys::signal::Signal;

use crate::assess::{Assessed, Observer};
use crate::cli::Cli;
use crate::complete::{Asked, Line, read};
use crate::job::check_name;
use crate::ledger::{self, Book};
use crate::lookup;
use crate::paths::StateDir;
use crate::state::State;
use crate::view::{JobView, command_line, state_words};

/// The word by which a completion script asks.
pub const COMPLETE: &str = "outlive:complete";

/// Of ended jobs there may be very many: so many of the newest are offered that begin with what was typed.
const ENDED: usize = 100;

/// The longest description, in characters.
const WIDTH: usize = 60;

/// A candidate and its description.
type Word = (String, String);

/// Answers; `words` are those after the program's name, the last being the one that is typed.
pub fn complete(words: impl Iterator<Item = OsString>) {
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let mut root = Cli::command();
    root.build();
    let line = read(&root, &words);
    let typed = words.last().map_or("", String::as_str);
    let (kind, candidates) = answer(&line, typed);
    let mut text = format!("{kind}\n");
    for (word, description) in candidates.iter().filter(|(word, _)| word.starts_with(typed)) {
        let _ = writeln!(text, "{word}\t{description}");
    }
    let _ = super::print(text.as_bytes());
}

fn answer(line: &Line, typed: &str) -> (String, Vec<Word>) {
    match line.asked {
        Asked::Nothing => ("words nothing".into(), Vec::new()),
        Asked::Line(at) => (format!("command {}", at + 1), Vec::new()),
        Asked::Command => ("words command".into(), commands(line)),
        Asked::Option => ("words option".into(), options(line)),
        Asked::Value(arg, prefix) => {
            let (kind, mut words) = values(line, arg, &typed[prefix.len()..]);
            for (word, _) in &mut words {
                word.insert_str(0, prefix);
            }
            (kind.into(), words)
        }
    }
}

fn commands(line: &Line) -> Vec<Word> {
    let about = |command: &clap::Command| first_line(command.get_about());
    let named = line.command.get_subcommands().map(|command| (command.get_name().to_owned(), about(command)));
    let mut words: Vec<Word> = named.collect();
    if line.command.get_name() == "help" {
        words.push(("agents".into(), "The whole contract on one screen".into()));
    }
    words
}

fn options(line: &Line) -> Vec<Word> {
    let named = |arg: &Arg| Some((format!("--{}", arg.get_long()?), first_line(arg.get_help())));
    let words = line.command.get_arguments().filter_map(named);
    words.filter(|(name, _)| !line.given.contains(name)).collect()
}

fn first_line(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

/// What is to be had for an argument: words, and what kind of words they are or what the shell has to add.
fn values(line: &Line, arg: &Arg, typed: &str) -> (&'static str, Vec<Word>) {
    let fixed: Vec<Word> = arg
        .get_possible_values()
        .iter()
        .map(|value| (value.get_name().to_owned(), first_line(value.get_help())))
        .collect();
    if !fixed.is_empty() {
        return ("words value", fixed);
    }
    let place = || Place::of(line);
    match arg.get_id().as_str() {
        "jobs" | "job" => ("words job", place().map(|place| place.jobs(line, typed)).unwrap_or_default()),
        "labels" => ("words label", place().map(|place| place.labels(line)).unwrap_or_default()),
        "name" => ("words name", place().map(|place| place.names()).unwrap_or_default()),
        "reader" => ("words reader", place().map(|place| place.readers()).unwrap_or_default()),
        "owner" => ("words owner", place().map(|place| place.owners(line)).unwrap_or_default()),
        "signal" | "stop_signal" => ("words signal", signals()),
        "secret_env" => ("words variable", variables()),
        "stdin" => ("files", vec![("inherit".into(), "What outlive has".into())]),
        _ => match arg.get_value_hint() {
            ValueHint::DirPath => ("directories", Vec::new()),
            ValueHint::FilePath | ValueHint::AnyPath => ("files", Vec::new()),
            _ => ("words nothing", Vec::new()),
        },
    }
}

fn signals() -> Vec<Word> {
    let name = |signal: Signal| signal.as_str().trim_start_matches("SIG").to_owned();
    Signal::iterator().map(|signal| (name(signal), (signal as i32).to_string())).collect()
}

fn variables() -> Vec<Word> {
    let names: BTreeSet<String> =
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    names.into_iter().map(|name| (name, String::new())).collect()
}

/// The jobs of a state directory that is there and ours.
struct Place {
    observer: Observer,
    book: Book,
}

impl Place {
    fn of(line: &Line) -> Option<Self> {
        let dir = StateDir::resolve(line.state_dir.as_deref().map(typed_path)).ok()?;
        let mut book = match ledger::raw(&dir) {
            Ok(raw) => ledger::parse(&raw),
            Err(_) => Book::unreadable(String::new()),
        };
        let _ = lookup::add_by_files(&dir, &mut book, |_| {});
        Some(Self { observer: Observer::new(dir, false), book })
    }

    /// What is alive, and then what has ended, the newest first.
    fn assessed(&self) -> impl Iterator<Item = Assessed> {
        let (ended, open): (Vec<_>, Vec<_>) = self.book.jobs.iter().rev().partition(|entry| entry.is_over());
        let open: Vec<Assessed> =
            open.into_iter().filter_map(|entry| self.observer.glance(entry.launch.clone()).ok()).collect();
        let (just_ended, alive): (Vec<_>, Vec<_>) = open.into_iter().partition(|job| job.state().is_final());
        let ended = ended
            .into_iter()
            .filter_map(|entry| Some(self.observer.ended(entry.launch.clone(), entry.outcome.clone()?)));
        alive.into_iter().chain(just_ended).chain(ended)
    }

    fn jobs(&self, line: &Line, typed: &str) -> Vec<Word> {
        let command = line.command.get_name();
        let fitting = self.listed(line, typed, |state| fits(command, state));
        // Whoever waits for what has ended, or runs it again, has something to type, too.
        if fitting.is_empty() && matches!(command, "wait" | "restart") {
            return self.listed(line, typed, |_| true);
        }
        fitting
    }

    /// A job is offered by its name; by its id if it has none, if the name means a newer job, or if somebody types it.
    fn listed(&self, line: &Line, typed: &str, fits: impl Fn(State) -> bool) -> Vec<Word> {
        let names =
            self.book.jobs.iter().filter_map(|entry| Some((entry.launch.name.as_ref()?, &entry.launch.id)));
        let newest: HashMap<&String, &String> = names.collect();
        let mut words = Vec::new();
        let mut ended = 0;
        for job in self.assessed().filter(|job| fits(job.state())) {
            let Assessed { launch, .. } = &job;
            let name = launch.name.as_ref().filter(|name| newest.get(name) == Some(&&launch.id));
            let begins = |word: &String| word.starts_with(typed);
            let offered: Vec<&String> = match name {
                Some(name) if typed.is_empty() => vec![name],
                Some(name) => [name, &launch.id].into_iter().filter(|word| begins(word)).collect(),
                None => Some(&launch.id).into_iter().filter(|word| begins(word)).collect(),
            };
            if offered.is_empty()
                || line.given.contains(&launch.id)
                || name.is_some_and(|n| line.given.contains(n))
            {
                continue;
            }
            ended += usize::from(job.state().is_final());
            if ended > ENDED {
                break;
            }
            let description = self.describe(&job);
            words.extend(offered.into_iter().map(|word| (word.clone(), description.clone())));
        }
        words
    }

    fn describe(&self, job: &Assessed) -> String {
        let view = JobView::new(job, &self.observer);
        let text = format!("{}: {}", state_words(&view), command_line(&view.facts.argv));
        match text.char_indices().nth(WIDTH) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }

    fn labels(&self, line: &Line) -> Vec<Word> {
        let alive = matches!(line.command.get_name(), "stop" | "reap");
        let jobs = self.assessed().filter(|job| !alive || !job.state().is_final());
        let labels: BTreeSet<String> = jobs
            .flat_map(|job| job.launch.labels.into_iter().map(|(key, value)| format!("{key}={value}")))
            .filter(|label| !label.contains(char::is_control))
            .collect();
        labels.into_iter().map(|label| (label, String::new())).collect()
    }

    fn names(&self) -> Vec<Word> {
        let names: BTreeSet<&String> =
            self.book.jobs.iter().filter_map(|entry| entry.launch.name.as_ref()).collect();
        names.into_iter().map(|name| (name.clone(), String::new())).collect()
    }

    fn readers(&self) -> Vec<Word> {
        let entries = std::fs::read_dir(self.observer.dir.readers()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<Word> =
            names.filter(|name| check_name(name).is_ok()).map(|name| (name, String::new())).collect();
        names.sort();
        names
    }

    fn owners(&self, line: &Line) -> Vec<Word> {
        if line.command.get_name() != "ls" {
            return vec![("parent".into(), "The process that calls outlive".into())];
        }
        let pids: BTreeSet<i32> =
            self.book.jobs.iter().filter_map(|entry| entry.launch.owner.map(|owner| owner.pid)).collect();
        pids.into_iter().map(|pid| (pid.to_string(), String::new())).collect()
    }
}

/// Which jobs a command can do something about.
fn fits(command: &str, state: State) -> bool {
    match command {
        "stop" | "wait" | "restart" => !state.is_final() && state != State::Unknown,
        "pause" => state == State::Running,
        "resume" => state == State::Paused,
        "prune" => state.is_final(),
        _ => true,
    }
}

/// A shell has not expanded what is still being typed.
fn typed_path(word: &str) -> PathBuf {
    match (word.strip_prefix("~/"), crate::env::home()) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_offered_the_jobs_it_can_do_something_about() {
        let of = |command: &str| -> Vec<&str> {
            State::ALL.into_iter().filter(|&state| fits(command, state)).map(State::word).collect()
        };
        assert_eq!(of("stop"), ["starting", "running", "paused", "lingering", "orphaned"]);
        assert_eq!((of("pause"), of("resume")), (vec!["running"], vec!["paused"]));
        assert_eq!(of("prune"), ["exited", "stopped", "failed", "interrupted"]);
        assert_eq!(of("show").len(), State::ALL.len());
    }
}
