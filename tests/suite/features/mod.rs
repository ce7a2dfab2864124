//! What makes people live with it: seeing, steering and hearing of jobs; readiness, limits, lifetimes, secrets.

mod adopt;
mod cap;
mod events;
mod hook;
mod lifetimes;
mod logs;
mod pause;
mod prune;
mod ready;
mod records;
mod secrets;
mod show;
mod terminal;

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::process::{Child, Command};

use crate::env::{Output, TestEnv};
use crate::fifo::Fifo;
use crate::process::Process;

/// A program that goes on beside its test, and not beyond it.
struct Background {
    child: Option<Child>,
    shown: String,
}

impl Background {
    fn start(mut command: Command) -> Self {
        let child = Some(command.spawn().unwrap());
        Self { child, shown: format!("{command:?}") }
    }

    /// Runs outlive with its output in a FIFO, where it can be read as it comes.
    fn into<W: AsRef<OsStr>>(env: &TestEnv, words: impl IntoIterator<Item = W>, out: &Fifo) -> Self {
        let mut command = env.command(words);
        command.stdout(writing_end(out));
        Self::start(command)
    }

    /// A process for a job to belong to.
    fn idle(env: &TestEnv) -> Self {
        let mut command = env.program("sleep");
        command.arg("1000");
        Self::start(command)
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.as_ref().unwrap().id()).unwrap()
    }

    /// Blocks until it has died of the signal. Nobody has waited for it then: it is a zombie.
    fn die_of(&self, signal: i32) {
        let process = Process::open(self.pid()).unwrap();
        process.signal(signal);
        process.wait();
    }

    fn finish(mut self) -> Output {
        Output::finish(self.child.take().unwrap(), &self.shown)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn writing_end(fifo: &Fifo) -> File {
    OpenOptions::new().write(true).open(fifo.path()).unwrap()
}
