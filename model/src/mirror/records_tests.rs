use super::*;

fn key() -> StateKey {
    StateKey { mirror: "m1".into(), topic: TopicId(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff), number: 7 }
}

#[test]
fn golden_bytes_of_a_state() {
    let record = StateRecord {
        state: MirrorState::Failed,
        leader_epoch: LeaderEpoch(11),
        state_epoch: 3,
        previous: MirrorState::Mirroring,
        attempt: 2,
        message: Some("no".into()),
        position: None,
        session: None,
    };
    let (k, v) = MirrorRecord::State(key(), Some(record.clone())).encode();
    let expected_key = [
        &[0, 1, 0, 2][..],
        b"m1",
        &[0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff],
        &[0, 0, 0, 7],
    ]
    .concat();
    assert_eq!(&k[..], &expected_key[..]);
    // Version; state 8; leader epoch 11; state epoch 3; "no" with length + 1; attempt 2; previous 3; no tagged fields.
    assert_eq!(v.as_deref(), Some(&[0, 0, 8, 0, 0, 0, 11, 0, 0, 0, 3, 3, b'n', b'o', 0, 2, 3, 0][..]));
    assert_eq!(MirrorRecord::decode(&k, v.as_deref()), Ok(MirrorRecord::State(key(), Some(record))));
}

#[test]
fn golden_bytes_of_a_position_and_of_tombstones() {
    let position = LastPosition { epoch: LeaderEpoch(5), offset: Offset(258) };
    let (k, v) = MirrorRecord::Position(key(), Some(position), None).encode();
    assert_eq!((k[1], v.as_deref()), (2, Some(&[0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 1, 2, 0][..])));
    assert_eq!(MirrorRecord::decode(&k, v.as_deref()), Ok(MirrorRecord::Position(key(), Some(position), None)));
    for gone in [MirrorRecord::State(key(), None), MirrorRecord::Position(key(), None, None)] {
        let (k, v) = gone.encode();
        assert_eq!((MirrorRecord::decode(&k, v.as_deref()), v), (Ok(gone), None));
    }
}

/// The incarnation is a tagged field: who does not know it passes over it, and a value without it is read as before.
#[test]
fn golden_bytes_of_an_incarnation() {
    let session = Some(Session(0x0102));
    let record = StateRecord { session, ..StateRecord::default() };
    let (k, v) = MirrorRecord::State(key(), Some(record.clone())).encode();
    let v = v.expect("a value");
    assert_eq!(&v[v.len() - 7..], &[1, 0, 4, 0, 0, 1, 2]);
    assert_eq!(MirrorRecord::decode(&k, Some(&v)), Ok(MirrorRecord::State(key(), Some(record))));
    let position = LastPosition { epoch: LeaderEpoch(5), offset: Offset(258) };
    let (k, v) = MirrorRecord::Position(key(), Some(position), session).encode();
    assert_eq!(v.as_deref(), Some(&[0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 1, 2, 1, 0, 4, 0, 0, 1, 2][..]));
    assert_eq!(MirrorRecord::decode(&k, v.as_deref()), Ok(MirrorRecord::Position(key(), Some(position), session)));
    // A tag of a later version.
    let later = [0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 1, 2, 1, 9, 2, 7, 7];
    assert_eq!(MirrorRecord::decode(&k, Some(&later)), Ok(MirrorRecord::Position(key(), Some(position), None)));
}

#[test]
fn what_is_cut_off_or_unknown_is_refused() {
    let (k, v) = MirrorRecord::State(key(), Some(StateRecord::default())).encode();
    let v = v.expect("a state has a value");
    for end in 0..k.len() {
        assert!(MirrorRecord::decode(&k[..end], None).is_err(), "key of {end} bytes");
    }
    for end in 0..v.len() - 1 {
        assert!(MirrorRecord::decode(&k, Some(&v[..end])).is_err(), "value of {end} bytes");
    }
    let mut other = k.to_vec();
    other[1] = 9;
    assert!(MirrorRecord::decode(&other, None).is_err());
}

#[test]
fn partitions_are_javas() {
    // "polygenelubricants" hashes to the number that has no absolute value.
    assert_eq!(state_partition_of_mirror("polygenelubricants", 50), 0);
    assert_eq!(state_partition_of_mirror("hello", 50), 99_162_322 % 50);
    assert_eq!(state_partition_of_mirror("Hello World", 50), 862_545_276 % 50);
    let at = |number| state_partition(&StateKey { number, ..key() }, 50);
    assert!((0..50).map(at).collect::<std::collections::BTreeSet<_>>().len() > 5, "partitions of one topic spread");
}
