//! The commands, one file each: gather, decide, act, print.

pub mod complete;
pub mod doctor;
pub mod events;
pub mod logs;
pub mod ls;
pub mod pause;
pub mod prune;
pub mod reap;
pub mod restart;
pub mod run;
pub mod show;
pub mod stop;
pub mod wait;

use std::io::{IsTerminal, Write};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::assess::{Assessed, Observer};
use crate::cli::{Cli, Color, Command};
use crate::exit::{Exit, Refused};
use crate::ledger::{self, Book, Entry};
use crate::lookup;
use crate::paths::StateDir;
use crate::sys::spawn::Line;
use crate::words;

/// What every command is given.
#[derive(Debug)]
pub struct App {
    pub observer: Observer,
    pub json: bool,
    pub color: Color,
    /// The umask of the caller, which its commands are to have.
    pub umask: u32,
}

/// Runs the command that was asked for. `line` leads to a supervisor that was forked early, if one was.
pub fn dispatch(cli: Cli, umask: u32, line: Option<Line>) -> Result<Exit> {
    let dir = StateDir::resolve(cli.global.state_dir)?;
    let observer = Observer::new(dir, crate::env::sync()?);
    let app = App { observer, json: cli.global.json, color: cli.global.color, umask };
    match cli.command {
        Command::Run(args) => run::run(&app, *args, line),
        Command::Ls(args) => ls::ls(&app, &args),
        Command::Wait(args) => wait::wait(&app, &args),
        Command::Stop(args) => stop::stop(&app, &args),
        Command::Reap(args) => reap::reap(&app, &args),
        Command::Restart(args) => restart::restart(&app, &args),
        Command::Pause(args) => pause::pause(&app, &args),
        Command::Resume(args) => pause::resume(&app, &args),
        Command::Logs(args) => logs::logs(&app, &args),
        Command::Show(args) => show::show(&app, &args),
        Command::Events(args) => events::events(&app, &args),
        Command::Prune(args) => prune::prune(&app, &args),
        Command::Doctor => doctor::doctor(&app),
    }
}

impl App {
    pub fn dir(&self) -> &StateDir {
        &self.observer.dir
    }

    /// Every job the ledger knows, and if that lacks something, every job that has files. Damage is reported.
    pub fn book(&self) -> Result<Book> {
        let mut book = match ledger::read(self.dir()) {
            Ok(book) => book,
            // Never shown as an empty list.
            Err(error) => Book::unreadable(words::of(&error)),
        };
        if !book.damage.is_empty() {
            let damage = book.damage.join(", ");
            let said = match self.dir().ledger().display().to_string() {
                path if damage.contains(&path) => damage,
                path => format!("the ledger {path} is damaged: {damage}"),
            };
            notice!("{said}; nothing was changed, jobs are found by their files");
        }
        let missing = lookup::add_by_files(self.dir(), &mut book, |error| notice!("{}", words::of(error)))?;
        if missing > 0 && book.damage.is_empty() {
            let jobs = if missing == 1 { "1 job is".to_owned() } else { format!("{missing} jobs are") };
            notice!("{jobs} missing from the ledger and found by files ('outlive reap' records that)");
        }
        Ok(book)
    }

    /// Looks at every job, or at those that are not over.
    pub fn assess_all(&self, ended_too: bool) -> Result<Vec<Assessed>> {
        self.assess_book(self.book()?, ended_too)
    }

    pub fn assess_book(&self, book: Book, ended_too: bool) -> Result<Vec<Assessed>> {
        // A damaged ledger is told nothing in passing: it said that nothing was changed, and may be a newer one.
        let sound = book.damage.is_empty();
        let assess = |entry: Entry| match ended_too || !entry.is_over() {
            true => Some(self.assess_entry(entry, sound)).filter(|job| ended_too || !job.state().is_final()),
            false => None,
        };
        Ok(book.jobs.into_iter().filter_map(assess).collect())
    }

    /// `sound`: the ledger can be told what it does not know of it.
    pub fn assess_entry(&self, entry: Entry, sound: bool) -> Assessed {
        let over = entry.is_over();
        match entry.outcome {
            Some(outcome) if over => self.observer.ended(entry.launch, outcome),
            known => self.settled(entry.launch, known.is_none() && sound),
        }
    }

    /// One job that cannot be judged does not keep the others from being shown, nor does it vanish from among them.
    fn settled(&self, launch: Box<crate::job::Launch>, untold: bool) -> Assessed {
        let settled = self.observer.settle(launch.clone());
        let told =
            settled.and_then(|job| if untold { self.tell_ledger(&job).map(|()| job) } else { Ok(job) });
        told.unwrap_or_else(|error| {
            notice!("cannot judge job {}: {}", launch.id, words::of(&error));
            Assessed::unjudged(launch)
        })
    }

    /// A supervisor that was killed between sidecar and ledger has told only the first of the two.
    fn tell_ledger(&self, job: &Assessed) -> Result<()> {
        let Some(outcome) = job.outcome.as_ref().filter(|_| !job.judgement.supervised) else { return Ok(()) };
        let same = self.observer.ended(job.launch.clone(), outcome.clone());
        match self.observer.tell_ledger(same) {
            Err(error) if crate::assess::cannot_write(&error) => Ok(()),
            told => told.map(drop),
        }
    }

    /// Whether this process belongs to the job: who asks for its end, and for something then, does not live to do it.
    pub fn is_inside(&self, job: &Assessed) -> bool {
        // Processes that cannot be seen cannot be told from strangers.
        let members = show::processes(self, job).unwrap_or_default();
        members.iter().any(|stat| u32::try_from(stat.pid) == Ok(std::process::id()))
    }

    /// Does `act` for each job that `words` name. A bad one is reported and does not keep the others from it.
    pub fn each<T>(
        &self,
        words: &[String],
        mut act: impl FnMut(Box<crate::job::Launch>) -> Result<T>,
    ) -> (Vec<T>, Exit) {
        let mut done = Vec::new();
        let mut exit = Exit::Done;
        for word in words {
            match lookup::find(self.dir(), word).and_then(&mut act) {
                Ok(value) => done.push(value),
                Err(error) => {
                    notice!("{}", words::of(&error));
                    exit = exit.first(exit_of(&error));
                }
            }
        }
        (done, exit)
    }
}

/// The status that an error ends a command with.
pub fn exit_of(error: &anyhow::Error) -> Exit {
    if error.is::<Refused>() { Exit::NotDone } else { Exit::Failed }
}

/// Prints one JSON value and a newline.
pub fn print_json<T: Serialize + ?Sized>(value: &T) -> Result<()> {
    let mut text = serde_json::to_vec(value).context("cannot encode JSON")?;
    text.push(b'\n');
    print_data(&text).map(drop)
}

/// Prints JSON that was encoded already. On a terminal nothing in it is obeyed.
pub fn print_data(text: &[u8]) -> Result<bool> {
    if std::io::stdout().is_terminal() { print_all(&words::printable_json(text)) } else { print_all(text) }
}

/// A JSON array that is printed as its elements come: there may be very many.
#[derive(Debug)]
pub struct JsonArray {
    text: Vec<u8>,
    any: bool,
    terminal: bool,
}

impl JsonArray {
    /// How much is printed at a time.
    const BLOCK: usize = 64 * 1024;

    pub fn begin() -> Self {
        let mut text = Vec::with_capacity(Self::BLOCK * 2);
        text.push(b'[');
        Self { text, any: false, terminal: std::io::stdout().is_terminal() }
    }

    pub fn add(&mut self, value: &impl Serialize) -> Result<bool> {
        self.separate();
        serde_json::to_writer(&mut self.text, value).context("cannot encode JSON")?;
        self.pass_on()
    }

    /// An element that was encoded already.
    pub fn add_text(&mut self, text: &[u8]) -> Result<bool> {
        self.separate();
        self.text.extend_from_slice(text);
        self.pass_on()
    }

    fn separate(&mut self) {
        if std::mem::replace(&mut self.any, true) {
            self.text.push(b',');
        }
    }

    /// False if the reader has gone away.
    fn pass_on(&mut self) -> Result<bool> {
        // A terminal gets it as a whole, when it is known to be harmless.
        if self.terminal || self.text.len() < Self::BLOCK {
            return Ok(true);
        }
        let read = print_all(&self.text)?;
        self.text.clear();
        Ok(read)
    }

    pub fn end(mut self) -> Result<()> {
        self.text.extend_from_slice(b"]\n");
        print_data(&self.text).map(drop)
    }
}

/// Writes to stdout. A reader that has gone away is no error: there is nobody left to tell.
pub fn print(text: &[u8]) -> Result<()> {
    print_all(text).map(drop)
}

/// The same for whoever goes on printing: false if the reader has gone away.
pub fn print_all(text: &[u8]) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    written(out.write_all(text).and_then(|()| out.flush()))
}

/// What became of something that was written to stdout.
pub fn written(result: std::io::Result<()>) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        // What is closed is refused as if it were full, see `sys::start`; neither has to do with the state directory.
        Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
            bail!("cannot write to stdout: it is closed, or the disk that it leads to is full")
        }
        Err(error) => Err(error).context("cannot write to stdout"),
    }
}

/// Whether a job carries all of these labels.
pub fn labelled(launch: &crate::job::Launch, labels: &[(String, String)]) -> bool {
    labels.iter().all(|(key, value)| launch.labels.get(key) == Some(value))
}

/// Says that these labels are on no job at all: one of them may be mistyped.
pub fn tell_unlabelled(book: &Book, labels: &[(String, String)]) {
    if labels.is_empty() || book.jobs.iter().any(|entry| labelled(&entry.launch, labels)) {
        return;
    }
    let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let label = if pairs.len() == 1 { "label" } else { "labels" };
    notice!("no job has the {label} {}", pairs.join(", "));
}

/// A line on a terminal that says how far long work has come; nothing when stderr is piped.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    total: usize,
    shown: bool,
}

impl Progress {
    pub fn new(what: &'static str, total: usize) -> Self {
        Self { what, total, shown: total > 1 && std::io::stderr().is_terminal() }
    }

    pub fn show(&self, done: usize) {
        if self.shown {
            tell!("\r\x1b[K{} {} of {}", self.what, done + 1, self.total);
        }
    }

    pub fn clear(&self) {
        if self.shown {
            tell!("\r\x1b[K");
        }
    }
}
