//! GitHub Actions and GitLab: the steps in fresh shells, with what a runner does before, between and after.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::{file, free_port, has, job, run, state, write};
use crate::scratch::Scratch;

/// A step of GitHub's: its script, and whether it is run after a failure, too.
struct Step {
    script: String,
    always: bool,
}

/// The steps of a workflow. Only as much YAML as the recipe has.
fn steps(text: &str) -> Vec<Step> {
    let (_, steps) = text.split_once("steps:\n").unwrap();
    let script = |step: &str| {
        let (_, run) = step.split_once("run: ").unwrap();
        match run.strip_prefix("|\n") {
            Some(block) => block.lines().map(|line| line.trim_start().to_owned() + "\n").collect(),
            None => run.lines().next().unwrap().to_owned(),
        }
    };
    let one = |step: &str| Step { script: script(step), always: step.contains("if: always()") };
    steps.split("- name: ").skip(1).map(one).collect()
}

/// The lines of one of GitLab's sections.
fn section(text: &str, name: &str) -> String {
    let (_, rest) = text.split_once(&format!("  {name}:\n")).unwrap();
    let lines = rest.lines().map_while(|line| line.strip_prefix("    - "));
    lines.map(|line| line.to_owned() + "\n").collect()
}

/// A runner of GitHub's: each step is a file and a fresh bash; after a failure only what is always run.
struct Runner<'a> {
    scratch: &'a Scratch,
    port: String,
    mark: String,
    failed: bool,
}

impl Runner<'_> {
    fn command(&self) -> Command {
        let mut bash = self.scratch.command("bash");
        bash.env("CI", "true")
            .env("GITHUB_ACTIONS", "true")
            .env("RUNNER_TRACKING_ID", &self.mark)
            .env("PORT", &self.port);
        bash
    }

    fn step(&mut self, nth: usize, step: &Step) -> String {
        if self.failed && !step.always {
            return "skipped".into();
        }
        let script = write(self.scratch, &format!("step-{nth}.sh"), &step.script);
        let (code, log) = run(self.command().arg("-e").arg(script));
        self.failed |= code != Some(0);
        log
    }

    /// "Cleaning up orphan processes": whatever has the runner's mark in its environment is killed.
    fn clean_up(&self) {
        let mark = format!("RUNNER_TRACKING_ID={}", self.mark);
        let marked = |pid: &String| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
        };
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
        for pid in pids.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).filter(marked) {
            // It may have ended with its supervisor.
            let _ = Command::new("kill").args(["-s", "KILL", &pid]).stderr(Stdio::null()).status();
        }
    }
}

fn runner<'a>(scratch: &'a Scratch) -> Runner<'a> {
    let mark = format!("github_{}_{}", std::process::id(), scratch.home.file_name().unwrap().display());
    Runner { scratch, port: free_port(), mark, failed: false }
}

#[test]
fn a_server_from_one_step_to_the_next() {
    if !(has("curl") && has("python3")) {
        return;
    }
    let scratch = Scratch::new("github");
    let steps = steps(&file("ci.md", "github.yml"));
    assert_eq!(steps.iter().map(|step| step.always).collect::<Vec<_>>(), [false, false, true]);
    let mut runner = runner(&scratch);
    runner.step(0, &steps[0]);
    let used = runner.step(1, &steps[1]);
    assert!(used.contains("running") && scratch.home.join("index.html").exists(), "{used}");
    let log = runner.step(2, &steps[2]);
    assert!(!runner.failed && log.contains("GET / HTTP/1.1"), "{log}");
    assert_eq!(state(&scratch, "server"), "stopped");
}

#[test]
fn the_log_is_shown_after_a_failure_too() {
    if !(has("curl") && has("python3")) {
        return;
    }
    let scratch = Scratch::new("github-failure");
    // curl cannot write to a directory.
    std::fs::create_dir(scratch.home.join("index.html")).unwrap();
    let mut runner = runner(&scratch);
    let logs: Vec<String> = steps(&file("ci.md", "github.yml"))
        .iter()
        .enumerate()
        .map(|(nth, step)| runner.step(nth, step))
        .collect();
    assert!(runner.failed && logs[2].contains("GET / HTTP/1.1"), "{logs:?}");
    assert_eq!(state(&scratch, "server"), "stopped");
}

#[test]
fn what_a_runner_cleans_up_is_told_and_what_has_not_its_mark_lives() {
    if !has("python3") {
        return;
    }
    let scratch = Scratch::new("github-clean-up");
    let mut runner = runner(&scratch);
    runner.step(0, &steps(&file("ci.md", "github.yml"))[0]);
    let unmarked = &crate::readme::blocks(&crate::read("docs/recipes/ci.md"), "sh")[0];
    assert_eq!(run(runner.command().args(["-ec", unmarked])).0, Some(0));
    assert!(!runner.failed);
    runner.clean_up();
    scratch.outlive(&["wait", "--timeout", "60", "server"]);
    let server = job(&scratch, "server");
    let told = (server["state"].as_str().unwrap(), server["signal"]["name"].as_str());
    assert!(matches!(told, ("interrupted", _) | ("exited", Some("SIGKILL"))), "{server}");
    assert_eq!(server["exit_code"], serde_json::Value::Null);
    assert_eq!(state(&scratch, "cache"), "running");
}

#[test]
fn a_server_for_a_job_of_gitlab() {
    if !(has("curl") && has("python3")) {
        return;
    }
    let scratch = Scratch::new("gitlab");
    let text = file("ci.md", "gitlab.yml");
    let port = free_port();
    let shell = |script: String| {
        let mut bash = scratch.command("bash");
        let script = format!("set -eo pipefail\n{script}");
        bash.args(["-c", &script]).env("CI", "true").env("GITLAB_CI", "true").env("PORT", &port);
        bash.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = bash.spawn().unwrap();
        let group = child.id();
        let output = child.wait_with_output().unwrap();
        // The executor's own clean-up. Nobody may be left in the group.
        let _ = Command::new("kill")
            .args(["-s", "KILL", "--", &format!("-{group}")])
            .stderr(Stdio::null())
            .status();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    shell(section(&text, "before_script") + &section(&text, "script"));
    assert_eq!(state(&scratch, "server"), "running", "it is not in the group that was killed");
    let log = shell(section(&text, "after_script"));
    assert!(log.contains("GET / HTTP/1.1"), "{log}");
    assert_eq!(state(&scratch, "server"), "stopped");
}
