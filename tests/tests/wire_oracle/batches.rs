//! Batches built here decode there, batches encoded there parse here, and where both build the same the bytes are equal.

use bytes::{Bytes, BytesMut};
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::messages::{BrokerId as OracleBroker, EndTxnMarker, LeaderChangeMessage};
use kafka_protocol::protocol::{Encodable, StrBytes};
use kafka_protocol::records::{
    Compression as OracleCompression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions,
    TimestampType,
};
use mirrorlab_model::ids::{LeaderEpoch, Offset, ProducerEpoch, ProducerId};
use mirrorlab_model::record::control::{end_txn_marker, leader_change, mirror_pid_reset};
use mirrorlab_model::record::{split, stamp, views, BatchBuilder, BatchMeta, BatchView, Compression, ControlType};
use proptest::prelude::*;

/// One batch, in terms of both sides.
#[derive(Clone, Debug)]
struct Plan {
    meta: BatchMeta,
    records: Vec<PlannedRecord>,
}

#[derive(Clone, Debug)]
struct PlannedRecord {
    delta: i32,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Plan {
    fn build(&self, arena: BytesMut) -> BytesMut {
        let mut batch = BatchBuilder::continuing(arena, self.meta);
        let mut next = 0;
        for record in &self.records {
            batch.skip(record.delta - next);
            next = record.delta + 1;
            let headers: Vec<_> = record.headers.iter().map(|(k, v)| (k.as_bytes(), v.as_deref())).collect();
            batch.push_with_headers(record.timestamp, record.key.as_deref(), record.value.as_deref(), &headers);
        }
        batch.into_arena()
    }

    fn oracle_records(&self) -> Vec<Record> {
        let meta = &self.meta;
        let record = |r: &PlannedRecord| Record {
            transactional: meta.transactional,
            control: meta.control,
            delete_horizon: false,
            partition_leader_epoch: meta.leader_epoch.0,
            producer_id: meta.producer.0,
            producer_epoch: meta.producer_epoch.0,
            timestamp_type: TimestampType::Creation,
            offset: meta.base_offset.0 + i64::from(r.delta),
            sequence: meta.base_sequence.wrapping_add(r.delta),
            timestamp: r.timestamp,
            key: r.key.clone().map(Bytes::from),
            value: r.value.clone().map(Bytes::from),
            headers: r
                .headers
                .iter()
                .map(|(k, v)| (StrBytes::from_string(k.clone()), v.clone().map(Bytes::from)))
                .collect::<IndexMap<_, _>>(),
        };
        self.records.iter().map(record).collect()
    }

    fn agrees(&self, batch: &BatchView) {
        let meta = &self.meta;
        assert!(batch.crc_valid());
        assert_eq!((batch.base_offset(), batch.leader_epoch()), (meta.base_offset, meta.leader_epoch));
        assert_eq!((batch.producer(), batch.producer_epoch()), (meta.producer, meta.producer_epoch));
        assert_eq!(batch.base_sequence(), meta.base_sequence);
        assert_eq!((batch.is_transactional(), batch.is_control()), (meta.transactional, meta.control));
        assert_eq!(batch.record_count() as usize, self.records.len());
        assert_eq!(batch.last_offset().0, meta.base_offset.0 + i64::from(self.records.last().unwrap().delta));
        assert_eq!(batch.max_timestamp(), self.records.iter().map(|r| r.timestamp).max().unwrap());
        let read: Vec<_> = batch.records().map(Result::unwrap).collect();
        assert_eq!(read.len(), self.records.len());
        for (read, planned) in read.iter().zip(&self.records) {
            assert_eq!(read.offset.0, meta.base_offset.0 + i64::from(planned.delta));
            assert_eq!(read.timestamp, planned.timestamp);
            assert_eq!((read.key, read.value), (planned.key.as_deref(), planned.value.as_deref()));
            let headers: Vec<_> = planned.headers.iter().map(|(k, v)| (k.as_bytes(), v.as_deref())).collect();
            assert_eq!(read.headers.collect::<Vec<_>>(), headers);
        }
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![9 => prop::collection::vec(any::<u8>(), 0..40), 1 => prop::collection::vec(any::<u8>(), 60..300)]
}

fn headers() -> impl Strategy<Value = Vec<(String, Option<Vec<u8>>)>> {
    // The oracle keeps headers in a map: no key twice.
    prop::collection::btree_map("[a-zä]{0,12}", prop::option::of(bytes()), 0..4)
        .prop_map(|map| map.into_iter().collect())
}

fn record() -> impl Strategy<Value = PlannedRecord> {
    (0i64..1 << 42, prop::option::of(bytes()), prop::option::of(bytes()), headers(), 0..4i32).prop_map(
        // `delta` is a gap until the batch is put together.
        |(timestamp, key, value, headers, delta)| PlannedRecord { delta, timestamp, key, value, headers },
    )
}

prop_compose! {
    fn plan()(
        base in prop_oneof![Just(0), 0..1i64 << 50], epoch in -1i32.., producer in -1i64.., producer_epoch in -1i16..,
        base_sequence in -1i32..1 << 30, transactional: bool, gaps: bool,
        mut records in prop::collection::vec(record(), 1..12),
    ) -> Plan {
        let mut next = 0;
        for record in &mut records {
            record.delta = next + if gaps && next > 0 { record.delta } else { 0 };
            next = record.delta + 1;
        }
        let meta = BatchMeta {
            base_offset: Offset(base), leader_epoch: LeaderEpoch(epoch),
            producer: ProducerId(producer), producer_epoch: ProducerEpoch(producer_epoch), base_sequence,
            transactional, control: false,
            // The oracle counts from the smallest timestamp.
            base_timestamp: records.iter().map(|r| r.timestamp).min().unwrap(),
        };
        Plan { meta, records }
    }
}

fn oracle_encode(records: &[Record]) -> Bytes {
    let mut out = BytesMut::new();
    let options = RecordEncodeOptions { version: 2, compression: OracleCompression::None };
    RecordBatchEncoder::encode(&mut out, records, &options).unwrap();
    out.freeze()
}

proptest! {
    #[test]
    fn batches_built_here_decode_there(plans in prop::collection::vec(plan(), 1..4)) {
        let built = plans.iter().fold(BytesMut::new(), |arena, plan| plan.build(arena)).freeze();
        // The oracle checks the CRC as it decodes.
        let decoded = RecordBatchDecoder::decode_all(&mut built.clone()).unwrap();
        prop_assert_eq!(decoded.len(), plans.len());
        for (set, plan) in decoded.into_iter().zip(&plans) {
            prop_assert_eq!(set.records, plan.oracle_records());
        }
        let pieces: Vec<Bytes> = split(&built).map(Result::unwrap).collect();
        prop_assert_eq!(pieces.concat(), &built[..]);
    }

    #[test]
    fn batches_encoded_there_parse_here(plan in plan()) {
        let encoded = oracle_encode(&plan.oracle_records());
        let batches: Vec<_> = views(&encoded).map(Result::unwrap).collect();
        prop_assert_eq!(batches.len(), 1);
        plan.agrees(&batches[0]);
    }

    #[test]
    fn both_write_the_same_bytes(plan in plan()) {
        prop_assert_eq!(plan.build(BytesMut::new()), oracle_encode(&plan.oracle_records()));
    }

    #[test]
    fn a_stamped_batch_is_what_the_oracle_would_have_written_there(
        plan in plan(), base in 0..1i64 << 50, epoch in 0i32..,
    ) {
        let mut built = plan.build(BytesMut::new());
        stamp(&mut built, Offset(base), LeaderEpoch(epoch));
        let mut moved = plan.clone();
        moved.meta.base_offset = Offset(base);
        moved.meta.leader_epoch = LeaderEpoch(epoch);
        prop_assert_eq!(built, oracle_encode(&moved.oracle_records()));
    }

    #[test]
    fn compressed_batches_pass_through_untouched(plan in plan(), codec in 1u8..5, base in 0..1i64 << 50) {
        let compression =
            [OracleCompression::Gzip, OracleCompression::Snappy, OracleCompression::Lz4, OracleCompression::Zstd]
                [usize::from(codec) - 1];
        let options = RecordEncodeOptions { version: 2, compression };
        let records = plan.oracle_records();
        let mut encoded = BytesMut::new();
        // Any codec will do: nobody here looks inside.
        let scramble = |from: &[u8]| from.iter().rev().map(|b| b ^ 0x5a).collect::<Vec<u8>>();
        RecordBatchEncoder::encode_with_custom_compression(
            &mut encoded, &records, &options,
            Some(|from: &mut BytesMut, to: &mut BytesMut, _| { to.extend_from_slice(&scramble(from)); Ok(()) }),
        ).unwrap();
        stamp(&mut encoded, Offset(base), LeaderEpoch(5));
        let encoded = encoded.freeze();

        let batch = BatchView::parse(&encoded).unwrap();
        prop_assert!(batch.crc_valid());
        prop_assert_eq!(batch.compression() as u8, codec);
        prop_assert_ne!(batch.compression(), Compression::None);
        prop_assert_eq!(batch.record_count() as usize, records.len());
        prop_assert!(matches!(batch.records().collect::<Vec<_>>()[..], [Err(_)]));

        let passed = split(&encoded).next().unwrap().unwrap();
        let decoded = RecordBatchDecoder::decode_with_custom_compression(
            &mut passed.clone(), Some(|from: &mut Bytes, _| Ok(Bytes::from(scramble(from)))),
        ).unwrap();
        let values = |records: &[Record]| records.iter().map(|r| (r.key.clone(), r.value.clone())).collect::<Vec<_>>();
        prop_assert_eq!(values(&decoded.records), values(&records));
        prop_assert_eq!(decoded.records[0].offset, base);
    }
}

fn only_control_record(bytes: &Bytes) -> Record {
    let mut sets = RecordBatchDecoder::decode_all(&mut bytes.clone()).unwrap();
    assert_eq!((sets.len(), sets[0].records.len()), (1, 1));
    let record = sets.remove(0).records.remove(0);
    assert!(record.control);
    record
}

fn oracle_body(message: &impl Encodable) -> Vec<u8> {
    let mut out = BytesMut::new();
    message.encode(&mut out, 0).unwrap();
    out.to_vec()
}

#[test]
fn markers_decode_there() {
    for (commit, control) in [(false, ControlType::Abort), (true, ControlType::Commit)] {
        let record = only_control_record(&end_txn_marker(commit, ProducerId(77), ProducerEpoch(5), 9, 1234));
        assert!(record.transactional);
        assert_eq!((record.producer_id, record.producer_epoch, record.sequence, record.timestamp), (77, 5, -1, 1234));
        assert_eq!(record.key.unwrap(), control.key()[..]);
        let value = record.value.unwrap();
        // The version stands before the message.
        assert_eq!(value[..2], [0, 0]);
        assert_eq!(value[2..], oracle_body(&EndTxnMarker::default().with_coordinator_epoch(9)));
    }
}

#[test]
fn leader_changes_decode_there() {
    use kafka_protocol::messages::leader_change_message::Voter;
    let voters = |ids: &[i32]| ids.iter().map(|id| Voter::default().with_voter_id(*id)).collect::<Vec<_>>();
    let record = only_control_record(&leader_change(Offset(9), LeaderEpoch(4), 2, &[1, 2, 3], &[2, 3], 55));
    assert_eq!((record.offset, record.partition_leader_epoch, record.producer_id), (9, 4, -1));
    let message = LeaderChangeMessage::default()
        .with_leader_id(OracleBroker(2))
        .with_voters(voters(&[1, 2, 3]))
        .with_granting_voters(voters(&[2, 3]));
    assert_eq!(record.value.unwrap(), oracle_body(&message));
}

#[test]
fn pid_resets_decode_there() {
    let record = only_control_record(&mirror_pid_reset(Some("source"), 55));
    assert_eq!((record.producer_id, record.producer_epoch, record.transactional), (-1, -1, false));
    assert_eq!(record.key.unwrap(), [0, 0, 0, 7][..]);
    assert_eq!(record.value.unwrap(), b"\0\0\x07source\0"[..]);
}
