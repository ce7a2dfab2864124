//! `doctor`: what this machine and this state directory can do, and what each lack costs.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::App;
use crate::exit::Exit;
use crate::fs::Flock;
use crate::ledger;
use crate::store;
use crate::sys::machine::{self, Check};
use crate::sys::{Ability, can};

pub fn doctor(app: &App) -> Result<Exit> {
    let checks = checks(app);
    if app.json {
        let rows: Vec<_> = checks
            .iter()
            .map(|Check { what, pass, cost, ability }| {
                serde_json::json!({ "check": what, "pass": pass, "cost": cost, "ability": ability })
            })
            .collect();
        super::print_json(&rows)?;
    } else {
        let line = |check: &Check| {
            if check.pass {
                format!("pass  {}\n", check.what)
            } else {
                format!("LACK  {}: {}\n", check.what, crate::words::printable(&check.cost))
            }
        };
        super::print(checks.iter().map(line).collect::<String>().as_bytes())?;
    }
    let well = checks.iter().all(|check| check.pass);
    Ok(if well { Exit::Done } else { Exit::NotDone })
}

fn checks(app: &App) -> Vec<Check> {
    let probe = Probe::new(app);
    let mut all: Vec<Check> = Ability::ALL.into_iter().map(Check::of_ability).collect();
    all.extend(machine::checks());
    all.extend([
        Check::new(
            "the machine has an id (/etc/machine-id)",
            !app.observer.here().machine_id.is_empty(),
            "on a shared file system a reboot cannot be told from another host",
        ),
        Check::new(
            "files can be made in the state directory",
            probe.file.is_some(),
            "nothing can be launched or recorded; set OUTLIVE_STATE_DIR to a directory that you can write",
        ),
        Check::new(
            "there is room for a launch in the state directory",
            probe.file.as_ref().is_none_or(|file| {
                store::reserve_exit(file).is_ok() && file.write_all_at(&[0; 4096], 0).is_ok()
            }),
            &format!("nothing can be launched; {}", crate::words::FULL),
        ),
        Check::new(
            "locks work in the state directory",
            probe.file.is_none() || Flock::attempt(&probe.path).is_ok_and(|lock| lock.is_some()),
            "nothing can be recorded; put the state directory on a local file system",
        ),
    ]);
    if can(Ability::Holes) {
        all.push(Check::new(
            "holes can be punched in the state directory",
            probe.file.as_ref().is_none_or(crate::sys::disk::can_punch),
            "--max-output has no effect: a job's output can fill the disk; use ext4, xfs, btrfs or tmpfs",
        ));
    }
    match ledger::read(app.dir()) {
        Ok(book) => {
            let cost = match book.damage.join(", ") {
                damage if damage.is_empty() => "jobs are found by their files".to_owned(),
                damage => format!("{damage}; jobs are found by their files"),
            };
            all.push(Check::new("the ledger can be read", book.damage.is_empty(), &cost));
        }
        Err(error) => all.push(Check::new("the ledger can be read", false, &crate::words::of(&error))),
    }
    all
}

/// A file of our own in the state directory, on which things are tried; it goes with this. Where the directory is
/// still to be made, what is above it answers for it.
struct Probe {
    path: PathBuf,
    /// None if it could not be made.
    file: Option<File>,
}

impl Probe {
    fn new(app: &App) -> Self {
        let there = app.dir().path().ancestors().find(|path| path.is_dir());
        let path = there.unwrap_or(Path::new("/")).join(format!(".outlive-doctor.{}", std::process::id()));
        let file = crate::fs::create_new(&path).ok();
        Self { path, file }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
