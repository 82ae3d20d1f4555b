//! A few sizes counted by hand; the rest is compared with an independent implementation in the tests crate.

use super::*;
use crate::ids::{BrokerEpoch, MetadataOffset, NodeId, PartitionIx, ProducerEpoch, ProducerId, TopicId};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::*;

fn size(body: impl Into<Body>) -> usize {
    Message { correlation: 7, body: body.into() }.encoded_size() as usize
}

fn fetch_position(slot: u32) -> FetchPart {
    FetchPart {
        slot,
        partition: PartitionIx(slot),
        fetch_offset: Offset(1 << 40),
        current_leader_epoch: LeaderEpoch(3),
        last_fetched_epoch: LeaderEpoch(3),
        log_start: Offset(0),
        max_bytes: 1 << 20,
        mirror_leader_epoch: LeaderEpoch::NONE,
        aligned: LeaderEpoch::NONE,
    }
}

fn fetch(parts: Vec<FetchPart>) -> FetchRequest {
    FetchRequest {
        replica: BrokerId::NONE,
        broker_epoch: BrokerEpoch(-1),
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 1 << 24,
        isolation: Isolation::ReadUncommitted,
        session_id: 5,
        session_epoch: 6,
        topic_groups: u32::from(!parts.is_empty()),
        parts,
        forgotten: vec![],
    }
}

#[test]
fn a_heartbeat_counted_by_hand() {
    let request = BrokerHeartbeatRequest {
        broker: BrokerId(1),
        epoch: BrokerEpoch(2),
        metadata_offset: MetadataOffset(3),
        want_fence: false,
        want_shutdown: false,
    };
    // Frame 4; key 2, version 2, correlation 4, client id 2 + 9, tags 1; body 4 + 8 + 8 + 1 + 1, tags 1.
    assert_eq!(size(request), 4 + 20 + 23);
    // Frame 4; correlation 4, tags 1; throttle 4, error 2, three booleans, tags 1.
    assert_eq!(size(BrokerHeartbeatResponse::default()), 4 + 5 + 10);
}

#[test]
fn an_incremental_fetch_pays_only_for_what_changed() {
    // 21 fixed, two empty arrays, empty rack, tags.
    let idle = size(fetch(vec![]));
    assert_eq!(idle, 24 + 21 + 4);
    // Topic id 16, array length 1, tags 1; the partition: 32 and tags.
    let one = size(fetch(vec![fetch_position(0)]));
    assert_eq!(one - idle, 18 + 33);
    let mut request = fetch(vec![fetch_position(0), fetch_position(1)]);
    assert_eq!(size(request.clone()) - one, 33);
    request.topic_groups = 2;
    assert_eq!(size(request.clone()) - one, 33 + 18);
    request.parts[0].mirror_leader_epoch = LeaderEpoch(9);
    assert_eq!(size(request) - one, 33 + 18 + 6);
}

#[test]
fn a_follower_names_itself_in_a_tagged_field() {
    let consumer = fetch(vec![]);
    let follower = FetchRequest { replica: BrokerId(2), broker_epoch: BrokerEpoch(40), ..consumer.clone() };
    assert_eq!(size(follower) - size(consumer), 2 + 13);
}

#[test]
fn array_lengths_take_a_second_byte_at_127() {
    let parts = |n: u32| size(fetch((0..n).map(fetch_position).collect()));
    assert_eq!(parts(126) - parts(125), 33);
    assert_eq!(parts(127) - parts(126), 34);
    assert_eq!(parts(128) - parts(127), 33);
}

#[test]
fn a_fetch_answer_carries_exactly_its_entries_batches() {
    let entry = |first_batch, batch_count| FetchPartAnswer {
        slot: 0,
        partition: PartitionIx(0),
        error: ErrorCode::None,
        high_watermark: Offset(9),
        last_stable: Offset(9),
        log_start: Offset(0),
        diverging: None,
        current_leader: None,
        mirror_leader_epoch: LeaderEpoch::NONE,
        misaligned: false,
        first_batch,
        batch_count,
        aborted: None,
    };
    let answer = |parts: Vec<FetchPartAnswer>| FetchResponse {
        topic_groups: 1,
        parts,
        batches: vec![Bytes::from(vec![0; 100]), Bytes::from(vec![0; 1000])],
        ..FetchResponse::default()
    };
    let none = size(answer(vec![entry(0, 0)]));
    assert_eq!(size(answer(vec![entry(0, 1)])) - none, 100);
    assert_eq!(size(answer(vec![entry(0, 2)])) - none, 1100 + 1);
    assert_eq!(size(answer(vec![entry(1, 1)])) - none, 1000 + 1);
    // A range outside the batches counts as none.
    assert_eq!(size(answer(vec![entry(2, u32::MAX)])), none);
}

#[test]
fn hinted_leaders_are_listed_once() {
    let part = |leader| ProducePartAnswer {
        partition: PartitionIx(0),
        error: ErrorCode::NotLeaderOrFollower,
        base: Offset::UNKNOWN,
        log_start: Offset::UNKNOWN,
        current_leader: leader,
    };
    let hint = |id| Some(LeaderHint { leader: BrokerId(id), epoch: LeaderEpoch(4), node: Some(NodeId(id as u16)) });
    let answer = |parts: Vec<_>| size(ProduceResponse { topic_groups: 1, parts });
    let plain = answer(vec![part(None), part(None)]);
    // 4 + 4 + 1 tagged; the endpoint: 4, host 11, 4, 1, 1, in a tagged array.
    assert_eq!(answer(vec![part(hint(1)), part(hint(1))]) - plain, 2 * 11 + 2 + 1 + 21);
    assert_eq!(answer(vec![part(hint(1)), part(hint(2))]) - plain, 2 * 11 + 2 + 1 + 42);
}

#[test]
fn mirror_requests_counted_by_hand() {
    let bump = BumpLeaderEpochsRequest { parts: vec![(PartitionIx(0), LeaderEpoch(3)); 2] };
    // Array; name 17, array, partition 8 and tags, tags; tags.
    assert_eq!(size(bump), 24 + 1 + 2 * (17 + 1 + 9 + 1) + 1);
    let start = |include: Vec<Arc<str>>| StartMirrorTopicsRequest {
        mirror: "m".into(),
        topics: vec![(TopicId(1), "t".into(), 1)],
        include,
        exclude: vec![],
        state_offset: MetadataOffset(-1),
    };
    assert_eq!(size(start(vec![])), 24 + 2 + 1 + (16 + 2 + 4 + 1) + 8 + 1);
    assert_eq!(size(start(vec!["ab".into()])) - size(start(vec![])), 2 + 1 + 3);
    let create = |mirror_id| CreateTopicsRequest {
        topics: vec![
            NewTopic { name: "a".into(), mirror_id, ..NewTopic::default() },
            NewTopic { name: "b".into(), ..NewTopic::default() },
        ],
    };
    // Version 8: 18 for the one that has it, a null for the other.
    assert_eq!(size(create(Some(TopicId(5)))) - size(create(None)), 19);
    assert_eq!(api(&create(Some(TopicId(5))).into()), Api { key: 19, version: 8 });
}

#[test]
fn names_of_resources_are_decimal_ids() {
    let len = |id| resource_name_len(&ConfigResource::Broker(Some(BrokerId(id))));
    for id in [0, 9, 10, 99, 100, 2_147_483_647, -1, i32::MIN] {
        assert_eq!(len(id), id.to_string().len());
    }
}

#[test]
fn group_counts_that_do_not_fit_are_clamped() {
    assert_eq!(topics(0, 5, UUID), array(0));
    assert_eq!(topics(3, 0, UUID), topics(3, 1, UUID));
    assert_eq!(topics(3, 9, UUID), topics(3, 3, UUID));
}

#[test]
fn producer_ids_have_fixed_sizes() {
    let request = InitProducerIdRequest {
        transactional_id: None,
        timeout_ms: 60_000,
        producer: ProducerId(1),
        epoch: ProducerEpoch(1),
    };
    assert_eq!(size(request), 24 + 1 + 4 + 8 + 2 + 1);
    assert_eq!(size(InitProducerIdResponse::default()), 9 + 4 + 2 + 8 + 2 + 1);
}
