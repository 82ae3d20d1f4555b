//! As the parent, for the metadata log.

use super::*;
use k::begin_quorum_epoch_request as bq;
use k::end_quorum_epoch_request as eq;
use k::{fetch_request as fq, fetch_response as fr, fetch_snapshot_request as sq, fetch_snapshot_response as sr};
use k::{vote_request as vq, vote_response as vr};
use mirrorlab_model::ids::controller_id;
use mirrorlab_model::wire::codec::{voter_directory, METADATA_TOPIC_ID};
use mirrorlab_model::wire::size::{LISTENER, METADATA_TOPIC};

impl Oracle<'_> {
    pub(super) fn raft_fetch(&self, r: &m::RaftFetchRequest) -> k::FetchRequest {
        let partition = k!(fq::FetchPartition {
            current_leader_epoch: r.current_epoch.0,
            fetch_offset: r.fetch_offset.0,
            last_fetched_epoch: r.last_fetched_epoch.0,
            log_start_offset: -1,
            partition_max_bytes: i32::MAX,
            replica_directory_id: uuid(r.directory),
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
        let leader = r.leader.map_or(-1, controller_id);
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
            k!(fr::NodeEndpoint { node_id: k::BrokerId(controller_id(node)), host: address(node), port: PORT.into() })
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

    pub(super) fn vote(&self, r: &m::VoteRequest) -> k::VoteRequest {
        let partition = k!(vq::PartitionData {
            replica_epoch: r.epoch.0,
            replica_id: controller(r.candidate),
            replica_directory_id: uuid(r.candidate_directory),
            voter_directory_id: uuid(r.voter_directory),
            last_offset_epoch: r.last_epoch.0,
            last_offset: r.end.0,
            pre_vote: r.pre_vote,
        });
        let topic = k!(vq::TopicData { topic_name: named(METADATA_TOPIC), partitions: vec![partition] });
        k!(k::VoteRequest { cluster_id: self.cluster(), voter_id: controller(r.voter), topics: vec![topic] })
    }

    pub(super) fn voted(&self, r: &m::VoteResponse) -> k::VoteResponse {
        let partition = k!(vr::PartitionData {
            error_code: r.error as i16,
            leader_id: k::BrokerId(r.leader.map_or(-1, controller_id)),
            leader_epoch: r.epoch.0,
            vote_granted: r.granted,
        });
        let topic = k!(vr::TopicData { topic_name: named(METADATA_TOPIC), partitions: vec![partition] });
        let endpoint = |node| k!(vr::NodeEndpoint { node_id: controller(node), host: address(node), port: PORT });
        k!(k::VoteResponse { topics: vec![topic], node_endpoints: r.leader.map(endpoint).into_iter().collect() })
    }

    pub(super) fn begin(&self, r: &m::BeginQuorumEpochRequest) -> k::BeginQuorumEpochRequest {
        let partition = k!(bq::PartitionData {
            voter_directory_id: uuid(r.voter_directory),
            leader_id: controller(r.leader),
            leader_epoch: r.epoch.0,
        });
        let topic = k!(bq::TopicData { topic_name: named(METADATA_TOPIC), partitions: vec![partition] });
        let endpoint = k!(bq::LeaderEndpoint { name: copy(LISTENER), host: address(r.leader), port: PORT });
        k!(k::BeginQuorumEpochRequest {
            cluster_id: self.cluster(),
            voter_id: controller(r.voter),
            topics: vec![topic],
            leader_endpoints: vec![endpoint],
        })
    }

    pub(super) fn begun(&self, r: &m::BeginQuorumEpochResponse) -> k::BeginQuorumEpochResponse {
        use k::begin_quorum_epoch_response as br;
        let partition = k!(br::PartitionData {
            error_code: r.error as i16,
            leader_id: k::BrokerId(r.leader.map_or(-1, controller_id)),
            leader_epoch: r.epoch.0,
        });
        let topic = k!(br::TopicData { topic_name: named(METADATA_TOPIC), partitions: vec![partition] });
        let endpoint = |node| k!(br::NodeEndpoint { node_id: controller(node), host: address(node), port: PORT });
        k!(k::BeginQuorumEpochResponse {
            topics: vec![topic],
            node_endpoints: r.leader.map(endpoint).into_iter().collect()
        })
    }

    pub(super) fn end(&self, r: &m::EndQuorumEpochRequest) -> k::EndQuorumEpochRequest {
        let candidate = |(node, directory): &(NodeId, u128)| {
            k!(eq::ReplicaInfo { candidate_id: controller(*node), candidate_directory_id: uuid(*directory) })
        };
        let partition = k!(eq::PartitionData {
            leader_id: controller(r.leader),
            leader_epoch: r.epoch.0,
            preferred_candidates: r.successors.iter().map(candidate).collect(),
        });
        let topic = k!(eq::TopicData { topic_name: named(METADATA_TOPIC), partitions: vec![partition] });
        let endpoint = k!(eq::LeaderEndpoint { name: copy(LISTENER), host: address(r.leader), port: PORT });
        k!(k::EndQuorumEpochRequest {
            cluster_id: self.cluster(),
            topics: vec![topic],
            leader_endpoints: vec![endpoint],
        })
    }

    pub(super) fn ended(&self, r: &m::EndQuorumEpochResponse) -> k::EndQuorumEpochResponse {
        use k::end_quorum_epoch_response as er;
        let partition = k!(er::PartitionData {
            error_code: r.error as i16,
            leader_id: k::BrokerId(r.leader.map_or(-1, controller_id)),
            leader_epoch: r.epoch.0,
        });
        let topic = k!(er::TopicData { topic_name: named(METADATA_TOPIC), partitions: vec![partition] });
        let endpoint = |node| k!(er::NodeEndpoint { node_id: controller(node), host: address(node), port: PORT });
        k!(k::EndQuorumEpochResponse {
            topics: vec![topic],
            node_endpoints: r.leader.map(endpoint).into_iter().collect()
        })
    }

    fn cluster(&self) -> Option<StrBytes> {
        Some(copy(self.dir.cluster_id()))
    }
}

fn controller(node: NodeId) -> k::BrokerId {
    k::BrokerId(controller_id(node))
}
