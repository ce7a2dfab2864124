use super::*;
use crate::bytes::Bytes;
use crate::job::ProcessId;
use proptest::prelude::*;

fn place() -> Place {
    Place { boot_id: "boot".into(), pid_ns: 1, time_ns: 2, host: "host".into(), machine_id: "machine".into() }
}

fn launch() -> Launch {
    Launch {
        id: "a1b2c3d".into(),
        run: 1,
        at: String::new(),
        boottime_ms: 0,
        name: None,
        argv: ["server", "--port", "80"].iter().map(Bytes::from).collect(),
        cwd: (&"/").into(),
        umask: 0,
        labels: Default::default(),
        stdin: Default::default(),
        output: (&"/o").into(),
        output_offset: 0,
        stderr: None,
        owner: None,
        on_owner_exit: Default::default(),
        timeout_ms: None,
        stop_signal: 15,
        grace_ms: 0,
        options: Default::default(),
        identity: Identity {
            pid: 70,
            pgid: 70,
            sid: 70,
            start_time: 900,
            pidfd_inode: Some(33),
            place: place(),
        },
        supervisor: ProcessId { pid: 69, start_time: 899 },
        adopted: false,
    }
}

fn outcome(state: End) -> Outcome {
    Outcome::bare(state, None, String::new())
}

fn argv(words: &[&str]) -> Option<Vec<Vec<u8>>> {
    Some(words.iter().map(|word| word.as_bytes().to_vec()).collect())
}

/// The process that was recorded, with its every proof.
fn ours() -> Sighting {
    Sighting {
        start_time: 900,
        pgid: 70,
        sid: 70,
        argv: argv(&["server", "--port", "80"]),
        marked: Some(true),
        pidfd_inode: Some(33),
        ..Sighting::default()
    }
}

fn evidence(supervised: bool, leader: Leader) -> Evidence {
    Evidence {
        here: place(),
        shared_fs: false,
        supervised,
        outcome: None,
        executed: true,
        leader,
        members: 0,
        unproven: 0,
    }
}

#[track_caller]
fn expect(evidence: &Evidence, state: State, identity: Verdict, cause: Option<Cause>) {
    let is = judge(&launch(), evidence);
    assert_eq!((is.state, is.identity, is.cause), (state, identity, cause), "{}", is.why);
}

#[test]
fn supervised() {
    let held = |leader| evidence(true, leader);
    expect(&held(Leader::Alive(ours())), State::Running, Verdict::Owned, None);
    expect(&held(Leader::Alive(Sighting { stopped: true, ..ours() })), State::Paused, Verdict::Owned, None);
    expect(&held(Leader::Alive(Sighting { at_gate: true, ..ours() })), State::Starting, Verdict::Owned, None);
    let other = Sighting { start_time: 901, ..ours() };
    expect(&held(Leader::Alive(other)), State::Unknown, Verdict::Unverified, Some(Cause::Contradictory));
    expect(&held(Leader::Hidden), State::Unknown, Verdict::Unverified, Some(Cause::Hidden));
    expect(&held(Leader::Gone), State::Unknown, Verdict::Gone, Some(Cause::ExitNotRecorded));
}

#[test]
fn supervised_from_elsewhere() {
    let held = |here| Evidence { here, ..evidence(true, Leader::Gone) };
    expect(&held(Place { pid_ns: 9, ..place() }), State::Running, Verdict::Unverified, None);
    expect(&held(Place { time_ns: 9, ..place() }), State::Running, Verdict::Unverified, None);
    expect(
        &held(Place { boot_id: "b".into(), ..place() }),
        State::Unknown,
        Verdict::Unverified,
        Some(Cause::OtherHost),
    );
}

#[test]
fn orphaned_by_one_more_proof() {
    let bare = Sighting { argv: argv(&["renamed"]), marked: Some(false), pidfd_inode: None, ..ours() };
    let proofs = [
        Sighting { pidfd_inode: Some(33), ..bare.clone() },
        Sighting { marked: Some(true), ..bare.clone() },
        Sighting { argv: argv(&["server", "--port", "80"]), ..bare.clone() },
        Sighting { argv: argv(&["sh", "wrapper", "server", "--port", "80"]), ..bare.clone() },
        Sighting { argv: argv(&["--port", "80"]), ..bare.clone() },
    ];
    for proof in proofs {
        expect(
            &evidence(false, Leader::Alive(proof)),
            State::Orphaned,
            Verdict::Owned,
            Some(Cause::SupervisorLost),
        );
    }
    for words in
        [&["renamed"][..], &["server", "--port 80"], &["server --port 80"], &["server", "--port", "8"], &[]]
    {
        let seen = Sighting { argv: argv(words), ..bare.clone() };
        expect(
            &evidence(false, Leader::Alive(seen)),
            State::Unknown,
            Verdict::Unverified,
            Some(Cause::Unproven),
        );
    }
    let unreadable = Sighting { argv: None, marked: None, ..bare };
    expect(
        &evidence(false, Leader::Alive(unreadable)),
        State::Unknown,
        Verdict::Unverified,
        Some(Cause::Unproven),
    );
}

#[test]
fn recycled_is_never_ours() {
    let strangers = [
        Sighting { start_time: 901, ..ours() },
        Sighting { start_time: 899, ..ours() },
        Sighting { pgid: 71, ..ours() },
        Sighting { sid: 71, ..ours() },
        Sighting { pidfd_inode: Some(34), ..ours() },
    ];
    for stranger in strangers {
        expect(
            &evidence(false, Leader::Alive(stranger)),
            State::Interrupted,
            Verdict::Recycled,
            Some(Cause::SupervisorLost),
        );
    }
}

#[test]
fn gone() {
    let gone = || evidence(false, Leader::Gone);
    expect(&gone(), State::Interrupted, Verdict::Gone, Some(Cause::SupervisorLost));
    expect(
        &Evidence { executed: false, ..gone() },
        State::Interrupted,
        Verdict::Gone,
        Some(Cause::LostAtLaunch),
    );
    expect(&Evidence { members: 1, ..gone() }, State::Orphaned, Verdict::Owned, Some(Cause::SupervisorLost));
    expect(&Evidence { unproven: 1, ..gone() }, State::Unknown, Verdict::Unverified, Some(Cause::Unproven));
    expect(&evidence(false, Leader::Hidden), State::Unknown, Verdict::Unverified, Some(Cause::Hidden));
}

#[test]
fn another_boot_host_or_namespace() {
    let lost = |here, shared_fs| Evidence { here, shared_fs, ..evidence(false, Leader::Alive(ours())) };
    let rebooted = Place { boot_id: "b".into(), ..place() };
    expect(&lost(rebooted.clone(), false), State::Interrupted, Verdict::Stale, Some(Cause::Reboot));
    expect(&lost(rebooted.clone(), true), State::Interrupted, Verdict::Stale, Some(Cause::Reboot));
    let other_host = Place { host: "h".into(), ..rebooted.clone() };
    expect(&lost(other_host.clone(), true), State::Unknown, Verdict::Unverified, Some(Cause::OtherHost));
    expect(&lost(other_host, false), State::Interrupted, Verdict::Stale, Some(Cause::Reboot));
    let other_machine = Place { machine_id: "m".into(), ..rebooted };
    expect(&lost(other_machine, true), State::Unknown, Verdict::Unverified, Some(Cause::OtherHost));
    expect(
        &lost(Place { pid_ns: 9, ..place() }, false),
        State::Interrupted,
        Verdict::Stale,
        Some(Cause::NamespaceEnded),
    );
    expect(
        &lost(Place { time_ns: 9, ..place() }, false),
        State::Unknown,
        Verdict::Unverified,
        Some(Cause::OtherTimeNamespace),
    );
}

/// A build for another system names boots in another way: that it is another name says nothing.
#[test]
fn a_boot_of_another_kind_is_no_reboot() {
    let here = Place { boot_id: "init-1795990737".into(), ..place() };
    for supervised in [false, true] {
        let seen = Evidence { here: here.clone(), ..evidence(supervised, Leader::Alive(ours())) };
        expect(&seen, State::Unknown, Verdict::Unverified, Some(Cause::OtherHost));
    }
    let ended = Evidence { here, outcome: Some(outcome(End::Exited)), ..evidence(false, Leader::Gone) };
    expect(&ended, State::Exited, Verdict::Unverified, None);
}

#[test]
fn a_missing_machine_id_equals_nothing() {
    let mut recorded = launch();
    recorded.identity.place.machine_id = String::new();
    let here = Place { boot_id: "b".into(), machine_id: String::new(), ..place() };
    let judgement = judge(&recorded, &Evidence { here, shared_fs: true, ..evidence(false, Leader::Gone) });
    assert_eq!(judgement.state, State::Unknown);
}

#[test]
fn an_outcome_counts_before_anything_else() {
    let ended =
        |state, supervised| Evidence { outcome: Some(outcome(state)), ..evidence(supervised, Leader::Gone) };
    for (end, state) in [
        (End::Exited, State::Exited),
        (End::Stopped, State::Stopped),
        (End::Failed, State::Failed),
        (End::Interrupted, State::Interrupted),
    ] {
        expect(&ended(end, true), state, Verdict::Gone, None);
        expect(&ended(end, false), state, Verdict::Gone, None);
        expect(&Evidence { members: 1, ..ended(end, false) }, State::Lingering, Verdict::Owned, None);
        let mut left = ended(end, true);
        left.outcome.as_mut().unwrap().lingering = true;
        expect(&left, State::Lingering, Verdict::Owned, None);
    }
    let recycled =
        Evidence { leader: Leader::Alive(Sighting { start_time: 5, ..ours() }), ..ended(End::Exited, false) };
    expect(&recycled, State::Exited, Verdict::Recycled, None);
}

prop_compose! {
    fn any_place()(boot in 0..2, pid_ns in 1..3_u64, time_ns in 2..4_u64, host in 0..2, machine in 0..3_usize) -> Place {
        Place {
            boot_id: if boot == 0 { "boot".into() } else { "b".into() },
            pid_ns,
            time_ns,
            host: if host == 0 { "host".into() } else { "h".into() },
            machine_id: ["machine", "m", ""][machine].into(),
        }
    }
}

fn any_leader() -> impl Strategy<Value = Leader> {
    let words = prop_oneof![
        Just(None),
        Just(argv(&["server", "--port", "80"])),
        Just(argv(&["80"])),
        Just(argv(&["x"])),
        Just(argv(&[]))
    ];
    let sighting = (
        899..902_u64,
        70..72,
        70..72,
        any::<(bool, bool)>(),
        words,
        any::<Option<bool>>(),
        proptest::option::of(33..35_u64),
    );
    prop_oneof![
        Just(Leader::Gone),
        Just(Leader::Hidden),
        sighting.prop_map(|(start_time, pgid, sid, (stopped, at_gate), argv, marked, pidfd_inode)| {
            Leader::Alive(Sighting { start_time, pgid, sid, stopped, at_gate, argv, marked, pidfd_inode })
        })
    ]
}

fn any_evidence() -> impl Strategy<Value = Evidence> {
    let end = prop_oneof![Just(End::Exited), Just(End::Stopped), Just(End::Failed), Just(End::Interrupted)];
    let outcome = proptest::option::of(end.prop_map(outcome));
    (any_place(), any::<(bool, bool, bool)>(), outcome, any_leader(), 0..2_usize, 0..2_usize).prop_map(
        |(here, (shared_fs, supervised, executed), outcome, leader, members, unproven)| Evidence {
            here,
            shared_fs,
            supervised,
            outcome,
            executed,
            leader,
            members,
            unproven,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_may_be_signalled_is_proven(evidence in any_evidence()) {
        let is = judge(&launch(), &evidence);
        if !is.may_signal() || evidence.members > 0 {
            return Ok(());
        }
        let Leader::Alive(seen) = &evidence.leader else { panic!("signalled, but not seen: {is:?}") };
        prop_assert_eq!((seen.start_time, seen.sid), (900, 70));
        prop_assert_eq!(&evidence.here.boot_id, "boot");
        prop_assert_eq!((evidence.here.pid_ns, evidence.here.time_ns), (1, 2));
        prop_assert!(is.supervised || matches!(compare(&launch(), seen), Match::Proven(_)));
    }

    #[test]
    fn a_recorded_exit_is_never_forgotten(evidence in any_evidence()) {
        let is = judge(&launch(), &evidence);
        if let Some(outcome) = &evidence.outcome {
            prop_assert!(is.state == State::from(outcome.state) || is.state == State::Lingering);
        } else {
            prop_assert!(!matches!(is.state, State::Exited | State::Stopped | State::Failed), "an end that nobody recorded: {is:?}");
        }
    }

    #[test]
    fn after_a_reboot_every_state_is_final(evidence in any_evidence()) {
        let here = Place { boot_id: "b".into(), ..place() };
        let after = Evidence { here, supervised: false, members: 0, unproven: 0, ..evidence };
        prop_assert!(judge(&launch(), &after).state.is_final());
    }

    #[test]
    fn unknown_and_unproven_are_never_signalled(evidence in any_evidence()) {
        let is = judge(&launch(), &evidence);
        if is.state == State::Unknown || is.identity != Verdict::Owned || is.state.is_final() {
            prop_assert!(!is.may_signal());
        }
    }
}
