//! Locks, flushes and replacements: what makes the files of the state directory trustworthy.
//!
//! Two kinds of lock are used. `flock(2)` serialises short work: the ledger, a name, an operation on a job. An
//! open-file-description lock (`sys/lock.rs`) on the exit sidecar is held by a supervisor for its whole life; it can
//! be asked about without being taken. Both belong to the open file: they pass to
//! whoever is handed the descriptor and end with its last copy, however its holder dies.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;

use crate::sys;

/// How long a lock is waited for before saying so, and before giving up.
const SAY_AFTER: Duration = Duration::from_secs(1);
const GIVE_UP_AFTER: Duration = Duration::from_secs(30);

/// An exclusive flock, held until dropped.
#[derive(Debug)]
pub struct Flock(pub File);

impl Flock {
    /// Takes the lock on `path`, which is created if missing. `what` names it in messages.
    ///
    /// A file that was deleted while we waited for it locks nobody out: the one that is there now is taken.
    pub fn take(path: &Path, what: &str) -> Result<Self> {
        loop {
            let file = open_private(path)
                .with_context(|| format!("cannot open the lock of {what}, {}", path.display()))?;
            let lock = Self::lock(file, what)?;
            if lock.is_linked() {
                return Ok(lock);
            }
        }
    }

    /// Takes the lock if nobody holds it.
    pub fn attempt(path: &Path) -> io::Result<Option<Self>> {
        let file = open_private(path)?;
        Ok(try_flock(&file)?.then_some(Self(file)).filter(Self::is_linked))
    }

    /// The same, tried again for this long.
    pub fn attempt_for(path: &Path, mut left: Duration) -> io::Result<Option<Self>> {
        let mut pause = Duration::from_millis(1);
        loop {
            let lock = Self::attempt(path)?;
            if lock.is_some() || left.is_zero() {
                return Ok(lock);
            }
            std::thread::sleep(pause.min(left));
            left = left.saturating_sub(pause);
            pause *= 2;
        }
    }

    fn is_linked(&self) -> bool {
        self.0.metadata().is_ok_and(|meta| meta.nlink() > 0)
    }

    fn lock(file: File, what: &str) -> Result<Self> {
        if try_flock(&file).with_context(|| cannot_lock(what))? {
            return Ok(Self(file));
        }
        let inode = file.metadata().map_or(0, |meta| meta.ino());
        let (send, receive) = mpsc::channel();
        sys::thread(move || {
            let locked = block_flock(&file).map(|()| file);
            let _ = send.send(locked);
        })?;
        let file = match receive.recv_timeout(SAY_AFTER) {
            Ok(locked) => locked,
            Err(_) => {
                notice!("waiting for the lock of {what}{}", held_by(inode));
                let Ok(locked) = receive.recv_timeout(GIVE_UP_AFTER - SAY_AFTER) else {
                    bail!(
                        "the lock of {what} is still held after {GIVE_UP_AFTER:?}{}; try again",
                        held_by(inode)
                    );
                };
                locked
            }
        };
        Ok(Self(file.with_context(|| cannot_lock(what))?))
    }
}

fn cannot_lock(what: &str) -> String {
    format!("cannot lock {what} (set OUTLIVE_STATE_DIR to a directory on a file system with locks)")
}

fn held_by(inode: u64) -> String {
    match sys::lock::holders(inode).as_slice() {
        [] => String::new(),
        pids => {
            format!(", held by process {}", pids.iter().map(i32::to_string).collect::<Vec<_>>().join(", "))
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "this is where locks are taken")]
fn try_flock(file: &File) -> io::Result<bool> {
    loop {
        match fs2::FileExt::try_lock_exclusive(file) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "this is where locks are taken")]
fn block_flock(file: &File) -> io::Result<()> {
    loop {
        match fs2::FileExt::lock_exclusive(file) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// The two bytes of an exit sidecar that are locked during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLock {
    /// Held for the supervisor's whole life.
    Supervised,
    /// Held until the leader's exit is recorded.
    Unended,
    Both,
}

impl RunLock {
    fn bytes(self) -> std::ops::Range<i64> {
        match self {
            Self::Supervised => 0..1,
            Self::Unended => 1..2,
            Self::Both => 0..2,
        }
    }

    /// Takes it if nobody holds it.
    pub fn attempt(self, file: impl AsFd) -> io::Result<bool> {
        sys::lock::attempt(&file, self.bytes())
    }

    pub fn release(self, file: impl AsFd) -> io::Result<()> {
        sys::lock::release(&file, self.bytes())
    }

    /// Whether somebody holds it; nothing is taken by asking.
    pub fn held(self, file: impl AsFd) -> io::Result<bool> {
        sys::lock::held(&file, self.bytes())
    }

    /// Blocks until nobody holds it.
    pub fn wait(self, file: impl AsFd) -> io::Result<()> {
        sys::lock::wait(&file, self.bytes())
    }

    /// The same with a limit: false if it is still held then.
    pub fn wait_for(self, file: &File, limit: Option<Duration>) -> io::Result<bool> {
        let Some(limit) = limit else { return self.wait(file).map(|()| true) };
        sys::lock::wait_for(file, self.bytes(), limit)
    }
}

/// Opens for reading and writing; created 0600 whatever the umask.
pub fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    open_own(options.read(true).write(true).create(true).truncate(false), path).map(|(file, _)| file)
}

/// Opens for appending, likewise. Whoever it is handed to finds an ordinary file.
pub fn open_appending(path: &Path) -> io::Result<File> {
    match File::options().append(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    open_appending_again(path)
}

/// The same for a file that is there.
pub fn open_appending_again(path: &Path) -> io::Result<File> {
    let (file, _) = open_own(OpenOptions::new().append(true).create(true), path)?;
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_APPEND))?;
    Ok(file)
}

/// Opens what must be a regular file of this user for reading. Neither is a symbolic link followed nor a FIFO blocked
/// on nor a file believed that somebody else has put in its place.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_checked(path).map(|(file, _)| file)
}

fn open_checked(path: &Path) -> io::Result<(File, std::fs::Metadata)> {
    open_own(OpenOptions::new().read(true), path)
}

/// Opens what must be a regular file of this user, made 0600 if it may be made.
pub fn open_own(options: &mut OpenOptions, path: &Path) -> io::Result<(File, std::fs::Metadata)> {
    let opened = options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        // A link; a FIFO that nobody reads, or a socket; a directory.
        Some(libc::ELOOP | libc::ENXIO | libc::EISDIR) => not_regular(),
        _ => error,
    })?;
    check_own(&file).map(|meta| (file, meta))
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not a regular file (move it away)")
}

/// Only a regular file of this user can be one of the state directory.
pub fn check_own(file: &File) -> io::Result<std::fs::Metadata> {
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(not_regular());
    }
    if meta.uid() != sys::user() {
        return Err(io::Error::other(format!("belongs to user {}", meta.uid())));
    }
    Ok(meta)
}

/// Reads a regular file as a whole.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let (file, meta) = open_checked(path)?;
    // One read for a file that is as long as it says, and one that finds its end.
    let mut raw = vec![0; usize::try_from(meta.len()).map_err(io::Error::other)? + 1];
    let mut length = 0;
    loop {
        match (&file).read(&mut raw[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if length == raw.len() {
            raw.resize(length * 2, 0);
        }
    }
    raw.truncate(length);
    Ok(raw)
}

/// Creates a file that must not exist yet, 0600.
pub fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Creates a file with this content, which must not exist yet. Not flushed.
pub fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    create_new(path)?.write_all(content)
}

/// Flushes the content of a file to the disk, unless OUTLIVE_SYNC=off.
pub fn flush(file: &File, sync: bool) -> io::Result<()> {
    if !sync {
        return Ok(());
    }
    loop {
        match file.sync_data() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Replaces `path` as a whole: after a crash it has either the old content or the new one.
#[allow(clippy::disallowed_methods, reason = "this is where renames are made durable")]
pub fn replace(path: &Path, content: &[u8], sync: bool) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = directory.join(format!(".{name}.{}", std::process::id()));
    let result = (|| {
        let _ = std::fs::remove_file(&temporary);
        let mut file = create_new(&temporary)?;
        file.write_all(content)?;
        flush(&file, sync)?;
        std::fs::rename(&temporary, path)?;
        flush_directory(directory, sync)
    })();
    if result.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    result
}

/// Deletes a directory that goes out of everybody's sight in one step: nobody finds half of it. What a crash
/// leaves is called `.NAME`, see [`remove_hidden`].
#[allow(clippy::disallowed_methods, reason = "nothing is to be durable but the record of the deletion")]
pub fn remove_whole(path: &Path) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let hidden = path.with_file_name(format!(".{name}"));
    std::fs::rename(path, &hidden)?;
    std::fs::remove_dir_all(&hidden)
}

/// Deletes what a broken-off [`remove_whole`] left in this directory. Best effort.
pub fn remove_hidden(directory: &Path) {
    let hidden = |entry: &std::fs::DirEntry| entry.file_name().as_bytes().starts_with(b".");
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten().filter(hidden) {
        let _ = std::fs::remove_dir_all(entry.path());
    }
}

fn flush_directory(path: &Path, sync: bool) -> io::Result<()> {
    if sync { File::open(path)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("outlive-fs-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path
    }

    #[test]
    fn asking_for_a_run_lock_takes_nothing() {
        let path = scratch("ofd");
        let (holder, asker) = (create_new(&path).unwrap(), open_private(&path).unwrap());
        assert!(!RunLock::Both.held(&asker).unwrap());
        assert!(RunLock::Both.attempt(&holder).unwrap());
        assert!(RunLock::Supervised.held(&asker).unwrap() && RunLock::Unended.held(&asker).unwrap());
        RunLock::Unended.release(&holder).unwrap();
        assert!(RunLock::Supervised.held(&asker).unwrap() && !RunLock::Unended.held(&asker).unwrap());
        RunLock::Unended.wait(&asker).unwrap();
        assert!(!RunLock::Supervised.wait_for(&asker, Some(Duration::ZERO)).unwrap());
        assert!(!RunLock::Both.attempt(&asker).unwrap());
        drop(holder);
        assert!(RunLock::Both.attempt(&asker).unwrap());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_flock_is_exclusive_and_ends_with_its_file() {
        let path = scratch("flock");
        let held = Flock::take(&path, "x").unwrap();
        assert!(Flock::attempt(&path).unwrap().is_none());
        drop(held);
        assert!(Flock::attempt(&path).unwrap().is_some());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_directory_is_removed_with_what_a_crash_left() {
        let path = scratch("whole");
        let job = path.join("job");
        std::fs::create_dir_all(path.join(".crashed/run")).unwrap();
        std::fs::create_dir_all(job.join("run")).unwrap();
        remove_whole(&job).unwrap();
        assert!(!job.exists());
        remove_hidden(&path);
        // Only an empty directory can be removed like this.
        std::fs::remove_dir(path).unwrap();
    }

    #[test]
    fn a_replacement_leaves_nothing_behind() {
        let path = scratch("replace");
        replace(&path, b"one", true).unwrap();
        replace(&path, b"two", false).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        std::fs::remove_file(path).unwrap();
    }
}
