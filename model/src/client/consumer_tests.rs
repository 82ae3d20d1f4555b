//! A consumer against a scripted broker: input, expected requests and trace.

use super::*;
use crate::client::read_hash::ReadHash;
use crate::client::testing::{metadata, node_of, Bench, Request};
use crate::guards::Guards;
use crate::record::{stamp, BatchBuilder, BatchMeta};
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    Body, EpochAnswer, EpochEnd, EpochQuestion, FetchPart, FetchPartAnswer, FetchRequest, FetchResponse, LeaderHint,
    ListOffsetsResponse, OffsetAnswer, OffsetCommitRequest, OffsetCommitResponse, OffsetFetchResponse,
    OffsetForLeaderEpochResponse,
};
use bytes::{Bytes, BytesMut};

fn config() -> ConsumerConfig {
    ConsumerConfig::new(9, vec![node_of(1)], &["t".into()])
}

fn bench(config: ConsumerConfig, leaders: &[(i32, i32)]) -> Bench<Consumer> {
    bench_with(Guards::default(), config, leaders)
}

fn bench_with(guards: Guards, config: ConsumerConfig, leaders: &[(i32, i32)]) -> Bench<Consumer> {
    Bench::with_guards(guards, metadata(leaders), |now, cx| Consumer::boot(config, now, cx))
}

fn batch(base: i64, count: u32, epoch: i32) -> Bytes {
    let mut builder = BatchBuilder::new(BatchMeta::default());
    for n in 0..count {
        builder.push(0, None, Some(&n.to_be_bytes()));
    }
    let mut bytes = BytesMut::from(&builder.finish()[..]);
    stamp(&mut bytes, Offset(base), LeaderEpoch(epoch));
    bytes.freeze()
}

fn hash(batches: &[&Bytes]) -> u64 {
    let mut hash = ReadHash::default();
    batches.iter().for_each(|b| hash.bytes(b));
    hash.finish()
}

fn fetch(request: &Request) -> &FetchRequest {
    match &request.message.body {
        Body::FetchRequest(fetch) => fetch,
        other => panic!("{other:?}"),
    }
}

/// Session id and epoch, then slot, partition, offset, leader epoch of each part, then what is forgotten.
type Asks = (u32, i32, Vec<(u32, u32, i64, i32)>, Vec<u32>);
fn asks(request: &Request) -> Asks {
    let f = fetch(request);
    let part = |p: &FetchPart| (p.slot, p.partition.0, p.fetch_offset.0, p.current_leader_epoch.0);
    (f.session_id, f.session_epoch, f.parts.iter().map(part).collect(), f.forgotten.clone())
}

fn part(slot: u32, partition: u32, error: ErrorCode) -> FetchPartAnswer {
    FetchPartAnswer {
        slot,
        partition: PartitionIx(partition),
        error,
        high_watermark: Offset(100),
        last_stable: Offset(100),
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

fn data(session_id: u32, slot: u32, partition: u32, batches: &[Bytes]) -> FetchResponse {
    let mut part = part(slot, partition, ErrorCode::None);
    part.batch_count = batches.len() as u32;
    FetchResponse {
        session_id,
        topic_groups: 1,
        parts: vec![part],
        batches: batches.to_vec(),
        ..FetchResponse::default()
    }
}

fn failing(session_id: u32, part: FetchPartAnswer) -> FetchResponse {
    FetchResponse { session_id, topic_groups: 1, parts: vec![part], ..FetchResponse::default() }
}

/// Answers the ListOffsets that starts a consumer, alike for all its partitions.
fn offsets(bench: &mut Bench<Consumer>, offset: i64, epoch: i32) -> i64 {
    let request = bench.request();
    let Body::ListOffsetsRequest(list) = &request.message.body else { panic!("{request:?}") };
    let timestamp = list.parts[0].timestamp;
    let parts = list.parts.iter().map(|q| OffsetAnswer {
        partition: q.partition,
        error: ErrorCode::None,
        timestamp: -1,
        offset: Offset(offset),
        leader_epoch: LeaderEpoch(epoch),
    });
    let answer = ListOffsetsResponse { parts: parts.collect() };
    bench.answer(&request, answer);
    timestamp
}

fn epoch_end(bench: &mut Bench<Consumer>, request: &Request, epoch: i32, end: i64) {
    let end = EpochEnd { epoch: LeaderEpoch(epoch), end: Offset(end) };
    let answer = EpochAnswer { partition: PartitionIx(0), error: ErrorCode::None, end };
    bench.answer(request, OffsetForLeaderEpochResponse { parts: vec![answer] });
}

fn read(base: i64, next: i64, hash: u64) -> Trace {
    Trace::Read { partition: PartitionIx(0), consumer: 9, base: Offset(base), next: Offset(next), hash }
}
fn moved(from: i64, to: i64) -> Trace {
    Trace::PositionReset { partition: PartitionIx(0), consumer: 9, from: Offset(from), to: Offset(to) }
}

/// The next question for the end of an epoch; other requests before it are dropped.
fn question(bench: &mut Bench<Consumer>) -> Request {
    loop {
        let request = bench.request();
        if matches!(request.message.body, Body::OffsetForLeaderEpochRequest(_)) {
            return request;
        }
    }
}

/// Nothing new for a fetch.
fn idle(bench: &mut Bench<Consumer>, fetch: &Request) {
    bench.answer(fetch, FetchResponse { session_id: 50, ..FetchResponse::default() });
}

/// The metadata says otherwise from now on, and the consumer asks for it.
fn refresh(bench: &mut Bench<Consumer>, leaders: &[(i32, i32)]) {
    bench.metadata = metadata(leaders);
    bench.act(|c, _, cx| {
        c.cluster.want_refresh();
        c.door.wake(cx);
    });
    bench.pass_ms(150);
}

/// A consumer that read 0..10 of epoch 4 from broker 1 and has its next fetch out. It is connected to broker 3 too.
fn reading(guards: Guards, config: ConsumerConfig) -> (Bench<Consumer>, Request) {
    let mut bench = bench_with(guards, config, &[(1, 4)]);
    assert_eq!(offsets(&mut bench, 0, 4), EARLIEST);
    let request = bench.request();
    bench.answer(&request, data(50, 0, 0, &[batch(0, 10, 4)]));
    bench.take_trace();
    bench.act(|c, now, cx| {
        c.cluster.channels.ensure(now, node_of(3), cx);
    });
    let next = bench.request();
    assert_eq!(asks(&next), (50, 1, vec![(0, 0, 10, 4)], vec![]));
    (bench, next)
}

#[test]
fn it_starts_at_the_reset_policy_and_reads_in_an_incremental_session() {
    let mut bench = bench(config(), &[(1, 4)]);
    offsets(&mut bench, 5, 4);
    let request = bench.request();
    assert_eq!(asks(&request), (0, 0, vec![(0, 0, 5, 4)], vec![]));
    let (a, b) = (batch(5, 2, 4), batch(7, 1, 4));
    bench.answer(&request, data(50, 0, 0, &[a.clone(), b.clone()]));
    assert_eq!(bench.take_trace(), [moved(-1, 5), read(5, 8, hash(&[&a, &b]))]);
    let next = bench.request();
    assert_eq!(asks(&next), (50, 1, vec![(0, 0, 8, 4)], vec![]));
    // Nothing new: nothing is told again.
    bench.answer(&next, FetchResponse { session_id: 50, ..FetchResponse::default() });
    assert_eq!(asks(&bench.request()), (50, 2, vec![], vec![]));
    assert_eq!((bench.process.counts().read, bench.process.positions()[0].end), (3, Offset(100)));
}

#[test]
fn each_broker_has_its_own_session() {
    let mut bench = bench(config(), &[(1, 0), (2, 0), (1, 0)]);
    offsets(&mut bench, 0, 0);
    offsets(&mut bench, 0, 0);
    let (a, b) = (bench.request(), bench.request());
    assert_eq!((a.node, asks(&a).2), (node_of(1), vec![(0, 0, 0, 0), (1, 2, 0, 0)]));
    assert_eq!((b.node, asks(&b).2), (node_of(2), vec![(0, 1, 0, 0)]));
}

#[test]
fn after_a_leader_change_the_position_is_validated_and_a_truncation_found() {
    let (mut bench, fetching) = reading(Guards::default(), config());
    let hint = LeaderHint { leader: BrokerId(2), epoch: LeaderEpoch(5), node: Some(node_of(2)) };
    let mut refused = part(0, 0, ErrorCode::NotLeaderOrFollower);
    refused.current_leader = Some(hint);
    bench.answer(&fetching, failing(50, refused));
    let question = bench.request();
    let Body::OffsetForLeaderEpochRequest(ask) = &question.message.body else { panic!("{question:?}") };
    let expected =
        EpochQuestion { partition: PartitionIx(0), current_leader_epoch: LeaderEpoch(5), epoch: LeaderEpoch(4) };
    assert_eq!((question.node, ask.replica, &ask.parts[..]), (node_of(2), BrokerId(-1), &[expected][..]));
    // Nothing is fetched before the answer.
    assert!(bench.requests.is_empty());
    epoch_end(&mut bench, &question, 4, 7);
    assert_eq!(bench.take_trace(), [moved(10, 7)]);
    let again = bench.request();
    assert_eq!((again.node, asks(&again)), (node_of(2), (0, 0, vec![(0, 0, 7, 5)], vec![])));
    assert_eq!(bench.process.counts().truncations, 1);
}

#[test]
fn a_position_within_its_epoch_is_good_and_read_on_from() {
    let (mut bench, fetching) = reading(Guards::default(), config());
    bench.metadata = metadata(&[(2, 5)]);
    bench.answer(&fetching, failing(50, part(0, 0, ErrorCode::FencedLeaderEpoch)));
    bench.pass_ms(150);
    let question = question(&mut bench);
    epoch_end(&mut bench, &question, 4, 12);
    assert_eq!(asks(&bench.request()).2, [(0, 0, 10, 5)]);
    assert!(bench.take_trace().is_empty());
}

#[test]
fn an_epoch_that_the_leader_does_not_know_means_reset() {
    let (mut bench, _) = reading(Guards::default(), config());
    bench.metadata = metadata(&[(2, 5)]);
    bench.cut(node_of(1));
    bench.pass_ms(300);
    let question = question(&mut bench);
    epoch_end(&mut bench, &question, -1, -1);
    assert_eq!(offsets(&mut bench, 2, 5), EARLIEST);
    assert_eq!(bench.take_trace(), [moved(10, 2)]);
}

#[test]
fn without_the_guard_reading_goes_on_unchecked() {
    let mut guards = Guards::default();
    guards.set(client::ConsumerValidatesEpoch, false);
    let (mut bench, _) = reading(guards, config());
    bench.metadata = metadata(&[(2, 5)]);
    bench.cut(node_of(1));
    bench.pass_ms(300);
    let last = bench.requests.pop_back().unwrap();
    assert_eq!((last.node, asks(&last).2), (node_of(2), vec![(0, 0, 10, 5)]));
    assert!(bench.around.guards.was_hit(client::ConsumerValidatesEpoch));
}

#[test]
fn without_a_reset_policy_a_truncation_ends_the_partition() {
    let (mut bench, _) = {
        let mut config = config();
        config.reset = Reset::None;
        config.group = Some("g".into());
        config.resume = true;
        let mut bench = bench(config, &[(1, 4)]);
        let request = bench.request();
        let parts = vec![(PartitionIx(0), Offset(10), LeaderEpoch(3))];
        bench.answer(&request, OffsetFetchResponse { error: ErrorCode::None, parts });
        (bench, ())
    };
    // A committed position is validated before it is used.
    let question = bench.request();
    epoch_end(&mut bench, &question, 3, 7);
    assert!(bench.requests.is_empty());
    assert_eq!(bench.process.given_up().collect::<Vec<_>>(), [PartitionIx(0)]);
}

#[test]
fn an_answer_from_before_a_jump_is_ignored() {
    let (mut bench, fetching) = reading(Guards::default(), config());
    // While the fetch is out the epoch changes; its answer comes before the one to the question behind it.
    refresh(&mut bench, &[(1, 5)]);
    let question = question(&mut bench);
    epoch_end(&mut bench, &question, 4, 7);
    assert!(bench.take_trace().is_empty());
    bench.answer(&fetching, data(50, 0, 0, &[batch(10, 5, 4)]));
    assert_eq!(bench.take_trace(), [moved(10, 7)]);
    // The old place is forgotten, the position told anew.
    assert_eq!(asks(&bench.request()), (50, 2, vec![(1, 0, 7, 5)], vec![0]));
}

#[test]
fn session_errors_open_another_session_with_all_partitions() {
    for (error, id) in [(ErrorCode::FetchSessionIdNotFound, 0), (ErrorCode::InvalidFetchSessionEpoch, 50)] {
        let (mut bench, fetching) = reading(Guards::default(), config());
        bench.answer(&fetching, FetchResponse { error, ..FetchResponse::default() });
        assert_eq!(asks(&bench.request()), (id, 0, vec![(0, 0, 10, 4)], vec![]));
        assert_eq!(bench.process.counts().session_errors, 1);
    }
}

#[test]
fn out_of_range_asks_the_reset_policy() {
    let mut config = config();
    config.reset = Reset::Latest;
    let mut bench = bench(config, &[(1, 4)]);
    assert_eq!(offsets(&mut bench, 3, 4), LATEST);
    let request = bench.request();
    bench.answer(&request, failing(50, part(0, 0, ErrorCode::OffsetOutOfRange)));
    // Session and reset go on side by side; the partition is out of the session meanwhile.
    assert_eq!(offsets(&mut bench, 30, 4), LATEST);
    let told = |end| Trace::ToldEnd { partition: PartitionIx(0), client: 9, end: Offset(end) };
    assert_eq!(bench.take_trace(), [told(3), moved(-1, 3), told(30), moved(3, 30)]);
    assert_eq!(asks(&bench.request()), (50, 1, vec![(1, 0, 30, 4)], vec![0]));
}

#[test]
fn a_wrong_crc_is_not_delivered_and_asked_for_again_after_a_rest() {
    let (mut bench, fetching) = reading(Guards::default(), config());
    let mut bad = BytesMut::from(&batch(10, 1, 4)[..]);
    let last = bad.len() - 1;
    bad[last] ^= 1;
    bench.answer(&fetching, data(50, 0, 0, &[bad.freeze()]));
    assert!(bench.requests.is_empty());
    assert_eq!(bench.take_trace(), [Trace::CorruptFound { partition: PartitionIx(0), at: Offset(10) }]);
    bench.pass_ms(150);
    assert_eq!(asks(&bench.request()).2, [(1, 0, 10, 4)]);
    assert_eq!(bench.process.counts().corrupt, 1);
}

#[test]
fn positions_are_committed_periodically_and_a_broker_that_is_no_coordinator_is_left() {
    let mut config = config();
    config.group = Some("g".into());
    config.commit_interval = Some(Nanos::from_secs(5));
    let (mut bench, fetching) = reading(Guards::default(), config);
    bench.pass_ms(5_000);
    let commit = bench.request();
    idle(&mut bench, &fetching);
    bench.request();
    let expected = OffsetCommitRequest { group: "g".into(), parts: vec![(PartitionIx(0), Offset(10), LeaderEpoch(4))] };
    assert_eq!((commit.node, &commit.message.body), (node_of(1), &expected.clone().into()));
    bench.answer(&commit, OffsetCommitResponse { parts: vec![(PartitionIx(0), ErrorCode::NotCoordinator)] });
    bench.pass_ms(5_000);
    let again = bench.request();
    assert_eq!((again.node, &again.message.body), (node_of(2), &expected.into()));
    bench.answer(&again, OffsetCommitResponse { parts: vec![(PartitionIx(0), ErrorCode::None)] });
    // Nothing moved: nothing to commit.
    bench.pass_ms(10_000);
    assert!(bench.requests.is_empty());
    assert_eq!(bench.process.counts().commits, 1);
}

#[test]
fn ends_are_told_only_in_the_leadership_they_were_asked_in() {
    let mut config = config();
    config.list_ends_interval = Some(Nanos::from_secs(1));
    let (mut bench, fetching) = reading(Guards::default(), config);
    idle(&mut bench, &fetching);
    let fetching = bench.request();
    bench.pass_ms(1_000);
    idle(&mut bench, &fetching);
    assert_eq!(offsets(&mut bench, 33, 4), LATEST);
    assert_eq!(bench.take_trace(), [Trace::ToldEnd { partition: PartitionIx(0), client: 9, end: Offset(33) }]);
    let fetching = bench.request();
    bench.pass_ms(1_000);
    let late = bench.request();
    idle(&mut bench, &fetching);
    refresh(&mut bench, &[(2, 5)]);
    let answer = OffsetAnswer {
        partition: PartitionIx(0),
        error: ErrorCode::None,
        timestamp: -1,
        offset: Offset(31),
        leader_epoch: LeaderEpoch(4),
    };
    bench.answer(&late, ListOffsetsResponse { parts: vec![answer] });
    assert!(bench.take_trace().is_empty());
}

#[test]
fn a_partition_without_a_leader_is_looked_for_until_it_has_one() {
    let mut bench = bench(config(), &[(-1, 4)]);
    bench.pass_ms(3_000);
    let asked = bench.metadata_requests;
    assert!((3..12).contains(&asked), "{asked} refreshes in 3 s");
    bench.metadata = metadata(&[(1, 5)]);
    bench.pass_ms(1_100);
    offsets(&mut bench, 0, 5);
}

#[test]
fn before_its_start_and_after_its_stop_it_asks_nothing() {
    let mut config = config();
    config.start = Nanos::from_secs(1);
    config.stop = Some(Nanos::from_secs(2));
    let mut bench = bench(config, &[(1, 4)]);
    assert!(bench.conns.is_empty());
    bench.pass_ms(1_000);
    offsets(&mut bench, 0, 4);
    let request = bench.request();
    bench.pass_ms(1_000);
    bench.answer(&request, data(50, 0, 0, &[batch(0, 1, 4)]));
    assert!(bench.requests.is_empty());
    bench.pass(Nanos::from_secs(600));
    assert_eq!((bench.timers(), bench.requests.len()), (0, 0));
}
