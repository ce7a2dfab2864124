//! `reap`: settle what ended unseen, stop what nobody owns any more, clear the debris of broken launches.
//!
//! A plan is made first, as data; `--dry-run` prints it, otherwise it is carried out. What is owned, recycled or
//! unverified is never touched.

use anyhow::Result;

use super::{App, Progress};
use crate::adopt;
use crate::assess::alive;
use crate::cli::{Orphans, Reap};
use crate::exit::Exit;
use crate::fs::{self, RunLock};
use crate::job::{Cause, OnOwnerExit};
use crate::ledger::{self, Book, Patience, Record};
use crate::paths::{JobDir, RunDir};
use crate::state::State;
use crate::steer::{self, Stop};
use crate::store::{self, Sidecar};
use crate::view::{JobView, SCHEMA};
use crate::words;

/// How long a launcher may take from a job's directory to the sidecar of its run.
const LAUNCH_TIME: std::time::Duration = std::time::Duration::from_secs(60);

/// What is to be done about one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Settle,
    StopOrphan,
    StopOwnerless,
    Adopt,
    Keep,
    LeaveAlone,
    Nothing,
}

/// The pure part. `unseen`: its end was recorded by nobody before us.
pub fn decide(
    state: State,
    unseen: bool,
    owner_gone: bool,
    on_owner_exit: OnOwnerExit,
    supervised: bool,
    orphans: Orphans,
) -> Action {
    let ownerless = owner_gone && on_owner_exit != OnOwnerExit::Keep;
    match state {
        State::Exited | State::Stopped | State::Failed | State::Interrupted => {
            if unseen {
                Action::Settle
            } else {
                Action::Nothing
            }
        }
        State::Unknown => Action::LeaveAlone,
        State::Orphaned => {
            if ownerless {
                Action::StopOwnerless
            } else {
                orphan(orphans)
            }
        }
        // Its end is recorded, and there is no leader to be adopted.
        State::Lingering if !supervised && orphans == Orphans::Adopt => Action::Keep,
        State::Lingering if !supervised => orphan(orphans),
        State::Starting | State::Running | State::Paused | State::Lingering => {
            if ownerless {
                Action::StopOwnerless
            } else {
                Action::Nothing
            }
        }
    }
}

fn orphan(orphans: Orphans) -> Action {
    match orphans {
        Orphans::Stop => Action::StopOrphan,
        Orphans::Adopt => Action::Adopt,
        Orphans::Keep => Action::Keep,
    }
}

pub fn reap(app: &App, args: &Reap) -> Result<Exit> {
    let mut views = Vec::new();
    let mut exit = Exit::Done;
    if args.labels.is_empty() {
        recover(app, args.dry_run)?;
    }
    let book = app.book()?;
    if !app.json {
        super::tell_unlabelled(&book, &args.labels);
    }
    let mut open = book.jobs;
    open.retain(|entry| super::labelled(&entry.launch, &args.labels) && !entry.is_over());
    let progress = Progress::new("reaping", open.len());
    for (done, entry) in open.into_iter().enumerate() {
        progress.show(done);
        let unseen = entry.outcome.is_none();
        let id = entry.launch.id.clone();
        match one(app, args, entry.launch, unseen) {
            Ok(Some((view, done))) => {
                if !app.json {
                    progress.clear();
                    super::print(line(&view, args.dry_run).as_bytes())?;
                }
                exit = exit.first(done);
                views.push(serde_json::to_value(view)?);
            }
            Ok(None) => {}
            Err(error) => {
                notice!("cannot reap job {id}: {}", words::of(&error));
                exit = exit.first(Exit::NotDone);
            }
        }
    }
    progress.clear();
    let (cleared, all) =
        if args.labels.is_empty() { debris(app, args.dry_run)? } else { (Vec::new(), Exit::Done) };
    exit = exit.first(all);
    for (id, reason) in cleared {
        if app.json {
            views.push(
                serde_json::json!({ "schema": SCHEMA, "id": id, "action": "cleared", "reason": reason }),
            );
        } else {
            let would = if args.dry_run { "would be " } else { "" };
            super::print(format!("{id}: {would}cleared: {reason}\n").as_bytes())?;
        }
    }
    if app.json {
        super::print_json(&views)?;
    }
    Ok(exit)
}

fn one(
    app: &App,
    args: &Reap,
    launch: Box<crate::job::Launch>,
    unseen: bool,
) -> Result<Option<(JobView, Exit)>> {
    let observer = &app.observer;
    let job = observer.assess(launch)?;
    let comparable = job.launch.identity.place.comparable(observer.here());
    let owner_gone = job.launch.owner.is_some_and(|owner| alive(owner, comparable) == Some(false));
    let action = decide(
        job.state(),
        unseen,
        owner_gone,
        job.launch.on_owner_exit,
        job.judgement.supervised,
        args.orphans,
    );
    let why = match (action, job.judgement.cause) {
        (Action::StopOwnerless, _) => "its owner is gone".to_owned(),
        _ => job.judgement.why.to_owned(),
    };
    let (word, job, exit) = match action {
        Action::Nothing => return Ok(None),
        Action::Keep => ("kept", job, Exit::Done),
        Action::LeaveAlone => ("left-alone", job, Exit::Done),
        Action::Adopt if args.dry_run => ("adopted", job, Exit::Done),
        Action::Adopt => ("adopted", adopt::adopt(observer, job)?, Exit::Done),
        Action::Settle if args.dry_run => ("settled", job, Exit::Done),
        Action::StopOrphan | Action::StopOwnerless if args.dry_run => ("stopped", job, Exit::Done),
        Action::Settle => match observer.tell_ledger(job)? {
            Some(job) => ("settled", job, Exit::Done),
            None => return Ok(None),
        },
        Action::StopOrphan | Action::StopOwnerless => {
            let cause = if action == Action::StopOwnerless { Cause::OwnerGone } else { Cause::Orphan };
            let stopped = steer::ask(observer, job.launch, Stop { signal: None, grace: None, cause })?
                .wait(observer)?;
            let exit = super::stop::report(&stopped);
            ("stopped", stopped.job, exit)
        }
    };
    let mut view = JobView { action: Some(word), ..JobView::new(&job, observer) };
    view.facts.reason = Some(why);
    Ok(Some((view, exit)))
}

/// Jobs that have their files but no record in the ledger are told to it again.
fn recover(app: &App, dry_run: bool) -> Result<()> {
    let book = ledger::read(app.dir())?;
    for id in store::ids(app.dir())? {
        if book.job(&id).is_some() || book.forgotten.contains(&id) {
            continue;
        }
        if let Err(error) = recover_one(app, &id, dry_run) {
            notice!("cannot recover job {id}: {}", words::of(&error));
        }
    }
    Ok(())
}

fn recover_one(app: &App, id: &str, dry_run: bool) -> Result<()> {
    let (Some(launch), _) = store::latest_launch(app.dir(), id)? else { return Ok(()) };
    // A launch that is under way right now will be in the ledger in a moment.
    if app.observer.assess(launch.clone())?.state() == State::Starting {
        return Ok(());
    }
    let _op = app.observer.op(id)?;
    let now = ledger::read(app.dir())?;
    if now.job(id).is_some() || now.forgotten.contains(id) {
        return Ok(());
    }
    notice!("job {id} was missing from the ledger; found by its files");
    if !dry_run {
        let record = Record::Launched(launch);
        ledger::append(app.dir(), &[record], Patience::Command, app.observer.sync)?;
    }
    Ok(())
}

/// Clears jobs that were never launched (no launch record, and locks that nobody holds but us), and what a prune
/// that was broken off has left. Returns their ids and why. One that cannot be cleared does not keep the others from it.
fn debris(app: &App, dry_run: bool) -> Result<(Vec<(String, &'static str)>, Exit)> {
    let book = ledger::read(app.dir())?;
    let (mut cleared, mut exit) = (Vec::new(), Exit::Done);
    if !dry_run {
        fs::remove_hidden(&app.dir().jobs());
    }
    for id in store::ids(app.dir())? {
        let job = app.dir().job(&id);
        let pruned = book.forgotten.contains(&id);
        if book.job(&id).is_some() || (!pruned && may_have_run(&book, &job)) {
            continue;
        }
        // Held until the directory is gone: a launcher that comes upon our lock begins anew elsewhere.
        let claims: Vec<Claim> =
            job.runs().into_iter().map(|run| claim(&job.run(run))).collect::<Result<_>>()?;
        let sidecars = claims.iter().any(|claim| matches!(claim, Claim::Ours(_)));
        if claims.iter().any(|claim| matches!(claim, Claim::Held)) || (!sidecars && !pruned && young(&job.0))
        {
            continue;
        }
        if !dry_run && let Err(error) = store::delete(app.dir(), &id) {
            notice!("cannot clear what is left of job {id}: {}", words::of(&error));
            exit = Exit::NotDone;
            continue;
        }
        let why = if pruned {
            "it was pruned, and the deletion was broken off"
        } else {
            "the launch was broken off, and nothing had been executed"
        };
        cleared.push((id, why));
    }
    Ok((cleared, exit))
}

/// Whether a directory that the ledger does not know may be all that is left of a job. A record that cannot be read
/// says no more than that there was one: if the ledger is damaged too, that may be where it was.
fn may_have_run(book: &Book, job: &JobDir) -> bool {
    job.runs().into_iter().map(|run| job.run(run)).any(|run| {
        let readable = !matches!(store::read_launch(&run), Ok(None));
        let torn = run.launch().symlink_metadata().is_ok() && !book.damage.is_empty();
        let begun =
            fs::open_regular(&run.exit()).and_then(|file| Sidecar::read(&file)).is_ok_and(|sidecar| {
                sidecar.executed || sidecar.outcome.is_some_and(|end| end.executed != Some(false))
            });
        readable || torn || begun
    })
}

/// A directory without a sidecar may belong to a launcher that is about to make one.
fn young(path: &std::path::Path) -> bool {
    let age = || std::fs::metadata(path).ok()?.modified().ok()?.elapsed().ok();
    age().is_none_or(|age| age < LAUNCH_TIME)
}

/// Whether a run may be cleared.
enum Claim {
    /// Its lock is ours as long as this file is open.
    Ours(#[allow(dead_code, reason = "held, not read")] std::fs::File),
    Held,
    NoSidecar,
}

fn claim(run: &RunDir) -> Result<Claim> {
    let file = match fs::open_own(std::fs::OpenOptions::new().read(true).write(true), &run.exit()) {
        Ok((file, _)) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Claim::NoSidecar),
        // It cannot be told from here whether somebody holds it.
        Err(_) => return Ok(Claim::Held),
    };
    Ok(if RunLock::Both.attempt(&file)? { Claim::Ours(file) } else { Claim::Held })
}

fn line(view: &JobView, dry_run: bool) -> String {
    let (facts, action) = (&view.facts, view.action.unwrap_or_default());
    let name = facts.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let reason = facts.reason.clone().unwrap_or_default();
    let would = if dry_run { "would be " } else { "" };
    let said = format!("{}{name}: {would}{action}, {}: {reason}", facts.id, facts.state);
    words::printable(&said).into_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_its_action() {
        use Action::*;
        let plain =
            |state, supervised| decide(state, false, false, OnOwnerExit::Reap, supervised, Orphans::Stop);
        for state in [State::Starting, State::Running, State::Paused, State::Lingering] {
            assert_eq!(plain(state, true), Nothing, "{state:?}");
            assert_eq!(decide(state, false, true, OnOwnerExit::Reap, true, Orphans::Keep), StopOwnerless);
            assert_eq!(decide(state, false, true, OnOwnerExit::Keep, true, Orphans::Stop), Nothing);
        }
        for state in [State::Orphaned, State::Lingering] {
            assert_eq!(plain(state, false), StopOrphan);
            assert_eq!(decide(state, false, false, OnOwnerExit::Reap, false, Orphans::Keep), Keep);
        }
        let adopting = |state| decide(state, false, false, OnOwnerExit::Reap, false, Orphans::Adopt);
        assert_eq!((adopting(State::Orphaned), adopting(State::Lingering)), (Adopt, Keep));
        for state in State::ALL.into_iter().filter(|state| state.is_final()) {
            assert_eq!(decide(state, true, true, OnOwnerExit::Stop, false, Orphans::Stop), Settle);
            assert_eq!(decide(state, false, true, OnOwnerExit::Stop, false, Orphans::Stop), Nothing);
        }
        assert_eq!(decide(State::Unknown, true, true, OnOwnerExit::Stop, false, Orphans::Stop), LeaveAlone);
    }
}
