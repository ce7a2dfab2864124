//! What can be done to the program, and what can happen to it: the steps of a random sequence.

use proptest::prelude::*;

use crate::model::{Kind, Orphans, Policy};

pub(crate) const NAMES: [&str; 2] = ["web", "db"];

/// A job, by its place among all that were launched, and whether it is called by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) job: usize,
    pub(crate) by_name: bool,
}

/// A command that can be given to the program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Run { name: Option<usize>, owner: Option<Policy>, kind: Kind },
    Stop(Who),
    Pause(Who),
    Resume(Who),
    Restart(Who),
    Reap(Orphans),
    WaitNow(Who),
    Show(Who),
    Prune(Option<Who>),
}

/// What happens to the processes of a job, counted as in [`Who`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Exit(i32),
    KillLeader,
    KillSupervisor,
    KillBoth,
    /// Both, and the leader's number becomes somebody else's.
    Recycle,
    KillOwner,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Give(Order),
    /// The command is killed after a moment of this length, and given again.
    Break(Order, u32),
    Suffer(Fault, usize),
}

fn who() -> impl Strategy<Value = Who> {
    (0..6_usize, any::<bool>()).prop_map(|(job, by_name)| Who { job, by_name })
}

fn order() -> impl Strategy<Value = Order> {
    let policy = prop_oneof![Just(Policy::Reap), Just(Policy::Keep), Just(Policy::Stop)];
    let kind = prop_oneof![4 => Just(Kind::Plain), 2 => Just(Kind::Leaving), 1 => Just(Kind::Brief)];
    let orphans = prop_oneof![Just(Orphans::Stop), Just(Orphans::Adopt), Just(Orphans::Keep)];
    let run = (prop::option::of(0..NAMES.len()), prop::option::weighted(0.3, policy), kind);
    prop_oneof![
        4 => run.prop_map(|(name, owner, kind)| Order::Run { name, owner, kind }),
        2 => who().prop_map(Order::Stop),
        1 => who().prop_map(Order::Pause),
        1 => who().prop_map(Order::Resume),
        3 => who().prop_map(Order::Restart),
        2 => orphans.prop_map(Order::Reap),
        1 => who().prop_map(Order::WaitNow),
        1 => who().prop_map(Order::Show),
        1 => prop::option::of(who()).prop_map(Order::Prune),
    ]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let fault = prop_oneof![
        2 => prop::sample::select(vec![0, 1, 7]).prop_map(Fault::Exit),
        1 => Just(Fault::KillLeader),
        3 => Just(Fault::KillSupervisor),
        1 => Just(Fault::KillBoth),
        1 => Just(Fault::Recycle),
        1 => Just(Fault::KillOwner),
    ];
    prop_oneof![
        6 => order().prop_map(Step::Give),
        2 => (order(), 0..120_000_u32).prop_map(|(order, moment)| Step::Break(order, moment)),
        3 => (fault, 0..6_usize).prop_map(|(fault, job)| Step::Suffer(fault, job)),
    ]
}
