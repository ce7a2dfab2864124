//! The stories, killed and starved at each of their points.

use nix::libc;

use crate::env::eventually;
use crate::sweep::{Scene, Story, full, report, sweep};
use crate::trace::{Act, Role};

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// A job that ends by itself.
fn run_short(scene: &Scene) -> Vec<String> {
    words(&["run", "--name", "web", "--", "sh", "-c", &scene.job()])
}

fn finished(scene: &Scene) -> String {
    let id = scene.env.run(["--name", "web", "--", "sh", "-c", &scene.job()]);
    scene.env.outlive(["wait", &id]).ok();
    id
}

/// A job that sleeps.
fn alive(scene: &Scene) -> String {
    let script = format!("{}; exec sleep 1000", scene.job());
    let id = scene.env.run(["--name", "web", "--", "sh", "-c", &script]);
    eventually("the job has begun", || scene.ran.exists());
    id
}

fn orphan(scene: &Scene) -> String {
    let id = alive(scene);
    scene.env.kill_supervisor(&id);
    id
}

const RUN: Story = Story::new("run", 1, run_short);
const RUN_LONG: Story = Story::new("run of a long job", 1, |scene| {
    words(&["run", "--name", "web", "--", "sh", "-c", &format!("{}; exec sleep 1000", scene.job())])
});
const STOP: Story = Story::new("stop", 1, |scene| words(&["stop", &alive(scene)]));
const STOP_ORPHAN: Story = Story::new("stop of an orphan", 1, |scene| words(&["stop", &orphan(scene)]));
const REAP: Story = Story::new("reap of a lost job", 1, |scene| {
    let id = alive(scene);
    scene.env.kill_unseen(&id);
    words(&["reap"])
});
const ADOPT: Story = Story {
    ends: true,
    ..Story::new("reap, adopting", 1, |scene| {
        orphan(scene);
        words(&["reap", "--orphans", "adopt"])
    })
};
const RESTART: Story = Story::new("restart", 2, |scene| words(&["restart", &finished(scene)]));
const RESTART_ALIVE: Story =
    Story::new("restart of a live job", 2, |scene| words(&["restart", "-t", "0", &alive(scene)]));
const PRUNE: Story =
    Story { forgets: true, ..Story::new("prune", 1, |scene| words(&["prune", &finished(scene)])) };
const WAIT: Story = Story::new("wait", 1, |scene| words(&["wait", &finished(scene)]));
const LS: Story = Story::new("ls", 1, |scene| {
    orphan(scene);
    words(&["ls", "-a"])
});

#[test]
fn killed_launching() {
    let mut broken = sweep(&RUN, Role::Caller, None, Act::Kill, 10);
    broken.extend(sweep(&RUN_LONG, Role::Caller, None, Act::Kill, 10));
    broken.extend(sweep(&RUN, Role::Child, None, Act::Kill, 10));
    broken.extend(sweep(&RUN, Role::Grandchild, None, Act::Kill, 10));
    report(broken);
}

#[test]
fn killed_restarting() {
    let mut broken = sweep(&RESTART, Role::Caller, None, Act::Kill, 8);
    broken.extend(sweep(&RESTART, Role::Child, None, Act::Kill, 8));
    broken.extend(sweep(&RESTART_ALIVE, Role::Caller, None, Act::Kill, 5));
    report(broken);
}

#[test]
fn killed_ending() {
    let mut broken = Vec::new();
    for story in [&STOP, &REAP, &WAIT, &LS] {
        broken.extend(sweep(story, Role::Caller, None, Act::Kill, 4));
    }
    broken.extend(sweep(&STOP_ORPHAN, Role::Caller, None, Act::Kill, 8));
    broken.extend(sweep(&STOP_ORPHAN, Role::Grandchild, None, Act::Kill, 5));
    report(broken);
}

#[test]
fn killed_pruning() {
    report(sweep(&PRUNE, Role::Caller, None, Act::Kill, 15));
}

#[test]
fn killed_adopting() {
    let mut broken = sweep(&ADOPT, Role::Caller, None, Act::Kill, 5);
    broken.extend(sweep(&ADOPT, Role::Child, None, Act::Kill, 5));
    report(broken);
}

/// What each call may fail with.
#[cfg(target_arch = "x86_64")]
const FAILURES: [(&str, i64, &[i32]); 24] = [
    ("openat", libc::SYS_openat, &[libc::EMFILE, libc::ENOSPC, libc::EACCES]),
    ("write", libc::SYS_write, &[libc::ENOSPC, libc::EINTR]),
    ("pwrite64", libc::SYS_pwrite64, &[libc::ENOSPC, libc::EIO]),
    ("fdatasync", libc::SYS_fdatasync, &[libc::EIO]),
    ("fsync", libc::SYS_fsync, &[libc::EIO]),
    ("mkdir", libc::SYS_mkdir, &[libc::ENOSPC]),
    ("mknodat", libc::SYS_mknodat, &[libc::ENOSPC]),
    ("clone", libc::SYS_clone, &[libc::EAGAIN]),
    ("clone3", libc::SYS_clone3, &[libc::EAGAIN]),
    ("mmap", libc::SYS_mmap, &[libc::ENOMEM]),
    ("flock", libc::SYS_flock, &[libc::EINTR, libc::ENOLCK]),
    ("fcntl", libc::SYS_fcntl, &[libc::ENOLCK, libc::EMFILE]),
    ("read", libc::SYS_read, &[libc::EINTR, libc::EIO]),
    ("fallocate", libc::SYS_fallocate, &[libc::ENOSPC, libc::EOPNOTSUPP]),
    ("rename", libc::SYS_rename, &[libc::ENOSPC]),
    ("socketpair", libc::SYS_socketpair, &[libc::EMFILE]),
    ("sendmsg", libc::SYS_sendmsg, &[libc::ENOBUFS]),
    ("sendto", libc::SYS_sendto, &[libc::ENOBUFS]),
    ("recvmsg", libc::SYS_recvmsg, &[libc::EINTR, libc::ENOMEM]),
    ("pidfd_open", libc::SYS_pidfd_open, &[libc::EMFILE]),
    ("poll", libc::SYS_poll, &[libc::EINTR, libc::ENOMEM]),
    ("waitid", libc::SYS_waitid, &[libc::EINTR]),
    ("signalfd4", libc::SYS_signalfd4, &[libc::EMFILE]),
    ("pread64", libc::SYS_pread64, &[libc::EIO]),
];

#[cfg(target_arch = "x86_64")]
fn starve(story: &Story, role: Role) -> Vec<String> {
    let mut broken = Vec::new();
    for (name, call, errors) in FAILURES {
        // The first is the likeliest.
        let errors = if full() { errors } else { &errors[..1] };
        for &errno in errors {
            broken.extend(sweep(story, role, Some((name, call)), Act::Fail(errno), 1));
        }
    }
    broken
}

#[cfg(target_arch = "x86_64")]
#[test]
fn starved_launching() {
    let mut broken = starve(&RUN, Role::Caller);
    broken.extend(starve(&RUN, Role::Child));
    broken.extend(starve(&RUN, Role::Grandchild));
    report(broken);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn starved_steering() {
    let mut broken = Vec::new();
    let every = [&STOP_ORPHAN, &RESTART, &PRUNE, &LS, &STOP, &REAP, &WAIT];
    for story in if full() { &every[..] } else { &every[..4] } {
        broken.extend(starve(story, Role::Caller));
    }
    if full() {
        broken.extend(starve(&RESTART, Role::Child));
        broken.extend(starve(&STOP_ORPHAN, Role::Grandchild));
    }
    report(broken);
}
