//! Random sequences of commands and faults, against the real binary and a simple model of it beside it.
//!
//! After each step the list says what the model says, and every command ends with the status that the model names.
//! A sequence that fails is made as short as it can be before it is shown.

use std::cell::Cell;
use std::fmt::Write as _;
use std::fs;
use std::process::{Child, Stdio};

use nix::fcntl::{Flock, FlockArg};
use nix::libc::SIGKILL;
use proptest::collection::vec;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use serde_json::{Value, json};

use crate::env::{Output, TestEnv, eventually, number};
use crate::fifo::Gate;
use crate::model::{End, Job, Kind, Life, Model, Orphans, Policy};
use crate::process::{self, Process};
use crate::steps::{Fault, NAMES, Order, Step, Who, step};
use crate::sweep::{Scene, Story, full};
use crate::truth;

/// What stands behind a job of the model.
struct Actor {
    id: String,
    gate: Gate,
    owner: Option<Child>,
}

struct World {
    scene: Scene,
    model: Model,
    actors: Vec<Actor>,
    /// Processes that are nobody's, under the number of a job.
    strangers: Vec<Child>,
    launches: usize,
}

macro_rules! check {
    ($holds:expr, $($why:tt)*) => {
        if !$holds {
            return Err(format!($($why)*));
        }
    };
}

impl World {
    fn new() -> Self {
        let env = TestEnv::new();
        let ran = env.work().join("ran");
        Self {
            scene: Scene { env, ran },
            model: Model::default(),
            actors: Vec::new(),
            strangers: Vec::new(),
            launches: 0,
        }
    }

    fn env(&self) -> &TestEnv {
        &self.scene.env
    }

    fn take(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Give(order) => self.give(order),
            Step::Break(order, moment) => self.break_off(order, moment),
            Step::Suffer(fault, job) if !self.actors.is_empty() => {
                self.suffer(fault, job % self.actors.len())
            }
            Step::Suffer(..) => Ok(()),
        }?;
        self.observe()
    }

    /// The job that is meant, and the word for it.
    fn find(&self, who: Who) -> (Option<usize>, String) {
        if self.actors.is_empty() {
            return (None, "nosuch".to_owned());
        }
        let at = who.job % self.actors.len();
        match self.model.jobs[at].name.filter(|_| who.by_name) {
            Some(name) => (self.model.named(name), name.to_owned()),
            None => {
                let there = self.model.jobs[at].life() != Life::Forgotten;
                (there.then_some(at), self.actors[at].id.clone())
            }
        }
    }

    fn give(&mut self, order: Order) -> Result<(), String> {
        let told = |words: &[&str], output: &Output, code: i32| {
            check!(output.code == code, "{words:?} is to end with {code}: {output:#?}");
            Ok(())
        };
        let (command, who) = match order {
            Order::Run { name, owner, kind } => return self.run(name, owner, kind),
            Order::Reap(orphans) => return self.reap(orphans),
            Order::Restart(who) => return self.restart(who, 1),
            Order::Prune(None) => {
                let output = self.env().outlive(["prune"]);
                for at in 0..self.actors.len() {
                    self.model.prune(at);
                }
                return told(&["prune"], &output, 0);
            }
            Order::Prune(Some(who)) => (&["prune"][..], who),
            Order::Stop(who) => (&["stop"][..], who),
            Order::Pause(who) => (&["pause"][..], who),
            Order::Resume(who) => (&["resume"][..], who),
            Order::WaitNow(who) => (&["wait", "-t", "0"][..], who),
            Order::Show(who) => (&["show"][..], who),
        };
        let (found, word) = self.find(who);
        let output = self.env().outlive(command.iter().copied().chain([word.as_str()]));
        let model = &mut self.model;
        let code = match (order, found) {
            (Order::WaitNow(_), None) => 125,
            (_, None) => 1,
            (Order::Stop(_), Some(at)) => model.stop(at),
            (Order::Pause(_), Some(at)) => model.pause(at, true),
            (Order::Resume(_), Some(at)) => model.pause(at, false),
            (Order::WaitNow(_), Some(at)) => model.wait_now(at),
            (Order::Prune(_), Some(at)) => model.prune(at),
            (_, Some(_)) => 0,
        };
        told(&[command[0], &word], &output, code)
    }

    /// The words of a launch, and who is to stand behind the job.
    fn launch(&self, name: Option<usize>, owner: Option<Policy>, kind: Kind) -> (Vec<String>, Actor) {
        let env = self.env();
        let gate = env.gate(&format!("gate-{}", self.launches));
        let owner_process = owner.map(|_| {
            let mut sleep = env.program("sleep");
            sleep.arg("1000").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        });
        let mut words = vec!["run".to_owned()];
        if let Some(name) = name {
            words.extend(["--name".to_owned(), NAMES[name].to_owned()]);
        }
        if let (Some(policy), Some(process)) = (owner, &owner_process) {
            words.extend(["--owner".to_owned(), process.id().to_string()]);
            let when = match policy {
                Policy::Reap => None,
                Policy::Keep => Some("keep"),
                Policy::Stop => Some("stop"),
            };
            words.extend(when.into_iter().flat_map(|when| ["--on-owner-exit", when]).map(str::to_owned));
        }
        let ran = self.scene.ran.display();
        let script = match kind {
            Kind::Plain => format!("echo $$ >>{ran}; read code <\"$1\"; exit $code"),
            Kind::Leaving => format!("sleep 1000 & echo $$ >>{ran}; read code <\"$1\"; exit $code"),
            Kind::Brief => {
                words.extend(["-t", "1ms"].map(str::to_owned));
                format!("echo $$ >>{ran}; exec sleep 1000")
            }
        };
        words.extend(["--", "sh", "-c", &script, "sh", gate.path()].map(str::to_owned));
        (words, Actor { id: String::new(), gate, owner: owner_process })
    }

    fn run(&mut self, name: Option<usize>, owner: Option<Policy>, kind: Kind) -> Result<(), String> {
        let (words, actor) = self.launch(name, owner, kind);
        self.launches += 1;
        let output = self.env().outlive(&words);
        let name = name.map(|name| NAMES[name]);
        if !self.model.may_run(name) {
            check!(output.code == 125, "the name {name:?} is given away twice: {output:#?}");
            bury(actor);
            return Ok(());
        }
        check!(output.code == 0, "run is to launch: {output:#?}");
        self.born(actor, output.id(), name, owner, kind, Life::NEW);
        self.ripen(self.actors.len() - 1)
    }

    fn born(
        &mut self,
        actor: Actor,
        id: String,
        name: Option<&'static str>,
        owner: Option<Policy>,
        kind: Kind,
        life: Life,
    ) {
        let owner = owner.map(|policy| (policy, true));
        self.model.launched(Job { name, kind, owner, run: 1, lives: vec![life] });
        self.actors.push(Actor { id, ..actor });
    }

    /// Lets a run come to where the model has it: its child born, or its time over.
    fn ripen(&mut self, at: usize) -> Result<(), String> {
        let id = self.actors[at].id.clone();
        match self.model.jobs[at].kind {
            Kind::Brief => {
                let wait = self.env().outlive(["wait", "--group", &id]);
                check!(wait.code == End::TIMED_OUT.code, "its time is over: {wait:#?}");
                self.model.jobs[at].lives = vec![Life::Over(End::TIMED_OUT)];
            }
            Kind::Leaving if self.model.jobs[at].life().has_leader() => {
                let pid = number(&self.recorded(at)["identity"]["pid"]);
                let children = || fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
                eventually("the job has its child", || children().is_ok_and(|list| !list.is_empty()));
            }
            _ => {}
        }
        Ok(())
    }

    fn restart(&mut self, who: Who, most: u64) -> Result<(), String> {
        let (found, word) = self.find(who);
        let output = self.env().outlive(["restart", &word]);
        let Some(at) = found else {
            check!(output.code == 1, "restart of nothing: {output:#?}");
            return Ok(());
        };
        if !self.model.restart(at) {
            check!(output.code == 1, "{word} is not to be restarted: {output:#?}");
            return Ok(());
        }
        check!(output.code == 0, "{word} is to be restarted: {output:#?}");
        self.launches += 1;
        if most > 1 {
            // The one that was killed may have come as far as a run of its own.
            let run = self.env().job(&self.actors[at].id)["run"].as_u64().unwrap();
            check!((self.model.jobs[at].run..self.model.jobs[at].run + most).contains(&run), "run {run}");
            self.model.jobs[at].run = run;
        }
        self.ripen(at)
    }

    fn reap(&mut self, orphans: Orphans) -> Result<(), String> {
        let output = self.env().outlive(["--json", "reap", "--orphans", word_of(orphans)]);
        let (code, did) = self.model.reap(orphans);
        check!(output.code == code, "reap is to end with {code}: {output:#?}");
        let said = output.json();
        let said = said.as_array().unwrap().iter().filter(|job| job["action"] != "cleared");
        let mut said: Vec<Value> = said.map(|job| json!([job["id"], job["action"]])).collect();
        let mut did: Vec<Value> =
            did.into_iter().map(|(at, action)| json!([self.actors[at].id, action])).collect();
        [&mut said, &mut did].into_iter().for_each(|list| list.sort_by_key(Value::to_string));
        check!(said == did, "reap says {said:?}, and is to do {did:?}");
        Ok(())
    }

    /// Gives an order to a command that is killed on the way, and then again to one that is not.
    fn break_off(&mut self, order: Order, moment: u32) -> Result<(), String> {
        let words: Vec<String> = match order {
            Order::Run { name, owner, kind } => return self.break_run(name, owner, kind, moment),
            Order::Reap(orphans) => ["reap", "--orphans", word_of(orphans)].map(str::to_owned).into(),
            Order::Restart(who) => vec!["restart".to_owned(), self.find(who).1],
            Order::Stop(who) => vec!["stop".to_owned(), self.find(who).1],
            Order::Pause(who) => vec!["pause".to_owned(), self.find(who).1],
            Order::Resume(who) => vec!["resume".to_owned(), self.find(who).1],
            Order::Prune(None) => vec!["prune".to_owned()],
            Order::Prune(Some(who)) => vec!["prune".to_owned(), self.find(who).1],
            Order::WaitNow(_) | Order::Show(_) => return self.give(order),
        };
        self.spawn_and_kill(&words, moment);
        self.calm()?;
        self.give_again(order)
    }

    fn give_again(&mut self, order: Order) -> Result<(), String> {
        match order {
            Order::Restart(who) => self.restart(who, 2),
            Order::Reap(orphans) => {
                // What the first has done, the second does not find any more.
                let output = self.env().outlive(["reap", "--orphans", word_of(orphans)]);
                let (code, _) = self.model.reap(orphans);
                check!(output.code == code, "reap is to end with {code}: {output:#?}");
                Ok(())
            }
            Order::Prune(Some(who)) => {
                // It may be gone already.
                let (found, word) = self.find(who);
                let output = self.env().outlive(["prune", &word]);
                let code = found.map_or(1, |at| self.model.prune(at));
                check!(output.code == code || output.stderr.contains("no job"), "prune: {output:#?}");
                Ok(())
            }
            order => self.give(order),
        }
    }

    fn spawn_and_kill(&self, words: &[String], moment: u32) {
        let mut child =
            self.env().command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        for _ in 0..moment {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Waits until what a killed command has left behind it has come to its end.
    fn calm(&self) -> Result<(), String> {
        truth::soon("what was started is known or gone", || {
            let jobs = self.env().json(["ls", "-a"]);
            let jobs = jobs.as_array().unwrap();
            let alive = jobs.iter().filter(|job| job["supervisor"]["alive"] == true).count();
            let found = truth::supervisors(self.env());
            check!(found.len() == alive, "{found:?} for {alive} jobs: {jobs:?}");
            check!(jobs.iter().all(|job| job["state"] != "starting"), "{jobs:?}");
            Ok(())
        })
    }

    /// A launch that was killed: there is no job, or one that failed, or one that runs.
    fn break_run(
        &mut self,
        name: Option<usize>,
        owner: Option<Policy>,
        kind: Kind,
        moment: u32,
    ) -> Result<(), String> {
        let kind = if kind == Kind::Brief { Kind::Plain } else { kind };
        let (words, actor) = self.launch(name, owner, kind);
        self.launches += 1;
        self.spawn_and_kill(&words, moment);
        self.calm()?;
        let jobs = self.env().json(["ls", "-a"]);
        let new = |job: &&Value| self.actors.iter().all(|actor| job["id"] != actor.id);
        let new: Vec<&Value> = jobs.as_array().unwrap().iter().filter(new).collect();
        let name = name.map(|name| NAMES[name]);
        let [job] = new[..] else {
            check!(new.is_empty(), "several jobs of one launch: {new:?}");
            bury(actor);
            return Ok(());
        };
        check!(self.model.may_run(name), "the name {name:?} was given away twice: {job}");
        let life = match job["state"].as_str() {
            Some("running") => Life::NEW,
            Some("failed") => Life::Over(End::BROKEN_OFF),
            _ => return Err(format!("a launch that was broken off: {job}")),
        };
        let id = job["id"].as_str().unwrap().to_owned();
        self.born(actor, id, name, owner, kind, life);
        self.ripen(self.actors.len() - 1)
    }

    fn recorded(&self, at: usize) -> Value {
        let run = u32::try_from(self.model.jobs[at].run).unwrap();
        self.env().launch_record(&self.actors[at].id, run)
    }

    fn process(&self, at: usize, who: &str) -> Process {
        let of = &self.recorded(at)[who];
        Process::exactly(number(&of["pid"]), of["start_time"].as_u64().unwrap()).expect("it lives")
    }

    fn suffer(&mut self, fault: Fault, at: usize) -> Result<(), String> {
        let (life, kind) = (self.model.jobs[at].life(), self.model.jobs[at].kind);
        match fault {
            // A stopped process reads nothing.
            Fault::Exit(code) if life.has_leader() && !life.paused() => {
                let leader = self.process(at, "identity");
                self.actors[at].gate.say(&format!("{code}\n"));
                leader.wait();
                self.model.leader_ends(at, End::exited(code));
            }
            Fault::KillLeader if life.has_leader() => {
                self.process(at, "identity").kill();
                self.model.leader_ends(at, End::exited(128 + SIGKILL));
            }
            Fault::KillSupervisor if life.supervised() => self.kill_supervisor(at),
            Fault::KillBoth if life.has_leader() && life.supervised() => {
                self.kill_supervisor(at);
                self.process(at, "identity").kill();
                self.model.leader_ends(at, End::exited(0));
            }
            Fault::Recycle if life.has_leader() && self.model.jobs[at].run == 1 && kind == Kind::Plain => {
                if life.supervised() {
                    self.kill_supervisor(at);
                }
                self.process(at, "identity").kill();
                self.model.leader_ends(at, End::exited(0));
                self.recycle(at);
            }
            Fault::KillOwner => {
                let Some(owner) = &mut self.actors[at].owner else { return Ok(()) };
                owner.kill().unwrap();
                owner.wait().unwrap();
                let stops =
                    self.model.jobs[at].owner.is_some_and(|(policy, alive)| alive && policy == Policy::Stop);
                self.model.owner_dies(at);
                if stops && life.supervised() {
                    self.env().outlive(["wait", "--group", &self.actors[at].id]);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn kill_supervisor(&mut self, at: usize) {
        self.process(at, "supervisor").kill();
        self.model.supervisor_dies(at);
    }

    /// Another process has the number of the job's leader from now on.
    fn recycle(&mut self, at: usize) {
        let mut sleep = self.env().program("setsid");
        let stranger =
            sleep.args(["sleep", "1000"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let pid = i32::try_from(stranger.id()).unwrap();
        eventually("the stranger has a session", || process::group_of(pid) == Some(pid));
        let lock = fs::File::options().write(true).open(self.env().state().join("ledger.lock")).unwrap();
        let _held = Flock::lock(lock, FlockArg::LockExclusive).unwrap();
        self.env().forge(&self.actors[at].id, |record| {
            for field in ["pid", "pgid", "sid"] {
                record["identity"][field] = pid.into();
            }
            // A tick before: of two processes that bore this number, it was the earlier one.
            record["identity"]["start_time"] = (process::start_of(pid).unwrap() - 1).into();
        });
        self.strangers.push(stranger);
    }

    /// The list agrees with the model, to the last job.
    fn observe(&mut self) -> Result<(), String> {
        let list = self.env().outlive(["--json", "ls", "-a"]);
        check!(list.code == 0 && list.stderr.is_empty(), "ls: {list:#?}");
        let list = list.json();
        let list = list.as_array().unwrap();
        for job in list {
            check!(self.actors.iter().any(|actor| job["id"] == actor.id), "nobody launched {job}");
        }
        for (actor, of) in self.actors.iter().zip(&mut self.model.jobs) {
            let shown = list.iter().find(|job| job["id"] == actor.id);
            let fits = |life: &Life| match (life.state(), shown) {
                (None, None) => true,
                (Some(state), Some(job)) => job["state"] == state && status_fits(job, *life),
                _ => false,
            };
            let fitting: Vec<Life> = of.lives.iter().copied().filter(fits).collect();
            check!(!fitting.is_empty(), "{}: {:?} in the model, but {shown:?}", actor.id, of.lives);
            of.lives = fitting;
            let Some(job) = shown else { continue };
            check!(job["run"] == of.run && job["name"] == json!(of.name), "{of:?} in the model, but {job}");
            // The supervisor of what is over may still be writing to the ledger.
            let supervised = of.life().over() || job["supervisor"]["alive"] == of.life().supervised();
            check!(supervised, "{of:?} in the model, but {job}");
        }
        for stranger in &mut self.strangers {
            let pid = i32::try_from(stranger.id()).unwrap();
            check!(process::is_alive(pid) && !process::is_stopped(pid), "a stranger was touched");
        }
        Ok(())
    }

    fn walk(&mut self, sequence: &[Step]) -> Result<(), String> {
        for step in sequence {
            self.take(*step).map_err(|why| format!("{step:?}: {why}"))?;
        }
        self.finish()
    }

    /// What must be so after anything.
    fn finish(&mut self) -> Result<(), String> {
        for at in 0..self.actors.len() {
            let wait = self.env().outlive(["wait", "-t", "0", &self.actors[at].id]);
            let code = self.model.wait_now(at);
            check!(wait.code == code, "wait is to end with {code}: {wait:#?}");
        }
        let mut story = Story::new("a random sequence", self.launches * 2, |_| Vec::new());
        story.forgets = self.model.jobs.iter().any(|job| job.life() == Life::Forgotten);
        let mut printed = String::new();
        for actor in &self.actors {
            let _ = writeln!(printed, "{}", actor.id);
        }
        truth::check(&self.scene, &printed, &story)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.actors.drain(..).for_each(bury);
        self.strangers.drain(..).for_each(end);
    }
}

/// The owner of a job that is none, or is done with.
fn bury(actor: Actor) {
    actor.owner.into_iter().for_each(end);
}

fn end(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn word_of(orphans: Orphans) -> &'static str {
    match orphans {
        Orphans::Stop => "stop",
        Orphans::Adopt => "adopt",
        Orphans::Keep => "keep",
    }
}

/// The status that is shown is the one that `wait` returns.
fn status_fits(job: &Value, life: Life) -> bool {
    let (Life::Lingering { end, .. } | Life::Over(end)) = life else {
        return job["exit_code"].is_null() && job["signal"].is_null();
    };
    let told = job["exit_code"].as_i64().or(job["signal"]["number"].as_i64().map(|number| 128 + number));
    match (end.state, end.code) {
        ("exited" | "stopped", code) if code != End::TIMED_OUT.code => told == Some(code.into()),
        ("failed", _) => told.is_none() && job["executed"] == false,
        // Timed out, or interrupted: the kernel's word is kept if there was one, and is not what `wait` returns.
        _ => job["exit_code"].is_null() || told.is_some(),
    }
}

#[test]
fn random_sequences_agree_with_the_model() {
    let cases = if full() { 400 } else { 12 };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 40, ..Config::default() };
    let (steps, failed) = (Cell::new(0), Cell::new(false));
    let told = TestRunner::new(config).run(&vec(step(), 8..16), |sequence| {
        steps.set(steps.get() + sequence.len());
        // What depends on the moment may need several tries to be seen in a shorter sequence, too.
        let tries = if failed.get() { 5 } else { 1 };
        let told = (0..tries).try_for_each(|_| World::new().walk(&sequence));
        if let (Err(why), false) = (&told, failed.get()) {
            println!("{why}\n{sequence:?}: looking for a shorter sequence");
            failed.set(true);
        }
        told.map_err(TestCaseError::fail)
    });
    match told {
        Ok(()) => {}
        Err(TestError::Abort(why)) => panic!("{why}"),
        Err(TestError::Fail(why, sequence)) => {
            let lines: String = sequence.iter().map(|step| format!("  {step:?}\n")).collect();
            panic!("{why}\nafter the shortest sequence that does it:\n{lines}");
        }
    }
    println!("random sequences beside the model: {} points, 0 broken, {cases} sequences", steps.get());
}
