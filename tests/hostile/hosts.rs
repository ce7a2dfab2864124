//! Two hosts on one home, for real: each has a name, a machine id, a boot, PIDs and mounts of its own, and between them
//! is nothing but a network file system whose locks end at the host.
//!
//! The file system is FUSE, mounted by each host for itself over the same directory: neither locks nor FIFOs reach
//! from one mount to the other, as over NFS without locks.

use std::process::{Child, Stdio};

use serde_json::Value;

use crate::env::{Output, TestEnv};
use crate::{skipped, works};

/// Makes a host and runs a script in it: `$1` its name, `$2` what is shared.
const HOST: &str = r#"
hostname "$1"
for file in machine-id boot_id; do tr a-f0-9 "$3" </proc/sys/kernel/random/boot_id >"$file-$1"; done
mount --bind "machine-id-$1" /etc/machine-id
mount --bind "boot_id-$1" /proc/sys/kernel/random/boot_id
bindfs --no-allow-other "$2" "$OUTLIVE_STATE_DIR"
script=$4
shift 4
eval "$script"
"#;

fn host(env: &TestEnv, name: &str, digits: &str, script: &str, words: &[&str]) -> Child {
    let shared = env.work().join("shared");
    let mut command = env.program("unshare");
    command
        .args(["--mount", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "-ec", HOST])
        .args(["bash", name])
        .arg(shared)
        .args([digits, script])
        .args(words);
    command.stdin(Stdio::piped()).spawn().unwrap()
}

fn permitted() -> bool {
    let spaces = ["--mount", "--uts", "--pid", "--fork", "--mount-proc"];
    if !works("unshare", &[&spaces[..], &["hostname", "other"]].concat()) {
        skipped("two hosts", "no namespaces can be made here");
        return false;
    }
    let script = "d=$(mktemp -d) && mkdir $d/a $d/b && bindfs --no-allow-other $d/a $d/b && touch $d/b/x && test -e $d/a/x; \
                  ok=$?; umount $d/b; rm -r $d; exit $ok";
    if !works("unshare", &[&spaces[..], &["sh", "-c", script]].concat()) {
        skipped("two hosts", "bindfs is missing, or FUSE may not be mounted");
        return false;
    }
    true
}

#[test]
fn a_job_of_another_host_for_real_is_unknown_there_and_nobody_touches_it_or_its_numbers() {
    if !permitted() {
        return;
    }
    let env = TestEnv::new();
    for path in [env.state(), env.work().join("shared")] {
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    }
    let (mut fifo, gate) = (env.fifo("fifo"), env.gate("gate"));
    let first = r#"
        exec 4>"$1"
        id=$("$O" run --name web -- sleep 1000 4>&-); echo "$id" >&4
        read -r go <"$2"
        "$O" --json show "$id" >&4
        code=0; "$O" stop "$id" || code=$?; echo "$code" >&4
        "$O" --json show "$id" >&4"#;
    let one = host(&env, "one", "b-fa0-91", first, &[fifo.path(), gate.path()]);
    let id = fifo.line();

    // The numbers of the first host are the second's own, and so is a session of each.
    let second = r#"
        for number in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
          setsid sleep 1000 >/dev/null 2>&1 & all="$all $!"
        done
        tell() { code=0; "$@" >/dev/null 2>&1 || code=$?; echo "$2: $code"; }
        "$O" --json show "$1"; "$O" --json reap; "$O" --json reap --orphans adopt
        tell "$O" pause "$1"; tell "$O" stop -t 0 "$1"
        tell "$O" restart -t 0 "$1"; tell "$O" prune "$1"; tell "$O" wait -t 0 "$1"; tell "$O" run --name web -- true
        own=$("$O" run -- sh -c 'exit 3'); tell "$O" wait "$own"
        "$O" --json show "$1"
        for pid in $all; do kill -0 "$pid"; grep -q ') S' "/proc/$pid/stat"; done
        echo unharmed"#;
    let other = Output::finish(host(&env, "two", "c-fa0-92", second, &[&id]), "the second host").ok();
    let lines: Vec<&str> = other.stdout.lines().collect();
    let said = |line: &str| {
        let said: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line} in {other:#?}"));
        let job = said.get(0).unwrap_or(&said);
        ["state", "identity", "cause", "action"].map(|field| job[field].as_str().unwrap_or("none").to_owned())
    };
    let [shown, reaped, adopted, codes @ .., again, end] = &lines[..] else { panic!("{other:#?}") };
    assert_eq!(said(shown), ["unknown", "unverified", "other-host", "none"]);
    assert_eq!(said(again), said(shown));
    for reap in [reaped, adopted] {
        assert_eq!(said(reap), ["unknown", "unverified", "other-host", "left-alone"]);
    }
    let expected = ["pause: 1", "stop: 1", "restart: 1", "prune: 1", "wait: 122", "run: 125", "wait: 3"];
    assert_eq!((codes, *end), (&expected[..], "unharmed"));

    gate.open();
    let job: Value = serde_json::from_str(&fifo.line()).unwrap();
    assert_eq!((&job["state"], &job["run"]), (&"running".into(), &1.into()), "{job}");
    assert_eq!(fifo.line(), "0");
    let job: Value = serde_json::from_str(&fifo.line()).unwrap();
    assert_eq!(job["state"], "stopped", "{job}");
    Output::finish(one, "the first host").ok();
}
