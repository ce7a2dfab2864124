//! `show`: everything known about one job, and how it is known.

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

use super::App;
use crate::assess::Assessed;
use crate::cli::Show;
use crate::exit::Exit;
use crate::job::{Launch, Outcome};
use crate::ledger;
use crate::lookup;
use crate::members;
use crate::store::{self, Sidecar};
use crate::sys::clock::ticks_per_second;
use crate::sys::proc::{self, Stat};
use crate::sys::{Ability, can};
use crate::units::{show_duration, show_size};
use crate::view::{JobView, command_line, state_words};
use crate::words::{printable, printable_lines};

/// How many lines of output are shown.
const LAST_LINES: usize = 5;

/// The job object, and what only `show` tells.
#[derive(Serialize)]
struct Whole {
    #[serde(flatten)]
    job: JobView,
    known_by: &'static str,
    /// How the command of `--on-exit` ended, or why it was not started.
    on_exit: Option<String>,
    runs: Vec<RunView>,
    processes: Vec<ProcessRow>,
}

#[derive(Serialize)]
struct RunView {
    run: u32,
    started_at: String,
    #[serde(flatten)]
    outcome: Option<Outcome>,
}

#[derive(Serialize)]
struct ProcessRow {
    pid: i32,
    ppid: i32,
    pgid: i32,
    sid: i32,
    /// One letter, see proc_pid_stat(5).
    kernel_state: String,
    cpu_ms: u64,
    rss_bytes: u64,
    command: String,
}

pub fn show(app: &App, args: &Show) -> Result<Exit> {
    let job = app.observer.settle(lookup::find(app.dir(), &args.job)?)?;
    let whole = Whole {
        job: JobView::new(&job, &app.observer),
        known_by: job.judgement.why,
        on_exit: on_exit(app, &job.launch),
        runs: runs(app, &job)?,
        processes: processes(app, &job)?.iter().map(row).collect(),
    };
    if app.json {
        super::print_json(&whole)?;
        return Ok(Exit::Done);
    }
    let line = |(key, value): &(&str, String)| format!("{key:<11} {}\n", printable(value));
    let mut text: String = facts(&whole).iter().map(line).collect();
    if let Ok(lines) = crate::output::last_lines(&job.launch, LAST_LINES)
        && !lines.is_empty()
    {
        text.push_str("last lines:\n");
        text.push_str(&printable_lines(&lines));
    }
    super::print(text.as_bytes())?;
    Ok(Exit::Done)
}

/// What the ledger tells of the command that this run had for its end.
fn on_exit(app: &App, launch: &Launch) -> Option<String> {
    launch.options.on_exit.as_ref()?;
    let raw = ledger::raw(app.dir()).ok()?;
    let notes =
        raw.rsplit(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let ours =
        |note: &Value| note["kind"] == "on-exit" && note["id"] == launch.id && note["run"] == launch.run;
    notes.into_iter().find(ours)?["detail"].as_str().map(str::to_owned)
}

fn runs(app: &App, job: &Assessed) -> Result<Vec<RunView>> {
    let dir = app.dir().job(job.id());
    let mut runs = Vec::new();
    for run in dir.runs() {
        let Some(launch) = store::read_launch(&dir.run(run))? else { continue };
        let sidecar = crate::fs::open_regular(&dir.run(run).exit())
            .and_then(|file| Sidecar::read(&file))
            .unwrap_or_default();
        runs.push(RunView {
            run,
            started_at: launch.at,
            outcome: sidecar.outcome.filter(|_| sidecar.committed),
        });
    }
    Ok(runs)
}

/// What is alive of the job now, as far as it can be told.
pub fn processes(app: &App, job: &Assessed) -> std::io::Result<Vec<Stat>> {
    if !job.judgement.supervised || job.launch.adopted {
        return if job.state().is_final() { Ok(Vec::new()) } else { living(app, job) };
    }
    app.observer.descendants(&job.launch)
}

fn living(app: &App, job: &Assessed) -> std::io::Result<Vec<Stat>> {
    Ok(if job.judgement.may_signal() {
        app.observer.provable(&job.launch, members::Bearer::Leader)?.proven
    } else {
        Vec::new()
    })
}

fn row(stat: &Stat) -> ProcessRow {
    let argv: Vec<_> = proc::cmdline(stat.pid)
        .ok()
        .flatten()
        .unwrap_or_default()
        .into_iter()
        .map(crate::bytes::Bytes)
        .collect();
    let name = || {
        let name = String::from_utf8_lossy(&stat.comm);
        // Where command lines are no lists, they are names.
        if can(Ability::CommandLines) { format!("[{name}]") } else { name.into_owned() }
    };
    ProcessRow {
        pid: stat.pid,
        ppid: stat.ppid,
        pgid: stat.pgid,
        sid: stat.sid,
        kernel_state: char::from(stat.state).to_string(),
        cpu_ms: stat.cpu_ticks * 1000 / ticks_per_second(),
        rss_bytes: stat.rss_bytes,
        command: if argv.is_empty() { name() } else { command_line(&argv) },
    }
}

/// What a person is told, line by line.
fn facts(whole: &Whole) -> Vec<(&'static str, String)> {
    let JobView { facts: view, now, .. } = &whole.job;
    let name = view.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let supervisor = if view.supervisor.alive == Some(true) { "" } else { " (gone)" };
    let mut lines = vec![
        ("job", format!("{}{name}", view.id)),
        ("state", state_words(&whole.job)),
        ("known by", whole.known_by.to_owned()),
        ("identity", now.identity.to_owned()),
        ("run", view.run.to_string()),
        ("command", command_line(&view.argv)),
        ("directory", view.cwd.display()),
        ("process", format!("pid {} pgid {} sid {}", view.pid, view.pgid, view.sid)),
        ("supervisor", format!("pid {}{supervisor}", view.supervisor.pid)),
        ("started", view.started_at.clone()),
    ];
    lines.extend(view.ended_at.clone().map(|at| ("ended", at)));
    lines.extend(view.duration_ms.map(|ms| ("lasted", show_duration(ms))));
    lines.extend(whole.on_exit.clone().map(|how| ("on exit", how)));
    lines.extend(view.reason.clone().map(|reason| ("reason", reason)));
    if let Some(owner) = &now.owner {
        let alive = match owner.alive {
            Some(true) => "alive",
            Some(false) => "gone",
            None => "cannot be judged from here",
        };
        lines.push(("owner", format!("pid {} ({alive})", owner.pid)));
    }
    lines.extend(view.labels.iter().map(|(key, value)| ("label", format!("{key}={value}"))));
    let size = match crate::output::not_a_file(now.output.path.as_path()) {
        Some(what) => what.to_owned(),
        None => now.output.bytes.map_or_else(|| "gone".to_owned(), show_size),
    };
    lines.push(("output", format!("{} ({size}, {})", now.output.path.display(), now.output.status)));
    let earlier = whole.runs.iter().filter(|run| run.run != view.run);
    lines.extend(
        earlier
            .map(|run| ("earlier run", format!("{} started {}{}", run.run, run.started_at, end_words(run)))),
    );
    let process = |row: &ProcessRow| {
        let ProcessRow { pid, kernel_state, cpu_ms, rss_bytes, command, .. } = row;
        (
            "alive",
            format!(
                "{pid} {kernel_state} cpu {} memory {} {command}",
                show_duration(*cpu_ms),
                show_size(*rss_bytes)
            ),
        )
    };
    lines.extend(whole.processes.iter().map(process));
    lines
}

fn end_words(run: &RunView) -> String {
    let Some(outcome) = &run.outcome else { return String::new() };
    let how = match (outcome.exit_code, outcome.signal) {
        (Some(code), _) => format!(" {code}"),
        (None, Some(signal)) => format!(" {}", crate::units::signal_name(signal)),
        (None, None) => String::new(),
    };
    format!(", {}{how}", crate::state::State::from(outcome.state).word())
}
