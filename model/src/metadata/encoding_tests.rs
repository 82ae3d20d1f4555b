use super::*;
use proptest::prelude::*;

fn brokers() -> impl Strategy<Value = Brokers> {
    proptest::collection::vec((-1i32..2000).prop_map(BrokerId), 0..7).prop_map(Brokers::from_vec)
}
fn text() -> impl Strategy<Value = Arc<str>> {
    "[a-z_.é]{0,12}".prop_map(|s| Arc::from(s.as_str()))
}
fn state() -> impl Strategy<Value = PartitionState> {
    ((brokers(), brokers(), brokers(), brokers()), any::<i32>(), any::<i32>(), any::<i32>(), any::<bool>()).prop_map(
        |((replicas, isr, elr, last_known_elr), leader, epoch, version, recovering)| PartitionState {
            replicas,
            isr,
            elr,
            last_known_elr,
            leader: BrokerId(leader),
            leader_epoch: LeaderEpoch(epoch),
            partition_epoch: PartitionEpoch(version),
            recovering,
        },
    )
}
fn resource() -> impl Strategy<Value = ConfigResource> {
    prop_oneof![
        text().prop_map(ConfigResource::Topic),
        text().prop_map(ConfigResource::ClusterMirror),
        proptest::option::of(0i32..9).prop_map(|b| ConfigResource::Broker(b.map(BrokerId))),
    ]
}
fn desired() -> impl Strategy<Value = DesiredState> {
    prop_oneof![
        Just(DesiredState::Mirroring),
        Just(DesiredState::Paused),
        Just(DesiredState::Stopped),
        Just(DesiredState::Unknown)
    ]
}

fn record() -> impl Strategy<Value = Record> {
    use proptest::option::of;
    prop_oneof![
        (any::<i32>(), any::<u16>(), any::<u128>(), any::<i64>()).prop_map(|(b, n, incarnation, e)| {
            Record::RegisterBroker { broker: BrokerId(b), node: NodeId(n), incarnation, epoch: BrokerEpoch(e) }
        }),
        (any::<i32>(), any::<i64>(), any::<bool>(), any::<bool>()).prop_map(|(b, e, fenced, shutting_down)| {
            Record::BrokerChange { broker: BrokerId(b), epoch: BrokerEpoch(e), fenced, shutting_down }
        }),
        (any::<u32>(), any::<u128>(), text()).prop_map(|(t, id, name)| Record::Topic {
            topic: TopicIx(t),
            id: TopicId(id),
            name
        }),
        (any::<u32>(), any::<u32>(), any::<u32>(), state()).prop_map(|(p, t, number, state)| Record::Partition {
            partition: PartitionIx(p),
            topic: TopicIx(t),
            number,
            state
        }),
        (
            any::<u32>(),
            of(any::<i32>()),
            of(any::<i32>()),
            (of(brokers()), of(brokers()), of(brokers()), of(brokers())),
            of(any::<bool>())
        )
            .prop_map(|(p, l, e, (isr, elr, last_known_elr, replicas), recovering)| Record::PartitionChange {
                partition: PartitionIx(p),
                leader: l.map(BrokerId),
                leader_epoch: e.map(LeaderEpoch),
                isr,
                elr,
                last_known_elr,
                recovering,
                replicas
            }),
        any::<u32>().prop_map(|t| Record::RemoveTopic { topic: TopicIx(t) }),
        (resource(), text(), of(text())).prop_map(|(resource, key, value)| Record::Config { resource, key, value }),
        (any::<i32>(), any::<i64>())
            .prop_map(|(b, n)| Record::ProducerIds { broker: BrokerId(b), next: ProducerId(n) }),
        (any::<u32>(), text()).prop_map(|(m, name)| Record::Mirror { mirror: MirrorIx(m), name }),
        (any::<u32>(), of(0..u32::MAX), desired()).prop_map(|(t, m, desired)| Record::MirrorTopicStateChange {
            topic: TopicIx(t),
            mirror: m.map(MirrorIx),
            desired
        }),
        (any::<i32>(), any::<u16>())
            .prop_map(|(e, n)| Record::LeaderChange { epoch: LeaderEpoch(e), leader: NodeId(n) }),
        Just(Record::NoOp),
        (any::<i32>(), any::<u64>(), any::<u32>(), any::<u32>()).prop_map(|(e, hash, t, p)| Record::SnapshotHeader {
            epoch: LeaderEpoch(e),
            leader: NodeId(7),
            hash,
            next_topic: TopicIx(t),
            next_partition: PartitionIx(p),
            next_mirror: MirrorIx(1)
        }),
    ]
}

proptest! {
    #[test]
    fn every_record_comes_back_from_its_bytes(record in record()) {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        prop_assert_eq!(Record::decode(&bytes), Ok(record));
    }

    #[test]
    fn no_bytes_make_decoding_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Record::decode(&bytes);
        let mut framed = vec![1, bytes.first().copied().unwrap_or(0) % 30, 0];
        framed.extend_from_slice(&bytes);
        let _ = Record::decode(&framed);
    }

    #[test]
    fn a_record_cut_or_continued_is_refused(record in record(), cut in any::<prop::sample::Index>()) {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        prop_assert!(Record::decode(&bytes[..cut.index(bytes.len())]).is_err());
        bytes.push(0);
        prop_assert!(Record::decode(&bytes).is_err());
    }

    #[test]
    fn a_flipped_bit_never_panics(record in record(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let _ = Record::decode(&bytes);
    }
}

#[test]
fn a_leader_change_of_a_partition_is_small_and_framed_as_in_kraft() {
    let mut bytes = Vec::new();
    Record::PartitionChange {
        partition: PartitionIx(3),
        leader: Some(BrokerId(2)),
        leader_epoch: Some(LeaderEpoch(5)),
        isr: None,
        elr: None,
        last_known_elr: None,
        recovering: None,
        replicas: None,
    }
    .encode(&mut bytes);
    assert_eq!(bytes, [1, 5, 3, 3, 2, 0, 1, 4, 9, 1, 10]);
}

#[test]
fn the_running_hash_depends_on_order_and_length() {
    let one = chain(chain(0, b"a"), b"b");
    assert_ne!(one, chain(chain(0, b"b"), b"a"));
    assert_ne!(one, chain(0, b"ab"));
    assert_ne!(chain(0, b"a"), chain(0, b"a\0"));
}
