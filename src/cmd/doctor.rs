//! `doctor`: what this machine and this state directory can do, and what each lack costs.

use anyhow::Result;

use super::App;
use crate::exit::Exit;
use crate::fs::Flock;
use crate::ledger;
use crate::sys::machine::{self, Check};

pub fn doctor(app: &App) -> Result<Exit> {
    let checks = checks(app);
    if app.json {
        let rows: Vec<_> = checks
            .iter()
            .map(|check| serde_json::json!({ "check": check.what, "pass": check.pass, "cost": check.cost }))
            .collect();
        super::print_json(&rows)?;
    } else {
        let line = |check: &Check| {
            if check.pass {
                format!("pass  {}\n", check.what)
            } else {
                format!("LACK  {}: {}\n", check.what, check.cost)
            }
        };
        super::print(checks.iter().map(line).collect::<String>().as_bytes())?;
    }
    let well = checks.iter().all(|check| check.pass);
    Ok(if well { Exit::Done } else { Exit::NotDone })
}

fn checks(app: &App) -> Vec<Check> {
    let mut all = machine::checks();
    all.extend([
        Check::new(
            "the machine has an id (/etc/machine-id)",
            !app.observer.here().machine_id.is_empty(),
            "on a shared file system a reboot cannot be told from another host",
        ),
        Check::new(
            "locks work in the state directory",
            Flock::attempt(&app.dir().ledger_lock()).is_ok(),
            "nothing can be recorded; put the state directory on a local file system",
        ),
        Check::new(
            "holes can be punched in the state directory",
            can_punch(app),
            "--max-output has no effect: a job's output can fill the disk; use ext4, xfs, btrfs or tmpfs",
        ),
    ]);
    match ledger::read(app.dir()) {
        Ok(book) => all.push(Check {
            what: "the ledger can be read",
            pass: book.damage.is_empty(),
            cost: match book.damage.join(", ") {
                damage if damage.is_empty() => "jobs are found by their files".to_owned(),
                damage => format!("{damage}; jobs are found by their files"),
            },
        }),
        Err(error) => {
            all.push(Check { what: "the ledger can be read", pass: false, cost: format!("{error:#}") })
        }
    }
    all
}

/// Tried on a file of our own, which goes at once.
fn can_punch(app: &App) -> bool {
    let path = app.dir().path().join(format!(".doctor.{}", std::process::id()));
    let punched = crate::fs::create_new(&path).is_ok_and(|file| crate::sys::disk::can_punch(&file));
    let _ = std::fs::remove_file(path);
    punched
}
