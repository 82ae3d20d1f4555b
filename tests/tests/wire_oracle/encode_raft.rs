//! As the parent, for the metadata log.

use super::*;
use k::{fetch_request as fq, fetch_response as fr, fetch_snapshot_request as sq, fetch_snapshot_response as sr};
use mirrorlab_model::wire::codec::{voter_directory, METADATA_TOPIC_ID};
use mirrorlab_model::wire::size::METADATA_TOPIC;

impl Oracle<'_> {
    pub(super) fn raft_fetch(&self, r: &m::RaftFetchRequest) -> k::FetchRequest {
        let partition = k!(fq::FetchPartition {
            current_leader_epoch: r.current_epoch.0,
            fetch_offset: r.fetch_offset.0,
            last_fetched_epoch: r.last_fetched_epoch.0,
            log_start_offset: -1,
            partition_max_bytes: i32::MAX,
            replica_directory_id: uuid(voter_directory(r.replica)),
            high_watermark: r.high_watermark.0,
        });
        let topic = k!(fq::FetchTopic { topic_id: uuid(METADATA_TOPIC_ID), partitions: vec![partition] });
        k!(k::FetchRequest {
            cluster_id: Some(copy(self.dir.cluster_id())),
            replica_state: k!(fq::ReplicaState { replica_id: k::BrokerId(r.replica), replica_epoch: -1 }),
            max_wait_ms: r.max_wait_ms as i32,
            min_bytes: 0,
            max_bytes: r.max_bytes as i32,
            session_epoch: -1,
            topics: vec![topic],
        })
    }

    pub(super) fn raft_fetched(&self, r: &m::RaftFetchResponse) -> k::FetchResponse {
        let leader = r.leader.map_or(-1, |node| i32::from(node.0));
        let mut partition = k!(fr::PartitionData {
            error_code: r.error as i16,
            high_watermark: r.high_watermark.0,
            aborted_transactions: None,
            records: Some(concat(&r.batches)),
            current_leader: k!(fr::LeaderIdAndEpoch { leader_id: k::BrokerId(leader), leader_epoch: r.epoch.0 }),
        });
        if let Some(end) = r.diverging {
            partition.diverging_epoch = k!(fr::EpochEndOffset { epoch: end.epoch.0, end_offset: end.end.0 });
        }
        if let Some((end, epoch)) = r.snapshot {
            partition.snapshot_id = k!(fr::SnapshotId { end_offset: end.0, epoch: epoch.0 });
        }
        let endpoint = |node: NodeId| {
            k!(fr::NodeEndpoint { node_id: k::BrokerId(node.0.into()), host: address(node), port: PORT.into() })
        };
        let topic = k!(fr::FetchableTopicResponse { topic_id: uuid(METADATA_TOPIC_ID), partitions: vec![partition] });
        k!(k::FetchResponse { responses: vec![topic], node_endpoints: r.leader.map(endpoint).into_iter().collect() })
    }

    pub(super) fn snapshot(&self, r: &m::FetchSnapshotRequest) -> k::FetchSnapshotRequest {
        let partition = k!(sq::PartitionSnapshot {
            current_leader_epoch: -1,
            snapshot_id: k!(sq::SnapshotId { end_offset: r.snapshot.0 .0, epoch: r.snapshot.1 .0 }),
            position: r.position as i64,
            replica_directory_id: uuid(voter_directory(r.replica)),
        });
        let topic = k!(sq::TopicSnapshot { name: named(METADATA_TOPIC), partitions: vec![partition] });
        k!(k::FetchSnapshotRequest {
            cluster_id: Some(copy(self.dir.cluster_id())),
            replica_id: k::BrokerId(r.replica),
            max_bytes: r.max_bytes as i32,
            topics: vec![topic],
        })
    }

    pub(super) fn snapshot_piece(&self, r: &m::FetchSnapshotResponse) -> k::FetchSnapshotResponse {
        let partition = k!(sr::PartitionSnapshot {
            error_code: r.error as i16,
            snapshot_id: k!(sr::SnapshotId { end_offset: -1, epoch: -1 }),
            current_leader: k!(sr::LeaderIdAndEpoch { leader_id: k::BrokerId(-1), leader_epoch: -1 }),
            size: r.size as i64,
            position: r.position as i64,
            unaligned_records: concat(&r.bytes),
        });
        let topic = k!(sr::TopicSnapshot { name: named(METADATA_TOPIC), partitions: vec![partition] });
        k!(k::FetchSnapshotResponse { topics: vec![topic] })
    }
}
