//! What an operation may see, and what it leaves: records, in order.

use crate::controller::change::{Change, Election};
use crate::controller::config::ControllerConfig;
use crate::controller::state::{ClusterState, Entry, Note, ReplicaIndex};
use crate::controller::traces::note_of;
use crate::guards::Guards;
use crate::ids::{BrokerId, PartitionIx, TopicId};
use crate::metadata::image::MetadataImage;
use crate::metadata::records::{PartitionState, Record};
use crate::ports::Entropy;
use std::collections::BTreeSet;

/// Concern of the draws for topic ids.
const TOPIC_ID_DRAWS: u64 = 0x746f_7069_635f_6964;

/// One operation being planned over the latest state, which it cannot change.
pub struct Plan<'a> {
    /// The latest state.
    pub state: &'a ClusterState,
    /// The controller's settings.
    pub config: &'a ControllerConfig,
    /// Guards of this node.
    pub guards: &'a mut Guards,
    /// Draws.
    pub entropy: Entropy,
    /// The offset that the first record will have.
    pub base: i64,
    /// The records so far.
    pub entries: Vec<Entry>,
    /// An assertion of the controller's own that does not hold: it has to stop.
    pub broken: Option<&'static str>,
    changed: BTreeSet<PartitionIx>,
}

impl<'a> Plan<'a> {
    /// An operation without records yet.
    #[must_use]
    pub fn new(
        state: &'a ClusterState,
        config: &'a ControllerConfig,
        guards: &'a mut Guards,
        entropy: Entropy,
        base: i64,
    ) -> Self {
        Self { state, config, guards, entropy, base, entries: Vec::new(), broken: None, changed: BTreeSet::new() }
    }

    /// The latest image.
    #[must_use]
    pub fn image(&self) -> &'a MetadataImage {
        self.state.image()
    }
    /// The indices over it.
    #[must_use]
    pub fn index(&self) -> &'a ReplicaIndex {
        self.state.index()
    }
    /// Adds a record.
    pub fn push(&mut self, record: Record) {
        let note = match record {
            Record::MirrorTopicStateChange { .. } => note_of(self.image(), &record),
            _ => Note::Plain,
        };
        self.push_noted(record, note);
    }
    /// Adds a record that means more than it says.
    pub fn push_noted(&mut self, record: Record, note: Note) {
        if let Record::PartitionChange { partition, .. } = &record {
            self.changed.insert(*partition);
        }
        self.entries.push(Entry::new(record, note));
    }
    /// Whether this operation changed a partition already: its state in the image is old news then.
    #[must_use]
    pub fn has_changed(&self, partition: PartitionIx) -> bool {
        self.changed.contains(&partition)
    }

    /// `min.insync.replicas` of a partition's topic.
    #[must_use]
    pub fn min_isr(&self, partition: PartitionIx) -> u32 {
        self.topic_config_of(partition).map_or(1, |c| c.min_insync_replicas)
    }
    fn topic_config_of(&self, partition: PartitionIx) -> Option<&'a crate::metadata::configs::TopicConfig> {
        let topic = self.image().partition(partition)?.topic;
        Some(self.image().topic_config(topic))
    }
    /// `Unclean` where the topic's config allows it, else `Online`.
    #[must_use]
    pub fn election_of(&self, partition: PartitionIx) -> Election {
        match self.topic_config_of(partition) {
            Some(config) if config.unclean_leader_election_enable => Election::Unclean,
            _ => Election::Online,
        }
    }

    /// A change of a partition, to be filled in.
    #[must_use]
    pub fn change(&self, partition: PartitionIx, old: &'a PartitionState) -> Change<'a> {
        let mut change =
            Change::of(partition, old, self.min_isr(partition), self.config.broker.eligible_leader_replicas_enable);
        change.election = self.election_of(partition);
        change
    }

    /// Finishes a change; leaders are looked for among brokers that are `active`. True if it has a record.
    pub fn finish(&mut self, change: Change<'_>, active: impl Fn(BrokerId) -> bool) -> bool {
        let Some((record, elected)) = change.build(self.guards, active) else { return false };
        self.push_noted(record, elected.map_or(Note::Plain, Note::Elected));
        true
    }

    /// A topic id that no topic of this cluster has.
    #[must_use]
    pub fn fresh_topic_id(&self, ordinal: u32) -> TopicId {
        let mut ordinal = u64::from(ordinal);
        loop {
            let high = self.entropy.draw(TOPIC_ID_DRAWS, ordinal);
            let low = self.entropy.draw(TOPIC_ID_DRAWS ^ 1, ordinal);
            let id = TopicId(u128::from(high) << 64 | u128::from(low));
            if id != TopicId::ZERO && self.image().topic_of(id).is_none() {
                return id;
            }
            ordinal += 1 << 32;
        }
    }
}
