use super::*;
use crate::record::identity::Identity;
use bytes::BytesMut;
use proptest::prelude::*;

/// Offset 5, epoch 3, producer 4000 in epoch 2 from sequence 7, transactional, two records. Laid out by hand from the
/// format's description; the CRC comes from a bitwise CRC32C.
#[rustfmt::skip]
const GOLDEN: [u8; 82] = [
    0, 0, 0, 0, 0, 0, 0, 5,      // base offset
    0, 0, 0, 70,                 // length of the rest
    0, 0, 0, 3,                  // leader epoch
    2,                           // magic
    0xde, 0x0c, 0x26, 0x85,      // CRC32C
    0, 0x10,                     // attributes: transactional
    0, 0, 0, 1,                  // last offset delta
    0, 0, 0, 0, 0, 0, 0x03, 0xe8, // base timestamp 1000
    0, 0, 0, 0, 0, 0, 0x03, 0xed, // max timestamp 1005
    0, 0, 0, 0, 0, 0, 0x0f, 0xa0, // producer 4000
    0, 2,                        // producer epoch
    0, 0, 0, 7,                  // base sequence
    0, 0, 0, 2,                  // record count
    // 13 bytes: attributes, deltas 0 and 0, key "k", value "v1", one header "h" = "x"
    26, 0, 0, 0, 2, b'k', 4, b'v', b'1', 2, 2, b'h', 2, b'x',
    // 6 bytes: attributes, time 5 later, offset 1 later, null key, null value, no headers
    12, 0, 10, 2, 1, 1, 0,
];

fn golden_meta() -> BatchMeta {
    BatchMeta {
        base_offset: Offset(5),
        leader_epoch: LeaderEpoch(3),
        producer: ProducerId(4000),
        producer_epoch: ProducerEpoch(2),
        base_sequence: 7,
        transactional: true,
        control: false,
        base_timestamp: 1000,
    }
}

/// `count` records of offset-numbered values from `base` on.
fn plain(base: i64, count: usize) -> BatchBuilder {
    let mut batch = BatchBuilder::new(BatchMeta { base_offset: Offset(base), ..BatchMeta::default() });
    for i in 0..count {
        batch.push(i as i64, None, Some(&(base + i as i64).to_be_bytes()));
    }
    batch
}

fn offsets(bytes: &[u8]) -> Vec<i64> {
    views(bytes).flat_map(|batch| batch.unwrap().records()).map(|record| record.unwrap().offset.0).collect()
}

#[test]
fn the_builder_writes_the_golden_bytes() {
    let mut batch = BatchBuilder::new(golden_meta());
    batch.push_with_headers(1000, Some(b"k"), Some(b"v1"), &[(b"h", Some(b"x"))]);
    batch.push(1005, None, None);
    assert_eq!((batch.count(), batch.size()), (2, GOLDEN.len()));
    assert_eq!(batch.finish(), GOLDEN[..]);
}

#[test]
fn a_view_reads_the_golden_bytes() {
    let batch = BatchView::parse(&GOLDEN).unwrap();
    assert_eq!(batch.size(), 82);
    assert_eq!((batch.base_offset(), batch.last_offset(), batch.next_offset()), (Offset(5), Offset(6), Offset(7)));
    assert_eq!(batch.leader_epoch(), LeaderEpoch(3));
    assert_eq!((batch.crc(), batch.crc_valid()), (0xde0c_2685, true));
    assert_eq!((batch.producer(), batch.producer_epoch()), (ProducerId(4000), ProducerEpoch(2)));
    assert_eq!((batch.base_sequence(), batch.last_sequence(), batch.record_count()), (7, 8, 2));
    assert_eq!((batch.base_timestamp(), batch.max_timestamp()), (1000, 1005));
    assert_eq!((batch.is_transactional(), batch.is_control(), batch.control_type()), (true, false, None));
    assert_eq!(batch.compression(), Compression::None);

    let records: Vec<_> = batch.records().map(Result::unwrap).collect();
    assert_eq!((records[0].offset, records[0].timestamp), (Offset(5), 1000));
    assert_eq!((records[0].key, records[0].value), (Some(&b"k"[..]), Some(&b"v1"[..])));
    assert_eq!(records[0].headers.collect::<Vec<_>>(), [(&b"h"[..], Some(&b"x"[..]))]);
    assert_eq!((records[1].offset, records[1].timestamp), (Offset(6), 1005));
    assert_eq!((records[1].key, records[1].value, records[1].headers.len()), (None, None, 0));
}

#[test]
fn stamping_changes_offset_and_epoch_but_not_the_crc() {
    let mut bytes = GOLDEN;
    stamp(&mut bytes, Offset(1_000_000_000_000), LeaderEpoch(77));
    let batch = BatchView::parse(&bytes).unwrap();
    assert_eq!((batch.base_offset(), batch.leader_epoch()), (Offset(1_000_000_000_000), LeaderEpoch(77)));
    assert_eq!((batch.crc(), batch.crc_valid()), (0xde0c_2685, true));
    assert_eq!(bytes[AT_ATTRIBUTES..], GOLDEN[AT_ATTRIBUTES..]);
}

#[test]
fn each_flipped_bit_from_the_attributes_on_breaks_the_crc_and_none_before_it_does() {
    for bit in 0..GOLDEN.len() * 8 {
        let mut bytes = GOLDEN;
        bytes[bit / 8] ^= 1 << (bit % 8);
        let Ok(batch) = BatchView::parse(&bytes) else { continue };
        let restamp = bit / 8 < AT_LENGTH || (AT_LEADER_EPOCH..AT_MAGIC).contains(&(bit / 8));
        assert_eq!(batch.crc_valid(), restamp, "bit {bit}");
    }
}

#[test]
fn many_batches_in_one_buffer_come_apart_without_a_copy() {
    let all = plain(0, 3).next(BatchMeta { base_offset: Offset(3), ..BatchMeta::default() });
    let mut all = all;
    all.push(0, None, Some(b"x"));
    let all = all.finish();
    assert_eq!(offsets(&all), [0, 1, 2, 3]);
    let pieces: Vec<Bytes> = split(&all).map(Result::unwrap).collect();
    assert_eq!(pieces.len(), 2);
    assert_eq!(pieces[0].as_ptr(), all.as_ptr());
    assert_eq!(pieces[1].as_ptr(), all[pieces[0].len()..].as_ptr());
    assert!(views(&all).zip(&pieces).all(|(view, piece)| view.unwrap().bytes() == piece));
}

#[test]
fn a_torn_tail_is_truncated_and_ends_the_iteration() {
    let whole = plain(0, 3).finish();
    for cut in 1..whole.len() {
        let mut torn = whole.to_vec();
        torn.extend_from_slice(&whole[..cut]);
        let items: Vec<_> = split(&torn.into()).collect();
        assert_eq!(items.len(), 2);
        assert_eq!(items[0].as_ref().unwrap(), &whole);
        let need = if cut < HEADER_LEN { HEADER_LEN } else { whole.len() };
        assert_eq!(items[1], Err(BatchError::Truncated { need, have: cut }));
    }
}

#[test]
fn wrong_headers_are_named() {
    let change = |at: usize, with: &[u8]| {
        let mut bytes = GOLDEN;
        bytes[at..at + with.len()].copy_from_slice(with);
        BatchView::parse(&bytes).map(|_| ()).unwrap_err()
    };
    assert_eq!(change(AT_LENGTH, &48i32.to_be_bytes()), BatchError::Length(48));
    assert_eq!(change(AT_LENGTH, &(-1i32).to_be_bytes()), BatchError::Length(-1));
    assert_eq!(change(AT_LENGTH, &71i32.to_be_bytes()), BatchError::Truncated { need: 83, have: 82 });
    assert_eq!(change(AT_MAGIC, &[1]), BatchError::Magic(1));
    assert_eq!(change(AT_ATTRIBUTES, &[0, 5]), BatchError::Codec(5));
    assert_eq!(change(0, &(-1i64).to_be_bytes()), BatchError::Offsets { base: -1, last_delta: 1 });
    assert_eq!(change(0, &(i64::MAX - 1).to_be_bytes()), BatchError::Offsets { base: i64::MAX - 1, last_delta: 1 });
    assert_eq!(change(AT_LAST_DELTA, &(-2i32).to_be_bytes()), BatchError::Offsets { base: 5, last_delta: -2 });
    assert_eq!(change(AT_COUNT, &3i32.to_be_bytes()), BatchError::Count(3));
    assert_eq!(change(AT_COUNT, &(-1i32).to_be_bytes()), BatchError::Count(-1));
}

#[test]
fn a_count_that_is_too_small_or_records_that_end_early_are_errors_and_the_last_item() {
    let mut fewer = GOLDEN;
    fewer[AT_COUNT + 3] = 1;
    let items: Vec<_> = BatchView::parse(&fewer).unwrap().records().collect();
    assert_eq!((items.len(), items[1]), (2, Err(BatchError::Record)));

    let mut longer = GOLDEN;
    longer[HEADER_LEN] += 2;
    let items: Vec<_> = BatchView::parse(&longer).unwrap().records().collect();
    assert_eq!(items, [Err(BatchError::Record)]);
}

#[test]
fn compressed_records_stay_closed_but_the_header_speaks() {
    let meta = golden_meta();
    let bytes = raw_batch(meta, Compression::Zstd, 1000, 2000, b"not really zstd");
    let batch = BatchView::parse(&bytes).unwrap();
    assert_eq!(
        (batch.compression(), batch.record_count(), batch.next_offset()),
        (Compression::Zstd, 1000, Offset(1005))
    );
    assert_eq!((batch.payload(), batch.crc_valid()), (&b"not really zstd"[..], true));
    let items: Vec<_> = batch.records().collect();
    assert_eq!(items, [Err(BatchError::Compressed(Compression::Zstd))]);
}

#[test]
fn compaction_leaves_gaps_and_empty_batches() {
    let mut batch = BatchBuilder::new(BatchMeta { base_offset: Offset(10), ..BatchMeta::default() });
    batch.push(0, None, Some(b"a"));
    batch.skip(3);
    batch.push(0, None, Some(b"b"));
    batch.skip(1);
    let bytes = batch.finish();
    assert_eq!(offsets(&bytes), [10, 14]);
    assert_eq!(BatchView::parse(&bytes).unwrap().next_offset(), Offset(16));

    let empty = BatchBuilder::new(BatchMeta::default()).finish();
    let view = BatchView::parse(&empty).unwrap();
    assert_eq!((view.size(), view.record_count(), view.next_offset()), (HEADER_LEN, 0, Offset(1)));
    assert_eq!(view.records().count(), 0);
}

#[test]
fn sequences_wrap_to_zero() {
    assert_eq!(increment_sequence(i32::MAX - 1, 1), i32::MAX);
    assert_eq!(increment_sequence(i32::MAX, 1), 0);
    assert_eq!(increment_sequence(i32::MAX - 2, 5), 2);
    let meta = BatchMeta { base_sequence: i32::MAX, ..BatchMeta::default() };
    let mut batch = BatchBuilder::new(meta);
    batch.push(0, None, None);
    batch.push(0, None, None);
    assert_eq!(BatchView::parse(&batch.finish()).unwrap().last_sequence(), 0);
    assert_eq!(BatchView::parse(&plain(0, 2).finish()).unwrap().last_sequence(), -1);
}

#[test]
fn the_time_of_an_append_overrides_the_producers_times() {
    let mut bytes = GOLDEN;
    bytes[AT_ATTRIBUTES + 1] |= LOG_APPEND_TIME as u8;
    let batch = BatchView::parse(&bytes).unwrap();
    assert!(batch.records().all(|record| record.unwrap().timestamp == 1005));
}

#[test]
fn identities_are_written_into_the_buffer() {
    let mut batch = BatchBuilder::new(BatchMeta::default());
    for sequence in 0..3 {
        batch.push_identity(0, Some(b"key"), Identity { producer: 9, sequence }, 100);
    }
    batch.push_identity(0, None, Identity { producer: 9, sequence: 3 }, 0);
    let bytes = batch.finish();
    let records: Vec<_> = BatchView::parse(&bytes).unwrap().records().map(Result::unwrap).collect();
    for (sequence, record) in records.iter().enumerate() {
        let value = record.value.unwrap();
        assert_eq!(Identity::verify(value), Some(Identity { producer: 9, sequence: sequence as u64 }));
        assert_eq!(value.len(), if sequence < 3 { 100 } else { 16 });
    }
}

/// Reads everything that can be read; the result does not matter, that it ends does.
fn read_all(bytes: &[u8]) -> usize {
    let mut seen = 0;
    for batch in views(bytes) {
        let Ok(batch) = batch else { break };
        assert!(batch.size() <= bytes.len());
        assert!(batch.last_offset() < batch.next_offset() && batch.base_offset() <= batch.last_offset());
        seen +=
            usize::from(batch.crc_valid()) + batch.control_type().map_or(0, |_| 1) + batch.last_sequence() as usize % 2;
        let _ = crate::record::ControlRecord::parse(&batch);
        for record in batch.records().flatten() {
            assert!(record.offset >= batch.base_offset() && record.offset <= batch.last_offset());
            let of = |field: Option<&[u8]>| field.map_or(0, <[u8]>::len);
            let headers: usize = record.headers.map(|(key, value)| key.len() + of(value)).sum();
            assert!(of(record.key) + of(record.value) + headers <= batch.size());
            assert_eq!(record.headers.count(), record.headers.len());
            seen += 1;
        }
    }
    let shared = Bytes::copy_from_slice(bytes);
    assert!(split(&shared).flatten().map(|piece| piece.len()).sum::<usize>() <= bytes.len());
    seen
}

type Pushed = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Vec<(Vec<u8>, Option<Vec<u8>>)>);

fn any_record() -> impl Strategy<Value = Pushed> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..40);
    let headers = prop::collection::vec((bytes(), prop::option::of(bytes())), 0..4);
    (any::<i64>(), prop::option::of(bytes()), prop::option::of(bytes()), headers)
}

fn build(meta: BatchMeta, records: &[Pushed]) -> Bytes {
    let mut batch = BatchBuilder::new(meta);
    for (timestamp, key, value, headers) in records {
        let headers: Vec<_> = headers.iter().map(|(k, v)| (&k[..], v.as_deref())).collect();
        batch.push_with_headers(*timestamp, key.as_deref(), value.as_deref(), &headers);
    }
    batch.finish()
}

proptest! {
    #[test]
    fn what_was_pushed_is_read_back(
        base in 0..1i64 << 60, epoch in -1i32.., sequence in -1i32..i32::MAX, base_timestamp: i64,
        records in prop::collection::vec(any_record(), 1..20),
    ) {
        let meta = BatchMeta {
            base_offset: Offset(base), leader_epoch: LeaderEpoch(epoch), base_sequence: sequence, base_timestamp,
            ..BatchMeta::default()
        };
        let bytes = build(meta, &records);
        let batch = BatchView::parse(&bytes).unwrap();
        prop_assert_eq!(batch.size(), bytes.len());
        prop_assert!(batch.check_crc().is_ok());
        prop_assert_eq!(batch.record_count() as usize, records.len());
        prop_assert_eq!(batch.max_timestamp(), records.iter().map(|r| r.0).max().unwrap());
        let read: Vec<_> = batch.records().map(Result::unwrap).collect();
        prop_assert_eq!(read.len(), records.len());
        for (i, (read, pushed)) in read.iter().zip(&records).enumerate() {
            prop_assert_eq!(read.offset, Offset(base + i as i64));
            prop_assert_eq!(read.timestamp, pushed.0);
            prop_assert_eq!(read.key, pushed.1.as_deref());
            prop_assert_eq!(read.value, pushed.2.as_deref());
            let headers: Vec<_> = pushed.3.iter().map(|(k, v)| (&k[..], v.as_deref())).collect();
            prop_assert_eq!(read.headers.collect::<Vec<_>>(), headers);
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_all(&bytes);
        let _ = Identity::verify(&bytes);
    }

    #[test]
    fn random_payloads_under_a_good_header_never_panic(
        payload in prop::collection::vec(any::<u8>(), 0..200), count in 0i32..40, control: bool,
    ) {
        let meta = BatchMeta { control, ..golden_meta() };
        read_all(&raw_batch(meta, Compression::None, count, 0, &payload));
    }

    #[test]
    fn mutated_batches_never_panic(
        records in prop::collection::vec(any_record(), 1..6),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut: prop::sample::Index,
    ) {
        let mut bytes = BytesMut::from(&build(golden_meta(), &records)[..]);
        bytes.extend_from_slice(&build(BatchMeta { control: true, ..golden_meta() }, &records));
        for (at, value) in hits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        read_all(&bytes);
        read_all(&bytes[..cut.index(bytes.len())]);
    }
}
