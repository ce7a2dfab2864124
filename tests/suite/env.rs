//! The little world of one test: a state directory, a home and a working directory of its own.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use serde_json::Value;

use crate::fifo::{Fifo, Gate};
use crate::process::{self, Process};

pub(crate) const OUTLIVE: &str = env!("CARGO_BIN_EXE_outlive");

/// After this long, something that a test blocks on counts as hanging. No test passes by waiting.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What this build can do: the abilities that `doctor` says it has.
pub(crate) fn can(ability: &str) -> bool {
    static ABILITIES: OnceLock<BTreeMap<String, bool>> = OnceLock::new();
    let ask = || {
        let checks = TestEnv::new().command(["doctor", "--json"]).output().unwrap().stdout;
        let checks: Vec<Value> = serde_json::from_slice(&checks).unwrap();
        let ability = |check: &Value| Some((check["ability"].as_str()?.to_owned(), check["pass"] == true));
        checks.iter().filter_map(ability).collect()
    };
    *ABILITIES.get_or_init(ask).get(ability).unwrap_or_else(|| panic!("no ability is called {ability}"))
}

/// A test begins with `if lacks("…") { return }` if what it promises cannot be had without. docs/platforms.md lists it.
pub(crate) fn lacks(ability: &str) -> bool {
    let lacking = !can(ability);
    if lacking {
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        // Not by a macro: what a test prints is shown only if it fails.
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: this build lacks {ability}");
    }
    lacking
}

/// The scripts of jobs begin with this: `$1` is the FIFO, which every process of the job then holds.
pub(crate) const HOLD: &str = "exec 3>\"$1\"; ";

pub(crate) struct TestEnv {
    root: PathBuf,
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        let template = std::env::temp_dir().join("outlive-test-XXXXXX");
        let root = nix::unistd::mkdtemp(&template).unwrap();
        let env = Self { root: root.canonicalize().unwrap() };
        fs::create_dir(env.home()).unwrap();
        fs::create_dir(env.work()).unwrap();
        env
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// Makes the state directory, as the first launch does.
    pub(crate) fn prepare(&self) {
        use std::os::unix::fs::DirBuilderExt;
        for path in [self.state(), self.state().join("jobs"), self.state().join("names")] {
            fs::DirBuilder::new().mode(0o700).create(path).unwrap();
        }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Where commands are run.
    pub(crate) fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    pub(crate) fn run_dir(&self, id: &str, run: u32) -> PathBuf {
        self.state().join("jobs").join(id).join(run.to_string())
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.state().join("ledger.jsonl")
    }

    /// The records of the ledger, in order.
    pub(crate) fn records(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.ledger()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn fifo(&self, name: &str) -> Fifo {
        Fifo::new(self.root.join(name))
    }

    pub(crate) fn gate(&self, name: &str) -> Gate {
        Gate::new(self.root.join(name))
    }

    /// A command that sees nothing of the environment of the tests; `$O` is the binary.
    pub(crate) fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", self.home())
            .env("OUTLIVE_STATE_DIR", self.state())
            .env("O", OUTLIVE)
            .env("LC_ALL", "C")
            .current_dir(self.work())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn command<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> Command {
        let mut command = self.program(OUTLIVE);
        command.args(words);
        command
    }

    /// Runs outlive to its end, and to the end of its output.
    pub(crate) fn outlive<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> Output {
        Output::of(&mut self.command(words))
    }

    /// Runs outlive with `--json`, which must be its first word here, and reads what it prints.
    pub(crate) fn json<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> Value {
        let mut command = self.command(["--json"]);
        Output::of(command.args(words)).json()
    }

    /// The same for a command that ends with this code.
    pub(crate) fn json_of<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>, code: i32) -> Value {
        let mut command = self.command(["--json"]);
        Output::of(command.args(words)).ended(code).json()
    }

    /// Runs a bash script; `$1` and so on are `words`.
    pub(crate) fn bash(&self, script: &str, words: &[&str]) -> Output {
        Output::of(self.program("bash").args(["-ec", script, "bash"]).args(words))
    }

    /// Launches a command; its id.
    pub(crate) fn run<W: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = W>) -> String {
        let mut command = self.command(["run"]);
        Output::of(command.args(words)).ok().id()
    }

    /// Launches a shell script that begins with [`HOLD`].
    pub(crate) fn script(&self, script: &str, words: &[&str]) -> String {
        self.script_with(&[], script, words)
    }

    pub(crate) fn script_with(&self, options: &[&str], script: &str, words: &[&str]) -> String {
        let script = format!("{HOLD}{script}");
        let fixed = ["--", "sh", "-c", &script, "sh"];
        self.run(options.iter().chain(&fixed).chain(words))
    }

    /// Launches a job that holds the FIFO, and returns once it runs.
    pub(crate) fn sleeper(&self, options: &[&str], fifo: &mut Fifo) -> String {
        let id = self.script_with(options, "echo up >&3; exec sleep 1000", &[fifo.path()]);
        assert_eq!(fifo.line(), "up");
        id
    }

    /// What `show` says of a job.
    pub(crate) fn job(&self, id: &str) -> Value {
        self.json(["show", id])
    }

    pub(crate) fn state_of(&self, id: &str) -> String {
        self.job(id)["state"].as_str().unwrap().to_owned()
    }

    pub(crate) fn leader(&self, id: &str) -> Process {
        let job = self.job(id);
        let (pid, start_time) = (number(&job["pid"]), job["start_time"].as_u64().unwrap());
        Process::exactly(pid, start_time).expect("the leader lives")
    }

    pub(crate) fn supervisor(&self, id: &str) -> Process {
        let pid = number(&self.job(id)["supervisor"]["pid"]);
        let launch = self.launch_record(id, 1);
        let start_time = launch["supervisor"]["start_time"].as_u64().unwrap();
        Process::exactly(pid, start_time).expect("the supervisor lives")
    }

    pub(crate) fn kill_supervisor(&self, id: &str) {
        self.supervisor(id).kill();
    }

    /// Blocks until the supervisor is gone as well, which writes to the ledger last.
    pub(crate) fn settled(&self, id: &str) {
        self.settled_run(id, 1);
    }

    pub(crate) fn settled_run(&self, id: &str, run: u32) {
        let launch = self.launch_record(id, run);
        let start_time = launch["supervisor"]["start_time"].as_u64().unwrap();
        if let Some(supervisor) = Process::exactly(number(&launch["supervisor"]["pid"]), start_time) {
            supervisor.wait();
        }
    }

    /// Kills a job in a way that nobody can have seen: its supervisor first.
    pub(crate) fn kill_unseen(&self, id: &str) {
        let (supervisor, leader) = (self.supervisor(id), self.leader(id));
        supervisor.kill();
        leader.kill();
    }

    pub(crate) fn launch_record(&self, id: &str, run: u32) -> Value {
        serde_json::from_slice(&fs::read(self.run_dir(id, run).join("launch.json")).unwrap()).unwrap()
    }

    /// Rewrites what is recorded of a job's launches: in `launch.json` and in the ledger.
    pub(crate) fn forge(&self, id: &str, change: impl Fn(&mut Value)) {
        let path = self.run_dir(id, 1).join("launch.json");
        let mut launch = self.launch_record(id, 1);
        change(&mut launch);
        fs::write(path, format!("{launch}\n")).unwrap();
        let forged = self.records().into_iter().map(|mut record| {
            if record["kind"] == "launched" && record["id"] == id {
                change(&mut record);
            }
            format!("{record}\n")
        });
        fs::write(self.ledger(), forged.collect::<String>()).unwrap();
    }

    /// What is still alive of what this test started, found through its own state directory.
    pub(crate) fn leftovers(&self) -> Vec<Process> {
        let mut found = Vec::new();
        for path in launch_files(&self.state()) {
            let Ok(raw) = fs::read(&path) else { continue };
            let Ok(launch) = serde_json::from_slice::<Value>(&raw) else { continue };
            // A number of another namespace names somebody else here; its processes are found by their mark.
            if launch["identity"]["place"]["pid_ns"].as_u64() != Some(process::own_namespace()) {
                continue;
            }
            for process in [&launch["identity"], &launch["supervisor"]] {
                if let (Some(pid), Some(start)) = (process["pid"].as_i64(), process["start_time"].as_u64()) {
                    found.extend(Process::exactly(i32::try_from(pid).unwrap(), start));
                }
            }
        }
        let mark = format!("OUTLIVE_STATE_DIR={}", self.state().display());
        for pid in process::with_environment(&mark) {
            // The start time is read again after the process is held: it is the one that was marked, or none.
            let Some(start) = process::start_of(pid) else { continue };
            found.extend(Process::exactly(pid, start).filter(|_| process::with_mark(pid, &mark)));
        }
        found
    }
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        if self.state().exists() {
            let mut stop = self.command(["stop", "--all", "-t", "0"]);
            let _ = stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
            loop {
                let left = self.leftovers();
                if left.is_empty() {
                    break;
                }
                left.iter().for_each(Process::kill);
            }
        }
        // Whoever still writes here has outlived its test.
        let removed = fs::remove_dir_all(&self.root);
        assert!(removed.is_ok() || std::thread::panicking(), "{}: {removed:?}", self.root.display());
    }
}

fn launch_files(state: &Path) -> Vec<PathBuf> {
    let below = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    below(state.join("jobs")).flat_map(below).map(|run| run.join("launch.json")).collect()
}

/// How a program ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Output {
    /// 128 + n if signal n ended it.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) raw: Vec<u8>,
}

impl Output {
    pub(crate) fn of(command: &mut Command) -> Self {
        let shown = format!("{command:?}");
        Self::finish(command.spawn().unwrap(), &shown)
    }

    /// Waits for a program and reads its output to the end.
    pub(crate) fn finish(child: Child, shown: &str) -> Self {
        let (send, receive) = mpsc::channel();
        let pid = child.id();
        std::thread::spawn(move || send.send(child.wait_with_output()));
        let Ok(output) = receive.recv_timeout(PATIENCE) else {
            panic!("process {pid} hangs, or somebody keeps its output: {shown}");
        };
        let output = output.unwrap();
        Self {
            code: output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap()),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            raw: output.stdout,
        }
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.ended(0)
    }

    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Something that was not done says why on stderr, and nothing on stdout.
    #[track_caller]
    pub(crate) fn refused(self, code: i32, why: &str) -> Self {
        assert!(self.stderr.contains(why), "no {why:?} in {self:#?}");
        assert_eq!(self.stdout, "", "{self:#?}");
        self.ended(code)
    }

    #[track_caller]
    pub(crate) fn id(&self) -> String {
        let id = self.stdout.strip_suffix('\n').unwrap_or_default();
        assert!(!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{self:#?}");
        id.to_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.raw).unwrap_or_else(|error| panic!("{error} in {self:#?}"))
    }
}

pub(crate) fn number(value: &Value) -> i32 {
    i32::try_from(value.as_i64().unwrap()).unwrap()
}

/// For what nobody can block on: asks again and again until it is so.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    const PAUSE: Duration = Duration::from_millis(5);
    for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
        if holds() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
    panic!("never came true: {what}");
}
