//! Which job is meant, and that no two living ones are called the same.

use serde_json::json;

use crate::env::TestEnv;

#[test]
fn a_name_that_is_alive_is_refused_reused_or_replaced() {
    let env = TestEnv::new();
    let (mut first_life, mut second_life) = (env.fifo("first"), env.fifo("second"));
    let first = env.sleeper(&["--name", "web"], &mut first_life);
    env.outlive(["run", "--name", "web", "--", "true"]).refused(125, "web");
    assert_eq!(env.run(["--name", "web", "--reuse", "--", "true"]), first);
    assert_eq!(env.run(["--name", "other", "--reuse", "--", "true"]).len(), first.len());
    let second = env.sleeper(&["--name", "web", "--replace"], &mut second_life);
    first_life.end();
    assert_ne!(first, second);
    let replaced = env.job(&first);
    assert_eq!((&replaced["state"], &replaced["cause"]), (&json!("stopped"), &json!("replaced")));
    assert_eq!(env.job("web")["id"], json!(second), "the latest job of that name");
    env.outlive(["stop", "web"]).ok();
    let third = env.run(["--name", "web", "--", "true"]);
    assert_eq!(env.job("web")["id"], json!(third));
}

/// A name that was given to a newer job is that one's for as long as it lives; afterwards it is whose run is newest.
#[test]
fn a_restart_takes_no_name_from_a_living_job_and_gives_none_away() {
    let env = TestEnv::new();
    let (mut first_life, mut second_life) = (env.fifo("first"), env.fifo("second"));
    let first = env.sleeper(&["--name", "web"], &mut first_life);
    env.outlive(["stop", "web"]).ok();
    let second = env.sleeper(&["--name", "web"], &mut second_life);
    env.outlive(["restart", &first]).refused(1, &format!("job {second} is running under its name 'web'"));
    assert_eq!((env.job(&first)["run"].clone(), env.state_of("web")), (json!(1), "running".into()));
    env.outlive(["stop", "web"]).ok();
    env.outlive(["restart", &first]).ok();
    assert_eq!((env.job("web")["id"].clone(), env.job("web")["run"].clone()), (json!(first), json!(2)));
    env.outlive(["run", "--name", "web", "true"]).refused(125, "is running already");
    // Nobody is left of the newest: the name is not taken for free because of that.
    env.outlive(["prune", &second]).ok();
    env.outlive(["run", "--name", "web", "true"]).refused(125, "is running already");
    env.outlive(["restart", &second]).refused(1, "no job");
}

#[test]
fn of_many_launches_under_one_name_one_wins() {
    let env = TestEnv::new();
    let outs: Vec<_> = std::thread::scope(|scope| {
        let launch = || env.outlive(["run", "--name", "web", "--", "sleep", "1000"]);
        let launches: Vec<_> = (0..8).map(|_| scope.spawn(launch)).collect();
        launches.into_iter().map(|launch| launch.join().unwrap()).collect()
    });
    let won: Vec<_> = outs.iter().filter(|out| out.code == 0).collect();
    assert_eq!(won.len(), 1, "{outs:#?}");
    assert!(outs.iter().all(|out| out.code == 0 || out.code == 125));
    assert_eq!(env.json(["ls"]).as_array().unwrap().len(), 1);
}

#[test]
fn reuse_by_many_at_once_is_one_job() {
    let env = TestEnv::new();
    let ids: Vec<_> = std::thread::scope(|scope| {
        let launch = || env.run(["--name", "web", "--reuse", "--", "sleep", "1000"]);
        let launches: Vec<_> = (0..8).map(|_| scope.spawn(launch)).collect();
        launches.into_iter().map(|launch| launch.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[test]
fn a_job_is_found_by_the_beginning_of_its_id() {
    let env = TestEnv::new();
    let id = env.run(["true"]);
    env.outlive(["wait", &id[..4]]).ok();
    env.outlive(["show", &id[..3]]).refused(1, "no job");
    let pid = env.job(&id)["pid"].to_string();
    env.outlive(["stop", &pid]).refused(1, "no job");
}

#[test]
fn names_that_could_be_mistaken_are_refused() {
    let env = TestEnv::new();
    let long = "x".repeat(65);
    for name in ["", "-x", "a b", "a/b", "../x", "k3f9a7b", &long] {
        let out = env.outlive(["run", &format!("--name={name}"), "--", "true"]);
        assert_eq!(out.code, 125, "{name:?} {out:?}");
    }
    assert_eq!(env.json(["ls", "-a"]), json!([]));
}

#[test]
fn labels_choose_jobs() {
    let env = TestEnv::new();
    let (mut a_life, mut b_life) = (env.fifo("a"), env.fifo("b"));
    let a = env.sleeper(&["-l", "team=a", "-l", "x=1"], &mut a_life);
    let b = env.sleeper(&["-l", "team=b", "-l", "x=1"], &mut b_life);
    assert_eq!(env.outlive(["ls", "-q", "-l", "team=a"]).ok().stdout.trim(), a);
    assert_eq!(env.json(["ls", "-l", "x=1"]).as_array().unwrap().len(), 2);
    env.outlive(["stop", "-l", "team=a"]).ok();
    a_life.end();
    assert_eq!(env.outlive(["ls", "-q"]).ok().stdout.trim(), b);
    env.outlive(["stop", "--all"]).ok();
    b_life.end();
    assert_eq!(env.json(["ls"]), json!([]));
    assert_eq!(env.json(["ls", "--state", "stopped"]).as_array().unwrap().len(), 2);
}
