//! A disk that is full, and one that has no room for another file.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

use crate::env::TestEnv;

/// A small file system at the state directory, in a mount namespace of this thread's; none where that may not be.
struct Small {
    env: TestEnv,
}

impl Small {
    fn mounted(options: &str) -> Option<Self> {
        let env = TestEnv::new();
        fs::create_dir(env.state()).unwrap();
        let private = || {
            unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS)?;
            mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
            mount(Some("tmpfs"), &env.state(), Some("tmpfs"), MsFlags::empty(), Some(options))
        };
        match private() {
            Ok(()) => Some(Self { env }),
            Err(error) => {
                println!("SKIPPED: a file system of a test's own cannot be mounted: {error}");
                None
            }
        }
    }

    /// Writes until nothing goes any more.
    fn fill(&self) {
        let mut file = File::create(self.env.state().join("filler")).unwrap();
        for size in [64 * 1024, 4096, 512, 1] {
            while file.write(&vec![b'x'; size]).is_ok_and(|written| written > 0) {}
        }
    }

    /// Makes files until none can be made any more.
    fn use_up_inodes(&self) {
        let mut number = 0;
        while File::create(self.env.state().join(format!("filler-{number}"))).is_ok() {
            number += 1;
        }
    }

    fn free(&self) {
        for entry in fs::read_dir(self.env.state()).unwrap().flatten() {
            if entry.file_name().to_string_lossy().starts_with("filler") {
                fs::remove_file(entry.path()).unwrap();
            }
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        self.env.outlive(["stop", "--all", "-t", "0"]);
        let _ = umount2(&self.env.state(), MntFlags::MNT_DETACH);
    }
}

fn jobs(path: &Path) -> usize {
    fs::read_dir(path.join("jobs")).map_or(0, |entries| entries.count())
}

/// In a thread of its own: the namespace is the thread's.
fn in_thread(test: fn()) {
    std::thread::spawn(test).join().unwrap();
}

#[test]
fn a_full_disk_takes_no_end_away() {
    in_thread(|| {
        let Some(small) = Small::mounted("mode=700,size=1m") else { return };
        let env = &small.env;
        let mut fifo = env.fifo("fifo");
        let gate = env.gate("go");
        let seven = env.script("echo up >&3; read x <\"$2\"; exit 7", &[fifo.path(), gate.path()]);
        assert_eq!(fifo.line(), "up");
        let stopped = env.run(["--", "sleep", "1000"]);
        small.fill();
        gate.open();
        env.outlive(["wait", &seven]).ended(7);
        env.outlive(["stop", &stopped]).ok();
        let full = "(free some room, for example by 'outlive prune'";
        env.outlive(["run", "--", "true"]).refused(125, "no space left").refused(125, full);
        env.outlive(["restart", &seven]).refused(125, full);
        let lacks = env.outlive(["doctor"]).ended(1).stdout;
        assert!(lacks.contains("LACK  there is room for a launch"), "{lacks}");
        let before = jobs(&env.state());
        let list = env.json(["ls", "-a"]);
        assert_eq!(list.as_array().unwrap().len(), 2, "{list}");
        small.free();
        env.outlive(["reap"]).ok();
        assert_eq!(jobs(&env.state()), before, "a refused launch leaves nothing");
        let (seven, stopped) = (env.job(&seven), env.job(&stopped));
        assert_eq!((&seven["state"], &seven["exit_code"]), (&"exited".into(), &7.into()));
        assert_eq!(stopped["state"], "stopped");
        let list = env.json(["ls", "-a"]);
        assert_eq!(list.as_array().unwrap().len(), 2, "{list}");
        env.run(["--", "true"]);
    });
}

#[test]
fn a_disk_without_inodes_takes_no_end_away() {
    in_thread(|| {
        let Some(small) = Small::mounted("mode=700,size=1m,nr_inodes=40") else { return };
        let env = &small.env;
        let stopped = env.run(["--", "sleep", "1000"]);
        small.use_up_inodes();
        env.outlive(["stop", &stopped]).ok();
        env.outlive(["run", "--", "true"]).refused(125, "no space left");
        assert_eq!(env.state_of(&stopped), "stopped");
        small.free();
        env.outlive(["reap"]).ok();
        assert_eq!(env.json(["ls", "-a"]).as_array().unwrap().len(), 1);
        env.run(["--", "true"]);
    });
}
