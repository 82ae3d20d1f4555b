//! The controller's replicated state: the metadata image, and indices over it so that a change costs what it changes.

use crate::coordinator::engine::Machine;
use crate::ids::{BrokerId, PartitionIx, TopicIx};
use crate::metadata::delta::MetadataDelta;
use crate::metadata::encoding::chain;
use crate::metadata::image::MetadataImage;
use crate::metadata::records::{PartitionState, Record};
use crate::states::DesiredState;
use crate::trace::ElectionKind;
use std::collections::{BTreeMap, BTreeSet};

/// What a record means beside its content, for the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// Nothing more.
    Plain,
    /// A leader was chosen.
    Elected(ElectionKind),
    /// A broker was fenced or let in.
    Fenced(bool),
    /// What is wanted of the topic that is removed.
    Removed(DesiredState),
    /// What is ordered of a topic was wanted already.
    Again,
}

/// A record on its way into the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The record.
    pub record: Record,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What else it means.
    pub note: Note,
}

impl Entry {
    /// Encodes a record.
    #[must_use]
    pub fn new(record: Record, note: Note) -> Self {
        let mut bytes = Vec::with_capacity(48);
        record.encode(&mut bytes);
        Self { record, bytes, note }
    }
}

/// Which partitions a broker has a part in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerParts {
    /// It leads them.
    pub leads: BTreeSet<PartitionIx>,
    /// It is in their ISR.
    pub in_isr: BTreeSet<PartitionIx>,
    /// It is in their ELR.
    pub in_elr: BTreeSet<PartitionIx>,
}

/// Indices over the partitions of an image.
#[derive(Clone, Debug, Default)]
pub struct ReplicaIndex {
    brokers: BTreeMap<BrokerId, BrokerParts>,
    /// Partitions without a leader.
    pub leaderless: BTreeSet<PartitionIx>,
    /// Partitions whose leader is not the preferred one.
    pub imbalanced: BTreeSet<PartitionIx>,
    /// Partitions with a non-empty ELR.
    pub with_elr: BTreeSet<PartitionIx>,
}

impl PartialEq for ReplicaIndex {
    /// A broker whose parts ran empty is the same as one that never had any.
    fn eq(&self, other: &Self) -> bool {
        fn busy(index: &ReplicaIndex) -> impl Iterator<Item = (&BrokerId, &BrokerParts)> {
            index.brokers.iter().filter(|(_, parts)| **parts != NO_PARTS)
        }
        busy(self).eq(busy(other))
            && (&self.leaderless, &self.imbalanced, &self.with_elr)
                == (&other.leaderless, &other.imbalanced, &other.with_elr)
    }
}

static NO_PARTS: BrokerParts = BrokerParts { leads: BTreeSet::new(), in_isr: BTreeSet::new(), in_elr: BTreeSet::new() };

fn is_imbalanced(state: &PartitionState) -> bool {
    state.replicas.first().is_some_and(|preferred| *preferred != state.leader)
}

fn isr_of(state: Option<&PartitionState>) -> &[BrokerId] {
    state.map_or(&[], |s| s.isr.as_slice())
}

fn elr_of(state: Option<&PartitionState>) -> &[BrokerId] {
    state.map_or(&[], |s| s.elr.as_slice())
}

impl ReplicaIndex {
    /// Over all partitions of an image.
    #[must_use]
    pub fn of(image: &MetadataImage) -> Self {
        let mut index = Self::default();
        for (ix, partition) in image.partitions() {
            index.update(ix, None, Some(&partition.state));
        }
        index
    }

    /// A broker's part.
    #[must_use]
    pub fn of_broker(&self, broker: BrokerId) -> &BrokerParts {
        self.brokers.get(&broker).unwrap_or(&NO_PARTS)
    }

    /// A partition changed from one registration to another; `None` is "not there".
    pub fn update(&mut self, ix: PartitionIx, old: Option<&PartitionState>, new: Option<&PartitionState>) {
        self.update_members(ix, isr_of(old), isr_of(new), false);
        self.update_members(ix, elr_of(old), elr_of(new), true);
        let (before, after) = (old.map(|s| s.leader), new.map(|s| s.leader));
        if before != after {
            if let Some(broker) = before.filter(|b| *b != BrokerId::NONE) {
                self.brokers.entry(broker).or_default().leads.remove(&ix);
            }
            if let Some(broker) = after.filter(|b| *b != BrokerId::NONE) {
                self.brokers.entry(broker).or_default().leads.insert(ix);
            }
        }
        let member = |set: &mut BTreeSet<PartitionIx>, is: bool| if is { set.insert(ix) } else { set.remove(&ix) };
        member(&mut self.leaderless, after == Some(BrokerId::NONE));
        member(&mut self.imbalanced, new.is_some_and(is_imbalanced));
        member(&mut self.with_elr, new.is_some_and(|s| !s.elr.is_empty()));
    }

    fn update_members(&mut self, ix: PartitionIx, before: &[BrokerId], after: &[BrokerId], elr: bool) {
        for broker in before.iter().filter(|b| !after.contains(b)) {
            self.part(*broker, elr).remove(&ix);
        }
        for broker in after.iter().filter(|b| !before.contains(b)) {
            self.part(*broker, elr).insert(ix);
        }
    }

    fn part(&mut self, broker: BrokerId, elr: bool) -> &mut BTreeSet<PartitionIx> {
        let parts = self.brokers.entry(broker).or_default();
        if elr {
            &mut parts.in_elr
        } else {
            &mut parts.in_isr
        }
    }
}

/// Everything that replay changes.
#[derive(Clone, Debug, Default)]
pub struct ClusterState {
    image: MetadataImage,
    index: ReplicaIndex,
    /// Where the mirror state of each mirrored topic last changed, for the optimistic check of a command (spec 1.4). After
    /// a snapshot or a rollback it is an upper bound: a check may then refuse what it need not.
    mirror_changes: BTreeMap<TopicIx, i64>,
    scratch: MetadataDelta,
}

impl ClusterState {
    /// Over the image of a snapshot.
    #[must_use]
    pub fn of(image: MetadataImage) -> Self {
        let mut state = Self::default();
        state.restore(&image);
        state
    }
    /// The image.
    #[must_use]
    pub fn image(&self) -> &MetadataImage {
        &self.image
    }
    /// Who has a part in which partitions.
    #[must_use]
    pub fn index(&self) -> &ReplicaIndex {
        &self.index
    }
    /// The offset of the last change of a topic's mirror state.
    #[must_use]
    pub fn mirror_changed_at(&self, topic: TopicIx) -> Option<i64> {
        self.mirror_changes.get(&topic).copied()
    }

    fn replay_removal(&mut self, offset: i64, record: &Record, topic: TopicIx) {
        let partitions = self.image.topic(topic).map(|t| t.partitions.clone()).unwrap_or_default();
        let before: Vec<_> =
            partitions.iter().filter_map(|ix| Some((*ix, self.image.partition(*ix)?.state.clone()))).collect();
        self.image.apply(offset, record, &mut self.scratch);
        for (ix, state) in before {
            self.index.update(ix, Some(&state), None);
        }
        self.mirror_changes.remove(&topic);
    }
}

impl Machine for ClusterState {
    type Record = Entry;
    type Stable = MetadataImage;

    fn replay(&mut self, offset: i64, entry: &Entry) {
        self.image.hash = chain(self.image.hash, &entry.bytes);
        match &entry.record {
            Record::RemoveTopic { topic } => self.replay_removal(offset, &entry.record, *topic),
            Record::Partition { partition, .. } | Record::PartitionChange { partition, .. } => {
                let old = self.image.partition(*partition).map(|p| p.state.clone());
                self.image.apply(offset, &entry.record, &mut self.scratch);
                let new = self.image.partition(*partition).map(|p| &p.state);
                self.index.update(*partition, old.as_ref(), new);
            }
            Record::MirrorTopicStateChange { topic, .. } => {
                self.mirror_changes.insert(*topic, offset);
                self.image.apply(offset, &entry.record, &mut self.scratch);
            }
            other => self.image.apply(offset, other, &mut self.scratch),
        }
        self.scratch.clear();
    }

    fn stable(&self) -> &MetadataImage {
        &self.image
    }

    fn replay_stable(image: &mut MetadataImage, offset: i64, entry: &Entry) {
        image.hash = chain(image.hash, &entry.bytes);
        image.apply(offset, &entry.record, &mut MetadataDelta::default());
    }

    fn restore(&mut self, image: &MetadataImage) {
        self.image = image.clone();
        self.index = ReplicaIndex::of(image);
        let last = image.end().0 - 1;
        self.mirror_changes = image.topics().filter(|(_, t)| t.mirror.is_some()).map(|(ix, _)| (ix, last)).collect();
    }
}
