use super::*;
use crate::guards::controller as guard;

fn three() -> (Rig, PartitionIx) {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2, 3, 4]);
    let p = rig.topic("foo", &[&[1, 2, 3]], &[]);
    (rig, p[0])
}
fn with(rig: &Rig, isr: &[i32]) -> Vec<(BrokerId, BrokerEpoch)> {
    isr.iter().map(|b| (BrokerId(*b), rig.epoch_of(*b))).collect()
}

#[test]
fn a_shrink_and_a_growth_raise_the_partition_epoch_and_leave_the_leader_epoch() {
    let (mut rig, p) = three();
    let verdict = rig.propose(p, &[1, 2]);
    assert_eq!((verdict.error, verdict.leader_epoch.0, verdict.partition_epoch.0), (ErrorCode::None, 0, 1));
    let verdict = rig.propose(p, &[1, 2, 3]);
    assert_eq!((verdict.error, verdict.partition_epoch.0, verdict.isr.len()), (ErrorCode::None, 2, 3));
    let end = rig.end();
    let same = rig.propose(p, &[1, 2, 3]);
    assert_eq!((same.error, same.partition_epoch.0, rig.end()), (ErrorCode::None, 2, end));
}

#[test]
fn each_wrong_proposal_has_its_error_and_changes_nothing() {
    let (mut rig, p) = three();
    rig.propose(p, &[1, 2]);
    rig.fence(&[3]);
    let before = rig.state(p);
    assert_eq!((before.leader_epoch.0, before.partition_epoch.0), (0, 1));
    let all = with(&rig, &[1, 2]);
    let fenced = with(&rig, &[1, 2, 3]);
    let foreign = with(&rig, &[1, 4]);
    let twice = with(&rig, &[1, 1]);
    let absent = with(&rig, &[2]);
    let restarted = vec![(BrokerId(1), BrokerEpoch(-1)), (BrokerId(2), BrokerEpoch(1234))];
    for (leader, leader_epoch, partition_epoch, isr, error) in [
        (1, 1, 1, all.clone(), ErrorCode::NotController),
        (1, 0, 2, all.clone(), ErrorCode::NotController),
        (2, 0, 1, all.clone(), ErrorCode::InvalidRequest),
        (1, -1, 1, all.clone(), ErrorCode::FencedLeaderEpoch),
        (1, 0, 0, all.clone(), ErrorCode::InvalidUpdateVersion),
        (1, 0, 1, foreign, ErrorCode::InvalidRequest),
        (1, 0, 1, twice, ErrorCode::InvalidRequest),
        (1, 0, 1, absent, ErrorCode::InvalidRequest),
        (1, 0, 1, fenced, ErrorCode::IneligibleReplica),
        (1, 0, 1, restarted, ErrorCode::IneligibleReplica),
    ] {
        let verdict = rig.propose_as(leader, p, leader_epoch, partition_epoch, isr, false);
        assert_eq!(verdict.error, error);
        assert_eq!(rig.state(p), before);
    }
    let verdict = rig.propose_as(1, PartitionIx(77), 0, 0, all, false);
    assert_eq!(verdict.error, ErrorCode::UnknownTopicOrPartition);
}

#[test]
fn a_request_of_an_earlier_life_is_refused_whole() {
    let (mut rig, _) = three();
    let request = AlterPartitionRequest { broker: BrokerId(1), broker_epoch: BrokerEpoch(0), parts: Vec::new() };
    let Body::AlterPartitionResponse(answer) = rig.ask(request) else { panic!() };
    assert_eq!(answer.error, ErrorCode::StaleBrokerEpoch);
    let request = AlterPartitionRequest { broker: BrokerId(9), broker_epoch: BrokerEpoch(0), parts: Vec::new() };
    let Body::AlterPartitionResponse(answer) = rig.ask(request) else { panic!() };
    assert_eq!(answer.error, ErrorCode::BrokerIdNotRegistered);
}

#[test]
fn one_request_may_name_a_partition_once() {
    let (mut rig, p) = three();
    let proposal = |isr: &[i32]| IsrProposal {
        partition: p,
        leader_epoch: LeaderEpoch(0),
        partition_epoch: PartitionEpoch(0),
        isr: isr.iter().map(|b| (BrokerId(*b), BrokerEpoch(-1))).collect(),
        recovered: false,
    };
    let request = AlterPartitionRequest {
        broker: BrokerId(1),
        broker_epoch: rig.epoch_of(1),
        parts: vec![proposal(&[1, 2]), proposal(&[1, 3])],
    };
    let Body::AlterPartitionResponse(answer) = rig.ask(request) else { panic!() };
    let errors: Vec<_> = answer.parts.iter().map(|v| v.error).collect();
    assert_eq!(errors, [ErrorCode::None, ErrorCode::InvalidUpdateVersion]);
    assert_eq!(rig.short(p).2, [1, 2]);
}

#[test]
fn with_a_guard_off_the_wrong_proposal_passes() {
    for (off, fence) in [(guard::AlterPartitionEpochMatches, None), (guard::AlterPartitionEligibility, Some(3))] {
        let (mut rig, p) = three();
        rig.guards.set(off, false);
        rig.propose(p, &[1, 2]);
        if let Some(broker) = fence {
            rig.fence(&[broker]);
        }
        let version = i32::from(fence.is_some());
        let isr = with(&rig, &[1, 2, 3]);
        assert_eq!(rig.propose_as(1, p, 0, version, isr, false).error, ErrorCode::None);
        assert_eq!(rig.short(p).2, [1, 2, 3]);
        assert!(rig.guards.was_hit(off));
    }
}

#[test]
fn recovery_after_an_unclean_election_comes_before_growth() {
    let mut rig = Rig::new(without_elr());
    rig.bring_up(&[1, 2]);
    let p = rig.topic("foo", &[&[1, 2]], &[("unclean.leader.election.enable", "true")])[0];
    rig.propose(p, &[1]);
    rig.fence(&[1]);
    assert_eq!((rig.short(p), rig.state(p).recovering), ((2, 1, vec![2], vec![]), true));
    rig.beat(1, false, false);
    assert_eq!(rig.propose(p, &[2, 1]).error, ErrorCode::InvalidRequest);
    let version = rig.state(p).partition_epoch.0;
    let isr = with(&rig, &[2]);
    assert_eq!(rig.propose_as(2, p, 1, version, isr, true).error, ErrorCode::None);
    assert!(!rig.state(p).recovering);
    assert_eq!(rig.propose(p, &[2, 1]).error, ErrorCode::None);
}
