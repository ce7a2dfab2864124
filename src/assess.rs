//! Looking at a job: gathers the evidence, has it judged, and records an end that nobody saw.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::fs::{Flock, RunLock};
use crate::job::{Cause, End, Launch, Outcome, Place, ProcessId};
use crate::ledger::{self, Patience, Record};
use crate::lookup;
use crate::members::{self, Bearer, Mark, Members, RunMark};
use crate::paths::{StateDir, make_private_all};
use crate::state::{
    Evidence, Judgement, Leader, Match, Sighting, State, Verdict, compare, ended_identity, gone_from, judge,
};
use crate::store::{self, Sidecar};
use crate::sys::handle::Handle;
use crate::sys::proc::{self, Environs, Seen, Stat};
use crate::sys::{clock, disk, spawn};
use crate::words;

/// How long a supervisor may take between its leader's death and the record of it.
const RECORD_WAIT: Duration = Duration::from_secs(2);

/// How long the supervisor of a job that has ended may take to let go of it.
const FINISH_WAIT: Duration = Duration::from_secs(5);

/// Where this process looks from.
#[derive(Clone, Debug)]
pub struct Observer {
    pub dir: StateDir,
    pub sync: bool,
    here: OnceLock<Place>,
    shared_fs: OnceLock<bool>,
}

/// One run, looked at.
#[derive(Debug)]
pub struct Assessed {
    pub launch: Box<Launch>,
    pub judgement: Judgement,
    pub outcome: Option<Outcome>,
    /// Living members, the leader included; filled where the judgement needed them.
    pub members: Vec<Stat>,
    /// The exit sidecar, open: it can be waited on and read even if the job is pruned meanwhile.
    pub exit: Option<File>,
}

impl Assessed {
    pub fn state(&self) -> State {
        self.judgement.state
    }

    pub fn id(&self) -> &str {
        &self.launch.id
    }

    /// A run whose files cannot be read.
    pub fn unjudged(launch: Box<Launch>) -> Self {
        let judgement = Judgement {
            state: State::Unknown,
            identity: Verdict::Unverified,
            cause: None,
            supervised: false,
            why: "its files cannot be read",
        };
        Self { launch, judgement, outcome: None, members: Vec::new(), exit: None }
    }

    /// A supervisor that has recorded the end of a run still tells the ledger, and starts the command of `--on-exit`
    /// with what the job's files say: what comes next, a pruning or another run, has to come after that.
    pub fn let_supervisor_finish(&self) -> Result<()> {
        match self.exit.as_ref().filter(|_| self.judgement.supervised) {
            Some(exit) if !RunLock::Supervised.wait_for(exit, Some(FINISH_WAIT))? => {
                bail!("the supervisor of job {} has not finished (try again)", self.id())
            }
            _ => Ok(()),
        }
    }
}

impl Observer {
    pub fn new(dir: StateDir, sync: bool) -> Self {
        Self { dir, sync, here: OnceLock::new(), shared_fs: OnceLock::new() }
    }

    /// The boot, namespaces and machine it looks from; a launch that comes to pass does not ask.
    pub fn here(&self) -> &Place {
        self.here.get_or_init(proc::place)
    }

    fn shared_fs(&self) -> bool {
        *self.shared_fs.get_or_init(|| disk::is_shared(self.dir.path()))
    }

    /// Judges a run from its files and the kernel.
    pub fn assess(&self, launch: Box<Launch>) -> Result<Assessed> {
        let exit = match self.open_exit(&launch) {
            Ok(exit) => exit,
            // What somebody has put in its place does not take away an end that the ledger knows.
            Err(error) => match self.told(&launch).filter(|end| !end.lingering) {
                Some(outcome) => return Ok(self.ended(launch, outcome)),
                None => return Err(error),
            },
        };
        let mut assessed = self.look_and_ask(launch, exit)?;
        // A supervisor needs a moment between its leader's death and the record of it.
        if assessed.judgement.cause == Some(Cause::ExitNotRecorded)
            && let Some(file) = assessed.exit.take()
        {
            RunLock::Unended.wait_for(&file, Some(RECORD_WAIT))?;
            assessed = self.look_and_ask(assessed.launch, Some(file))?;
        }
        // One that is just ending has lost all that proves whose it is: looked at again once it is dead.
        let mut changing = true;
        while changing && assessed.judgement.cause == Some(Cause::Unproven) {
            changing = await_exiting(assessed.launch.identity.sid);
            let exit = assessed.exit.take();
            assessed = self.look_and_ask(assessed.launch, exit)?;
        }
        Ok(assessed)
    }

    /// Judges from what is there at this moment: waits for nobody and takes no lock.
    pub fn glance(&self, launch: Box<Launch>) -> Result<Assessed> {
        let exit = self.open_exit(&launch)?;
        self.look(launch, exit, None)
    }

    /// A sidecar that is gone or was damaged may have told its end to the ledger.
    fn look_and_ask(&self, launch: Box<Launch>, exit: Option<File>) -> Result<Assessed> {
        let seen = self.look(launch, exit, None)?;
        if seen.judgement.state != State::Interrupted || seen.outcome.is_some() {
            return Ok(seen);
        }
        match self.told(&seen.launch) {
            None => Ok(seen),
            told => self.look(seen.launch, seen.exit, told),
        }
    }

    /// The end that the ledger knows of a run.
    fn told(&self, launch: &Launch) -> Option<Outcome> {
        let book = ledger::read(&self.dir).ok()?;
        book.job(&launch.id).filter(|entry| entry.launch.run == launch.run)?.outcome.clone()
    }

    /// The same for a run that the ledger says has ended with nothing left alive: none of its files is opened.
    pub fn ended(&self, launch: Box<Launch>, outcome: Outcome) -> Assessed {
        let (place, here) = (&launch.identity.place, self.here());
        let identity = over(gone_from(place, here), place.comparable(here), launch.identity.process());
        let judgement = Judgement::over(&outcome, identity);
        Assessed { launch, judgement, outcome: Some(outcome), members: Vec::new(), exit: None }
    }

    /// Assesses, and if the run has ended without anybody having recorded it, records that first.
    pub fn settle(&self, launch: Box<Launch>) -> Result<Assessed> {
        let assessed = self.assess(launch)?;
        if assessed.judgement.state != State::Interrupted || assessed.outcome.is_some() {
            return Ok(assessed);
        }
        match self.record_interrupted(assessed.launch.clone()) {
            Ok(settled) => Ok(settled),
            // A state directory that cannot be written is still told the truth about, and a run that is kept locked.
            Err(error) if cannot_write(&error) || any_io(&error, &[io::ErrorKind::TimedOut]) => Ok(assessed),
            Err(error) => Err(error),
        }
    }

    fn record_interrupted(&self, launch: Box<Launch>) -> Result<Assessed> {
        let _op = self.op(&launch.id)?;
        self.settle_locked(launch)
    }

    /// Settles for a caller that holds `op`.
    pub fn settle_locked(&self, launch: Box<Launch>) -> Result<Assessed> {
        let path = self.dir.run(&launch.id, launch.run).exit();
        let file =
            crate::fs::open_private(&path).with_context(|| format!("cannot open {}", path.display()))?;
        if !RunLock::Both.attempt(&file)? {
            drop(file);
            return self.assess(launch);
        }
        // The lock is ours through `file` and its copy: to this look it is free.
        let again = self.look_and_ask(launch, Some(file.try_clone()?))?;
        if again.judgement.state != State::Interrupted || again.outcome.is_some() {
            // The caller keeps the file, but must not look like a supervisor with it.
            RunLock::Both.release(&file)?;
            return Ok(again);
        }
        let mut outcome = Outcome::bare(End::Interrupted, again.judgement.cause, clock::now());
        outcome.executed = again.executed_hint();
        // Its namespace may go on though its supervisor has ended: only from there it can be seen that nothing is left.
        outcome.lingering = again.judgement.cause == Some(Cause::NamespaceEnded);
        self.commit(&again.launch, &file, &outcome)?;
        let exit = Some(file);
        self.look(again.launch, exit, None)
    }

    /// Records an end that the ledger does not know. None if it does by now, or if another run has begun.
    pub fn tell_ledger(&self, job: Assessed) -> Result<Option<Assessed>> {
        // A supervisor that lives is about to do it: the end would be told twice.
        if let (true, Some(exit)) = (job.judgement.supervised, &job.exit)
            && !RunLock::Supervised.wait_for(exit, Some(RECORD_WAIT))?
        {
            return Ok(None);
        }
        let _op = self.op(job.id())?;
        self.tell_ledger_locked(job)
    }

    /// The same for a caller that holds `op`, of a run whose supervisor has gone.
    fn tell_ledger_locked(&self, job: Assessed) -> Result<Option<Assessed>> {
        let book = ledger::read(&self.dir)?;
        let known = book.job(job.id());
        if known.is_some_and(|entry| entry.outcome.is_some() || entry.launch.run != job.launch.run) {
            return Ok(None);
        }
        if let Some(outcome) = job.outcome.clone() {
            let record = Record::Ended { id: job.launch.id.clone(), run: job.launch.run, outcome };
            ledger::append(&self.dir, &[record], Patience::Command, self.sync)?;
            return Ok(Some(job));
        }
        self.settle_locked(job.launch).map(Some)
    }

    /// The end of a run is in the ledger before what comes next, a pruning or another run. The caller holds `op`.
    pub fn finish(&self, job: Assessed) -> Result<()> {
        job.let_supervisor_finish()?;
        match self.tell_ledger_locked(job)? {
            Some(job) if job.outcome.is_none() => {
                bail!("the end of job {} cannot be recorded: a process holds its lock (try again)", job.id())
            }
            _ => Ok(()),
        }
    }

    /// Records an outcome in sidecar and ledger. The caller holds the run's lock.
    pub fn commit(&self, launch: &Launch, file: &File, outcome: &Outcome) -> Result<()> {
        store::clear_leftovers(file)
            .and_then(|()| store::commit_exit(file, outcome, self.sync))
            .with_context(|| format!("cannot record the end of job {}", launch.id))?;
        RunLock::Both.release(file)?;
        let record = Record::Ended { id: launch.id.clone(), run: launch.run, outcome: outcome.clone() };
        if let Err(error) = ledger::append(&self.dir, &[record], Patience::Command, self.sync) {
            notice!(
                "the end of job {} is in its sidecar, but not in the ledger: {}",
                launch.id,
                words::of(&error)
            );
        }
        Ok(())
    }

    /// Serialises long work on one job.
    pub fn op(&self, id: &str) -> Result<Flock> {
        let take = || Flock::take(&self.dir.job(id).op(), &format!("job {id}"));
        match take() {
            Err(_) if !self.dir.job(id).0.exists() => {
                if self.rebuild(id)? {
                    take()
                } else {
                    Err(lookup::pruned(id).into())
                }
            }
            taken => taken,
        }
    }

    /// Makes the directory of a job anew from what the ledger says of it. False if that knows no such job: a prune is
    /// in the ledger before anything is deleted.
    fn rebuild(&self, id: &str) -> Result<bool> {
        let book = ledger::read(&self.dir)?;
        let Some(entry) = book.job(id) else { return Ok(false) };
        let run = self.dir.run(id, entry.launch.run);
        make_private_all(&run.0).with_context(|| format!("cannot create {}", run.0.display()))?;
        // Somebody else may be at it too: both write the same.
        let _ = store::write_launch(&run, &entry.launch);
        Ok(true)
    }

    fn open_exit(&self, launch: &Launch) -> Result<Option<File>> {
        let path = self.dir.run(&launch.id, launch.run).exit();
        match crate::fs::open_regular(&path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot open {}", path.display())),
        }
    }

    /// `told`: the end that somebody else knows, for a run whose sidecar does not.
    fn look(&self, launch: Box<Launch>, exit: Option<File>, told: Option<Outcome>) -> Result<Assessed> {
        // The lock is asked about before the sidecar is read: a supervisor commits first and lets go then.
        let held = match &exit {
            Some(file) => RunLock::Supervised
                .held(file)
                .with_context(|| format!("cannot ask for the lock of job {}", launch.id))?,
            None => false,
        };
        let (launch, supervised) = if held { self.supervisor_of(launch)? } else { (launch, false) };
        let sidecar = match &exit {
            Some(file) => {
                Sidecar::read(file).with_context(|| format!("cannot read the exit of job {}", launch.id))?
            }
            None => Sidecar::default(),
        };
        let executed = sidecar.executed;
        let outcome = sidecar.counting(supervised).or(told);
        let same_place = self.shares_pids(&launch);
        let blind = || format!("cannot look at the processes of job {}", launch.id);
        let leader =
            if same_place { self.leader(&launch, supervised).with_context(blind)? } else { Leader::Gone };
        let found = if same_place {
            self.members(&launch, supervised, &outcome, &leader).with_context(blind)?
        } else {
            Members::default()
        };
        let others = found
            .proven
            .iter()
            .filter(|stat| {
                let leader = launch.identity.process();
                // A leader that lives after its end was recorded, from elsewhere, is one that is left.
                outcome.is_some() || stat.id() != leader
            })
            .count();
        let evidence = Evidence {
            here: self.here().clone(),
            shared_fs: self.here().boot_id != launch.identity.place.boot_id && self.shared_fs(),
            supervised,
            outcome: outcome.clone(),
            executed,
            leader,
            members: others,
            unproven: found.unproven.len(),
        };
        let judgement = judge(&launch, &evidence);
        Ok(Assessed { launch, judgement, outcome, members: found.proven, exit })
    }

    /// Whether the supervisor of a run whose lock is held lives: a launcher that was stopped before the gate holds the
    /// lock it has handed over, too. The run may have been adopted since its record was read.
    fn supervisor_of(&self, launch: Box<Launch>) -> Result<(Box<Launch>, bool)> {
        let comparable = launch.identity.place.comparable(self.here());
        let lives = |launch: &Launch| alive(launch.supervisor, comparable) != Some(false);
        if lives(&launch) {
            return Ok((launch, true));
        }
        let launch = store::read_launch(&self.dir.run(&launch.id, launch.run))?.unwrap_or(launch);
        let supervised = lives(&launch);
        Ok((launch, supervised))
    }

    fn leader(&self, launch: &Launch, supervised: bool) -> io::Result<Leader> {
        let pid = launch.identity.pid;
        Ok(match proc::look(pid) {
            Seen::Gone => Leader::Gone,
            Seen::Hidden => Leader::Hidden,
            Seen::Alive(stat) => {
                let mut seen = Sighting {
                    start_time: stat.start_time,
                    pgid: stat.pgid,
                    sid: stat.sid,
                    stopped: stat.stopped(),
                    at_gate: stat.comm == spawn::title(&launch.id).as_bytes(),
                    ..Sighting::default()
                };
                // A supervisor answers for its leader; without one, every proof is gathered.
                if !supervised && stat.start_time == launch.identity.start_time {
                    let mark = RunMark::new(&launch.id, launch.run, self.dir.path()).of(pid)?;
                    seen.marked = (mark != Mark::Unreadable).then_some(mark == Mark::Ours);
                    seen.argv = proc::cmdline(pid)?;
                    seen.pidfd_inode = Handle::inode_of(pid);
                }
                Leader::Alive(seen)
            }
        })
    }

    /// Members are looked for where the judgement may rest on them: after the leader's end, or when orphaned.
    fn members(
        &self,
        launch: &Launch,
        supervised: bool,
        outcome: &Option<Outcome>,
        leader: &Leader,
    ) -> io::Result<Members> {
        // A supervisor that saw nothing left at its leader's end has said so, and nothing can come back.
        if outcome.as_ref().is_some_and(|outcome| !outcome.lingering) {
            return Ok(Members::default());
        }
        if supervised && !(launch.adopted && outcome.is_some()) {
            let proven = if outcome.is_some() { self.descendants(launch)? } else { Vec::new() };
            return Ok(Members { proven, unproven: Vec::new() });
        }
        let bearer = match leader {
            Leader::Alive(seen) => match compare(launch, seen) {
                Match::Proven(_) => Bearer::Leader,
                Match::Other => Bearer::Stranger,
                Match::Unproven => Bearer::Open,
            },
            _ => Bearer::Open,
        };
        self.provable(launch, bearer)
    }

    /// What descends from the supervisor of a run. Nothing in another PID namespace, where its number is another's.
    pub fn descendants(&self, launch: &Launch) -> io::Result<Vec<Stat>> {
        if !self.shares_pids(launch) {
            return Ok(Vec::new());
        }
        let mark = RunMark::new(&launch.id, launch.run, self.dir.path());
        members::supervised(launch.supervisor.pid, &mark, None)
    }

    /// Whether a PID means the same here as in the record of this run.
    pub fn shares_pids(&self, launch: &Launch) -> bool {
        let (there, here) = (&launch.identity.place, self.here());
        (&there.boot_id, there.pid_ns) == (&here.boot_id, here.pid_ns)
    }

    /// Every process that can be proven to belong to this unsupervised run, now.
    pub fn provable(&self, launch: &Launch, bearer: Bearer) -> io::Result<Members> {
        let mark = RunMark::new(&launch.id, launch.run, self.dir.path());
        let me = i32::try_from(std::process::id()).unwrap_or(0);
        let table: Vec<Stat> = proc::table()?.into_iter().filter(|stat| stat.pid != me).collect();
        // What could not be looked at for want of a descriptor must not count as a stranger.
        let failed = Cell::new(None);
        let note = |error| failed.set(Some(error));
        let environs = Environs::of(&table)?;
        let mark_of = |pid| match environs.get(pid) {
            Ok(environ) => mark.judge(environ.as_deref()),
            Err(error) => {
                note(error);
                Mark::Unreadable
            }
        };
        let argv_of = |pid| proc::cmdline(pid).map_err(note).unwrap_or(None);
        let members = members::provable(launch, &table, &mark_of, &argv_of, bearer);
        failed.take().map_or(Ok(members), Err)
    }
}

/// Waits for those of a session that are just ending; whether there were any, and all of them are dead now.
fn await_exiting(session: i32) -> bool {
    let table = proc::table().unwrap_or_default();
    let mut exiting = table.iter().filter(|stat| stat.sid == session && proc::exiting(stat.pid)).peekable();
    let dead = |stat: &Stat| match Handle::proven(stat.id()) {
        Ok(Some(process)) => process.wait(Some(RECORD_WAIT)).unwrap_or(false),
        Ok(None) => true,
        Err(_) => false,
    };
    exiting.peek().is_some() && exiting.all(dead)
}

impl Assessed {
    fn executed_hint(&self) -> Option<bool> {
        let begun = self
            .exit
            .as_ref()
            .and_then(|file| Sidecar::read(file).ok())
            .is_some_and(|sidecar| sidecar.executed);
        begun.then_some(true)
    }
}

/// The identity of a run that is over. `place`: what [`gone_from`] says; `comparable`: whether ticks are.
pub fn over(place: Verdict, comparable: bool, leader: ProcessId) -> Verdict {
    // For most, one call that opens nothing tells that the number is nobody's.
    let bearer = match place {
        Verdict::Gone if proc::exists(leader.pid) => match proc::look(leader.pid) {
            Seen::Alive(stat) => {
                Leader::Alive(Sighting { start_time: stat.start_time, ..Sighting::default() })
            }
            Seen::Hidden => Leader::Hidden,
            Seen::Gone => Leader::Gone,
        },
        _ => Leader::Gone,
    };
    ended_identity(place, comparable, leader.start_time, &bearer)
}

/// Whether a process named by PID and start time is alive; none if that cannot be told from here.
pub fn alive(id: ProcessId, comparable: bool) -> Option<bool> {
    if !comparable {
        return None;
    }
    match proc::look(id.pid) {
        Seen::Alive(stat) => Some(stat.start_time == id.start_time),
        Seen::Gone => Some(false),
        Seen::Hidden => None,
    }
}

pub fn cannot_write(error: &anyhow::Error) -> bool {
    any_io(error, &[io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem])
}

fn any_io(error: &anyhow::Error, kinds: &[io::ErrorKind]) -> bool {
    let mut errors = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    errors.any(|error| kinds.contains(&error.kind()))
}
