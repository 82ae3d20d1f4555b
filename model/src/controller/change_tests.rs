use super::*;
use crate::ids::PartitionEpoch;

fn ids(list: &[i32]) -> Brokers {
    list.iter().map(|b| BrokerId(*b)).collect()
}
fn state(isr: &[i32], elr: &[i32], leader: i32) -> PartitionState {
    PartitionState {
        replicas: ids(&[1, 2, 3]),
        isr: ids(isr),
        elr: ids(elr),
        last_known_elr: ids(&[]),
        leader: BrokerId(leader),
        leader_epoch: LeaderEpoch(5),
        partition_epoch: PartitionEpoch(9),
        recovering: false,
    }
}

#[test]
fn nothing_wanted_is_no_record() {
    let old = state(&[1, 2, 3], &[], 1);
    let change = Change::of(PartitionIx(0), &old, 2, true);
    assert_eq!(change.build(&mut Guards::default(), |_| true), None);
}

#[test]
fn the_record_names_only_what_changes() {
    let old = state(&[1, 2, 3], &[], 1);
    let mut change = Change::of(PartitionIx(4), &old, 2, true);
    change.isr = ids(&[2, 3]);
    let (record, kind) = change.build(&mut Guards::default(), |b| b != BrokerId(1)).unwrap();
    let expected = Record::PartitionChange {
        partition: PartitionIx(4),
        leader: Some(BrokerId(2)),
        leader_epoch: Some(LeaderEpoch(6)),
        isr: Some(ids(&[2, 3])),
        elr: None,
        last_known_elr: None,
        recovering: None,
        replicas: None,
    };
    assert_eq!((record, kind), (expected, Some(ElectionKind::Clean)));
}

#[test]
fn in_sync_replicas_come_before_eligible_ones() {
    let old = state(&[3], &[1, 2], 3);
    let mut change = Change::of(PartitionIx(0), &old, 2, true);
    change.election = Election::Preferred;
    assert_eq!(change.build(&mut Guards::default(), |_| true), None);
}

/// Whatever is wanted and whoever lives, membership keeps its rules (S12).
#[test]
fn every_outcome_keeps_the_membership_rules() {
    use proptest::prelude::*;
    let subset = |bits: u8| (1..=3).filter(move |b| bits & (1 << b) != 0).map(BrokerId).collect::<Brokers>();
    let strategy = (0u8..8, 0u8..8, 0u8..8, 0u8..8, 1u32..4, any::<bool>(), 0u8..3, 0i32..4);
    proptest!(|((isr, elr, wanted, live, min_isr, elr_on, election, unclean) in strategy)| {
        let isr = subset(isr << 1);
        let enough = isr.len() >= min_isr as usize;
        prop_assume!(elr_on || !isr.is_empty());
        let elr: Brokers = subset(elr << 1).into_iter().filter(|b| elr_on && !enough && !isr.contains(b)).collect();
        let leader = isr.first().copied().unwrap_or(BrokerId::NONE);
        let mut old = state(&[], &[], leader.0);
        old.isr = isr.clone();
        old.elr = elr;
        old.last_known_elr = if isr.is_empty() { ids(&[2]) } else { ids(&[]) };
        let live = subset(live << 1);
        let mut change = Change::of(PartitionIx(0), &old, min_isr, elr_on);
        change.isr = subset(wanted << 1).into_iter().filter(|b| live.contains(b)).collect();
        change.election = [Election::Online, Election::Preferred, Election::Unclean][election as usize];
        if unclean > 0 {
            change.unclean = Some(BrokerId(unclean));
            change.isr.retain(|b| b.0 != unclean);
        }
        let live = |b: BrokerId| live.contains(&b) && b.0 != unclean;
        let Some((record, _)) = change.build(&mut Guards::default(), live) else { return Ok(()) };
        let mut image = crate::metadata::image::MetadataImage::default();
        let mut delta = crate::metadata::delta::MetadataDelta::default();
        image.apply(0, &Record::Topic { topic: crate::ids::TopicIx(0), id: crate::ids::TopicId(1), name: "t".into() }, &mut delta);
        let (topic, partition) = (crate::ids::TopicIx(0), PartitionIx(0));
        image.apply(1, &Record::Partition { partition, topic, number: 0, state: old.clone() }, &mut delta);
        image.apply(2, &record, &mut delta);
        let new = &image.partition(partition).unwrap().state;
        prop_assert!(new.isr.iter().all(|b| !new.elr.contains(b)));
        prop_assert!(new.elr.is_empty() || new.isr.len() < min_isr as usize);
        prop_assert!(elr_on || !new.isr.is_empty());
        prop_assert!(new.leader == BrokerId::NONE || new.isr.contains(&new.leader) && live(new.leader));
        prop_assert!((new.leader == old.leader) || new.leader_epoch > old.leader_epoch);
        prop_assert!(!elr_on || new.isr.iter().chain(&new.elr).all(|b| b.0 != unclean));
    });
}
