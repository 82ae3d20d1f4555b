//! What metadata makes of a replica.

use crate::guards::replication as guard;
use crate::ids::{BrokerId, LeaderEpoch, Offset, PartitionEpoch};
use crate::replica::testing::{state, Rig, P0};
use crate::replica::Role;

/// LEAD-23
#[test]
fn lead_23_older_metadata_is_ignored_and_the_same_epoch_keeps_state() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0, 1], &state(0, 2, 5, &[0, 1], &[0, 1]));
    rig.settle();
    rig.produce(0, 3, 1, 1);
    rig.settle();
    let before = rig.nodes[0].replicas.get(P0).unwrap().leader.unwrap().clone();
    assert_eq!(before.followers[0].position, Offset(3));
    // Older partition epoch, other leader.
    rig.metadata(&[0], &state(1, 1, 4, &[0, 1], &[1]));
    let replica = rig.nodes[0].replicas.get(P0).unwrap();
    assert_eq!((replica.role(), replica.partition_epoch()), (Role::Leader, PartitionEpoch(5)));
    // The same at the follower: it goes on with the leader that it has.
    let held = format!("{:?}", rig.nodes[1].slot());
    rig.metadata(&[1], &state(1, 1, 4, &[0, 1], &[1]));
    let replica = rig.nodes[1].replicas.get(P0).unwrap();
    assert_eq!((replica.role(), replica.partition_epoch()), (Role::Follower(BrokerId(0)), PartitionEpoch(5)));
    assert_eq!(format!("{:?}", rig.nodes[1].slot()), held);
    // The same leader epoch, once with the same and once with a newer partition epoch.
    for partition_epoch in [5, 6] {
        rig.metadata(&[0], &state(0, 2, partition_epoch, &[0, 1], &[0, 1]));
        let after = rig.nodes[0].replicas.get(P0).unwrap().leader.unwrap();
        assert_eq!(after.followers, before.followers);
        assert_eq!((after.epoch_start, after.isr), (before.epoch_start, before.isr));
    }
}

/// R23 as a mutant: every update resets.
#[test]
fn r23_the_mutant_forgets_positions_in_the_same_epoch() {
    let mut rig = Rig::new(2, 1);
    rig.guard(guard::SameEpochKeepsState, false);
    rig.metadata(&[0, 1], &state(0, 2, 5, &[0, 1], &[0, 1]));
    rig.settle();
    rig.metadata(&[0], &state(0, 2, 6, &[0, 1], &[0, 1]));
    let leader = rig.nodes[0].replicas.get(P0).unwrap().leader.unwrap();
    assert_eq!(leader.followers[0].position, Offset::UNKNOWN);
}

/// R07
#[test]
fn r07_a_new_epoch_forgets_positions() {
    for on in [true, false] {
        let mut rig = Rig::new(2, 1);
        rig.guard(guard::PositionsResetInNewEpoch, on);
        rig.metadata(&[0, 1], &state(0, 0, 0, &[0, 1], &[0, 1]));
        rig.settle();
        rig.produce(0, 1, 1, 1);
        rig.settle();
        rig.metadata(&[0], &state(0, 1, 1, &[0, 1], &[0]));
        let position = rig.nodes[0].replicas.get(P0).unwrap().leader.unwrap().followers[0].position;
        assert_eq!(position == Offset::UNKNOWN, on);
    }
}

#[test]
fn a_replica_that_is_not_ours_any_more_is_removed() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0, 1], &state(0, 0, 0, &[0, 1], &[0, 1]));
    rig.settle();
    rig.metadata(&[1], &state(0, 1, 1, &[0], &[0]));
    assert!(rig.nodes[1].replicas.get(P0).is_none());
    assert!(rig.nodes[1].replicas.is_empty());
    assert_eq!(rig.nodes[1].fetchers.fetchers()[0].slots().count(), 0);
    // And comes back empty, in the same place.
    rig.metadata(&[0, 1], &state(0, 2, 2, &[0, 1], &[0]));
    rig.settle();
    assert_eq!(rig.nodes[1].replicas.len(), 1);
    assert_eq!(rig.nodes[1].slot().leader_epoch, LeaderEpoch(2));
}

#[test]
fn leader_and_follower_swap() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0, 1], &state(0, 0, 0, &[0, 1], &[0, 1]));
    rig.settle();
    rig.produce(0, 1, 1, 1);
    rig.settle();
    rig.metadata(&[0, 1], &state(1, 1, 1, &[0, 1], &[0, 1]));
    rig.settle();
    rig.produce(1, 1, 2, -1);
    rig.settle();
    assert_eq!((rig.nodes[0].end(), rig.nodes[1].hw()), (2, 2));
    assert_eq!(rig.nodes[0].replicas.get(P0).unwrap().role(), Role::Follower(BrokerId(1)));
    assert_eq!(rig.done.len(), 1);
}

#[test]
fn hot_fields_and_session_slots_stay_small() {
    assert_eq!(size_of::<crate::replica::partition::Hot>(), 32);
    assert!(size_of::<crate::replica::LeaderState>() <= 240);
    assert!(size_of::<crate::replica::fetch_session::SessionSlot>() <= 40);
    assert!(size_of::<crate::replica::replica_fetcher::FetchSlot>() <= 56);
}
