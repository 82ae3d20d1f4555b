//! What a broker process is started with.

use crate::ids::{BrokerId, Nanos, NodeId};
use crate::metadata::configs;
use crate::replica::replica_fetcher::FetcherConfig;
use std::sync::Arc;

/// What a broker of an older release does not do for others (spec 11, decision 38). Within its cluster it is as new as all are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    /// The first number of its name.
    pub major: u16,
    /// The second one.
    pub minor: u16,
}

impl Release {
    /// The one of this model.
    pub const NEWEST: Self = Self { major: u16::MAX, minor: 0 };
    /// Fetch 12 (KIP-595): whoever fetches and tells its last epoch hears where the logs part.
    const DIVERGENCE_TOLD: Self = Self { major: 2, minor: 7 };

    /// The releases with a number that clusters may be of: the first number, and the last of the second ones.
    pub const KNOWN: [(u16, u16); 3] = [(2, 8), (3, 9), (4, 2)];

    /// Whether there is such a release.
    #[must_use]
    pub fn is_known(self) -> bool {
        Self::KNOWN.iter().any(|(major, minors)| *major == self.major && self.minor <= *minors)
    }
    /// Whether a fetch of a reader from elsewhere is told where its log and this one part.
    #[must_use]
    pub fn tells_divergence(self) -> bool {
        self >= Self::DIVERGENCE_TOLD
    }
    /// Whether it knows mirrors. No release that has a number does.
    #[must_use]
    pub fn has_mirrors(self) -> bool {
        self == Self::NEWEST
    }
}

impl std::str::FromStr for Release {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.split_once('.').ok_or(())?;
        let number = |text: &str| text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
        Ok(Self { major: number(major).ok_or(())?, minor: number(minor).ok_or(())? })
    }
}

/// A broker's identity and static configuration (`server.properties`).
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerConfig {
    /// `node.id`.
    pub broker: BrokerId,
    /// Its address.
    pub node: NodeId,
    /// The cluster it was formatted for.
    pub cluster_id: Arc<str>,
    /// What it can do for others.
    pub release: Release,
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
