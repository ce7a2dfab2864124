use super::*;
use crate::job::{Identity, Launch};

fn launch() -> Launch {
    serde_json::from_value(serde_json::json!({
        "id": "a1b2c3d", "run": 1, "at": "", "argv": ["server", "80"], "cwd": "/", "output": "/o",
        "identity": Identity { pid: 50, pgid: 50, sid: 50, start_time: 500, ..Default::default() },
        "supervisor": { "pid": 49, "start_time": 499 },
    }))
    .unwrap()
}

fn process(pid: i32, ppid: i32, sid: i32, start_time: u64) -> Stat {
    Stat {
        pid,
        comm: b"x".to_vec(),
        state: b'S',
        ppid,
        pgid: sid,
        sid,
        threads: 1,
        start_time,
        cpu_ticks: 0,
        rss_bytes: 0,
    }
}

fn judge(
    table: &[Stat],
    marks: &[(i32, Mark)],
    argvs: &[(i32, &[&str])],
    bearer: Bearer,
) -> (Vec<i32>, Vec<i32>) {
    let mark = |pid: i32| marks.iter().find(|(of, _)| *of == pid).map_or(Mark::Absent, |(_, mark)| *mark);
    let argv = |pid: i32| {
        let words = argvs.iter().find(|(of, _)| *of == pid).map(|(_, words)| *words)?;
        Some(words.iter().map(|word| word.as_bytes().to_vec()).collect())
    };
    let members = provable(&launch(), table, &mark, &argv, bearer);
    let pids = |stats: Vec<Stat>| stats.into_iter().map(|stat| stat.pid).collect();
    (pids(members.proven), pids(members.unproven))
}

#[test]
fn one_proven_member_pins_the_session_and_so_proves_the_rest() {
    let table = [process(60, 1, 50, 600), process(61, 1, 50, 601), process(70, 1, 70, 700)];
    assert_eq!(judge(&table, &[(60, Mark::Ours)], &[], Bearer::Open), (vec![60, 61], vec![]));
    let argv: &[(i32, &[&str])] = &[(61, &["sh", "server", "80"])];
    assert_eq!(judge(&table, &[(61, Mark::Unreadable)], argv, Bearer::Open), (vec![60, 61], vec![]));
    assert_eq!(
        judge(&table, &[], argv, Bearer::Open),
        (vec![], vec![60, 61]),
        "a session whose number has come round"
    );
    assert_eq!(
        judge(&table, &[], &[], Bearer::Open),
        (vec![], vec![60, 61]),
        "a start time alone proves nothing"
    );
}

#[test]
fn a_stranger_with_the_leaders_number_means_that_the_session_is_dead() {
    let table = [process(50, 1, 50, 800), process(51, 50, 50, 801)];
    assert_eq!(judge(&table, &[], &[(51, &["server", "80"])], Bearer::Open), (vec![], vec![]));
    // Started in the same tick, and known for a stranger by the inode of its pidfd.
    let table = [process(50, 1, 50, 500), process(51, 50, 50, 501)];
    assert_eq!(judge(&table, &[], &[], Bearer::Stranger), (vec![], vec![]));
    assert_eq!(judge(&table, &[], &[], Bearer::Open), (vec![], vec![50, 51]));
}

#[test]
fn older_processes_are_never_members() {
    let table = [process(60, 1, 50, 499)];
    assert_eq!(judge(&table, &[(60, Mark::Ours)], &[], Bearer::Open), (vec![], vec![]));
}

#[test]
fn escaped_members_are_known_by_their_mark_and_their_parents() {
    let table = [process(80, 1, 80, 600), process(81, 80, 81, 601), process(82, 81, 82, 602)];
    assert_eq!(judge(&table, &[(80, Mark::Ours)], &[], Bearer::Open), (vec![80, 81, 82], vec![]));
}

#[test]
fn a_nested_job_is_a_job_of_its_own() {
    let mut supervisor = process(81, 80, 81, 601);
    supervisor.comm = b"outlive:z9y8x7w".to_vec();
    let table = [process(80, 1, 80, 600), supervisor, process(82, 81, 82, 602), process(83, 80, 80, 603)];
    let marks = [(80, Mark::Ours), (82, Mark::Other), (83, Mark::Other)];
    assert_eq!(judge(&table, &marks, &[], Bearer::Open), (vec![80], vec![]));
}

#[test]
fn a_mark_names_id_run_and_state_directory() {
    let mark = RunMark::new("a1b2c3d", 2, Path::new("/s"));
    let of = |environ: &[u8]| mark.judge(Some(environ));
    assert_eq!(of(b"A=1\0OUTLIVE_JOB_ID=a1b2c3d\0OUTLIVE_RUN=2\0OUTLIVE_STATE_DIR=/s\0"), Mark::Ours);
    assert_eq!(of(b"OUTLIVE_JOB_ID=a1b2c3d\0OUTLIVE_RUN=1\0OUTLIVE_STATE_DIR=/s\0"), Mark::Other);
    assert_eq!(of(b"OUTLIVE_JOB_ID=a1b2c3d\0OUTLIVE_RUN=2\0OUTLIVE_STATE_DIR=/t\0"), Mark::Other);
    assert_eq!(of(b"OUTLIVE_JOB_ID=b1b2c3d\0OUTLIVE_RUN=2\0OUTLIVE_STATE_DIR=/s\0"), Mark::Other);
    assert_eq!(of(b"XOUTLIVE_JOB_ID=a1b2c3d\0"), Mark::Absent);
    assert_eq!(mark.judge(None), Mark::Unreadable);
}

#[test]
fn ancestors_groups_and_init_are_untouchable() {
    let mut table =
        vec![process(1, 0, 1, 0), process(10, 1, 10, 5), process(20, 10, 10, 6), process(30, 1, 30, 7)];
    table.push(process(21, 1, 10, 8));
    let never = untouchable(&table, ProcessId { pid: 20, start_time: 6 });
    for pid in [0, 1, 10, 20, 21] {
        assert!(never.contains(&pid), "{pid}");
    }
    assert!(!never.contains(&30));
}

/// Without a subreaper: the supervisor is 49, its leader 50 is dead but not waited for.
#[test]
fn a_session_a_mark_or_a_parent_makes_a_member_where_orphans_are_not_given_back() {
    let dead = Stat { state: b'Z', ..process(50, 49, 50, 500) };
    let named = |name: &str, stat: Stat| Stat { comm: name.as_bytes().to_vec(), ..stat };
    let table = [
        named("outlive:x", process(49, 1, 49, 499)),
        dead,
        process(60, 1, 50, 600),
        process(61, 1, 61, 601),
        process(62, 61, 61, 602),
        process(70, 1, 70, 700),
        // What the supervisor itself looks with, a job inside the job, and the supervisor of that.
        process(80, 49, 49, 800),
        process(81, 60, 81, 801),
        named("outlive:y", process(82, 60, 82, 802)),
    ];
    let marks = [(61, Mark::Ours), (81, Mark::Other)];
    let mark = |pid: i32| marks.iter().find(|(of, _)| *of == pid).map_or(Mark::Absent, |(_, mark)| *mark);
    let pids: Vec<i32> = found(49, &table, &mark).into_iter().map(|stat| stat.pid).collect();
    assert_eq!(pids, [60, 61, 62]);
}
