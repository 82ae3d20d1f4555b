//! Transactions through the broker's door: the coordinator, its log, its markers.

use super::*;
use crate::coordinator::routing::TRANSACTION_TOPIC;
use crate::coordinator::txn_records::TxnState;
use crate::guards::transactions as txn_guard;
use crate::record::BatchView;
use crate::record::ControlRecord;
use crate::wire::messages::{
    AddPartitionsToTxnRequest, ConfigResource, CoordinatorKind, EndTxnRequest, FindCoordinatorRequest, TxnMarker,
    TxnMarkerAnswer, WriteTxnMarkersRequest, WriteTxnMarkersResponse,
};

const STATE: PartitionIx = PartitionIx(9);
/// Led by broker 2.
const THERE: PartitionIx = PartitionIx(1);

/// A partition's leadership moves.
fn moves(partition: PartitionIx, leader: i32, epoch: i32) -> Record {
    Record::PartitionChange {
        partition,
        leader: Some(BrokerId(leader)),
        leader_epoch: Some(LeaderEpoch(epoch)),
        isr: Some([BrokerId(leader)].into_iter().collect()),
        elr: None,
        last_known_elr: None,
        recovering: None,
        replicas: None,
    }
}

/// Topic `orders`: partition 0 led here, 1 at broker 2; `__transaction_state` of one partition on these replicas.
fn host(replicas: &[i32]) -> Host {
    let mut host = Host::running();
    host.metadata(&[
        topic(0, 7, "orders"),
        partition(0, 0, 0, 1, &[1]),
        partition(1, 0, 1, 2, &[2, 1]),
        topic(3, 8, TRANSACTION_TOPIC),
        partition(9, 3, 0, 1, replicas),
    ]);
    host.open_client();
    host
}

fn init(host: &mut Host, id: &str) {
    let request = InitProducerIdRequest {
        transactional_id: Some(id.into()),
        timeout_ms: 5_000,
        producer: ProducerId::NONE,
        epoch: ProducerEpoch(-1),
    };
    host.client(1, request);
    if host.sent.iter().any(|(_, m)| m.body.name() == "AllocateProducerIdsRequest") {
        let asked = host.take("AllocateProducerIdsRequest");
        let block = AllocateProducerIdsResponse { error: ErrorCode::None, first: ProducerId(50), count: 10 };
        host.reply(&asked, block);
    }
}
fn initiated(host: &mut Host) -> (ErrorCode, i64, i16) {
    match host.take("InitProducerIdResponse").1.body {
        Body::InitProducerIdResponse(answer) => (answer.error, answer.producer.0, answer.epoch.0),
        other => panic!("{other:?}"),
    }
}
fn add(host: &mut Host, epoch: i16, parts: &[PartitionIx]) -> Vec<(u32, ErrorCode)> {
    let (producer, epoch) = (ProducerId(50), ProducerEpoch(epoch));
    host.client(
        2,
        AddPartitionsToTxnRequest { transactional_id: "pay".into(), producer, epoch, parts: parts.to_vec() },
    );
    match host.take("AddPartitionsToTxnResponse").1.body {
        Body::AddPartitionsToTxnResponse(answer) => answer.parts.iter().map(|(p, e)| (p.0, *e)).collect(),
        other => panic!("{other:?}"),
    }
}
fn end(host: &mut Host, epoch: i16, commit: bool) -> ErrorCode {
    let (producer, epoch) = (ProducerId(50), ProducerEpoch(epoch));
    host.client(3, EndTxnRequest { transactional_id: "pay".into(), producer, epoch, commit });
    match host.take("EndTxnResponse").1.body {
        Body::EndTxnResponse(answer) => answer.error,
        other => panic!("{other:?}"),
    }
}
fn state_of(host: &Host) -> Option<(TxnState, i16, usize)> {
    let broker = host.broker();
    broker.txns.committed("pay", &broker.image).map(|v| (v.state, v.epoch.0, v.members.len()))
}
/// The markers in partition 0: committed or not, producer epoch, coordinator epoch.
fn markers(host: &Host) -> Vec<(bool, i16, i32)> {
    let log = host.broker().replicas.log(P0).unwrap();
    let mut found = Vec::new();
    let mut each = |batch: &BatchView<'_>| {
        if let Ok(ControlRecord::EndTxn { commit, coordinator_epoch }) = ControlRecord::parse(batch) {
            found.push((commit, batch.producer_epoch().0, coordinator_epoch));
        }
    };
    log.for_each_batch(&host.disk, log.start(), &mut each).unwrap();
    found
}
fn marker_request(host: &mut Host) -> ((ConnId, Message), WriteTxnMarkersRequest) {
    let asked = host.take("WriteTxnMarkersRequest");
    let Body::WriteTxnMarkersRequest(request) = asked.1.body.clone() else { panic!() };
    (asked, *request)
}
fn answer_markers(host: &mut Host, error: ErrorCode) {
    let (asked, request) = marker_request(host);
    let of =
        |m: &TxnMarker| TxnMarkerAnswer { producer: m.producer, parts: m.parts.iter().map(|p| (*p, error)).collect() };
    host.reply(&asked, WriteTxnMarkersResponse { markers: request.markers.iter().map(of).collect() });
}

#[test]
fn the_topic_is_created_when_somebody_looks_for_a_coordinator() {
    let mut host = Host::running();
    host.open_client();
    let find = FindCoordinatorRequest { kind: CoordinatorKind::Transaction, keys: vec!["pay".into()] };
    let found = |host: &mut Host| {
        host.client(1, find.clone());
        match host.take("FindCoordinatorResponse").1.body {
            Body::FindCoordinatorResponse(answer) => (answer.coordinators[0].error, answer.coordinators[0].broker.0),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(found(&mut host), (ErrorCode::CoordinatorNotAvailable, -1));
    assert_eq!(found(&mut host), (ErrorCode::CoordinatorNotAvailable, -1));
    let asked = host.take("CreateTopicsRequest");
    assert!(!host.sent.iter().any(|(_, m)| m.body.name() == "CreateTopicsRequest"), "asked once");
    let Body::CreateTopicsRequest(request) = &asked.1.body else { panic!() };
    let new = &request.topics[0];
    assert_eq!((&*new.name, new.partitions, new.replication_factor), (TRANSACTION_TOPIC, 50, 3));
    assert!(new.configs.contains(&("cleanup.policy".into(), "compact".into())));
    host.reply(&asked, CreateTopicsResponse::default());
    host.metadata(&[topic(3, 8, TRANSACTION_TOPIC), partition(9, 3, 0, 2, &[2])]);
    assert_eq!(found(&mut host), (ErrorCode::None, 2));
}

#[test]
fn a_transaction_from_its_producer_id_to_its_last_marker() {
    let mut host = host(&[1]);
    init(&mut host, "pay");
    assert_eq!(initiated(&mut host), (ErrorCode::None, 50, 0));
    let all = [(0, ErrorCode::None), (1, ErrorCode::None)];
    assert_eq!(add(&mut host, 0, &[P0, THERE]), all);
    assert_eq!(state_of(&host), Some((TxnState::Ongoing, 0, 2)));
    assert_eq!(end(&mut host, 0, true), ErrorCode::None);
    assert_eq!(markers(&host), [(true, 1, 0)], "its own partition has the marker");
    assert_eq!(end(&mut host, 0, true), ErrorCode::ConcurrentTransactions, "the other one not yet");
    assert_eq!(add(&mut host, 1, &[P0]), [(0, ErrorCode::ConcurrentTransactions)]);

    answer_markers(&mut host, ErrorCode::NotLeaderOrFollower);
    assert_eq!(state_of(&host), Some((TxnState::PrepareCommit, 1, 2)));
    host.advance(100);
    let ((conn, _), again) = marker_request(&mut host);
    let marker = &again.markers[0];
    assert_eq!((marker.producer.0, marker.commit, marker.coordinator_epoch), (50, true, 0));
    assert_eq!((marker.epoch.0, marker.version), (1, 2));
    assert_eq!(marker.parts, [THERE]);
    // Its leadership moves while the answer is awaited.
    host.input(Input::Closed { conn, why: CloseReason::Reset });
    host.metadata(&[moves(THERE, 1, 1)]);
    host.advance(100);
    assert_eq!(state_of(&host), Some((TxnState::CompleteCommit, 1, 0)));
    assert!(host.trace.contains(&Trace::TxnCompleted {
        producer: ProducerId(50),
        epoch: ProducerEpoch(1),
        commit: true
    }));
    assert_eq!(end(&mut host, 0, true), ErrorCode::None, "a repeated request");
    assert_eq!(end(&mut host, 0, false), ErrorCode::InvalidTxnState);
    // The next transaction: the request of the one before is late.
    assert_eq!(add(&mut host, 0, &[P0]), [(0, ErrorCode::ProducerFenced)]);
    assert_eq!(add(&mut host, 1, &[P0]), [(0, ErrorCode::None)]);
    assert_eq!(end(&mut host, 0, true), ErrorCode::ProducerFenced);
    assert_eq!(end(&mut host, 1, false), ErrorCode::None);
    assert_eq!(markers(&host), [(true, 1, 0), (false, 2, 0)]);
}

#[test]
fn answers_wait_for_the_commit_and_a_lost_leadership_takes_them_back() {
    let mut host = host(&[1, 2]);
    init(&mut host, "pay");
    assert!(!host.sent.iter().any(|(_, m)| m.body.name() == "InitProducerIdResponse"), "not committed");
    assert_eq!(state_of(&host), None);
    host.metadata(&[moves(STATE, 2, 1)]);
    assert_eq!(initiated(&mut host).0, ErrorCode::NotCoordinator);
    init(&mut host, "pay");
    assert_eq!(initiated(&mut host).0, ErrorCode::NotCoordinator);
}

#[test]
fn a_new_coordinator_sends_the_markers_of_decisions_that_it_finds() {
    let decided = |taken_up: bool| {
        let mut host = host(&[1]);
        host.guards.set(txn_guard::PreparedTakenUp, taken_up);
        init(&mut host, "pay");
        initiated(&mut host);
        add(&mut host, 0, &[THERE]);
        assert_eq!(end(&mut host, 0, false), ErrorCode::None);
        let ((conn, _), _) = marker_request(&mut host);
        host.metadata(&[moves(STATE, 2, 1)]);
        host.metadata(&[moves(STATE, 1, 2)]);
        assert_eq!(state_of(&host), Some((TxnState::PrepareAbort, 1, 1)));
        // It still waits for the answer to what the former coordinator asked.
        host.input(Input::Closed { conn, why: CloseReason::Reset });
        host.advance(100);
        host
    };
    let mut host = decided(true);
    let (_, again) = marker_request(&mut host);
    assert_eq!((again.markers[0].commit, again.markers[0].coordinator_epoch), (false, 2));
    let mutant = decided(false);
    assert!(!mutant.sent.iter().any(|(_, m)| m.body.name() == "WriteTxnMarkersRequest"));
}

#[test]
fn a_transaction_that_is_open_for_too_long_is_aborted_under_a_higher_epoch() {
    let mut host = host(&[1]);
    init(&mut host, "pay");
    initiated(&mut host);
    add(&mut host, 0, &[P0]);
    host.advance(10_000);
    assert_eq!(markers(&host), [(false, 1, 0)]);
    assert_eq!(state_of(&host), Some((TxnState::CompleteAbort, 1, 0)));
    assert_eq!(end(&mut host, 0, true), ErrorCode::ProducerFenced);
    assert_eq!(add(&mut host, 0, &[P0]), [(0, ErrorCode::ProducerFenced)]);
    // Who aborts what was aborted goes on from there (KIP-890).
    assert_eq!(end(&mut host, 0, false), ErrorCode::None);
    assert_eq!(add(&mut host, 1, &[P0]), [(0, ErrorCode::None)]);
}

#[test]
fn who_takes_a_transactional_id_over_waits_for_the_abort() {
    let mut host = host(&[1]);
    init(&mut host, "pay");
    initiated(&mut host);
    add(&mut host, 0, &[P0]);
    init(&mut host, "pay");
    assert_eq!(initiated(&mut host).0, ErrorCode::ConcurrentTransactions);
    assert_eq!(markers(&host), [(false, 1, 0)]);
    init(&mut host, "pay");
    assert_eq!(initiated(&mut host), (ErrorCode::None, 50, 2));
    assert_eq!(end(&mut host, 0, true), ErrorCode::ProducerFenced);
}

#[test]
fn markers_of_an_older_coordinator_are_refused_and_mirrored_partitions_take_none() {
    let mut host = host(&[1]);
    let write = |host: &mut Host, coordinator_epoch| {
        let marker = TxnMarker {
            producer: ProducerId(7),
            epoch: ProducerEpoch(0),
            commit: false,
            coordinator_epoch,
            version: 0,
            parts: vec![P0, PartitionIx(77)],
        };
        host.client(1, WriteTxnMarkersRequest { markers: vec![marker] });
        match host.take("WriteTxnMarkersResponse").1.body {
            Body::WriteTxnMarkersResponse(answer) => answer.markers[0].parts.iter().map(|p| p.1).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        }
    };
    let unknown = ErrorCode::UnknownTopicOrPartition;
    assert_eq!(write(&mut host, 4), [ErrorCode::None, unknown]);
    assert_eq!(write(&mut host, 3), [ErrorCode::TransactionCoordinatorFenced, unknown]);
    host.metadata(&[
        Record::Mirror { mirror: MirrorIx(0), name: "m".into() },
        Record::Config {
            resource: ConfigResource::ClusterMirror("m".into()),
            key: "bootstrap.servers".into(),
            value: Some("4".into()),
        },
        Record::MirrorTopicStateChange {
            topic: TopicIx(0),
            mirror: Some(MirrorIx(0)),
            desired: DesiredState::Mirroring,
        },
    ]);
    assert_eq!(write(&mut host, 5), [ErrorCode::ReadOnlyTopic, unknown]);
    init(&mut host, "pay");
    initiated(&mut host);
    let refused = [(0, ErrorCode::ReadOnlyTopic), (9, ErrorCode::OperationNotAttempted)];
    assert_eq!(add(&mut host, 0, &[P0, STATE]), refused);
}

/// A marker of transaction version 2 is written once: the same again is answered, and one that is late is refused.
#[test]
fn a_repeated_marker_is_answered_and_a_late_one_refused() {
    let write = |host: &mut Host, epoch| {
        let (producer, epoch) = (ProducerId(7), ProducerEpoch(epoch));
        let marker = TxnMarker { producer, epoch, commit: true, coordinator_epoch: 4, version: 2, parts: vec![P0] };
        host.client(1, WriteTxnMarkersRequest { markers: vec![marker] });
        match host.take("WriteTxnMarkersResponse").1.body {
            Body::WriteTxnMarkersResponse(answer) => answer.markers[0].parts[0].1,
            other => panic!("{other:?}"),
        }
    };
    let mut host = host(&[1]);
    assert_eq!((write(&mut host, 3), write(&mut host, 3)), (ErrorCode::None, ErrorCode::None));
    assert_eq!(markers(&host).len(), 1, "written once");
    assert_eq!(write(&mut host, 2), ErrorCode::InvalidProducerEpoch);
    host.guards.set(txn_guard::RepeatedMarkerIsDone, false);
    assert_eq!(write(&mut host, 3), ErrorCode::InvalidProducerEpoch);
    host.guards.set(txn_guard::MarkerAboveProducer, false);
    assert_eq!((write(&mut host, 3), markers(&host).len()), (ErrorCode::None, 2));
}

/// A coordinator that lost what it had decided (all its replicas lost power) decides under an epoch that its producer is past:
/// the markers are refused, and the transaction is over all the same.
#[test]
fn a_transaction_that_its_partitions_are_past_is_over() {
    let mut host = host(&[1]);
    init(&mut host, "pay");
    initiated(&mut host);
    add(&mut host, 0, &[THERE]);
    assert_eq!(end(&mut host, 0, true), ErrorCode::None);
    answer_markers(&mut host, ErrorCode::InvalidProducerEpoch);
    assert_eq!(state_of(&host), Some((TxnState::CompleteCommit, 1, 0)));
}

/// BAD-20 for `__transaction_state`. A bit of the log turned: the load is refused and the coordinator unavailable, whichever
/// bit it is; no decision is taken from what rotted.
#[test]
fn bad_20_a_corrupt_batch_refuses_the_load_of_transactions() {
    let mut host = host(&[1]);
    init(&mut host, "pay");
    initiated(&mut host);
    add(&mut host, 0, &[THERE]);
    assert_eq!(end(&mut host, 0, false), ErrorCode::None);
    host.metadata(&[moves(STATE, 2, 1)]);
    let log = host.broker().replicas.log(STATE).expect("its log");
    let (files, size): (Vec<_>, _) = (log.segments().map(|segment| segment.file).collect(), log.size_bytes());
    assert_eq!((files.len(), log.end().0), (1, 3));
    let clean = host.disk.clone();
    let mut refused = 0;
    for (turn, at) in (size / 3..size).enumerate() {
        host.disk = clean.clone();
        host.disk.rot(files[0], at);
        host.metadata(&[moves(STATE, 1, 2 * turn as i32 + 2)]);
        // The leader epoch of a batch is not under its checksum, and nothing here depends on it.
        let unseen = state_of(&host) == Some((TxnState::PrepareAbort, 1, 1));
        if !unseen {
            assert_eq!(state_of(&host), None, "byte {at}");
            assert_eq!(end(&mut host, 0, false), ErrorCode::CoordinatorNotAvailable, "byte {at}");
            refused += 1;
        }
        host.metadata(&[moves(STATE, 2, 2 * turn as i32 + 3)]);
    }
    assert!(refused > 60, "{refused} of {} bytes", size - size / 3);
}

/// Decision 9. Metadata wishes STOPPED: until it is committed nothing of the topic joins a transaction; what is not known now
/// may be asked again, and what is known is not asked twice.
#[test]
fn a_partition_that_leaves_its_mirror_joins_when_its_state_is_committed() {
    use crate::coordinator::routing::STATE_TOPIC;
    use crate::states::{MirrorState, StateRecord};
    use crate::wire::messages::ReadMirrorStatesResponse;
    let wish = |desired| Record::MirrorTopicStateChange { topic: TopicIx(0), mirror: Some(MirrorIx(0)), desired };
    let mut host = host(&[1]);
    init(&mut host, "pay");
    initiated(&mut host);
    let mut records = vec![
        Record::Mirror { mirror: MirrorIx(0), name: "m".into() },
        wish(DesiredState::Stopped),
        topic(4, 9, STATE_TOPIC),
    ];
    let count = configs::BrokerConfig::default().mirror_state_topic_num_partitions;
    records.extend((0..count).map(|n| partition(20 + n, 4, n, 2, &[2, 1])));
    host.metadata(&records);

    let ask = |host: &mut Host| {
        let (producer, epoch) = (ProducerId(50), ProducerEpoch(0));
        host.client(
            2,
            AddPartitionsToTxnRequest { transactional_id: "pay".into(), producer, epoch, parts: vec![P0, THERE] },
        );
    };
    let told = |host: &mut Host| match host.take("AddPartitionsToTxnResponse").1.body {
        Body::AddPartitionsToTxnResponse(answer) => answer.parts.iter().map(|(_, error)| *error).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    // Who leads partition 0 asks for its state too.
    let question = |host: &mut Host| {
        let joins = |m: &Message| matches!(&m.body, Body::ReadMirrorStatesRequest(r) if r.parts.contains(&THERE));
        let at = host.sent.iter().position(|(_, m)| joins(m)).expect("a question");
        host.sent.remove(at)
    };
    let joins = |host: &mut Host, states: [Option<MirrorState>; 2]| {
        ask(host);
        let asked = question(host);
        let of = |(partition, state): (PartitionIx, Option<MirrorState>)| {
            Some((partition, ErrorCode::None, StateRecord { state: state?, ..StateRecord::default() }))
        };
        let parts = [P0, THERE].into_iter().zip(states).filter_map(of).collect();
        host.reply(&asked, ReadMirrorStatesResponse { error: ErrorCode::None, parts });
        told(host)
    };
    use MirrorState as M;
    let (waits, not_tried) = (ErrorCode::CoordinatorLoadInProgress, ErrorCode::OperationNotAttempted);
    assert_eq!(joins(&mut host, [Some(M::Stopped), Some(M::Stopping)]), [not_tried, ErrorCode::ReadOnlyTopic]);
    // Partition 0 is known to be STOPPED from now on.
    assert_eq!(joins(&mut host, [None, None]), [not_tried, waits], "silence is no answer");
    assert_eq!(joins(&mut host, [None, Some(M::Unknown)]), [not_tried, waits]);
    assert_eq!(joins(&mut host, [None, Some(M::Stopped)]), [ErrorCode::None, ErrorCode::None]);
    ask(&mut host);
    assert_eq!(told(&mut host), [ErrorCode::None, ErrorCode::None], "without a question");
    // It may leave STOPPED as soon as that is wished for, and what was known is forgotten.
    host.metadata(&[wish(DesiredState::Mirroring)]);
    ask(&mut host);
    assert_eq!(told(&mut host), [ErrorCode::ReadOnlyTopic; 2]);
    host.metadata(&[wish(DesiredState::Stopped)]);
    ask(&mut host);
    let asked = question(&mut host);
    host.input(Input::Closed { conn: asked.0, why: CloseReason::Reset });
    assert_eq!(told(&mut host), [waits; 2]);
}
