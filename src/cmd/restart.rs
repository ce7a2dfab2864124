//! `restart`: the same command again, in the same place, or a refusal.

use anyhow::{Context, Result, bail};

use super::App;
use crate::cli::Restart;
use crate::environment::{is_secret, read_env, unmark};
use crate::exit::{Exit, Refused};
use crate::fs::Flock;
use crate::job::{Cause, Launch, Stdin};
use crate::launch::{self, Launched};
use crate::ledger::{self, Patience, Record};
use crate::lookup;
use crate::output::mark_output;
use crate::plan::{Plan, candidates, find_owner};
use crate::steer::{self, Stop};
use crate::sys::{clock, spawn};
use crate::view::JobView;
use crate::words;

pub fn restart(app: &App, args: &Restart) -> Result<Exit> {
    app.dir().prepare()?;
    let (views, mut exit) = app.each(&args.jobs, |launch| one(app, args, launch));
    let mut jobs = Vec::new();
    for (view, done) in views {
        exit = exit.first(done);
        jobs.extend(view);
    }
    if app.json {
        super::print_json(&jobs)?;
    }
    Ok(exit)
}

/// Stops what is alive, then launches. The lock of the job is let go of while it is being stopped, because the
/// one who stops it may need it; whoever gets it back first launches, and the other reports that run.
fn one(app: &App, args: &Restart, seen: Box<Launch>) -> Result<(Option<JobView>, Exit)> {
    let id = seen.id.clone();
    loop {
        // In the order of everybody else: name, op, ledger.
        let name = seen.name.as_ref().map(|name| take_name(app, &id, name)).transpose()?;
        let op = app.observer.op(&id)?;
        let launch = lookup::latest(app.dir(), &id)?.ok_or_else(|| lookup::pruned(&id))?;
        if launch.run > seen.run {
            return tell(app, launch);
        }
        let refused = || Refused(format!("job {id} is not restarted, and was not stopped"));
        let plan = plan(app, args, &launch).with_context(refused)?;
        check(&plan).with_context(refused)?;
        let job = app.observer.settle_locked(launch.clone())?;
        if job.state().is_final() {
            app.observer.finish(job)?;
            return start(app, Locks { name, op }, &plan, &launch);
        }
        if app.is_inside(&job) {
            return Err(Refused(format!(
                "job {id} is not restarted: whoever asks from inside it is stopped with it \
                 (have another job ask: outlive run -- outlive restart {id})"
            ))
            .into());
        }
        drop((op, name));
        let stop = Stop { signal: None, grace: args.grace, cause: Cause::Restart };
        let stopped = steer::ask(&app.observer, launch, stop)?.wait(&app.observer)?;
        if !stopped.complete() {
            super::stop::report(&stopped);
            return Err(Refused(format!("job {id} could not be stopped; it was not started again")).into());
        }
    }
}

/// Holds the name of a job that is to be restarted, which may be another job's by now.
fn take_name(app: &App, id: &str, name: &str) -> Result<Flock> {
    let lock = Flock::take(&app.dir().name(name), &format!("the name '{name}'"))?;
    match super::run::alive_under(app, name, &lock)? {
        Some(other) if other.id() != id => Err(Refused(format!(
            "job {id} is not restarted: job {} is {} under its name '{name}' (stop that first)",
            other.id(),
            other.state().word()
        ))
        .into()),
        _ => Ok(lock),
    }
}

/// What nobody else may have while a run is launched.
struct Locks {
    name: Option<Flock>,
    op: Flock,
}

fn start(app: &App, locks: Locks, plan: &Plan, last: &Launch) -> Result<(Option<JobView>, Exit)> {
    let id = &last.id;
    let run = app.dir().job(id).runs().into_iter().max().unwrap_or(last.run).max(last.run) + 1;
    mark_output(last, run, plan.output.is_none())?;
    let line = spawn::exec_self_with_line(crate::SUPERVISE).context("cannot start a supervisor")?;
    let launched = launch::next_run(app.dir(), id, run, plan, locks.name.as_ref(), line, app.observer.sync)?;
    // Whoever records how the launch ended needs the lock, be it ourselves.
    drop((locks.op, locks.name));
    match launched {
        Launched::Unconfirmed(launch) if super::run::runs(app, &launch)? => tell(app, launch),
        Launched::Running(launch) => {
            let note =
                Record::Note { kind: "restarted", id: id.clone(), run, at: clock::now(), detail: None };
            // The run is recorded as launched already; that it is a restart is seen from its number, too.
            if let Err(error) = ledger::append(app.dir(), &[note], Patience::Command, false) {
                notice!("job {id} was restarted, but the ledger does not say so: {}", words::of(&error));
            }
            tell(app, launch)
        }
        other => {
            let view = super::run::failed_view(app, &other)?;
            super::run::not_running(app, plan, other).map(|exit| (view, exit))
        }
    }
}

fn tell(app: &App, launch: Box<Launch>) -> Result<(Option<JobView>, Exit)> {
    let job = app.observer.assess(launch)?;
    if !app.json {
        super::print(format!("{}\n", job.id()).as_bytes())?;
    }
    Ok((Some(JobView::new(&job, &app.observer)), Exit::Done))
}

/// Everything of the recorded launch, with what only the caller can give: secrets, and a new owner for a dead one.
fn plan(app: &App, args: &Restart, launch: &Launch) -> Result<Plan> {
    let id = &launch.id;
    let mut env = read_env(&app.dir().job(id))?;
    let secrets = &launch.options.secret_env;
    if !secrets.is_empty() {
        let mut taken = Vec::new();
        for (key, value) in std::env::vars_os().filter(|(key, _)| is_secret(key, secrets)) {
            taken.push(key.to_string_lossy().into_owned());
            env.push((key, value));
        }
        let missing: Vec<&str> = secrets
            .iter()
            .filter(|name| !name.contains('*') && !taken.contains(name))
            .map(String::as_str)
            .collect();
        if !missing.is_empty() {
            bail!(
                "its secrets {} are not recorded, and not in this environment (set them)",
                missing.join(", ")
            );
        }
        if !taken.is_empty() {
            notice!("job {id} takes {} from this environment", taken.join(", "));
        }
    }
    unmark(&mut env);
    let owner = match (&args.owner, launch.owner) {
        (Some(word), _) => Some(find_owner(word)?),
        (None, None) => None,
        (None, Some(owner)) => {
            let found = find_owner(&owner.pid.to_string()).ok().filter(|found| found.id == owner);
            Some(found.with_context(|| {
                format!("the owner of job {id} (process {}) is gone: name a new one with --owner", owner.pid)
            })?)
        }
    };
    let own_output = launch.output.as_path() == app.dir().job(id).output();
    Ok(Plan {
        name: launch.name.clone(),
        argv: launch.argv.iter().map(|word| word.as_os().to_owned()).collect(),
        cwd: launch.cwd.as_path().to_path_buf(),
        env,
        umask: launch.umask,
        labels: launch.labels.clone(),
        stdin: match &launch.stdin {
            Stdin::Inherit => Stdin::Null,
            other => other.clone(),
        },
        output: (!own_output).then(|| launch.output.as_path().to_path_buf()),
        stderr: launch.stderr.as_ref().map(|path| path.as_path().to_path_buf()),
        owner,
        on_owner_exit: launch.on_owner_exit,
        timeout_ms: launch.timeout_ms,
        stop_signal: launch.stop_signal,
        grace_ms: launch.grace_ms,
        extras: launch.options.clone(),
    })
}

/// What would keep the next run from starting is found before the present one is stopped.
fn check(plan: &Plan) -> Result<()> {
    launch::open_directory(&plan.cwd)?;
    let candidates = candidates(&plan.argv, &plan.env)?;
    let executable = |path: &std::path::PathBuf| {
        let path = plan.cwd.join(path);
        path.is_file() && nix::unistd::access(&path, nix::unistd::AccessFlags::X_OK).is_ok()
    };
    if !candidates.iter().any(executable) {
        let program = plan.argv.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        bail!("'{program}' is not there any more, or not executable");
    }
    if let Stdin::File(path) = &plan.stdin {
        std::fs::File::open(path.as_path())
            .with_context(|| format!("cannot read stdin from {}", path.display()))?;
    }
    Ok(())
}
