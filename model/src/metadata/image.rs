//! The state that replaying the metadata log gives. Clones in constant time; applying a change costs the change.
//!
//! Replay is total: a record that does not fit (an unknown topic, an index out of order) changes nothing, because the bytes
//! may come from a damaged disk or a peer that lies. The controller never plans such a record.

use crate::ids::{
    BrokerEpoch, BrokerId, LeaderEpoch, MetadataOffset, MirrorIx, NodeId, PartitionEpoch, PartitionIx, ProducerId,
    TopicId, TopicIx, TopicLife,
};
use crate::metadata::chunks::{ChunkMap, ChunkVec, MAX_INDEX};
use crate::metadata::configs::{self, BrokerConfig, MirrorConfig, TopicConfig};
use crate::metadata::delta::MetadataDelta;
use crate::metadata::encoding::{chain, DecodeError};
use crate::metadata::records::{Brokers, PartitionState, Record};
use crate::states::DesiredState;
use crate::wire::messages::ConfigResource;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The topic that holds the states of mirrored partitions (spec 7.1).
pub const STATE_TOPIC: &str = "__mirror_state";

/// Config entries as given.
pub type Entries = Arc<BTreeMap<Arc<str>, Arc<str>>>;

/// A topic.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicImage {
    /// Its id.
    pub id: TopicId,
    /// Its name.
    pub name: Arc<str>,
    /// Its partitions by number.
    pub partitions: Vec<PartitionIx>,
    /// Its own config entries.
    pub entries: Entries,
    /// Its effective config: entries over the cluster's defaults.
    pub config: Arc<TopicConfig>,
    /// Its mirror and what the operator wants of it.
    pub mirror: Option<(MirrorIx, DesiredState)>,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionImage {
    /// Its topic.
    pub topic: TopicIx,
    /// Its number within the topic.
    pub number: u32,
    /// Its registration.
    pub state: PartitionState,
}

/// A registered broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerImage {
    /// Its address.
    pub node: NodeId,
    /// Its process start.
    pub incarnation: u128,
    /// Its registration's epoch.
    pub epoch: BrokerEpoch,
    /// Not in service.
    pub fenced: bool,
    /// In controlled shutdown.
    pub shutting_down: bool,
}

impl BrokerImage {
    /// Whether it may lead and be in an ISR.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        !self.fenced && !self.shutting_down
    }
}

/// A mirror.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorImage {
    /// Its name.
    pub name: Arc<str>,
    /// Its config entries; a mirror without any is gone.
    pub entries: Entries,
    /// Its config.
    pub config: Arc<MirrorConfig>,
    /// The nodes of `bootstrap.servers`.
    pub source_nodes: Vec<NodeId>,
    /// Its topics, in whatever desired state.
    pub topics: BTreeSet<TopicIx>,
}

/// The whole state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetadataImage {
    pub(crate) end: MetadataOffset,
    pub(crate) hash: u64,
    pub(crate) epoch: LeaderEpoch,
    pub(crate) leader: Option<NodeId>,
    pub(crate) partitions: ChunkVec<PartitionImage>,
    pub(crate) next_partition: u32,
    pub(crate) topics: ChunkVec<Arc<TopicImage>>,
    pub(crate) next_topic: u32,
    by_name: ChunkMap<Arc<str>, TopicIx>,
    by_id: ChunkMap<TopicId, TopicIx>,
    state_topic: Option<TopicIx>,
    pub(crate) brokers: Arc<BTreeMap<BrokerId, BrokerImage>>,
    pub(crate) broker_entries: Arc<BTreeMap<Option<BrokerId>, Entries>>,
    topic_defaults: Arc<TopicConfig>,
    pub(crate) mirrors: ChunkVec<Arc<MirrorImage>>,
    pub(crate) next_mirror: u32,
    mirror_names: ChunkMap<Arc<str>, MirrorIx>,
    pub(crate) next_producer: ProducerId,
}

// ---------------------------------------------------------------------------------------------------------------- reading

impl MetadataImage {
    /// Records below this offset are applied.
    #[must_use]
    pub fn end(&self) -> MetadataOffset {
        self.end
    }
    /// The running hash over the bytes of all records below [`end`](Self::end).
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }
    /// What was applied so far: two images of one version have the same content.
    #[must_use]
    pub fn version(&self) -> (MetadataOffset, u64) {
        (self.end, self.hash)
    }
    /// The quorum's epoch, as far as the records tell.
    #[must_use]
    pub fn epoch(&self) -> LeaderEpoch {
        self.epoch
    }
    /// The quorum's leader, as far as the records tell.
    #[must_use]
    pub fn leader(&self) -> Option<NodeId> {
        self.leader
    }
    /// A partition.
    #[must_use]
    #[inline]
    pub fn partition(&self, ix: PartitionIx) -> Option<&PartitionImage> {
        self.partitions.get(ix.0)
    }
    /// All partitions in order of index.
    pub fn partitions(&self) -> impl Iterator<Item = (PartitionIx, &PartitionImage)> {
        self.partitions.iter().map(|(ix, p)| (PartitionIx(ix), p))
    }
    /// A partition of a topic by number.
    #[must_use]
    pub fn partition_of(&self, topic: TopicIx, number: u32) -> Option<PartitionIx> {
        self.topic(topic)?.partitions.get(number as usize).copied()
    }
    /// A topic.
    #[must_use]
    pub fn topic(&self, ix: TopicIx) -> Option<&Arc<TopicImage>> {
        self.topics.get(ix.0)
    }
    /// Which life of its id a topic is.
    #[must_use]
    pub fn life(&self, ix: TopicIx) -> Option<TopicLife> {
        self.topic(ix).map(|topic| TopicLife { id: topic.id, ix })
    }
    /// All topics in order of index.
    pub fn topics(&self) -> impl Iterator<Item = (TopicIx, &Arc<TopicImage>)> {
        self.topics.iter().map(|(ix, t)| (TopicIx(ix), t))
    }
    /// All topics in order of name.
    pub fn topics_by_name(&self) -> impl Iterator<Item = (&Arc<str>, TopicIx)> {
        self.by_name.iter().map(|(name, ix)| (name, *ix))
    }
    /// The topic of a name.
    #[must_use]
    pub fn topic_by_name(&self, name: &str) -> Option<TopicIx> {
        self.by_name.get(name).copied()
    }
    /// [`STATE_TOPIC`], which is asked for with every state that is read or written.
    #[must_use]
    pub fn state_topic(&self) -> Option<TopicIx> {
        self.state_topic
    }
    /// The topic of an id.
    #[must_use]
    pub fn topic_of(&self, id: TopicId) -> Option<TopicIx> {
        self.by_id.get(&id).copied()
    }
    /// A topic's effective config; the cluster's defaults if there is no such topic.
    #[must_use]
    pub fn topic_config(&self, ix: TopicIx) -> &Arc<TopicConfig> {
        self.topic(ix).map_or(&self.topic_defaults, |t| &t.config)
    }
    /// The config of a topic without entries.
    #[must_use]
    pub fn topic_defaults(&self) -> &Arc<TopicConfig> {
        &self.topic_defaults
    }
    /// A broker's registration.
    #[must_use]
    pub fn broker(&self, broker: BrokerId) -> Option<&BrokerImage> {
        self.brokers.get(&broker)
    }
    /// All registrations in order of id.
    pub fn brokers(&self) -> impl Iterator<Item = (BrokerId, &BrokerImage)> {
        self.brokers.iter().map(|(id, b)| (*id, b))
    }
    /// A broker's address.
    #[must_use]
    pub fn broker_node(&self, broker: BrokerId) -> Option<NodeId> {
        self.broker(broker).map(|b| b.node)
    }
    /// Whether a broker is registered and neither fenced nor shutting down.
    #[must_use]
    pub fn is_active(&self, broker: BrokerId) -> bool {
        self.broker(broker).is_some_and(BrokerImage::is_active)
    }
    /// A broker's config: its own dynamic entries over the cluster-wide ones over `fixed`, the ones it was started with.
    #[must_use]
    pub fn broker_config(&self, broker: BrokerId, fixed: &BrokerConfig) -> BrokerConfig {
        let all = self.broker_entries.get(&None).into_iter().chain(self.broker_entries.get(&Some(broker)));
        let entries = all.flat_map(|e| e.iter()).map(|(k, v)| (k.as_ref(), v.as_ref()));
        BrokerConfig::from_entries(fixed, entries)
    }
    /// The dynamic entries of a broker, or of all (`None`).
    #[must_use]
    pub fn broker_entries(&self, broker: Option<BrokerId>) -> Option<&Entries> {
        self.broker_entries.get(&broker)
    }
    /// A mirror.
    #[must_use]
    pub fn mirror(&self, ix: MirrorIx) -> Option<&Arc<MirrorImage>> {
        self.mirrors.get(ix.0)
    }
    /// All mirrors in order of index.
    pub fn mirrors(&self) -> impl Iterator<Item = (MirrorIx, &Arc<MirrorImage>)> {
        self.mirrors.iter().map(|(ix, m)| (MirrorIx(ix), m))
    }
    /// The mirror of a name.
    #[must_use]
    pub fn mirror_by_name(&self, name: &str) -> Option<MirrorIx> {
        self.mirror_names.get(name).copied()
    }
    /// A topic's mirror and desired state.
    #[must_use]
    pub fn mirror_of(&self, topic: TopicIx) -> Option<(MirrorIx, DesiredState)> {
        self.topic(topic)?.mirror
    }
    /// The first producer id that is not given away.
    #[must_use]
    pub fn next_producer(&self) -> ProducerId {
        self.next_producer
    }
    /// The index that the next topic gets.
    #[must_use]
    pub fn next_topic(&self) -> TopicIx {
        TopicIx(self.next_topic)
    }
    /// The index that the next partition gets.
    #[must_use]
    pub fn next_partition(&self) -> PartitionIx {
        PartitionIx(self.next_partition)
    }
    /// The index that the next mirror gets.
    #[must_use]
    pub fn next_mirror(&self) -> MirrorIx {
        MirrorIx(self.next_mirror)
    }
    /// Frees memory: parts that are equal to another image's are shared with it. Changes no content.
    pub fn share_with(&mut self, other: &Self) {
        self.partitions.share_with(&other.partitions);
        self.topics.share_with(&other.topics);
        self.mirrors.share_with(&other.mirrors);
        if self.by_name == other.by_name {
            self.by_name = other.by_name.clone();
        }
        if self.by_id == other.by_id {
            self.by_id = other.by_id.clone();
        }
    }
}

// --------------------------------------------------------------------------------------------------------------- changing

impl MetadataImage {
    /// Decodes a record, applies it and continues the running hash.
    ///
    /// # Errors
    /// Bytes that are no record; nothing is changed then.
    pub fn apply_bytes(&mut self, offset: i64, bytes: &[u8], delta: &mut MetadataDelta) -> Result<(), DecodeError> {
        let record = Record::decode(bytes)?;
        self.hash = chain(self.hash, bytes);
        self.apply(offset, &record, delta);
        Ok(())
    }

    /// Applies one record that stands at `offset`.
    pub fn apply(&mut self, offset: i64, record: &Record, delta: &mut MetadataDelta) {
        self.end = MetadataOffset(offset + 1);
        match record {
            Record::PartitionChange { .. } => self.apply_partition_change(record, delta),
            Record::Partition { partition, topic, number, state } => {
                self.apply_partition(*partition, *topic, *number, state, delta);
            }
            Record::Topic { topic, id, name } => self.apply_topic(*topic, *id, name, delta),
            Record::RemoveTopic { topic } => self.apply_remove_topic(*topic, delta),
            Record::RegisterBroker { broker, node, incarnation, epoch } => {
                let image = BrokerImage {
                    node: *node,
                    incarnation: *incarnation,
                    epoch: *epoch,
                    fenced: true,
                    shutting_down: false,
                };
                Arc::make_mut(&mut self.brokers).insert(*broker, image);
                delta.touch_broker(*broker);
            }
            Record::BrokerChange { broker, epoch, fenced, shutting_down } => {
                if self.broker(*broker).is_some_and(|b| b.epoch == *epoch) {
                    if let Some(image) = Arc::make_mut(&mut self.brokers).get_mut(broker) {
                        image.fenced = *fenced;
                        image.shutting_down = *shutting_down;
                    }
                    delta.touch_broker(*broker);
                }
            }
            Record::Config { resource, key, value } => self.apply_config(resource, key, value.as_ref(), delta),
            Record::ProducerIds { next, .. } => self.next_producer = *next,
            Record::Mirror { mirror, name } => self.apply_mirror(*mirror, name, delta),
            Record::MirrorTopicStateChange { topic, mirror, desired } => {
                self.apply_mirror_topic(*topic, *mirror, *desired, delta);
            }
            Record::LeaderChange { epoch, leader } => {
                self.epoch = *epoch;
                self.leader = Some(*leader);
            }
            Record::NoOp => {}
            Record::SnapshotHeader { epoch, leader, hash, next_topic, next_partition, next_mirror } => {
                self.epoch = *epoch;
                self.leader = Some(*leader);
                self.hash = *hash;
                self.next_topic = next_topic.0.min(MAX_INDEX);
                self.next_partition = next_partition.0.min(MAX_INDEX);
                self.next_mirror = next_mirror.0.min(MAX_INDEX);
            }
        }
    }

    fn apply_partition_change(&mut self, record: &Record, delta: &mut MetadataDelta) {
        let Record::PartitionChange { partition, leader, leader_epoch, isr, elr, last_known_elr, recovering, replicas } =
            record
        else {
            return;
        };
        let Some(image) = self.partitions.get_mut(partition.0) else { return };
        let state = &mut image.state;
        let moved = leader.is_some_and(|l| l != state.leader);
        // The leader epoch is explicit since v3; an older record without it means "one more on a change of leader".
        state.leader_epoch = leader_epoch.unwrap_or(if moved {
            LeaderEpoch(state.leader_epoch.0.saturating_add(1))
        } else {
            state.leader_epoch
        });
        if let Some(leader) = leader {
            state.leader = *leader;
        }
        for (mine, new) in [
            (&mut state.isr, isr),
            (&mut state.elr, elr),
            (&mut state.last_known_elr, last_known_elr),
            (&mut state.replicas, replicas),
        ] {
            if let Some(new) = new {
                *mine = Brokers::from_slice(new);
            }
        }
        if let Some(recovering) = recovering {
            state.recovering = *recovering;
        }
        state.partition_epoch = PartitionEpoch(state.partition_epoch.0.saturating_add(1));
        delta.partitions.touch(*partition);
    }

    fn apply_partition(
        &mut self,
        partition: PartitionIx,
        topic: TopicIx,
        number: u32,
        state: &PartitionState,
        delta: &mut MetadataDelta,
    ) {
        let fits = partition.0 < MAX_INDEX
            && self.partition(partition).is_none()
            && self.topic(topic).is_some_and(|t| t.partitions.len() == number as usize);
        let Some(image) = self.topics.get_mut(topic.0).filter(|_| fits) else { return };
        Arc::make_mut(image).partitions.push(partition);
        self.partitions.set(partition.0, PartitionImage { topic, number, state: state.clone() });
        self.next_partition = self.next_partition.max(partition.0 + 1);
        delta.partitions.touch(partition);
    }

    fn apply_topic(&mut self, topic: TopicIx, id: TopicId, name: &Arc<str>, delta: &mut MetadataDelta) {
        let taken = self.topic(topic).is_some() || self.topic_by_name(name).is_some() || self.topic_of(id).is_some();
        if taken || topic.0 >= MAX_INDEX {
            return;
        }
        let image = TopicImage {
            id,
            name: name.clone(),
            partitions: Vec::new(),
            entries: Entries::default(),
            config: self.topic_defaults.clone(),
            mirror: None,
        };
        self.topics.set(topic.0, Arc::new(image));
        self.by_name.insert(name.clone(), topic);
        if **name == *STATE_TOPIC {
            self.state_topic = Some(topic);
        }
        self.by_id.insert(id, topic);
        self.next_topic = self.next_topic.max(topic.0 + 1);
        delta.topics_created.touch(topic);
    }

    fn apply_remove_topic(&mut self, topic: TopicIx, delta: &mut MetadataDelta) {
        let Some(image) = self.topics.remove(topic.0) else { return };
        self.by_name.remove(&image.name);
        self.state_topic = self.state_topic.filter(|states| *states != topic);
        self.by_id.remove(&image.id);
        for partition in &image.partitions {
            self.partitions.remove(partition.0);
        }
        if let Some((mirror, _)) = image.mirror {
            self.mirror_member(mirror, topic, false);
        }
        delta.topics_removed.push((topic, image));
    }

    fn apply_config(
        &mut self,
        resource: &ConfigResource,
        key: &Arc<str>,
        value: Option<&Arc<str>>,
        delta: &mut MetadataDelta,
    ) {
        match resource {
            ConfigResource::Topic(name) => {
                let Some(topic) = self.topic_by_name(name) else { return };
                let Some(image) = self.topics.get_mut(topic.0) else { return };
                let image = Arc::make_mut(image);
                set_entry(&mut image.entries, key, value);
                image.config = effective_topic_config(&self.topic_defaults, &image.entries);
                delta.topic_configs.touch(topic);
            }
            ConfigResource::Broker(broker) => {
                set_entry(Arc::make_mut(&mut self.broker_entries).entry(*broker).or_default(), key, value);
                delta.broker_configs = true;
                if broker.is_none() && configs::topic_synonym(key).is_some() {
                    self.apply_topic_defaults(delta);
                }
            }
            ConfigResource::ClusterMirror(name) => {
                let Some(mirror) = self.mirror_by_name(name) else { return };
                let Some(image) = self.mirrors.get_mut(mirror.0) else { return };
                let image = Arc::make_mut(image);
                set_entry(&mut image.entries, key, value);
                let entries = image.entries.iter().map(|(k, v)| (k.as_ref(), v.as_ref()));
                let config = MirrorConfig::from_entries(&MirrorConfig::default(), entries);
                image.source_nodes = configs::parse_nodes(&config.bootstrap_servers.join(",")).unwrap_or_default();
                image.config = Arc::new(config);
                if image.entries.is_empty() && value.is_none() {
                    self.mirrors.remove(mirror.0);
                    self.mirror_names.remove(name);
                }
                delta.mirrors.touch(mirror);
            }
        }
    }

    /// A cluster-wide default of topic configs changed: the one change that touches every topic.
    fn apply_topic_defaults(&mut self, delta: &mut MetadataDelta) {
        let mut defaults = TopicConfig::default();
        for (key, value) in self.broker_entries.get(&None).into_iter().flat_map(|e| e.iter()) {
            if let Some(key) = configs::topic_synonym(key) {
                let _ = defaults.set(key, value);
            }
        }
        self.topic_defaults = Arc::new(defaults);
        for ix in 0..self.next_topic {
            if let Some(image) = self.topics.get_mut(ix) {
                let config = effective_topic_config(&self.topic_defaults, &image.entries);
                Arc::make_mut(image).config = config;
                delta.topic_configs.touch(TopicIx(ix));
            }
        }
    }

    fn apply_mirror(&mut self, mirror: MirrorIx, name: &Arc<str>, delta: &mut MetadataDelta) {
        if mirror.0 >= MAX_INDEX || self.mirror(mirror).is_some() || self.mirror_by_name(name).is_some() {
            return;
        }
        let image = MirrorImage {
            name: name.clone(),
            entries: Entries::default(),
            config: Arc::new(MirrorConfig::default()),
            source_nodes: Vec::new(),
            topics: BTreeSet::new(),
        };
        self.mirrors.set(mirror.0, Arc::new(image));
        self.mirror_names.insert(name.clone(), mirror);
        self.next_mirror = self.next_mirror.max(mirror.0 + 1);
        delta.mirrors.touch(mirror);
    }

    fn apply_mirror_topic(
        &mut self,
        topic: TopicIx,
        mirror: Option<MirrorIx>,
        desired: DesiredState,
        delta: &mut MetadataDelta,
    ) {
        let Some(image) = self.topics.get_mut(topic.0) else { return };
        let before = image.mirror;
        Arc::make_mut(image).mirror = mirror.map(|m| (m, desired));
        if let Some((old, _)) = before.filter(|(old, _)| Some(*old) != mirror) {
            self.mirror_member(old, topic, false);
        }
        if let Some(new) = mirror.filter(|new| before.map(|b| b.0) != Some(*new)) {
            self.mirror_member(new, topic, true);
        }
        delta.mirror_topics.touch(topic);
    }

    fn mirror_member(&mut self, mirror: MirrorIx, topic: TopicIx, member: bool) {
        if let Some(image) = self.mirrors.get_mut(mirror.0) {
            let topics = &mut Arc::make_mut(image).topics;
            if member {
                topics.insert(topic);
            } else {
                topics.remove(&topic);
            }
        }
    }
}

fn set_entry(entries: &mut Entries, key: &Arc<str>, value: Option<&Arc<str>>) {
    let entries = Arc::make_mut(entries);
    match value {
        Some(value) => entries.insert(key.clone(), value.clone()),
        None => entries.remove(key),
    };
}

fn effective_topic_config(defaults: &Arc<TopicConfig>, entries: &Entries) -> Arc<TopicConfig> {
    if entries.is_empty() {
        return defaults.clone();
    }
    Arc::new(TopicConfig::from_entries(defaults, entries.iter().map(|(k, v)| (k.as_ref(), v.as_ref()))))
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
