//! Who is who in a world: clusters, mirrors and clients by name and node. Made once from the plan; checks, reports and the
//! runner look names up here.

use mirrorlab_model::ids::{BrokerId, NodeId};
use mirrorlab_model::metadata::image::MetadataImage;
use mirrorlab_sim::world::World;
use std::sync::Arc;

/// One cluster.
#[derive(Clone, Debug)]
pub struct ClusterSetup {
    /// Name in the scenario.
    pub name: Arc<str>,
    /// Its cluster id.
    pub cluster_id: Arc<str>,
    /// Controllers.
    pub controllers: Vec<NodeId>,
    /// Brokers; broker id n stands at n − 1.
    pub brokers: Vec<NodeId>,
}

/// One mirror.
#[derive(Clone, Debug)]
pub struct MirrorSetup {
    /// Name in the scenario.
    pub name: Arc<str>,
    /// Index of the source cluster.
    pub source: u8,
    /// Index of the destination cluster.
    pub destination: u8,
}

/// One producer or consumer.
#[derive(Clone, Debug)]
pub struct ClientSetup {
    /// Name in the scenario.
    pub name: Arc<str>,
    /// Its number in trace events and record identities.
    pub number: u32,
    /// Index of its cluster.
    pub cluster: u8,
    /// Its node.
    pub node: NodeId,
    /// A consumer that reads what is committed only.
    pub read_committed: bool,
}

/// Everything by name.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Clusters; a node's cluster number is the index here.
    pub clusters: Vec<ClusterSetup>,
    /// Mirrors.
    pub mirrors: Vec<MirrorSetup>,
    /// Producers, by number.
    pub producers: Vec<ClientSetup>,
    /// Consumers, by number.
    pub consumers: Vec<ClientSetup>,
    /// The operator's client of each cluster.
    pub admins: Vec<NodeId>,
}

impl Setup {
    /// The cluster of that name.
    #[must_use]
    pub fn cluster(&self, name: &str) -> Option<u8> {
        self.clusters.iter().position(|c| &*c.name == name).map(|at| at as u8)
    }
    /// The node of a broker.
    #[must_use]
    pub fn broker_node(&self, cluster: u8, broker: BrokerId) -> Option<NodeId> {
        let at = usize::try_from(broker.0.checked_sub(1)?).ok()?;
        self.clusters.get(usize::from(cluster))?.brokers.get(at).copied()
    }
    /// The metadata that the cluster's controller has committed, while one is up.
    #[must_use]
    pub fn image<'w>(&self, world: &'w World, cluster: u8) -> Option<&'w MetadataImage> {
        let controllers = &self.clusters.get(usize::from(cluster))?.controllers;
        controllers.iter().find_map(|node| world.node(*node).controller()).map(|c| c.committed_image())
    }
}
