//! The launcher's part of a launch: make the run's files, brief the supervisor, record, open the gate.
//!
//! If we die before the gate is opened, nothing is executed: the leader reads end of file and ends. Once it is
//! opened, the launch record is durable and names the very process that executes the command.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context, Result, bail};
use nix::libc;
use nix::sys::stat::Mode;

use crate::brief::{self, Numbers, Strings};
use crate::bytes::Bytes;
use crate::env;
use crate::environment::{encode_env, write_env};
use crate::fs::{Flock, open_appending_again};
use crate::job::{Identity, Launch, Stdin};
use crate::ledger::{self, Patience, Record};
use crate::output::open_for_writing;
use crate::paths::{RunDir, StateDir, make_private};
use crate::plan::{Plan, candidates};
use crate::store;
use crate::sys::handle::Handle;
use crate::sys::proc;
use crate::sys::spawn::{Line, Message};
use crate::sys::{self, clock};

/// How a launch went.
#[derive(Debug)]
pub enum Launched {
    Running(Box<Launch>),
    /// Recorded as failed; the errno of setting up or of the exec.
    NotExecuted {
        /// None if it had not come to a launch record.
        launch: Option<Box<Launch>>,
        exec: bool,
        errno: i32,
    },
    /// The supervisor ended before it could say.
    Unconfirmed(Box<Launch>),
}

/// Launches a new job.
///
/// `name`: the lock on the job's name. The name is written before the launch record is: whoever finds the job
/// alive finds it by its name, however this process ends.
pub fn new_job(
    dir: &StateDir,
    plan: &Plan,
    name: Option<&Flock>,
    line: Line,
    sync: bool,
) -> Result<Launched> {
    let cwd = open_directory(&plan.cwd)?;
    loop {
        let id = crate::job::id_from(sys::random().context("no random numbers")?);
        let job = dir.job(&id);
        match make_private(&job.0) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            Err(error) => {
                return Err(error).with_context(|| {
                    format!(
                        "cannot create {} (set OUTLIVE_STATE_DIR to a directory that you can write)",
                        job.0.display()
                    )
                });
            }
        }
        let made = make_run(&job.run(1));
        if matches!(made, Ok(None)) {
            continue;
        }
        let result = made.and_then(|exit| {
            let exit = exit.context("no sidecar")?;
            launch(Target { dir, id: &id, run: 1, name, sync }, plan, &cwd, exit, &line)
        });
        // The leader sees the end of the line and ends without having executed anything.
        drop(line);
        if !recorded(&result, &job.run(1)) {
            let _ = std::fs::remove_dir_all(&job.0);
        }
        return result;
    }
}

/// Launches the next run of a job that exists. The caller holds `op`. `name`: as for a new job.
pub fn next_run(
    dir: &StateDir,
    id: &str,
    run: u32,
    plan: &Plan,
    name: Option<&Flock>,
    line: Line,
    sync: bool,
) -> Result<Launched> {
    let cwd = open_directory(&plan.cwd)?;
    let run_dir = dir.run(id, run);
    let result = make_run(&run_dir).and_then(|exit| {
        let exit =
            exit.with_context(|| format!("run {run} of job {id} was cleared while it was being made"))?;
        launch(Target { dir, id, run, name, sync }, plan, &cwd, exit, &line)
    });
    drop(line);
    if !recorded(&result, &run_dir) {
        let _ = std::fs::remove_dir_all(&run_dir.0);
    }
    result
}

/// Whether the launch came as far as its record; if not, nothing of it is worth keeping.
fn recorded(result: &Result<Launched>, run: &RunDir) -> bool {
    matches!(result, Ok(Launched::Running(_) | Launched::Unconfirmed(_))) || run.launch().exists()
}

/// Makes a run's directory and its locked sidecar. None if they were cleared away at once.
fn make_run(run: &RunDir) -> Result<Option<File>> {
    match make_private(&run.0) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        made => made.with_context(|| format!("cannot create {}", run.0.display()))?,
    }
    store::create_exit(run)
}

/// Opens a job's directory; it is never replaced by another.
pub fn open_directory(path: &Path) -> Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(sys::OPEN_DIRECTORY)
        .open(path)
        .with_context(|| format!("cannot use directory {}", path.display()))
}

/// The run that is to be launched.
#[derive(Clone, Copy, Debug)]
struct Target<'a> {
    dir: &'a StateDir,
    id: &'a str,
    run: u32,
    name: Option<&'a Flock>,
    sync: bool,
}

fn launch(target: Target, plan: &Plan, cwd: &File, exit: File, line: &Line) -> Result<Launched> {
    let Target { dir, id, run, name, sync } = target;
    let (job, run_dir) = (dir.job(id), dir.run(id, run));
    let control = make_control(&run_dir)?;
    let output = plan.output.clone().unwrap_or_else(|| job.output());
    let files = Files::open(plan, &output)?;
    if plan.extras.max_output.is_some() && !sys::disk::can_punch(&files.output) {
        notice!(
            "{} cannot be kept small while it is written (no holes can be punched there): --max-output has no effect",
            output.display()
        );
    }
    let offset = files.output.metadata().map_or(0, |meta| meta.len());

    let numbers = Numbers {
        run,
        umask: plan.umask,
        timeout_ms: plan.timeout_ms,
        stop_signal: plan.stop_signal,
        grace_ms: plan.grace_ms,
        on_owner_exit: plan.on_owner_exit,
        sync,
        owner: plan.owner.as_ref().map(|owner| owner.id),
        adopt: None,
        max_output: plan.extras.max_output,
        output_offset: offset,
    };
    let mut environment = encode_env(&plan.env);
    environment.extend(encode_env(&env::mark(id, run, dir.path())));
    let candidates = candidates(&plan.argv, &plan.env)?;
    let strings = Strings {
        state_dir: dir.path().as_os_str(),
        id,
        on_exit: plan.extras.on_exit.as_ref().map_or(OsStr::new(""), Bytes::as_os),
        name: plan.name.as_deref().unwrap_or(""),
        output: output.as_os_str(),
        candidates: candidates.iter().map(|path| path.as_os_str()).collect(),
        argv: plan.argv.iter().map(OsString::as_os_str).collect(),
        env: environment,
    };
    let mut fds = vec![
        exit.as_raw_fd(),
        control.as_raw_fd(),
        cwd.as_raw_fd(),
        files.stdin.as_raw_fd(),
        files.output.as_raw_fd(),
        files.stderr.as_ref().unwrap_or(&files.output).as_raw_fd(),
    ];
    fds.extend(plan.owner.as_ref().and_then(|owner| owner.process.fd()).map(|fd| fd.as_raw_fd()));
    brief::send(&line.fd, numbers, &strings, &fds).context("cannot brief the supervisor")?;

    // What can be done while the supervisor starts the leader.
    if run == 1 {
        write_env(&job, &plan.env, &plan.extras.secret_env)?;
    }
    let place = proc::place();
    if !place.known() {
        bail!("cannot tell which boot and PID namespace this is; nothing was executed");
    }
    let supervisor =
        proc::stat(line.pid).map(|stat| stat.id()).context("the supervisor ended before the launch")?;

    let pid = match receive(&line.fd)? {
        Some(Message { tag: Message::AT_GATE, value }) => value,
        Some(Message { value: errno, .. }) => {
            return Ok(Launched::NotExecuted { launch: None, exec: false, errno });
        }
        None => bail!("the supervisor ended before the launch; nothing was executed"),
    };
    let leader = proc::stat(pid).context("the leader ended before the launch; nothing was executed")?;
    let launch = Box::new(Launch {
        id: id.to_owned(),
        run,
        at: clock::now(),
        boottime_ms: clock::boottime_ms(),
        name: plan.name.clone(),
        argv: plan.argv.iter().map(Bytes::from).collect(),
        cwd: (&plan.cwd).into(),
        umask: plan.umask,
        labels: plan.labels.clone(),
        stdin: plan.stdin.clone(),
        output: (&output).into(),
        output_offset: offset,
        stderr: plan.stderr.as_ref().map(Bytes::from),
        owner: plan.owner.as_ref().map(|owner| owner.id),
        on_owner_exit: plan.on_owner_exit,
        timeout_ms: plan.timeout_ms,
        stop_signal: plan.stop_signal,
        grace_ms: plan.grace_ms,
        options: plan.extras.clone(),
        identity: Identity {
            pid,
            pgid: leader.pgid,
            sid: leader.sid,
            start_time: leader.start_time,
            pidfd_inode: Handle::inode_of(pid),
            place,
        },
        supervisor,
        adopted: false,
    });
    store::write_launch(&run_dir, &launch)?;
    if let Some(lock) = name {
        write_name(lock, id).with_context(|| format!("cannot record the name of job {id}"))?;
    }
    ledger::append(dir, &[Record::Launched(launch.clone())], Patience::Command, sync)?;
    // Our copy of the lock must not make a supervisor look alive that is not.
    drop(exit);
    drop(control);
    open_gate(&line.fd).context("cannot open the gate; nothing was executed")?;
    // From here on a failure to hear is no failure of the launch.
    Ok(match receive(&line.fd) {
        Ok(Some(Message { tag: Message::LAUNCHED, .. })) => Launched::Running(launch),
        Ok(Some(Message { tag, value: errno })) => {
            Launched::NotExecuted { launch: Some(launch), exec: tag == Message::EXEC_FAILED, errno }
        }
        Ok(None) | Err(_) => Launched::Unconfirmed(launch),
    })
}

/// Lets the leader execute its command, or a new supervisor adopt a job. One that is not told so would wait for ever,
/// and we with it. One that died meanwhile is noticed by the answer that does not come.
pub(crate) fn open_gate(line: &UnixStream) -> nix::Result<()> {
    use nix::errno::Errno;
    loop {
        match nix::unistd::write(line, b"G") {
            Err(Errno::EINTR) => {}
            Ok(_) | Err(Errno::EPIPE) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// The next message; none if the other side has closed the line. Needs no descriptor.
pub(crate) fn receive(line: &UnixStream) -> Result<Option<Message>> {
    use nix::errno::Errno;
    let mut raw = [0_u8; Message::LENGTH];
    let mut length = 0;
    while length < raw.len() {
        match nix::unistd::read(line, &mut raw[length..]) {
            Ok(0) | Err(Errno::ECONNRESET) => return Ok(None),
            Ok(read) => length += read,
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error).context("cannot hear the supervisor"),
        }
    }
    Ok(Some(Message::decode(raw)))
}

fn write_name(lock: &Flock, id: &str) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;
    lock.0.write_all_at(format!("{id}\n").as_bytes(), 0)?;
    lock.0.set_len(id.len() as u64 + 1)
}

fn make_control(run: &RunDir) -> Result<File> {
    let path = run.control();
    nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)
        .with_context(|| format!("cannot create {}", path.display()))?;
    open_control(run)
}

/// The supervisor's end: open for writing too, so that it never sees an end of file.
pub(crate) fn open_control(run: &RunDir) -> Result<File> {
    let path = run.control();
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    options.open(&path).with_context(|| format!("cannot open {}", path.display()))
}

/// What the command gets as its descriptors 0, 1 and 2.
struct Files {
    stdin: OwnedFd,
    output: File,
    stderr: Option<File>,
}

impl Files {
    fn open(plan: &Plan, output: &Path) -> Result<Self> {
        let read = |path: &Path| {
            File::open(path).with_context(|| format!("cannot read stdin from {}", path.display()))
        };
        let cannot = |path: &Path| format!("cannot write output to {}", path.display());
        let append = |path: &Path, own: bool| open_for_writing(path, own).with_context(|| cannot(path));
        let own = plan.output.is_none();
        Ok(Self {
            stdin: match &plan.stdin {
                Stdin::Null => read(Path::new("/dev/null"))?.into(),
                Stdin::File(path) => read(path.as_path())?.into(),
                Stdin::Inherit => std::os::fd::AsFd::as_fd(&std::io::stdin())
                    .try_clone_to_owned()
                    .context("cannot hand stdin over")?,
            },
            output: append(output, own)?,
            stderr: match plan.stderr.as_deref() {
                Some(path) => Some(append(path, false)?),
                // The kernel takes a lock for each write to a file that was opened once for two descriptors.
                None if own => Some(open_appending_again(output).with_context(|| cannot(output))?),
                None => None,
            },
        })
    }
}
