//! The entrypoint, as PID 1 of a PID namespace.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::{place, state};
use crate::scratch::Scratch;

/// Whether this process may make a PID namespace.
fn can_contain() -> bool {
    let tried = Command::new("unshare").args(["-pf", "--mount-proc", "true"]).output();
    let can = tried.is_ok_and(|output| output.status.success());
    if !can {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: no PID namespace can be made here: the entrypoint was not tried"
        );
    }
    can
}

struct Container<'a> {
    scratch: &'a Scratch,
    child: Child,
}

impl<'a> Container<'a> {
    /// The jobs tell through the FIFO `up` that they run.
    fn start(scratch: &'a Scratch, web: &str, worker: &str) -> Self {
        Self::of(scratch, &place(scratch, "container.md", "entrypoint.sh"), web, worker)
    }

    fn of(scratch: &'a Scratch, script: &Path, web: &str, worker: &str) -> Self {
        let mut unshare = scratch.command("unshare");
        unshare.args(["-pf", "--mount-proc", "--kill-child", "bash"]).arg(script);
        unshare.env("OUTLIVE_STATE_DIR", scratch.state_dir()).env("WEB", web).env("WORKER", worker);
        let child = unshare.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { scratch, child }
    }

    /// Blocks until so many jobs run.
    fn up(&self, jobs: usize) {
        let mut lines = 0;
        while lines < jobs {
            lines += std::fs::read_to_string(self.scratch.home.join("up")).unwrap().lines().count();
        }
    }

    /// The process that is PID 1 inside, by its number here.
    fn pid_1(&self) -> String {
        let unshare = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{unshare}/task/{unshare}/children")).unwrap();
        children.trim().to_owned()
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args(["-s", name, &self.pid_1()]).status().unwrap().success());
    }

    fn end(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    mkfifo(&scratch.home.join("up"), Mode::from_bits_truncate(0o600)).unwrap();
    scratch
}

const SERVES: &str = "echo >up; exec sleep 600";

#[test]
fn a_container_ends_with_the_first_of_its_services() {
    if !can_contain() {
        return;
    }
    let scratch = scratch("container");
    let container = Container::start(&scratch, "exit 3", "exec sleep 600");
    assert_eq!(container.end(), Some(3));
    assert_eq!((state(&scratch, "web"), state(&scratch, "worker")), ("exited".into(), "stopped".into()));
}

#[test]
fn a_service_that_cannot_be_started_leaves_none_alone() {
    if !can_contain() {
        return;
    }
    let scratch = scratch("container-broken");
    let script = super::file("container.md", "entrypoint.sh")
        .replace("--name worker -- sh", "--name worker -- nosuch");
    let container =
        Container::of(&scratch, &super::write(&scratch, "entrypoint.sh", &script), SERVES, SERVES);
    container.up(1);
    assert_eq!(container.end(), Some(127));
    assert_eq!((state(&scratch, "web"), state(&scratch, "worker")), ("stopped".into(), "failed".into()));
}

#[test]
fn a_container_that_is_asked_to_stop_stops_all_that_is_in_it() {
    if !can_contain() {
        return;
    }
    let scratch = scratch("container-stop");
    let container = Container::start(&scratch, SERVES, SERVES);
    container.up(2);
    container.signal("TERM");
    assert_eq!(container.end(), Some(143), "the status of what was stopped by TERM");
    assert_eq!((state(&scratch, "web"), state(&scratch, "worker")), ("stopped".into(), "stopped".into()));
}

#[test]
fn the_next_container_knows_how_the_last_one_was() {
    if !can_contain() {
        return;
    }
    let scratch = scratch("container-next");
    let container = Container::start(&scratch, SERVES, SERVES);
    container.up(2);
    container.signal("KILL");
    container.end();
    let first = super::job(&scratch, "web")["id"].as_str().unwrap().to_owned();
    assert_eq!(state(&scratch, &first), "interrupted");
    let container = Container::start(&scratch, "exit 0", SERVES);
    container.up(1);
    assert_eq!(container.end(), Some(0));
    assert_eq!((state(&scratch, &first), state(&scratch, "web")), ("interrupted".into(), "exited".into()));
}
