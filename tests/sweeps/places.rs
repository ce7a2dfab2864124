//! One state directory and several PID namespaces: containers, and containers started again on the same volume.

use std::process::{Child, Stdio};

use crate::env::{Output, TestEnv};
use crate::fifo::Fifo;

/// A script in a PID namespace of its own; PID 1 there is a program that waits for nobody.
fn inside(env: &TestEnv, script: &str, words: &[&str]) -> Child {
    let first = r#"mkfifo "$0"; bash -ec "$1" bash "${@:2}" 3>"$0" & exec cat "$0""#;
    let fifo = env.work().join(format!("end-{}", words.join("-").replace('/', "_")));
    let mut command = env.program("unshare");
    command
        .args(["-pf", "--mount-proc", "--kill-child", "bash", "-c", first])
        .arg(fifo)
        .arg(script)
        .args(words);
    command.stdin(Stdio::piped()).spawn().unwrap()
}

fn permitted(env: &TestEnv) -> bool {
    let can = Output::of(env.program("unshare").args(["-pf", "--mount-proc", "true"])).code == 0;
    if !can {
        println!("SKIPPED: no PID namespace can be made here");
    }
    can
}

/// A job in a namespace that lasts until the child that is returned is killed.
fn elsewhere(env: &TestEnv, fifo: &mut Fifo) -> (Child, String) {
    let script = r#"exec 4>"$1"; "$O" run -- sleep 1000 >&4; exec sleep 1000 4>&-"#;
    let child = inside(env, script, &[fifo.path()]);
    (child, fifo.line())
}

#[test]
fn a_job_in_another_namespace_is_seen_and_stopped_and_its_end_with_it_is_told() {
    let env = TestEnv::new();
    if !permitted(&env) {
        return;
    }
    let mut fifo = env.fifo("one");
    let (mut child, id) = elsewhere(&env, &mut fifo);
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["identity"]), (&"running".into(), &"unverified".into()), "{job}");
    env.outlive(["reap"]).ok();
    assert_eq!(env.state_of(&id), "running");
    env.outlive(["stop", &id]).ok();
    assert_eq!(env.state_of(&id), "stopped");
    child.kill().unwrap();
    child.wait().unwrap();

    let mut fifo = env.fifo("two");
    let (mut child, id) = elsewhere(&env, &mut fifo);
    child.kill().unwrap();
    child.wait().unwrap();
    env.outlive(["wait", &id]).ended(122);
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["identity"]), (&"interrupted".into(), &"stale".into()), "{job}");
    assert_eq!(job["cause"], "namespace-ended");
}

#[test]
fn a_container_started_again_on_the_same_volume_touches_nothing_of_its_own() {
    let env = TestEnv::new();
    if !permitted(&env) {
        return;
    }
    let mut fifo = env.fifo("one");
    let (mut child, id) = elsewhere(&env, &mut fifo);
    child.kill().unwrap();
    child.wait().unwrap();
    // The same numbers are taken again, by others.
    let script = r#"
        for number in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1000 >/dev/null 2>&1 3>&- & all="$all $!"; done
        "$O" ls -a >/dev/null
        "$O" stop "$1"; "$O" reap; "$O" wait "$1" || [ $? = 122 ]
        "$O" --json show "$1" | grep -q '"state":"interrupted"'
        for pid in $all; do grep -q ') S' "/proc/$pid/stat" || kill -0 "$pid"; done
        next=$("$O" run -- sh -c 'exit 3'); "$O" wait "$next" || [ $? = 3 ]
        alive=$("$O" run -- sleep 1000); "$O" stop "$alive"
        echo unharmed"#;
    let output = Output::finish(inside(&env, script, &[&id]), "the second container");
    assert!(output.code == 0 && output.stdout.ends_with("unharmed\n"), "{output:#?}");
}

/// A PID 1 that waits for nobody leaves every orphaned process a zombie for ever: dead all the same, and no use waiting
/// for.
#[test]
fn a_pid_1_that_waits_for_nobody_keeps_no_job_alive() {
    let env = TestEnv::new();
    if !permitted(&env) {
        return;
    }
    let script = r#"
        of() { "$O" --json ls -a "$1" | sed 's/.*"supervisor":{"pid":\([0-9]*\).*/\1/'; }
        leader() { "$O" --json ls -a "$1" | sed 's/.*"pid":\([0-9]*\),"pgid".*/\1/'; }
        dead() { until grep -q ') Z' "/proc/$1/stat"; do :; done; }
        state() { "$O" --json ls -a "$1" | sed 's/.*"state":"\([a-z]*\)".*/\1/'; }
        done=$("$O" run -- sh -c 'exit 3'); code=0; "$O" wait "$done" || code=$?; [ $code = 3 ]

        lost=$("$O" run --name web -- sleep 1000); s=$(of "$lost") l=$(leader "$lost")
        kill -9 "$s"; dead "$s"; [ "$(state "$lost")" = orphaned ]
        kill -9 "$l"; dead "$l"; [ "$(state "$lost")" = interrupted ]
        "$O" stop "$lost"; code=0; "$O" wait "$lost" || code=$?; [ $code = 122 ]
        "$O" restart "$lost" >/dev/null; [ "$(state web)" = running ]; "$O" stop web

        orphan=$("$O" run -- sleep 1000); s=$(of "$orphan") l=$(leader "$orphan")
        kill -9 "$s"; dead "$s"; "$O" stop "$orphan"; dead "$l"; [ "$(state "$orphan")" = interrupted ]

        # The status of an adopted leader is told once its parent has waited for it, and this one never does.
        adopted=$("$O" run -- sleep 1000); s=$(of "$adopted") l=$(leader "$adopted")
        kill -9 "$s"; dead "$s"; "$O" reap --orphans adopt >/dev/null; [ "$(state "$adopted")" = running ]
        kill -9 "$l"; code=0; "$O" wait "$adopted" || code=$?; [ $code = 122 ]; dead "$l"
        "$O" reap; [ "$("$O" --json ls)" = '[]' ]
        echo told"#;
    let output =
        Output::finish(inside(&env, script, &["not-reaping"]), "below a PID 1 that waits for nobody");
    assert!(output.code == 0 && output.stdout.ends_with("told\n"), "{output:#?}");
}

/// Who looks from elsewhere sees that the supervisor is gone, and cannot see that the job is not.
#[test]
fn an_orphan_that_was_looked_at_from_elsewhere_is_not_over_at_home() {
    let env = TestEnv::new();
    if !permitted(&env) {
        return;
    }
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    env.kill_supervisor(&id);
    let output = Output::finish(inside(&env, r#""$O" wait "$1" || [ $? = 122 ]"#, &[&id]), "elsewhere");
    assert_eq!(output.code, 0, "{output:#?}");
    let job = env.job(&id);
    assert_eq!((&job["state"], &job["cause"]), (&"lingering".into(), &"namespace-ended".into()), "{job}");
    env.outlive(["stop", &id]).ok();
    assert_eq!(fifo.end(), "");
    assert_eq!(env.state_of(&id), "interrupted");
}

#[test]
fn what_cannot_be_seen_to_pause_is_not_paused() {
    let env = TestEnv::new();
    if !permitted(&env) {
        return;
    }
    let mut fifo = env.fifo("life");
    let id = env.sleeper(&[], &mut fifo);
    for command in ["pause", "resume"] {
        let child = inside(&env, r#""$O" "$2" "$1"; [ $? = 1 ]"#, &[&id, command]);
        assert_eq!(Output::finish(child, command).code, 0, "{command}");
        assert_eq!(env.state_of(&id), "running");
    }
}

/// A main thread that has ended shows as a zombie while its program lives.
#[test]
fn a_leader_whose_main_thread_has_ended_lives() {
    const SOURCE: &str = "#include <pthread.h>\n#include <unistd.h>\n\
        static void *live(void *x) { write(3, \"up\\n\", 3); for (;;) pause(); return x; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, live, 0); pthread_exit(0); }\n";
    let env = TestEnv::new();
    std::fs::write(env.work().join("leader.c"), SOURCE).unwrap();
    let built = env.bash("command -v gcc >/dev/null && gcc -pthread -w -o leader leader.c", &[]);
    if built.code != 0 {
        println!("SKIPPED: no gcc: {built:?}");
        return;
    }
    let mut fifo = env.fifo("fifo");
    let id = env.script("exec ./leader", &[fifo.path()]);
    assert_eq!(fifo.line(), "up");
    assert_eq!(env.state_of(&id), "running");
    env.kill_supervisor(&id);
    assert_eq!(env.state_of(&id), "orphaned");
    env.outlive(["reap", "--orphans", "keep"]).ok();
    assert_eq!(env.state_of(&id), "orphaned");
    env.outlive(["stop", "-t", "1", &id]).ok();
    assert_eq!(fifo.end(), "");
    assert_eq!(env.state_of(&id), "interrupted");
}
