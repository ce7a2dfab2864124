//! What not every system can do. Each back-end says which it can; `doctor` says what a lack costs.

use super::here;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ability {
    Subreaper,
    Handles,
    StartTimes,
    CommandLines,
    BootId,
    Namespaces,
    Titles,
    Usage,
    Watches,
    Holes,
    Room,
    Ports,
    LockHolders,
    Suspends,
}

impl Ability {
    pub const ALL: [Self; 14] = [
        Self::Subreaper,
        Self::Handles,
        Self::StartTimes,
        Self::CommandLines,
        Self::BootId,
        Self::Namespaces,
        Self::Titles,
        Self::Usage,
        Self::Watches,
        Self::Holes,
        Self::Room,
        Self::Ports,
        Self::LockHolders,
        Self::Suspends,
    ];

    /// Name, what it is, and what its lack costs.
    const fn words(self) -> [&'static str; 3] {
        match self {
            Self::Subreaper => [
                "subreaper",
                "supervisors are given the orphans of their jobs",
                "a process whose parents ended is found by its session or by its mark in ps; one that left the session \
                 and cleared its environment is not",
            ],
            Self::Handles => [
                "handles",
                "processes are held so that their numbers cannot come to mean others",
                "between its proof and its signal a number may become another's; an end that is nobody's child is \
                 noticed up to half a second late",
            ],
            Self::StartTimes => [
                "start-times",
                "start times are exact",
                "they are known to the second: a number that came round within one is not told apart",
            ],
            Self::CommandLines => [
                "command-lines",
                "command lines are lists",
                "they are no proof: without its supervisor, only a process whose mark ps shows is proven, any other is \
                 unverified",
            ],
            Self::BootId => [
                "boot-id",
                "boots have an id",
                "a boot is known by the start of process 1: where that is worked out from the wall clock, setting the \
                 clock passes for a reboot",
            ],
            Self::Namespaces => [
                "namespaces",
                "PID and time namespaces are told apart",
                "another container on the same state directory is known by the start of process 1 only",
            ],
            Self::Titles => [
                "titles",
                "supervisors show their job's id",
                "in ps, they all show as 'outlive outlive:supervise'",
            ],
            Self::Usage => [
                "usage",
                "memory and CPU time of a command are told before it is waited for",
                "max_rss_bytes and cpu_ms are null",
            ],
            Self::Watches => [
                "watches",
                "writes are told",
                "'logs -f' and 'events -f' look ten times a second, and supervisors at an output that is capped every \
                 ten seconds",
            ],
            Self::Holes => [
                "holes",
                "a part of an output can be given back to the disk while it is written",
                "--max-output has no effect, and is not set by itself: a job's output can fill the disk",
            ],
            Self::Room => [
                "room",
                "room is kept on the disk for the record of an end",
                "a full disk may refuse it: the run is then 'interrupted'",
            ],
            Self::Ports => ["ports", "it is known who listens on a port", "--ready-port is refused"],
            Self::LockHolders => {
                ["lock-holders", "it is known who holds a lock", "whoever waits for one is not told for whom"]
            }
            Self::Suspends => [
                "suspends",
                "a clock counts through suspends",
                "--timeout and durations may leave out the time a machine is suspended",
            ],
        }
    }

    pub const fn name(self) -> &'static str {
        self.words()[0]
    }

    pub const fn what(self) -> &'static str {
        self.words()[1]
    }

    pub const fn cost(self) -> &'static str {
        self.words()[2]
    }
}

/// Whether this build can do it. The back-end's answers are constants, so nothing is asked at run time.
pub const fn can(ability: Ability) -> bool {
    here::can(ability)
}
