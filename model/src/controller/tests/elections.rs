use super::*;
use crate::guards::controller as guard;
use crate::trace::ElectionKind;

fn elect(rig: &mut Rig, unclean: bool, parts: &[PartitionIx]) -> Vec<ErrorCode> {
    let request = ElectLeadersRequest { unclean, parts: parts.to_vec() };
    let Body::ElectLeadersResponse(answer) = rig.ask(request) else { panic!() };
    answer.parts.into_iter().map(|(_, error)| error).collect()
}
fn elections(rig: &Rig) -> Vec<(i32, i32, ElectionKind)> {
    let elected = |t: &Trace| match t {
        Trace::Elected { leader, epoch, kind, .. } => Some((leader.0, epoch.0, *kind)),
        _ => None,
    };
    rig.traces.iter().filter_map(elected).collect()
}

#[test]
fn lead_30_preferred_elections() {
    let mut rig = Rig::new(without_elr());
    rig.bring_up(&[1, 2, 3, 4]);
    rig.fence(&[1]);
    let p = rig.topic("foo", &[&[1, 2, 3], &[2, 3, 4]], &[]);
    assert_eq!(rig.short(p[0]), (2, 0, vec![2, 3], vec![]));
    // The preferred replica is out of the ISR, fenced or not: nothing moves.
    assert_eq!(elect(&mut rig, false, &p), [ErrorCode::PreferredLeaderNotAvailable, ErrorCode::ElectionNotNeeded]);
    rig.beat(1, false, false);
    assert_eq!(elect(&mut rig, false, &p[..1]), [ErrorCode::PreferredLeaderNotAvailable]);
    assert_eq!(rig.short(p[0]), (2, 0, vec![2, 3], vec![]));
    // In the ISR it takes over, once.
    rig.propose(p[0], &[2, 3, 1]);
    let end = rig.end();
    assert_eq!(elect(&mut rig, false, &[]), [ErrorCode::None]);
    assert_eq!(rig.short(p[0]), (1, 1, vec![2, 3, 1], vec![]));
    assert_eq!((rig.end(), elections(&rig)), (end + 1, vec![(1, 1, ElectionKind::Preferred)]));
    assert_eq!(elect(&mut rig, false, &[]), []);
    assert_eq!(elect(&mut rig, false, &[PartitionIx(99)]), [ErrorCode::UnknownTopicOrPartition]);
}

#[test]
fn a_preferred_election_is_never_an_unclean_one() {
    let mut rig = Rig::new(without_elr());
    rig.bring_up(&[1, 2]);
    let p = rig.topic("foo", &[&[1, 2]], &[("unclean.leader.election.enable", "true")])[0];
    rig.fence(&[1]);
    rig.beat(1, false, false);
    assert_eq!(elect(&mut rig, false, &[p]), [ErrorCode::PreferredLeaderNotAvailable]);
    assert_eq!(rig.short(p), (2, 1, vec![2], vec![]));
}

#[test]
fn balance_returns_leaderships_by_itself() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2]);
    let p = rig.topic("foo", &[&[1, 2], &[2, 1]], &[]);
    rig.fence(&[1]);
    rig.beat(1, false, false);
    assert_eq!((rig.short(p[0]).0, rig.short(p[1]).0), (2, 2));
    rig.propose(p[0], &[2, 1]);
    for _ in 0..200 {
        rig.pass(2_000);
        rig.beat(1, false, false);
        rig.beat(2, false, false);
    }
    assert_eq!(rig.short(p[0]), (1, 2, vec![2, 1], vec![]));
}

#[test]
fn an_unclean_election_needs_permission_or_an_order() {
    let mut rig = Rig::new(without_elr());
    rig.bring_up(&[1, 2]);
    let p = rig.topic("foo", &[&[1, 2]], &[])[0];
    rig.propose(p, &[1]);
    rig.fence(&[1]);
    assert_eq!(rig.short(p), (-1, 1, vec![1], vec![]));
    assert_eq!(elect(&mut rig, true, &[p]), [ErrorCode::None]);
    assert_eq!((rig.short(p), rig.state(p).recovering), ((2, 2, vec![2], vec![]), true));
    assert_eq!(elect(&mut rig, true, &[p]), [ErrorCode::ElectionNotNeeded]);
    rig.fence(&[2]);
    assert_eq!(elect(&mut rig, true, &[p]), [ErrorCode::EligibleLeadersNotAvailable]);
}

#[test]
fn permission_given_later_elects_at_once() {
    let mut rig = Rig::new(without_elr());
    rig.bring_up(&[1, 2]);
    let p = rig.topic("foo", &[&[1, 2]], &[])[0];
    rig.propose(p, &[1]);
    rig.fence(&[1]);
    let topic = ConfigResource::Topic("foo".into());
    assert_eq!(rig.set_config(topic, "unclean.leader.election.enable", Some("true")).error, ErrorCode::None);
    assert_eq!(rig.short(p), (2, 2, vec![2], vec![]));
}

#[test]
fn the_life_of_an_elr() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2, 3]);
    let p = rig.topic("foo", &[&[1, 2, 3]], &[("min.insync.replicas", "2")])[0];
    // Below the minimum, who leaves is still complete.
    rig.fence(&[3]);
    assert_eq!(rig.short(p), (1, 0, vec![1, 2], vec![]));
    rig.fence(&[2]);
    assert_eq!(rig.short(p), (1, 0, vec![1], vec![2]));
    rig.fence(&[1]);
    assert_eq!(rig.short(p), (-1, 1, vec![], vec![2, 1]));
    assert_eq!(rig.state(p).last_known_elr.as_slice(), [BrokerId(1)]);
    // 3 was let go while the ISR was above the minimum: it may not lead. 2 may.
    rig.beat(3, false, false);
    assert_eq!(rig.short(p).0, -1);
    rig.beat(2, false, false);
    assert_eq!(rig.short(p), (2, 2, vec![2], vec![1]));
    assert_eq!(elections(&rig).last(), Some(&(2, 2, ElectionKind::Eligible)));
    assert!(!rig.state(p).recovering);
    // At the minimum again, the ELR is empty.
    rig.propose(p, &[2, 3]);
    assert_eq!((rig.short(p), rig.state(p).last_known_elr.len()), ((2, 2, vec![2, 3], vec![]), 0));
}

#[test]
fn an_elr_ends_with_a_change_of_the_minimum() {
    for on in [true, false] {
        let mut rig = Rig::new(config());
        rig.guards.set(guard::ElrClearedOnMinIsrChange, on);
        rig.bring_up(&[1, 2]);
        let p = rig.topic("foo", &[&[1, 2]], &[("min.insync.replicas", "2")])[0];
        rig.fence(&[2]);
        assert_eq!(rig.short(p).3, [2]);
        rig.set_config(ConfigResource::Topic("foo".into()), "min.insync.replicas", Some("1"));
        assert_eq!(rig.short(p).3.is_empty(), on);
        assert!(rig.guards.was_hit(guard::ElrClearedOnMinIsrChange));
    }
    // Nobody in sync: nobody commits, and the ELR is all there is.
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2]);
    let p = rig.topic("foo", &[&[1, 2]], &[("min.insync.replicas", "2")])[0];
    rig.fence(&[1, 2]);
    rig.set_config(ConfigResource::Broker(None), "min.insync.replicas", Some("1"));
    assert_eq!(rig.short(p), (-1, 2, vec![], vec![1, 2]));
}

#[test]
fn the_last_known_leader_returns_only_unfenced() {
    for on in [true, false] {
        let mut rig = Rig::new(config());
        rig.guards.set(guard::LastKnownLeaderUnfenced, on);
        rig.bring_up(&[1, 2]);
        let p = rig.topic("foo", &[&[1, 2]], &[])[0];
        rig.propose(p, &[1]);
        rig.pass(9_500);
        assert_eq!(rig.short(p), (-1, 1, vec![], vec![1]));
        // The last leader comes back without its marker: nobody is known to be complete.
        rig.register_as(1, 111, -1);
        if on {
            assert_eq!(rig.short(p), (-1, 2, vec![], vec![]));
        } else {
            assert_eq!(rig.short(p).0, 1);
            assert!(rig.guards.was_hit(guard::LastKnownLeaderUnfenced));
            continue;
        }
        rig.register_as(2, 222, -1);
        rig.beat(2, false, false);
        assert_eq!(rig.short(p).0, -1);
        rig.beat(1, false, false);
        assert_eq!((rig.short(p), rig.state(p).recovering), ((1, 3, vec![1], vec![]), true));
    }
}

#[test]
fn mutants_of_elections() {
    let mut rig = Rig::new(without_elr());
    rig.guards.set(guard::ElectionFromIsrOnly, false);
    rig.guards.set(guard::LeaderChangeRaisesEpoch, false);
    rig.bring_up(&[1, 2, 3]);
    let p = rig.topic("foo", &[&[1, 2, 3]], &[])[0];
    rig.propose(p, &[1, 3]);
    rig.fence(&[1]);
    assert_eq!(rig.short(p), (2, 0, vec![3, 2], vec![]));
}

#[test]
fn an_operator_moves_a_leadership_to_an_in_sync_replica_only() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2, 3]);
    let p = rig.topic("foo", &[&[1, 2, 3]], &[])[0];
    rig.propose(p, &[1, 2]);
    rig.move_leaders(&[(p, BrokerId(3)), (p, BrokerId(2)), (p, BrokerId(1)), (PartitionIx(9), BrokerId(1))]);
    assert_eq!(rig.short(p), (2, 1, vec![1, 2], vec![]));
}

/// ULE-09. Three partitions of which only the last replica is in sync when all are fenced; then broker 2 comes back. With
/// permission, given at creation or later, it leads the two that it has a replica of, at once; without, nothing is written. The
/// one that it has no replica of stays without a leader, whatever is ordered.
#[test]
fn ule_09_who_leads_uncleanly_and_when() {
    const KEY: &str = "unclean.leader.election.enable";
    for (at_creation, later) in [(false, false), (true, false), (false, true)] {
        let mut rig = Rig::new(without_elr());
        rig.bring_up(&[1, 2, 3, 4, 5]);
        let configs: &[(&str, &str)] = if at_creation { &[(KEY, "true")] } else { &[] };
        let p = rig.topic("foo", &[&[1, 2, 4], &[1, 3, 4], &[5, 2, 4]], configs);
        for broker in [1, 2, 3, 5, 4] {
            rig.fence(&[broker]);
        }
        for partition in &p {
            let (leader, _, isr, _) = rig.short(*partition);
            assert_eq!((leader, isr), (-1, vec![4]));
        }
        rig.beat(2, false, false);
        if !at_creation {
            let end = rig.end();
            rig.pass(1_000);
            assert_eq!((rig.short(p[0]).0, rig.end()), (-1, end), "nothing is written");
        }
        if later {
            assert_eq!(rig.set_config(ConfigResource::Topic("foo".into()), KEY, Some("true")).error, ErrorCode::None);
        }
        let leads = at_creation || later;
        for (partition, led) in [(p[0], leads), (p[1], false), (p[2], leads)] {
            let (leader, _, isr, _) = rig.short(partition);
            assert_eq!((leader, isr), if led { (2, vec![2]) } else { (-1, vec![4]) }, "{at_creation}, {later}");
        }
        // By order it needs no permission.
        let asked = elect(&mut rig, true, &p);
        let of_two = if leads { ErrorCode::ElectionNotNeeded } else { ErrorCode::None };
        assert_eq!(asked, [of_two, ErrorCode::EligibleLeadersNotAvailable, of_two]);
        assert_eq!((rig.short(p[0]).0, rig.short(p[1]).0, rig.short(p[2]).2), (2, -1, vec![2]));
    }
}

/// ULE-13. Another minimum empties the eligible set; the same one again leaves the partition, and its epoch, alone.
#[test]
fn ule_13_the_minimum_that_stays_changes_nothing() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2, 3]);
    let p = rig.topic("foo", &[&[1, 2, 3]], &[("min.insync.replicas", "3")])[0];
    rig.fence(&[3]);
    assert_eq!(rig.short(p).3, [3]);
    let topic = || ConfigResource::Topic("foo".into());
    assert_eq!(rig.set_config(topic(), "min.insync.replicas", Some("2")).error, ErrorCode::None);
    assert!(rig.short(p).3.is_empty());
    let before = rig.state(p);
    assert_eq!(rig.set_config(topic(), "min.insync.replicas", Some("2")).error, ErrorCode::None);
    assert_eq!(rig.state(p), before);
}

/// ULE-07. A value that is none is refused when it is set, and nothing changes.
#[test]
fn ule_07_a_value_that_is_none_is_refused() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2]);
    rig.topic("foo", &[&[1, 2]], &[]);
    let end = rig.end();
    let refused =
        rig.set_config(ConfigResource::Topic("foo".into()), "unclean.leader.election.enable", Some("invalid"));
    assert_eq!((refused.error, rig.end()), (ErrorCode::InvalidConfig, end));
}
