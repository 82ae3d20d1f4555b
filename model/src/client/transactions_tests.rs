//! A transactional producer against scripted brokers: broker 1 leads everything, broker 2 coordinates.

use super::*;
use crate::client::generator::{Choice, GeneratorConfig, Rate};
use crate::client::producer::ProducerConfig;
use crate::client::testing::{metadata, node_of, Bench, Request};
use crate::guards::Guards;
use crate::ids::Offset;
use crate::record::BatchView;
use crate::wire::messages::{EndTxnResponse, FoundCoordinator, ProducePartAnswer, ProduceResponse};

/// One record per 10 ms tick, in turn over two partitions; three records in a transaction.
fn config(abort_ppb: u32) -> ProducerConfig {
    let load = GeneratorConfig {
        rate: Rate::Total { records: 1, per: Nanos::from_millis(10) },
        choice: Choice::RoundRobin,
        record_bytes: 100,
        keys: 0,
        tombstone_every: 0,
        start: Nanos::ZERO,
        stop: None,
        limit: Some(3),
    };
    let mut config = ProducerConfig::new(5, vec![node_of(1)], vec!["t".into()], load);
    config.transactions = Some(TransactionConfig {
        id: "pay".into(),
        timeout: Nanos::from_secs(60),
        records: 3,
        duration: None,
        abort_ppb,
    });
    config
}

struct Play {
    bench: Bench<Producer>,
}

impl Play {
    /// With a producer id (71, epoch 0: the bench gives it).
    fn new(guards: Guards, config: ProducerConfig) -> Self {
        let boot = |now: Now, cx: &mut Cx| Producer::boot(config, now, cx);
        let mut play = Self { bench: Bench::with_guards(guards, metadata(&[(1, 0), (1, 0)]), boot) };
        play.bench.pass_ms(1);
        play.coordinate(ErrorCode::None);
        play.bench.pass_ms(1);
        play
    }
    fn coordinate(&mut self, error: ErrorCode) {
        let asked = self.next("FindCoordinatorRequest");
        let good = error.is_none();
        let found = FoundCoordinator {
            key: "pay".into(),
            error,
            broker: BrokerId(if good { 2 } else { -1 }),
            node: good.then(|| node_of(2)),
        };
        self.bench.answer(&asked, FindCoordinatorResponse { coordinators: vec![found] });
    }
    /// The next request of a kind; time passes until it comes.
    fn next(&mut self, name: &str) -> Request {
        for _ in 0..500 {
            if let Some(at) = self.bench.requests.iter().position(|r| r.message.body.name() == name) {
                return self.bench.requests.remove(at).expect("it is there");
            }
            self.bench.pass_ms(1);
        }
        let names: Vec<_> = self.bench.requests.iter().map(|r| r.message.body.name()).collect();
        panic!("no {name} among {names:?}");
    }
    fn added(&mut self, error: ErrorCode) -> Vec<u32> {
        let asked = self.next("AddPartitionsToTxnRequest");
        assert_eq!(asked.node, node_of(2));
        let Body::AddPartitionsToTxnRequest(request) = &asked.message.body else { panic!() };
        let parts = request.parts.clone();
        let answer = AddPartitionsToTxnResponse { parts: parts.iter().map(|p| (*p, error)).collect() };
        self.bench.answer(&asked, answer);
        parts.iter().map(|p| p.0).collect()
    }
    fn produced(&mut self, error: ErrorCode) {
        let asked = self.next("ProduceRequest");
        let Body::ProduceRequest(request) = &asked.message.body else { panic!() };
        assert_eq!(request.transactional_id.as_deref(), Some("pay"));
        let part = |p: &crate::wire::messages::ProducePart| {
            assert!(BatchView::parse(&p.batches).unwrap().is_transactional());
            ProducePartAnswer {
                partition: p.partition,
                error,
                base: Offset(0),
                log_start: Offset(0),
                current_leader: None,
            }
        };
        let parts = request.parts.iter().map(part).collect();
        self.bench.answer(&asked, ProduceResponse { topic_groups: 1, parts });
    }
    fn ended(&mut self, error: ErrorCode) -> bool {
        let asked = self.next("EndTxnRequest");
        let Body::EndTxnRequest(request) = &asked.message.body else { panic!() };
        let commit = request.commit;
        self.bench.answer(&asked, EndTxnResponse { error, ..EndTxnResponse::default() });
        commit
    }
    /// All three records of the transaction are added, sent and acknowledged.
    fn written(&mut self) {
        assert_eq!(self.added(ErrorCode::None), [0]);
        self.produced(ErrorCode::None);
        assert_eq!(self.added(ErrorCode::None), [1]);
        self.produced(ErrorCode::None);
        self.produced(ErrorCode::None);
    }
    fn told(&mut self) -> Vec<(u64, u64, TxnOutcome)> {
        let trace = self.bench.take_trace();
        let of = |t: &Trace| match *t {
            Trace::TxnEnded { producer: 5, first, next, outcome } => Some((first, next, outcome)),
            _ => None,
        };
        trace.iter().filter_map(of).collect()
    }
    fn idle(&self) -> bool {
        self.bench.process.is_idle(self.bench.around.now())
    }
}

#[test]
fn a_transaction_is_added_written_and_ended() {
    for (abort_ppb, outcome) in [(0, TxnOutcome::Committed), (1_000_000_000, TxnOutcome::Aborted)] {
        let mut play = Play::new(Guards::default(), config(abort_ppb));
        play.written();
        assert_eq!(play.told(), []);
        assert_eq!(play.ended(ErrorCode::None), abort_ppb == 0);
        assert_eq!(play.told(), [(0, 3, outcome)]);
        assert!(play.idle());
    }
}

#[test]
fn the_coordinator_is_looked_for_again_where_it_moved_or_does_not_answer() {
    let mut play = Play::new(Guards::default(), config(0));
    play.written();
    assert!(play.ended(ErrorCode::NotCoordinator));
    play.coordinate(ErrorCode::CoordinatorNotAvailable);
    play.coordinate(ErrorCode::None);
    assert!(play.ended(ErrorCode::ConcurrentTransactions), "the markers before are on their way");
    play.next("EndTxnRequest");
    play.bench.cut(node_of(2));
    play.coordinate(ErrorCode::None);
    assert!(play.ended(ErrorCode::None));
    assert_eq!(play.told(), [(0, 3, TxnOutcome::Committed)]);
}

#[test]
fn a_refused_batch_aborts_the_transaction_and_the_next_one_has_another_epoch() {
    let mut config = config(0);
    config.load.limit = Some(6);
    let mut play = Play::new(Guards::default(), config);
    assert_eq!(play.added(ErrorCode::None), [0]);
    play.produced(ErrorCode::MessageTooLarge);
    assert!(!play.ended(ErrorCode::None), "an abort");
    assert_eq!(play.told().last().map(|t| t.2), Some(TxnOutcome::Aborted));
    // The bench gives a new id to whoever asks.
    play.bench.pass_ms(30);
    assert_eq!(play.bench.process.identity().0, ProducerId(72));
    play.added(ErrorCode::None);
    play.produced(ErrorCode::None);
}

#[test]
fn a_partition_that_may_not_join_aborts_without_a_word_to_the_coordinator() {
    let mut play = Play::new(Guards::default(), config(0));
    play.added(ErrorCode::ReadOnlyTopic);
    play.bench.pass_ms(200);
    let told = play.told();
    assert_eq!(told.first().map(|t| t.2), Some(TxnOutcome::Aborted));
    assert!(!play
        .bench
        .requests
        .iter()
        .any(|r| matches!(r.message.body, Body::EndTxnRequest(_) | Body::ProduceRequest(_))));
}

#[test]
fn a_fenced_producer_sends_nothing_any_more() {
    let mut play = Play::new(Guards::default(), config(0));
    play.written();
    play.ended(ErrorCode::ProducerFenced);
    assert_eq!(play.told(), [(0, 3, TxnOutcome::Unknown)]);
    play.bench.pass_ms(2_000);
    assert!(play.idle() && play.bench.requests.is_empty());
    assert_eq!(play.bench.process.identity().2, IdState::Refused(ErrorCode::ProducerFenced));
}

#[test]
fn a_transaction_of_a_duration_ends_after_it() {
    let mut config = config(0);
    let transactions = config.transactions.as_mut().unwrap();
    (transactions.records, transactions.duration) = (u64::MAX, Some(Nanos::from_millis(200)));
    let mut play = Play::new(Guards::default(), config);
    play.written();
    play.bench.pass_ms(100);
    assert!(play.bench.requests.is_empty() && !play.idle(), "it stays open");
    play.bench.pass_ms(100);
    assert!(play.ended(ErrorCode::None));
}

#[test]
fn without_the_guards_a_producer_writes_before_it_may_and_ends_before_it_should() {
    let mut guards = Guards::default();
    guards.set(guard::ProduceAfterAdd, false);
    let mut play = Play::new(guards, config(0));
    play.produced(ErrorCode::None);
    let mut guards = Guards::default();
    guards.set(guard::EndAfterRecords, false);
    let mut play = Play::new(guards, config(0));
    assert_eq!(play.added(ErrorCode::None), [0]);
    play.added(ErrorCode::None);
    let open = play.bench.process.open_records();
    assert!(open > 0 && play.ended(ErrorCode::None));
}

/// KIP-890: the answer to an end names the id and epoch of the next transaction, whose sequences begin at 0; no
/// InitProducerId follows, not even where the one before left a hole.
#[test]
fn a_producer_goes_on_under_the_epoch_that_the_end_of_its_transaction_is_answered_with() {
    for error in [ErrorCode::None, ErrorCode::MessageTooLarge] {
        let mut config = config(0);
        config.load.limit = Some(6);
        config.load.choice = Choice::HotShare { ppm: 1_000_000 };
        let mut play = Play::new(Guards::default(), config);
        play.added(ErrorCode::None);
        play.produced(error);
        if error.is_none() {
            play.produced(ErrorCode::None);
            play.produced(ErrorCode::None);
        }
        let asked = play.next("EndTxnRequest");
        let (producer, epoch) = (ProducerId(71), ProducerEpoch(1));
        play.bench.answer(&asked, EndTxnResponse { error: ErrorCode::None, producer, epoch });
        assert_eq!(play.bench.process.identity().0, producer);
        play.added(ErrorCode::None);
        let asked = play.next("ProduceRequest");
        let Body::ProduceRequest(request) = &asked.message.body else { panic!() };
        let batch = BatchView::parse(&request.parts[0].batches).unwrap();
        assert_eq!((batch.producer(), batch.producer_epoch(), batch.base_sequence()), (producer, epoch, 0));
    }
}

/// Two partitions are refused at once: both end their records, the transaction is aborted, and the next one is tried. Neither
/// is asked for again for a transaction that is over.
#[test]
fn two_refused_partitions_abort_one_transaction() {
    let mut config = config(0);
    config.load.limit = Some(4);
    if let Some(txn) = &mut config.transactions {
        txn.records = 2;
    }
    let mut play = Play::new(Guards::default(), config);
    assert_eq!(play.added(ErrorCode::ConcurrentTransactions), [0]);
    assert_eq!(play.added(ErrorCode::ReadOnlyTopic), [0, 1]);
    play.bench.pass_ms(99);
    assert!(!play.bench.requests.iter().any(|r| matches!(r.message.body, Body::AddPartitionsToTxnRequest(_))));
    play.bench.pass_ms(30);
    assert_eq!(play.told(), [(0, 2, TxnOutcome::Aborted)]);
    assert_eq!(play.added(ErrorCode::None), [0, 1]);
    play.produced(ErrorCode::None);
    assert!(play.ended(ErrorCode::None));
    assert_eq!(play.told(), [(2, 4, TxnOutcome::Committed)]);
    assert!(play.idle());
}
