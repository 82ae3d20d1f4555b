//! The fetching side alone: what it makes of answers.

use crate::guards::replication as guard;
use crate::ids::{LeaderEpoch, Nanos, Offset, PartitionIx};
use crate::replica::replica_fetcher::FetchState;
use crate::replica::testing::{batch_at, state, Delivery, Rig, P0};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{Body, EpochEnd, FetchPartAnswer, FetchResponse, Message};
use bytes::Bytes;

/// A follower (1) of broker 0 in this epoch, over a log of these batches.
fn follower(epoch: i32, planted: &[Bytes]) -> Rig {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[1], &state(-1, 0, 0, &[0, 1], &[0]));
    if !planted.is_empty() {
        rig.plant(1, planted);
    }
    rig.metadata(&[1], &state(0, epoch, 1, &[0, 1], &[0]));
    rig
}

fn part(rig: &Rig) -> FetchPartAnswer {
    let request = last_fetch(rig);
    FetchPartAnswer {
        slot: request.parts[0].slot,
        partition: P0,
        error: ErrorCode::None,
        high_watermark: Offset(0),
        last_stable: Offset(0),
        log_start: Offset(0),
        diverging: None,
        current_leader: None,
        mirror_leader_epoch: LeaderEpoch::NONE,
        misaligned: false,
        first_batch: 0,
        batch_count: 0,
        aborted: None,
    }
}

fn last_fetch(rig: &Rig) -> &crate::wire::messages::FetchRequest {
    match &rig.wire.back().expect("a request is on the wire").message.body {
        Body::FetchRequest(request) => request,
        other => panic!("{other:?}"),
    }
}

/// Answers the request on the wire; the next one then is there.
fn answer(rig: &mut Rig, mut part: FetchPartAnswer, batches: Vec<Bytes>) {
    let request = rig.wire.pop_back().unwrap();
    part.batch_count = batches.len() as u32;
    let body = FetchResponse { session_id: 9, parts: vec![part], batches, ..FetchResponse::default() }.into();
    let message = Message { correlation: request.message.correlation, body };
    rig.deliver(Delivery { from: 0, to: 1, conn: request.conn, message });
}

fn diverging(epoch: i32, end: i64) -> Option<EpochEnd> {
    Some(EpochEnd { epoch: LeaderEpoch(epoch), end: Offset(end) })
}

/// LEAD-17
#[test]
fn lead_17_cuts_to_the_smaller_end() {
    // Single-record batches: a log is cut at batch borders.
    let singles: Vec<Bytes> = (0..200)
        .map(|at| {
            let epoch = if at < 119 {
                2
            } else if at < 129 {
                3
            } else if at < 172 {
                4
            } else {
                5
            };
            batch_at(at, 1, epoch, at as u8)
        })
        .collect();
    for (end, to) in [((4, 140), 140), ((4, 141), 141), ((3, 130), 129), ((2, 120), 119)] {
        let mut rig = follower(6, &singles);
        let entry = FetchPartAnswer { diverging: diverging(end.0, end.1), ..part(&rig) };
        answer(&mut rig, entry, Vec::new());
        assert_eq!(rig.nodes[1].end(), to, "{end:?}");
        assert_eq!(rig.nodes[1].slot().state, FetchState::Fetching);
        assert_eq!(rig.nodes[1].cuts(), [(200, to)]);
    }
}

/// LEAD-18
#[test]
fn lead_18_nothing_else_of_a_diverging_answer_is_taken() {
    let log: Vec<Bytes> = (0..5).map(|at| batch_at(at, 1, if at < 3 { 1 } else { 2 }, at as u8)).collect();
    let mut rig = follower(3, &log);
    rig.nodes[1].with(|replicas, _, cx| {
        let slot = replicas.slot(P0).unwrap();
        replicas.follow_watermark(slot, Offset(1), cx);
    });
    let entry = FetchPartAnswer { diverging: diverging(1, 3), high_watermark: Offset(4), ..part(&rig) };
    answer(&mut rig, entry, vec![batch_at(5, 1, 3, 9)]);
    assert_eq!((rig.nodes[1].end(), rig.nodes[1].hw()), (3, 1));
    assert_eq!(rig.nodes[1].cuts(), [(5, 3)]);
    let entry = FetchPartAnswer { high_watermark: Offset(4), ..part(&rig) };
    answer(&mut rig, entry, vec![batch_at(3, 1, 3, 8), batch_at(4, 1, 3, 9)]);
    assert_eq!((rig.nodes[1].end(), rig.nodes[1].hw()), (5, 4));
    assert_eq!(rig.nodes[1].cuts().len(), 1);
}

/// LEAD-20, a log without epochs
#[test]
fn lead_20_a_log_that_knows_no_epoch_starts_at_its_watermark() {
    let rig = follower(1, &[]);
    assert_eq!(last_fetch(&rig).parts[0].fetch_offset, Offset(0));
    assert_eq!(last_fetch(&rig).parts[0].last_fetched_epoch, LeaderEpoch::NONE);
    assert!(rig.nodes[1].cuts().is_empty());
}

/// LEAD-20, a leader that cannot be asked for epochs because the log has none: one cut, to the watermark.
#[test]
fn lead_20_a_log_without_epochs_is_cut_to_its_watermark() {
    let log: Vec<Bytes> = (0..3).map(|at| batch_at(at, 1, -1, at as u8)).collect();
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[1], &state(-1, 0, 0, &[0, 1], &[0]));
    rig.plant(1, &log);
    rig.nodes[1].with(|replicas, _, cx| {
        let slot = replicas.slot(P0).unwrap();
        replicas.follow_watermark(slot, Offset(2), cx);
    });
    rig.metadata(&[1], &state(0, 1, 1, &[0, 1], &[0]));
    assert_eq!(last_fetch(&rig).parts[0].fetch_offset, Offset(2));
    assert_eq!((rig.nodes[1].end(), rig.nodes[1].hw(), rig.nodes[1].cuts()), (2, 2, vec![(3, 2)]));
}

/// LEAD-20, the partition is taken from the fetcher while it asks: an answer that tells it to cut comes too late.
#[test]
fn lead_20_an_answer_to_a_fetcher_that_let_go_cuts_nothing() {
    let mut rig = follower(1, &[batch_at(0, 1, 1, 1), batch_at(1, 1, 1, 2)]);
    let entry = FetchPartAnswer { diverging: diverging(1, 1), ..part(&rig) };
    rig.metadata(&[1], &state(-1, 2, 2, &[0, 1], &[0]));
    answer(&mut rig, entry, Vec::new());
    assert_eq!(rig.nodes[1].end(), 2);
    assert!(rig.nodes[1].cuts().is_empty());
}

/// REP-15
#[test]
fn rep_15_bad_partitions_wait_alone() {
    let mut rig = Rig::new(2, 1);
    rig.nodes[1].fetchers.config.backoff = Nanos::from_millis(250);
    for partition in 0..3 {
        rig.metadata_of(PartitionIx(partition), &[1], &state(0, 1, 1, &[0, 1], &[0]));
    }
    // The first request named what was there; let it come back empty so that all three are listed.
    while rig.wire.len() > 1 {
        rig.wire.pop_front();
    }
    let empty = FetchResponse { session_id: 9, ..FetchResponse::default() };
    let request = rig.wire.pop_back().unwrap();
    let message = Message { correlation: request.message.correlation, body: empty.into() };
    rig.deliver(Delivery { from: 0, to: 1, conn: request.conn, message });
    let base = part(&rig);
    let slot = |p: u32| rig.nodes[1].fetchers.slot_of(&rig.nodes[1].replicas, PartitionIx(p)).copied().unwrap();
    let number = |p: u32| {
        let fetcher = &rig.nodes[1].fetchers.fetchers()[0];
        fetcher.slots.iter().position(|s| s.partition == PartitionIx(p)).unwrap() as u32
    };
    assert_eq!(slot(2).state, FetchState::Fetching);
    let entry = |p: u32, error, count| FetchPartAnswer {
        slot: number(p),
        partition: PartitionIx(p),
        error,
        batch_count: count,
        ..base.clone()
    };
    let parts = vec![
        entry(0, ErrorCode::UnknownLeaderEpoch, 0),
        entry(1, ErrorCode::NotLeaderOrFollower, 0),
        entry(2, ErrorCode::None, 1),
    ];
    let body = FetchResponse { session_id: 9, parts, batches: vec![batch_at(0, 2, 1, 1)], ..FetchResponse::default() };
    let request = rig.wire.pop_back().unwrap();
    let message = Message { correlation: request.message.correlation, body: body.into() };
    rig.deliver(Delivery { from: 0, to: 1, conn: request.conn, message });
    assert_eq!(rig.nodes[1].replicas.log(PartitionIx(2)).unwrap().end(), Offset(2));
    let next = last_fetch(&rig);
    assert_eq!(next.parts.iter().map(|p| p.partition.0).collect::<Vec<_>>(), [2]);
    assert_eq!(next.forgotten.len(), 2);
    let delayed =
        |rig: &Rig| rig.nodes[1].fetchers.fetchers()[0].slots().filter(|s| s.state == FetchState::Delayed).count();
    assert_eq!(delayed(&rig), 2);
    // Third pass: nothing before the end of the backoff, then the two are asked for again. The request that is out stays without
    // an answer meanwhile.
    rig.wire.clear();
    rig.advance(249);
    assert_eq!(delayed(&rig), 2);
    rig.advance(1);
    assert_eq!(delayed(&rig), 0);
}

/// REP-17
#[test]
fn rep_17_a_fenced_partition_waits_for_metadata() {
    let mut rig = follower(1, &[]);
    let entry = FetchPartAnswer { error: ErrorCode::FencedLeaderEpoch, ..part(&rig) };
    answer(&mut rig, entry, Vec::new());
    assert_eq!(rig.nodes[1].slot().state, FetchState::Failed);
    rig.advance(5_000);
    assert_eq!(rig.nodes[1].slot().state, FetchState::Failed, "time alone does not bring it back");
    rig.metadata(&[1], &state(0, 2, 2, &[0, 1], &[0]));
    assert_eq!(rig.nodes[1].slot().state, FetchState::Fetching);
    assert_eq!(rig.nodes[1].slot().leader_epoch, LeaderEpoch(2));
}

/// REP-18
#[test]
fn rep_18_a_leader_that_is_behind_is_asked_again() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0], &state(0, 0, 0, &[0, 1], &[0]));
    rig.produce(0, 2, 1, 1);
    rig.metadata(&[1], &state(0, 1, 1, &[0, 1], &[0]));
    rig.settle();
    assert_eq!(rig.nodes[1].slot().state, FetchState::Delayed);
    assert!(rig.nodes[1].cuts().is_empty());
    rig.metadata(&[0], &state(0, 1, 1, &[0, 1], &[0]));
    rig.advance(1000);
    assert_eq!(rig.nodes[1].slot().state, FetchState::Fetching);
    assert_eq!(rig.nodes[1].end(), 2);
}

/// R15: the same leader, one epoch later.
#[test]
fn r15_a_diverging_answer_of_an_older_epoch_is_not_obeyed() {
    for on in [true, false] {
        let mut rig = follower(1, &[batch_at(0, 1, 1, 1), batch_at(1, 1, 1, 2)]);
        rig.guard(guard::FetchEpochMatches, on);
        let entry = FetchPartAnswer { diverging: diverging(1, 1), ..part(&rig) };
        rig.metadata(&[1], &state(0, 2, 2, &[0, 1], &[0]));
        answer(&mut rig, entry, Vec::new());
        assert_eq!(rig.nodes[1].end() == 2, on);
    }
}

/// R16
#[test]
fn r16_an_answer_for_another_offset_is_not_taken() {
    let mut rig = follower(1, &[]);
    let entry = part(&rig);
    // The follower's log is cut by hand while the request is under way: it stands elsewhere now.
    rig.nodes[1].with(|replicas, fetchers, _| {
        let at = replicas.slot(P0).unwrap();
        let slot = replicas.hot[at].fetch_slot;
        fetchers.list[0].slots[slot as usize].fetch_offset = Offset(5);
    });
    answer(&mut rig, entry, vec![batch_at(0, 1, 1, 1)]);
    assert_eq!(rig.nodes[1].end(), 0);
    assert!(rig.nodes[1].guards.was_hit(guard::FetchOffsetMatches));
}

/// R17
#[test]
fn r17_an_empty_answer_keeps_the_last_fetched_epoch() {
    for on in [true, false] {
        let mut rig = follower(1, &[batch_at(0, 1, 1, 1)]);
        rig.guard(guard::LastFetchedEpochKept, on);
        let entry = part(&rig);
        answer(&mut rig, entry, Vec::new());
        assert_eq!(rig.nodes[1].slot().last_fetched_epoch == LeaderEpoch(1), on);
    }
}

/// R08
#[test]
fn r08_the_same_leader_in_a_new_epoch_is_compared_again() {
    let log = [batch_at(0, 1, 1, 1), batch_at(1, 1, 1, 2)];
    let mut rig = follower(1, &log);
    rig.metadata(&[1], &state(0, 3, 2, &[0, 1], &[0]));
    let slot = rig.nodes[1].slot();
    assert_eq!(
        (slot.leader_epoch, slot.last_fetched_epoch, slot.fetch_offset),
        (LeaderEpoch(3), LeaderEpoch(1), Offset(2))
    );
    assert!(slot.queued);
}

/// R14, spec 3.8: under a plain leader the leader epoch bounds batches; under a mirror leader what it told (M03).
#[test]
fn r14_m03_batches_above_the_bound_are_left() {
    let mut rig = follower(1, &[]);
    let entry = part(&rig);
    answer(&mut rig, entry, vec![batch_at(0, 1, 1, 1), batch_at(1, 1, 2, 2)]);
    assert_eq!(rig.nodes[1].end(), 1);
}

#[test]
fn m03_a_follower_of_a_mirror_leader_takes_source_epochs() {
    for on in [true, false] {
        let mut rig = Rig::new(2, 1);
        rig.guard(guard::MirrorEpochBound, on);
        rig.policy(|policy| {
            policy.mirrored = true;
            policy.read_only = true;
        });
        rig.metadata(&[0], &state(0, 1, 0, &[0, 1], &[0, 1]));
        assert!(rig.nodes[0].epochs().is_empty(), "a mirror leader keeps its own epoch out of the log");
        // The mirror fetcher makes sure that the local epoch is above; here the follower's bound itself is under test.
        rig.plant(0, &[batch_at(0, 1, 10, 1)]);
        rig.metadata(&[1], &state(0, 1, 0, &[0, 1], &[0, 1]));
        // The mutant asks for the same batch for ever: some steps are enough.
        for _ in 0..30 {
            rig.step();
        }
        assert_eq!(rig.nodes[1].end() == 1, on);
    }
}
