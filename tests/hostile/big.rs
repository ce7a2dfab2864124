//! A ledger of 100 MB.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::env::{OUTLIVE, Output, TestEnv};
use crate::{skipped, works};

const SIZE: usize = 100 << 20;
/// What a launch may read of it: the tail, see `ledger.rs`.
const TAIL: u64 = 64 << 10;

/// Old jobs, and events with long details; the numbers go on from `seq`.
fn fill(env: &TestEnv, mut seq: u64) {
    let mut file = std::io::BufWriter::new(fs::OpenOptions::new().append(true).open(env.ledger()).unwrap());
    let detail = "x".repeat(16 << 10);
    let mut written = 0;
    let mut job = 0_u32;
    while written < SIZE {
        job += 1;
        let id: String = (0..7).map(|at| digit(job, at)).collect();
        let launch = format!(
            "{{\"v\":1,\"seq\":{},\"kind\":\"launched\",\"id\":\"{id}\",\"run\":1,\"at\":\"2020-01-01T00:00:00.000Z\",\
             \"argv\":[\"true\"],\"cwd\":\"/\",\"output\":\"/o\",\"identity\":{{\"pid\":5,\"pgid\":5,\"sid\":5,\
             \"start_time\":9,\"place\":{{\"boot_id\":\"b\",\"pid_ns\":4}}}},\"supervisor\":{{\"pid\":4,\"start_time\":8}}}}\n",
            seq + 1
        );
        let end = format!(
            "{{\"v\":1,\"seq\":{},\"kind\":\"exited\",\"id\":\"{id}\",\"run\":1,\"state\":\"exited\",\
             \"at\":\"2020-01-01T00:00:01.000Z\",\"exit_code\":0}}\n",
            seq + 2
        );
        let note = format!(
            "{{\"v\":1,\"seq\":{},\"kind\":\"on-exit\",\"id\":\"{id}\",\"run\":1,\"at\":\"\",\"detail\":\"{detail}\"}}\n",
            seq + 3
        );
        seq += 3;
        for line in [launch, end, note] {
            file.write_all(line.as_bytes()).unwrap();
            written += line.len();
        }
    }
    file.flush().unwrap();
}

fn digit(number: u32, at: u32) -> char {
    let (base, place) = if at.is_multiple_of(2) { (26, number / 26_u32.pow(at / 2)) } else { (10, number) };
    let first = if base == 26 { b'a' } else { b'0' };
    char::from(first + u8::try_from(place % base).unwrap())
}

/// The shortest of several launches: what else the machine does only ever adds.
#[allow(clippy::disallowed_methods, reason = "tests may look at the clock")]
fn launch_time(env: &TestEnv) -> Duration {
    let once = || {
        let began = Instant::now();
        let id = env.run(["true"]);
        let took = began.elapsed();
        env.outlive(["wait", "--group", &id]).ok();
        // Its supervisor writes to the ledger last.
        env.settled(&id);
        took
    };
    (0..7).map(|_| once()).min().unwrap()
}

/// How many bytes of the ledger a launch reads.
fn bytes_read(env: &TestEnv) -> u64 {
    let traces = env.work().join("traces");
    fs::create_dir(&traces).unwrap();
    let mut strace = env.program("strace");
    // A file for each process: in one for all, a call may be told in two lines.
    strace.args(["-ff", "-y", "-e", "trace=read,pread64,readv,preadv,mmap", "-o"]).arg(traces.join("of"));
    let id = Output::of(strace.args([OUTLIVE, "run", "true"])).ok().id();
    env.outlive(["wait", "--group", &id]).ok();
    let files = fs::read_dir(&traces).unwrap().flatten().map(|entry| entry.path());
    let text: String = files.map(|path| fs::read_to_string(path).unwrap()).collect();
    fs::remove_dir_all(traces).unwrap();
    let of_ledger = text.lines().filter(|line| line.contains("ledger.jsonl"));
    of_ledger.filter_map(|line| line.rsplit(" = ").next()?.trim().parse::<u64>().ok()).sum()
}

#[test]
fn a_ledger_of_100_mb_costs_a_launch_nothing_and_is_listed() {
    let env = TestEnv::new();
    let first = env.run(["sh", "-c", "exit 7"]);
    env.outlive(["wait", "--group", &first]).ended(7);
    let small = launch_time(&env);
    fill(&env, 1000);
    // The first append finds the ledger changed and reads its tail; from then on, the lock file knows.
    if works("strace", &["-qq", "-f", "-e", "trace=none", "true"]) {
        let tail = bytes_read(&env);
        assert!(tail > 0 && tail <= TAIL + 2, "read {tail} bytes");
        let known = bytes_read(&env);
        assert!(known <= 2, "read {known} bytes");
    } else {
        skipped("how much a launch reads of a large ledger", "no strace");
    }
    let large = launch_time(&env);
    assert!(
        large < small * 5 + Duration::from_millis(20),
        "{small:?} with a small ledger, {large:?} with a large one"
    );

    // A listing reads it once; its memory is the ledger and what it is made into.
    let list = env.bash("ulimit -v 700000; exec $O ls -q -a", &[]).ok();
    assert!(list.stdout.lines().any(|line| line == first));
    let count = list.stdout.lines().count();
    assert!(count > 6000, "{count} jobs");
    // That folded it.
    let after = fs::metadata(env.ledger()).unwrap().len();
    assert!(after < SIZE as u64 / 10, "{after} bytes");
    let again = env.outlive(["ls", "-q", "-a"]).ok();
    assert_eq!(again.stdout.lines().count(), count, "folding has lost a job");
    env.outlive(["wait", &first]).ended(7);
}
