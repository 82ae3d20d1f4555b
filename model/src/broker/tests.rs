//! The broker process through its door: inputs, and what comes out.

use crate::broker::{Broker, BrokerConfig, STOP};
use crate::guards::{replication as guard, Guards};
use crate::ids::{
    BrokerEpoch, BrokerId, ConnId, LeaderEpoch, MetadataOffset, MirrorIx, Nanos, NodeId, Now, Offset, PartitionIx,
    ProducerEpoch, ProducerId, TopicId, TopicIx, TopicLife,
};
use crate::metadata::configs;
use crate::metadata::records::Record;
use crate::ports::{CloseReason, Cx, DiskError, Effect, Entropy, ExitReason, Input, Outbox, Timer};
use crate::record::{BatchBuilder, BatchMeta};
use crate::replica::testing::{batch, state};
use crate::replica::Role;
use crate::states::DesiredState;
use crate::testing::{DiskCall, MemDisk};
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    AllocateProducerIdsResponse, Body, BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationRequest,
    BrokerRegistrationResponse, CreateTopicsRequest, CreateTopicsResponse, FetchPart, FetchRequest,
    InitProducerIdRequest, Isolation, Message, MetadataRequest, NamedResult, NewTopic, ProducePart, ProduceRequest,
    ProduceResponse, RaftFetchResponse,
};

#[path = "transactions_tests.rs"]
mod transactions;

const P0: PartitionIx = PartitionIx(0);
const CLIENT: ConnId = ConnId(5 << 40);

/// One broker (id 1) on its disk, with everything it sends in sight.
struct Host {
    disk: MemDisk,
    guards: Guards,
    out: Outbox,
    next_conn: u64,
    now: Now,
    broker: Option<Broker>,
    sent: Vec<(ConnId, Message)>,
    timers: Vec<(Timer, Nanos)>,
    connects: Vec<(ConnId, NodeId)>,
    exit: Option<ExitReason>,
    trace: Vec<Trace>,
    end: i64,
}

fn config() -> BrokerConfig {
    BrokerConfig {
        release: crate::broker::Release::NEWEST,
        broker: BrokerId(1),
        node: NodeId(1),
        cluster_id: "east".into(),
        controllers: vec![NodeId(100), NodeId(101)],
        configs: configs::BrokerConfig::default(),
    }
}

impl Host {
    fn new() -> Self {
        let mut host = Self {
            disk: MemDisk::new(),
            guards: Guards::default(),
            out: Outbox::default(),
            next_conn: 1 << 40,
            now: Now { mono: Nanos::from_secs(10), wall_ms: 10_000 },
            broker: None,
            sent: Vec::new(),
            timers: Vec::new(),
            connects: Vec::new(),
            exit: None,
            trace: Vec::new(),
            end: 0,
        };
        host.boot();
        host
    }

    fn boot(&mut self) {
        self.sent.clear();
        self.timers.clear();
        self.connects.clear();
        self.exit = None;
        self.end = 0;
        let now = self.now;
        let broker = self.with(|cx| Broker::boot(config(), now, cx));
        self.broker = Some(broker);
        self.pump();
    }

    fn with<R>(&mut self, call: impl FnOnce(&mut Cx) -> R) -> R {
        let mut cx = Cx {
            node: NodeId(1),
            disk: &mut self.disk,
            guards: &mut self.guards,
            out: &mut self.out,
            entropy: Entropy(3),
            next_conn: &mut self.next_conn,
        };
        call(&mut cx)
    }

    fn broker(&self) -> &Broker {
        self.broker.as_ref().unwrap()
    }

    fn input(&mut self, input: Input) {
        let mut broker = self.broker.take().unwrap();
        let now = self.now;
        self.with(|cx| broker.accept(now, input, cx));
        self.broker = Some(broker);
        self.pump();
    }

    /// Obeys effects until there are none: connections stand at once, flushes succeed at once.
    fn pump(&mut self) {
        loop {
            let effects = std::mem::take(&mut self.out.effects);
            self.trace.extend(self.out.trace.drain(..).map(|e| e.trace));
            if effects.is_empty() {
                return;
            }
            let now = self.now;
            for effect in effects {
                self.disk.obey(std::slice::from_ref(&effect));
                let mut broker = self.broker.take().unwrap();
                let peer = NodeId(100);
                match effect {
                    Effect::Connect { conn, to } => {
                        self.connects.push((conn, to));
                        self.with(|cx| broker.accept(now, Input::Opened { conn, peer, inbound: false }, cx));
                    }
                    Effect::Send { conn, message } => self.sent.push((conn, message)),
                    Effect::SetTimer { timer, at } => self.timers.push((timer, at)),
                    Effect::Wake(lane) => self.with(|cx| broker.run(now, lane, cx)),
                    Effect::Flush { token, .. } | Effect::FlushDir { token, .. } => {
                        self.with(|cx| broker.accept(now, Input::Flushed { token, result: Ok(()) }, cx));
                    }
                    Effect::Exit(reason) => self.exit = Some(reason),
                    Effect::Close { .. } => {}
                }
                self.broker = Some(broker);
            }
        }
    }

    /// Takes the first message of a kind that was sent.
    fn take(&mut self, name: &str) -> (ConnId, Message) {
        let names: Vec<_> = self.sent.iter().map(|(_, m)| m.body.name()).collect();
        let at = names.iter().position(|n| *n == name).unwrap_or_else(|| panic!("no {name} among {names:?}"));
        self.sent.remove(at)
    }

    fn reply(&mut self, to: &(ConnId, Message), body: impl Into<Body>) {
        let message = Message { correlation: to.1.correlation, body: body.into() };
        self.input(Input::Message { conn: to.0, message });
    }

    /// Lets time pass and fires what is due.
    fn advance(&mut self, ms: u64) {
        self.now.mono = self.now.mono + Nanos::from_millis(ms);
        self.now.wall_ms += ms as i64;
        let now = self.now.mono;
        let (due, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.timers).into_iter().partition(|(_, at)| *at <= now);
        self.timers = left;
        for (timer, _) in due {
            self.input(Input::Timer(timer));
        }
    }

    fn registration(&mut self) -> (ConnId, Message) {
        self.take("BrokerRegistrationRequest")
    }

    fn register(&mut self, epoch: i64) -> BrokerRegistrationRequest {
        let asked = self.registration();
        let Body::BrokerRegistrationRequest(request) = asked.1.body.clone() else { panic!() };
        let answer = BrokerRegistrationResponse {
            error: ErrorCode::None,
            incarnation: request.incarnation,
            epoch: BrokerEpoch(epoch),
        };
        self.reply(&asked, answer);
        *request
    }

    /// Answers the metadata fetch on the wire with these records.
    fn metadata(&mut self, records: &[Record]) {
        let asked = self.take("RaftFetchRequest");
        let mut builder = BatchBuilder::new(BatchMeta {
            base_offset: Offset(self.end),
            leader_epoch: LeaderEpoch(1),
            ..BatchMeta::default()
        });
        for record in records {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            builder.push(0, None, Some(&bytes));
        }
        self.end += records.len() as i64;
        let answer = RaftFetchResponse {
            leader: Some(NodeId(100)),
            epoch: LeaderEpoch(1),
            high_watermark: MetadataOffset(self.end),
            batches: vec![builder.finish()],
            ..RaftFetchResponse::default()
        };
        self.reply(&asked, answer);
    }

    fn heartbeat(&mut self) -> ((ConnId, Message), BrokerHeartbeatRequest) {
        let asked = self.take("BrokerHeartbeatRequest");
        let Body::BrokerHeartbeatRequest(request) = asked.1.body.clone() else { panic!() };
        (asked, *request)
    }

    /// Registered with epoch 1, caught up, let in.
    fn running() -> Self {
        let mut host = Self::new();
        host.register(1);
        host.metadata(&brokers());
        let (asked, first) = host.heartbeat();
        assert!(first.want_fence);
        host.reply(&asked, BrokerHeartbeatResponse { fenced: true, ..BrokerHeartbeatResponse::default() });
        host.advance(2000);
        let (asked, second) = host.heartbeat();
        assert!(!second.want_fence);
        host.reply(&asked, BrokerHeartbeatResponse::default());
        assert!(host.broker().is_running());
        host
    }

    fn client(&mut self, correlation: u32, body: impl Into<Body>) {
        self.input(Input::Message { conn: CLIENT, message: Message { correlation, body: body.into() } });
    }

    fn open_client(&mut self) {
        self.input(Input::Opened { conn: CLIENT, peer: NodeId(5), inbound: true });
    }

    fn produced(&mut self) -> ProduceResponse {
        match self.take("ProduceResponse").1.body {
            Body::ProduceResponse(answer) => *answer,
            other => panic!("{other:?}"),
        }
    }
}

fn register_broker(id: i32, epoch: i64) -> Record {
    Record::RegisterBroker {
        broker: BrokerId(id),
        node: NodeId(id as u16),
        incarnation: id as u128,
        epoch: BrokerEpoch(epoch),
    }
}

/// Brokers 1 and 2 register, in two records.
fn brokers() -> Vec<Record> {
    vec![register_broker(2, 0), register_broker(1, 1)]
}

fn topic(ix: u32, id: u128, name: &str) -> Record {
    Record::Topic { topic: TopicIx(ix), id: TopicId(id), name: name.into() }
}

fn partition(ix: u32, topic: u32, number: u32, leader: i32, replicas: &[i32]) -> Record {
    let state = state(leader, 0, 0, replicas, replicas);
    Record::Partition { partition: PartitionIx(ix), topic: TopicIx(topic), number, state }
}

fn produce(acks: i16) -> ProduceRequest {
    let parts = vec![ProducePart { partition: P0, batches: batch(1, 1) }];
    ProduceRequest { transactional_id: None, acks, timeout_ms: 1500, topic_groups: 1, parts }
}

#[test]
fn a_broker_registers_catches_up_and_is_let_in() {
    let host = Host::running();
    assert_eq!(host.broker().epoch(), BrokerEpoch(1));
    assert!(host.trace.contains(&Trace::Registered { broker: BrokerId(1), epoch: 1, clean: false }));
    assert_eq!(host.broker().image.end(), MetadataOffset(2));
}

/// I17
#[test]
fn i17_an_answer_to_an_earlier_incarnation_is_not_ours() {
    let mut host = Host::new();
    let asked = host.registration();
    let late = BrokerRegistrationResponse { error: ErrorCode::None, incarnation: 1, epoch: BrokerEpoch(1) };
    host.reply(&asked, late);
    assert_eq!(host.broker().epoch(), BrokerEpoch(-1));
    host.advance(2000);
    host.register(4);
    assert_eq!(host.broker().epoch(), BrokerEpoch(4));
}

#[test]
fn only_committed_metadata_is_applied() {
    let mut host = Host::new();
    host.register(1);
    let asked = host.take("RaftFetchRequest");
    let mut bytes = Vec::new();
    register_broker(1, 0).encode(&mut bytes);
    let mut builder = BatchBuilder::new(BatchMeta { leader_epoch: LeaderEpoch(1), ..BatchMeta::default() });
    builder.push(0, None, Some(&bytes));
    let answer = RaftFetchResponse {
        leader: Some(NodeId(100)),
        epoch: LeaderEpoch(1),
        high_watermark: MetadataOffset(0),
        batches: vec![builder.finish()],
        ..RaftFetchResponse::default()
    };
    host.reply(&asked, answer);
    assert_eq!(host.broker().image.end(), MetadataOffset(0));
    // It parts: what was fetched is dropped.
    let asked = host.take("RaftFetchRequest");
    let end = crate::wire::messages::EpochEnd { epoch: LeaderEpoch(0), end: Offset(0) };
    let answer = RaftFetchResponse { diverging: Some(end), epoch: LeaderEpoch(2), ..RaftFetchResponse::default() };
    host.reply(&asked, answer);
    let Body::RaftFetchRequest(next) = host.take("RaftFetchRequest").1.body else { panic!() };
    assert_eq!(next.fetch_offset, MetadataOffset(0));
}

#[test]
fn a_voter_that_does_not_lead_says_who_does() {
    let mut host = Host::new();
    let asked = host.take("RaftFetchRequest");
    let answer = RaftFetchResponse {
        error: ErrorCode::NotController,
        leader: Some(NodeId(103)),
        epoch: LeaderEpoch::NONE,
        ..RaftFetchResponse::default()
    };
    host.reply(&asked, answer);
    host.advance(100);
    assert_eq!(host.connects.last().map(|(_, to)| *to), Some(NodeId(103)));
}

#[test]
fn requests_of_one_connection_are_answered_in_order() {
    let mut host = Host::running();
    host.metadata(&[topic(0, 7, "orders"), partition(0, 0, 0, 1, &[1])]);
    host.open_client();
    host.client(1, produce(-1));
    host.client(2, produce(0));
    host.client(3, MetadataRequest { topics: Some(vec!["orders".into(), "none".into()]) });
    let answers: Vec<(u32, &str)> =
        host.sent.iter().filter(|(c, _)| *c == CLIENT).map(|(_, m)| (m.correlation, m.body.name())).collect();
    assert_eq!(answers, [(1, "ProduceResponse"), (3, "MetadataResponse")]);
    assert_eq!(host.produced().parts[0].base, Offset(0));
    assert_eq!(host.broker().replicas.log(P0).unwrap().end(), Offset(2));
    let Body::MetadataResponse(answer) = host.take("MetadataResponse").1.body else { panic!() };
    assert_eq!(answer.topics[0].partitions[0].leader, BrokerId(1));
    assert_eq!(answer.topics[1].error, ErrorCode::UnknownTopicOrPartition);
}

#[test]
fn a_produce_that_no_replica_confirms_times_out_and_holds_its_connection() {
    let mut host = Host::running();
    host.metadata(&[topic(0, 7, "orders"), partition(0, 0, 0, 1, &[1, 2])]);
    host.open_client();
    host.client(1, produce(-1));
    host.client(2, produce(1));
    assert!(host.sent.iter().all(|(conn, _)| *conn != CLIENT));
    host.advance(1500);
    let first = host.produced();
    assert_eq!(first.parts[0].error, ErrorCode::RequestTimedOut);
    assert_eq!(host.produced().parts[0].error, ErrorCode::None);
}

#[test]
fn a_closed_connection_takes_its_waits_along() {
    let mut host = Host::running();
    host.metadata(&[topic(0, 7, "orders"), partition(0, 0, 0, 1, &[1, 2])]);
    host.open_client();
    host.client(1, produce(-1));
    host.input(Input::Closed { conn: CLIENT, why: CloseReason::Reset });
    host.advance(1500);
    assert!(host.sent.iter().all(|(conn, _)| *conn != CLIENT));
}

#[test]
fn a_follower_partition_opens_a_fetcher() {
    let mut host = Host::running();
    host.metadata(&[topic(0, 7, "orders"), partition(0, 0, 0, 2, &[1, 2])]);
    let (_, message) = host.take("FetchRequest");
    let Body::FetchRequest(request) = message.body else { panic!() };
    assert_eq!((request.replica, request.broker_epoch, request.parts.len()), (BrokerId(1), BrokerEpoch(1), 1));
    assert!(host.connects.iter().any(|(_, to)| *to == NodeId(2)));
}

/// M22
#[test]
fn m22_one_delta_with_followers_and_mirror_leaders() {
    for on in [true, false] {
        let mut host = Host::running();
        host.guards.set(guard::WholeDelta, on);
        host.metadata(&[
            topic(0, 7, "orders"),
            Record::Mirror { mirror: MirrorIx(0), name: "m".into() },
            Record::MirrorTopicStateChange {
                topic: TopicIx(0),
                mirror: Some(MirrorIx(0)),
                desired: DesiredState::Mirroring,
            },
            partition(0, 0, 0, 1, &[1, 2]),
            partition(1, 0, 1, 2, &[1, 2]),
        ]);
        let leads = host.broker().replicas.get(P0).is_some_and(|r| r.role() == Role::Leader);
        assert_eq!(leads, on);
        assert!(host.broker().replicas.get(PartitionIx(1)).is_some());
    }
}

#[test]
fn a_mirrored_topic_refuses_producers() {
    let mut host = Host::running();
    host.metadata(&[
        topic(0, 7, "orders"),
        Record::Mirror { mirror: MirrorIx(0), name: "m".into() },
        Record::MirrorTopicStateChange {
            topic: TopicIx(0),
            mirror: Some(MirrorIx(0)),
            desired: DesiredState::Mirroring,
        },
        partition(0, 0, 0, 1, &[1]),
    ]);
    host.open_client();
    host.client(1, produce(-1));
    assert_eq!(host.produced().parts[0].error, ErrorCode::ReadOnlyTopic);
    assert_eq!(host.broker().replicas.log(P0).unwrap().end(), Offset(0));
}

/// LEAD-05's idle source: the answer that a waiting mirror gets names the new leader's address, as one given at once does.
#[test]
fn a_fetch_that_waited_is_told_where_the_new_leader_listens() {
    let mut host = Host::running();
    host.metadata(&[topic(0, 7, "orders"), partition(0, 0, 0, 1, &[1, 2])]);
    host.open_client();
    let part = FetchPart {
        slot: 0,
        partition: P0,
        fetch_offset: Offset(0),
        current_leader_epoch: LeaderEpoch(0),
        last_fetched_epoch: LeaderEpoch::NONE,
        log_start: Offset::UNKNOWN,
        max_bytes: 1000,
        mirror_leader_epoch: LeaderEpoch::NONE,
        aligned: LeaderEpoch::NONE,
    };
    let fetch = FetchRequest {
        replica: BrokerId(-1),
        broker_epoch: BrokerEpoch(-1),
        max_wait_ms: 60_000,
        min_bytes: 1,
        max_bytes: 1000,
        isolation: Isolation::ReadUncommitted,
        session_id: 0,
        session_epoch: 0,
        topic_groups: 1,
        parts: vec![part],
        forgotten: Vec::new(),
    };
    host.client(1, fetch);
    assert!(host.sent.iter().all(|(_, m)| m.body.name() != "FetchResponse"), "it waits");
    host.metadata(&[Record::PartitionChange {
        partition: P0,
        leader: Some(BrokerId(2)),
        leader_epoch: Some(LeaderEpoch(1)),
        isr: None,
        elr: None,
        last_known_elr: None,
        recovering: None,
        replicas: None,
    }]);
    let Body::FetchResponse(answer) = host.take("FetchResponse").1.body else { panic!() };
    let hint = answer.parts[0].current_leader.unwrap();
    assert_eq!((hint.leader, hint.node), (BrokerId(2), Some(NodeId(2))));
}

/// BRK-20, BRK-21: there is one log directory, so a broker whose disk fails ends, and others lead.
#[test]
fn a_broker_whose_disk_fails_ends() {
    let mut host = Host::running();
    host.metadata(&[topic(0, 7, "orders"), partition(0, 0, 0, 1, &[1])]);
    host.open_client();
    host.disk.fail(DiskCall::Append, 1, DiskError::Io);
    host.client(1, produce(1));
    assert_eq!(host.produced().parts[0].error, ErrorCode::KafkaStorageError);
    assert_eq!(host.exit, Some(ExitReason::DiskFailed));
}

#[test]
fn producer_ids_come_in_blocks() {
    let mut host = Host::running();
    host.open_client();
    host.client(
        1,
        InitProducerIdRequest {
            transactional_id: None,
            timeout_ms: 0,
            producer: ProducerId::NONE,
            epoch: ProducerEpoch(-1),
        },
    );
    let asked = host.take("AllocateProducerIdsRequest");
    let block = AllocateProducerIdsResponse { error: ErrorCode::None, first: ProducerId(5000), count: 1000 };
    host.reply(&asked, block);
    host.client(
        2,
        InitProducerIdRequest {
            transactional_id: None,
            timeout_ms: 0,
            producer: ProducerId::NONE,
            epoch: ProducerEpoch(-1),
        },
    );
    let ids: Vec<i64> = (0..2)
        .map(|_| match host.take("InitProducerIdResponse").1.body {
            Body::InitProducerIdResponse(answer) => answer.producer.0,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, [5000, 5001]);
}

#[test]
fn admin_requests_go_to_the_active_controller_and_back() {
    let mut host = Host::running();
    host.open_client();
    let new = NewTopic { name: "new".into(), partitions: 1, replication_factor: 1, ..NewTopic::default() };
    host.client(9, CreateTopicsRequest { topics: vec![new] });
    let asked = host.take("CreateTopicsRequest");
    let result = |error| NamedResult { name: "new".into(), error, message: None };
    host.reply(&asked, CreateTopicsResponse { topics: vec![result(ErrorCode::NotController)] });
    host.advance(100);
    let asked = host.take("CreateTopicsRequest");
    host.reply(&asked, CreateTopicsResponse { topics: vec![result(ErrorCode::None)] });
    let (conn, message) = host.take("CreateTopicsResponse");
    assert_eq!((conn, message.correlation), (CLIENT, 9));
}

/// KIP-966: a stop in order leaves a marker with the broker epoch; the next boot reads and removes it before loading (D02).
#[test]
fn d02_a_stop_in_order_is_told_once() {
    let mut host = Host::running();
    host.metadata(&[topic(0, 7, "orders"), partition(0, 0, 0, 1, &[1])]);
    host.open_client();
    host.client(1, produce(-1));
    host.input(Input::Timer(STOP));
    let (asked, request) = host.heartbeat();
    assert!(request.want_shutdown);
    host.reply(&asked, BrokerHeartbeatResponse { fenced: false, ..BrokerHeartbeatResponse::default() });
    assert_eq!(host.exit, None, "leaderships have to move first");
    host.advance(2000);
    let (asked, _) = host.heartbeat();
    host.reply(&asked, BrokerHeartbeatResponse { may_shutdown: true, ..BrokerHeartbeatResponse::default() });
    assert_eq!(host.exit, Some(ExitReason::Shutdown));
    host.disk.crash_hard();
    host.boot();
    assert_eq!(host.register(3).previous_epoch, BrokerEpoch(1));
    host.end = 0;
    host.metadata(&[register_broker(2, 0), register_broker(1, 3), topic(0, 7, "orders"), partition(0, 0, 0, 1, &[1])]);
    assert!(host.trace.contains(&Trace::LogRecovered { partition: P0, start: Offset(0), end: Offset(1), clean: true }));
    // A crash now: the marker was used up.
    host.disk.crash_hard();
    host.boot();
    assert_eq!(host.register(9).previous_epoch, BrokerEpoch(-1));
}

/// I18
#[test]
fn i18_the_log_of_a_deleted_topic_does_not_serve_its_successor() {
    for on in [true, false] {
        let mut host = Host::running();
        host.guards.set(guard::LogsByTopicId, on);
        host.metadata(&[topic(0, 7, "orders"), partition(0, 0, 0, 1, &[1])]);
        host.open_client();
        host.client(1, produce(1));
        // Killed; meanwhile the topic is deleted and created again.
        host.boot();
        host.register(2);
        host.metadata(&[
            register_broker(2, 0),
            register_broker(1, 2),
            topic(0, 7, "orders"),
            partition(0, 0, 0, 1, &[1]),
            Record::RemoveTopic { topic: TopicIx(0) },
            topic(1, 8, "orders"),
            partition(1, 1, 0, 1, &[1]),
        ]);
        let end = host.broker().replicas.log(PartitionIx(1)).unwrap().end();
        assert_eq!(end == Offset(0), on);
        if on {
            let dirs = crate::ports::Disk::list_dirs(&host.disk);
            assert!(!dirs.contains(&crate::ports::DirName::Partition {
                topic: TopicLife { id: TopicId(7), ix: TopicIx(0) },
                partition: 0
            }));
        }
    }
}

#[test]
fn watermarks_are_checkpointed_and_come_back_after_a_kill() {
    let mut host = Host::running();
    host.metadata(&[topic(0, 7, "orders"), partition(0, 0, 0, 1, &[1])]);
    host.open_client();
    host.client(1, produce(-1));
    host.advance(5000);
    host.boot();
    host.register(2);
    host.metadata(&[
        register_broker(2, 0),
        register_broker(1, 2),
        topic(0, 7, "orders"),
        partition(0, 0, 0, 2, &[1, 2]),
    ]);
    let log = host.broker().replicas.log(P0).unwrap();
    assert_eq!((log.end(), log.high_watermark()), (Offset(1), Offset(1)));
}

#[path = "orders_tests.rs"]
mod orders;

#[path = "reads_tests.rs"]
mod reads;
