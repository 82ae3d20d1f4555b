//! Bytes of the proposal's messages, written by hand from the proposal's schemas (spec 8.2 to 8.14): the golden texts list the
//! body's fields in order, one group of digits per field.

use super::*;
use crate::ids::{
    BrokerEpoch, BrokerId, LeaderEpoch, MetadataOffset, Offset, PartitionIx, ProducerEpoch, ProducerId, TopicId,
};
use crate::states::{LastPosition, MirrorState, StateRecord};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::*;
use crate::wire::size::api;

/// Partition 10·t + n is number n of topic "t<t>" with id t.
struct Tens;

impl Directory for Tens {
    fn place(&self, partition: PartitionIx) -> Option<Place> {
        let (topic, number) = (partition.0 / 10, partition.0 % 10);
        Some(Place { id: TopicId(topic.into()), name: format!("t{topic}").into(), number })
    }
    fn by_id(&self, topic: TopicId, number: u32) -> Option<PartitionIx> {
        Some(PartitionIx(topic.0 as u32 * 10 + number))
    }
    fn by_name(&self, topic: &str, number: u32) -> Option<PartitionIx> {
        let topic: u32 = topic.strip_prefix('t')?.parse().ok()?;
        Some(PartitionIx(topic * 10 + number))
    }
    fn cluster_id(&self) -> &'static str {
        "here"
    }
}

/// Digits in pairs, and texts in quotes; spaces and line ends do not count.
fn bytes(golden: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, part) in golden.split('\'').enumerate() {
        if at % 2 == 1 {
            out.extend_from_slice(part.as_bytes());
            continue;
        }
        let digits: Vec<u8> = part.bytes().filter(u8::is_ascii_hexdigit).collect();
        for pair in digits.chunks(2) {
            out.push(u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap());
        }
    }
    out
}

/// Header of correlation id 5, then the body; and back.
#[track_caller]
fn is(body: impl Into<Body>, key_and_version: &str, golden: &str) {
    let message = Message { correlation: 5, body: body.into() };
    let header = if message.body.is_request() {
        format!("{key_and_version} 00000005 0009 'mirrorlab' 00")
    } else {
        "00000005 00".to_owned()
    };
    let content = bytes(&format!("{header} {golden}"));
    let mut expected = (content.len() as u32).to_be_bytes().to_vec();
    expected.extend_from_slice(&content);
    let frame = encode_stock(&message, &Tens);
    assert_eq!(hex(&frame), hex(&expected), "{}", message.body.name());
    let back = if message.body.is_request() {
        decode_request(&frame, &Tens)
    } else {
        decode_response(&frame, api(&message.body), &Tens)
    };
    assert_eq!(back.unwrap(), message);
    assert_eq!(decode_back(&encode(&message, &Tens), &message), message);
}

fn decode_back(frame: &bytes::Bytes, like: &Message) -> Message {
    if like.body.is_request() {
        decode_request(frame, &Tens).unwrap()
    } else {
        decode_response(frame, api(&like.body), &Tens).unwrap()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn named(name: &str) -> NamedResult {
    NamedResult { name: name.into(), error: ErrorCode::TopicNotInClusterMirror, message: Some("no".into()) }
}

const AT: Option<LastPosition> = Some(LastPosition { epoch: LeaderEpoch(4), offset: Offset(0x99) });

#[test]
fn creating_a_mirror() {
    let request = CreateClusterMirrorRequest { mirror: "m1".into(), configs: vec![("k".into(), "vv".into())] };
    is(request, "005e 0000", "03 'm1'  02 (02 'k' 03 'vv' 00)  00");
    let answer =
        CreateClusterMirrorResponse { error: ErrorCode::ClusterMirrorAlreadyExists, message: Some("dup".into()) };
    is(answer, "", "00000000 0088 04 'dup' 00");
    is(CreateClusterMirrorResponse::default(), "", "00000000 0000 00 00");
}

#[test]
fn starting_topics() {
    let mut request = StartMirrorTopicsRequest {
        mirror: "m1".into(),
        topics: vec![(TopicId(0xab), "orders".into(), 3)],
        include: vec!["o.*".into(), "p".into()],
        exclude: vec!["q".into()],
        state_offset: MetadataOffset(-1),
    };
    let topics = "03 'm1'  02 (000000000000000000000000000000ab 07 'orders' 00000003 00)  ffffffffffffffff";
    // Two tagged fields: number, size, an array of texts.
    is(request.clone(), "005f 0000", &format!("{topics}  02  00 07 (03 04 'o.*' 02 'p')  01 03 (02 02 'q')"));
    request.include.clear();
    is(request.clone(), "005f 0000", &format!("{topics}  01  01 03 (02 02 'q')"));
    request.exclude.clear();
    is(request, "005f 0000", &format!("{topics}  00"));
    let answer =
        StartMirrorTopicsResponse { error: ErrorCode::InvalidClusterMirrorStates, topics: vec![named("orders")] };
    is(answer, "", "00000000 0091 00  02 (07 'orders' 008b 03 'no' 00)  00");
}

#[test]
fn stopping_pausing_resuming_recovering_topics() {
    let topics = vec!["a".into(), "bb".into()];
    let state_offset = MetadataOffset(0x1234);
    let common = "03 'm1'  03 (02 'a' 00) (03 'bb' 00)";
    let stop = StopMirrorTopicsRequest {
        mirror: "m1".into(),
        topics: topics.clone(),
        patterns: vec!["x".into()],
        state_offset,
    };
    is(stop.clone(), "0060 0000", &format!("{common} 0000000000001234  01  00 03 (02 02 'x')"));
    is(StopMirrorTopicsRequest { patterns: vec![], ..stop }, "0060 0000", &format!("{common} 0000000000001234 00"));
    is(
        PauseMirrorTopicsRequest { mirror: "m1".into(), topics: topics.clone(), state_offset },
        "0066 0000",
        &format!("{common} 0000000000001234 00"),
    );
    is(
        ResumeMirrorTopicsRequest { mirror: "m1".into(), topics: topics.clone(), state_offset },
        "0067 0000",
        &format!("{common} 0000000000001234 00"),
    );
    is(
        RecoverMirrorTopicsRequest { mirror: "m1".into(), topics, ..Default::default() },
        "006b 0000",
        &format!("{common} 00"),
    );

    let golden = "00000000 0000 00  02 (02 'a' 008b 03 'no' 00)  00";
    let topics = vec![named("a")];
    is(StopMirrorTopicsResponse { error: ErrorCode::None, topics: topics.clone() }, "", golden);
    is(PauseMirrorTopicsResponse { error: ErrorCode::None, topics: topics.clone() }, "", golden);
    is(ResumeMirrorTopicsResponse { error: ErrorCode::None, topics: topics.clone() }, "", golden);
    is(RecoverMirrorTopicsResponse { error: ErrorCode::None, topics }, "", golden);
}

#[test]
fn deleting_and_listing_mirrors() {
    let request = DeleteClusterMirrorRequest { mirror: "m1".into(), state_offset: MetadataOffset(7) };
    is(request, "0068 0000", "03 'm1' 0000000000000007 00");
    let answer = DeleteClusterMirrorResponse { error: ErrorCode::ClusterMirrorNotEmpty, message: None };
    is(answer, "", "00000000 008f 00 00");
    is(ListClusterMirrorsRequest {}, "0062 0000", "00");
    let mirror = ListedMirror {
        name: "m1".into(),
        bootstrap: "7,8".into(),
        source: "east".into(),
        mirroring: 2,
        topics: vec!["a".into()],
    };
    let answer = ListClusterMirrorsResponse { error: ErrorCode::None, mirrors: vec![mirror] };
    is(answer, "", "00000000 0000 00  02 (03 'm1' 04 '7,8' 05 'east' 00000002 02 02 'a' 00)  00");
}

#[test]
fn describing_mirrors() {
    let mut request = DescribeClusterMirrorsRequest {
        mirrors: Some(vec!["m1".into()]),
        states: true,
        offsets: false,
        cluster: Some("west".into()),
        lookups: vec![(TopicId(9), vec![1, 2])],
    };
    let golden = "02 03 'm1'  00 01 00  02  00 05 (05 'west')
        01 1b (02 00000000000000000000000000000009 03 00000001 00000002 00)";
    is(request.clone(), "0063 0000", golden);
    request = DescribeClusterMirrorsRequest { mirrors: None, offsets: true, ..Default::default() };
    is(request, "0063 0000", "00  00 00 01  00");

    let part = |topic: &str, number, state| DescribedPart {
        topic: topic.into(),
        number,
        state,
        attempt: 0,
        message: None,
        position: None,
        source_offset: Offset(10),
        destination_offset: Offset(8),
        ..Default::default()
    };
    let failed = DescribedPart {
        attempt: -1,
        message: Some("why".into()),
        position: AT,
        source_offset: Offset::UNKNOWN,
        destination_offset: Offset::UNKNOWN,
        ..part("b", 0, MirrorState::Failed)
    };
    let mirror = DescribedMirror {
        name: "m1".into(),
        error: ErrorCode::None,
        bootstrap: "7".into(),
        source: "e".into(),
        parts: vec![part("a", 0, MirrorState::Mirroring), part("a", 1, MirrorState::Mirroring), failed],
    };
    let positions = vec![
        FoundPosition {
            topic: TopicId(9),
            number: 1,
            error: ErrorCode::None,
            state: MirrorState::Stopped,
            position: AT,
            ..Default::default()
        },
        FoundPosition {
            topic: TopicId(9),
            number: 2,
            error: ErrorCode::NotCoordinator,
            state: MirrorState::Unknown,
            position: None,
            ..Default::default()
        },
    ];
    let golden = "00000000 0000 00
        02 (0000 03 'm1' 00 02 '7' 02 'e' 80000000
            03 (02 'a' 03
                (00000000 000000000000000a 0000000000000008 0a 'MIRRORING' 0000 00 ffffffff ffffffffffffffff 00)
                (00000001 000000000000000a 0000000000000008 0a 'MIRRORING' 0000 00 ffffffff ffffffffffffffff 00) 00)
               (02 'b' 02
                (00000000 ffffffffffffffff ffffffffffffffff 07 'FAILED' ffff 04 'why' 00000004 0000000000000099 00) 00)
            00)
        01  00 3b (02 00000000000000000000000000000009 03
            (00000001 0000 07 00000004 0000000000000099 00)
            (00000002 0010 ff ffffffff ffffffffffffffff 00) 00)";
    is(DescribeClusterMirrorsResponse { error: ErrorCode::None, mirrors: vec![mirror], positions }, "", golden);
}

#[test]
fn states_are_read() {
    let parts = vec![PartitionIx(11), PartitionIx(12), PartitionIx(20)];
    let request = ReadMirrorStatesRequest { mirror: "m1".into(), parts };
    is(
        request,
        "0064 0000",
        "03 'm1'  03 (03 't1' 03 (00000001 00) (00000002 00) 00) (03 't2' 02 (00000000 00) 00)  00",
    );
    let record = StateRecord {
        state: MirrorState::Failed,
        leader_epoch: LeaderEpoch(3),
        state_epoch: 12,
        previous: MirrorState::Mirroring,
        attempt: 2,
        message: Some("why".into()),
        position: AT,
        session: None,
    };
    let answer = ReadMirrorStatesResponse {
        error: ErrorCode::None,
        parts: vec![
            (PartitionIx(11), ErrorCode::None, record),
            (PartitionIx(12), ErrorCode::CoordinatorLoadInProgress, StateRecord::default()),
        ],
    };
    let golden = "00000000 0000 00  02 (03 't1' 03
        (00000001 08 00000003 0000000c 00000004 0000000000000099 0000 04 'why' 0002 03 00)
        (00000002 ff ffffffff 00000000 ffffffff ffffffffffffffff 000e 00 0000 ff 00) 00)  00";
    is(answer, "", golden);
}

#[test]
fn states_are_written() {
    let write = StateWrite {
        partition: PartitionIx(11),
        state: MirrorState::Failed,
        leader_epoch: LeaderEpoch(3),
        state_epoch: -1,
        position: AT,
        message: Some("why".into()),
        attempt: -1,
        for_good: true,
    };
    let request = WriteMirrorStatesRequest { mirror: "m1".into(), parts: vec![write] };
    let golden = "03 'm1'  02 (03 't1' 02
        (00000001 08 00000003 ffffffff 00000004 0000000000000099 04 'why' ffffffff 01 00) 00)  00";
    is(request, "0065 0000", golden);
    let answer = WriteMirrorStatesResponse {
        error: ErrorCode::None,
        parts: vec![(PartitionIx(11), ErrorCode::FencedStateEpoch, 13)],
    };
    is(answer, "", "00000000 0000 00  02 (03 't1' 02 (00000001 007c 00 0000000d 00) 00)  00");
}

#[test]
fn epochs_and_offsets() {
    let request = BumpLeaderEpochsRequest { parts: vec![(PartitionIx(11), LeaderEpoch(15))] };
    is(request, "0069 0000", "02 (03 't1' 02 (00000001 0000000f 00) 00)  00");
    let answer =
        BumpLeaderEpochsResponse { error: ErrorCode::None, parts: vec![(PartitionIx(11), ErrorCode::NotController)] };
    is(answer, "", "00000000 0000 00  02 (03 't1' 02 (00000001 0029 00 00) 00)  00");
    let request = ReadMirrorOffsetsRequest { mirror: "m1".into(), parts: vec![PartitionIx(11)] };
    is(request, "006a 0000", "03 'm1'  02 (03 't1' 02 (00000001 00) 00)  00");
    let answer = ReadMirrorOffsetsResponse {
        error: ErrorCode::None,
        parts: vec![(PartitionIx(11), Offset(10), Offset::UNKNOWN, ErrorCode::NotLeaderOrFollower)],
    };
    is(answer, "", "00000000 0000 00  02 (03 't1' 02 (00000001 000000000000000a ffffffffffffffff 0006 00) 00)  00");
}

/// Fetch 19: what stock 18 has, and the mirror's epoch as tagged fields 2 and 3 (spec 8.12).
#[test]
fn fetching_from_a_mirror_leader() {
    let part = FetchPart {
        slot: 0,
        partition: PartitionIx(11),
        fetch_offset: Offset(0x50),
        current_leader_epoch: LeaderEpoch(4),
        last_fetched_epoch: LeaderEpoch(3),
        log_start: Offset(0),
        max_bytes: 0x10_0000,
        mirror_leader_epoch: LeaderEpoch(2),
        aligned: LeaderEpoch::NONE,
    };
    let request = FetchRequest {
        replica: BrokerId(2),
        broker_epoch: BrokerEpoch(9),
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 0x20_0000,
        isolation: Isolation::ReadUncommitted,
        session_id: 5,
        session_epoch: 6,
        topic_groups: 1,
        parts: vec![part],
        forgotten: vec![],
    };
    let golden = "000001f4 00000001 00200000 00 00000005 00000006
        02 (00000000000000000000000000000001 02
            (00000001 00000004 0000000000000050 00000003 0000000000000000 00100000  01  02 04 00000002) 00)
        01 01
        01  01 0d (00000002 0000000000000009 00)";
    is(request, "0001 0013", golden);

    let entry = FetchPartAnswer {
        slot: 0,
        partition: PartitionIx(11),
        error: ErrorCode::None,
        high_watermark: Offset(0x60),
        last_stable: Offset(0x60),
        log_start: Offset(0),
        diverging: None,
        current_leader: None,
        mirror_leader_epoch: LeaderEpoch(2),
        misaligned: false,
        first_batch: 0,
        batch_count: 1,
        aborted: None,
    };
    let answer = FetchResponse {
        error: ErrorCode::None,
        session_id: 5,
        topic_groups: 1,
        parts: vec![entry],
        batches: vec![bytes::Bytes::from_static(b"batch")],
    };
    let golden = "00000000 0000 00000005
        02 (00000000000000000000000000000001 02
            (00000001 0000 0000000000000060 0000000000000060 0000000000000000 00 ffffffff 06 'batch'
             01  03 04 00000002) 00)
        00";
    is(answer, "", golden);
}

/// CreateTopics 8: stock 7 and a nullable structure with the source's topic id (spec 8.12, KIP-893).
#[test]
fn creating_a_mirror_topic() {
    let topic = |name: &str, mirror_id| NewTopic {
        name: name.into(),
        mirror_id,
        partitions: 3,
        replication_factor: -1,
        assignments: vec![vec![BrokerId(1), BrokerId(2)]],
        configs: vec![("k".into(), "v".into())],
    };
    let request = CreateTopicsRequest { topics: vec![topic("a", Some(TopicId(0xcd))), topic("b", None)] };
    let common = "00000003 ffff 02 (00000000 03 00000001 00000002 00) 02 (02 'k' 02 'v' 00)";
    let golden = format!(
        "03 (02 'a' {common} 01 000000000000000000000000000000cd 00 00) (02 'b' {common} ff 00)  0000ea60 00 00"
    );
    is(request, "0013 0008", &golden);
    let stock = CreateTopicsRequest { topics: vec![topic("b", None)] };
    is(stock, "0013 0007", &format!("02 (02 'b' {common} 00)  0000ea60 00 00"));
}

/// WriteTxnMarkers names the transaction version from its version 2 on (KIP-1228), and is of version 1 where none is named.
#[test]
fn markers_that_name_their_transaction_version() {
    let mut marker = TxnMarker {
        producer: ProducerId(0x1a),
        epoch: ProducerEpoch(3),
        commit: true,
        coordinator_epoch: 9,
        version: 2,
        parts: vec![PartitionIx(12)],
    };
    let of = |marker: &TxnMarker| WriteTxnMarkersRequest { markers: vec![marker.clone()] };
    let (head, tail) = ("02  000000000000001a 0003 01  02 (03 't1' 02 00000002 00)", "00000009");
    is(of(&marker), "001b 0002", &format!("{head} {tail} 02 00  00"));
    marker.version = 0;
    is(of(&marker), "001b 0001", &format!("{head} {tail} 00  00"));
    let answer = EndTxnResponse { error: ErrorCode::None, producer: ProducerId(0x1a), epoch: ProducerEpoch(4) };
    is(answer, "", "00000000 0000 000000000000001a 0004 00");
}
