//! `show`: everything known about one job, and how it is known.

use anyhow::Result;

use super::App;
use crate::cli::Show;
use crate::exit::Exit;
use crate::lookup;
use crate::units::{show_duration, show_size};
use crate::view::{JobView, command_line, state_words};

pub fn show(app: &App, args: &Show) -> Result<Exit> {
    let job = app.observer.settle(lookup::find(app.dir(), &args.job)?)?;
    let view = JobView::new(&job, &app.observer);
    if app.json {
        super::print_json(&view)?;
        return Ok(Exit::Done);
    }
    let mut lines = vec![
        (
            "job",
            format!("{}{}", view.id, view.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default()),
        ),
        ("state", state_words(&view)),
        ("known by", job.judgement.why.to_owned()),
        ("identity", view.identity.to_owned()),
        ("run", view.run.to_string()),
        ("command", command_line(&view.argv)),
        ("directory", view.cwd.display()),
        ("process", format!("pid {} pgid {} sid {}", view.pid, view.pgid, view.sid)),
        (
            "supervisor",
            format!(
                "pid {}{}",
                view.supervisor.pid,
                if view.supervisor.alive == Some(true) { "" } else { " (gone)" }
            ),
        ),
        ("started", view.started_at.clone()),
    ];
    if let Some(at) = &view.ended_at {
        lines.push(("ended", at.clone()));
    }
    if let Some(ms) = view.duration_ms {
        lines.push(("lasted", show_duration(ms)));
    }
    if let Some(reason) = &view.reason {
        lines.push(("reason", reason.clone()));
    }
    if let Some(owner) = &view.owner {
        let alive = match owner.alive {
            Some(true) => "alive",
            Some(false) => "gone",
            None => "cannot be judged from here",
        };
        lines.push(("owner", format!("pid {} ({alive})", owner.pid)));
    }
    for (key, value) in &view.labels {
        lines.push(("label", format!("{key}={value}")));
    }
    let size = view.output.bytes.map_or_else(|| "gone".to_owned(), show_size);
    lines.push(("output", format!("{} ({size}, {})", view.output.path.display(), view.output.status)));
    let text: String = lines.iter().map(|(key, value)| format!("{key:<11} {value}\n")).collect();
    super::print(text.as_bytes())?;
    Ok(Exit::Done)
}
