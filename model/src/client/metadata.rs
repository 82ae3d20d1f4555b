//! What a client believes of a cluster: brokers, topics, and per partition who leads in which epoch. Beliefs never go back
//! to an older leader epoch (KIP-320): a metadata answer from a broker that lags must not undo what a newer one, or a
//! leader's own refusal (KIP-951), has told.
//!
//! G01 (an epoch-only change that brokers do not pass on locks a client out) is the brokers' to avoid, not the cache's.

use crate::guards::{client, Guards};
use crate::ids::{BrokerId, LeaderEpoch, NodeId, PartitionIx, TopicId};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{LeaderHint, MetadataResponse, TopicMetadata};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who leads a partition, as far as known. Dense by [`PartitionIx`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leadership {
    /// The leader, or none.
    pub leader: BrokerId,
    /// Its epoch, −1 if never told.
    pub epoch: LeaderEpoch,
    /// Which topic of [`ClusterView::topics`]; [`NO_TOPIC`] for a partition that is not known (any more).
    pub topic: u32,
}

/// No topic of the view.
pub const NO_TOPIC: u32 = u32::MAX;

impl Leadership {
    /// Nothing known.
    pub const UNKNOWN: Self = Self { leader: BrokerId::NONE, epoch: LeaderEpoch::NONE, topic: NO_TOPIC };
}

/// One topic.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicView {
    /// Name.
    pub name: Arc<str>,
    /// Id; zero if the topic is not there.
    pub id: TopicId,
    /// Verdict of the last answer.
    pub error: ErrorCode,
    /// Partitions by number.
    pub partitions: Vec<PartitionIx>,
}

/// The cache.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterView {
    cluster_id: Arc<str>,
    brokers: Vec<(BrokerId, NodeId)>,
    topics: Vec<TopicView>,
    by_name: BTreeMap<Arc<str>, u32>,
    parts: Vec<Leadership>,
}

impl ClusterView {
    /// The cluster's id; empty before the first answer.
    #[must_use]
    pub fn cluster_id(&self) -> &Arc<str> {
        &self.cluster_id
    }
    /// Live brokers, in order of id.
    #[must_use]
    pub fn brokers(&self) -> &[(BrokerId, NodeId)] {
        &self.brokers
    }
    /// A broker's address.
    #[must_use]
    pub fn node(&self, broker: BrokerId) -> Option<NodeId> {
        let at = self.brokers.binary_search_by_key(&broker, |b| b.0).ok()?;
        Some(self.brokers[at].1)
    }
    /// Topics in the order first met; indices are stable.
    #[must_use]
    pub fn topics(&self) -> &[TopicView] {
        &self.topics
    }
    /// A topic by name, if it is there.
    #[must_use]
    pub fn topic(&self, name: &str) -> Option<(u32, &TopicView)> {
        let at = *self.by_name.get(name)?;
        Some((at, &self.topics[at as usize]))
    }
    /// Who leads.
    #[must_use]
    #[inline]
    pub fn leadership(&self, partition: PartitionIx) -> Leadership {
        self.parts.get(partition.0 as usize).copied().unwrap_or(Leadership::UNKNOWN)
    }

    /// Takes an answer. Partitions whose leader or epoch changed, appeared or vanished go to `changed`.
    pub fn absorb(&mut self, answer: MetadataResponse, guards: &mut Guards, changed: &mut Vec<PartitionIx>) {
        self.cluster_id = answer.cluster_id;
        self.brokers = answer.brokers;
        self.brokers.sort_unstable();
        self.brokers.dedup_by_key(|b| b.0);
        for topic in answer.topics {
            self.absorb_topic(topic, guards, changed);
        }
    }

    fn absorb_topic(&mut self, topic: TopicMetadata, guards: &mut Guards, changed: &mut Vec<PartitionIx>) {
        let at = self.topic_at(&topic.name);
        let view = &mut self.topics[at as usize];
        view.error = topic.error;
        if !topic.error.is_none() && topic.error != ErrorCode::LeaderNotAvailable {
            // A lagging broker may not know the topic yet, or still; what was known stays until an answer has partitions.
            return;
        }
        if view.id != topic.id && !view.partitions.is_empty() {
            // Re-created: indices are never reused, so the old partitions just end.
            for old in std::mem::take(&mut view.partitions) {
                self.parts[old.0 as usize] = Leadership::UNKNOWN;
                changed.push(old);
            }
        }
        view.id = topic.id;
        let mut partitions = std::mem::take(&mut view.partitions);
        for part in &topic.partitions {
            let number = part.number as usize;
            if number >= topic.partitions.len() {
                continue; // not a dense numbering: not understood
            }
            if partitions.len() < topic.partitions.len() {
                partitions.resize(topic.partitions.len(), part.partition);
            }
            partitions[number] = part.partition;
            self.learn(part.partition, part.leader, part.leader_epoch, at, guards, changed);
        }
        self.topics[at as usize].partitions = partitions;
    }

    fn topic_at(&mut self, name: &Arc<str>) -> u32 {
        if let Some(&at) = self.by_name.get(name) {
            return at;
        }
        let at = self.topics.len() as u32;
        self.topics.push(TopicView {
            name: name.clone(),
            id: TopicId::ZERO,
            error: ErrorCode::UnknownTopicOrPartition,
            partitions: Vec::new(),
        });
        self.by_name.insert(name.clone(), at);
        at
    }

    fn learn(
        &mut self,
        partition: PartitionIx,
        leader: BrokerId,
        epoch: LeaderEpoch,
        topic: u32,
        guards: &mut Guards,
        changed: &mut Vec<PartitionIx>,
    ) -> bool {
        let at = partition.0 as usize;
        if at > MAX_PARTITIONS {
            return false;
        }
        if at >= self.parts.len() {
            self.parts.resize(at + 1, Leadership::UNKNOWN);
        }
        let known = &mut self.parts[at];
        if !guards.admits(client::MetadataEpochMonotone, epoch >= known.epoch) {
            return false;
        }
        let new = Leadership { leader, epoch, topic };
        let differs = *known != new;
        if differs {
            *known = new;
            changed.push(partition);
        }
        differs
    }

    /// Takes what a refusing leader told (KIP-951). True if it was news; a hint of the epoch already known is none.
    pub fn hint(
        &mut self,
        partition: PartitionIx,
        hint: LeaderHint,
        guards: &mut Guards,
        changed: &mut Vec<PartitionIx>,
    ) -> bool {
        let known = self.leadership(partition);
        if known.topic == NO_TOPIC || hint.epoch <= known.epoch || hint.leader == BrokerId::NONE {
            return false;
        }
        match hint.node {
            Some(node) => match self.brokers.binary_search_by_key(&hint.leader, |b| b.0) {
                Ok(at) => self.brokers[at].1 = node,
                Err(at) => self.brokers.insert(at, (hint.leader, node)),
            },
            None if self.node(hint.leader).is_none() => return false,
            None => {}
        }
        self.learn(partition, hint.leader, hint.epoch, known.topic, guards, changed)
    }
}

/// A peer's index beyond this is not believed (a scenario has at most 2,000,000 replicas): it would cost memory.
const MAX_PARTITIONS: usize = 4_000_000;

#[cfg(test)]
#[path = "metadata_tests.rs"]
mod tests;
