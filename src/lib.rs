//! outlive: `nohup` for people who have to know how it ended.
//!
//! A command is a file below [`cmd`]: it gathers, decides, acts and prints. Deciding is pure: [`job`] (what is
//! recorded), [`state`] (who is it, what state is it in), [`members`] (which processes belong to a job), [`exit`]
//! and [`table`]. Acting goes through [`store`] and [`ledger`] (files), [`steer`], [`helper`] and [`teardown`]
//! (processes) and [`launch`], whose other half is [`supervisor`]. What is not POSIX is below [`sys`].

#![deny(unsafe_code)]

#[macro_use]
mod notice;

pub mod adopt;
pub mod assess;
pub mod brief;
pub mod bytes;
pub mod cli;
pub mod cmd;
pub mod complete;
pub mod control;
pub mod env;
pub mod environment;
pub mod exit;
pub mod fs;
pub mod helper;
pub mod job;
pub mod launch;
pub mod ledger;
pub mod listing;
pub mod lookup;
pub mod members;
pub mod output;
pub mod paths;
pub mod plan;
pub mod ready;
pub mod state;
pub mod steer;
pub mod store;
pub mod supervisor;
#[allow(unsafe_code, reason = "this is where it is; each has its proof")]
pub mod sys;
pub mod table;
pub mod teardown;
pub mod units;
pub mod usage;
pub mod view;
pub mod waiting;
pub mod words;

use std::io::Write;

use crate::exit::Exit;
use crate::sys::spawn::{self, Line};

/// The word by which this program is executed as a supervisor.
pub const SUPERVISE: &str = "outlive:supervise";

/// The whole program. A launch forks its supervisor before anything else is touched, so that the supervisor keeps
/// no more memory than a bare program does.
pub fn run() -> u8 {
    match early() {
        Early::Done => 0,
        Early::Command(line) => command(line).code(),
    }
}

enum Early {
    Done,
    /// With the line to a supervisor, if a launch is coming.
    Command(Option<Line>),
}

/// What is decided before anything is parsed: whether this is a supervisor, a helper, or a launch to come.
fn early() -> Early {
    let mut words = std::env::args_os().skip(1);
    let Some(first) = words.next() else { return Early::Command(None) };
    if first == SUPERVISE {
        let _ = supervisor::serve();
        return Early::Done;
    }
    if first == helper::HELPER {
        let _ = helper::help();
        return Early::Done;
    }
    if first == cmd::complete::COMPLETE {
        cmd::complete::complete(words);
        return Early::Done;
    }
    let launches =
        std::iter::once(first).chain(words).take_while(|word| word != "--").any(|word| word == "run");
    if !launches {
        return Early::Command(None);
    }
    match spawn::fork_with_line() {
        Ok(Some(line)) => Early::Command(Some(line)),
        Ok(None) => {
            let _ = supervisor::serve();
            Early::Done
        }
        // Tried again, and reported, where a supervisor is needed.
        Err(_) => Early::Command(None),
    }
}

fn command(line: Option<Line>) -> Exit {
    sys::start::hear_of_children();
    // Files are 0600 and directories 0700, whatever the caller's umask.
    let caller_umask = sys::umask(0o077);
    if std::env::args_os().skip(1).eq(["help", "agents"]) {
        return told(cmd::print(include_bytes!("../docs/agents.md")));
    }
    let cli = match cli::Cli::from_words(&std::env::args_os().collect::<Vec<_>>()) {
        Ok(cli) => cli,
        Err(error) => {
            return misused(&error);
        }
    };
    let own_status = matches!(cli.command, cli::Command::Run(_) | cli::Command::Wait(_));
    match cmd::dispatch(cli, caller_umask, line) {
        Ok(exit) => exit,
        Err(error) => {
            notice!("{}", words::of(&error));
            if own_status { Exit::Failed } else { cmd::exit_of(&error) }
        }
    }
}

/// What was asked for is only told if it could be written.
fn told(printed: anyhow::Result<()>) -> Exit {
    match printed {
        Ok(()) => Exit::Done,
        Err(error) => {
            notice!("{}", words::of(&error));
            cmd::exit_of(&error)
        }
    }
}

/// Help was asked for, or the words make no sense.
fn misused(error: &clap::Error) -> Exit {
    let given = || std::env::args_os().skip(1);
    if !error.use_stderr() {
        return told(cmd::written(error.print().and_then(|()| std::io::stdout().flush())).map(drop));
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
    } else {
        let command = usage::command_word(given());
        let command = command.as_ref().and_then(|word| word.to_str());
        notice!("{}", usage::words(error, command));
    }
    usage::exit(given())
}
