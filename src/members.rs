//! Which processes belong to a job.
//!
//! Supervised, the answer is exact: everything that descends from the supervisor, which adopts what its
//! descendants leave behind, down to a process of another job. Unsupervised, only what is provable counts: a
//! process that carries the run's mark; one of the leader's session once a proven process pins that session's
//! number; and their descendants. A start time alone proves nothing: a recycled group is younger too.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::Path;

use crate::env;
use crate::job::{Launch, ProcessId};
use crate::state::same_command;
use crate::sys::proc::{self, Environs, Stat};
use crate::sys::spawn::title;
use crate::sys::{Ability, can};

/// What the environment of a process says about the job it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Ours,
    /// Another job, or another run of the same one.
    Other,
    Absent,
    /// The environment may not be read, or is empty: it says nothing at all.
    Unreadable,
}

/// The run whose processes are looked for.
#[derive(Clone, Debug)]
pub struct RunMark {
    id: Vec<u8>,
    run: Vec<u8>,
    state_dir: Vec<u8>,
    title: Vec<u8>,
}

/// Whether a process shows itself as a supervisor, or a helper, of any job.
fn shows_supervisor(stat: &Stat) -> bool {
    stat.comm.starts_with(b"outlive:")
}

impl RunMark {
    pub fn new(id: &str, run: u32, state_dir: &Path) -> Self {
        use std::os::unix::ffi::OsStrExt;
        Self {
            id: id.as_bytes().to_vec(),
            run: run.to_string().into_bytes(),
            state_dir: state_dir.as_os_str().as_bytes().to_vec(),
            title: title(id).into_bytes(),
        }
    }

    /// Reads the mark of a process out of its environment.
    pub fn judge(&self, environ: Option<&[u8]>) -> Mark {
        let Some(environ) = environ.filter(|environ| !environ.is_empty()) else { return Mark::Unreadable };
        let value = |name: &str| {
            let of = |entry: &'_ [u8]| {
                entry
                    .strip_prefix(name.as_bytes())
                    .and_then(|rest| rest.strip_prefix(b"="))
                    .map(<[u8]>::to_vec)
            };
            proc::split_nul(environ).find_map(of)
        };
        match value(env::JOB_ID) {
            None => Mark::Absent,
            Some(id)
                if id == self.id
                    && value(env::RUN).as_ref() == Some(&self.run)
                    && value(env::STATE_DIR).is_some_and(|path| same_directory(&path, &self.state_dir)) =>
            {
                Mark::Ours
            }
            Some(_) => Mark::Other,
        }
    }

    pub fn of(&self, pid: i32) -> io::Result<Mark> {
        Ok(self.judge(proc::environ(pid)?.as_deref()))
    }

    /// Whether a descendant of this run's supervisor is not this job's: another supervisor, or marked for
    /// another job.
    pub fn foreign(&self, stat: &Stat) -> io::Result<bool> {
        let supervisor = shows_supervisor(stat) && stat.comm != self.title;
        Ok(supervisor || self.of(stat.pid)? == Mark::Other)
    }
}

/// Whether two paths lead to one directory: it may have been reached through a link.
fn same_directory(a: &[u8], b: &[u8]) -> bool {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;
    let inode = |path: &[u8]| {
        std::fs::metadata(std::ffi::OsStr::from_bytes(path)).map(|meta| (meta.dev(), meta.ino())).ok()
    };
    a == b || inode(a).is_some_and(|found| inode(b) == Some(found))
}

/// How often descendants are listed again because one has died meanwhile. A job may fork and die for ever.
const PASSES: usize = 10;

/// Everything alive that descends from the supervisor and is this job's. An error if that could not be seen:
/// nobody found is no proof that nobody is there. `told`: a member that need not be found.
pub fn supervised(supervisor: i32, mark: &RunMark, told: Option<i32>) -> io::Result<Vec<Stat>> {
    if !can(Ability::Subreaper) {
        let all = proc::all()?;
        let environs = Environs::of(&all)?;
        return Ok(found(supervisor, &all, &|pid| mark.judge(environs.get(pid).ok().flatten().as_deref())));
    }
    let own = u32::try_from(supervisor) == Ok(std::process::id());
    let mut found = Vec::new();
    let mut known: BTreeSet<i32> = told.into_iter().collect();
    // The children of one that dies become the supervisor's, whose own may have been listed before: once more then.
    let mut dead = BTreeSet::new();
    for _ in 0..PASSES {
        let mut again = false;
        let mut listed = BTreeSet::new();
        let mut open = vec![supervisor];
        while let Some(parent) = open.pop() {
            let children =
                if own && parent == supervisor { proc::own_children()? } else { proc::children(parent)? };
            if parent != supervisor && proc::find(parent)?.is_none_or(|stat| stat.dead()) {
                again |= dead.insert(parent);
            }
            for pid in children.into_iter().filter(|&pid| listed.insert(pid)) {
                if !known.contains(&pid) {
                    let Some(stat) = proc::find(pid)? else {
                        again |= dead.insert(pid);
                        continue;
                    };
                    if mark.foreign(&stat)? {
                        continue;
                    }
                    known.insert(pid);
                    found.extend((!stat.dead()).then_some(stat));
                }
                open.push(pid);
            }
        }
        if !again {
            break;
        }
    }
    Ok(found)
}

/// The same where a supervisor is given no orphans: what descends from it, what is in its leader's session, what bears
/// the mark, and what descends from those. `all` has the dead, too: a supervisor has not waited for its leader, so
/// the number of the leader's session is nobody else's.
pub fn found(supervisor: i32, all: &[Stat], mark_of: &dyn Fn(i32) -> Mark) -> Vec<Stat> {
    // Its leader began a session; what else it starts is its own affair.
    let leader = |stat: &Stat| stat.ppid == supervisor && (stat.sid == stat.pid || stat.dead());
    let own = |stat: &&Stat| {
        let possible = if stat.ppid == supervisor { leader(stat) } else { !shows_supervisor(stat) };
        possible && stat.pid != supervisor && mark_of(stat.pid) != Mark::Other
    };
    let possible: Vec<&Stat> = all.iter().filter(own).collect();
    let sessions: HashSet<i32> =
        possible.iter().filter(|stat| stat.ppid == supervisor).map(|stat| stat.pid).collect();
    let mut known: HashSet<i32> = sessions.clone();
    let seed = |stat: &&&Stat| sessions.contains(&stat.sid) || mark_of(stat.pid) == Mark::Ours;
    known.extend(possible.iter().filter(seed).map(|stat| stat.pid));
    loop {
        let more = possible.iter().filter(|stat| known.contains(&stat.ppid) && !known.contains(&stat.pid));
        let more: Vec<i32> = more.map(|stat| stat.pid).collect();
        if more.is_empty() {
            break;
        }
        known.extend(more);
    }
    let living = |stat: &&&Stat| known.contains(&stat.pid) && !stat.dead();
    possible.iter().filter(living).map(|stat| (*stat).clone()).collect()
}

/// The members of a job whose supervisor is gone, its leader included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    pub proven: Vec<Stat>,
    /// In the leader's session, or so it seems, but nothing proves it.
    pub unproven: Vec<Stat>,
}

/// Who bears the leader's number now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bearer {
    /// The leader itself, as is proven.
    Leader,
    /// Somebody else, whose start time may be the same: ticks are long.
    Stranger,
    /// Nobody, or it cannot be told.
    Open,
}

/// Judges every process of the table; pure but for `mark_of` and `argv_of`.
pub fn provable(
    launch: &Launch,
    table: &[Stat],
    mark_of: &dyn Fn(i32) -> Mark,
    argv_of: &dyn Fn(i32) -> Option<Vec<Vec<u8>>>,
    bearer: Bearer,
) -> Members {
    let recorded = &launch.identity;
    // The kernel gives a number to nobody while a process bears it as pid, pgid or sid: if the leader's number
    // is a stranger's now, its session is dead, and what bears that number as its session is the stranger's.
    let stranger = bearer == Bearer::Stranger
        || table.iter().any(|stat| stat.pid == recorded.pid && stat.start_time != recorded.start_time);
    let old_enough = |stat: &&Stat| stat.start_time >= recorded.start_time;
    let marks: HashMap<i32, Mark> =
        table.iter().filter(old_enough).map(|stat| (stat.pid, mark_of(stat.pid))).collect();
    let mark = |stat: &Stat| marks.get(&stat.pid).copied().unwrap_or(Mark::Absent);
    // A leader at the gate looks like one.
    let supervisor = |stat: &Stat| shows_supervisor(stat) && stat.pid != recorded.pid;

    let in_session: Vec<&Stat> = table
        .iter()
        .filter(old_enough)
        // A session of outside this PID namespace shows as 0: that of everybody out there.
        .filter(|stat| recorded.sid > 1 && !stranger && stat.sid == recorded.sid && mark(stat) != Mark::Other)
        .collect();
    let argv: Vec<&[u8]> = launch.argv.iter().map(|word| word.0.as_slice()).collect();
    // The command line is a proof only where the environment is silent. One that can be read and bears no mark
    // speaks against it: the same command, started by somebody else, in a session whose number has come round.
    let proves_itself = |stat: &Stat| {
        mark(stat) == Mark::Ours
            || (bearer == Bearer::Leader && stat.pid == recorded.pid)
            || (mark(stat) == Mark::Unreadable
                && argv_of(stat.pid).is_some_and(|now| same_command(&argv, &now)))
    };
    let pinned = in_session.iter().any(|stat| proves_itself(stat));

    let mut ours: HashSet<i32> = table
        .iter()
        .filter(old_enough)
        .filter(|stat| mark(stat) == Mark::Ours)
        .map(|stat| stat.pid)
        .collect();
    if pinned {
        ours.extend(in_session.iter().map(|stat| stat.pid));
    }
    loop {
        let more: Vec<i32> = table
            .iter()
            .filter(|stat| {
                ours.contains(&stat.ppid)
                    && !ours.contains(&stat.pid)
                    && mark(stat) != Mark::Other
                    && !supervisor(stat)
            })
            .map(|stat| stat.pid)
            .collect();
        if more.is_empty() {
            break;
        }
        ours.extend(more);
    }
    let pick = |wanted: &dyn Fn(&Stat) -> bool| {
        table.iter().filter(|stat| !supervisor(stat) && wanted(stat)).cloned().collect()
    };
    Members {
        proven: pick(&|stat| ours.contains(&stat.pid)),
        unproven: if pinned {
            Vec::new()
        } else {
            in_session
                .into_iter()
                .filter(|stat| !ours.contains(&stat.pid) && !supervisor(stat))
                .cloned()
                .collect()
        },
    }
}

/// Processes that may never be signalled by this one: itself, its ancestors, its own group, PID 1.
pub fn untouchable(table: &[Stat], me: ProcessId) -> HashSet<i32> {
    let parents: HashMap<i32, &Stat> = table.iter().map(|stat| (stat.pid, stat)).collect();
    let group = parents.get(&me.pid).map_or(me.pid, |stat| stat.pgid);
    let mut never: HashSet<i32> =
        table.iter().filter(|stat| stat.pgid == group).map(|stat| stat.pid).collect();
    never.extend([0, 1, me.pid]);
    let mut at = me.pid;
    while let Some(stat) = parents.get(&at) {
        if stat.ppid <= 0 || (!never.insert(stat.ppid) && stat.ppid == 1) {
            break;
        }
        at = stat.ppid;
    }
    never
}

#[cfg(test)]
#[path = "members_tests.rs"]
mod tests;
