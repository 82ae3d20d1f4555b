use super::*;
use crate::metadata::records::Brokers;

fn ids(list: &[i32]) -> Brokers {
    list.iter().map(|b| BrokerId(*b)).collect()
}
fn state(replicas: &[i32]) -> PartitionState {
    PartitionState {
        replicas: ids(replicas),
        isr: ids(replicas),
        elr: ids(&[]),
        last_known_elr: ids(&[]),
        leader: BrokerId(replicas[0]),
        leader_epoch: LeaderEpoch(0),
        partition_epoch: PartitionEpoch(0),
        recovering: false,
    }
}
fn change(partition: u32) -> Record {
    Record::PartitionChange {
        partition: PartitionIx(partition),
        leader: None,
        leader_epoch: None,
        isr: None,
        elr: None,
        last_known_elr: None,
        recovering: None,
        replicas: None,
    }
}
fn sample() -> Vec<Record> {
    let topic = ConfigResource::Topic("orders".into());
    let mirror = ConfigResource::ClusterMirror("m".into());
    let config = |r: &ConfigResource, k: &str, v: &str| Record::Config {
        resource: r.clone(),
        key: k.into(),
        value: Some(v.into()),
    };
    vec![
        Record::LeaderChange { epoch: LeaderEpoch(3), leader: NodeId(9) },
        Record::RegisterBroker { broker: BrokerId(1), node: NodeId(11), incarnation: 5, epoch: BrokerEpoch(1) },
        Record::BrokerChange { broker: BrokerId(1), epoch: BrokerEpoch(1), fenced: false, shutting_down: false },
        config(&ConfigResource::Broker(None), "log.retention.ms", "77"),
        Record::Topic { topic: TopicIx(0), id: TopicId(8), name: "gone".into() },
        Record::Partition { partition: PartitionIx(0), topic: TopicIx(0), number: 0, state: state(&[1]) },
        Record::RemoveTopic { topic: TopicIx(0) },
        Record::Topic { topic: TopicIx(1), id: TopicId(7), name: "orders".into() },
        config(&topic, "min.insync.replicas", "2"),
        Record::Partition { partition: PartitionIx(1), topic: TopicIx(1), number: 0, state: state(&[1, 2, 3]) },
        Record::Partition { partition: PartitionIx(2), topic: TopicIx(1), number: 1, state: state(&[2, 3, 1]) },
        Record::Mirror { mirror: MirrorIx(0), name: "m".into() },
        config(&mirror, "bootstrap.servers", "4,5"),
        Record::MirrorTopicStateChange {
            topic: TopicIx(1),
            mirror: Some(MirrorIx(0)),
            desired: DesiredState::Mirroring,
        },
        Record::ProducerIds { broker: BrokerId(1), next: ProducerId(1000) },
    ]
}
fn replay(records: &[Record], delta: &mut MetadataDelta) -> MetadataImage {
    let mut image = MetadataImage::default();
    for (offset, record) in records.iter().enumerate() {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        image.apply_bytes(offset as i64, &bytes, delta).unwrap();
    }
    image
}

#[test]
fn the_state_topic_is_known_while_it_exists() {
    let mut image = MetadataImage::default();
    let mut apply = |record| {
        image.apply(0, &record, &mut MetadataDelta::default());
        image.state_topic()
    };
    let topic = |ix, name: &str| Record::Topic { topic: TopicIx(ix), id: TopicId(u128::from(ix)), name: name.into() };
    assert_eq!(apply(topic(1, "orders")), None);
    assert_eq!(apply(topic(2, STATE_TOPIC)), Some(TopicIx(2)));
    assert_eq!(apply(topic(3, STATE_TOPIC)), Some(TopicIx(2)), "the name is taken");
    assert_eq!(apply(Record::RemoveTopic { topic: TopicIx(1) }), Some(TopicIx(2)));
    assert_eq!(apply(Record::RemoveTopic { topic: TopicIx(2) }), None);
    assert_eq!(apply(topic(4, STATE_TOPIC)), Some(TopicIx(4)));
}

#[test]
fn replay_gives_what_the_records_say() {
    let mut delta = MetadataDelta::default();
    let image = replay(&sample(), &mut delta);
    assert_eq!(image.end(), MetadataOffset(15));
    assert_eq!((image.epoch(), image.leader()), (LeaderEpoch(3), Some(NodeId(9))));
    assert!(image.is_active(BrokerId(1)) && image.broker_node(BrokerId(1)) == Some(NodeId(11)));
    assert_eq!((image.topic_by_name("gone"), image.topic_of(TopicId(8))), (None, None));
    let topic = image.topic_by_name("orders").unwrap();
    assert_eq!(image.topic_of(TopicId(7)), Some(topic));
    assert_eq!(image.topic(topic).unwrap().partitions, [PartitionIx(1), PartitionIx(2)]);
    let config = image.topic_config(topic);
    assert_eq!((config.min_insync_replicas, config.retention_ms), (2, 77));
    assert_eq!(image.mirror_of(topic), Some((MirrorIx(0), DesiredState::Mirroring)));
    let mirror = image.mirror(MirrorIx(0)).unwrap();
    assert_eq!(mirror.source_nodes, [NodeId(4), NodeId(5)]);
    assert!(mirror.topics.contains(&topic));
    assert_eq!(*delta.partitions, [PartitionIx(0), PartitionIx(1), PartitionIx(2)]);
    assert_eq!(delta.topics_removed.len(), 1);
    delta.clear();
    assert!(delta.is_empty());
}

#[test]
fn a_partition_change_changes_what_it_names_and_raises_the_partition_epoch() {
    let mut delta = MetadataDelta::default();
    let mut image = replay(&sample(), &mut delta);
    delta.clear();
    let before = image.clone();
    let mut record = change(1);
    if let Record::PartitionChange { isr, .. } = &mut record {
        *isr = Some(ids(&[1, 2]));
    }
    image.apply(15, &record, &mut delta);
    image.apply(16, &record, &mut delta);
    let after = &image.partition(PartitionIx(1)).unwrap().state;
    assert_eq!(
        (after.isr.clone(), after.leader_epoch, after.partition_epoch),
        (ids(&[1, 2]), LeaderEpoch(0), PartitionEpoch(2))
    );
    assert_eq!(*delta.partitions, [PartitionIx(1)]);
    assert_eq!(before.partition(PartitionIx(1)).unwrap().state, state(&[1, 2, 3]));
}

#[test]
fn an_explicit_leader_epoch_wins_and_a_missing_one_is_one_more_on_a_change_of_leader() {
    let mut delta = MetadataDelta::default();
    let mut image = replay(&sample(), &mut delta);
    let epoch_after = |image: &mut MetadataImage, to: Option<i32>, explicit: Option<i32>| {
        let mut record = change(1);
        if let Record::PartitionChange { leader, leader_epoch, .. } = &mut record {
            (*leader, *leader_epoch) = (to.map(BrokerId), explicit.map(LeaderEpoch));
        }
        image.apply(20, &record, &mut MetadataDelta::default());
        image.partition(PartitionIx(1)).unwrap().state.leader_epoch.0
    };
    assert_eq!(epoch_after(&mut image, Some(2), Some(5)), 5);
    assert_eq!(epoch_after(&mut image, Some(3), None), 6);
    assert_eq!(epoch_after(&mut image, Some(3), None), 6);
    assert_eq!(epoch_after(&mut image, None, Some(41)), 41);
}

#[test]
fn a_snapshot_gives_the_same_image_as_the_log() {
    let image = replay(&sample(), &mut MetadataDelta::default());
    let mut loaded = MetadataImage::default();
    image.for_each_snapshot_record(|record| {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        let record = Record::decode(&bytes).unwrap();
        loaded.apply(0, &record, &mut MetadataDelta::default());
    });
    loaded.set_end(image.end());
    assert_eq!(loaded, image);
    assert_eq!((loaded.next_topic(), loaded.next_partition()), (TopicIx(2), PartitionIx(3)));
    loaded.share_with(&image);
    assert_eq!(loaded, image);
}

#[test]
fn a_mirror_without_entries_is_gone() {
    let mut image = replay(&sample(), &mut MetadataDelta::default());
    let mut delta = MetadataDelta::default();
    let resource = ConfigResource::ClusterMirror("m".into());
    image.apply(15, &Record::Config { resource, key: "bootstrap.servers".into(), value: None }, &mut delta);
    assert_eq!((image.mirror_by_name("m"), delta.mirrors.len()), (None, 1));
    assert_eq!(image.next_mirror(), MirrorIx(1));
}

#[test]
fn records_that_do_not_fit_change_nothing() {
    let image = replay(&sample(), &mut MetadataDelta::default());
    for record in [
        change(9),
        Record::Topic { topic: TopicIx(5), id: TopicId(7), name: "other".into() },
        Record::Topic { topic: TopicIx(u32::MAX), id: TopicId(70), name: "far".into() },
        Record::Partition { partition: PartitionIx(u32::MAX), topic: TopicIx(1), number: 2, state: state(&[1]) },
        Record::Partition { partition: PartitionIx(9), topic: TopicIx(1), number: 7, state: state(&[1]) },
        Record::RemoveTopic { topic: TopicIx(44) },
        Record::BrokerChange { broker: BrokerId(1), epoch: BrokerEpoch(9), fenced: true, shutting_down: false },
    ] {
        let mut after = image.clone();
        let mut delta = MetadataDelta::default();
        after.apply(14, &record, &mut delta);
        assert_eq!(after, image, "{record:?}");
        assert!(delta.is_empty(), "{record:?}");
    }
}

#[test]
fn a_partition_takes_no_more_than_its_share_of_memory() {
    assert!(std::mem::size_of::<Option<PartitionImage>>() <= 128);
}

#[test]
fn an_image_is_a_directory_that_agrees_both_ways() {
    use crate::metadata::directory::ImageDirectory;
    use crate::wire::codec::Directory;
    let mut image = MetadataImage::default();
    for (offset, record) in sample().iter().enumerate() {
        image.apply(offset as i64, record, &mut MetadataDelta::default());
    }
    let dir = ImageDirectory { image: &image, cluster_id: "east" };
    for (ix, partition) in image.partitions() {
        let place = dir.place(ix).unwrap();
        assert_eq!((&*place.name, place.number), ("orders", partition.number));
        assert_eq!(dir.by_id(place.id, place.number), Some(ix));
        assert_eq!(dir.by_name(&place.name, place.number), Some(ix));
    }
    // The removed topic's partition, and numbers that no partition has.
    assert_eq!((dir.place(PartitionIx(0)), dir.by_name("gone", 0), dir.by_id(TopicId(8), 0)), (None, None, None));
    assert_eq!((dir.by_name("orders", 2), dir.by_id(TopicId(7), u32::MAX)), (None, None));
    assert_eq!(dir.cluster_id(), "east");
}
