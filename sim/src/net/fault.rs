//! Faults of the network, as plain data: cuts by any mix of site, node, cluster and role; worse links; and scripted
//! departures from TCP.

use super::topology::{Chance, Jitter, LinkSpec, NodeSpec, Role, SiteIx};
use mirrorlab_model::ids::{Nanos, NodeId};

/// Names a fault that is in force; chosen by the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FaultId(pub u32);

/// Which nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// All.
    Anyone,
    /// One.
    Node(NodeId),
    /// Those of a site.
    Site(SiteIx),
    /// Those of a cluster.
    Cluster(u16),
    /// Those of a role, in all clusters.
    Role(Role),
    /// Those of a role in one cluster.
    Members(u16, Role),
}

impl Who {
    pub(super) fn holds(self, node: &NodeSpec) -> bool {
        match self {
            Self::Anyone => true,
            Self::Node(id) => node.node == id,
            Self::Site(site) => node.site == site,
            Self::Cluster(cluster) => node.cluster == cluster,
            Self::Role(role) => node.role == role,
            Self::Members(cluster, role) => node.cluster == cluster && node.role == role,
        }
    }
}

/// Which traffic among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Only {
    /// All of it.
    #[default]
    Everything,
    /// Between sites.
    Wan,
    /// To or from a controller.
    Controllers,
    /// From broker to broker of one cluster.
    InterBroker,
    /// From broker to broker of two clusters: mirroring.
    InterCluster,
    /// To or from a client.
    Clients,
}

impl Only {
    fn holds(self, from: &NodeSpec, to: &NodeSpec) -> bool {
        let brokers = from.role == Role::Broker && to.role == Role::Broker;
        match self {
            Self::Everything => true,
            Self::Wan => from.site != to.site,
            Self::Controllers => from.role == Role::Controller || to.role == Role::Controller,
            Self::InterBroker => brokers && from.cluster == to.cluster,
            Self::InterCluster => brokers && from.cluster != to.cluster,
            Self::Clients => from.role == Role::Client || to.role == Role::Client,
        }
    }
}

/// Packets that are lost for as long as the fault lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Sent by these …
    pub from: Who,
    /// … to these,
    pub to: Who,
    /// and also the other way,
    pub both_ways: bool,
    /// if they belong to this traffic.
    pub only: Only,
}

impl Cut {
    /// Nothing passes between the two, either way.
    #[must_use]
    pub const fn between(one: Who, other: Who) -> Self {
        Self { from: one, to: other, both_ways: true, only: Only::Everything }
    }
    /// Nothing passes from the one to the other; answers and acknowledgements do.
    #[must_use]
    pub const fn one_way(from: Who, to: Who) -> Self {
        Self { from, to, both_ways: false, only: Only::Everything }
    }
    /// No traffic of this kind passes anywhere.
    #[must_use]
    pub const fn traffic(only: Only) -> Self {
        Self { from: Who::Anyone, to: Who::Anyone, both_ways: true, only }
    }

    pub(super) fn holds(&self, from: &NodeSpec, to: &NodeSpec) -> bool {
        self.only.holds(from, to)
            && ((self.from.holds(from) && self.to.holds(to))
                || (self.both_ways && self.from.holds(to) && self.to.holds(from)))
    }
}

/// A link that is worse than it should be. `from` = `to` means the inside of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Degrade {
    /// Sending site.
    pub from: SiteIx,
    /// Receiving site.
    pub to: SiteIx,
    /// Added to the latency.
    pub extra_latency: Nanos,
    /// In place of the jitter.
    pub jitter: Option<Jitter>,
    /// Added to the loss.
    pub loss: Chance,
    /// An upper bound on the bandwidth.
    pub bits_per_second: Option<u64>,
}

impl Degrade {
    pub(super) fn apply(&self, spec: &mut LinkSpec) {
        spec.latency = spec.latency + self.extra_latency;
        spec.jitter = self.jitter.unwrap_or(spec.jitter);
        spec.loss = spec.loss.or(self.loss);
        if let Some(most) = self.bits_per_second {
            spec.bits_per_second = spec.bits_per_second.min(most);
        }
    }
}

/// Delays or repeats chosen messages.
///
/// A delay holds up what follows on the same connection, as a lost packet does. A repetition is a **departure from TCP**: the
/// message arrives twice on one connection. It exists to prove guards against stale answers (R16), and happens only where a
/// rule says so. Of several rules that match a message, the one with the smallest fault id counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Perturb {
    /// Sent by these …
    pub from: Who,
    /// … to these.
    pub to: Who,
    /// `Body::name()` of the messages, or None for all.
    pub body: Option<Box<str>>,
    /// How likely each such message is struck.
    pub chance: Chance,
    /// How much later it arrives.
    pub extra: Nanos,
    /// Whether it arrives twice (the copy right behind it).
    pub duplicate: bool,
}

/// A fault of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Lost packets.
    Cut(Cut),
    /// A worse link.
    Degrade(Degrade),
    /// Delayed or repeated messages.
    Perturb(Perturb),
}
