use super::*;
use mirrorlab_model::ids::{LeaderEpoch, MetadataOffset, Offset, PartitionIx};
use mirrorlab_model::wire::errors::ErrorCode;
use mirrorlab_model::wire::messages::{
    BumpLeaderEpochsRequest, EpochAnswer, EpochEnd, OffsetForLeaderEpochResponse, RaftFetchResponse,
};

fn messages() -> Vec<Message> {
    let bump =
        BumpLeaderEpochsRequest { parts: vec![(PartitionIx(3), LeaderEpoch(4)), (PartitionIx(4), LeaderEpoch(5))] };
    let end = EpochEnd { epoch: LeaderEpoch(1), end: Offset(99) };
    let answer = EpochAnswer { partition: PartitionIx(1), error: ErrorCode::None, end };
    let raft = RaftFetchResponse {
        high_watermark: MetadataOffset(77),
        batches: vec![Bytes::from(vec![7; 40]), Bytes::from(vec![8; 20])],
        ..RaftFetchResponse::default()
    };
    let bodies = [bump.into(), OffsetForLeaderEpochResponse { parts: vec![answer] }.into(), raft.into()];
    bodies.into_iter().map(|body| Message { correlation: 9, body }).collect()
}

#[test]
fn messages_come_back() {
    let mut check = WireCheck::new(Seed(1));
    for message in messages() {
        assert_eq!(check.pass(&message, None), message);
    }
    assert_eq!(check.passed(), 3);
}

/// Whatever bit is wrong, it is noticed, unless it is in a field that no message holds.
#[test]
fn a_damaged_codec_is_noticed() {
    for message in messages() {
        let frame = encode(&message, &Nowhere);
        let noticed = |at: usize| {
            let flip = |frame: Bytes| {
                let mut bytes = frame.to_vec();
                bytes[at] ^= 1;
                Bytes::from(bytes)
            };
            through(&message, &Nowhere, flip).is_err()
        };
        let unnoticed = (0..frame.len()).filter(|at| !noticed(*at)).count();
        // Throttle time, client id, log start and the like; of the batches nothing.
        assert!(unnoticed * 2 < frame.len(), "{}: {unnoticed} of {}", message.body.name(), frame.len());
        assert!(noticed(frame.len() - 2) || noticed(frame.len() - 6), "{}", message.body.name());
        let cut = |frame: Bytes| frame.slice(..frame.len() - 1);
        let difference = through(&message, &Nowhere, cut).unwrap_err();
        assert!(difference.contains(message.body.name()) && difference.contains("sent: "), "{difference}");
    }
}

#[test]
#[should_panic(expected = "the codec is wrong: BumpLeaderEpochsRequest")]
fn a_message_that_does_not_come_back_ends_the_program() {
    // No frame can hold it: the index is not one that a directory may give twice.
    struct Liar;
    impl Directory for Liar {
        fn place(&self, _: PartitionIx) -> Option<mirrorlab_model::wire::codec::Place> {
            Some(mirrorlab_model::wire::codec::Place { id: Default::default(), name: "t".into(), number: 0 })
        }
        fn by_id(&self, _: mirrorlab_model::ids::TopicId, _: u32) -> Option<PartitionIx> {
            Some(PartitionIx(0))
        }
        fn by_name(&self, _: &str, _: u32) -> Option<PartitionIx> {
            Some(PartitionIx(0))
        }
        fn cluster_id(&self) -> &'static str {
            ""
        }
    }
    let message = &messages()[0];
    WireCheck::new(Seed(1)).take_back(through(message, &Liar, |frame| frame));
}

#[test]
fn about_half_of_the_connections_are_taken() {
    let check = WireCheck::new(Seed(5));
    let taken = (0..10_000).filter(|conn| check.takes(ConnId(*conn))).count();
    assert!((4_500..5_500).contains(&taken), "{taken}");
}
