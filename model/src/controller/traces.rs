//! What a committed record tells the checkers.

use crate::controller::state::{Entry, Note};
use crate::ids::{BrokerId, PartitionIx};
use crate::metadata::image::MetadataImage;
use crate::metadata::records::Record;
use crate::states::DesiredState;
use crate::trace::{ElectionKind, Trace};

/// Members of a set as bits by position in a list.
fn bits(of: &[BrokerId], within: &[BrokerId]) -> u32 {
    within.iter().take(32).enumerate().filter(|(_, b)| of.contains(b)).fold(0, |bits, (at, _)| bits | 1 << at)
}

/// A partition's registration as an event.
#[must_use]
pub fn partition_changed(image: &MetadataImage, partition: PartitionIx) -> Option<Trace> {
    let state = &image.partition(partition)?.state;
    Some(Trace::PartitionChanged {
        partition,
        leader: state.leader,
        epoch: state.leader_epoch,
        partition_epoch: state.partition_epoch,
        isr: bits(&state.isr, &state.replicas),
        elr: bits(&state.elr, &state.replicas),
    })
}

/// The events of one committed record, over the image that has it.
pub fn entry_traces(image: &MetadataImage, entry: &Entry, traces: &mut Vec<Trace>) {
    match &entry.record {
        Record::Partition { partition, .. } | Record::PartitionChange { partition, .. } => {
            let changed = partition_changed(image, *partition);
            if let (Note::Elected(kind), Some(Trace::PartitionChanged { leader, epoch, .. })) = (entry.note, changed) {
                traces.push(Trace::Elected { partition: *partition, leader, epoch, kind });
            }
            traces.extend(changed);
        }
        Record::RegisterBroker { broker, .. } | Record::BrokerChange { broker, .. } => {
            if let Note::Fenced(fenced) = entry.note {
                traces.push(Trace::BrokerFenced { broker: *broker, fenced });
            }
        }
        Record::MirrorTopicStateChange { topic, mirror, desired } => {
            let desired = mirror.map_or(DesiredState::Unknown, |_| *desired);
            traces.push(Trace::MirrorOrdered { topic: *topic, desired, again: entry.note == Note::Again });
        }
        Record::RemoveTopic { topic } => {
            if let Note::Removed(desired) = entry.note {
                traces.push(Trace::TopicRemoved { topic: *topic, desired });
            }
        }
        _ => {}
    }
}

/// What a record found in the log meant to whoever wrote it; `image` has everything before it.
#[must_use]
pub fn note_of(image: &MetadataImage, record: &Record) -> Note {
    match record {
        Record::RegisterBroker { .. } => Note::Fenced(true),
        Record::BrokerChange { broker, fenced, .. } => {
            let changes = image.broker(*broker).is_some_and(|known| known.fenced != *fenced);
            if changes {
                Note::Fenced(*fenced)
            } else {
                Note::Plain
            }
        }
        Record::MirrorTopicStateChange { topic, mirror: Some(mirror), desired }
            if image.mirror_of(*topic) == Some((*mirror, *desired)) =>
        {
            Note::Again
        }
        Record::RemoveTopic { topic } => Note::Removed(image.mirror_of(*topic).map(|(_, d)| d).unwrap_or_default()),
        Record::PartitionChange { partition, leader: Some(leader), recovering, .. } if *leader != BrokerId::NONE => {
            let Some(old) = image.partition(*partition).map(|p| &p.state) else { return Note::Plain };
            Note::Elected(if *recovering == Some(true) {
                ElectionKind::Unclean
            } else if old.isr.contains(leader) {
                ElectionKind::Clean
            } else if old.elr.contains(leader) {
                ElectionKind::Eligible
            } else {
                ElectionKind::Unclean
            })
        }
        _ => Note::Plain,
    }
}
