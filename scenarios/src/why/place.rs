//! What a violation is about: partitions on both sides of their mirrors, and nodes.

use crate::setup::Setup;
use mirrorlab_model::ids::{BrokerId, NodeId, PartitionIx, TopicIx};
use mirrorlab_model::trace::{Trace, TraceEvent};
use mirrorlab_sim::world::World;
use std::collections::{BTreeMap, BTreeSet};

/// A partition of a cluster.
pub(super) type At = (u8, PartitionIx);

/// Mirrors of mirrors that are followed.
const CHAIN_MAX: usize = 4;

/// What to look for.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// The cluster.
    pub cluster: Option<u8>,
    /// The partition and its twins over mirrors; none: everything of the cluster.
    pub partitions: BTreeSet<At>,
    /// Their topics.
    pub topics: BTreeSet<(u8, TopicIx)>,
    /// Their replicas, in the order that traces count them in.
    pub replicas: BTreeMap<At, Vec<BrokerId>>,
    /// The node, if the violation names one.
    pub node: Option<NodeId>,
}

impl Place {
    /// Reads `west/orders-3 at west/broker-1`, and follows mirrors by what was copied.
    pub fn of(text: &str, world: &World, setup: &Setup, trace: &[(u64, TraceEvent)]) -> Self {
        let (what, node) = text.split_once(" at ").map_or((text, None), |(what, node)| (what, Some(node)));
        let mut place = Self { node: node.and_then(|name| node_named(world, name)), ..Self::default() };
        let (cluster, rest) = what.split_once('/').map_or((what, None), |(cluster, rest)| (cluster, Some(rest)));
        place.cluster = setup.cluster(cluster);
        if let (Some(cluster), Some(rest)) = (place.cluster, rest) {
            place.partitions.extend(partition_named(world, setup, cluster, rest).map(|ix| (cluster, ix)));
        }
        place.follow_mirrors(world, trace);
        let topics = place
            .partitions
            .iter()
            .filter_map(|(cluster, ix)| Some((*cluster, setup.image(world, *cluster)?.partition(*ix)?.topic)));
        place.topics = topics.collect();
        let replicas = place.partitions.iter().filter_map(|(cluster, ix)| {
            let state = &setup.image(world, *cluster)?.partition(*ix)?.state;
            Some(((*cluster, *ix), state.replicas.iter().copied().collect()))
        });
        place.replicas = replicas.collect();
        place
    }

    fn follow_mirrors(&mut self, world: &World, trace: &[(u64, TraceEvent)]) {
        for _ in 0..CHAIN_MAX {
            let before = self.partitions.len();
            for (_, event) in trace {
                let Trace::Mirrored { partition, source, source_partition, .. } = event.trace else { continue };
                let (Some(to), Some(from)) = (world.node(event.node).cluster, world.node(source).cluster) else {
                    continue;
                };
                let (copy, original) = ((to, partition), (from, source_partition));
                if self.partitions.contains(&copy) != self.partitions.contains(&original) {
                    self.partitions.extend([copy, original]);
                }
            }
            if self.partitions.len() == before {
                return;
            }
        }
    }

    /// Whether a partition is one of those; without any, whether it is of the cluster.
    pub fn holds(&self, cluster: u8, partition: PartitionIx) -> bool {
        if self.partitions.is_empty() {
            return self.cluster.is_none_or(|own| own == cluster);
        }
        self.partitions.contains(&(cluster, partition))
    }

    /// Replicas by bit, as brokers: `{1,3}`; of a partition that is gone, as places in its list.
    pub fn brokers(&self, cluster: u8, partition: PartitionIx, bits: u32) -> String {
        let known = self.replicas.get(&(cluster, partition));
        let set = (0..32).filter(|n| bits >> n & 1 == 1);
        let named = set.map(|n: usize| match known.and_then(|replicas| replicas.get(n)) {
            Some(broker) => broker.to_string(),
            None => format!("number {n}"),
        });
        format!("{{{}}}", named.collect::<Vec<_>>().join(","))
    }

    /// Whether a cluster has a part in it.
    pub fn touches(&self, cluster: u8) -> bool {
        self.cluster.is_none_or(|own| own == cluster) || self.partitions.iter().any(|(of, _)| *of == cluster)
    }
}

/// A node by its name in reports: clients are named without their folder there.
fn node_named(world: &World, name: &str) -> Option<NodeId> {
    world.node_named(name).or_else(|| world.node_named(&format!("clients/{name}")))
}

/// `orders-3`, or `partition 17` of a topic that is gone.
fn partition_named(world: &World, setup: &Setup, cluster: u8, name: &str) -> Option<PartitionIx> {
    if let Some(ix) = name.strip_prefix("partition ") {
        return ix.parse().ok().map(PartitionIx);
    }
    let (topic, number) = name.rsplit_once('-')?;
    let image = setup.image(world, cluster)?;
    image.partition_of(image.topic_by_name(topic)?, number.parse().ok()?)
}
