//! Any bytes as what the kernel shows of a process: its stat line, its command line, its environment. What does not fit
//! proves nothing.

use std::path::Path;

use outlive::members::{Bearer, Mark, RunMark, provable};
use outlive::state::{Match, Sighting, compare, same_command};
use outlive::store::parse_launch;
use outlive::sys::proc::{parse_stat, split_nul};

const LAUNCH: &[u8] = include_bytes!("../../tests/fixtures/v1/launch.json");

pub(crate) fn check(raw: &[u8]) {
    let launch = parse_launch(LAUNCH).unwrap();
    // The stat line is the first, and what is left is both arguments and environment.
    let (line, rest) = raw.split_at(raw.iter().position(|&byte| byte == b'\n').unwrap_or(raw.len()));
    let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
    let argv: Vec<Vec<u8>> = split_nul(rest).map(<[u8]>::to_vec).collect();
    assert_eq!(argv.is_empty(), rest.is_empty());
    let mark = RunMark::new(&launch.id, launch.run, Path::new("/no/such/state")).judge(Some(rest));
    let ours = |word: &Vec<u8>| word.strip_prefix(b"OUTLIVE_JOB_ID=") == Some(launch.id.as_bytes());
    assert!(mark != Mark::Ours || argv.iter().any(ours));
    let recorded: Vec<&[u8]> = launch.argv.iter().map(|word| word.0.as_slice()).collect();
    let same = same_command(&recorded, &argv);
    assert!(!same || argv.last() == recorded.last().map(|word| word.to_vec()).as_ref());

    let Some(stat) = parse_stat(line) else { return };
    assert!(line.windows(stat.comm.len() + 2).any(|part| part[1..].starts_with(&stat.comm)));
    let seen = Sighting {
        start_time: stat.start_time,
        pgid: stat.pgid,
        sid: stat.sid,
        argv: Some(argv.clone()),
        marked: Some(mark == Mark::Ours),
        ..Sighting::default()
    };
    let fits = stat.start_time == launch.identity.start_time
        && (stat.pgid, stat.sid) == (launch.identity.pgid, launch.identity.sid);
    let proven = matches!(compare(&launch, &seen), Match::Proven(_));
    assert_eq!(proven, fits && (same || mark == Mark::Ours));
    let found =
        provable(&launch, std::slice::from_ref(&stat), &|_| mark, &|_| Some(argv.clone()), Bearer::Open);
    // One that is older than the leader, and one without any proof, is nobody's member.
    let young = stat.start_time >= launch.identity.start_time;
    assert!(found.proven.is_empty() || (young && (mark == Mark::Ours || mark == Mark::Unreadable && same)));
}
