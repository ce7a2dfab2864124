//! `run`: launch a command and let go of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::App;
use crate::assess::Assessed;
use crate::bytes::Bytes;
use crate::cli::{OnOwner, Run};
use crate::environment::{secrets, unmark};
use crate::exit::Exit;
use crate::fs::{Flock, RunLock};
use crate::job::{Cause, DEFAULT_GRACE_MS, Extras, Launch, OnOwnerExit, Stdin};
use crate::launch::{self, Launched};
use crate::lookup;
use crate::output::{last_lines, not_a_file};
use crate::plan::{Plan, find_owner};
use crate::ready::{self, Conditions, NewFile, Readiness};
use crate::state::State;
use crate::steer::{self, Stop};
use crate::sys::spawn::{self, Line};
use crate::sys::{Ability, can, clock};
use crate::view::{JobView, command_line, state_words};
use crate::words;

/// How long a launch may take whose launcher has gone.
const START_WAIT: Duration = Duration::from_secs(2);

/// How long readiness may take, unless it is said.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// How many lines of output a failed readiness shows.
const LAST_LINES: usize = 10;

/// How much of a job's own output file is kept, unless told otherwise.
const DEFAULT_MAX_OUTPUT: u64 = 1 << 30;

pub fn run(app: &App, args: Run, line: Option<Line>) -> Result<Exit> {
    let ready = conditions(&args)?;
    if ready.none() && args.ready_timeout.is_some() {
        bail!(
            "'--ready-timeout' needs '--ready-log', '--ready-port', '--ready-file' or '--ready-cmd' as well \
             (see 'outlive help run')"
        );
    }
    app.dir().prepare()?;
    let plan = plan(app, &args)?;
    if let (Some(_), Some(path)) = (&ready.log, &plan.output)
        && let Some(what) = not_a_file(path)
    {
        bail!("--ready-log: the output {} is {what}: what goes there cannot be read back", path.display());
    }
    // From the check of a name to the launch record, nobody else may launch under it.
    let name_lock = match &args.name {
        Some(name) => Some(Flock::take(&app.dir().name(name), &format!("the name '{name}'"))?),
        None => None,
    };
    if let (Some(name), Some(held)) = (&args.name, &name_lock)
        && let Some(alive) = alive_under(app, name, held)?
    {
        if args.reuse && matches!(alive.state(), State::Starting | State::Running | State::Paused) {
            return told(app, &args, alive.launch, Conditions::default());
        }
        if !args.replace {
            let id = alive.id();
            match alive.state() {
                State::Lingering => bail!(
                    "job '{name}' ({id}) is lingering: it has ended, but processes it started are alive \
                     (use --replace, or 'outlive stop {name}')"
                ),
                State::Orphaned => bail!(
                    "job '{name}' ({id}) is orphaned: alive, but without a supervisor \
                     (use --replace, 'outlive stop {name}' or 'outlive reap --orphans adopt')"
                ),
                State::Unknown => bail!(
                    "job '{name}' ({id}) is unknown: whether it is alive cannot be judged from here \
                     (choose another name; see 'outlive show {name}')"
                ),
                state => bail!(
                    "job '{name}' ({id}) is {} already; use --reuse or --replace, or stop it",
                    state.word()
                ),
            }
        }
        if app.is_inside(&alive) {
            bail!(
                "job '{name}' ({}) is not replaced: whoever asks from inside it is stopped with it \
                 (have another job ask: outlive run -- outlive run --name {name} --replace ...)",
                alive.id()
            );
        }
        let stop = Stop { signal: None, grace: None, cause: Cause::Replaced };
        let stopped = steer::ask(&app.observer, alive.launch, stop)?.wait(&app.observer)?;
        if !stopped.complete() {
            bail!("job '{name}' ({}) could not be stopped; nothing was launched", stopped.job.id());
        }
    }
    let line = match line {
        Some(line) => line,
        None => spawn::exec_self_with_line(crate::SUPERVISE).context("cannot start a supervisor")?,
    };
    let launched = launch::new_job(app.dir(), &plan, name_lock.as_ref(), line, app.observer.sync)?;
    drop(name_lock);
    match launched {
        Launched::Running(launch) => told(app, &args, launch, ready),
        // It could not be heard, but it is there.
        Launched::Unconfirmed(launch) if runs(app, &launch)? => told(app, &args, launch, ready),
        other => {
            if let (true, Some(view)) = (app.json, failed_view(app, &other)?) {
                super::print_json(&view)?;
            }
            not_running(app, &plan, other)
        }
    }
}

/// The id goes to stdout, alone; with `--wait`, to stderr, and the job's output to stdout.
fn told(app: &App, args: &Run, launch: Box<Launch>, ready: Conditions) -> Result<Exit> {
    if args.wait {
        return super::wait::stay(app, launch);
    }
    if !app.json {
        let id = &launch.id;
        super::print(format!("{id}\n").as_bytes())
            .with_context(|| format!("job {id} was launched, but nobody could be told its id"))?;
    }
    let exit = if ready.none() {
        Exit::Done
    } else {
        await_ready(app, &launch, ready, args.ready_timeout.unwrap_or(READY_TIMEOUT))?
    };
    if app.json {
        let job = app.observer.settle(launch)?;
        super::print_json(&JobView::new(&job, &app.observer))?;
    }
    Ok(exit)
}

fn await_ready(app: &App, launch: &Launch, ready: Conditions, limit: Duration) -> Result<Exit> {
    let id = &launch.id;
    match ready::wait(&app.observer, launch, ready, limit)? {
        Readiness::Ready => Ok(Exit::Done),
        Readiness::TimedOut { unfound } => {
            let next = if unfound {
                "the shell has not found the command of --ready-cmd".to_owned()
            } else {
                format!("see 'outlive logs {id}'")
            };
            notice!("job {id} is not ready after {limit:?}; it goes on ({next})");
            Ok(Exit::TimedOut)
        }
        Readiness::Ended => {
            let job = app.observer.settle(Box::new(launch.clone()))?;
            let view = JobView::new(&job, &app.observer);
            let last = last_lines(launch, LAST_LINES).ok();
            let next = match &last {
                Some(lines) if lines.is_empty() => "; it has written nothing",
                Some(_) => "; its last lines:",
                None => "",
            };
            notice!("job {id} ended before it was ready: {}{next}", state_words(&view));
            tell!("{}", words::printable_lines(&last.unwrap_or_default()));
            // A success that came too early is none: 0 says that the job is ready.
            let status = job.outcome.as_ref().map_or(Exit::Interrupted, crate::exit::of_outcome);
            Ok(if status.code() == 0 { Exit::Failed } else { status })
        }
    }
}

fn conditions(args: &Run) -> Result<Conditions> {
    if args.ready_port.is_some() && !can(Ability::Ports) {
        bail!(
            "--ready-port: it is not known here who listens on a port (use --ready-log, --ready-file or --ready-cmd)"
        );
    }
    Ok(Conditions {
        log: args.ready_log.clone(),
        port: args.ready_port,
        file: args.ready_file.as_ref().map(absolute).transpose()?.map(NewFile::expected),
        command: args.ready_cmd.clone(),
    })
}

/// A launch that was recorded, but whose command was not executed, as the job it is.
pub fn failed_view(app: &App, launched: &Launched) -> Result<Option<JobView>> {
    let Launched::NotExecuted { launch: Some(launch), .. } = launched else { return Ok(None) };
    Ok(Some(JobView::new(&app.observer.settle(launch.clone())?, &app.observer)))
}

/// Whether a job is supervised and executes its command.
pub fn runs(app: &App, launch: &Launch) -> Result<bool> {
    let job = app.observer.settle(Box::new(launch.clone()))?;
    Ok(job.judgement.supervised && matches!(job.state(), State::Running | State::Paused))
}

/// Files are the caller's words: relative to where the caller is.
fn absolute(path: &PathBuf) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("bad path {}", path.display()))
}

/// Reports a launch in which the command was not executed, or cannot be shown to have been.
pub fn not_running(app: &App, plan: &Plan, launched: Launched) -> Result<Exit> {
    let (argv, cwd) = (&plan.argv, &plan.cwd);
    let program = argv.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    match launched {
        Launched::NotExecuted { exec: true, errno, .. } => {
            let missing = errno == nix::libc::ENOENT || errno == nix::libc::ENOTDIR;
            let why = not_executable(&program, cwd, errno, argv.len() == 1);
            notice!("cannot execute '{program}': {why}");
            Ok(Exit::Job(if missing { 127 } else { 126 }))
        }
        Launched::NotExecuted { errno: 0, .. } => {
            bail!("the launch of '{program}' was broken off before it was executed")
        }
        Launched::NotExecuted { errno, .. } => {
            let why = words::plain(&io::Error::from_raw_os_error(errno));
            bail!("cannot launch '{program}' in {}: {why}", cwd.display())
        }
        Launched::Unconfirmed(launch) | Launched::Running(launch) => {
            let id = launch.id.clone();
            let job = app.observer.settle(launch)?;
            bail!(
                "the supervisor of job {id} ended during the launch of '{program}'; it is {} now (see 'outlive show {id}')",
                job.state().word()
            )
        }
    }
}

/// What a shell does itself, and what is no program on most systems.
const BUILTINS: [&str; 16] = [
    ".", "alias", "cd", "eval", "exec", "exit", "export", "if", "for", "set", "source", "trap", "ulimit",
    "umask", "unset", "while",
];

/// `FOO=bar`, which a shell would take as a variable of the command behind it.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Why, and what may be done about it. `alone`: without arguments.
fn not_executable(program: &str, cwd: &Path, errno: i32, alone: bool) -> String {
    use nix::libc::{EACCES, ENOENT};
    let path = cwd.join(program);
    let why = words::plain(&io::Error::from_raw_os_error(errno));
    match errno {
        ENOENT if program.is_empty() => "it is empty".to_owned(),
        ENOENT if is_assignment(program) => {
            format!("{why} (a variable is set by an option: outlive run -e {program} -- COMMAND)")
        }
        ENOENT if program.starts_with("~/") => {
            format!("{why} (only a shell expands '~': write \"$HOME{}\")", &program[1..])
        }
        ENOENT if BUILTINS.contains(&program) => {
            "not found in PATH (is it a line for the shell? outlive run -- sh -c '...')".to_owned()
        }
        ENOENT if alone && program.contains(' ') => {
            let line = command_line(&[program.into()]);
            format!("{why} (is it a line for the shell? outlive run -- sh -c {line})")
        }
        ENOENT if program.contains('/') && path.exists() => {
            format!("{why} (it is there: the interpreter in its first line is not)")
        }
        ENOENT if !program.contains('/') => "not found in PATH".to_owned(),
        EACCES if program.contains('/') && path.is_dir() => "it is a directory".to_owned(),
        EACCES if program.contains('/') && path.is_file() => format!("{why} (chmod +x it?)"),
        _ => why,
    }
}

/// The job that bears this name, if it is not over. The caller holds the name's lock.
pub fn alive_under(app: &App, name: &str, held: &Flock) -> Result<Option<Assessed>> {
    let id = match lookup::named(app.dir(), name)? {
        // Damaged, or the files of its job are gone: only the ledger can tell whether somebody bears the name. An
        // empty file is the lock that we have just made.
        None if held.0.metadata()?.len() > 0 => lookup::named_in_ledger(app.dir(), name)?,
        id => id,
    };
    let Some(id) = id else { return Ok(None) };
    let Some(launch) = lookup::latest(app.dir(), &id)? else { return Ok(None) };
    let mut job = app.observer.settle(launch)?;
    // Its launcher does not hold the name any more: it is about to execute, or about to be recorded as broken off.
    let since = clock::instant();
    while let (State::Starting, Some(exit), true) = (job.state(), &job.exit, since.elapsed() < START_WAIT) {
        RunLock::Unended.wait_for(exit, Some(Duration::from_millis(10)))?;
        job = app.observer.settle(job.launch)?;
    }
    Ok(Some(job).filter(|job| !job.state().is_final()))
}

fn plan(app: &App, args: &Run) -> Result<Plan> {
    let here = || std::env::current_dir().context("the current directory is gone (use --cwd)");
    let cwd = match &args.cwd {
        Some(dir) if dir.is_absolute() => dir.clone(),
        Some(dir) => here()?.join(dir),
        None => here()?,
    };
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    for (key, value) in &args.env {
        env.retain(|(known, _)| known != key);
        env.push((key.clone(), value.clone()));
    }
    unmark(&mut env);
    let owner = args.owner.as_deref().map(find_owner).transpose()?;
    let mut patterns = crate::env::secret_env();
    patterns.extend(args.secret_env.iter().cloned());
    let secret_env = secrets(&env, patterns);
    Ok(Plan {
        name: args.name.clone(),
        argv: args.command.clone(),
        cwd,
        env,
        umask: app.umask,
        labels: args.labels.iter().cloned().collect::<BTreeMap<_, _>>(),
        stdin: match &args.stdin {
            None => Stdin::Null,
            Some(word) if word.as_os_str() == "inherit" => Stdin::Inherit,
            Some(path) => Stdin::File((&absolute(path)?).into()),
        },
        output: args.output.as_ref().map(absolute).transpose()?,
        stderr: args.stderr.as_ref().map(absolute).transpose()?,
        owner,
        on_owner_exit: match args.on_owner_exit {
            None => OnOwnerExit::Reap,
            Some(OnOwner::Keep) => OnOwnerExit::Keep,
            Some(OnOwner::Stop) => OnOwnerExit::Stop,
        },
        timeout_ms: args.timeout.map(millis).filter(|&ms| ms > 0),
        stop_signal: args.stop_signal.unwrap_or(nix::libc::SIGTERM),
        grace_ms: args.grace.map_or(DEFAULT_GRACE_MS, millis),
        extras: Extras {
            on_exit: args.on_exit.as_ref().map(Bytes::from),
            max_output: match args.max_output {
                Some(cap) => cap.0,
                None => (args.output.is_none() && can(Ability::Holes)).then_some(DEFAULT_MAX_OUTPUT),
            },
            secret_env,
        },
    })
}

pub fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX - 1)
}
