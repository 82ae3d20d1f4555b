use super::*;
use crate::controller::controller::Role;
use crate::controller::state::ReplicaIndex;
use crate::guards::controller as guard;
use crate::ports::ExitReason;

/// A history with something of everything.
fn history(rig: &mut Rig) {
    rig.bring_up(&[1, 2, 3]);
    let p = rig.topic("t", &[&[1, 2, 3], &[2, 3, 1]], &[("min.insync.replicas", "2")]);
    rig.fence(&[3]);
    rig.fence(&[2]);
    rig.topic("gone", &[&[1]], &[]);
    rig.ask(DeleteTopicsRequest { topics: vec!["gone".into()] });
    rig.beat(2, false, false);
    rig.propose(p[0], &[1, 2]);
    rig.beat(3, false, false);
    let configs = vec![("bootstrap.servers".into(), "7".into()), ("source.cluster.id".into(), "west".into())];
    rig.ask(CreateClusterMirrorRequest { mirror: "m".into(), configs });
}

fn same_state(a: &Controller, b: &Controller) {
    // The terms differ by the restart; everything else is the same, leader epochs included.
    let (a, b) = (a.image(), b.image());
    assert!(a.partitions().eq(b.partitions()) && a.topics().eq(b.topics()) && a.brokers().eq(b.brokers()));
    assert!(a.mirrors().eq(b.mirrors()));
    assert_eq!(
        (a.next_topic(), a.next_partition(), a.next_producer()),
        (b.next_topic(), b.next_partition(), b.next_producer())
    );
}

#[test]
fn boot_from_log_and_from_snapshot_and_log_give_the_same_state() {
    let mut by_log = Rig::new(config());
    let snapshots = ControllerConfig { records_between_snapshots: 7, log_segment_bytes: 2_000, ..config() };
    let mut by_snapshot = Rig::new(snapshots.clone());
    history(&mut by_log);
    history(&mut by_snapshot);
    assert_eq!(by_log.controller.image(), by_snapshot.controller.image());
    assert!(by_snapshot.controller.log().unwrap().start().0 > 0);

    let again = Rig::on(config(), by_log.disk.clone(), Guards::default(), by_log.now);
    let from_snapshot = Rig::on(snapshots, by_snapshot.disk.clone(), Guards::default(), by_log.now);
    same_state(&again.controller, &by_log.controller);
    assert_eq!(again.controller.image(), from_snapshot.controller.image());
    assert_eq!(again.controller.image().hash(), from_snapshot.controller.image().hash());
    for rig in [&by_log, &again, &from_snapshot] {
        assert_eq!(rig.controller.state().index(), &ReplicaIndex::of(rig.controller.image()));
        assert_eq!(rig.controller.image(), rig.controller.committed_image());
    }
    assert_eq!(again.controller.role(), Role::Leader(LeaderEpoch(2)));
}

#[test]
fn a_leader_leads_only_when_its_epoch_is_durable() {
    let mut rig = Rig::booted(config(), MemDisk::new(), Guards::default(), Now::default());
    assert_eq!(rig.controller.role(), Role::Claiming(LeaderEpoch(1)));
    rig.auto_flush = false;
    rig.send(CONN, DeleteTopicsRequest { topics: vec!["t".into()] });
    let Some((_, Message { body: Body::DeleteTopicsResponse(answer), .. })) = rig.sent.pop() else { panic!() };
    assert_eq!(answer.topics[0].error, ErrorCode::NotController);
    rig.flush_one(Ok(()));
    assert_eq!(rig.controller.role(), Role::Claiming(LeaderEpoch(1)));
    rig.flush_one(Ok(()));
    assert_eq!(rig.controller.role(), Role::Leader(LeaderEpoch(1)));
    // Power goes before the first record is durable: the next epoch is another one all the same.
    rig.disk.crash_hard();
    let next = Rig::on(config(), rig.disk.clone(), Guards::default(), rig.now);
    assert_eq!(next.controller.role(), Role::Leader(LeaderEpoch(2)));
}

#[test]
fn an_answer_waits_until_its_records_are_durable() {
    for on in [true, false] {
        let mut rig = Rig::new(config());
        rig.guards.set(guard::CommittedBeforeAnswered, on);
        rig.auto_flush = false;
        let request = BrokerRegistrationRequest {
            broker: BrokerId(1),
            cluster_id: "east".into(),
            incarnation: 1,
            node: NodeId(1),
            previous_epoch: BrokerEpoch(-1),
        };
        rig.send(CONN, request);
        assert_eq!(rig.sent.is_empty(), on);
        assert!(rig.controller.has_uncommitted());
        assert!(rig.controller.committed_image().broker(BrokerId(1)).is_none());
        rig.auto_flush = true;
        rig.settle();
        assert_eq!(rig.sent.len(), 1);
        assert!(rig.controller.committed_image().broker(BrokerId(1)).is_some());
        let committed = Trace::MetadataCommitted { end: rig.end(), hash: rig.controller.image().hash() };
        assert_eq!(rig.traces.last(), Some(&committed));
    }
}

#[test]
fn a_failed_flush_rolls_back_refuses_and_ends_the_process() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2]);
    let p = rig.topic("t", &[&[1, 2]], &[])[0];
    let before = rig.controller.image().clone();
    rig.auto_flush = false;
    rig.send(CONN, ElectLeadersRequest { unclean: false, parts: vec![p] });
    rig.sent.clear();
    rig.send(CONN, DeleteTopicsRequest { topics: vec!["t".into()] });
    assert!(rig.controller.image().topic_by_name("t").is_none());
    rig.flush_one(Err(DiskError::Io));
    let Some((_, Message { body: Body::DeleteTopicsResponse(answer), .. })) = rig.sent.pop() else { panic!() };
    assert_eq!(answer.topics[0].error, ErrorCode::KafkaStorageError);
    assert_eq!(rig.controller.image(), &before);
    assert_eq!(rig.controller.state().index(), &ReplicaIndex::of(&before));
    assert_eq!(rig.exits, [Effect::Exit(ExitReason::DiskFailed)]);
}

#[test]
fn requests_of_one_connection_are_served_one_at_a_time() {
    let mut rig = Rig::new(config());
    rig.auto_flush = false;
    let create = |name: &str| CreateTopicsRequest {
        topics: vec![NewTopic { name: name.into(), partitions: 1, replication_factor: 1, ..NewTopic::default() }],
    };
    rig.auto_flush = true;
    rig.bring_up(&[1]);
    rig.auto_flush = false;
    rig.sent.clear();
    rig.send(CONN, create("a"));
    rig.send(CONN, create("b"));
    assert!(rig.controller.image().topic_by_name("a").is_some());
    assert!(rig.controller.image().topic_by_name("b").is_none());
    rig.auto_flush = true;
    rig.settle();
    assert_eq!(rig.sent.len(), 2);
    assert!(rig.controller.image().topic_by_name("b").is_some());
}

#[test]
fn power_loss_takes_only_what_nobody_was_told() {
    for seed in 0..40 {
        let mut rig = Rig::new(config());
        rig.bring_up(&[1, 2]);
        let told = rig.controller.image().clone();
        rig.auto_flush = false;
        for name in ["a", "b", "c"] {
            let new = NewTopic { name: name.into(), partitions: 2, replication_factor: 2, ..NewTopic::default() };
            rig.send(CONN, CreateTopicsRequest { topics: vec![new] });
        }
        rig.disk.crash(seed);
        let after = Rig::on(config(), rig.disk.clone(), Guards::default(), rig.now);
        let image = after.controller.image();
        assert!(image.brokers().eq(told.brokers()), "seed {seed}");
        if let Some(topic) = image.topic_by_name("a") {
            assert_eq!(
                image.topic(topic).unwrap().partitions.len(),
                2,
                "an operation's records survive whole or not at all"
            );
        }
        assert!(image.topic_by_name("b").is_none());
    }
}

#[test]
fn a_torn_snapshot_is_not_used() {
    let snapshots = ControllerConfig { records_between_snapshots: 7, ..config() };
    let mut rig = Rig::new(snapshots.clone());
    history(&mut rig);
    for seed in 0..40 {
        let mut disk = rig.disk.clone();
        disk.crash(seed);
        let after = Rig::on(snapshots.clone(), disk, Guards::default(), rig.now);
        same_state(&after.controller, &rig.controller);
    }
}

#[test]
fn a_voter_that_does_not_lead_says_so_and_in_which_epoch_it_is() {
    let others = ControllerConfig { voters: vec![NodeId(99), NodeId(100)], ..config() };
    let mut rig = Rig::new(others);
    assert_eq!(rig.controller.role(), Role::Leaderless);
    let begin = BeginQuorumEpochRequest {
        voter: NodeId(100),
        voter_directory: crate::controller::quorum::directory_of(NodeId(100)),
        leader: NodeId(99),
        epoch: LeaderEpoch(4),
    };
    rig.ask(begin);
    assert_eq!(rig.controller.role(), Role::Follower(NodeId(99)));
    rig.exits.clear();
    let request = RaftFetchRequest { replica: 1, current_epoch: LeaderEpoch::NONE, ..RaftFetchRequest::default() };
    let Body::RaftFetchResponse(answer) = rig.ask(request) else { panic!() };
    assert_eq!(
        (answer.error, answer.leader, answer.epoch),
        (ErrorCode::NotLeaderOrFollower, Some(NodeId(99)), LeaderEpoch(4))
    );
    rig.send(
        CONN,
        FetchRequest {
            replica: BrokerId(1),
            broker_epoch: BrokerEpoch(-1),
            max_wait_ms: 0,
            min_bytes: 0,
            max_bytes: 0,
            isolation: Isolation::ReadUncommitted,
            session_id: 0,
            session_epoch: 0,
            topic_groups: 0,
            parts: Vec::new(),
            forgotten: Vec::new(),
        },
    );
    assert_eq!(rig.exits, [Effect::Close { conn: CONN }]);
}
