//! The serving side: sessions, epochs on every read path, divergence, visible ends.

use crate::guards::replication as guard;
use crate::ids::{BrokerEpoch, BrokerId, ConnId, LeaderEpoch, Nanos, Offset};
use crate::replica::fetch_serve::Fetched;
use crate::replica::testing::{batch_at, state, Rig, P0};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    EpochQuestion, FetchPart, FetchRequest, FetchResponse, Isolation, OffsetQuestion, EARLIEST, LATEST,
};

fn request(replica: i32, session: (u32, i32), part: Option<(i64, i32, i32)>) -> FetchRequest {
    FetchRequest {
        replica: BrokerId(replica),
        broker_epoch: BrokerEpoch(101),
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 1 << 20,
        isolation: Isolation::ReadUncommitted,
        session_id: session.0,
        session_epoch: session.1,
        topic_groups: 1,
        parts: part
            .into_iter()
            .map(|(offset, epoch, last)| FetchPart {
                slot: 0,
                partition: P0,
                fetch_offset: Offset(offset),
                current_leader_epoch: LeaderEpoch(epoch),
                last_fetched_epoch: LeaderEpoch(last),
                log_start: Offset::UNKNOWN,
                max_bytes: 1 << 20,
                mirror_leader_epoch: LeaderEpoch::NONE,
                aligned: LeaderEpoch::NONE,
            })
            .collect(),
        forgotten: Vec::new(),
    }
}

fn fetch(rig: &mut Rig, request: &FetchRequest) -> Fetched {
    let now = rig.now;
    rig.nodes[0].with(|r, _, cx| r.fetch(ConnId(77), 1, request, now, cx))
}

fn answered(fetched: Fetched) -> FetchResponse {
    match fetched {
        Fetched::Answer(answer) => *answer,
        Fetched::Parked { .. } => panic!("parked"),
    }
}

fn leader(epoch: i32, isr: &[i32]) -> Rig {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0], &state(0, epoch, 0, &[0, 1], isr));
    rig
}

#[test]
fn a_session_names_only_what_changed() {
    let mut rig = leader(1, &[0, 1]);
    rig.produce(0, 1, 1, 1);
    let first = answered(fetch(&mut rig, &request(1, (0, 0), Some((0, 1, -1)))));
    assert!(first.session_id != 0);
    assert_eq!((first.parts.len(), first.batches.len()), (1, 1));
    let id = first.session_id;
    // The position moved: the watermark follows, nothing new to tell but that: it waits.
    let parked = fetch(&mut rig, &request(1, (id, 1), Some((1, 1, 1))));
    assert!(matches!(parked, Fetched::Parked { timer_at: Some(_), .. }));
    assert_eq!(rig.nodes[0].hw(), 1);
    // Data wakes it; the answer has the watermark too.
    let now = rig.now;
    let batch = crate::replica::testing::batch(1, 2);
    let ticket = crate::replica::waits::Ticket { request: 0, generation: 0, part: 0 };
    rig.nodes[0].with(|r, _, cx| r.produce(P0, &batch, 1, ticket, now, cx));
    let mut ready = Vec::new();
    rig.nodes[0].replicas.take_ready(&mut ready);
    assert_eq!(ready.len(), 1);
    let (parked, answer) = rig.nodes[0].with(|r, _, cx| r.resume(ready[0], now, cx)).unwrap();
    assert_eq!(parked.correlation, 1);
    assert_eq!((answer.parts[0].high_watermark, answer.batches.len()), (Offset(1), 1));
    // An old id, and a wrong epoch.
    assert_eq!(answered(fetch(&mut rig, &request(1, (id, 7), None))).error, ErrorCode::InvalidFetchSessionEpoch);
    assert_eq!(answered(fetch(&mut rig, &request(1, (id + 1, 1), None))).error, ErrorCode::FetchSessionIdNotFound);
}

#[test]
fn a_parked_fetch_ends_when_its_time_is_up() {
    let mut rig = leader(1, &[0, 1]);
    let Fetched::Parked { session, timer_at } = fetch(&mut rig, &request(1, (0, 0), Some((0, 1, -1)))) else {
        panic!("nothing is there: it waits")
    };
    assert_eq!(timer_at, Some(rig.now.mono + Nanos::from_millis(500)));
    rig.now.mono = rig.now.mono + Nanos::from_millis(500);
    let now = rig.now;
    let (_, answer) = rig.nodes[0].with(|r, _, cx| r.resume(session, now, cx)).unwrap();
    assert_eq!(answer.parts.len(), 1, "new in the session");
    // The next one has nothing to say.
    let Fetched::Parked { session, .. } = fetch(&mut rig, &request(1, (answer.session_id, 1), None)) else { panic!() };
    rig.now.mono = rig.now.mono + Nanos::from_millis(500);
    let now = rig.now;
    let (_, answer) = rig.nodes[0].with(|r, _, cx| r.resume(session, now, cx)).unwrap();
    assert!(answer.parts.is_empty());
}

#[test]
fn the_first_batch_is_sent_whatever_its_size_and_the_rest_comes_later() {
    let mut rig = leader(1, &[0]);
    rig.produce(0, 50, 1, 1);
    rig.produce(0, 50, 2, 1);
    let mut small = request(-1, (0, 0), Some((0, 1, -1)));
    small.max_bytes = 10;
    let answer = answered(fetch(&mut rig, &small));
    assert_eq!(answer.batches.len(), 1);
}

/// Found by seed 1276 of swarm/wan: nothing new came, and it was never sent.
#[test]
fn what_did_not_fit_into_an_answer_comes_first_in_the_next_one() {
    let mut rig = leader(1, &[0]);
    rig.produce(0, 50, 1, 1);
    let whole = answered(fetch(&mut rig, &request(-1, (0, -1), Some((0, 1, -1))))).batches[0].len() as u32;
    let mut both = request(-1, (0, 0), Some((0, 1, -1)));
    both.max_bytes = whole + whole / 2;
    let second = FetchPart { slot: 1, ..both.parts[0] };
    both.parts.push(second);
    let first = answered(fetch(&mut rig, &both));
    let told = |answer: &FetchResponse| -> Vec<(u32, u32)> {
        answer.parts.iter().filter(|part| part.batch_count > 0).map(|part| (part.slot, part.batch_count)).collect()
    };
    assert_eq!(told(&first), [(0, 1)]);
    let mut next = request(-1, (first.session_id, 1), Some((50, 1, 1)));
    next.max_bytes = both.max_bytes;
    assert_eq!(told(&answered(fetch(&mut rig, &next))), [(1, 1)]);
}

/// R20: the epoch moved under a cached partition.
#[test]
fn r20_a_cached_partition_is_checked_again_after_a_bump() {
    for on in [true, false] {
        let mut rig = leader(1, &[0]);
        rig.guard(guard::SessionEpochRechecked, on);
        let Fetched::Parked { session, .. } = fetch(&mut rig, &request(-1, (0, 0), Some((0, 1, -1)))) else { panic!() };
        rig.metadata(&[0], &state(0, 2, 1, &[0, 1], &[0]));
        let mut ready = Vec::new();
        rig.nodes[0].replicas.take_ready(&mut ready);
        assert_eq!(ready, [session]);
        let now = rig.now;
        let answer = rig.nodes[0].with(|r, _, cx| r.resume(session, now, cx));
        assert_eq!(answer.is_some_and(|(_, a)| a.parts[0].error == ErrorCode::FencedLeaderEpoch), on);
    }
}

/// R03: delayed metadata at one follower.
#[test]
fn a_partition_is_told_again_after_an_error_though_nothing_moved() {
    let mut rig = leader(1, &[0]);
    rig.produce(0, 1, 1, 1);
    let id = answered(fetch(&mut rig, &request(-1, (0, 0), Some((0, 1, -1))))).session_id;
    rig.metadata(&[0], &state(0, 2, 1, &[0, 1], &[0]));
    let fenced = answered(fetch(&mut rig, &request(-1, (id, 1), None)));
    assert_eq!(fenced.parts[0].error, ErrorCode::FencedLeaderEpoch);
    let Fetched::Parked { session, .. } = fetch(&mut rig, &request(-1, (id, 2), Some((1, 2, 1)))) else {
        panic!("no data: it waits")
    };
    rig.now.mono = rig.now.mono + Nanos::from_millis(500);
    let now = rig.now;
    let (_, answer) = rig.nodes[0].with(|r, _, cx| r.resume(session, now, cx)).unwrap();
    let told: Vec<_> = answer.parts.iter().map(|part| (part.error, part.batch_count)).collect();
    assert_eq!(told, [(ErrorCode::None, 0)], "the reader knows now that its new epoch is right");
}

#[test]
fn r03_a_fetch_of_another_epoch_moves_nothing() {
    for on in [true, false] {
        let mut rig = leader(2, &[0, 1]);
        rig.guard(guard::FollowerFetchInCurrentEpoch, on);
        rig.produce(0, 1, 1, 1);
        let fetched = fetch(&mut rig, &request(1, (0, 0), Some((1, 1, 2))));
        assert_eq!(rig.nodes[0].hw() == 0, on);
        if on {
            assert_eq!(answered(fetched).parts[0].error, ErrorCode::FencedLeaderEpoch);
        }
    }
}

/// R11
#[test]
fn r11_a_diverging_fetch_moves_no_position() {
    for on in [true, false] {
        let mut rig = Rig::new(2, 1);
        rig.guard(guard::PositionAfterDivergenceCheck, on);
        rig.metadata(&[0], &state(-1, 1, 0, &[0, 1], &[0, 1]));
        rig.plant(0, &[batch_at(0, 1, 1, 1)]);
        rig.metadata(&[0], &state(0, 3, 1, &[0, 1], &[0, 1]));
        rig.produce(0, 1, 1, 1);
        let answer = answered(fetch(&mut rig, &request(1, (0, 0), Some((5, 3, 2)))));
        let end = answer.parts[0].diverging.unwrap();
        assert_eq!((end.epoch, end.end), (LeaderEpoch(1), Offset(1)));
        assert_eq!(rig.nodes[0].hw() == 0, on);
    }
}

/// LEAD-22: epoch absent, current, lower, higher, on every read path, at leader and follower.
#[test]
fn lead_22_epoch_checks_on_every_read_path() {
    check_every_read_path(Rig::new(2, 1));
}

/// LEAD-22, extension: a mirror leader checks against its own leader epoch, not against those of its batches.
#[test]
fn lead_22_a_mirror_leader_checks_its_local_epoch() {
    let mut rig = Rig::new(2, 1);
    rig.policy(|policy| {
        policy.mirrored = true;
        policy.read_only = true;
    });
    rig.metadata(&[0, 1], &state(0, 4, 0, &[0, 1], &[0]));
    let (now, copied) = (rig.now, [batch_at(0, 1, 2, 1)]);
    rig.nodes[0].with(|r, _, cx| r.append_mirrored(now, P0, &copied, cx)).unwrap();
    check_every_read_path(rig);
}

/// Leader 0 and follower 1 in epoch 5.
fn check_every_read_path(mut rig: Rig) {
    rig.metadata(&[0, 1], &state(0, 5, 1, &[0, 1], &[0]));
    let cases = [
        (-1, ErrorCode::None),
        (5, ErrorCode::None),
        (4, ErrorCode::FencedLeaderEpoch),
        (6, ErrorCode::UnknownLeaderEpoch),
    ];
    for (epoch, expected) in cases {
        for at in [0, 1] {
            let follower = if expected.is_none() { ErrorCode::NotLeaderOrFollower } else { expected };
            let expected = if at == 0 { expected } else { follower };
            let now = rig.now;
            let current_leader_epoch = LeaderEpoch(epoch);
            let question = EpochQuestion { partition: P0, current_leader_epoch, epoch: LeaderEpoch(5) };
            let answer = rig.nodes[at].with(|r, _, _| r.epoch_end(&question));
            assert_eq!(answer.error, expected, "epoch end, {epoch} at {at}");
            for timestamp in [LATEST, EARLIEST, 5] {
                let question = OffsetQuestion { partition: P0, current_leader_epoch, timestamp };
                let isolation = Isolation::ReadUncommitted;
                let answer =
                    rig.nodes[at].with(|r, _, cx| r.list_offset(BrokerId::NONE, isolation, &question, now, cx));
                assert_eq!(answer.error, expected, "offset by {timestamp}, {epoch} at {at}");
            }
            let fetch = rig.consume(at, 0, epoch);
            assert_eq!(fetch.parts[0].error, expected, "fetch, {epoch} at {at}");
        }
    }
}

/// LEAD-12
#[test]
fn lead_12_epoch_ends_over_restarts() {
    let mut rig = Rig::new(2, 1);
    for (epoch, tag) in [(0, 1), (2, 2), (4, 3)] {
        rig.metadata(&[0], &state(0, epoch, epoch, &[0], &[0]));
        rig.produce(0, 1, tag, 1);
    }
    for (epoch, expected) in [(0, (0, 1)), (1, (0, 1)), (2, (2, 2)), (4, (4, 3)), (5, (-1, -1))] {
        let question =
            EpochQuestion { partition: P0, current_leader_epoch: LeaderEpoch::NONE, epoch: LeaderEpoch(epoch) };
        let answer = rig.nodes[0].with(|r, _, _| r.epoch_end(&question));
        assert_eq!((answer.end.epoch.0, answer.end.end.0), expected, "{epoch}");
    }
    // Who does not lead does not answer.
    rig.metadata(&[1], &state(0, 4, 4, &[0, 1], &[0]));
    let question = EpochQuestion { partition: P0, current_leader_epoch: LeaderEpoch::NONE, epoch: LeaderEpoch(0) };
    let answer = rig.nodes[1].with(|r, _, _| r.epoch_end(&question));
    assert_eq!((answer.error, answer.end.end), (ErrorCode::NotLeaderOrFollower, Offset::UNKNOWN));
}

/// LEAD-12: what a leader appends after a bounce carries its new epoch.
#[test]
fn lead_12_batches_carry_the_epoch_they_were_written_in() {
    let mut rig = Rig::new(2, 1);
    for (epoch, tag) in [(0, 1), (1, 2)] {
        rig.metadata(&[0, 1], &state(epoch, epoch, epoch, &[0, 1], &[0, 1]));
        rig.settle();
        rig.produce(epoch as usize, 1, tag, 1);
        rig.settle();
    }
    for node in &rig.nodes {
        assert_eq!(crate::replica::testing::epochs_of(&node.bytes()), [0, 1]);
    }
}

/// R22
#[test]
fn r22_an_undefined_epoch_has_an_undefined_end() {
    let mut rig = leader(1, &[0]);
    rig.produce(0, 1, 1, 1);
    let question = EpochQuestion { partition: P0, current_leader_epoch: LeaderEpoch::NONE, epoch: LeaderEpoch::NONE };
    let answer = rig.nodes[0].with(|r, _, _| r.epoch_end(&question));
    assert_eq!(answer.end.end, Offset::UNKNOWN);
}

/// R24, KIP-207
#[test]
fn r24_no_end_before_the_watermark_reached_the_epoch_start() {
    for on in [true, false] {
        let mut rig = Rig::new(2, 1);
        rig.guard(guard::EndKnownAfterEpochStart, on);
        rig.metadata(&[0], &state(1, 0, 0, &[0, 1], &[0, 1]));
        rig.plant(0, &[batch_at(0, 3, 0, 1)]);
        rig.metadata(&[0], &state(0, 1, 1, &[0, 1], &[0, 1]));
        let now = rig.now;
        let question = OffsetQuestion { partition: P0, current_leader_epoch: LeaderEpoch::NONE, timestamp: LATEST };
        let ask = |rig: &mut Rig, replica| {
            let isolation = Isolation::ReadUncommitted;
            rig.nodes[0].with(|r, _, cx| r.list_offset(BrokerId(replica), isolation, &question, now, cx))
        };
        assert_eq!(ask(&mut rig, -1).error == ErrorCode::OffsetNotAvailable, on);
        // A follower asks for the log end, which is known.
        assert_eq!(ask(&mut rig, 1).offset, Offset(3));
        assert!(matches!(fetch(&mut rig, &request(1, (0, 0), Some((3, 1, 0)))), Fetched::Parked { .. }));
        assert_eq!(ask(&mut rig, -1).offset, Offset(3));
    }
}

/// Consumers see only what is committed.
#[test]
fn consumers_read_below_the_watermark() {
    for on in [true, false] {
        let mut rig = leader(1, &[0, 1]);
        rig.guard(guard::ReadBelowWatermark, on);
        rig.produce(0, 1, 1, 1);
        let answer = rig.consume(0, 0, 1);
        assert_eq!(answer.batches.is_empty(), on);
    }
}

/// A mirror leader that was cut below its followers' epoch tells them where its log ends.
#[test]
fn a_follower_ahead_of_a_cut_mirror_leader_is_told_to_cut() {
    let mut rig = Rig::new(2, 1);
    rig.policy(|policy| {
        policy.mirrored = true;
        policy.read_only = true;
    });
    rig.metadata(&[0, 1], &state(0, 20, 0, &[0, 1], &[0, 1]));
    rig.settle();
    let now = rig.now;
    let batches = [batch_at(0, 1, 5, 1), batch_at(1, 1, 7, 2)];
    rig.nodes[0].with(|r, _, cx| r.append_mirrored(now, P0, &batches, cx)).unwrap();
    rig.settle_leader(0);
    rig.settle();
    rig.advance(500);
    assert_eq!(rig.nodes[1].end(), 2);
    rig.nodes[0].with(|r, _, cx| {
        r.truncate_mirror_leader(now, P0, Offset(1), crate::trace::CutCause::Alignment, cx).unwrap();
        r.start_barrier(now, P0, true, cx)
    });
    assert!(rig.nodes[0].replicas.take_converged().is_empty());
    rig.settle_leader(0);
    rig.settle();
    assert_eq!((rig.nodes[0].end(), rig.nodes[1].end()), (1, 1));
    assert_eq!(rig.nodes[0].replicas.take_converged(), [P0]);
    assert_eq!(rig.nodes[0].epochs(), rig.nodes[1].epochs());
}

/// A broker with room for two sessions; opens one and returns its id.
fn crowded() -> Rig {
    let mut rig = leader(1, &[0, 1]);
    rig.nodes[0].replicas.limit_sessions(2);
    rig
}

fn open(rig: &mut Rig, replica: i32) -> u32 {
    let wanted = FetchRequest { max_wait_ms: 0, ..request(replica, (0, 0), Some((0, 1, -1))) };
    answered(fetch(rig, &wanted)).session_id
}

fn sessions(rig: &Rig) -> Vec<i32> {
    let mut readers: Vec<i32> = rig.nodes[0].replicas.sessions().iter().map(|s| s.replica.0).collect();
    readers.sort_unstable();
    readers
}

/// Readers that vanish without a word (their connection stays half-open) do not fill the broker for ever.
#[test]
fn a_session_that_was_not_used_for_two_minutes_gives_way() {
    let mut rig = crowded();
    let (old, other) = (open(&mut rig, -1), open(&mut rig, -1));
    assert!(old != 0 && other != 0);
    // Both are young: a third reader is served, but without a session.
    rig.advance(119_000);
    assert_eq!(open(&mut rig, -1), 0);
    assert_eq!(sessions(&rig), [-1, -1]);
    let again = FetchRequest { max_wait_ms: 0, ..request(-1, (other, 1), None) };
    assert_eq!(answered(fetch(&mut rig, &again)).error, ErrorCode::None);
    rig.advance(2_000);
    assert_ne!(open(&mut rig, -1), 0);
    let gone = FetchRequest { max_wait_ms: 0, ..request(-1, (old, 1), None) };
    assert_eq!(answered(fetch(&mut rig, &gone)).error, ErrorCode::FetchSessionIdNotFound);
}

#[test]
fn a_follower_takes_a_consumers_place_and_not_the_other_way_round() {
    let mut rig = crowded();
    open(&mut rig, -1);
    open(&mut rig, -1);
    assert_ne!(open(&mut rig, 1), 0);
    assert_ne!(open(&mut rig, 1), 0);
    assert_eq!(sessions(&rig), [1, 1]);
    rig.advance(119_000);
    assert_eq!(open(&mut rig, -1), 0);
    assert_eq!(sessions(&rig), [1, 1]);
}

/// What waits in a session that gives way is answered all the same.
#[test]
fn a_waiting_request_outlives_its_session() {
    let mut rig = crowded();
    open(&mut rig, 1);
    let session = open(&mut rig, -1);
    let Fetched::Parked { session: at, .. } = fetch(&mut rig, &request(-1, (session, 1), None)) else { panic!() };
    assert_ne!(open(&mut rig, 1), 0);
    let late = crate::ids::Now { mono: rig.now.mono + Nanos::from_secs(1), ..rig.now };
    let (_, answer) = rig.nodes[0].with(|r, _, cx| r.resume(at, late, cx)).expect("its time is up");
    assert_eq!((answer.error, answer.session_id), (ErrorCode::None, 0));
    assert_eq!(sessions(&rig), [1, 1]);
}
