//! Power loss: what a crash can leave of the state directory, at any moment of a launch, an exit, a restart and a
//! prune, reads as the truth on the next boot.
//!
//! strace records what is written, flushed, made, renamed and deleted, by whom soever, and what had been told to
//! somebody by then. Each beginning of that list is a crash. What was written and not flushed is there, or lost, or
//! there as zeros, or there by half, each for all files at once.
//!
//! Not modelled: a directory entry that is lost or comes later than one made after it (journals keep their order, and
//! a flush of a file keeps its name), a torn sector, files whose fates differ, and disks that lie about flushes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::Value;

use crate::env::{OUTLIVE, Output, TestEnv};
use crate::{skipped, works};

/// One step of the recording.
#[derive(Clone, Debug)]
enum Op {
    Dir(PathBuf),
    Fifo(PathBuf),
    File(PathBuf),
    /// None: at the end.
    Write(PathBuf, Option<u64>, Vec<u8>),
    Size(PathBuf, u64),
    Flush(PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    /// The nth thing has been told to the caller.
    Told(u32),
}

const CALLS: &str = "openat,mkdir,mkdirat,mknod,mknodat,write,pwrite64,ftruncate,fsync,fdatasync,rename,renameat,\
                     renameat2,unlink,unlinkat,rmdir";

/// Told: 1 the launch, 2 its end, 3 the restart, 4 its end, 5 the prune.
const STORY: &str = "id=$(MARK=here $O run --name web -- sh -c 'test \"$MARK\" = here && exit 7; exit 9'); \
    echo told:1; $O wait --group $id || test $? = 7; echo told:2; $O restart $id; echo told:3; \
    $O wait --group $id || test $? = 7; echo told:4; $O prune $id; echo told:5; echo id:$id";

/// Decodes `\x2f\x74` as strace -xx prints it.
fn unhex(text: &str) -> Vec<u8> {
    text.split("\\x").skip(1).map(|pair| u8::from_str_radix(&pair[..2], 16).unwrap()).collect()
}

fn path_of(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(std::ffi::OsString::from_vec(unhex(text)))
}

/// `11<\x2f…>`: where a descriptor leads; none if that is deleted by now.
fn descriptor(word: &str) -> Option<PathBuf> {
    let (_, rest) = word.split_once('<')?;
    let (path, behind) = rest.split_once('>')?;
    (!behind.contains("deleted")).then(|| path_of(path))
}

/// `"\x2f…"` below a directory that is given as a descriptor.
fn named(directory: &str, word: &str) -> PathBuf {
    let path = path_of(word);
    if path.is_absolute() { path } else { descriptor(directory).unwrap_or_default().join(path) }
}

/// The calls that went well, in the order in which they ended: name, arguments, result.
fn calls(trace: &str) -> Vec<(String, Vec<String>, String)> {
    let mut begun: HashMap<String, String> = HashMap::new();
    let mut calls = Vec::new();
    for line in trace.lines() {
        let Some((pid, rest)) = line.split_once(' ') else { continue };
        let mut text = rest.trim_start().to_owned();
        if let Some(head) = text.strip_suffix(" <unfinished ...>") {
            begun.insert(pid.to_owned(), head.to_owned());
            continue;
        }
        if text.starts_with("<... ") {
            let Some((_, tail)) = text.split_once(" resumed>") else { continue };
            text = format!("{}{}", begun.remove(pid).unwrap_or_default(), tail);
        }
        let (Some((name, rest)), Some(end)) = (text.split_once('('), text.rfind(" = ")) else { continue };
        let result = text[end + 3..].to_owned();
        if result.starts_with('-') || result.starts_with('?') {
            continue;
        }
        let inner = &rest[..rest.rfind(") = ").or_else(|| rest.rfind(')')).unwrap_or(rest.len())];
        let words = inner.trim_end_matches([')', ' ']).split(", ").map(str::to_owned).collect();
        calls.push((name.to_owned(), words, result));
    }
    calls
}

fn operations(trace: &str, state: &Path) -> Vec<Op> {
    let mut ops = Vec::new();
    for (name, words, result) in calls(trace) {
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        let number = |at: usize| word(at).parse::<u64>().unwrap();
        let written = |at: usize| {
            let mut bytes = unhex(word(at));
            bytes.truncate(result.split(' ').next().unwrap().parse().unwrap());
            bytes
        };
        let ours = |path: Option<PathBuf>| path.filter(|path| path.starts_with(state));
        match &*name {
            "openat" if word(2).contains("O_CREAT") => ops.extend(ours(descriptor(&result)).map(Op::File)),
            "mkdir" => ops.extend(ours(Some(path_of(word(0)))).map(Op::Dir)),
            "mknod" => ops.extend(ours(Some(path_of(word(0)))).map(Op::Fifo)),
            "mknodat" => ops.extend(ours(Some(named(word(0), word(1)))).map(Op::Fifo)),
            "write" => {
                let text = written(1);
                if let Some(told) = text.strip_prefix(b"told:") {
                    ops.push(Op::Told(String::from_utf8_lossy(told).trim().parse().unwrap()));
                }
                ops.extend(ours(descriptor(word(0))).map(|path| Op::Write(path, None, text)));
            }
            "pwrite64" => {
                let path = ours(descriptor(word(0)));
                ops.extend(path.map(|path| Op::Write(path, Some(number(3)), written(1))));
            }
            "ftruncate" => ops.extend(ours(descriptor(word(0))).map(|path| Op::Size(path, number(1)))),
            "fsync" | "fdatasync" => ops.extend(ours(descriptor(word(0))).map(Op::Flush)),
            "rename" => {
                ops.extend(ours(Some(path_of(word(0)))).map(|from| Op::Rename(from, path_of(word(1)))))
            }
            "renameat" | "renameat2" => {
                let (from, to) = (named(word(0), word(1)), named(word(2), word(3)));
                ops.extend(ours(Some(from)).map(|from| Op::Rename(from, to)));
            }
            "unlink" | "rmdir" => ops.extend(ours(Some(path_of(word(0)))).map(Op::Remove)),
            "unlinkat" => ops.extend(ours(Some(named(word(0), word(1)))).map(Op::Remove)),
            _ => {}
        }
    }
    ops
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Node {
    Dir,
    Fifo,
    File { now: Vec<u8>, flushed: Vec<u8> },
}

/// What the disk holds, and what has been told.
#[derive(Clone, Debug, Default)]
struct Disk {
    nodes: BTreeMap<PathBuf, Node>,
    told: u32,
    /// The ledger is the file that ledger.lock tells of.
    lock_fits: bool,
}

impl Disk {
    fn apply(&mut self, op: &Op) {
        match op {
            Op::Dir(path) => drop(self.nodes.entry(path.clone()).or_insert(Node::Dir)),
            Op::Fifo(path) => drop(self.nodes.entry(path.clone()).or_insert(Node::Fifo)),
            Op::File(path) => {
                let empty = Node::File { now: Vec::new(), flushed: Vec::new() };
                self.nodes.entry(path.clone()).or_insert(empty);
            }
            Op::Write(path, at, bytes) => {
                self.lock_fits |= path.ends_with("ledger.lock");
                let Some(Node::File { now, .. }) = self.nodes.get_mut(path) else { return };
                let at = at.map_or(now.len(), |at| usize::try_from(at).unwrap());
                now.resize(now.len().max(at + bytes.len()), 0);
                now[at..at + bytes.len()].copy_from_slice(bytes);
            }
            Op::Size(path, size) => {
                if let Some(Node::File { now, .. }) = self.nodes.get_mut(path) {
                    now.resize(usize::try_from(*size).unwrap(), 0);
                }
            }
            Op::Flush(path) => {
                if let Some(Node::File { now, flushed }) = self.nodes.get_mut(path) {
                    flushed.clone_from(now);
                }
            }
            Op::Rename(from, to) => {
                self.lock_fits &= !to.ends_with("ledger.jsonl");
                let moved: Vec<PathBuf> =
                    self.nodes.keys().filter(|path| path.starts_with(from)).cloned().collect();
                for path in moved {
                    let node = self.nodes.remove(&path).unwrap();
                    let rest = path.strip_prefix(from).unwrap();
                    self.nodes.insert(if rest == Path::new("") { to.clone() } else { to.join(rest) }, node);
                }
            }
            Op::Remove(path) => drop(self.nodes.remove(path)),
            Op::Told(what) => self.told = *what,
        }
    }

    /// What is found after the crash, by relative path; none for directories, an empty path for FIFOs.
    fn after(&self, loss: Loss, state: &Path) -> Found {
        let found = |(path, node): (&PathBuf, &Node)| {
            let content = match node {
                Node::Dir => Content::Dir,
                Node::Fifo => Content::Fifo,
                Node::File { now, flushed } => Content::File(loss.of(now, flushed)),
            };
            (path.strip_prefix(state).unwrap().to_path_buf(), content)
        };
        let nodes = self.nodes.iter().map(found).collect();
        Found { nodes, told: self.told, lock_fits: self.lock_fits }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Content {
    Dir,
    Fifo,
    File(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Found {
    nodes: BTreeMap<PathBuf, Content>,
    told: u32,
    lock_fits: bool,
}

/// What becomes of what was written and not flushed.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Kept,
    Lost,
    Zeros,
    Half,
}

impl Loss {
    fn of(self, now: &[u8], flushed: &[u8]) -> Vec<u8> {
        let same = now.iter().zip(flushed).take_while(|(a, b)| a == b).count();
        match self {
            Self::Kept => now.to_vec(),
            Self::Lost => flushed.to_vec(),
            Self::Zeros => now.iter().take(same).copied().chain(vec![0; now.len() - same]).collect(),
            Self::Half => now[..same + (now.len() - same) / 2].to_vec(),
        }
    }
}

/// The story that is told, as it was recorded.
struct Recording {
    ops: Vec<Op>,
    id: String,
    state: PathBuf,
}

fn record() -> Recording {
    let env = TestEnv::new();
    let trace = env.work().join("trace");
    let mut strace = env.program("strace");
    strace
        .args(["-f", "-y", "-xx", "-s", "100000", "-e"])
        .arg(format!("trace={CALLS}"))
        .arg("-o")
        .arg(&trace);
    let out = Output::of(strace.args(["bash", "-ec", STORY])).ok();
    let id = out.stdout.lines().find_map(|line| line.strip_prefix("id:")).unwrap().to_owned();
    let state = env.state();
    let ops = operations(&fs::read_to_string(trace).unwrap(), &state);
    Recording { ops, id, state }
}

/// Puts what was found into the state directory of a world of its own. It is another boot.
fn lay_out(found: &Found, recording: &Recording) -> TestEnv {
    let env = TestEnv::new();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let boot = boot.trim();
    let moved = [
        (boot.as_bytes().to_vec(), boot.replace(|c: char| c.is_ascii_digit(), "f").into_bytes()),
        (bytes(recording.state.parent().unwrap()), bytes(env.state().parent().unwrap())),
    ];
    for (path, content) in &found.nodes {
        let path = env.state().join(path);
        match content {
            Content::Dir => fs::DirBuilder::new().mode(0o700).recursive(true).create(&path).unwrap(),
            Content::Fifo => {
                nix::unistd::mkfifo(&path, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap()
            }
            Content::File(raw) => {
                let raw = moved.iter().fold(raw.clone(), |raw, (from, to)| replaced(&raw, from, to));
                fs::write(&path, raw).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            }
        }
    }
    let lock = env.state().join("ledger.lock");
    if let (true, Ok(text), Ok(ledger)) =
        (found.lock_fits, fs::read_to_string(&lock), fs::metadata(env.ledger()))
    {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        if let [version, seq, length, _, _] = words[..] {
            fs::write(&lock, format!("{version} {seq} {length} {} 1\n", ledger.ino())).unwrap();
        }
    }
    env
}

fn bytes(path: &Path) -> Vec<u8> {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec()
}

/// Both are of one length: what a record or a lock says of lengths stays true.
fn replaced(raw: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut new = raw.to_vec();
    let mut at = 0;
    while at + from.len() <= new.len() {
        if new[at..].starts_with(from) {
            new[at..at + from.len()].copy_from_slice(to);
        }
        at += 1;
    }
    new
}

/// Everything that must hold of what was found.
fn check(found: &Found, recording: &Recording, what: &str) {
    let env = lay_out(found, recording);
    let id = &*recording.id;
    let told = found.told;
    let pruned = fs::read_to_string(env.ledger()).is_ok_and(|text| {
        text.lines().any(|line| line.contains("\"kind\":\"pruned\"") || line.contains("compacted"))
    });
    let job = truth(&env, id, told, pruned, what);
    env.outlive(["doctor"]);
    let reap = env.outlive(["reap", "--json"]);
    assert_eq!(reap.code, 0, "{what}: {reap:#?}");
    let again = truth(&env, id, told, pruned, what);
    if let (Some(job), Some(again)) = (&job, &again) {
        for field in ["state", "exit_code", "run", "cause"] {
            assert_eq!(job[field], again[field], "{what}: it has changed its mind");
        }
    }
    assert!(again.is_some() || !matches!(told, 1..=3), "{what}: gone after reap");
    // Life goes on, under the same name too.
    let run = env.outlive(["run", "--name", "web", "sh", "-c", "exit 5"]);
    assert_eq!(run.code, 0, "{what}: {run:#?}");
    let next = run.id();
    assert_eq!(env.outlive(["wait", "--group", &next]).code, 5, "{what}");
    assert_eq!(env.job("web")["id"], *next, "{what}");
    if again.is_none() {
        return;
    }
    let restart = env.outlive(["restart", id]);
    if restart.code == 0 {
        let wait = env.outlive(["wait", "--group", id]);
        assert_eq!(wait.code, 7, "{what}: restarted with another environment: {wait:#?}");
    } else {
        assert!(restart.stderr.contains("environment") && restart.code == 1, "{what}: {restart:#?}");
        truth(&env, id, told, pruned, what);
    }
}

/// What is told of the job, which must be true and all that had been told before.
fn truth(env: &TestEnv, id: &str, told: u32, pruned: bool, what: &str) -> Option<Value> {
    let list = env.outlive(["ls", "-a", "--json"]);
    assert_eq!(list.code, 0, "{what}: {list:#?}");
    let jobs = list.json();
    assert!(jobs.as_array().unwrap().iter().all(|job| job["id"] != *id || job["schema"] == 1));
    let Some(job) = jobs.as_array().unwrap().iter().find(|job| job["id"] == *id) else {
        assert!(told == 0 || (told >= 4 && pruned), "{what}: what had been told of is gone: {list:#?}");
        return None;
    };
    assert!(told < 5, "{what}: a pruned job is back");
    let (state, code, run) =
        (job["state"].as_str().unwrap(), &job["exit_code"], job["run"].as_u64().unwrap());
    match state {
        "exited" => assert_eq!(code, 7, "{what}: {job}"),
        "interrupted" => assert!(code.is_null() && job["signal"].is_null(), "{what}: {job}"),
        other => panic!("{what}: {other} after a reboot: {job}"),
    }
    if told == 2 && run == 1 || told >= 4 {
        assert_eq!(state, "exited", "{what}: an end that had been told is lost: {job} {list:#?}");
    }
    assert!(told < 3 || run == 2, "{what}: a run that had been told of is lost: {job}");
    let wait = env.outlive(["wait", id]);
    assert_eq!(wait.code, if state == "exited" { 7 } else { 122 }, "{what}: {wait:#?}");
    Some(job.clone())
}

#[test]
fn every_beginning_of_what_is_written_reads_as_the_truth() {
    if !works("strace", &["-qq", "-f", "-e", "trace=none", "true"]) {
        return skipped("power loss", "no strace, or it may not trace");
    }
    let recording = record();
    let mut disk = Disk::default();
    let mut seen = HashSet::new();
    let mut cases = Vec::new();
    for (at, op) in recording.ops.iter().enumerate() {
        disk.apply(op);
        for loss in [Loss::Kept, Loss::Lost, Loss::Zeros, Loss::Half] {
            let found = disk.after(loss, &recording.state);
            if seen.insert(found.clone()) {
                cases.push((found, format!("crash after operation {at} ({}), {loss:?}", short(op))));
            }
        }
    }
    // The recording has all that it is about.
    let flushes = |name: &str| {
        let of = |op: &&Op| matches!(op, Op::Flush(path) if path.ends_with(name));
        recording.ops.iter().filter(of).count()
    };
    assert!(flushes("ledger.jsonl") >= 3 && flushes("exit.json") >= 2, "{}", recording.ops.len());
    assert!(disk.told == 5 && cases.len() > 100, "{} cases", cases.len());
    assert!(recording.ops.iter().any(|op| matches!(op, Op::Rename(..))), "compaction replaces the ledger");

    let points = cases.len();
    let (work, held) = (Mutex::new(cases.into_iter()), std::sync::atomic::AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some((found, what)) =
                        work.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next()
                    else {
                        return;
                    };
                    check(&found, &recording, &what);
                    held.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            });
        }
    });
    let broken = points - held.into_inner();
    let text = format!("power loss, {} operations: {points} points, {broken} broken\n", recording.ops.len());
    let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
}

fn short(op: &Op) -> String {
    let text: String = match op {
        Op::Write(path, at, bytes) => format!("write {} at {at:?} of {}", bytes.len(), path.display()),
        other => format!("{other:?}"),
    };
    text.chars().take(160).collect()
}

/// The model itself: what is not flushed may be lost, what is flushed may not.
#[test]
fn the_model_of_the_disk_loses_what_was_not_flushed() {
    let file = PathBuf::from("/s/f");
    let mut disk = Disk::default();
    let steps = [
        Op::File(file.clone()),
        Op::Write(file.clone(), None, b"abcd".to_vec()),
        Op::Flush(file.clone()),
        Op::Write(file.clone(), None, b"efgh".to_vec()),
    ];
    steps.iter().for_each(|op| disk.apply(op));
    let content = |loss| match &disk.after(loss, Path::new("/s")).nodes[Path::new("f")] {
        Content::File(raw) => raw.clone(),
        _ => panic!(),
    };
    assert_eq!(content(Loss::Kept), b"abcdefgh");
    assert_eq!(content(Loss::Lost), b"abcd");
    assert_eq!(content(Loss::Zeros), b"abcd\0\0\0\0");
    assert_eq!(content(Loss::Half), b"abcdef");
    assert!(Path::new(OUTLIVE).exists());
}
