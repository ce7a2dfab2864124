//! `doctor`: what this machine and this state directory can do, and what each lack costs.

use anyhow::Result;

use super::App;
use crate::exit::Exit;
use crate::fs::Flock;
use crate::ledger;
use crate::sys::pidfd::PidFd;
use crate::sys::proc;

struct Check {
    what: &'static str,
    pass: bool,
    cost: String,
}

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
    let me = i32::try_from(std::process::id()).unwrap_or(0);
    let check = |what, pass, cost: &str| Check { what, pass, cost: cost.to_owned() };
    let mut all = vec![
        check(
            "/proc shows this process",
            proc::stat(me).is_ok_and(|stat| stat.pid == me),
            "no process can be proven; mount /proc of this PID namespace",
        ),
        check(
            "the kernel has pidfds (Linux 5.3)",
            PidFd::open(me).is_ok(),
            "no process can be signalled safely; nothing works",
        ),
        check(
            "pidfds have inodes of their own (Linux 6.9)",
            PidFd::open(me).is_ok_and(|fd| fd.inode().is_some()),
            "an orphan that cleared its environment and rewrote its title stays unverified",
        ),
        check(
            "children are listed in /proc (CONFIG_PROC_CHILDREN)",
            std::path::Path::new("/proc/self/task").join(me.to_string()).join("children").exists(),
            "supervisors read the whole process table instead",
        ),
        check(
            "the machine has an id (/etc/machine-id)",
            !app.observer.here().machine_id.is_empty(),
            "on a shared file system a reboot cannot be told from another host",
        ),
        check(
            "locks work in the state directory",
            Flock::attempt(&app.dir().ledger_lock()).is_ok(),
            "nothing can be recorded; put the state directory on a local file system",
        ),
    ];
    all.push(check(
        "the kernel tells others than the parent how a process ended (Linux 6.15)",
        kernel_at_least(6, 15),
        "an adopted job's end is 'interrupted', without its status",
    ));
    all.push(check(
        "holes can be punched in the state directory",
        can_punch(app),
        "--max-output has no effect: a job's output can fill the disk; use ext4, xfs, btrfs or tmpfs",
    ));
    all.push(check(
        "directories notify (fs.dir-notify-enable)",
        std::fs::read_to_string("/proc/sys/fs/dir-notify-enable").is_ok_and(|text| text.trim() == "1"),
        "supervisors look at an output that is capped every ten seconds; sysctl fs.dir-notify-enable=1",
    ));
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

fn kernel_at_least(major: u32, minor: u32) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-', '+']).map_while(|word| word.trim().parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}

/// Tried on a file of our own, which goes at once.
fn can_punch(app: &App) -> bool {
    let path = app.dir().path().join(format!(".doctor.{}", std::process::id()));
    let punched = crate::fs::create_new(&path).is_ok_and(|file| crate::fs::can_punch(&file));
    let _ = std::fs::remove_file(path);
    punched
}
