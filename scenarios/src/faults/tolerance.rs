//! What replicas can stand: looked at when a strike is due that may take what a broker was told to keep.
//!
//! A record is acknowledged when all members of the ISR have it, and those are at least `min.insync.replicas`. So fewer than
//! so many replicas of a partition may have stopped uncleanly since they were last in sync; and where `min.insync.replicas` is
//! 1, one may, if all are in sync just then. An empty disk is worse than a crash, because nothing is left of what had been
//! flushed either: everybody has to be in sync. Who stops in order loses nothing, but leaves the ISR to the others: one of
//! them has to be beyond doubt, for a broker that was struck stands in the ISR until its session ends, and may lead again
//! (KIP-966, the last known leader). The metadata of the active controllers says who is in sync; whom a strike hit counts as in
//! doubt until its broker is in service again and in every ISR.

use crate::format::action::Action;
use crate::lab::Lab;
use mirrorlab_model::ids::{BrokerId, Nanos, NodeId};
use mirrorlab_model::metadata::image::{MetadataImage, PartitionImage};
use mirrorlab_sim::node::Condition;
use std::collections::BTreeMap;

/// Who is in doubt, at least until when.
#[derive(Clone, Debug, Default)]
pub(super) struct Tolerance {
    doubtful: BTreeMap<NodeId, Nanos>,
    /// Who stops in order, likewise.
    leaving: BTreeMap<NodeId, Nanos>,
}

impl Tolerance {
    /// Whether what is acknowledged outlasts a strike at these nodes; else why not.
    pub fn admits(&mut self, lab: &Lab, struck: &[NodeId], action: &Action) -> Result<(), String> {
        self.forget(lab);
        struck.iter().try_for_each(|node| self.admits_one(lab, *node, action))
    }

    fn admits_one(&self, lab: &Lab, node: NodeId, action: &Action) -> Result<(), String> {
        // Controllers are within a budget of their own: a minority of each quorum. Clients keep nothing.
        let Some((cluster, broker)) = broker_at(lab, node) else { return Ok(()) };
        let Some(image) = lab.setup.image(&lab.world, cluster) else {
            return Err("no controller can tell who is in sync".to_owned());
        };
        let is_in = |set: &BTreeMap<NodeId, Nanos>, b: &BrokerId| {
            *b != broker && lab.setup.broker_node(cluster, *b).is_some_and(|n| set.contains_key(&n))
        };
        let doubtful = |b: &BrokerId| is_in(&self.doubtful, b);
        for (_, partition) in image.partitions().filter(|(_, p)| p.state.replicas.contains(&broker)) {
            let state = &partition.state;
            if matches!(action, Action::Shutdown { .. }) {
                let mut others = state.isr.iter().filter(|b| **b != broker);
                let stays = |b: &BrokerId| !doubtful(b) && !is_in(&self.leaving, b);
                if state.isr.contains(&broker) && others.clone().any(doubtful) && !others.any(stays) {
                    return Err(format!("{} would be left to those in doubt", place(image, partition)));
                }
                continue;
            }
            let in_doubt = state.replicas.iter().filter(|b| doubtful(b)).count() as u32;
            let least = image.topic_config(partition.topic).min_insync_replicas.min(state.replicas.len() as u32);
            let all_in_sync = in_doubt == 0 && state.isr.len() == state.replicas.len() && state.isr.len() > 1;
            let few = in_doubt + 1 < least && !matches!(action, Action::Wipe { .. });
            if !all_in_sync && !few {
                return Err(format!("{} is needed", place(image, partition)));
            }
        }
        Ok(())
    }

    /// Notes whom a strike hits.
    pub fn note(&mut self, lab: &Lab, struck: &[NodeId], action: &Action) {
        let until = lab.world.now() + action.lasting().map_or(Nanos::ZERO, |t| t.nanos());
        let set = if action.may_lose() { &mut self.doubtful } else { &mut self.leaving };
        for node in struck.iter().filter(|node| broker_at(lab, **node).is_some()) {
            let since = set.entry(*node).or_insert(until);
            *since = until.max(*since);
        }
    }

    /// Those who are in service and in every ISR again are beyond doubt: they came in as replicas whose disks nobody trusts.
    fn forget(&mut self, lab: &Lab) {
        self.doubtful.retain(|node, until| !is_back(lab, *node, *until));
        self.leaving.retain(|node, until| !is_back(lab, *node, *until));
    }
}

/// Whether a node that was to be away until then is in service and in every ISR again.
fn is_back(lab: &Lab, node: NodeId, until: Nanos) -> bool {
    if lab.world.now() <= until || lab.world.node(node).condition != Condition::Up {
        return false;
    }
    let running = lab.world.node(node).broker().is_some_and(|b| b.is_running());
    let place = broker_at(lab, node);
    let image = place.and_then(|(cluster, _)| lab.setup.image(&lab.world, cluster));
    let (true, Some((_, broker)), Some(image)) = (running, place, image) else { return false };
    let lacks = |p: &PartitionImage| p.state.replicas.contains(&broker) && !p.state.isr.contains(&broker);
    image.is_active(broker) && !image.partitions().any(|(_, p)| lacks(p))
}

fn broker_at(lab: &Lab, node: NodeId) -> Option<(u8, BrokerId)> {
    let cluster = lab.world.node(node).cluster?;
    let at = lab.setup.clusters.get(usize::from(cluster))?.brokers.iter().position(|n| *n == node)?;
    Some((cluster, BrokerId(at as i32 + 1)))
}

fn place(image: &MetadataImage, partition: &PartitionImage) -> String {
    let name = image.topic(partition.topic).map_or("?", |t| &t.name);
    format!("its replica of {name}-{}", partition.number)
}
