use super::*;

fn value(state: TxnState, members: &[(&str, u32)]) -> TxnValue {
    TxnValue {
        producer: ProducerId(0x0102),
        epoch: ProducerEpoch(3),
        last_epoch: ProducerEpoch(-1),
        timeout_ms: 60_000,
        state,
        members: members.iter().map(|(name, number)| ((*name).into(), *number)).collect(),
        updated: 0x11,
        started: 0x10,
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
    assert_eq!(bytes.as_deref(), Some(expected));
    assert_eq!(TxnRecord::decode(&key, bytes.as_deref()), Ok(record));
}

#[test]
fn an_empty_one_has_null_partitions_and_a_tombstone_no_value() {
    let record = TxnRecord { id: "x".into(), value: Some(value(TxnState::Empty, &[])) };
    let (key, bytes) = record.encode();
    assert_eq!(bytes.as_ref().map(|b| b[17..21].to_vec()), Some(vec![0xff; 4]));
    assert_eq!(TxnRecord::decode(&key, bytes.as_deref()), Ok(record));
    let gone = TxnRecord { id: "x".into(), value: None };
    assert_eq!(TxnRecord::decode(&gone.encode().0, None), Ok(gone));
}

#[test]
fn the_flexible_version_is_read_with_whatever_is_tagged() {
    let value = value(TxnState::PrepareAbort, &[("topic", 7), ("topic", 9)]);
    let mut bytes = encode_flexible(&value).to_vec();
    let key = TxnRecord { id: "x".into(), value: None }.encode().0;
    assert_eq!(TxnRecord::decode(&key, Some(&bytes)).map(|r| r.value), Ok(Some(value.clone())));
    // Tag 0, the previous producer id.
    bytes.pop();
    bytes.extend([1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 5]);
    assert_eq!(TxnRecord::decode(&key, Some(&bytes)).map(|r| r.value), Ok(Some(value)));
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
