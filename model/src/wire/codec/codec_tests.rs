//! What the codec does where messages and wire differ; that every message comes back is tested in the tests crate, with the
//! independent implementation at hand.

use super::*;
use crate::ids::{BrokerEpoch, BrokerId, LeaderEpoch, NodeId, Offset, PartitionIx, TopicId};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::*;
use crate::wire::size::{api, TOPIC_NAME_LEN};
use ::bytes::{Bytes, BytesMut};

fn request(body: impl Into<Body>) -> Message {
    Message { correlation: 1, body: body.into() }
}

fn offsets(parts: &[u32]) -> Message {
    let parts = parts
        .iter()
        .map(|ix| OffsetQuestion {
            partition: PartitionIx(*ix),
            current_leader_epoch: LeaderEpoch(1),
            timestamp: LATEST,
        })
        .collect();
    request(ListOffsetsRequest { replica: BrokerId::NONE, isolation: Isolation::ReadCommitted, parts })
}

#[test]
fn indices_that_the_directory_does_not_know_come_back() {
    let message = offsets(&[0, 7, u32::MAX, 7]);
    assert_eq!(decode_request(&encode(&message, &Nowhere), &Nowhere).unwrap(), message);
    for ix in [0, 1, u32::MAX] {
        let place = stand_in(PartitionIx(ix));
        assert_eq!(place.name.len(), TOPIC_NAME_LEN);
        assert_ne!(place.id, TopicId::ZERO);
    }
}

#[test]
fn a_topic_that_nobody_knows_is_an_error_with_its_place() {
    struct Other;
    impl Directory for Other {
        fn place(&self, partition: PartitionIx) -> Option<Place> {
            Some(Place { id: TopicId(1), name: "gone".into(), number: partition.0 })
        }
        fn by_id(&self, _: TopicId, _: u32) -> Option<PartitionIx> {
            None
        }
        fn by_name(&self, _: &str, _: u32) -> Option<PartitionIx> {
            None
        }
        fn cluster_id(&self) -> &'static str {
            ""
        }
    }
    let error = decode_request(&encode(&offsets(&[3]), &Other), &Other).unwrap_err();
    // Frame 4, header 20, replica 4, isolation 1, array 1, name 5, array 1, entry 17.
    assert_eq!(error, DecodeError { field: "PartitionIndex", at: 53, why: Wrong::UnknownPartition });
    assert_eq!(error.to_string(), "PartitionIndex at byte 53: no such partition");
}

fn answer(batches: Vec<Bytes>, ranges: &[(u32, u32)]) -> Message {
    let parts = ranges.iter().map(|&(first_batch, batch_count)| FetchPartAnswer {
        slot: 9,
        partition: PartitionIx(4),
        high_watermark: Offset(5),
        mirror_leader_epoch: LeaderEpoch::NONE,
        first_batch,
        batch_count,
        ..FetchPartAnswer::default()
    });
    request(FetchResponse { topic_groups: 1, parts: parts.collect(), batches, ..FetchResponse::default() })
}

#[test]
fn batches_share_the_frame_and_keep_their_cuts() {
    let piece = |byte, len| Bytes::from(vec![byte; len]);
    let message =
        answer(vec![piece(1, 300), piece(2, 0), piece(3, 70), piece(4, 5)], &[(0, 2), (2, 0), (2, 1), (3, 1)]);
    let frame = encode(&message, &Nowhere);
    let back = decode_response(&frame, api(&message.body), &Nowhere).unwrap();
    assert_eq!(back, message);
    let Body::FetchResponse(back) = back.body else { unreachable!() };
    let inside = frame.as_ptr_range();
    for batch in back.batches.iter().filter(|batch| !batch.is_empty()) {
        assert!(inside.contains(&batch.as_ptr()), "a batch was copied");
    }
    // Without the cuts, the bytes of an entry are one piece.
    let bare = decode_response(&encode_stock(&message, &Nowhere), api(&message.body), &Nowhere).unwrap();
    let Body::FetchResponse(bare) = bare.body else { unreachable!() };
    assert_eq!(bare.batches.iter().map(Bytes::len).collect::<Vec<_>>(), [300, 70, 5]);
}

#[test]
fn leaders_at_two_addresses_and_at_none_come_back() {
    let part = |leader, node: Option<u16>| ProducePartAnswer {
        partition: PartitionIx(0),
        error: ErrorCode::NotLeaderOrFollower,
        base: Offset::UNKNOWN,
        log_start: Offset::UNKNOWN,
        current_leader: Some(LeaderHint { leader: BrokerId(leader), epoch: LeaderEpoch(-1), node: node.map(NodeId) }),
    };
    let parts = vec![part(1, Some(10)), part(1, None), part(1, Some(11)), part(-1, None), part(2, None)];
    let message = request(ProduceResponse { topic_groups: 1, parts });
    let frame = encode(&message, &Nowhere);
    assert_eq!(decode_response(&frame, api(&message.body), &Nowhere).unwrap(), message);
}

#[test]
fn lengths_are_believed_only_as_far_as_there_are_bytes() {
    // A metadata request for 2^32 − 2 topics, in 5 bytes.
    let mut frame = BytesMut::new();
    frame.extend_from_slice(&[0, 0, 0, 16, 0, 3, 0, 13, 0, 0, 0, 1, 0xff, 0xff, 0]);
    frame.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0x0f]);
    let error = decode_request(&frame.freeze(), &Nowhere).unwrap_err();
    assert_eq!(error, DecodeError { field: "Topics", at: 20, why: Wrong::Truncated });
}

#[test]
fn bytes_after_the_message_and_wrong_lengths_are_errors() {
    let message = request(BrokerHeartbeatRequest { epoch: BrokerEpoch(2), ..BrokerHeartbeatRequest::default() });
    let mut long = encode(&message, &Nowhere).to_vec();
    long.push(0);
    assert_eq!(decode_request(&long.clone().into(), &Nowhere).unwrap_err().field, "length");
    long[3] += 1;
    let error = decode_request(&long.into(), &Nowhere).unwrap_err();
    assert_eq!((error.field, error.why), ("message", Wrong::Trailing));
}

#[test]
fn other_versions_and_keys_are_errors() {
    let message = request(BrokerHeartbeatRequest::default());
    let good = encode(&message, &Nowhere);
    for (at, to, api) in [(5, 64, (64, 1)), (7, 2, (63, 2)), (7, 0, (63, 0))] {
        let mut bad = good.to_vec();
        bad[at] = to;
        let error = decode_request(&bad.into(), &Nowhere).unwrap_err();
        assert_eq!(error.why, Wrong::Api(api.0, api.1));
    }
}

#[test]
fn tagged_fields_of_others_are_skipped() {
    let mut c = Coder::writer(&Nowhere, true);
    c.tags(&mut [
        tags::Tag::new(3, true, &mut |c| c.always_i64("later", 7)),
        tags::Tag::new(tags::OWN + 999, true, &mut |c| c.always_text("later", Some("x"))),
    ])
    .unwrap();
    let bytes = c.into_bytes().freeze();
    let mut c = Coder::reader(&bytes, &Nowhere);
    c.tags(&mut [tags::Tag::new(1, false, &mut |_| panic!("it is not there"))]).unwrap();
    assert_eq!(c.left(), 0);
}

#[test]
fn a_tagged_field_of_another_length_is_an_error() {
    let mut c = Coder::writer(&Nowhere, true);
    c.tags(&mut [tags::Tag::new(1, true, &mut |c| c.always_i64("wide", 7))]).unwrap();
    let bytes = c.into_bytes().freeze();
    let mut c = Coder::reader(&bytes, &Nowhere);
    let mut narrow = 0;
    let error = c.tags(&mut [tags::Tag::new(1, false, &mut |c| c.i32("narrow", &mut narrow))]).unwrap_err();
    assert_eq!(error.why, Wrong::Trailing);
}
