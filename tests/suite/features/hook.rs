//! `--on-exit`: a command that is told how the job ended, once that is recorded.

use serde_json::{Value, json};

use crate::env::{TestEnv, eventually};

/// What the ledger says of the end of a job's command.
fn recorded(env: &TestEnv, id: &str) -> Option<Value> {
    env.records().into_iter().find(|record| record["kind"] == "on-exit" && record["id"] == id)
}

#[test]
fn the_command_is_told_everything() {
    let env = TestEnv::new();
    let mut told = env.fifo("told");
    let hook = "echo $OUTLIVE_ID $OUTLIVE_NAME $OUTLIVE_RUN $OUTLIVE_STATE/$OUTLIVE_CAUSE \
                $OUTLIVE_EXIT_CODE/$OUTLIVE_SIGNAL $OUTLIVE_OUTPUT $PWD $OWN >\"$TOLD\"";
    let tell = format!("TOLD={}", told.path());
    let options = ["--on-exit", hook, "-e", &tell, "-e", "OWN=mine"];
    let work = env.work().display().to_string();
    let output = |id: &str| env.job(id)["output"]["path"].as_str().unwrap().to_owned();
    let run = |words: &[&str]| env.run(options.iter().chain(words));

    let id = run(&["--name", "web", "--", "sh", "-c", "exit 7"]);
    assert_eq!(told.line(), format!("{id} web 1 exited/ 7/ {} {work} mine", output(&id)));
    env.outlive(["restart", &id]).ok();
    assert_eq!(told.line(), format!("{id} web 2 exited/ 7/ {} {work} mine", output(&id)));
    let id = run(&["sleep", "1000"]);
    env.outlive(["stop", &id]).ok();
    assert_eq!(told.line(), format!("{id} 1 stopped/stop /15 {} {work} mine", output(&id)));
    let id = run(&["-t", "10ms", "sleep", "1000"]);
    assert_eq!(told.line(), format!("{id} 1 stopped/timeout /15 {} {work} mine", output(&id)));
}

/// Whoever is told can ask, and gets the recorded answer.
#[test]
fn the_end_is_recorded_before_the_command_runs() {
    let env = TestEnv::new();
    let mut told = env.fifo("told");
    let hook =
        "$O wait -t 0 $OUTLIVE_ID; code=$?; $O --json show $OUTLIVE_ID >\"$TOLD\"; echo $code >\"$TOLD\"";
    let tell = format!("TOLD={}", told.path());
    let id = env.run(["--on-exit", hook, "-e", &tell, "--", "sh", "-c", "exit 7"]);
    let job: Value = serde_json::from_str(&told.line()).unwrap();
    assert_eq!((&job["state"], &job["exit_code"]), (&json!("exited"), &json!(7)));
    assert_eq!((told.line(), &job["id"]), ("7".to_owned(), &json!(id)));
}

#[test]
fn its_failure_is_recorded_and_is_not_the_jobs() {
    let env = TestEnv::new();
    for (hook, detail) in
        [("exit 3", "exit 3"), ("kill -KILL $$", "SIGKILL"), ("nosuch", "exit 127"), (":", "exit 0")]
    {
        let id = env.run(["--on-exit", hook, "true"]);
        env.outlive(["wait", &id]).ok();
        eventually("the end of the command is recorded", || recorded(&env, &id).is_some());
        assert_eq!(recorded(&env, &id).unwrap()["detail"], detail, "{hook}");
        let job = env.job(&id);
        assert_eq!((&job["state"], &job["exit_code"]), (&json!("exited"), &json!(0)));
        assert_eq!(env.json(["show", &id])["on_exit"], detail);
        let shown = env.outlive(["show", &id]).ok().stdout;
        assert!(shown.contains(&format!("\non exit     {detail}\n")), "{shown}");
    }
    assert_eq!(env.json(["show", &env.run(["true"])])["on_exit"], json!(null));
}

/// It belongs to nobody: the job is over while it still works, and a stop does not reach it.
#[test]
fn nobody_waits_for_it_and_nobody_stops_it() {
    let env = TestEnv::new();
    let (mut life, mut told, gate) = (env.fifo("life"), env.fifo("told"), env.gate("gate"));
    let hook = "echo up >\"$TOLD\"; read go <\"$GO\"; echo done >\"$TOLD\"";
    let (tell, go) = (format!("TOLD={}", told.path()), format!("GO={}", gate.path()));
    let id = env.sleeper(&["--on-exit", hook, "-e", &tell, "-e", &go], &mut life);
    env.outlive(["stop", &id]).ok();
    life.end();
    assert_eq!(told.line(), "up");
    env.outlive(["wait", "--group", &id]).ended(143);
    env.outlive(["stop", "-t", "0", &id]).ok();
    env.outlive(["stop", "--all", "-t", "0"]).ok();
    env.outlive(["reap"]).ok();
    assert_eq!((env.state_of(&id), recorded(&env, &id)), ("stopped".into(), None));
    assert_eq!(env.json(["ls"]), json!([]));
    gate.open();
    assert_eq!(told.line(), "done");
    eventually("the end of the command is recorded", || recorded(&env, &id).is_some());
    assert_eq!(recorded(&env, &id).unwrap()["detail"], "exit 0");
}

/// What the leader leaves behind neither keeps the command from running nor is ended by it.
#[test]
fn it_runs_at_the_end_of_the_leader() {
    let env = TestEnv::new();
    let (mut life, mut told) = (env.fifo("life"), env.fifo("told"));
    let tell = format!("TOLD={}", told.path());
    let options = ["--on-exit", "echo $OUTLIVE_STATE >\"$TOLD\"", "-e", &tell];
    let id = env.script_with(&options, "(echo up >&3; exec sleep 1000) & exit 0", &[life.path()]);
    assert_eq!((life.line(), told.line()), ("up".into(), "exited".into()));
    assert_eq!(env.state_of(&id), "lingering");
    env.outlive(["stop", &id]).ok();
    life.end();
}

#[test]
fn nothing_is_said_of_a_job_that_the_command_has_pruned() {
    let env = TestEnv::new();
    let (mut life, mut told) = (env.fifo("life"), env.fifo("told"));
    let tell = format!("TOLD={}", told.path());
    let hook = "$O prune $OUTLIVE_ID >\"$TOLD\"";
    let id = env.sleeper(&["--on-exit", hook, "-e", &tell], &mut life);
    let supervisor = env.supervisor(&id);
    env.outlive(["stop", &id]).ok();
    assert_eq!(told.line(), id);
    supervisor.wait();
    assert!(!env.records().iter().any(|record| record["kind"] == "on-exit"), "{:?}", env.records());
    assert_eq!(env.json(["ls", "-a"]), json!([]));
}
