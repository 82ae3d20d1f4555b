use super::*;
use crate::guards::controller as guard;

#[test]
fn brk_16_fencing_several_brokers() {
    let mut rig = Rig::new(without_elr());
    rig.bring_up(&[0, 1, 2, 3, 4]);
    let p = rig.topic("foo", &[&[1, 2, 3], &[2, 3, 4], &[0, 2, 1]], &[]);
    rig.fence(&[2, 3]);
    assert_eq!(rig.short(p[0]), (1, 0, vec![1], vec![]));
    assert_eq!(rig.short(p[1]), (4, 2, vec![4], vec![]));
    assert_eq!(rig.short(p[2]), (0, 0, vec![0, 1], vec![]));
    rig.fence(&[0, 1, 4]);
    assert_eq!(rig.short(p[0]), (-1, 1, vec![1], vec![]));
    assert_eq!(rig.short(p[1]), (-1, 3, vec![4], vec![]));
    assert_eq!(rig.short(p[2]), (-1, 2, vec![1], vec![]));
}

#[test]
fn a_broker_is_let_in_when_it_applied_its_own_registration() {
    let mut rig = Rig::new(config());
    let epoch = rig.register_as(1, 11, -1).epoch;
    assert!(rig.beat_at(1, epoch.0, false, false).fenced);
    assert!(rig.beat_at(1, epoch.0 + 1, true, false).fenced);
    assert!(!rig.beat_at(1, epoch.0 + 1, false, false).fenced);
    assert!(rig.controller.image().is_active(BrokerId(1)));
    let fenced: Vec<_> = rig.traces.iter().filter(|t| matches!(t, Trace::BrokerFenced { .. })).copied().collect();
    let broker = BrokerId(1);
    assert_eq!(fenced, [Trace::BrokerFenced { broker, fenced: true }, Trace::BrokerFenced { broker, fenced: false }]);
}

#[test]
fn who_may_register() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1]);
    let epoch = rig.epoch_of(1);
    let end = rig.end();
    assert_eq!(rig.register_as(1, 99, -1).error, ErrorCode::DuplicateBrokerRegistration);
    let again = rig.register_as(1, 1, -1);
    assert_eq!((again.error, again.epoch, again.incarnation, rig.end()), (ErrorCode::None, epoch, 1, end));
    let foreign = BrokerRegistrationRequest {
        broker: BrokerId(2),
        cluster_id: "west".into(),
        incarnation: 3,
        node: NodeId(2),
        previous_epoch: BrokerEpoch(-1),
    };
    let Body::BrokerRegistrationResponse(answer) = rig.ask(foreign) else { panic!() };
    assert_eq!(answer.error, ErrorCode::InconsistentClusterId);
    rig.pass(9_000);
    assert!(!rig.controller.image().is_active(BrokerId(1)));
    assert_eq!(rig.register_as(1, 99, -1).error, ErrorCode::None);
    assert!(rig.epoch_of(1) > epoch);
    let stale = BrokerHeartbeatRequest {
        broker: BrokerId(1),
        epoch,
        metadata_offset: MetadataOffset(100),
        want_fence: false,
        want_shutdown: false,
    };
    let Body::BrokerHeartbeatResponse(answer) = rig.ask(stale) else { panic!() };
    assert_eq!(answer.error, ErrorCode::StaleBrokerEpoch);
}

#[test]
fn a_silent_broker_is_fenced_when_its_session_ends_and_a_heard_one_is_not() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2, 3]);
    let p = rig.topic("foo", &[&[1, 2, 3]], &[("min.insync.replicas", "2")]);
    for _ in 0..4 {
        rig.pass(2_000);
        rig.beat(2, false, false);
        rig.beat(3, false, false);
    }
    assert!(rig.controller.image().is_active(BrokerId(1)));
    rig.pass(1_000);
    assert!(!rig.controller.image().is_active(BrokerId(1)));
    assert_eq!(rig.short(p[0]), (2, 1, vec![2, 3], vec![]));
    assert!(rig.controller.image().is_active(BrokerId(2)));
}

#[test]
fn an_unclean_registration_leaves_isr_and_elr_and_raises_the_leader_epoch() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2, 3]);
    let p = rig.topic("foo", &[&[1, 2, 3], &[3, 2, 1]], &[("min.insync.replicas", "3")]);
    let clean_epoch = rig.epoch_of(3);
    rig.pass(8_000);
    rig.beat(1, false, false);
    rig.beat(2, false, false);
    rig.pass(1_500);
    // Fenced: out of the ISR, and complete, so in the ELR.
    assert_eq!(rig.short(p[0]), (1, 0, vec![1, 2], vec![3]));
    assert_eq!(rig.short(p[1]), (2, 1, vec![2, 1], vec![3]));
    let mut clean = Rig { disk: rig.disk.clone(), ..Rig::new(config()) };
    clean.controller = rig.controller.clone();
    clean.guards = rig.guards.clone();
    clean.now = rig.now;
    assert_eq!(clean.register_as(3, 33, clean_epoch.0).error, ErrorCode::None);
    assert_eq!(clean.short(p[0]), (1, 0, vec![1, 2], vec![3]));
    // Without the marker it may lack what it had: out of both, and the epoch tells the leader.
    assert_eq!(rig.register_as(3, 33, -1).error, ErrorCode::None);
    assert_eq!(rig.short(p[0]), (1, 1, vec![1, 2], vec![]));
    assert_eq!(rig.short(p[1]), (2, 2, vec![2, 1], vec![]));
}

#[test]
fn the_unclean_registration_guards_can_be_switched_off() {
    for (off, expected) in [
        (guard::UncleanRegistrationLeavesIsr, (1, 0, vec![1, 2], vec![3])),
        (guard::UncleanRegistrationBumpsEpoch, (1, 0, vec![1, 2], vec![])),
    ] {
        let mut rig = Rig::new(config());
        rig.guards.set(off, false);
        rig.bring_up(&[1, 2, 3]);
        let p = rig.topic("foo", &[&[1, 2, 3]], &[("min.insync.replicas", "3")]);
        rig.fence(&[3]);
        rig.pass(8_000);
        rig.beat(1, false, false);
        rig.beat(2, false, false);
        rig.pass(2_000);
        assert_eq!(rig.register_as(3, 33, -1).error, ErrorCode::None);
        assert_eq!(rig.short(p[0]), expected);
        assert!(rig.guards.was_hit(off));
    }
}

#[test]
fn a_controlled_shutdown_moves_leaderships_and_ends_when_the_others_know() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2, 3]);
    let p = rig.topic("foo", &[&[1, 2, 3], &[2, 1, 3]], &[]);
    let before = rig.end();
    let answer = rig.beat(1, false, true);
    assert_eq!((answer.fenced, answer.may_shutdown), (false, false));
    assert_eq!(rig.short(p[0]), (2, 1, vec![2, 3], vec![]));
    assert_eq!(rig.short(p[1]), (2, 0, vec![2, 3], vec![]));
    rig.beat_at(2, before, false, false);
    rig.beat_at(3, rig.end(), false, false);
    assert!(!rig.beat(1, false, true).may_shutdown);
    rig.beat(2, false, false);
    let answer = rig.beat(1, false, true);
    assert_eq!((answer.fenced, answer.may_shutdown), (true, true));
    // Its successor need not wait for the session's end.
    let epoch = rig.epoch_of(1);
    assert_eq!(rig.register_as(1, 12, epoch.0).error, ErrorCode::None);
}

#[test]
fn a_broker_that_leads_nothing_may_stop_at_once() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2]);
    let p = rig.topic("foo", &[&[2, 1]], &[]);
    assert!(rig.beat(1, false, true).may_shutdown);
    assert_eq!(rig.short(p[0]), (2, 0, vec![2], vec![]));
}

#[test]
fn producer_id_blocks_do_not_overlap_and_begin_where_the_cluster_says() {
    let mut rig = Rig::new(ControllerConfig { first_producer: crate::ids::ProducerId(5_000), ..config() });
    rig.bring_up(&[1]);
    let broker_epoch = rig.epoch_of(1);
    let mut block = |epoch| {
        let request = AllocateProducerIdsRequest { broker: BrokerId(1), broker_epoch: epoch };
        let Body::AllocateProducerIdsResponse(answer) = rig.ask(request) else { panic!() };
        (answer.error, answer.first.0, answer.count)
    };
    assert_eq!(block(broker_epoch), (ErrorCode::None, 5_000, 1_000));
    assert_eq!(block(broker_epoch), (ErrorCode::None, 6_000, 1_000));
    assert_eq!(block(BrokerEpoch(77)), (ErrorCode::StaleBrokerEpoch, -1, 0));
}

#[test]
fn mutants_of_broker_life() {
    let mut rig = Rig::new(config());
    for off in [
        guard::FencedLeavesIsr,
        guard::DuplicateRegistrationRefused,
        guard::UnfenceNeedsCatchUp,
        guard::RegistrationClusterIdMatches,
    ] {
        rig.guards.set(off, false);
    }
    rig.bring_up(&[1, 2]);
    let p = rig.topic("foo", &[&[1, 2]], &[])[0];
    rig.fence(&[1]);
    assert_eq!(rig.short(p), (2, 1, vec![1, 2], vec![]));
    assert!(!rig.beat_at(1, 0, false, false).fenced);
    let before = rig.epoch_of(2);
    assert_eq!(rig.register_as(2, 22, before.0).error, ErrorCode::None);
    for hit in [guard::FencedLeavesIsr, guard::DuplicateRegistrationRefused, guard::UnfenceNeedsCatchUp] {
        assert!(rig.guards.was_hit(hit));
    }
}
