//! Reading the output of a job while it is being written: copying, following, the last lines.
//!
//! The file is written by the job itself; a cap on it may have freed its middle while the job went on. A follower
//! sleeps until the file changes or the job is over, whichever the kernel tells first.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::assess::{Assessed, Observer};
use crate::exit::Refused;
use crate::fs::{self, RunLock};
use crate::job::Launch;
use crate::paths::StateDir;
use crate::store;
use crate::sys::clock;
use crate::sys::disk::{next_data, next_hole};
use crate::sys::poll_timeout;
use crate::sys::watch::Watch;
use crate::units::show_size;
use crate::waiting;

/// How long it may take until the end of a job is noticed that has no supervisor any more.
const NOTICE: Duration = Duration::from_millis(50);

/// How often a follower looks that has no watch.
pub const LOOK_AGAIN: Duration = Duration::from_millis(100);

const BLOCK: usize = 64 * 1024;

/// What an output is that is no file: it cannot be read back, and opening it may block or take something away.
pub fn not_a_file(path: &Path) -> Option<&'static str> {
    let kind = std::fs::metadata(path).ok()?.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_fifo() => Some("a FIFO"),
        () if kind.is_dir() => Some("a directory"),
        () if kind.is_socket() => Some("a socket"),
        () => Some("a device"),
    }
}

/// Opens an output for reading, if it is a file.
pub fn open(path: &Path) -> Result<File> {
    let refuse = |what: &str| {
        Refused(format!("the output {} is {what}: what went there cannot be read back", path.display()))
    };
    if let Some(what) = not_a_file(path) {
        return Err(refuse(what).into());
    }
    // Should it be another by now, it does not block either.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(refuse("no file").into());
    }
    Ok(file)
}

/// The last lines of a run, for a message.
pub fn last_lines(launch: &Launch, lines: usize) -> Result<Vec<u8>> {
    let file = open(launch.output.as_path()).context("cannot read the output")?;
    let end = file.metadata().map_or(0, |meta| meta.len());
    let start = tail(&file, launch.output_offset.min(end), end, lines)?;
    let mut text = Vec::new();
    copy_available(&file, start, end, &mut text)?;
    Ok(text)
}

/// The offset at which the last `lines` lines begin. Reads backwards, so a huge file costs no more than its tail.
pub fn tail(file: &File, first: u64, end: u64, lines: usize) -> Result<u64> {
    let mut at = end;
    let mut found = 0;
    let mut block = vec![0_u8; BLOCK];
    if lines == 0 {
        return Ok(end);
    }
    while at > first {
        let start = at.saturating_sub(BLOCK as u64).max(first);
        let size = usize::try_from(at - start)?;
        let part = block.get_mut(..size).context("block")?;
        file.read_exact_at(part, start).context("cannot read the output")?;
        for (offset, byte) in part.iter().enumerate().rev() {
            let position = start + offset as u64;
            // The newline that ends the last line begins no new one.
            if *byte == b'\n' && position + 1 < end {
                found += 1;
                if found == lines {
                    return Ok(position + 1);
                }
            }
        }
        at = start;
    }
    Ok(first)
}

/// How long to copy.
#[derive(Clone, Copy, Debug)]
pub enum Until<'a> {
    Offset(u64),
    /// The leader has ended.
    Ended(&'a Assessed, &'a Observer),
    /// Nothing of the job is left.
    Empty(&'a Assessed, &'a Observer),
}

/// How a copy ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The offset it came to.
    pub at: u64,
    /// Nobody reads any more, which ends it quietly.
    pub unread: bool,
}

/// Copies bytes out from `start`.
pub fn copy(file: &File, start: u64, out: &mut dyn Write, until: Until) -> Result<Copied> {
    let mut at = start;
    let limit = match until {
        Until::Offset(limit) => limit,
        _ => u64::MAX,
    };
    let watched = match until {
        Until::Offset(_) => None,
        Until::Ended(job, observer) => Some(Watched::new(&job.launch, observer, false)?),
        Until::Empty(job, observer) => Some(Watched::new(&job.launch, observer, true)?),
    };
    loop {
        // Asked before reading: what was written before the end is then certainly read.
        let (over, limit) = match (&watched, until) {
            (Some(watched), Until::Empty(job, observer)) => own_part(file, watched, job, observer)?,
            (watched, _) => (watched.as_ref().is_none_or(Watched::over), limit),
        };
        match copy_available(file, at, limit, out) {
            Ok(reached) => at = reached,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(Copied { at, unread: true });
            }
            Err(error) => return Err(error).context("cannot copy the output"),
        }
        match &watched {
            Some(watched) if !over => {
                if !watched.sleep(file, at)? {
                    return Ok(Copied { at, unread: true });
                }
            }
            _ => return Ok(Copied { at, unread: false }),
        }
    }
}

/// Whether the job is over, and how far its output goes: a restart goes on in the same file at once.
fn own_part(file: &File, watched: &Watched, job: &Assessed, observer: &Observer) -> Result<(bool, u64)> {
    // Looked at in this order: what is there while the run is supervised, no other run has written.
    let length = || file.metadata().map(|meta| meta.len()).context("cannot look at the output");
    let so_far = length()?;
    let supervised = job.exit.as_ref().is_some_and(|exit| RunLock::Supervised.held(exit).unwrap_or(false));
    if !supervised {
        // It is over, and that is about to be noticed; or it has lost its supervisor and goes on.
        watched.wait(NOTICE)?;
    }
    if !watched.over() {
        return Ok((false, so_far));
    }
    // Whoever restarts holds this from before the marker until after the record of the next run.
    let _op = observer.op(job.id());
    let end = end_of_run(file, &observer.dir, &job.launch)?;
    Ok((true, end.map_or_else(length, Ok)?))
}

/// Where the output of a run ends, if the next one goes on in the same file.
pub fn end_of_run(file: &File, dir: &StateDir, launch: &Launch) -> Result<Option<u64>> {
    let run = launch.run + 1;
    let next = store::read_launch(&dir.run(&launch.id, run))?.filter(|next| next.output == launch.output);
    Ok(next.map(|next| before_marker(file, &launch.id, run, next.output_offset)))
}

fn copy_available(file: &File, start: u64, limit: u64, out: &mut dyn Write) -> io::Result<u64> {
    let mut at = start;
    let mut data_until = start;
    let mut block = vec![0_u8; BLOCK];
    while at < limit {
        if at >= data_until {
            let data = next_data(file, at).min(limit);
            if data > at {
                out.flush()?;
                notice!("{} of output were dropped here (--max-output)", show_size(data - at));
                at = data;
            }
            data_until = next_hole(file, at);
        }
        let want =
            usize::try_from((limit.min(data_until.max(at + 1)) - at).min(BLOCK as u64)).unwrap_or(BLOCK);
        let read = match file.read_at(&mut block[..want], at) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        out.write_all(&block[..read])?;
        at += read as u64;
    }
    out.flush()?;
    Ok(at)
}

/// Where the part behind the last hole begins: looking for lines further back would read what was dropped.
pub fn newest_part(file: &File, first: u64, end: u64) -> u64 {
    let mut part = first;
    loop {
        let hole = next_hole(file, part);
        let data = if hole < end { next_data(file, hole) } else { hole };
        if hole >= end || data <= hole || data >= end {
            return part;
        }
        part = data;
    }
}

/// The end of a job as something that can be polled: a thread waits for it and then closes its end of a pipe.
#[derive(Debug)]
pub struct Watched {
    over: io::PipeReader,
    /// Made late; none if the kernel gives this user no more.
    watch: std::cell::OnceCell<Option<Watch>>,
    path: std::path::PathBuf,
}

impl Watched {
    pub fn new(launch: &Launch, observer: &Observer, group: bool) -> Result<Self> {
        let (over, open) = io::pipe().context("no pipe")?;
        let launch = Box::new(launch.clone());
        let path = launch.output.as_path().to_path_buf();
        let observer = observer.clone();
        crate::sys::thread(move || {
            let _ = waiting::until_over(&observer, launch, group, None);
            drop(open);
        })?;
        Ok(Self { over, watch: std::cell::OnceCell::new(), path })
    }

    pub fn over(&self) -> bool {
        poll(&mut [PollFd::new(self.over.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO)
            .is_ok_and(|ready| ready > 0)
    }

    /// Sleeps until the job is over, at most this long.
    pub fn wait(&self, limit: Duration) -> Result<()> {
        match poll(&mut [PollFd::new(self.over.as_fd(), PollFlags::POLLIN)], poll_timeout(limit)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sleeps until there may be more to read, or the job is over. A watch is made only for a job that lasts,
    /// because closing one costs milliseconds; it is one-shot, because a standing one slows the writer down. False
    /// if nobody reads our stdout any longer.
    fn sleep(&self, file: &File, at: u64) -> Result<bool> {
        let end = || PollFd::new(self.over.as_fd(), PollFlags::POLLIN);
        if self.watch.get().is_none() {
            self.wait(Duration::from_millis(30))?;
            if self.over() {
                return Ok(true);
            }
            let _ = self.watch.set(Watch::new());
        }
        let armed = self.watch.get().and_then(Option::as_ref).filter(|watch| watch.next_write(&self.path));
        if file.metadata().is_ok_and(|meta| meta.len() > at) {
            return Ok(true);
        }
        let change = armed.map(|watch| PollFd::new(watch.fd(), PollFlags::POLLIN));
        let limit = if change.is_some() { PollTimeout::NONE } else { poll_timeout(LOOK_AGAIN) };
        // A pipe whose reader has gone away shows POLLERR, whatever is asked for, see poll(2).
        let stdout = io::stdout();
        let reader = PollFd::new(stdout.as_fd(), PollFlags::empty());
        let mut fds: Vec<PollFd> = [reader, end()].into_iter().chain(change).collect();
        match poll(&mut fds, limit) {
            Ok(_) if fds[0].revents().is_some_and(|events| events.contains(PollFlags::POLLERR)) => Ok(false),
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

/// The output goes on in the same file, after a line that says so. An unfinished line is finished first, and the
/// marker tells that this newline was not the job's.
pub fn mark_output(launch: &Launch, run: u32, own: bool) -> Result<()> {
    let path = launch.output.as_path();
    // A device or a pipe is no place for a marker.
    if !own && not_a_file(path).is_some() {
        return Ok(());
    }
    let mut file =
        open_for_writing(path, own).with_context(|| format!("cannot write output to {}", path.display()))?;
    let length = file.metadata().map_or(0, |meta| meta.len());
    let mut last = [b'\n'];
    if length > 0
        && let Ok(reader) = open(path)
    {
        let _ = reader.read_exact_at(&mut last, length - 1);
    }
    let (newline, note) = if last == *b"\n" { ("", "") } else { ("\n", UNFINISHED) };
    let line = format!("{newline}{}{}{note} ---\n", marker(&launch.id, run), clock::now());
    file.write_all(line.as_bytes()).with_context(|| format!("cannot write output to {}", path.display()))
}

/// Where the user sends the output is the user's affair; what is put in place of our own file is none of ours.
pub fn open_for_writing(path: &Path, own: bool) -> io::Result<File> {
    if own {
        fs::open_appending(path)
    } else {
        File::options().append(true).create(true).mode(0o600).open(path)
    }
}

/// How the marker of a run begins; the time follows.
fn marker(id: &str, run: u32) -> String {
    format!("--- outlive: run {run} of {id} at ")
}

const UNFINISHED: &str = ", after an unfinished line";

/// Where the output of the run before this one ends: in front of the marker that ends at `offset`.
fn before_marker(file: &File, id: &str, run: u32, offset: u64) -> u64 {
    let mut raw = [0_u8; 256];
    let start = offset.saturating_sub(raw.len() as u64);
    let length = usize::try_from(offset - start).unwrap_or(0);
    let Some(raw) = raw.get_mut(..length) else { return offset };
    if file.read_exact_at(raw, start).is_err() {
        return offset;
    }
    let text = marker(id, run);
    let Some(at) = raw.windows(text.len()).rposition(|window| window == text.as_bytes()) else {
        return offset;
    };
    let unfinished = raw.ends_with(format!("{UNFINISHED} ---\n").as_bytes());
    (start + at as u64).saturating_sub(u64::from(unfinished))
}
