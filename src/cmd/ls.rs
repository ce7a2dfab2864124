//! `ls`: list jobs, each judged afresh.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::time::{Duration, SystemTime};

use anyhow::Result;

use super::{App, JsonArray};
use crate::assess::Assessed;
use crate::cli::Ls;
use crate::exit::Exit;
use crate::ledger::{self, Entry};
use crate::listing::{self, Listed, Listing};
use crate::lookup;
use crate::paths::StateDir;
use crate::sys::clock;
use crate::table::{self, Style};
use crate::units::show_duration;
use crate::view::{JobView, command_line, state_words};
use crate::words;

/// How often a live table is drawn again.
const REDRAW: Duration = Duration::from_secs(1);

pub fn ls(app: &App, args: &Ls) -> Result<Exit> {
    if !args.watch {
        return once(app, args);
    }
    if app.json || !std::io::stdout().is_terminal() {
        notice!("--watch draws on a terminal (for a program: outlive events --follow)");
        return Ok(Exit::Usage);
    }
    loop {
        super::print(b"\x1b[H\x1b[2J")?;
        once(app, args)?;
        std::thread::sleep(REDRAW);
    }
}

fn once(app: &App, args: &Ls) -> Result<Exit> {
    let filtered =
        !(args.jobs.is_empty() && args.labels.is_empty() && args.state.is_empty() && args.owner.is_none());
    let all_as_json = args.all && app.json && !filtered;
    if all_as_json && let Some(listing) = Listing::open(&app.observer) {
        return print_listing(app, listing);
    }
    let ended_too = args.all || !args.state.is_empty() || !args.jobs.is_empty();
    let mut exit = Exit::Done;
    let book = app.book()?;
    let lines = book.lines;
    let sound = book.damage.is_empty() && !book.incomplete;
    if !args.quiet && !app.json {
        super::tell_unlabelled(&book, &args.labels);
    }
    let all = app.assess_book(book, true)?;
    let mut wanted = Vec::new();
    for word in &args.jobs {
        match lookup::find(app.dir(), word) {
            Ok(launch) => wanted.push(launch.id),
            Err(error) => {
                notice!("{}", words::of(&error));
                exit = exit.first(super::exit_of(&error));
            }
        }
    }
    let fits = |job: &Assessed| {
        (args.jobs.is_empty() || wanted.contains(&job.launch.id))
            && super::labelled(&job.launch, &args.labels)
            && (args.state.is_empty() || args.state.contains(&job.state()))
            && args.owner.is_none_or(|pid| job.launch.owner.is_some_and(|owner| owner.pid == pid))
    };
    let (shown, hidden): (Vec<Assessed>, Vec<Assessed>) = if ended_too {
        // In place: there may be very many.
        (all.into_iter().filter(fits).collect(), Vec::new())
    } else {
        all.into_iter().filter(fits).partition(|job| !job.state().is_final())
    };
    if args.all {
        tidy(app, lines, shown.len());
    }
    if app.json {
        let mut array = JsonArray::begin();
        for job in shown {
            if !array.add(&JobView::of(job, &app.observer))? {
                break;
            }
        }
        array.end()?;
        if all_as_json && sound && listing::worth_keeping(lines, lines) {
            listing::keep(&app.observer);
        }
    } else if args.quiet {
        let ids: String = shown.iter().map(|job| format!("{}\n", job.launch.id)).collect();
        super::print(ids.as_bytes())?;
    } else {
        print_table(app, &shown)?;
        tell_hidden(&hidden, (shown.is_empty() && !filtered).then(|| app.dir()));
    }
    Ok(exit)
}

/// The same as for every job by itself.
fn print_listing(app: &App, listing: Listing) -> Result<Exit> {
    let Listing { read, lines, jobs, .. } = listing;
    let tidied = tidy(app, lines, jobs);
    // Before anything is printed: what nobody saw end is recorded, even if the reader goes away.
    let looked_at = |entry: &Entry| {
        let job = app.assess_entry(entry.clone(), true);
        (entry.launch.id.clone(), JobView::of(job, &app.observer))
    };
    let views: HashMap<String, JobView> = listing.entries().iter().map(looked_at).collect();
    let mut array = JsonArray::begin();
    listing.each(|job| match job {
        Listed::Over(text) => array.add_text(text),
        Listed::Entry(entry) => array.add(&views.get(&entry.launch.id)),
    })?;
    array.end()?;
    if tidied || listing::worth_keeping(read, lines) {
        listing::keep(&app.observer);
    }
    Ok(Exit::Done)
}

fn print_table(app: &App, jobs: &[Assessed]) -> Result<()> {
    if jobs.is_empty() {
        return Ok(());
    }
    let row = |job: &Assessed| {
        let view = JobView::new(job, &app.observer);
        vec![
            view.facts.id.clone(),
            view.facts.name.clone().unwrap_or_else(|| "-".to_owned()),
            state_words(&view),
            view.facts.pid.to_string(),
            view.facts.duration_ms.map_or_else(|| "-".to_owned(), show_duration),
            ago(&view.facts.started_at),
            command_line(&view.facts.argv),
        ]
    };
    let rows: Vec<Vec<String>> = jobs.iter().map(row).collect();
    let style = Style::of_stdout(app.color);
    super::print(
        table::render(&["ID", "NAME", "STATE", "PID", "TIME", "STARTED", "COMMAND"], &rows, style).as_bytes(),
    )
}

/// Says how many ended jobs are not shown, so that nothing seems to have vanished.
fn tell_hidden(hidden: &[Assessed], nothing_in: Option<&StateDir>) {
    let newest =
        hidden.iter().filter_map(|job| job.outcome.as_ref()).map(|outcome| outcome.at.as_str()).max();
    match (newest, hidden.len()) {
        (Some(at), 1) => {
            notice!("1 ended job is not shown; it ended {} (see 'outlive ls --all')", ago(at))
        }
        (Some(at), count) => {
            notice!("{count} ended jobs are not shown; the newest ended {} (see 'outlive ls --all')", ago(at))
        }
        (None, _) => {
            if let Some(dir) = nothing_in {
                notice!("no jobs in {} (start one: outlive run -- COMMAND)", dir.path().display());
            }
        }
    }
}

/// Folds the ledger where that saves much; whether it did. Best effort: a listing does not fail for it.
fn tidy(app: &App, lines: usize, jobs: usize) -> bool {
    let worth = ledger::worth_compacting(lines, jobs);
    let compact = || ledger::compact(app.dir(), super::events::slowest_reader(app.dir()), app.observer.sync);
    worth && compact().is_ok_and(|saved| saved > 0)
}

/// `3m20s ago`, from an RFC 3339 time.
pub fn ago(at: &str) -> String {
    let since = |then: SystemTime| clock::wall().duration_since(then).unwrap_or(Duration::ZERO);
    match humantime::parse_rfc3339_weak(at) {
        Ok(then) => format!("{} ago", show_duration(super::run::millis(since(then)))),
        Err(_) => at.to_owned(),
    }
}
