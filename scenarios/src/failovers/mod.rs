//! What a stop, and a start after it, cost: records left behind (RPO), time until the copy may be written (RTO), records dropped
//! on the side that returns.
//!
//! It looks on from outside and draws, sends and traces nothing. A figure that cannot be known is unknown, never zero (decisions
//! 19 and 39, S50).
//!
//! - **Left behind**: acknowledged at the source until the last mirrored position was noted, and not in the copy's log when
//!   STOPPED was committed. Its age counts back from the instant at which the source died, or, with a source that lives, from
//!   that at which the position was noted.
//! - **Writable**: from the operator's order, however often it was repeated, to the commit of STOPPED. It counts from when it was
//!   sent: an operator carries out one order after the other, and what waits behind an earlier one is no cluster's delay.
//! - **Dropped**: what an alignment cut from the log of the side that becomes the copy.

mod acks;
mod told;

use crate::checks::ghost::Ghost;
use crate::checks::logs;
use crate::checks::roster::slot_of;
use crate::checks::sight::{LogSight, Sight};
use crate::checks::world_sight::WorldSight;
use crate::setup::Setup;
use acks::{Acks, Held, Missing};
use mirrorlab_model::ids::{BrokerId, LeaderEpoch, Nanos, NodeId, Offset, PartitionIx, TopicIx};
use mirrorlab_model::metadata::image::MetadataImage;
use mirrorlab_model::states::{DesiredState, MirrorState};
use mirrorlab_model::trace::{CutCause, Trace, TraceEvent};
use mirrorlab_sim::world::World;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A partition: cluster and index.
type At = (u8, PartitionIx);
/// Mirrors of mirrors that are followed to where records were written.
const CHAIN_MAX: usize = 8;

/// One copy.
#[derive(Clone, Copy, Debug, Default)]
struct Copy {
    source: Option<At>,
    /// The end of what was copied.
    mirrored: Offset,
}

/// What an order is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Stop,
    Start,
}

/// A partition that was ordered to stop.
#[derive(Clone, Debug, Default)]
struct Stopped {
    noted: Option<Nanos>,
    position: Option<Offset>,
    at: Option<Nanos>,
    /// When the last of the source's replicas was gone, if all were when the position was noted.
    source_died: Option<Nanos>,
    missing: Option<Missing>,
    control: Option<u64>,
    gap: u64,
    first_write: Option<Nanos>,
    first_read: Option<Nanos>,
}

/// A partition that was ordered to start.
#[derive(Clone, Copy, Debug, Default)]
struct Started {
    /// It was stopped before, in one direction or the other.
    returns: bool,
    at: Option<Nanos>,
    /// What was cut, as offsets.
    cut: Option<(Offset, Offset)>,
    acked: u64,
    /// Records and control records among them; `None` where no replica held them any more.
    split: Option<(u64, u64)>,
}

/// What one order brought about.
#[derive(Clone, Debug)]
struct Episode {
    kind: Kind,
    mirror: Arc<str>,
    topic: Arc<str>,
    partitions: Vec<PartitionIx>,
    /// When an operator wanted it first.
    ordered: Nanos,
    /// When that was sent: everything counts from here.
    sent: Nanos,
    stopped: BTreeMap<PartitionIx, Stopped>,
    started: BTreeMap<PartitionIx, Started>,
}

/// All stops and starts of a run.
#[derive(Clone, Debug, Default)]
pub struct Failovers {
    /// Acknowledgements are kept; without them what is left behind is unknown.
    keeps_acks: bool,
    acks: Vec<Vec<Acks>>,
    copies: Vec<Vec<Copy>>,
    copies_of: BTreeMap<At, SmallVec<[At; 1]>>,
    gaps: BTreeMap<At, u64>,
    episodes: Vec<Episode>,
    /// The newest episode of a topic, and what was ordered of it last.
    newest: BTreeMap<(u8, TopicIx), (usize, DesiredState)>,
    /// Partitions that were stopped once, and those that are now.
    stopped_once: BTreeSet<At>,
    at_rest: BTreeSet<At>,
    /// Stopped partitions that no client wrote or read since.
    unwritten: BTreeMap<At, usize>,
    unread: BTreeMap<At, usize>,
    stops: u64,
    down: BTreeMap<NodeId, Nanos>,
}

/// What may be looked at.
#[derive(Clone, Copy)]
struct Look<'w> {
    world: &'w World,
    setup: &'w Setup,
    ghost: &'w Ghost,
}

impl<'w> Look<'w> {
    fn sight(&self) -> WorldSight<'w> {
        WorldSight { world: self.world, setup: self.setup }
    }
    fn node(&self, cluster: u8, slot: u16) -> Option<NodeId> {
        self.setup.clusters.get(usize::from(cluster))?.brokers.get(usize::from(slot)).copied()
    }
    fn leader(&self, (cluster, ix): At) -> BrokerId {
        let ghost = self.ghost.clusters.get(usize::from(cluster)).and_then(|c| c.partitions.get(ix.0 as usize));
        ghost.map_or(BrokerId::NONE, |g| g.leader)
    }
    fn image(&self, node: NodeId, cluster: u8) -> Option<&'w MetadataImage> {
        self.world.node(node).broker().map(|b| &b.image).or_else(|| self.setup.image(self.world, cluster))
    }
    /// Where a mirrored partition comes from, by metadata of both sides.
    fn source_of(&self, (cluster, ix): At, image: &MetadataImage) -> Option<At> {
        let partition = image.partition(ix)?;
        let topic = image.topic(partition.topic)?;
        let mirror = &image.mirror(topic.mirror?.0)?.name;
        let source = self.setup.mirrors.iter().find(|m| m.destination == cluster && m.name == *mirror)?.source;
        let there = self.setup.image(self.world, source)?;
        Some((source, there.partition_of(there.topic_by_name(&topic.name)?, partition.number)?))
    }
}

impl Failovers {
    /// Looks on. `keeps_acks`: a stop may come, and what is acknowledged before has to be known then.
    #[must_use]
    pub fn new(keeps_acks: bool) -> Self {
        Self { keeps_acks, ..Self::default() }
    }

    /// Looks at what the last step traced, before the checks do: they forget what was acknowledged with what is cut.
    pub fn on_step(&mut self, world: &World, setup: &Setup, ghost: &Ghost) {
        if setup.mirrors.is_empty() {
            return;
        }
        let look = Look { world, setup, ghost };
        if world.counts().stops != self.stops {
            self.stops = world.counts().stops;
            self.look_for_stops(world);
        }
        for event in world.trace() {
            self.on_event(look, event);
        }
    }

    /// When the nodes that are down ended.
    fn look_for_stops(&mut self, world: &World) {
        for (n, node) in world.nodes().iter().enumerate() {
            let node_id = NodeId(n as u16);
            if node.process.is_some() {
                self.down.remove(&node_id);
            } else {
                self.down.entry(node_id).or_insert(world.now());
            }
        }
    }

    fn on_event(&mut self, look: Look<'_>, event: &TraceEvent) {
        let now = look.world.now();
        match event.trace {
            Trace::Acked { partition, producer, count, base, acks, .. } => {
                let Some(client) = look.setup.producers.get(producer as usize) else { return };
                let at = (client.cluster, partition);
                if let Some(episode) = (!self.unwritten.is_empty()).then(|| self.unwritten.remove(&at)).flatten() {
                    self.stopped(episode, partition).first_write = Some(now);
                }
                if self.keeps_acks && acks != 0 && base != Offset::UNKNOWN {
                    self.acked(look, at, base, base.plus(i64::from(count)));
                }
            }
            Trace::Read { partition, consumer, .. } if !self.unread.is_empty() => {
                let Some(client) = look.setup.consumers.get(consumer as usize) else { return };
                if let Some(episode) = self.unread.remove(&(client.cluster, partition)) {
                    self.stopped(episode, partition).first_read = Some(now);
                }
            }
            Trace::Mirrored { partition, source, source_partition, next, .. } => {
                let (Some(own), Some(there)) = (cluster(look, event.node), cluster(look, source)) else { return };
                self.comes_from((own, partition), (there, source_partition));
                self.copy((own, partition)).mirrored = next;
            }
            Trace::MirrorGap { partition, from, to } => {
                let Some(own) = cluster(look, event.node) else { return };
                *self.gaps.entry((own, partition)).or_default() += (to.0 - from.0).max(0) as u64;
            }
            Trace::MirrorOrdered { topic, desired, .. } => self.ordered(look, event.node, topic, desired),
            Trace::Truncated { partition, from, to, cause: CutCause::Alignment | CutCause::MirrorDivergence } => {
                self.cut(look, event.node, partition, (to, from));
            }
            Trace::MirrorPositionCommitted { partition, offset, .. } if offset.0 >= 0 => {
                self.noted(look, event.node, partition, offset);
            }
            Trace::MirrorStateCommitted { partition, state, .. }
            | Trace::MirrorStateChanged { partition, to: state, .. } => {
                self.state(look, event.node, partition, state);
            }
            _ => {}
        }
    }

    // ------------------------------------------------------------------------------------------------------------- copies

    fn copy(&mut self, (cluster, ix): At) -> &mut Copy {
        at_index(at_index(&mut self.copies, usize::from(cluster)), ix.0 as usize)
    }

    fn comes_from(&mut self, copy: At, source: At) {
        let keeps_acks = self.keeps_acks;
        let known = self.copy(copy);
        if known.source != Some(source) {
            known.source = Some(source);
            if !keeps_acks {
                return;
            }
            let copies = self.copies_of.entry(source).or_default();
            if !copies.contains(&copy) {
                copies.push(copy);
            }
        }
    }

    fn acked(&mut self, look: Look<'_>, at: At, base: Offset, next: Offset) {
        let Self { acks, copies, copies_of, .. } = self;
        // Of a cluster that nobody copies, nothing is left behind.
        if !look.setup.mirrors.iter().any(|m| m.source == at.0) {
            return;
        }
        let leader = look.node(at.0, slot_of(look.leader(at))).and_then(|n| look.world.node(n).broker());
        let epoch = leader.and_then(|b| b.replicas.log(at.1)).map_or(LeaderEpoch::NONE, |log| {
            if log.end() >= next {
                log.epochs().epoch_of(base)
            } else {
                LeaderEpoch::NONE
            }
        });
        let log = at_index(at_index(acks, usize::from(at.0)), at.1 .0 as usize);
        log.add(look.world.now(), (base, next), epoch, || {
            copied(look, copies, copies_of, at, &mut SmallVec::new()).unwrap_or(Offset::ZERO)
        });
    }

    /// The partitions in which what a copy holds was written: its source, and that one's, if it is a copy as well.
    fn upstream(&self, copy: At) -> Option<Vec<At>> {
        let mut found = vec![self.copies.get(usize::from(copy.0))?.get(copy.1 .0 as usize)?.source?];
        while let Some(next) = found.last().and_then(|at| {
            let known = self.copies.get(usize::from(at.0))?.get(at.1 .0 as usize)?;
            known.source.filter(|_| !self.at_rest.contains(at))
        }) {
            if found.len() >= CHAIN_MAX || next == copy || found.contains(&next) {
                break;
            }
            found.push(next);
        }
        Some(found)
    }

    // ------------------------------------------------------------------------------------------------------------- orders

    fn ordered(&mut self, look: Look<'_>, node: NodeId, topic: TopicIx, desired: DesiredState) {
        let Some(own) = cluster(look, node) else { return };
        let before = self.newest.get(&(own, topic)).copied();
        let rests = |d: DesiredState| !matches!(d, DesiredState::Mirroring | DesiredState::Paused);
        let kind = match (before.map_or(DesiredState::Unknown, |b| b.1), desired) {
            (DesiredState::Stopped, DesiredState::Stopped) => None,
            (_, DesiredState::Stopped) => Some(Kind::Stop),
            (before, DesiredState::Mirroring | DesiredState::Paused) if rests(before) => Some(Kind::Start),
            _ => None,
        };
        let opened = kind.and_then(|kind| episode(look, own, topic, kind, desired));
        if let Some(episode) = opened {
            for ix in &episode.partitions {
                self.unwritten.remove(&(own, *ix));
                self.unread.remove(&(own, *ix));
            }
            self.episodes.push(episode);
            self.newest.insert((own, topic), (self.episodes.len() - 1, desired));
        } else if let Some(newest) = self.newest.get_mut(&(own, topic)) {
            newest.1 = desired;
        }
    }

    /// The newest episode of a partition's topic, if it is of that kind.
    fn episode_of(&self, look: Look<'_>, node: NodeId, own: u8, ix: PartitionIx, kind: Kind) -> Option<usize> {
        let topic = look.image(node, own)?.partition(ix)?.topic;
        let (at, _) = *self.newest.get(&(own, topic))?;
        (self.episodes[at].kind == kind).then_some(at)
    }

    fn stopped(&mut self, episode: usize, ix: PartitionIx) -> &mut Stopped {
        self.episodes[episode].stopped.entry(ix).or_default()
    }

    // ------------------------------------------------------------------------------------------------------------- stops

    fn noted(&mut self, look: Look<'_>, node: NodeId, ix: PartitionIx, offset: Offset) {
        let Some(own) = cluster(look, node) else { return };
        let Some(episode) = self.episode_of(look, node, own, ix, Kind::Stop) else { return };
        self.learn_source(look, node, (own, ix));
        let died = self.source_died(look, (own, ix));
        let part = self.stopped(episode, ix);
        if part.at.is_none() && part.noted.is_none() {
            (part.noted, part.position, part.source_died) = (Some(look.world.now()), Some(offset), died);
        }
    }

    fn state(&mut self, look: Look<'_>, node: NodeId, ix: PartitionIx, state: MirrorState) {
        let Some(own) = cluster(look, node) else { return };
        match state {
            MirrorState::LogAlignment => self.learn_source(look, node, (own, ix)),
            MirrorState::Mirroring => {
                self.learn_source(look, node, (own, ix));
                self.mirrors_again(look, node, (own, ix));
            }
            MirrorState::Stopped => {
                if let Some(episode) = self.episode_of(look, node, own, ix, Kind::Stop) {
                    self.came_to_rest(look, node, episode, (own, ix));
                }
            }
            _ => {}
        }
    }

    fn learn_source(&mut self, look: Look<'_>, node: NodeId, copy: At) {
        let found = look.image(node, copy.0).and_then(|image| look.source_of(copy, image));
        if let Some(source) = found {
            self.comes_from(copy, source);
        }
    }

    /// When the last replica of a copy's source went, if all are gone.
    fn source_died(&self, look: Look<'_>, copy: At) -> Option<Nanos> {
        let (cluster, ix) = *self.upstream(copy)?.first()?;
        let source = look.ghost.clusters.get(usize::from(cluster))?.partitions.get(ix.0 as usize)?;
        let mut died = None;
        for member in &source.members {
            died = died.max(Some(*self.down.get(&look.node(cluster, member.slot)?)?));
        }
        died
    }

    fn came_to_rest(&mut self, look: Look<'_>, node: NodeId, episode: usize, at: At) {
        let now = look.world.now();
        if self.stopped(episode, at.1).at.is_some() {
            return;
        }
        self.learn_source(look, node, at);
        let mut part = self.stopped(episode, at.1).clone();
        part.at = Some(now);
        if part.noted.is_none() {
            part.source_died = self.source_died(look, at);
            let ghost = look.ghost.clusters.get(usize::from(at.0)).and_then(|c| c.partitions.get(at.1 .0 as usize));
            let position = ghost.and_then(|g| g.life()).and_then(|life| life.position).map(|p| p.offset);
            part.position = part.position.or(position.filter(|p| p.0 >= 0));
        }
        part.gap = self.gaps.get(&at).copied().unwrap_or(0);
        (part.missing, part.control) = self.left_behind(look, at, &part, now);
        *self.stopped(episode, at.1) = part;
        self.stopped_once.insert(at);
        self.at_rest.insert(at);
        self.unwritten.insert(at, episode);
        self.unread.insert(at, episode);
    }

    /// What a copy that came to rest does not hold, and the control records that the stop added to it.
    fn left_behind(&self, look: Look<'_>, at: At, part: &Stopped, now: Nanos) -> (Option<Missing>, Option<u64>) {
        let sight = look.sight();
        let node = look.node(at.0, slot_of(look.leader(at)));
        let Some(log) = node.and_then(|n| sight.replica(n, at.1)).map(|r| r.log) else { return (None, None) };
        let control = part.position.map(|from| count(log, from, log.end()).1);
        let held = Held {
            start: log.start(),
            end: log.end(),
            mirrored: part.position.unwrap_or(log.end()),
            epochs: log.epochs(),
        };
        let Some(upstream) = self.upstream(at).filter(|_| self.keeps_acks) else { return (None, control) };
        let mut all = Missing::default();
        for (cluster, ix) in upstream {
            let Some(acks) = self.acks.get(usize::from(cluster)).and_then(|c| c.get(ix.0 as usize)) else { continue };
            let Some(missing) = acks.missing(part.noted.unwrap_or(now), held) else { return (None, control) };
            all.records += missing.records;
            all.oldest = match (all.oldest, missing.oldest) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        (Some(all), control)
    }

    // ------------------------------------------------------------------------------------------------------------- starts

    fn cut(&mut self, look: Look<'_>, node: NodeId, ix: PartitionIx, (to, from): (Offset, Offset)) {
        let Some(own) = cluster(look, node) else { return };
        let copy = self.copy((own, ix));
        copy.mirrored = copy.mirrored.min(to);
        let Some(episode) = self.episode_of(look, node, own, ix, Kind::Start) else { return };
        let part = self.episodes[episode].started.entry(ix).or_default();
        // A leader that took over before all were cut cuts the same again.
        let again = part.cut.is_some_and(|(low, high)| to >= low && from <= high);
        if part.at.is_some() || to >= from || again {
            return;
        }
        let ghost = look.ghost.clusters.get(usize::from(own)).and_then(|c| c.partitions.get(ix.0 as usize));
        let acked = |(a, b): (Offset, Offset)| (b.0.min(from.0) - a.0.max(to.0)).max(0) as u64;
        part.acked += ghost.map_or(0, |g| g.acked.iter().map(acked).sum());
        let fresh =
            part.cut.map_or((to, from), |(low, high)| if to < low { (to, low.min(from)) } else { (high, from) });
        let split = split(look, (own, ix), fresh);
        part.split = match (part.cut, part.split) {
            (None, _) => split,
            (Some(_), before) => before.zip(split).map(|(a, b)| (a.0 + b.0, a.1 + b.1)),
        };
        part.cut = Some(part.cut.map_or((to, from), |(low, high)| (low.min(to), high.max(from))));
    }

    fn mirrors_again(&mut self, look: Look<'_>, node: NodeId, at: At) {
        let Some(episode) = self.episode_of(look, node, at.0, at.1, Kind::Start) else { return };
        self.at_rest.remove(&at);
        let source = self.copy(at).source;
        let returns = self.stopped_once.contains(&at) || source.is_some_and(|s| self.stopped_once.contains(&s));
        // A first start is not told unless something was cut; in a large world it is not kept either.
        let keeps = self.keeps_acks || returns || self.episodes[episode].started.contains_key(&at.1);
        if !keeps {
            return;
        }
        let part = self.episodes[episode].started.entry(at.1).or_default();
        if part.at.is_none() {
            (part.at, part.returns) = (Some(look.world.now()), returns);
        }
    }
}

/// The cluster of a node.
fn cluster(look: Look<'_>, node: NodeId) -> Option<u8> {
    look.world.node(node).cluster
}

/// Up to where every copy of a partition, and every copy of a copy, has committed what it copied. Two that copied each other in
/// turn are no chain: the second way leads back.
fn copied(
    look: Look<'_>,
    copies: &[Vec<Copy>],
    copies_of: &BTreeMap<At, SmallVec<[At; 1]>>,
    at: At,
    way: &mut SmallVec<[At; 4]>,
) -> Option<Offset> {
    way.push(at);
    let mut least: Option<Offset> = None;
    for copy in copies_of.get(&at).into_iter().flatten() {
        if way.contains(copy) || way.len() > CHAIN_MAX {
            continue;
        }
        let known = copies.get(usize::from(copy.0)).and_then(|c| c.get(copy.1 .0 as usize));
        let ghost = look.ghost.clusters.get(usize::from(copy.0)).and_then(|c| c.partitions.get(copy.1 .0 as usize));
        let own = known.zip(ghost).map_or(Offset::ZERO, |(known, ghost)| known.mirrored.min(ghost.true_hw));
        let further = copied(look, copies, copies_of, *copy, way).map_or(own, |further| further.min(own));
        least = Some(least.map_or(further, |least| least.min(further)));
    }
    way.pop();
    least
}

fn episode(look: Look<'_>, own: u8, topic: TopicIx, kind: Kind, desired: DesiredState) -> Option<Episode> {
    let image = look.setup.image(look.world, own)?;
    let entry = image.topic(topic)?;
    let mirror = image.mirror(entry.mirror?.0)?.name.clone();
    // An order that had to be repeated counts from the first time.
    let about = |w: &&crate::setup::Wish| w.is_about(own, &mirror, &entry.name);
    let said = look.setup.wishes.iter().rev().filter(about);
    let first = said.skip_while(|w| w.desired != desired).take_while(|w| w.desired == desired).last();
    let now = look.world.now();
    Some(Episode {
        kind,
        ordered: first.map_or(now, |w| w.at),
        sent: first.and_then(|w| look.setup.sent(look.world, w)).unwrap_or(now),
        topic: entry.name.clone(),
        partitions: entry.partitions.clone(),
        mirror,
        stopped: BTreeMap::new(),
        started: BTreeMap::new(),
    })
}

/// Records and control records among `range` of a log that was just cut, as another replica still holds them.
fn split(look: Look<'_>, (cluster, ix): At, (from, to): (Offset, Offset)) -> Option<(u64, u64)> {
    let brokers = &look.setup.clusters.get(usize::from(cluster))?.brokers;
    let sight = look.sight();
    let logs = brokers.iter().filter_map(|node| sight.replica(*node, ix).map(|r| r.log));
    logs.filter(|log| log.start() <= from && log.end() >= to).map(|log| count(log, from, to)).next()
}

/// Records and control records of a log within a range.
fn count<L: LogSight>(log: L, from: Offset, to: Offset) -> (u64, u64) {
    let (mut records, mut control) = (0, 0);
    logs::for_each(log, from, to, |batch| {
        let within = batch.next_offset().min(to).0 - batch.base_offset().max(from).0;
        *if batch.is_control() { &mut control } else { &mut records } += within.max(0) as u64;
        true
    });
    (records, control)
}

/// The element at an index, made if need be.
fn at_index<T: Default>(list: &mut Vec<T>, at: usize) -> &mut T {
    if list.len() <= at {
        list.resize_with(at + 1, T::default);
    }
    &mut list[at]
}
