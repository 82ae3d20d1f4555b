//! What a mirror knows of its source cluster: brokers, and leader and epoch per partition.
//!
//! Filled by Metadata answers and by hints in fetch answers; the highest epoch wins (spec 4.3), so that a broker that lags
//! in metadata cannot send a fetcher back (M06, M07).

use crate::guards::{mirror as guard, Guards};
use crate::ids::{BrokerId, LeaderEpoch, Nanos, NodeId, PartitionIx, TopicId};
use crate::wire::messages::{LeaderHint, MetadataResponse};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One source partition as this broker knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePartition {
    /// Its index in the source cluster.
    pub partition: PartitionIx,
    /// Its leader, or none.
    pub leader: BrokerId,
    /// Its leader epoch.
    pub epoch: LeaderEpoch,
}

/// What is known of one source topic.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SourceTopic {
    /// By partition number.
    pub partitions: Vec<SourcePartition>,
    /// The last answer had another id under this name, or no topic at all.
    pub missing: bool,
    /// Since when it is missed: one observation may be a glitch (decision 4).
    missed: Option<Nanos>,
}

/// The source cluster of one mirror.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SourceCluster {
    /// Addresses by broker id.
    pub brokers: BTreeMap<BrokerId, NodeId>,
    /// Those that the source listed last: who can be asked about its mirrors.
    pub live: Vec<(BrokerId, NodeId)>,
    topics: BTreeMap<TopicId, SourceTopic>,
    /// The id the source told last.
    pub cluster_id: Option<Arc<str>>,
}

/// Why a partition has no source leader to fetch from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLeader {
    /// The source was not asked yet.
    NotKnown,
    /// The source's topic has no partition of this number: more were added here.
    PartitionMissing,
    /// The source says there is no leader, or its address is not known.
    NoneNow,
    /// The source has no such topic (or another one under the name).
    TopicMissing,
}

impl SourceCluster {
    /// Where to fetch a partition from.
    ///
    /// # Errors
    /// Why there is no such place.
    pub fn leader(&self, topic: TopicId, number: u32) -> Result<(NodeId, SourcePartition), NoLeader> {
        let known = self.topics.get(&topic).ok_or(NoLeader::NotKnown)?;
        if known.missing {
            return Err(NoLeader::TopicMissing);
        }
        let partition = known.partitions.get(number as usize).ok_or(NoLeader::PartitionMissing)?;
        let node = self.brokers.get(&partition.leader).ok_or(NoLeader::NoneNow)?;
        Ok((*node, *partition))
    }

    /// How many partitions a topic was last told to have; 0 while that is not known.
    #[must_use]
    pub fn partition_count(&self, topic: TopicId) -> usize {
        self.topics.get(&topic).filter(|known| !known.missing).map_or(0, |known| known.partitions.len())
    }

    /// The leader epoch last heard of, or none.
    #[must_use]
    pub fn epoch(&self, topic: TopicId, number: u32) -> Option<LeaderEpoch> {
        self.topics.get(&topic)?.partitions.get(number as usize).map(|p| p.epoch)
    }

    /// Takes a Metadata answer over. `wanted` maps the names asked for to the ids they must have.
    pub fn on_metadata(
        &mut self,
        answer: &MetadataResponse,
        wanted: &BTreeMap<Arc<str>, TopicId>,
        guards: &mut Guards,
    ) {
        self.cluster_id = Some(answer.cluster_id.clone());
        self.brokers.extend(answer.brokers.iter().copied());
        self.live.clone_from(&answer.brokers);
        // An answer about all topics does not name the ones that are gone.
        for id in wanted.values() {
            if let Some(known) = self.topics.get_mut(id) {
                known.missing = true;
            }
        }
        for topic in &answer.topics {
            let Some(&id) = wanted.get(&topic.name) else { continue };
            let known = self.topics.entry(id).or_default();
            known.missing = !topic.error.is_none() || !guards.admits(guard::SourceTopicIdMatches, topic.id == id);
            if known.missing {
                continue;
            }
            for told in &topic.partitions {
                let fresh =
                    SourcePartition { partition: told.partition, leader: told.leader, epoch: told.leader_epoch };
                let count = known.partitions.len();
                match known.partitions.get_mut(told.number as usize) {
                    Some(held) if guards.admits(guard::SourceEpochMonotone, fresh.epoch >= held.epoch) => *held = fresh,
                    None if count == told.number as usize => known.partitions.push(fresh),
                    // Older news, or a hole in the numbering of a partial answer, which the next one fills.
                    _ => {}
                }
            }
        }
    }

    /// The topics that are proven to be deleted: they were there once, and missed in two answers in a row that lie so far apart.
    pub fn take_deleted(&mut self, now: Nanos, apart: Nanos, guards: &mut Guards) -> Vec<TopicId> {
        let mut deleted = Vec::new();
        for (id, known) in &mut self.topics {
            if !known.missing || known.partitions.is_empty() {
                known.missed = None;
                continue;
            }
            let (first, proven) = match known.missed {
                Some(first) => (first, now >= first + apart),
                None => (now, false),
            };
            known.missed = Some(first);
            if guards.admits(guard::DeletionNeedsProof, proven) {
                deleted.push(*id);
            }
        }
        deleted
    }

    /// Takes a hint from a fetch answer over; true if it was news.
    pub fn on_hint(&mut self, topic: TopicId, number: u32, hint: LeaderHint) -> bool {
        if let Some(node) = hint.node {
            self.brokers.insert(hint.leader, node);
        }
        let Some(held) = self.topics.get_mut(&topic).and_then(|t| t.partitions.get_mut(number as usize)) else {
            return false;
        };
        if hint.epoch <= held.epoch {
            return false;
        }
        held.epoch = hint.epoch;
        held.leader = hint.leader;
        true
    }
}
