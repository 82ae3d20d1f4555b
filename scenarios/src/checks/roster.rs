//! Who is who, by node: what a checker has to know of the cast without asking anybody.

use mirrorlab_model::ids::{BrokerId, NodeId};
use std::sync::Arc;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A broker; its slot is its id − 1.
    Broker(u16),
    /// A controller.
    Controller,
    /// A client.
    Client,
}

/// A node's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its cluster; a client's is the one it talks to.
    pub cluster: u8,
    /// What it is there.
    pub part: Part,
}

/// One cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterPlace {
    /// Its name.
    pub name: Arc<str>,
    /// Brokers by slot.
    pub brokers: Vec<NodeId>,
    /// Controllers.
    pub controllers: Vec<NodeId>,
}

/// One mirror.
#[derive(Clone, Debug)]
pub struct MirrorPlace {
    /// Its name at the destination.
    pub name: Arc<str>,
    /// The source cluster.
    pub source: u8,
    /// The destination cluster.
    pub destination: u8,
}

/// Everybody.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// By node id; `None` for nodes that no check knows.
    pub places: Vec<Option<Place>>,
    /// Names by node id.
    pub names: Vec<Arc<str>>,
    /// Clusters by number.
    pub clusters: Vec<ClusterPlace>,
    /// Mirrors.
    pub mirrors: Vec<MirrorPlace>,
    /// Numbers and nodes of producers.
    pub producers: Vec<(u32, NodeId)>,
    /// Numbers and nodes of consumers.
    pub consumers: Vec<(u32, NodeId)>,
    /// Numbers of the consumers that read what is committed only.
    pub read_committed: std::collections::BTreeSet<u32>,
}

impl Roster {
    /// A node's place.
    #[must_use]
    #[inline]
    pub fn place(&self, node: NodeId) -> Option<Place> {
        self.places.get(usize::from(node.0)).copied().flatten()
    }
    /// A node's name.
    #[must_use]
    pub fn name(&self, node: NodeId) -> &str {
        self.names.get(usize::from(node.0)).map_or("?", |n| n)
    }
    /// The node of a broker slot.
    #[must_use]
    #[inline]
    pub fn broker(&self, cluster: u8, slot: u16) -> Option<NodeId> {
        self.clusters.get(usize::from(cluster))?.brokers.get(usize::from(slot)).copied()
    }
    /// The source cluster of a mirror, by its name at the destination.
    #[must_use]
    pub fn source_of(&self, destination: u8, mirror: &str) -> Option<u8> {
        self.mirrors.iter().find(|m| m.destination == destination && &*m.name == mirror).map(|m| m.source)
    }
    /// Puts a node into its place.
    pub fn seat(&mut self, node: NodeId, name: &str, place: Place) {
        let at = usize::from(node.0);
        if self.places.len() <= at {
            self.places.resize(at + 1, None);
            self.names.resize(at + 1, "?".into());
        }
        self.places[at] = Some(place);
        self.names[at] = name.into();
    }
}

/// A broker's slot: its id − 1.
#[must_use]
#[inline]
pub fn slot_of(broker: BrokerId) -> u16 {
    u16::try_from(broker.0 - 1).unwrap_or(u16::MAX)
}
