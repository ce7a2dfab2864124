//! Where things are: the state directory and the files in it.

use std::fs::{DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::env;
use crate::job::Launch;
use crate::sys;

/// A state directory that has been checked: ours, and writable by nobody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir {
    path: PathBuf,
    /// What the first launch needs was there.
    whole: bool,
}

impl StateDir {
    /// `--state-dir`, else OUTLIVE_STATE_DIR, else the platform's state directory. One that is missing stays so: who
    /// only looks leaves nothing behind, be it under the wrong user or home.
    pub fn resolve(flag: Option<PathBuf>) -> Result<Self> {
        let path = match flag.or_else(|| env::state_dir().map(PathBuf::from)) {
            Some(path) => path,
            None => default_dir()?,
        };
        let path =
            std::path::absolute(&path).with_context(|| format!("bad state directory {}", path.display()))?;
        let mut dir = Self { path, whole: false };
        if let Some(found) = look(&dir.path).with_context(|| dir.cannot_look())? {
            dir.whole = dir.check(&found)?;
        }
        Ok(dir)
    }

    fn cannot_look(&self) -> String {
        let shown = self.path.display();
        format!("cannot look at state directory {shown} (set OUTLIVE_STATE_DIR to a directory of yours)")
    }

    /// A state directory that somebody else has checked: a supervisor's, from its launcher.
    pub fn trusted(path: &Path) -> Self {
        Self { path: path.to_path_buf(), whole: true }
    }

    fn create(&self) -> Result<()> {
        let make = |path: &Path, recursive| match DirBuilder::new()
            .mode(0o700)
            .recursive(recursive)
            .create(path)
        {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error).with_context(|| {
                format!("cannot create {} (set OUTLIVE_STATE_DIR to a directory of yours)", path.display())
            }),
            _ => Ok(()),
        };
        make(&self.path, true)?;
        make(&self.jobs(), false)?;
        make(&self.names(), false)
    }

    /// Whether it is whole, if it is ours.
    fn check(&self, meta: &Metadata) -> Result<bool> {
        let shown = self.path.display();
        if !meta.is_dir() {
            bail!("state directory {shown} is not a directory (set OUTLIVE_STATE_DIR to another)");
        }
        if meta.uid() != sys::user() {
            bail!(
                "state directory {shown} belongs to user {}, not to you (set OUTLIVE_STATE_DIR to a directory of yours)",
                meta.uid()
            );
        }
        if meta.permissions().mode() & 0o022 != 0 {
            bail!(
                "state directory {shown} is writable by others (chmod 700 it, or set OUTLIVE_STATE_DIR to another)"
            );
        }
        Ok(own(&self.jobs())? & own(&self.names())?)
    }

    /// Makes the directory of the readers, if there is none.
    pub fn make_readers(&self) -> Result<()> {
        let path = self.readers();
        if self.has_readers()? {
            return Ok(());
        }
        match make_private(&path) {
            // Somebody else was faster, and must be ourselves.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.has_readers().map(drop),
            made => made.with_context(|| format!("cannot create {}", path.display())),
        }
    }

    pub fn has_readers(&self) -> Result<bool> {
        own(&self.readers())
    }

    /// Makes what the first launch needs, 0700.
    pub fn prepare(&self) -> Result<()> {
        if self.whole {
            return Ok(());
        }
        self.create()?;
        // Somebody else may have been faster.
        self.check(&self.path.metadata().with_context(|| self.cannot_look())?).map(drop)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn ledger(&self) -> PathBuf {
        self.path.join("ledger.jsonl")
    }

    pub fn ledger_lock(&self) -> PathBuf {
        self.path.join("ledger.lock")
    }

    pub fn listing(&self) -> PathBuf {
        self.path.join("listing")
    }

    pub fn jobs(&self) -> PathBuf {
        self.path.join("jobs")
    }

    pub fn names(&self) -> PathBuf {
        self.path.join("names")
    }

    pub fn name(&self, name: &str) -> PathBuf {
        self.names().join(name)
    }

    pub fn readers(&self) -> PathBuf {
        self.path.join("readers")
    }

    pub fn job(&self, id: &str) -> JobDir {
        JobDir(self.jobs().join(id))
    }

    pub fn run(&self, id: &str, run: u32) -> RunDir {
        self.job(id).run(run)
    }
}

/// `jobs/<id>`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobDir(pub PathBuf);

impl JobDir {
    pub fn op(&self) -> PathBuf {
        self.0.join("op")
    }

    pub fn output(&self) -> PathBuf {
        self.0.join("output.log")
    }

    pub fn env(&self) -> PathBuf {
        self.0.join("env")
    }

    pub fn run(&self, run: u32) -> RunDir {
        RunDir(self.0.join(run.to_string()))
    }

    /// The runs that have a directory, in order.
    pub fn runs(&self) -> Vec<u32> {
        let Ok(entries) = std::fs::read_dir(&self.0) else { return Vec::new() };
        let mut runs: Vec<u32> =
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        runs.sort_unstable();
        runs
    }
}

/// `jobs/<id>/<run>`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir(pub PathBuf);

impl RunDir {
    pub fn launch(&self) -> PathBuf {
        self.0.join("launch.json")
    }

    pub fn exit(&self) -> PathBuf {
        self.0.join("exit.json")
    }

    pub fn control(&self) -> PathBuf {
        self.0.join("control")
    }

    /// Whether a record is this run's, and not one that was copied or moved here.
    pub fn is_of(&self, launch: &Launch) -> bool {
        self.0.ends_with(Path::new(&launch.id).join(launch.run.to_string()))
    }
}

/// While the state directory was open to others, somebody may have put a directory of theirs, or a way to it, in it.
/// False if there is nothing.
fn own(path: &Path) -> Result<bool> {
    let meta = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        meta => meta.with_context(|| {
            let above = path.parent().unwrap_or(path).display();
            format!("cannot look at {} (chmod u+rwx {above}, if it is yours)", path.display())
        })?,
    };
    if !meta.is_dir() || meta.uid() != sys::user() || meta.permissions().mode() & 0o022 != 0 {
        bail!(
            "{} is not a directory that only you can write (remove it, or set OUTLIVE_STATE_DIR to another)",
            path.display()
        );
    }
    Ok(true)
}

/// Makes a directory for this user alone.
pub fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// The same, with those above it that are missing. One that is there already is left as it is.
pub fn make_private_all(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(path)
}

/// None if there is nothing. A link to nowhere is an error: it is not replaced by a directory.
fn look(path: &Path) -> io::Result<Option<Metadata>> {
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // A link; or the first launch of somebody else has just made it.
            _ => path.metadata().map(Some),
        },
        found => found.map(Some),
    }
}

fn default_dir() -> Result<PathBuf> {
    // Without HOME the library would ask the user database, which a static program cannot do everywhere.
    if env::home().is_none() {
        bail!("no home directory: HOME is not set (set HOME, or OUTLIVE_STATE_DIR to a directory of yours)");
    }
    let dirs = directories::ProjectDirs::from("", "", "outlive")
        .context("no home directory (set HOME or OUTLIVE_STATE_DIR)")?;
    Ok(dirs.state_dir().unwrap_or_else(|| dirs.data_local_dir()).to_path_buf())
}
