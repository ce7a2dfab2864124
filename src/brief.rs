//! What a launcher tells a new supervisor: one message over the line, with the descriptors it is to use.
//!
//! Numbers first, then strings that end in NUL, so that the supervisor can hand them to the kernel as they lie
//! and give their memory back once the leader has been started.

use std::ffi::{OsStr, c_char};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;

use nix::sys::socket::{ControlMessage, sendmsg};

use crate::job::{OnOwnerExit, ProcessId};
use crate::sys::mapping::Mapping;
use crate::sys::{NO_SIGPIPE, message};

/// The numbers of a brief, in the order they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    pub run: u32,
    pub umask: u32,
    /// Milliseconds; none: no limit.
    pub timeout_ms: Option<u64>,
    pub stop_signal: i32,
    pub grace_ms: u64,
    pub on_owner_exit: OnOwnerExit,
    pub sync: bool,
    pub owner: Option<ProcessId>,
    /// A leader to adopt instead of one to start.
    pub adopt: Option<ProcessId>,
    pub max_output: Option<u64>,
    pub output_offset: u64,
}

const NUMBERS: usize = 13;
/// Numbers, the counts of three groups of strings, and how long all strings are.
const HEAD: usize = 8 * (NUMBERS + 4);

impl Numbers {
    fn encode(self) -> [u64; NUMBERS] {
        let signed = |value: i32| u64::try_from(value).unwrap_or(0);
        let pid = |id: Option<ProcessId>| id.map_or(u64::MAX, |id| signed(id.pid));
        let start_time = |id: Option<ProcessId>| id.map_or(0, |id| id.start_time);
        [
            self.run.into(),
            self.umask.into(),
            self.timeout_ms.unwrap_or(u64::MAX),
            signed(self.stop_signal),
            self.grace_ms,
            u64::from(self.on_owner_exit == OnOwnerExit::Stop),
            self.sync.into(),
            pid(self.owner),
            start_time(self.owner),
            pid(self.adopt),
            start_time(self.adopt),
            self.max_output.unwrap_or(u64::MAX),
            self.output_offset,
        ]
    }

    fn decode(raw: [u64; NUMBERS]) -> Self {
        let [run, umask, timeout, signal, grace, on_owner_exit, sync, rest @ ..] = raw;
        let [owner, owner_start, adopt, adopt_start, max_output, output_offset] = rest;
        let some = |value: u64| (value != u64::MAX).then_some(value);
        let process = |pid: u64, start_time: u64| {
            some(pid).and_then(|pid| i32::try_from(pid).ok()).map(|pid| ProcessId { pid, start_time })
        };
        Self {
            run: u32::try_from(run).unwrap_or(0),
            umask: u32::try_from(umask).unwrap_or(0o022),
            timeout_ms: some(timeout),
            stop_signal: i32::try_from(signal).unwrap_or(15),
            grace_ms: grace,
            on_owner_exit: if on_owner_exit == 1 { OnOwnerExit::Stop } else { OnOwnerExit::Reap },
            sync: sync == 1,
            owner: process(owner, owner_start),
            adopt: process(adopt, adopt_start),
            max_output: some(max_output),
            output_offset,
        }
    }
}

/// The strings of a brief, by group.
#[derive(Debug)]
pub struct Strings<'a> {
    pub state_dir: &'a OsStr,
    pub id: &'a str,
    /// Shell command to run at the end; empty: none.
    pub on_exit: &'a OsStr,
    pub name: &'a str,
    pub output: &'a OsStr,
    pub candidates: Vec<&'a OsStr>,
    pub argv: Vec<&'a OsStr>,
    pub env: Vec<Vec<u8>>,
}

const FIXED: usize = 5;

/// Sends a brief. `fds`: exit sidecar, control, directory, stdin, stdout, stderr, and the owner if it is held by one.
pub fn send(mut line: &UnixStream, numbers: Numbers, strings: &Strings, fds: &[RawFd]) -> io::Result<()> {
    let counts = [strings.candidates.len(), strings.argv.len(), strings.env.len()];
    let mut text = Vec::with_capacity(4096);
    let fixed: [&[u8]; FIXED] = [
        strings.state_dir.as_bytes(),
        strings.id.as_bytes(),
        strings.on_exit.as_bytes(),
        strings.name.as_bytes(),
        strings.output.as_bytes(),
    ];
    let words = strings.candidates.iter().chain(&strings.argv).map(|word| word.as_bytes());
    for word in fixed.into_iter().chain(words).chain(strings.env.iter().map(Vec::as_slice)) {
        text.extend_from_slice(word);
        text.push(0);
    }
    let mut head = Vec::with_capacity(HEAD);
    numbers.encode().iter().for_each(|number| head.extend_from_slice(&number.to_le_bytes()));
    for count in counts.into_iter().chain([text.len()]) {
        head.extend_from_slice(&(count as u64).to_le_bytes());
    }
    let rights = [ControlMessage::ScmRights(fds)];
    let sent = sendmsg::<()>(
        line.as_raw_fd(),
        &[IoSlice::new(&head), IoSlice::new(&text)],
        &rights,
        NO_SIGPIPE,
        None,
    )?;
    if sent < head.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    let rest = &text[sent - head.len()..];
    if !rest.is_empty() {
        line.write_all(rest)?;
    }
    Ok(())
}

/// A received brief. Its strings lie in a mapping of their own.
#[derive(Debug)]
pub struct Brief {
    pub numbers: Numbers,
    pub fds: Vec<OwnedFd>,
    counts: [usize; 3],
    text: Mapping,
}

/// Receives a brief; none if the launcher closed the line without sending one.
pub fn receive(mut line: &UnixStream) -> io::Result<Option<Brief>> {
    let mut head = [0_u8; HEAD];
    let (length, fds) = message::receive(line, &mut head)?;
    if length < HEAD {
        return Ok(None);
    }
    let number = |at: usize| {
        head.get(at * 8..at * 8 + 8).and_then(|raw| raw.try_into().ok()).map_or(0, u64::from_le_bytes)
    };
    let size = |at: usize| usize::try_from(number(NUMBERS + at)).unwrap_or(0);
    let counts = [size(0), size(1), size(2)];
    let mut text = Mapping::new(size(3))?;
    if line.read_exact(text.bytes_mut()).is_err() {
        return Ok(None);
    }
    let numbers = Numbers::decode(std::array::from_fn(number));
    Ok(Some(Brief { numbers, fds, counts, text }))
}

/// The strings as the kernel wants them: pointer tables into the brief, each ended by a null pointer.
#[derive(Debug)]
pub struct Tables {
    pub candidates: Vec<*const c_char>,
    /// The first slot is free.
    pub argv: Vec<*const c_char>,
    pub envp: Vec<*const c_char>,
}

impl Brief {
    /// State directory, id, on-exit command, name, output file.
    pub fn fixed(&self) -> [&[u8]; FIXED] {
        let mut words = self.text.bytes().split(|&byte| byte == 0);
        std::array::from_fn(|_| words.next().unwrap_or_default())
    }

    pub fn tables(&self) -> Tables {
        let skip: usize = self.fixed().iter().map(|word| word.len() + 1).sum();
        let text = self.text.bytes().get(skip..).unwrap_or_default();
        let mut words = text.split_inclusive(|&byte| byte == 0).map(|word| word.as_ptr().cast::<c_char>());
        let [candidates, argv, env] = self.counts;
        let mut take = |count: usize, slot: bool, end: bool| {
            let mut table = Vec::with_capacity(count + 2);
            table.extend(slot.then_some(std::ptr::null()));
            table.extend(words.by_ref().take(count));
            table.extend(end.then_some(std::ptr::null()));
            table
        };
        Tables {
            candidates: take(candidates, false, false),
            argv: take(argv, true, true),
            envp: take(env, false, true),
        }
    }
}

#[cfg(test)]
#[allow(unsafe_code, reason = "what the kernel is handed is looked at")]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_brief_arrives_as_it_was_sent() {
        let (a, b) = UnixStream::pair().unwrap();
        let numbers = Numbers {
            run: 3,
            umask: 0o27,
            timeout_ms: None,
            stop_signal: 2,
            grace_ms: 9,
            on_owner_exit: OnOwnerExit::Stop,
            sync: true,
            owner: Some(ProcessId { pid: 8, start_time: 4 }),
            adopt: None,
            max_output: Some(5),
            output_offset: 7,
        };
        let big = "x".repeat(3_000_000);
        let strings = Strings {
            state_dir: OsStr::new("/s"),
            id: "a1",
            on_exit: OsStr::new(""),
            name: "",
            output: OsStr::new("/o"),
            candidates: vec![OsStr::new("/bin/x")],
            argv: vec![OsStr::new("x"), OsStr::new(""), OsStr::new(&big)],
            env: vec![b"A=\xff".to_vec()],
        };
        let sender = std::thread::scope(|scope| {
            scope.spawn(|| send(&a, numbers, &strings, &[a.as_raw_fd()]).unwrap());
            receive(&b).unwrap().unwrap()
        });
        assert_eq!(sender.numbers, numbers);
        assert_eq!(sender.fds.len(), 1);
        assert_eq!(sender.fixed(), [&b"/s"[..], b"a1", b"", b"", b"/o"]);
        let tables = sender.tables();
        // SAFETY: the tables point at strings that end in NUL, in the brief that is still alive.
        let text = |pointer: *const c_char| unsafe { CStr::from_ptr(pointer) }.to_bytes().to_vec();
        assert_eq!((tables.candidates.len(), tables.argv.len(), tables.envp.len()), (1, 5, 2));
        assert!(tables.argv[0].is_null() && tables.argv[4].is_null() && tables.envp[1].is_null());
        assert_eq!(text(tables.argv[2]), b"");
        assert_eq!(text(tables.argv[3]).len(), 3_000_000);
        assert_eq!(text(tables.envp[0]), b"A=\xff");
    }

    #[test]
    fn a_closed_line_is_no_brief() {
        let (a, b) = UnixStream::pair().unwrap();
        drop(a);
        assert!(receive(&b).unwrap().is_none());
    }
}
