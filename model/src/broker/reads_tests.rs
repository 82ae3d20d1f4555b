//! LEAD-22 through the broker's door: what is asked in which epoch, of a leader, a follower, and a leader of a mirrored topic.

use super::*;
use crate::wire::messages::{
    EpochQuestion, ListOffsetsRequest, OffsetForLeaderEpochRequest, OffsetQuestion, EARLIEST, LATEST,
};

/// Of "led" this broker leads partition 0 in epoch 5 and follows partition 1; of "copied", which is mirrored, the same.
fn host() -> Host {
    let at = |ix: u32, topic: u32, leader: i32| Record::Partition {
        partition: PartitionIx(ix),
        topic: TopicIx(topic),
        number: ix % 2,
        state: state(leader, 5, 3, &[1, 2], &[1, 2]),
    };
    let mut host = Host::running();
    host.metadata(&[
        topic(0, 7, "led"),
        topic(1, 8, "copied"),
        Record::Mirror { mirror: MirrorIx(0), name: "m".into() },
        Record::MirrorTopicStateChange {
            topic: TopicIx(1),
            mirror: Some(MirrorIx(0)),
            desired: DesiredState::Mirroring,
        },
        at(0, 0, 1),
        at(1, 0, 2),
        at(2, 1, 1),
        at(3, 1, 2),
    ]);
    host.open_client();
    host
}

fn fetched(host: &mut Host, partition: PartitionIx, epoch: LeaderEpoch) -> ErrorCode {
    let part = FetchPart {
        slot: 0,
        partition,
        fetch_offset: Offset::ZERO,
        current_leader_epoch: epoch,
        last_fetched_epoch: LeaderEpoch::NONE,
        log_start: Offset::UNKNOWN,
        max_bytes: 1 << 20,
        mirror_leader_epoch: LeaderEpoch::NONE,
        aligned: LeaderEpoch::NONE,
    };
    let request = FetchRequest {
        replica: BrokerId::NONE,
        broker_epoch: BrokerEpoch(-1),
        max_wait_ms: 0,
        min_bytes: 0,
        max_bytes: 1 << 20,
        isolation: Isolation::ReadUncommitted,
        session_id: 0,
        session_epoch: -1,
        topic_groups: 1,
        parts: vec![part],
        forgotten: Vec::new(),
    };
    host.client(1, request);
    let Body::FetchResponse(answer) = host.take("FetchResponse").1.body else { panic!() };
    answer.parts[0].error
}

fn located(host: &mut Host, partition: PartitionIx, current_leader_epoch: LeaderEpoch, timestamp: i64) -> ErrorCode {
    let parts = vec![OffsetQuestion { partition, current_leader_epoch, timestamp }];
    host.client(1, ListOffsetsRequest { replica: BrokerId::NONE, isolation: Isolation::ReadUncommitted, parts });
    let Body::ListOffsetsResponse(answer) = host.take("ListOffsetsResponse").1.body else { panic!() };
    answer.parts[0].error
}

fn epoch_end(host: &mut Host, partition: PartitionIx, current_leader_epoch: LeaderEpoch) -> ErrorCode {
    let parts = vec![EpochQuestion { partition, current_leader_epoch, epoch: LeaderEpoch(5) }];
    host.client(1, OffsetForLeaderEpochRequest { replica: BrokerId::NONE, parts });
    let Body::OffsetForLeaderEpochResponse(answer) = host.take("OffsetForLeaderEpochResponse").1.body else { panic!() };
    answer.parts[0].error
}

#[test]
fn lead_22_every_read_is_fenced_by_its_epoch_before_leadership_is_looked_at() {
    let mut host = host();
    let cases = [
        (-1, ErrorCode::None),
        (5, ErrorCode::None),
        (4, ErrorCode::FencedLeaderEpoch),
        (6, ErrorCode::UnknownLeaderEpoch),
    ];
    for (epoch, expected) in cases {
        for ix in 0..4 {
            let (partition, epoch) = (PartitionIx(ix), LeaderEpoch(epoch));
            let leads = ix % 2 == 0;
            let expected = if expected.is_none() && !leads { ErrorCode::NotLeaderOrFollower } else { expected };
            assert_eq!(fetched(&mut host, partition, epoch), expected, "fetch of {ix} in {epoch}");
            for timestamp in [EARLIEST, LATEST, 5] {
                let told = located(&mut host, partition, epoch, timestamp);
                assert_eq!(told, expected, "offset of {ix} by {timestamp} in {epoch}");
            }
            assert_eq!(epoch_end(&mut host, partition, epoch), expected, "epoch end of {ix} in {epoch}");
        }
    }
}
