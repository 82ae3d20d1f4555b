//! The view: what it takes and what it refuses.

use super::*;
use crate::client::testing::metadata;

fn view(leaders: &[(i32, i32)]) -> (ClusterView, Guards) {
    let (mut view, mut guards) = (ClusterView::default(), Guards::default());
    let mut changed = Vec::new();
    view.absorb(metadata(leaders), &mut guards, &mut changed);
    assert_eq!(changed.len(), leaders.len());
    (view, guards)
}

fn absorb(view: &mut ClusterView, leaders: &[(i32, i32)], guards: &mut Guards) -> Vec<u32> {
    let mut changed = Vec::new();
    view.absorb(metadata(leaders), guards, &mut changed);
    changed.into_iter().map(|p| p.0).collect()
}

#[test]
fn only_what_changed_is_reported() {
    let (mut view, mut guards) = view(&[(1, 4), (2, 4)]);
    assert_eq!(absorb(&mut view, &[(1, 4), (3, 5)], &mut guards), [1]);
    assert_eq!(view.leadership(PartitionIx(1)).leader, BrokerId(3));
}

#[test]
fn an_older_epoch_is_not_believed_unless_the_guard_is_off() {
    let (mut view, mut guards) = view(&[(1, 4)]);
    assert!(absorb(&mut view, &[(2, 3)], &mut guards).is_empty());
    assert_eq!(view.leadership(PartitionIx(0)).leader, BrokerId(1));
    assert!(guards.was_hit(client::MetadataEpochMonotone));
    guards.set(client::MetadataEpochMonotone, false);
    assert_eq!(absorb(&mut view, &[(2, 3)], &mut guards), [0]);
}

#[test]
fn a_leader_can_be_lost_within_its_epoch() {
    let (mut view, mut guards) = view(&[(1, 4)]);
    assert_eq!(absorb(&mut view, &[(-1, 4)], &mut guards), [0]);
    assert_eq!(view.leadership(PartitionIx(0)).leader, BrokerId::NONE);
}

#[test]
fn a_hint_of_a_newer_epoch_is_taken_with_its_address_and_an_equal_one_is_no_news() {
    let (mut view, mut guards) = view(&[(1, 4)]);
    let mut changed = Vec::new();
    let mut hint = LeaderHint { leader: BrokerId(9), epoch: LeaderEpoch(4), node: Some(NodeId(55)) };
    assert!(!view.hint(PartitionIx(0), hint, &mut guards, &mut changed));
    hint.epoch = LeaderEpoch(5);
    assert!(view.hint(PartitionIx(0), hint, &mut guards, &mut changed));
    assert_eq!((view.leadership(PartitionIx(0)).leader, view.node(BrokerId(9))), (BrokerId(9), Some(NodeId(55))));
    assert_eq!(changed, [PartitionIx(0)]);
    // A leader nobody knows the address of is not of use.
    let hint = LeaderHint { leader: BrokerId(10), epoch: LeaderEpoch(6), node: None };
    assert!(!view.hint(PartitionIx(0), hint, &mut guards, &mut changed));
}

#[test]
fn a_topic_created_again_has_other_partitions_and_the_old_ones_end() {
    let (mut view, mut guards) = view(&[(1, 4)]);
    let mut again = metadata(&[(2, 0)]);
    again.topics[0].id = TopicId(8);
    again.topics[0].partitions[0].partition = PartitionIx(5);
    let mut changed = Vec::new();
    view.absorb(again, &mut guards, &mut changed);
    assert_eq!(changed, [PartitionIx(0), PartitionIx(5)]);
    assert_eq!(view.leadership(PartitionIx(0)), Leadership::UNKNOWN);
    assert_eq!(view.topic("t").unwrap().1.partitions, [PartitionIx(5)]);
}

#[test]
fn a_broker_that_does_not_know_the_topic_does_not_erase_it() {
    let (mut view, mut guards) = view(&[(1, 4)]);
    let mut lagging = metadata(&[]);
    lagging.topics[0].error = ErrorCode::UnknownTopicOrPartition;
    let mut changed = Vec::new();
    view.absorb(lagging, &mut guards, &mut changed);
    assert!(changed.is_empty());
    assert_eq!(view.topic("t").unwrap().1.partitions, [PartitionIx(0)]);
}
