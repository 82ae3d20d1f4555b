//! Looks at a world the way a scenario's conditions and expectations do: `mirror(orders) == MIRRORING`, `lag(orders) == 0`.
//!
//! What is looked at is the state itself, at whoever is entitled to know it: leaders and mirror leaders by the committed
//! metadata, not by what some broker believes. What nobody knows now compares as false, whatever the comparison.

use crate::format::action::NodeRef;
use crate::format::condition::{Compare, Condition, Term, Value, Where};
use crate::format::types::Wanted;
use crate::setup::Setup;
use mirrorlab_model::ids::{NodeId, PartitionIx};
use mirrorlab_model::metadata::image::MetadataImage;
use mirrorlab_model::mirror::manager::Part;
use mirrorlab_model::mirror::records::StateKey;
use mirrorlab_model::record::{BatchView, ControlType};
use mirrorlab_model::replica::Replica;
use mirrorlab_model::states::{DesiredState, LastPosition};
use mirrorlab_sim::node::Condition as NodeCondition;
use mirrorlab_sim::world::World;
use std::collections::BTreeSet;

/// A world to be looked at.
#[derive(Clone, Copy)]
pub struct Eye<'a> {
    /// The world.
    pub world: &'a World,
    /// Who is who.
    pub setup: &'a Setup,
    /// Named steps that are over.
    pub done: &'a BTreeSet<String>,
}

/// What a term is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A number.
    Number(i64),
    /// A state's name.
    State(&'static str),
    /// A node's name, or none.
    Node(Option<String>),
    /// Yes or no.
    Truth(bool),
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(n) => n.fmt(f),
            Self::State(name) => f.write_str(name),
            Self::Node(node) => f.write_str(node.as_deref().unwrap_or("none")),
            Self::Truth(yes) => yes.fmt(f),
        }
    }
}

impl<'a> Eye<'a> {
    /// Whether a condition holds now.
    #[must_use]
    pub fn holds(&self, condition: &Condition) -> bool {
        match condition {
            Condition::All(parts) => parts.iter().all(|c| self.holds(c)),
            Condition::Any(parts) => parts.iter().any(|c| self.holds(c)),
            Condition::Is(term, compare, value) => {
                let seen = self.look(term);
                !seen.is_empty() && seen.iter().all(|s| s.as_ref().is_some_and(|s| compares(s, *compare, value)))
            }
            Condition::Both(left, compare, right) => both(&self.look(left), *compare, &self.look(right)),
            Condition::True(term) => {
                let seen = self.look(term);
                !seen.is_empty() && seen.iter().all(|s| *s == Some(Seen::Truth(true)))
            }
        }
    }

    /// Whether a term has a wanted value, and what it is.
    #[must_use]
    pub fn equals(&self, term: &Term, wanted: &Wanted) -> (bool, String) {
        let seen = self.look(term);
        let same = |s: &Seen| match (s, wanted) {
            (Seen::Number(n), Wanted::Number(w)) => n == w,
            (Seen::State(name), Wanted::Name(w)) => name == w,
            (Seen::Node(node), Wanted::Name(w)) => node.as_deref().unwrap_or("none") == w,
            (Seen::Truth(yes), Wanted::Truth(w)) => yes == w,
            _ => false,
        };
        let met = !seen.is_empty() && seen.iter().all(|s| s.as_ref().is_some_and(same));
        let text: Vec<String> =
            seen.iter().map(|s| s.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string)).collect();
        (met, text.join(", "))
    }

    /// A term's value: one, or one per partition of a topic; `None` where it is not known.
    #[must_use]
    pub fn look(&self, term: &Term) -> Vec<Option<Seen>> {
        match term {
            Term::Mirror(at) => self.each_mirrored(at, |part| Some(Seen::State(part.state.name()))),
            Term::Attempts(at) => self.each_mirrored(at, |part| Some(Seen::Number(i64::from(part.attempt)))),
            Term::Lag(at) => self.each(at, |c, image, p| {
                self.part_of(at, c, image, p)?;
                self.lag(c, p).map(Seen::Number)
            }),
            Term::Desired(at) => vec![self.desired(at).map(|d| Seen::State(desired_name(d)))],
            Term::Leader(at) => self.each(at, |c, image, p| {
                let leader = image.partition(p)?.state.leader;
                let node = self.setup.broker_node(c, leader);
                Some(Seen::Node(node.map(|n| self.world.node(n).name.to_string())))
            }),
            Term::Epoch(at) => {
                self.each(at, |_, image, p| Some(Seen::Number(i64::from(image.partition(p)?.state.leader_epoch.0))))
            }
            Term::Isr(at) => {
                self.each(at, |_, image, p| Some(Seen::Number(image.partition(p)?.state.isr.len() as i64)))
            }
            Term::End(at) => self.each(at, |c, _, p| Some(Seen::Number(self.leader(c, p)?.log.high_watermark().0))),
            Term::Start(at) => self.each(at, |c, _, p| Some(Seen::Number(self.leader(c, p)?.log.start().0))),
            Term::Stable(at) => self.each(at, |c, _, p| Some(Seen::Number(self.leader(c, p)?.log.last_stable().0))),
            Term::Partitions(at) => vec![self.partition_count(at).map(Seen::Number)],
            Term::Resets(at) => self.controls(at, ControlType::MirrorPidReset),
            Term::Aborts(at) => self.controls(at, ControlType::Abort),
            Term::Commits(at) => self.controls(at, ControlType::Commit),
            Term::RecordEpoch(at, offset) => {
                self.each(at, |c, image, p| self.record_epoch(c, image, p, *offset as i64))
            }
            Term::PositionEpoch(at) => {
                self.each_position(at, |position| i64::from(position.map_or(-1, |position| position.epoch.0)))
            }
            Term::PositionOffset(at) => self.each_position(at, |position| position.map_or(-1, |p| p.offset.0)),
            Term::Acked(name) => vec![self.acked(name).map(|n| Seen::Number(n as i64))],
            Term::Read(name) => vec![self.read(name).map(|n| Seen::Number(n as i64))],
            Term::Term(cluster) => {
                let active = self.setup.cluster(cluster).and_then(|c| self.setup.active(self.world, c));
                let epoch = active.and_then(|n| self.world.node(n).controller()).map(|c| c.quorum().epoch().0);
                vec![Some(Seen::Number(i64::from(epoch.unwrap_or(0))))]
            }
            Term::Up(node) => self.each_node(node, NodeCondition::Up),
            Term::Down(node) => self.each_node(node, NodeCondition::Down),
            Term::Done(step) => vec![Some(Seen::Truth(self.done.contains(step)))],
        }
    }

    /// Whether all partitions of a mirrored topic (`MIRROR/TOPIC`) are in a state, and what they are.
    #[must_use]
    pub fn topic_state(&self, topic: &str, state: &str) -> (bool, String) {
        let (of, topic) = topic.split_once('/').unwrap_or(("", topic));
        let term = Term::Mirror(Where { of: of.to_owned(), topic: topic.to_owned(), partition: None });
        self.equals(&term, &Wanted::Name(state.to_owned()))
    }

    /// The records of a topic (`CLUSTER/TOPIC`) below the leaders' high watermarks, control records left out; `None` while a
    /// partition has no leader. Counts by reading the logs: meant for the end of a run.
    #[must_use]
    pub fn records(&self, topic: &str) -> Option<u64> {
        let (of, topic) = topic.split_once('/')?;
        let at = Where { of: of.to_owned(), topic: topic.to_owned(), partition: None };
        let counts = self.each(&at, |c, image, p| {
            let mut count = 0;
            self.committed_batches(c, image, p, |batch| {
                if !batch.is_control() {
                    count += i64::from(batch.record_count());
                }
            })?;
            Some(Seen::Number(count))
        });
        counts.into_iter().map(|c| if let Some(Seen::Number(n)) = c { u64::try_from(n).ok() } else { None }).sum()
    }

    /// Hands over each batch of a leader's log that is committed.
    fn committed_batches(
        &self,
        cluster: u8,
        image: &MetadataImage,
        partition: PartitionIx,
        mut look_at: impl FnMut(&BatchView<'_>),
    ) -> Option<()> {
        let node = self.setup.broker_node(cluster, image.partition(partition)?.state.leader)?;
        let replica = self.leader(cluster, partition)?;
        let (start, upto) = (replica.log.start(), replica.log.high_watermark());
        let look = self.world.node(node).disk.look(self.world.store());
        for file in replica.log.segments().map(|s| s.file) {
            for bytes in (0..look.appends(file)).map(|n| look.append(file, n)) {
                let batch = BatchView::parse(&bytes).ok()?;
                if batch.base_offset() >= start && batch.next_offset() <= upto {
                    look_at(&batch);
                }
            }
        }
        Some(())
    }

    fn controls(&self, at: &Where, wanted: ControlType) -> Vec<Option<Seen>> {
        self.each(at, |c, image, p| {
            let mut count = 0;
            self.committed_batches(c, image, p, |batch| count += i64::from(batch.control_type() == Some(wanted)))?;
            Some(Seen::Number(count))
        })
    }

    fn record_epoch(&self, cluster: u8, image: &MetadataImage, partition: PartitionIx, offset: i64) -> Option<Seen> {
        let mut found = None;
        self.committed_batches(cluster, image, partition, |batch| {
            if batch.base_offset().0 <= offset && offset < batch.next_offset().0 {
                found = Some(i64::from(batch.leader_epoch().0));
            }
        })?;
        found.map(Seen::Number)
    }

    /// The partitions that a condition names, with their clusters.
    #[must_use]
    pub fn partitions_of(&self, condition: &Condition) -> Vec<(u8, PartitionIx)> {
        let mut found = Vec::new();
        for term in condition.terms() {
            let Some(at) = term.place() else { continue };
            let Some(cluster) = self.cluster_of(&at.of) else { continue };
            let numbers = self.each(at, |_, _, p| Some(Seen::Number(i64::from(p.0))));
            found.extend(numbers.into_iter().filter_map(|n| {
                if let Some(Seen::Number(n)) = n {
                    Some((cluster, PartitionIx(n as u32)))
                } else {
                    None
                }
            }));
        }
        found
    }

    // ------------------------------------------------------------------------------------------------------------- nodes

    /// The nodes that a reference means now.
    #[must_use]
    pub fn nodes(&self, node: &NodeRef) -> Vec<NodeId> {
        let named = |name: &str| self.world.node_named(name).into_iter().collect();
        match node {
            NodeRef::Broker(..) | NodeRef::Controller(..) | NodeRef::Operator(..) => named(&node.to_string()),
            NodeRef::Active(cluster) => {
                self.setup.cluster(cluster).and_then(|c| self.setup.active(self.world, c)).into_iter().collect()
            }
            NodeRef::Brokers(cluster) => {
                self.setup.cluster(cluster).map_or(Vec::new(), |c| self.setup.clusters[usize::from(c)].brokers.clone())
            }
            NodeRef::Controllers(cluster) => {
                let here = self.setup.cluster(cluster).and_then(|c| self.setup.clusters.get(usize::from(c)));
                here.map_or(Vec::new(), |c| c.controllers.clone())
            }
            NodeRef::Client(name) => {
                let family = format!("{name}-");
                let all = self.setup.producers.iter().chain(&self.setup.consumers);
                let is_meant = |n: &str| {
                    n == name || n.strip_prefix(&family).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
                };
                all.filter(|c| is_meant(&c.name)).map(|c| c.node).collect()
            }
            NodeRef::Leader(cluster, topic, partition) => {
                let at = Where { of: cluster.clone(), topic: topic.clone(), partition: Some(*partition) };
                let leader = self.each(&at, |c, image, p| {
                    let leader = image.partition(p)?.state.leader;
                    Some(Seen::Number(i64::from(self.setup.broker_node(c, leader)?.0)))
                });
                leader
                    .into_iter()
                    .flatten()
                    .filter_map(|s| if let Seen::Number(n) = s { Some(NodeId(n as u16)) } else { None })
                    .collect()
            }
            NodeRef::Coordinator(mirror) => self.coordinator(mirror).into_iter().collect(),
        }
    }

    fn each_node(&self, node: &NodeRef, wanted: NodeCondition) -> Vec<Option<Seen>> {
        self.nodes(node).into_iter().map(|n| Some(Seen::Truth(self.world.node(n).condition == wanted))).collect()
    }

    fn coordinator(&self, mirror: &str) -> Option<NodeId> {
        let setup = self.setup.mirrors.iter().find(|m| &*m.name == mirror)?;
        let image = self.setup.image(self.world, setup.destination)?;
        let topic = image.state_topic()?;
        let partitions = &image.topic(topic)?.partitions;
        let at = mirrorlab_model::coordinator::routing::state_partition(mirror, partitions.len() as u32);
        let leader = image.partition(*partitions.get(at as usize)?)?.state.leader;
        self.setup.broker_node(setup.destination, leader)
    }

    // -------------------------------------------------------------------------------------------------------- partitions

    /// The cluster that a place's first half names: itself, or a mirror's destination.
    fn cluster_of(&self, of: &str) -> Option<u8> {
        self.setup.cluster(of).or_else(|| self.setup.mirrors.iter().find(|m| &*m.name == of).map(|m| m.destination))
    }

    /// Looks at each partition that a place names.
    fn each(&self, at: &Where, look: impl Fn(u8, &MetadataImage, PartitionIx) -> Option<Seen>) -> Vec<Option<Seen>> {
        let Some(cluster) = self.cluster_of(&at.of) else { return Vec::new() };
        let Some(image) = self.setup.image(self.world, cluster) else { return vec![None] };
        let Some(topic) = image.topic_by_name(&at.topic).and_then(|t| image.topic(t)) else { return vec![None] };
        match at.partition {
            Some(number) => vec![topic.partitions.get(number as usize).and_then(|p| look(cluster, image, *p))],
            None => topic.partitions.iter().map(|p| look(cluster, image, *p)).collect(),
        }
    }

    /// 0 while the cluster does not know the topic.
    fn partition_count(&self, at: &Where) -> Option<i64> {
        let image = self.setup.image(self.world, self.cluster_of(&at.of)?)?;
        let topic = image.topic_by_name(&at.topic).and_then(|t| image.topic(t));
        Some(topic.map_or(0, |topic| topic.partitions.len() as i64))
    }

    /// What the coordinator of each partition has committed of its last mirrored position.
    fn each_position(&self, at: &Where, look: impl Fn(Option<LastPosition>) -> i64) -> Vec<Option<Seen>> {
        let Some(cluster) = self.cluster_of(&at.of) else { return Vec::new() };
        let Some(image) = self.setup.image(self.world, cluster) else { return vec![None] };
        let Some(topic) = image.topic_by_name(&at.topic).and_then(|t| image.topic(t)) else { return vec![None] };
        let numbers = at.partition.map_or(0..topic.partitions.len() as u32, |p| p..p + 1);
        let position = |number| {
            let key = StateKey { mirror: at.of.as_str().into(), topic: topic.id, number };
            let mut brokers = self.setup.clusters[usize::from(cluster)].brokers.iter();
            let told =
                brokers.find_map(|node| self.world.node(*node).broker()?.mirror.coordinator.read(&key, image).ok())?;
            Some(Seen::Number(look(told.and_then(|record| record.position))))
        };
        numbers.map(position).collect()
    }

    fn each_mirrored(&self, at: &Where, look: impl Fn(&Part) -> Option<Seen>) -> Vec<Option<Seen>> {
        self.each(at, |c, image, p| self.part_of(at, c, image, p).and_then(&look))
    }

    /// A partition at its leader, while it belongs to the mirror that a place names: one topic may go from mirror to mirror.
    fn part_of(&self, at: &Where, cluster: u8, image: &MetadataImage, partition: PartitionIx) -> Option<&'a Part> {
        let mirror = |part: &&Part| image.mirror(part.mirror).is_some_and(|mirror| *mirror.name == *at.of);
        self.part(cluster, partition).filter(mirror)
    }

    /// A replica of the broker that leads a partition by the committed metadata, if it is up and knows that it leads.
    #[must_use]
    pub fn leader(&self, cluster: u8, partition: PartitionIx) -> Option<Replica<'a>> {
        let state = &self.setup.image(self.world, cluster)?.partition(partition)?.state;
        let node = self.setup.broker_node(cluster, state.leader)?;
        self.world.node(node).broker()?.replicas.get(partition).filter(|r| r.leader.is_some())
    }

    /// A mirrored partition at its leader.
    #[must_use]
    pub fn part(&self, cluster: u8, partition: PartitionIx) -> Option<&'a Part> {
        let state = &self.setup.image(self.world, cluster)?.partition(partition)?.state;
        let node = self.setup.broker_node(cluster, state.leader)?;
        self.world.node(node).broker()?.mirror.part(partition)
    }

    /// Records that the source has committed and the destination has not: what the mirror leader would tell, `None` while
    /// it does not know (decision 19).
    #[must_use]
    pub fn lag(&self, cluster: u8, partition: PartitionIx) -> Option<i64> {
        let state = &self.setup.image(self.world, cluster)?.partition(partition)?.state;
        let node = self.setup.broker_node(cluster, state.leader)?;
        let broker = self.world.node(node).broker()?;
        broker.mirror.lag(broker.mirror.part(partition)?, &broker.replicas)
    }

    fn desired(&self, at: &Where) -> Option<DesiredState> {
        let image = self.setup.image(self.world, self.cluster_of(&at.of)?)?;
        let (mirror, desired) = image.mirror_of(image.topic_by_name(&at.topic)?)?;
        image.mirror(mirror).filter(|mirror| *mirror.name == *at.of).map(|_| desired)
    }

    fn acked(&self, name: &str) -> Option<u64> {
        let nodes = self.nodes(&NodeRef::Client(name.to_owned()));
        let counts: Vec<u64> =
            nodes.iter().filter_map(|n| Some(self.world.node(*n).producer()?.counts().acked)).collect();
        (!counts.is_empty()).then(|| counts.iter().sum())
    }

    fn read(&self, name: &str) -> Option<u64> {
        let nodes = self.nodes(&NodeRef::Client(name.to_owned()));
        let counts: Vec<u64> =
            nodes.iter().filter_map(|n| Some(self.world.node(*n).consumer()?.counts().read)).collect();
        (!counts.is_empty()).then(|| counts.iter().sum())
    }
}

/// Numbers of as many partitions one by one; where one side is a single number, with each of the other.
fn both(left: &[Option<Seen>], compare: Compare, right: &[Option<Seen>]) -> bool {
    let holds = |left: &Option<Seen>, right: &Option<Seen>| match (left, right) {
        (Some(Seen::Number(left)), Some(Seen::Number(right))) => compare.holds(left, right),
        _ => false,
    };
    match (left, right) {
        ([], _) | (_, []) => false,
        ([left], _) => right.iter().all(|right| holds(left, right)),
        (_, [right]) => left.iter().all(|left| holds(left, right)),
        _ => left.len() == right.len() && left.iter().zip(right).all(|(left, right)| holds(left, right)),
    }
}

fn compares(seen: &Seen, compare: Compare, value: &Value) -> bool {
    match (seen, value) {
        (Seen::Number(seen), Value::Number(wanted)) => compare.holds(seen, wanted),
        (Seen::State(seen), Value::State(wanted)) => compare.holds(seen, &wanted.as_str()),
        (Seen::Node(seen), Value::Node(wanted)) => compare.holds(seen, &wanted.as_ref().map(ToString::to_string)),
        _ => false,
    }
}

fn desired_name(desired: DesiredState) -> &'static str {
    match desired {
        DesiredState::Mirroring => "MIRRORING",
        DesiredState::Paused => "PAUSED",
        DesiredState::Stopped => "STOPPED",
        DesiredState::Unknown => "UNKNOWN",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_partition_by_partition_and_what_is_unknown_is_false() {
        let seen = |numbers: &[i64]| numbers.iter().map(|n| Some(Seen::Number(*n))).collect::<Vec<_>>();
        let compare = |left: &[i64], right: &[i64]| both(&seen(left), Compare::AtMost, &seen(right));
        assert!(compare(&[1, 5], &[1, 9]));
        assert!(!compare(&[1, 9], &[9, 5]), "each with its own");
        assert!(compare(&[3], &[3, 4]) && !compare(&[3], &[3, 2]) && compare(&[3, 4], &[4]));
        assert!(!compare(&[1, 2], &[3, 4, 5]) && !compare(&[], &[3]) && !compare(&[3], &[]));
        assert!(!both(&[None], Compare::Other, &seen(&[3])), "whatever the comparison");
    }
}
