use super::*;

fn value(state: TxnState, members: &[(&str, u32)]) -> TxnValue {
    TxnValue {
        producer: ProducerId(0x0102),
        previous: ProducerId::NONE,
        next: ProducerId::NONE,
        epoch: ProducerEpoch(3),
        last_epoch: ProducerEpoch(-1),
        timeout_ms: 60_000,
        state,
        members: members.iter().map(|(name, number)| ((*name).into(), *number)).collect(),
        updated: 0x11,
        started: 0x10,
        version: 0,
    }
}

/// Laid out by hand from the schemas TransactionLogKey.json and TransactionLogValue.json.
#[test]
fn key_and_value_are_those_of_the_schemas() {
    let record = TxnRecord { id: "pay".into(), value: Some(value(TxnState::Ongoing, &[("a", 0), ("a", 2), ("b", 1)])) };
    let (key, bytes) = record.encode();
    assert_eq!(&key[..], [0, 0, 0, 3, b'p', b'a', b'y']);
    #[rustfmt::skip]
    let expected: &[u8] = &[
        0, 1,                         // version
        0, 0, 0, 0, 0, 0, 1, 2,       // producer id
        0, 3,                         // epoch
        0, 0, 0xea, 0x60,             // timeout
        1,                            // Ongoing
        3,                            // two topics
        2, b'a', 3, 0, 0, 0, 0, 0, 0, 0, 2, 0,
        2, b'b', 2, 0, 0, 0, 1, 0,
        0, 0, 0, 0, 0, 0, 0, 0x11,    // last update
        0, 0, 0, 0, 0, 0, 0, 0x10,    // start
        0,                            // nothing tagged
    ];
    assert_eq!(bytes.as_deref(), Some(expected));
    assert_eq!(TxnRecord::decode(&key, bytes.as_deref()), Ok(record));
}

#[test]
fn an_empty_one_has_null_partitions_and_a_tombstone_no_value() {
    let record = TxnRecord { id: "x".into(), value: Some(value(TxnState::Empty, &[])) };
    let (key, bytes) = record.encode();
    assert_eq!(bytes.as_ref().map(|b| b[17..18].to_vec()), Some(vec![0]));
    assert_eq!(TxnRecord::decode(&key, bytes.as_deref()), Ok(record));
    let gone = TxnRecord { id: "x".into(), value: None };
    assert_eq!(TxnRecord::decode(&gone.encode().0, None), Ok(gone));
}

#[test]
fn a_change_of_producer_id_and_the_transaction_version_are_tagged_and_what_else_is_tagged_is_passed_over() {
    let mut all = value(TxnState::PrepareAbort, &[("topic", 7), ("topic", 9)]);
    (all.previous, all.next, all.version) = (ProducerId(5), ProducerId(6), 2);
    let record = TxnRecord { id: "x".into(), value: Some(all) };
    let (key, bytes) = record.encode();
    let mut bytes = bytes.unwrap().to_vec();
    #[rustfmt::skip]
    let tags: &[u8] = &[
        3,
        0, 8, 0, 0, 0, 0, 0, 0, 0, 5,
        1, 8, 0, 0, 0, 0, 0, 0, 0, 6,
        2, 2, 0, 2,
    ];
    let at = bytes.len() - tags.len();
    assert_eq!(&bytes[at..], tags);
    assert_eq!(TxnRecord::decode(&key, Some(&bytes)), Ok(record.clone()));
    // Tag 3, of a later version.
    bytes[at] = 4;
    bytes.extend([3, 2, 0, 9]);
    assert_eq!(TxnRecord::decode(&key, Some(&bytes)), Ok(record));
}

/// Laid out by hand: what a cluster of transaction version 0 left.
#[test]
fn the_older_version_is_read() {
    #[rustfmt::skip]
    let old: &[u8] = &[
        0, 0,                         // version
        0, 0, 0, 0, 0, 0, 1, 2,       // producer id
        0, 3,                         // epoch
        0, 0, 0xea, 0x60,             // timeout
        1,                            // Ongoing
        0, 0, 0, 2,                   // two topics
        0, 1, b'a', 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2,
        0, 1, b'b', 0, 0, 0, 1, 0, 0, 0, 1,
        0, 0, 0, 0, 0, 0, 0, 0x11,    // last update
        0, 0, 0, 0, 0, 0, 0, 0x10,    // start
    ];
    let key = TxnRecord { id: "pay".into(), value: None }.encode().0;
    let read = TxnRecord::decode(&key, Some(old)).map(|record| record.value);
    assert_eq!(read, Ok(Some(value(TxnState::Ongoing, &[("a", 0), ("a", 2), ("b", 1)]))));
}

#[test]
fn what_is_cut_or_unknown_is_refused() {
    let record = TxnRecord { id: "pay".into(), value: Some(value(TxnState::Ongoing, &[("a", 0), ("b", 1)])) };
    let (key, bytes) = record.encode();
    let bytes = bytes.unwrap();
    for len in 0..bytes.len() {
        assert!(TxnRecord::decode(&key, Some(&bytes[..len])).is_err(), "{len} bytes");
    }
    for len in 0..key.len() {
        assert!(TxnRecord::decode(&key[..len], None).is_err(), "{len} bytes of the key");
    }
    let mut other = bytes.to_vec();
    other[1] = 9;
    assert_eq!(TxnRecord::decode(&key, Some(&other)), Err(BadRecord("version of a value")));
    let mut other = bytes.to_vec();
    other[16] = 6;
    assert_eq!(TxnRecord::decode(&key, Some(&other)), Err(BadRecord("a state")));
}
