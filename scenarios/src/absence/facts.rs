//! The state that a run ends in, as facts by name: two runs that should end alike have equal facts.
//!
//! What absence may change is no fact: who leads, and in which epoch; offsets and sizes of logs; which replicas a topic that was
//! created in the meantime got; how often something was tried; when anything happened. What may not change:
//!
//! - topics with their partitions, replication factor and config; brokers in service and their configs; mirrors with their
//!   configs and topics;
//! - what operators want of each mirrored topic, and the state that each of its partitions is in;
//! - that every partition has a leader, and how many replicas are in sync;
//! - that brokers do what the metadata says of them, partition by partition: lead, follow, or have no replica;
//! - that a STOPPED partition has a last mirrored position, and which, if the
//!   stop had the whole of a source that nobody wrote to afterwards;
//! - that an order that was accepted is accepted.
//!
//! That acknowledged records are there is no matter of comparison: every run's own checks demand it.

use crate::run::Run;
use crate::setup::Setup;
use mirrorlab_model::ids::{Offset, PartitionIx};
use mirrorlab_model::metadata::image::{Entries, MetadataImage};
use mirrorlab_model::states::MirrorState;
use mirrorlab_reports::record::Record;
use mirrorlab_sim::world::World;
use std::collections::BTreeMap;

/// Facts by name, and what can be compared only if something else is equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    facts: BTreeMap<String, String>,
    /// Of a STOPPED partition: where mirroring ended, and where the source ends.
    positions: BTreeMap<String, (Offset, Option<Offset>)>,
}

impl Facts {
    /// What differs: expected (here) and got (there), each with its name.
    pub fn differences(&self, there: &Self) -> Vec<(String, String)> {
        let mut out = Vec::new();
        let none = "none".to_owned();
        let names: std::collections::BTreeSet<&String> = self.facts.keys().chain(there.facts.keys()).collect();
        for name in names {
            let (here, there) = (self.facts.get(name).unwrap_or(&none), there.facts.get(name).unwrap_or(&none));
            if here != there {
                out.push((format!("{name}: {here}"), format!("{name}: {there}")));
            }
        }
        for (name, (position, end)) in &self.positions {
            let Some((other, other_end)) = there.positions.get(name) else { continue };
            // The stop had everything, and the source has no more in either run.
            if Some(*position) == *end && end == other_end && position != other {
                out.push((format!("{name} mirrored to {position}"), format!("{name} mirrored to {other}")));
            }
        }
        out
    }

    pub(super) fn note(&mut self, name: String, what: impl Into<String>) {
        self.facts.insert(name, what.into());
    }

    /// Where mirroring of a STOPPED partition ended, and where its source ends.
    pub(super) fn position(&mut self, name: &str, position: Offset, source_end: Option<Offset>) {
        self.positions.insert(name.to_owned(), (position, source_end));
    }
}

/// The facts of a run that ended.
pub(super) fn of(run: &Run, record: &Record) -> Facts {
    let (world, setup) = (&run.lab().world, &run.lab().setup);
    let mut facts = Facts::default();
    for (cluster, of) in setup.clusters.iter().enumerate() {
        let Some(image) = setup.image(world, cluster as u8) else {
            facts.note(format!("{} controller", of.name), "none");
            continue;
        };
        of_metadata(&mut facts, &of.name, image);
        for (ix, _) in image.partitions() {
            of_partition(&mut facts, world, setup, cluster as u8, image, ix);
        }
    }
    for order in &record.orders {
        if order.answer == "NONE" {
            // Steps are numbered anew by the one that is added: their order is the same.
            let n = record.orders.iter().take_while(|other| other.step < order.step).count();
            facts.note(format!("order {} ({})", n + 1, order.order), "accepted");
        }
    }
    facts
}

fn entries(entries: &Entries) -> String {
    entries.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

fn of_metadata(facts: &mut Facts, cluster: &str, image: &MetadataImage) {
    for (_, topic) in image.topics() {
        let factor = topic.partitions.first().and_then(|p| image.partition(*p)).map_or(0, |p| p.state.replicas.len());
        let text = format!("{} partitions, {factor} replicas, {}", topic.partitions.len(), entries(&topic.entries));
        facts.note(format!("{cluster}/{}", topic.name), text);
        let wanted = topic.mirror.map(|(mirror, desired)| {
            let name = image.mirror(mirror).map_or_else(|| "?".to_owned(), |mirror| mirror.name.to_string());
            format!("{} in {name}", desired.name())
        });
        if let Some(wanted) = wanted {
            facts.note(format!("{cluster}/{} is wanted", topic.name), wanted);
        }
    }
    for (broker, known) in image.brokers() {
        let own = image.broker_entries(Some(broker)).map(entries).unwrap_or_default();
        facts.note(
            format!("{cluster}/broker-{broker}"),
            format!("{} {own}", if known.fenced { "fenced" } else { "in service" }),
        );
    }
    for (_, mirror) in image.mirrors() {
        facts.note(format!("{cluster}/mirror {}", mirror.name), entries(&mirror.entries));
    }
}

fn of_partition(facts: &mut Facts, world: &World, setup: &Setup, cluster: u8, image: &MetadataImage, ix: PartitionIx) {
    let Some(partition) = image.partition(ix) else { return };
    let Some(topic) = image.topic(partition.topic) else { return };
    let of = &setup.clusters[usize::from(cluster)];
    let name = format!("{}/{}-{}", of.name, topic.name, partition.number);
    let state = &partition.state;
    let leader = setup.broker_node(cluster, state.leader).and_then(|node| world.node(node).broker());
    let leads = leader.is_some_and(|broker| broker.replicas.leads(ix).is_some());
    facts.note(format!("{name} has a leader"), if leads { "yes" } else { "no" });
    facts.note(format!("{name} in sync"), state.isr.len().to_string());
    let told = of.brokers.iter().enumerate().all(|(slot, node)| {
        let id = slot as i32 + 1;
        let Some(broker) = world.node(*node).broker() else { return true };
        let hosts = broker.replicas.log(ix).is_some();
        let wanted = state.replicas.iter().any(|replica| replica.0 == id);
        let led = broker.replicas.leads(ix).is_some();
        hosts == wanted && led == (state.leader.0 == id)
    });
    facts.note(format!("{name} replicas"), if told { "as the metadata says" } else { "not as the metadata says" });
    if image.mirror_of(partition.topic).is_none() {
        return;
    }
    let part = leader.and_then(|broker| broker.mirror.part(ix));
    facts.note(format!("{name} mirror state"), part.map_or("not known to its leader", |part| part.state.name()));
    let Some(part) = part.filter(|part| part.state == MirrorState::Stopped) else { return };
    let position = part.record.as_ref().and_then(|record| record.position);
    facts.note(format!("{name} last mirrored position"), if position.is_some() { "known" } else { "none" });
    if let Some(position) = position {
        facts.position(&name, position.offset, source_end(world, setup, cluster, topic.id, partition.number));
    }
}

/// Where the topic of that id ends at the one other cluster that has it.
fn source_end(
    world: &World,
    setup: &Setup,
    cluster: u8,
    topic: mirrorlab_model::ids::TopicId,
    number: u32,
) -> Option<Offset> {
    let mut others = (0..setup.clusters.len() as u8).filter(|other| *other != cluster).filter_map(|other| {
        let image = setup.image(world, other)?;
        let ix = image.partition_of(image.topic_of(topic)?, number)?;
        let leader = setup.broker_node(other, image.partition(ix)?.state.leader)?;
        Some(world.node(leader).broker()?.replicas.log(ix)?.high_watermark())
    });
    let first = others.next();
    first.filter(|_| others.next().is_none())
}
