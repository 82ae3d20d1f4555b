//! A producer against a scripted broker: input, expected requests and trace.

use super::*;
use crate::client::generator::{Choice, Rate};
use crate::client::testing::{metadata, node_of, Bench, Request};
use crate::guards::Guards;
use crate::record::{BatchView, Identity};
use crate::wire::messages::{Body, LeaderHint, ProducePartAnswer, ProduceResponse};

/// One record per 10 ms tick, in turn over the partitions.
fn config() -> ProducerConfig {
    let load = GeneratorConfig {
        rate: Rate::Total { records: 1, per: Nanos::from_millis(10) },
        choice: Choice::RoundRobin,
        record_bytes: 100,
        keys: 0,
        tombstone_every: 0,
        start: Nanos::ZERO,
        stop: None,
        limit: None,
    };
    ProducerConfig::new(5, vec![node_of(1)], vec!["t".into()], load)
}

fn limited(limit: u64) -> ProducerConfig {
    let mut config = config();
    config.load.limit = Some(limit);
    config
}

fn bench(config: ProducerConfig, leaders: &[(i32, i32)]) -> Bench<Producer> {
    bench_with(Guards::default(), config, leaders)
}

fn bench_with(guards: Guards, config: ProducerConfig, leaders: &[(i32, i32)]) -> Bench<Producer> {
    let mut bench = Bench::with_guards(guards, metadata(leaders), |now, cx| Producer::boot(config, now, cx));
    bench.pass_ms(10);
    bench
}

/// What a produce request carries: partition, producer epoch, base sequence, identity of the first record, records.
fn contents(request: &Request) -> Vec<(u32, i16, i32, u64, i32)> {
    let Body::ProduceRequest(produce) = &request.message.body else { panic!("{request:?}") };
    let of = |part: &ProducePart| {
        let batch = BatchView::parse(&part.batches).unwrap();
        assert!(batch.crc_valid() && batch.size() == part.batches.len());
        let first = batch.records().next().unwrap().unwrap();
        let identity = Identity::verify(first.value.unwrap()).unwrap();
        assert_eq!(identity.producer, 5);
        let (epoch, sequence) = (batch.producer_epoch().0, batch.base_sequence());
        (part.partition.0, epoch, sequence, identity.sequence, batch.record_count())
    };
    produce.parts.iter().map(of).collect()
}

/// Answers all partitions of a request alike.
fn verdict(bench: &mut Bench<Producer>, request: &Request, error: ErrorCode, base: i64, hint: Option<LeaderHint>) {
    let Body::ProduceRequest(produce) = &request.message.body else { panic!("{request:?}") };
    let parts = produce.parts.iter().map(|p| ProducePartAnswer {
        partition: p.partition,
        error,
        base: Offset(base),
        log_start: Offset(0),
        current_leader: hint,
    });
    let answer = ProduceResponse { topic_groups: 1, parts: parts.collect() };
    bench.answer(request, answer);
}

fn sent(partition: u32, first: u64, count: u32) -> Trace {
    Trace::Sent { partition: PartitionIx(partition), producer: 5, first, count }
}
fn acked(partition: u32, first: u64, count: u32, base: i64) -> Trace {
    let base = Offset(base);
    Trace::Acked { partition: PartitionIx(partition), producer: 5, first, count, base, acks: -1 }
}

#[test]
fn records_are_sent_once_acknowledged_once_and_the_producer_comes_to_rest() {
    let mut bench = bench(limited(2), &[(1, 0)]);
    let request = bench.request();
    // Records 0 and 1 are due at 0 and 10 ms.
    assert_eq!((request.node, contents(&request)), (node_of(1), vec![(0, 0, 0, 0, 2)]));
    verdict(&mut bench, &request, ErrorCode::None, 40, None);
    assert_eq!(bench.take_trace(), [sent(0, 0, 2), acked(0, 0, 2, 40)]);
    assert!(bench.process.is_idle(bench.around.now()));
    bench.pass(Nanos::from_secs(600));
    assert_eq!((bench.timers(), bench.requests.len(), bench.metadata_requests), (0, 0, 1));
    let counts = bench.process.counts();
    assert_eq!((counts.sent, counts.acked, counts.nacked, counts.undecided), (2, 2, 0, 0));
    assert_eq!(bench.process.latency().count(), 2);
}

#[test]
fn one_request_per_broker_and_one_batch_per_partition() {
    let mut config = config();
    config.load.rate = Rate::EachPartition { period: Nanos::from_millis(10) };
    let mut bench = bench(config, &[(1, 0), (2, 0), (1, 0)]);
    let (a, b) = (bench.request(), bench.request());
    assert_eq!((a.node, contents(&a)), (node_of(1), vec![(0, 0, 0, 0, 2), (2, 0, 0, 2, 1)]));
    assert_eq!((b.node, contents(&b)), (node_of(2), vec![(1, 0, 0, 3, 1)]));
    // One timer for the ticks, and the one for the first connection that stands behind it.
    assert_eq!(bench.timers(), 2);
    bench.pass_ms(25_000);
    assert!(bench.timers() <= 2);
}

#[test]
fn after_a_leader_change_the_same_sequence_goes_to_the_leader_that_was_hinted_at() {
    let mut bench = bench(limited(1), &[(1, 0)]);
    let request = bench.request();
    let hint = LeaderHint { leader: BrokerId(2), epoch: LeaderEpoch(1), node: Some(node_of(2)) };
    verdict(&mut bench, &request, ErrorCode::NotLeaderOrFollower, -1, Some(hint));
    let again = bench.request();
    assert_eq!((again.node, contents(&again)), (node_of(2), contents(&request)));
    verdict(&mut bench, &again, ErrorCode::None, 3, None);
    assert_eq!(bench.take_trace(), [sent(0, 0, 1), acked(0, 0, 1, 3)]);
}

#[test]
fn without_a_hint_the_metadata_is_asked_for_and_an_older_epoch_in_it_is_not_believed() {
    let mut bench = bench(limited(1), &[(1, 4)]);
    bench.metadata = metadata(&[(3, 3)]);
    let request = bench.request();
    verdict(&mut bench, &request, ErrorCode::NotLeaderOrFollower, -1, None);
    bench.pass_ms(150);
    assert_eq!(bench.request().node, node_of(1));
    assert!(bench.metadata_requests >= 2);
    bench.metadata = metadata(&[(3, 5)]);
    bench.cut(node_of(1));
    bench.pass_ms(1_000);
    assert_eq!(bench.request().node, node_of(3));
}

#[test]
fn a_lost_answer_is_a_retry_with_the_same_sequence_and_a_duplicate_counts_as_acknowledged() {
    let mut bench = bench(limited(1), &[(1, 0)]);
    let request = bench.request();
    bench.cut(node_of(1));
    assert!(bench.requests.is_empty());
    bench.pass_ms(200);
    let again = bench.request();
    assert_eq!(contents(&again), contents(&request));
    verdict(&mut bench, &again, ErrorCode::DuplicateSequenceNumber, -1, None);
    assert_eq!(bench.take_trace(), [sent(0, 0, 1), acked(0, 0, 1, -1)]);
    assert_eq!(bench.process.counts().retries, 1);
}

#[test]
fn a_request_without_an_answer_times_out_and_is_sent_again() {
    let mut bench = bench(limited(1), &[(1, 0)]);
    let request = bench.request();
    bench.pass(Nanos::from_secs(29));
    assert!(bench.requests.is_empty());
    bench.pass(Nanos::from_secs(2));
    assert_eq!(contents(&bench.request()), contents(&request));
}

#[test]
fn when_the_delivery_timeout_is_over_a_sent_batch_is_undecided_whatever_comes_later() {
    let mut bench = bench(limited(1), &[(1, 0)]);
    for _ in 0..3 {
        bench.request();
        bench.pass(Nanos::from_secs(31));
    }
    bench.request();
    bench.pass(Nanos::from_secs(30));
    let told = Trace::Undecided { partition: PartitionIx(0), producer: 5, first: 0, count: 1 };
    assert_eq!(bench.take_trace(), [sent(0, 0, 1), told]);
    bench.pass(Nanos::from_secs(60));
    assert_eq!(bench.process.counts().undecided, 1);
    assert!(bench.process.is_idle(bench.around.now()));
    assert_eq!(bench.timers(), 0);
}

#[test]
fn an_answer_after_the_delivery_timeout_is_not_told_again() {
    let mut config = limited(1);
    config.cluster.channel.request_timeout = Nanos::from_secs(500);
    let mut bench = bench(config, &[(1, 0)]);
    let request = bench.request();
    bench.pass(Nanos::from_secs(121));
    verdict(&mut bench, &request, ErrorCode::None, 0, None);
    assert_eq!(bench.process.counts().undecided, 1);
    assert_eq!(bench.process.counts().acked, 0);
}

#[test]
fn what_was_never_sent_is_refused_not_undecided() {
    let mut bench = bench(limited(1), &[(-1, 0)]);
    bench.pass(Nanos::from_secs(121));
    let told = Trace::Nacked { partition: PartitionIx(0), producer: 5, first: 0, count: 1, error: 7 };
    assert_eq!(bench.take_trace(), [sent(0, 0, 1), told]);
    assert!(bench.process.is_idle(bench.around.now()));
}

#[test]
fn a_refusal_after_a_lost_answer_decides_nothing() {
    let mut bench = bench(limited(1), &[(1, 0)]);
    bench.cut(node_of(1));
    bench.pass_ms(200);
    let again = bench.request();
    verdict(&mut bench, &again, ErrorCode::ReadOnlyTopic, -1, None);
    assert_eq!(bench.process.counts().undecided, 1);
}

/// Sends three batches of one partition, one record each, without an answer.
fn three_in_flight(guards: Guards) -> (Bench<Producer>, [Request; 3]) {
    let mut config = limited(3);
    config.batch_bytes = 1;
    let mut bench = bench_with(guards, config, &[(1, 0)]);
    bench.pass_ms(20);
    let requests = [bench.request(), bench.request(), bench.request()];
    let sequences = requests.each_ref().map(|r| contents(r)[0].2);
    assert_eq!(sequences, [0, 1, 2]);
    (bench, requests)
}

#[test]
fn retries_go_one_by_one_in_the_order_of_their_sequences() {
    let (mut bench, [a, b, c]) = three_in_flight(Guards::default());
    verdict(&mut bench, &a, ErrorCode::NotEnoughReplicas, -1, None);
    verdict(&mut bench, &b, ErrorCode::OutOfOrderSequenceNumber, -1, None);
    verdict(&mut bench, &c, ErrorCode::OutOfOrderSequenceNumber, -1, None);
    bench.pass_ms(500);
    // The first stands for the others: no epoch was raised, and only it is on the wire.
    for expected in [&a, &b, &c] {
        let again = bench.request();
        assert_eq!(contents(&again), contents(expected));
        assert!(bench.requests.is_empty());
        verdict(&mut bench, &again, ErrorCode::None, 0, None);
    }
    let counts = bench.process.counts();
    assert_eq!((counts.bumps, counts.acked, counts.retries), (0, 3, 3));
    assert!(bench.around.guards.was_hit(client::ProducerKeepsOrder));
}

#[test]
fn without_the_guard_a_retry_overtakes_an_earlier_batch() {
    let mut guards = Guards::default();
    guards.set(client::ProducerKeepsOrder, false);
    let (mut bench, [a, b, c]) = three_in_flight(guards);
    for request in [&a, &b, &c] {
        verdict(&mut bench, request, ErrorCode::NotEnoughReplicas, -1, None);
    }
    bench.pass_ms(500);
    assert_eq!(bench.requests.len(), 3);
}

#[test]
fn a_gap_before_the_next_sequence_raises_the_epoch_and_every_partition_starts_at_0() {
    let mut bench = bench(limited(4), &[(1, 0), (2, 0)]);
    // Partition 0 has record 0, partition 1 record 1.
    let (a, b) = (bench.request(), bench.request());
    verdict(&mut bench, &a, ErrorCode::None, 0, None);
    verdict(&mut bench, &b, ErrorCode::None, 0, None);
    bench.pass_ms(10);
    let c = bench.request();
    assert_eq!(contents(&c), [(0, 0, 1, 2, 1)]);
    // The broker lost what it acknowledged.
    verdict(&mut bench, &c, ErrorCode::OutOfOrderSequenceNumber, -1, None);
    bench.pass_ms(200);
    let (d, e) = (bench.request(), bench.request());
    let mut seen = [contents(&d), contents(&e)];
    seen.sort();
    // Partition 0's record again from sequence 0; partition 1, which was idle at the bump, starts at 0 too (T11).
    assert_eq!(seen, [vec![(0, 1, 0, 2, 1)], vec![(1, 1, 0, 3, 1)]]);
    assert_eq!(bench.process.counts().bumps, 1);
    assert!(bench.around.guards.was_hit(client::ProducerResetsAllSequences));
}

#[test]
fn without_the_guard_an_idle_partition_keeps_its_sequence_over_a_bump() {
    let mut guards = Guards::default();
    guards.set(client::ProducerResetsAllSequences, false);
    let mut bench = bench_with(guards, limited(4), &[(1, 0), (2, 0)]);
    let (a, b) = (bench.request(), bench.request());
    verdict(&mut bench, &a, ErrorCode::None, 0, None);
    verdict(&mut bench, &b, ErrorCode::None, 0, None);
    bench.pass_ms(10);
    let c = bench.request();
    verdict(&mut bench, &c, ErrorCode::UnknownProducerId, -1, None);
    bench.pass_ms(200);
    let mut seen = [contents(&bench.request()), contents(&bench.request())];
    seen.sort();
    assert_eq!(seen, [vec![(0, 1, 0, 2, 1)], vec![(1, 1, 1, 3, 1)]]);
}

#[test]
fn a_bump_rewrites_all_open_batches_of_its_partition_in_order() {
    let (mut bench, [a, b, c]) = three_in_flight(Guards::default());
    verdict(&mut bench, &a, ErrorCode::UnknownProducerId, -1, None);
    // These two were rewritten while on the wire: they just go again.
    verdict(&mut bench, &b, ErrorCode::UnknownProducerId, -1, None);
    verdict(&mut bench, &c, ErrorCode::OutOfOrderSequenceNumber, -1, None);
    bench.pass_ms(500);
    for n in 0..3 {
        let again = bench.request();
        assert_eq!(contents(&again), [(0, 1, n, n as u64, 1)]);
        verdict(&mut bench, &again, ErrorCode::None, 0, None);
    }
    assert_eq!((bench.process.counts().bumps, bench.process.counts().acked), (1, 3));
}

#[test]
fn a_batch_keeps_the_epoch_of_its_sequence_when_another_partition_raises_it_again() {
    let mut bench = bench(limited(6), &[(1, 0), (2, 0)]);
    let (a, b) = (bench.request(), bench.request());
    verdict(&mut bench, &a, ErrorCode::None, 0, None);
    verdict(&mut bench, &b, ErrorCode::None, 0, None);
    bench.pass_ms(20);
    let (c, d) = (bench.request(), bench.request());
    assert_eq!((contents(&c), contents(&d)), (vec![(0, 0, 1, 2, 1)], vec![(1, 0, 1, 3, 1)]));
    // Both brokers lost what they acknowledged, and say so one after the other.
    verdict(&mut bench, &c, ErrorCode::OutOfOrderSequenceNumber, -1, None);
    verdict(&mut bench, &d, ErrorCode::OutOfOrderSequenceNumber, -1, None);
    assert_eq!(bench.process.counts().bumps, 2);
    bench.pass_ms(200);
    let (c, d) = (bench.request(), bench.request());
    assert_eq!((contents(&c), contents(&d)), (vec![(0, 1, 0, 2, 1)], vec![(1, 2, 0, 3, 1)]));
    verdict(&mut bench, &c, ErrorCode::None, 0, None);
    bench.pass_ms(10);
    // Sequence 0 again, so it has to be another epoch than that of the batch before: else it looks like its duplicate.
    let new = [contents(&bench.request()), contents(&bench.request())];
    assert_eq!(new, [vec![(1, 2, 1, 4, 1)], vec![(0, 2, 0, 5, 1)]]);
}

#[test]
fn behind_an_undecided_batch_new_ones_wait_and_a_gap_is_closed_by_a_bump() {
    let mut config = config();
    config.load.limit = Some(2);
    config.load.rate = Rate::Total { records: 1, per: Nanos::from_secs(100) };
    config.delivery_timeout = Nanos::from_secs(10);
    config.cluster.channel.request_timeout = Nanos::from_secs(60);
    let mut bench = bench(config, &[(1, 0)]);
    bench.request();
    bench.pass(Nanos::from_secs(105));
    // The first is undecided; nothing else is open, so the producer starts a new epoch at once.
    assert_eq!(bench.process.counts().undecided, 1);
    let next = bench.request();
    assert_eq!(contents(&next), [(0, 1, 0, 1, 1)]);
}

#[test]
fn sequences_wrap_to_0() {
    let mut config = limited(3);
    config.first_sequence = i32::MAX - 1;
    let mut bench = bench(config, &[(1, 0)]);
    let a = bench.request();
    assert_eq!(contents(&a), [(0, 0, i32::MAX - 1, 0, 2)]);
    verdict(&mut bench, &a, ErrorCode::None, 0, None);
    bench.pass_ms(10);
    assert_eq!(contents(&bench.request()), [(0, 0, 0, 2, 1)]);
    assert!(bench.around.guards.was_hit(client::ProducerSequenceWraps));
}

#[test]
fn without_the_guard_a_retry_gets_a_new_sequence() {
    let mut guards = Guards::default();
    guards.set(client::RetryKeepsSequence, false);
    let mut bench = bench_with(guards, limited(1), &[(1, 0)]);
    bench.request();
    bench.cut(node_of(1));
    bench.pass_ms(200);
    assert_eq!(contents(&bench.request()), [(0, 0, 1, 0, 1)]);
}

#[test]
fn a_refused_batch_is_told_and_the_epoch_raised() {
    let mut bench = bench(limited(2), &[(1, 0)]);
    let a = bench.request();
    verdict(&mut bench, &a, ErrorCode::ReadOnlyTopic, -1, None);
    let told = Trace::Nacked { partition: PartitionIx(0), producer: 5, first: 0, count: 2, error: 134 };
    assert_eq!(bench.take_trace(), [sent(0, 0, 2), told]);
    assert_eq!(bench.process.identity().1, ProducerEpoch(1));
}

#[test]
fn with_acks_0_nothing_is_awaited() {
    let mut config = limited(2);
    config.acks = 0;
    let mut bench = bench(config, &[(1, 0)]);
    let request = bench.request();
    let Body::ProduceRequest(produce) = &request.message.body else { panic!("{request:?}") };
    let batch = BatchView::parse(&produce.parts[0].batches).unwrap();
    assert_eq!((batch.producer(), batch.base_sequence()), (ProducerId::NONE, -1));
    let told = Trace::Acked { partition: PartitionIx(0), producer: 5, first: 0, count: 2, base: Offset(-1), acks: 0 };
    assert_eq!(bench.take_trace(), [sent(0, 0, 2), told]);
    assert!(bench.process.is_idle(bench.around.now()));
}

#[test]
fn at_most_five_requests_are_in_flight_and_what_waits_grows_into_one_batch() {
    let mut bench = bench(config(), &[(1, 0)]);
    bench.pass_ms(190);
    assert_eq!(bench.requests.len(), 5);
    let first = bench.request();
    verdict(&mut bench, &first, ErrorCode::None, 0, None);
    let [.., last] = [bench.request(), bench.request(), bench.request(), bench.request(), bench.request()];
    assert_eq!(contents(&last)[0].4, 15);
}

#[test]
fn with_a_full_buffer_due_records_wait_and_come_when_there_is_room() {
    let mut config = config();
    config.buffer_bytes = 1;
    config.batch_bytes = 1;
    let mut bench = bench(config, &[(1, 0)]);
    let a = bench.request();
    bench.pass(Nanos::from_secs(1));
    assert!(bench.requests.is_empty());
    assert_eq!(bench.process.backlog(bench.around.now()), 101);
    verdict(&mut bench, &a, ErrorCode::None, 0, None);
    assert_eq!(contents(&bench.request())[0].3, 1);
}

#[test]
fn keys_name_partition_and_key_number() {
    let mut config = limited(2);
    config.load.keys = 2;
    let mut bench = bench(config, &[(1, 0)]);
    let request = bench.request();
    let Body::ProduceRequest(produce) = &request.message.body else { panic!("{request:?}") };
    let batch = BatchView::parse(&produce.parts[0].batches).unwrap();
    let keys: Vec<_> = batch.records().map(|r| r.unwrap().key.unwrap().to_vec()).collect();
    assert_eq!(keys, [0u64.to_be_bytes(), 1u64.to_be_bytes()]);
}

#[test]
fn a_producer_that_gets_no_id_for_good_refuses_what_waits_and_rests() {
    let guards = Guards::default();
    let mut bench = Bench::with_guards(guards, metadata(&[(-1, 0)]), |now, cx| Producer::boot(config(), now, cx));
    bench.pass_ms(30);
    let refused = ProducePartAnswer {
        partition: PartitionIx(0),
        error: ErrorCode::ClusterAuthorizationFailed,
        base: Offset(-1),
        log_start: Offset(-1),
        current_leader: None,
    };
    bench.metadata = metadata(&[(1, 1)]);
    bench.pass_ms(1_000);
    let request = bench.request();
    bench.answer(&request, ProduceResponse { topic_groups: 1, parts: vec![refused] });
    // Four requests are still on the wire; what waits is refused at once.
    assert_eq!(bench.process.open_records(), 4);
    bench.cut(node_of(1));
    bench.pass(Nanos::from_secs(600));
    let counts = bench.process.counts();
    assert_eq!((counts.sent, counts.acked), (counts.nacked + counts.undecided, 0));
    assert!(bench.process.is_idle(bench.around.now()));
    assert_eq!((bench.timers(), bench.requests.len()), (0, 0));
}
