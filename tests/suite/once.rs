//! The end of a run is told once, whoever dies or stands still on the way from the sidecar to the ledger.

use nix::libc;

use crate::env::{TestEnv, eventually};
use crate::lock::Held;
use crate::process::is_stopped;

fn ends(env: &TestEnv) -> Vec<(String, u64)> {
    let ended = ["exited", "stopped", "failed", "interrupted"];
    let records = env.records();
    let of = records.iter().filter(|record| ended.contains(&record["kind"].as_str().unwrap()));
    of.map(|record| (record["kind"].as_str().unwrap().to_owned(), record["run"].as_u64().unwrap())).collect()
}

/// A job whose end only its sidecar knows: its supervisor could not tell the ledger.
fn untold(env: &TestEnv) -> String {
    let gate = env.gate("go");
    let mut fifo = env.fifo("life");
    let id = env.script("echo up >&3; read go <\"$2\"; exit 3", &[fifo.path(), gate.path()]);
    assert_eq!(fifo.line(), "up");
    let lock = Held::new(&env.state().join("ledger.lock"));
    gate.open();
    env.outlive(["wait", &id]).ended(3);
    env.settled(&id);
    drop(lock);
    assert_eq!(ends(env), []);
    id
}

#[test]
fn before_the_next_run_begins() {
    let env = TestEnv::new();
    let id = untold(&env);
    env.outlive(["restart", &id]).ok();
    assert_eq!(ends(&env)[0], ("exited".to_owned(), 1));
    env.outlive(["stop", "-t", "0", &id]).ok();
}

#[test]
fn before_it_is_forgotten() {
    let env = TestEnv::new();
    let id = untold(&env);
    // What is kept for a reader is not folded away.
    env.outlive(["events", "--reader", "inbox"]).ok();
    env.outlive(["prune", &id]).ok();
    assert_eq!(ends(&env), [("exited".to_owned(), 1)]);
}

#[test]
fn by_the_supervisor_if_that_only_stands_still() {
    let env = TestEnv::new();
    let gate = env.gate("go");
    let mut fifo = env.fifo("life");
    let id = env.script("echo up >&3; read go <\"$2\"; exit 3", &[fifo.path(), gate.path()]);
    assert_eq!(fifo.line(), "up");
    let supervisor = env.supervisor(&id);
    let lock = Held::new(&env.state().join("ledger.lock"));
    gate.open();
    env.outlive(["wait", &id]).ended(3);
    supervisor.signal(libc::SIGSTOP);
    eventually("the supervisor is stopped", || is_stopped(supervisor.pid));
    drop(lock);
    env.outlive(["reap"]).ok();
    assert_eq!(ends(&env), []);
    supervisor.signal(libc::SIGCONT);
    supervisor.wait();
    env.outlive(["reap"]).ok();
    assert_eq!(ends(&env), [("exited".to_owned(), 1)]);
}
