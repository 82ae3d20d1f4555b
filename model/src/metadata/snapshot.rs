//! A metadata image as records, and back: what a snapshot file holds.

use crate::ids::{MetadataOffset, MirrorIx, NodeId, PartitionIx, TopicIx};
use crate::metadata::image::{Entries, MetadataImage};
use crate::metadata::records::Record;
use crate::states::DesiredState;
use crate::wire::messages::ConfigResource;

fn configs_of(resource: &ConfigResource, entries: &Entries, each: &mut impl FnMut(Record)) {
    for (key, value) in entries.iter() {
        each(Record::Config { resource: resource.clone(), key: key.clone(), value: Some(value.clone()) });
    }
}

impl MetadataImage {
    /// Hands out the records of a snapshot, in the order in which they must be applied to an empty image.
    pub fn for_each_snapshot_record(&self, mut each: impl FnMut(Record)) {
        each(Record::SnapshotHeader {
            epoch: self.epoch,
            leader: self.leader.unwrap_or(NodeId(0)),
            hash: self.hash,
            next_topic: TopicIx(self.next_topic),
            next_partition: PartitionIx(self.next_partition),
            next_mirror: MirrorIx(self.next_mirror),
        });
        for (broker, b) in self.brokers() {
            each(Record::RegisterBroker { broker, node: b.node, incarnation: b.incarnation, epoch: b.epoch });
            if !b.fenced || b.shutting_down {
                let (fenced, shutting_down) = (b.fenced, b.shutting_down);
                each(Record::BrokerChange { broker, epoch: b.epoch, fenced, shutting_down });
            }
        }
        for (broker, entries) in self.broker_entries.iter() {
            configs_of(&ConfigResource::Broker(*broker), entries, &mut each);
        }
        for (mirror, m) in self.mirrors() {
            each(Record::Mirror { mirror, name: m.name.clone() });
            configs_of(&ConfigResource::ClusterMirror(m.name.clone()), &m.entries, &mut each);
        }
        for (topic, t) in self.topics() {
            each(Record::Topic { topic, id: t.id, name: t.name.clone() });
            configs_of(&ConfigResource::Topic(t.name.clone()), &t.entries, &mut each);
            for &partition in &t.partitions {
                if let Some(p) = self.partition(partition) {
                    each(Record::Partition { partition, topic, number: p.number, state: p.state.clone() });
                }
            }
            if let Some((mirror, desired)) = t.mirror {
                each(Record::MirrorTopicStateChange { topic, mirror: Some(mirror), desired });
            }
        }
        if self.next_producer.0 != 0 {
            each(Record::ProducerIds { broker: crate::ids::BrokerId::NONE, next: self.next_producer });
        }
    }

    /// Sets where a loaded snapshot ends: the offset in its name.
    pub fn set_end(&mut self, end: MetadataOffset) {
        self.end = end;
    }
}

/// Whether a desired state means that the mirror works on the topic (deletion is refused then).
#[must_use]
pub const fn is_active(desired: DesiredState) -> bool {
    matches!(desired, DesiredState::Mirroring | DesiredState::Paused)
}
