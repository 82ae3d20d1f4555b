//! What a controller is started with.

use crate::ids::{NodeId, ProducerId};
use crate::metadata::configs::BrokerConfig;
use std::sync::Arc;

/// Settings of one controller process.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerConfig {
    /// The cluster's id: registrations must name it.
    pub cluster_id: Arc<str>,
    /// This node.
    pub node: NodeId,
    /// The quorum: who votes, this node included.
    pub voters: Vec<NodeId>,
    /// Settings that the controller shares with brokers: session timeout, defaults of new topics, balance interval.
    /// Cluster-wide dynamic config goes over them.
    pub broker: BrokerConfig,
    /// The first producer id this cluster gives away. Clusters of one world take disjoint or colliding ranges, as wanted.
    pub first_producer: ProducerId,
    /// Producer ids given at once.
    pub producer_block: u32,
    /// Partitions that one request may create.
    pub max_partitions_per_request: u32,
    /// A snapshot is written after so many records; the limit by bytes is
    /// `metadata.log.max.record.bytes.between.snapshots`.
    pub records_between_snapshots: u64,
    /// Segment size of the metadata log, bytes.
    pub log_segment_bytes: u32,
}

impl ControllerConfig {
    /// A quorum of this node alone, all else at Kafka's defaults.
    #[must_use]
    pub fn alone(cluster_id: &str, node: NodeId) -> Self {
        Self {
            cluster_id: cluster_id.into(),
            node,
            voters: vec![node],
            broker: BrokerConfig::default(),
            first_producer: ProducerId(0),
            producer_block: 1_000,
            max_partitions_per_request: 10_000,
            records_between_snapshots: 500_000,
            log_segment_bytes: 64 << 20,
        }
    }
}
