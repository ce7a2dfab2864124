//! What outlive promises about jobs, as simple as it can be said: no process, no file, no clock.

/// How a run ended: the state, and what `wait` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) state: &'static str,
    pub(crate) code: i32,
}

impl End {
    const INTERRUPTED: Self = Self { state: "interrupted", code: 122 };
    const STOPPED: Self = Self { state: "stopped", code: 128 + 15 };
    pub(crate) const TIMED_OUT: Self = Self { state: "stopped", code: 124 };
    pub(crate) const BROKEN_OFF: Self = Self { state: "failed", code: 125 };

    pub(crate) const fn exited(code: i32) -> Self {
        Self { state: "exited", code }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Alive { paused: bool, adopted: bool },
    Orphaned { paused: bool, leader: bool },
    Lingering { supervised: bool, end: End },
    Over(End),
    Forgotten,
}

impl Life {
    pub(crate) const NEW: Self = Self::Alive { paused: false, adopted: false };

    pub(crate) fn state(self) -> Option<&'static str> {
        Some(match self {
            Self::Alive { paused: false, .. } => "running",
            Self::Alive { paused: true, .. } => "paused",
            Self::Orphaned { .. } => "orphaned",
            Self::Lingering { .. } => "lingering",
            Self::Over(end) => end.state,
            Self::Forgotten => return None,
        })
    }

    fn stopped(self, end: End) -> Vec<Self> {
        match self {
            // Whoever adopted a job may not be told how it ended.
            Self::Alive { adopted: true, .. } => vec![Self::Over(end), Self::Over(End::INTERRUPTED)],
            Self::Alive { .. } => vec![Self::Over(end)],
            Self::Orphaned { .. } => vec![Self::Over(End::INTERRUPTED)],
            Self::Lingering { end, .. } => vec![Self::Over(end)],
            over => vec![over],
        }
    }

    pub(crate) fn has_leader(self) -> bool {
        matches!(self, Self::Alive { .. } | Self::Orphaned { leader: true, .. })
    }

    pub(crate) fn paused(self) -> bool {
        matches!(self, Self::Alive { paused: true, .. } | Self::Orphaned { paused: true, .. })
    }

    pub(crate) fn supervised(self) -> bool {
        matches!(self, Self::Alive { .. } | Self::Lingering { supervised: true, .. })
    }

    pub(crate) fn over(self) -> bool {
        matches!(self, Self::Over(_) | Self::Forgotten)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Reap,
    Keep,
    Stop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Ends when it is told a status.
    Plain,
    /// The same, and leaves a process behind.
    Leaving,
    /// Ends by its own time limit, at once.
    Brief,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Orphans {
    Stop,
    Adopt,
    Keep,
}

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) name: Option<&'static str>,
    pub(crate) kind: Kind,
    /// What becomes of the job when its owner dies, and whether it lives.
    pub(crate) owner: Option<(Policy, bool)>,
    pub(crate) run: u64,
    /// What it may be in. More than one only where outlive cannot know; one as soon as it has been looked at.
    pub(crate) lives: Vec<Life>,
}

impl Job {
    pub(crate) fn life(&self) -> Life {
        self.lives[0]
    }

    fn ownerless(&self) -> bool {
        self.owner.is_some_and(|(policy, alive)| !alive && policy != Policy::Keep)
    }
}

/// Jobs in the order of their first launch, and which of them a name means.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) jobs: Vec<Job>,
    named: Vec<(&'static str, usize)>,
}

/// The status of a command, and for `reap` what it says it did.
pub(crate) type Said = (i32, Vec<(usize, &'static str)>);

impl Model {
    /// The job that a name means: the one launched last, and if that is forgotten, the newest.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        let there = |at: &usize| self.jobs[*at].life() != Life::Forgotten;
        let last = self.named.iter().rev().find(|(of, _)| *of == name).map(|(_, at)| *at).filter(there);
        last.or_else(|| (0..self.jobs.len()).rev().filter(there).find(|&at| self.jobs[at].name == Some(name)))
    }

    fn name_taken(&self, name: Option<&str>, but: Option<usize>) -> bool {
        let taken = |at: usize| Some(at) != but && !self.jobs[at].life().over();
        name.and_then(|name| self.named(name)).is_some_and(taken)
    }

    pub(crate) fn may_run(&self, name: Option<&str>) -> bool {
        !self.name_taken(name, None)
    }

    pub(crate) fn launched(&mut self, job: Job) {
        let at = self.jobs.len();
        self.named.extend(job.name.map(|name| (name, at)));
        self.jobs.push(job);
    }

    fn become_of(&mut self, at: usize, lives: Vec<Life>) {
        self.jobs[at].lives = lives;
    }

    pub(crate) fn stop(&mut self, at: usize) -> i32 {
        self.become_of(at, self.jobs[at].life().stopped(End::STOPPED));
        0
    }

    pub(crate) fn pause(&mut self, at: usize, pause: bool) -> i32 {
        match self.jobs[at].life() {
            Life::Alive { adopted, .. } => {
                self.become_of(at, vec![Life::Alive { paused: pause, adopted }]);
                0
            }
            _ => 1,
        }
    }

    /// False if it is refused, and then nothing has changed.
    pub(crate) fn restart(&mut self, at: usize) -> bool {
        let job = &self.jobs[at];
        if job.owner.is_some_and(|(_, alive)| !alive) || self.name_taken(job.name, Some(at)) {
            return false;
        }
        self.named.extend(job.name.map(|name| (name, at)));
        let job = &mut self.jobs[at];
        job.run += 1;
        job.lives = vec![if job.kind == Kind::Brief { Life::Over(End::TIMED_OUT) } else { Life::NEW }];
        true
    }

    pub(crate) fn wait_now(&self, at: usize) -> i32 {
        match self.jobs[at].life() {
            Life::Alive { .. } | Life::Orphaned { .. } => 124,
            Life::Lingering { end, .. } | Life::Over(end) => end.code,
            Life::Forgotten => 125,
        }
    }

    pub(crate) fn prune(&mut self, at: usize) -> i32 {
        if !self.jobs[at].life().over() {
            return 1;
        }
        self.become_of(at, vec![Life::Forgotten]);
        0
    }

    pub(crate) fn reap(&mut self, orphans: Orphans) -> Said {
        let (mut code, mut did) = (0, Vec::new());
        for at in 0..self.jobs.len() {
            let (life, ownerless) = (self.jobs[at].life(), self.jobs[at].ownerless());
            let orphan = matches!(life, Life::Orphaned { .. })
                || matches!(life, Life::Lingering { supervised: false, .. });
            let stop_ownerless = ownerless && !matches!(life, Life::Lingering { supervised: false, .. });
            if life.over() || !(orphan || ownerless) {
                continue;
            }
            match (life, orphans) {
                _ if stop_ownerless || orphans == Orphans::Stop => {
                    let lives = life.stopped(End::INTERRUPTED);
                    self.become_of(at, lives);
                    did.push((at, "stopped"));
                }
                (Life::Orphaned { leader: false, .. }, Orphans::Adopt) => code = 1,
                (Life::Orphaned { paused, .. }, Orphans::Adopt) => {
                    self.become_of(at, vec![Life::Alive { paused, adopted: true }]);
                    did.push((at, "adopted"));
                }
                _ => did.push((at, "kept")),
            }
        }
        (code, did)
    }

    /// The leader is gone, by a status of its own or by a signal that somebody sent.
    pub(crate) fn leader_ends(&mut self, at: usize, end: End) {
        let (life, leaves) = (self.jobs[at].life(), self.jobs[at].kind == Kind::Leaving);
        let ended = |end| match leaves {
            true => Life::Lingering { supervised: true, end },
            false => Life::Over(end),
        };
        let lives = match life {
            Life::Alive { adopted: true, .. } => vec![ended(end), ended(End::INTERRUPTED)],
            Life::Alive { .. } => vec![ended(end)],
            Life::Orphaned { leader: true, paused } if leaves => {
                vec![Life::Orphaned { leader: false, paused }]
            }
            Life::Orphaned { leader: true, .. } => vec![Life::Over(End::INTERRUPTED)],
            other => vec![other],
        };
        self.become_of(at, lives);
    }

    pub(crate) fn supervisor_dies(&mut self, at: usize) {
        let life = match self.jobs[at].life() {
            Life::Alive { paused, .. } => Life::Orphaned { paused, leader: true },
            Life::Lingering { end, .. } => Life::Lingering { supervised: false, end },
            other => other,
        };
        self.become_of(at, vec![life]);
    }

    pub(crate) fn owner_dies(&mut self, at: usize) {
        let job = &mut self.jobs[at];
        let Some((policy, alive)) = &mut job.owner else { return };
        *alive = false;
        if *policy == Policy::Stop && job.life().supervised() {
            job.lives = job.life().stopped(End::INTERRUPTED);
        }
    }
}
