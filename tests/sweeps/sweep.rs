//! One story, broken at each of its points in turn.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::env::TestEnv;
use crate::process::Process;
use crate::trace::{self, Act, Fault, Role, Traced};
use crate::truth::{self, Verdict};

/// The world in which a story is told once.
pub(crate) struct Scene {
    pub(crate) env: TestEnv,
    pub(crate) ran: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let env = TestEnv::new();
        let ran = env.work().join("ran");
        Self { env, ran }
    }

    /// A command that leaves a line each time it is executed.
    pub(crate) fn job(&self) -> String {
        format!("echo $$ >>{}", self.ran.display())
    }
}

/// What is prepared, which command is then broken, and how often the job may have been executed in the end.
pub(crate) struct Story {
    pub(crate) name: &'static str,
    pub(crate) prepare: fn(&Scene) -> Vec<String>,
    pub(crate) most: usize,
    /// Whether the job is killed once the command has ended, so that a supervisor that is watched ends too.
    pub(crate) ends: bool,
    /// Whether the command makes outlive forget the job.
    pub(crate) forgets: bool,
}

impl Story {
    pub(crate) const fn new(name: &'static str, most: usize, prepare: fn(&Scene) -> Vec<String>) -> Self {
        Self { name, prepare, most, ends: false, forgets: false }
    }
}

/// Ends the last execution of the job.
fn end_job(ran: &Path) {
    let text = fs::read_to_string(ran).unwrap_or_default();
    let last = text.lines().last().and_then(|line| line.parse().ok()).and_then(Process::open);
    last.inspect(|process| process.signal(nix::libc::SIGKILL));
}

pub(crate) fn full() -> bool {
    std::env::var("SWEEP").is_ok_and(|value| value == "full")
}

/// After this long a command that was broken counts as hanging: less than a lock is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// Tells the story once with the fault. None: there was no such point.
fn point(story: &Story, fault: Fault) -> Result<Option<i64>, String> {
    let scene = Scene::new();
    let words = (story.prepare)(&scene);
    let (out, err) = (scene.env.work().join("stdout"), scene.env.work().join("stderr"));
    let mut command = scene.env.command(&words);
    command.stdout(Stdio::from(File::create(&out).unwrap())).stderr(Stdio::from(File::create(&err).unwrap()));
    let (send, receive) = std::sync::mpsc::channel();
    let (ends, ran) = (story.ends, scene.ran.clone());
    std::thread::spawn(move || {
        send.send(trace::run(command, fault, || {
            if ends {
                end_job(&ran)
            }
        }))
    });
    let Ok(Traced { hit, code, .. }) = receive.recv_timeout(PATIENCE) else {
        for process in truth::leftovers(&scene.env) {
            process.kill();
        }
        return Err("it hangs".to_owned());
    };
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (stdout, stderr) = (read(&out), read(&err));
    let said = |why: String| format!("{why}\n      exit {code}, stdout {stdout:?}, stderr {stderr:?}");
    answered(fault, hit, code, &stderr).map_err(said)?;
    let Some(hit) = hit else { return Ok(None) };
    truth::check(&scene, &stdout, story).map_err(said)?;
    Ok(Some(hit))
}

/// A command whose call failed says so or succeeds; it does not crash, and does not fail in silence.
fn answered(fault: Fault, hit: Option<i64>, code: i32, stderr: &str) -> Verdict {
    let killed = hit.is_some() && fault.act == Act::Kill && fault.role == Role::Caller;
    // Without memory a Rust program aborts, before `main` even; that nothing is lost then is checked like the rest.
    if fault.act == Act::Fail(nix::libc::ENOMEM) {
        return Ok(());
    }
    truth::ensure!(killed || code < 128, "it crashed");
    truth::ensure!(killed || code == 0 || !stderr.is_empty(), "it failed in silence");
    truth::ensure!(!stderr.contains("panicked"), "it panicked");
    Ok(())
}

/// Breaks the story at its points until it has no more of them; a sample of about `sample` if not in full.
pub(crate) fn sweep(
    story: &Story,
    role: Role,
    call: Option<(&str, i64)>,
    act: Act,
    sample: u32,
) -> Vec<String> {
    let begun = Stopwatch::start();
    let number = call.map(|(_, number)| number);
    let fault = |nth| Fault { role, call: number, nth, act };
    let total = if full() { u32::MAX } else { count(story, fault(u32::MAX)) };
    if total == 0 {
        return Vec::new();
    }
    let step = if full() { 1 } else { (total / sample).max(1) };
    // Not the same sample each time, but one that can be had again.
    let (mut nth, mut tried, mut broken) = (1 + std::process::id() % step, 0, Vec::new());
    loop {
        if nth > total {
            break;
        }
        match point(story, fault(nth)) {
            Ok(None) => break,
            Ok(Some(_)) => {}
            Err(why) => {
                let why = format!("{} {role:?} {act:?} {call:?} at {nth}: {why}", story.name);
                println!("{why}");
                broken.push(why);
            }
        }
        tried += 1;
        nth += step;
    }
    if tried == 0 {
        return broken;
    }
    let call = call.map_or("any call", |(name, _)| name);
    println!(
        "{:<22} {role:?} {act:?} {call}: {tried} points, {} broken, {:.1} s",
        story.name,
        broken.len(),
        begun.seconds()
    );
    broken
}

/// How many points there are.
fn count(story: &Story, fault: Fault) -> u32 {
    let scene = Scene::new();
    let words = (story.prepare)(&scene);
    let mut command = scene.env.command(&words);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (ends, ran) = (story.ends, scene.ran.clone());
    trace::run(command, fault, || {
        if ends {
            end_job(&ran)
        }
    })
    .seen
}

/// How long a sweep took, for who runs it.
struct Stopwatch(std::time::Duration);

impl Stopwatch {
    fn now() -> std::time::Duration {
        nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap().into()
    }

    fn start() -> Self {
        Self(Self::now())
    }

    fn seconds(&self) -> f64 {
        (Self::now() - self.0).as_secs_f64()
    }
}

pub(crate) fn report(broken: Vec<String>) {
    assert!(broken.is_empty(), "{} broken promises:\n{}", broken.len(), broken.join("\n"));
}
