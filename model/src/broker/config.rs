//! What a broker process is started with.

use crate::ids::{BrokerId, Nanos, NodeId};
use crate::metadata::configs;
use crate::replica::replica_fetcher::FetcherConfig;
use std::sync::Arc;

/// A broker's identity and static configuration (`server.properties`).
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerConfig {
    /// `node.id`.
    pub broker: BrokerId,
    /// Its address.
    pub node: NodeId,
    /// The cluster it was formatted for.
    pub cluster_id: Arc<str>,
    /// The voters of the metadata quorum.
    pub controllers: Vec<NodeId>,
    /// Everything else. Dynamic changes are in the metadata image.
    pub configs: configs::BrokerConfig,
}

impl BrokerConfig {
    /// The fetchers' part.
    #[must_use]
    pub fn fetchers(&self, lane_base: u16, timer_base: u64) -> FetcherConfig {
        let c = &self.configs;
        FetcherConfig {
            fetchers: c.num_replica_fetchers,
            wait_max_ms: c.replica_fetch_wait_max_ms,
            min_bytes: c.replica_fetch_min_bytes,
            max_bytes: c.replica_fetch_response_max_bytes,
            part_max_bytes: c.replica_fetch_max_bytes,
            backoff: Nanos::from_millis(c.replica_fetch_backoff_ms),
            timeout: Nanos::from_millis(c.replica_socket_timeout_ms),
            lane_base,
            timer_base,
        }
    }
}
