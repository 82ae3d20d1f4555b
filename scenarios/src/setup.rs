//! Who is who in a world: clusters, mirrors and clients by name and node. Made once from the plan; checks, reports and the
//! runner look names up here.

use mirrorlab_model::client::admin::{Admin, Outcome, Verdict};
use mirrorlab_model::client::commands::Command;
use mirrorlab_model::client::mirror_orders::{MirrorOrder, Which};
use mirrorlab_model::controller::Controller;
use mirrorlab_model::ids::{BrokerId, Nanos, NodeId};
use mirrorlab_model::metadata::image::MetadataImage;
use mirrorlab_model::metadata::patterns::Patterns;
use mirrorlab_model::states::DesiredState;
use mirrorlab_sim::world::World;
use std::sync::Arc;

/// One cluster.
#[derive(Clone, Debug)]
pub struct ClusterSetup {
    /// Name in the scenario.
    pub name: Arc<str>,
    /// Its cluster id.
    pub cluster_id: Arc<str>,
    /// Controllers.
    pub controllers: Vec<NodeId>,
    /// Brokers; broker id n stands at n − 1.
    pub brokers: Vec<NodeId>,
}

/// One mirror.
#[derive(Clone, Debug)]
pub struct MirrorSetup {
    /// Name in the scenario.
    pub name: Arc<str>,
    /// Index of the source cluster.
    pub source: u8,
    /// Index of the destination cluster.
    pub destination: u8,
}

/// One producer or consumer.
#[derive(Clone, Debug)]
pub struct ClientSetup {
    /// Name in the scenario.
    pub name: Arc<str>,
    /// Its number in trace events and record identities.
    pub number: u32,
    /// Index of its cluster.
    pub cluster: u8,
    /// Its node.
    pub node: NodeId,
    /// A consumer that reads what is committed only.
    pub read_committed: bool,
}

/// Everything by name.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Clusters; a node's cluster number is the index here.
    pub clusters: Vec<ClusterSetup>,
    /// Mirrors.
    pub mirrors: Vec<MirrorSetup>,
    /// Producers, by number.
    pub producers: Vec<ClientSetup>,
    /// Consumers, by number.
    pub consumers: Vec<ClientSetup>,
    /// The operators' clients of each cluster, the first one first.
    pub admins: Vec<Vec<NodeId>>,
    /// What operators wanted of mirrored topics, in the order in which they said so, however they were answered.
    pub wishes: Vec<Wish>,
}

/// An operator's word on the topics of a mirror.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Index of the mirror's cluster.
    pub cluster: u8,
    /// Who says so.
    by: NodeId,
    /// The order that says so.
    pub order: u32,
    /// When it was said: given to the operator's client, which carries out one order after the other.
    pub at: Nanos,
    /// The mirror.
    pub mirror: Arc<str>,
    /// Names and patterns; none: all topics of the mirror.
    topics: Option<Patterns>,
    /// What is wanted; UNKNOWN: that the mirror be no more.
    pub desired: DesiredState,
    /// Nothing else is wanted than before: what failed is to go on.
    pub recovers: bool,
}

impl Wish {
    /// What a command says of what is wanted.
    #[must_use]
    pub fn of((cluster, by): (u8, NodeId), order: u32, at: Nanos, command: &Command) -> Option<Self> {
        let named = |words: &[&[Arc<str>]]| {
            let all: Vec<&str> = words.iter().flat_map(|list| list.iter().map(|word| &**word)).collect();
            (!all.is_empty()).then(|| Patterns::of(&all))
        };
        let which = |which: &Which| named(&[&which.names, &which.patterns]);
        let (mirror, topics, desired) = match command {
            Command::StartMirrorTopics { mirror, topics, include, .. } => {
                (mirror, named(&[topics, include]), DesiredState::Mirroring)
            }
            Command::Mirror(MirrorOrder::Start { mirror, include, .. }) => {
                (mirror, named(&[include]), DesiredState::Mirroring)
            }
            Command::Mirror(MirrorOrder::Stop(mirror, topics)) => (mirror, which(topics), DesiredState::Stopped),
            Command::Mirror(MirrorOrder::Pause(mirror, topics)) => (mirror, which(topics), DesiredState::Paused),
            Command::Mirror(MirrorOrder::Resume(mirror, topics)) => (mirror, which(topics), DesiredState::Mirroring),
            Command::Mirror(MirrorOrder::Delete(mirror)) => (mirror, None, DesiredState::Unknown),
            Command::Mirror(MirrorOrder::Recover { mirror, which: topics, .. }) => {
                (mirror, which(topics), DesiredState::Unknown)
            }
            _ => return None,
        };
        let recovers = matches!(command, Command::Mirror(MirrorOrder::Recover { .. }));
        Some(Self { cluster, by, order, at, mirror: mirror.clone(), topics, desired, recovers })
    }

    /// Whether it is about that topic of that mirror.
    #[must_use]
    pub fn is_about(&self, cluster: u8, mirror: &str, topic: &str) -> bool {
        self.cluster == cluster
            && &*self.mirror == mirror
            && self.topics.as_ref().is_none_or(|topics| topics.matches(topic))
    }
}

fn operator<'w>(world: &'w World, wish: &Wish) -> Option<&'w Admin> {
    world.node(wish.by).admin()
}

fn outcome<'w>(world: &'w World, wish: &Wish) -> Option<&'w Outcome> {
    operator(world, wish)?.outcome(wish.order)
}

/// An instant of a process's clock, as the world counts.
fn in_world(world: &World, node: NodeId, at: Nanos) -> Nanos {
    let age = world.node(node).clock.now(world.now()).mono.since(at);
    Nanos(world.now().since(age).0)
}

/// Whether an order had ended when another one was sent.
fn is_over_before(world: &World, wish: &Wish, other: &Wish) -> bool {
    let ended = outcome(world, wish).map(|outcome| in_world(world, wish.by, outcome.ended));
    let begun = operator(world, other).and_then(|operator| operator.begun(other.order));
    ended.zip(begun).is_some_and(|(ended, begun)| ended <= in_world(world, other.by, begun))
}

impl Setup {
    /// The cluster of that name.
    #[must_use]
    pub fn cluster(&self, name: &str) -> Option<u8> {
        self.clusters.iter().position(|c| &*c.name == name).map(|at| at as u8)
    }
    /// The clients of all operators.
    pub fn operators(&self) -> impl Iterator<Item = NodeId> + Clone + '_ {
        self.admins.iter().flatten().copied()
    }
    /// What an operator wanted last of a topic of a mirror, as far as that was sent: an order behind one that is repeated again and
    /// again is nothing that a cluster could know of. And whether there is such an order. Where another operator's order was not over
    /// when that was sent, nobody can tell which of them came last.
    #[must_use]
    pub fn wanted(&self, world: &World, cluster: u8, mirror: &str, topic: &str) -> (Option<DesiredState>, bool) {
        let waits = |w: &&Wish| operator(world, w).is_some_and(|operator| operator.waits(w.order));
        let mut said = self.about(cluster, mirror, topic).rev().filter(|w| !w.recovers).peekable();
        let is_behind = said.peek().is_some_and(waits);
        let last =
            said.find(|w| !waits(w)).filter(|last| said.all(|w| w.by == last.by || is_over_before(world, w, last)));
        (last.map(|w| w.desired), is_behind)
    }
    /// When a wish was sent first, as the world counts; `None` while it waits behind others.
    #[must_use]
    pub fn sent(&self, world: &World, wish: &Wish) -> Option<Nanos> {
        Some(in_world(world, wish.by, operator(world, wish)?.begun(wish.order)?))
    }
    /// How often an operator said that what failed of a topic is to go on: an order that is refused for one partition is said again,
    /// and again lets the others go on.
    #[must_use]
    pub fn recoveries(&self, world: &World, cluster: u8, mirror: &str, topic: &str) -> usize {
        let said = |w: &Wish| operator(world, w).map_or(0, |operator| operator.attempts(w.order));
        self.about(cluster, mirror, topic).filter(|w| w.recovers).map(|w| said(w) as usize).sum()
    }
    /// When the last of these orders was sent that was answered as done.
    #[must_use]
    pub fn recovered(&self, world: &World, cluster: u8, mirror: &str, topic: &str) -> Option<Nanos> {
        let done = |w: &&Wish| outcome(world, w).is_some_and(|o| o.verdict == Verdict::Accepted);
        let last = self.about(cluster, mirror, topic).rev().filter(|w| w.recovers).find(done)?;
        self.sent(world, last)
    }
    fn about<'a>(&'a self, cluster: u8, mirror: &'a str, topic: &'a str) -> impl DoubleEndedIterator<Item = &'a Wish> {
        self.wishes.iter().filter(move |w| w.is_about(cluster, mirror, topic))
    }
    /// The node of a broker.
    #[must_use]
    pub fn broker_node(&self, cluster: u8, broker: BrokerId) -> Option<NodeId> {
        let at = usize::try_from(broker.0.checked_sub(1)?).ok()?;
        self.clusters.get(usize::from(cluster))?.brokers.get(at).copied()
    }
    /// The controllers of a cluster that run.
    fn controllers<'w>(&'w self, world: &'w World, cluster: u8) -> impl Iterator<Item = (NodeId, &'w Controller)> {
        let nodes = self.clusters.get(usize::from(cluster)).map_or(&[][..], |c| &c.controllers);
        nodes.iter().filter_map(|node| Some((*node, world.node(*node).controller()?)))
    }
    /// The active controller; of two that think so, the later one.
    #[must_use]
    pub fn active(&self, world: &World, cluster: u8) -> Option<NodeId> {
        let active = self.controllers(world, cluster).filter(|(_, c)| c.is_active());
        active.max_by_key(|(_, c)| c.quorum().epoch()).map(|(node, _)| node)
    }
    /// The metadata that the cluster's controllers have committed, as far as one that is up knows.
    #[must_use]
    pub fn image<'w>(&'w self, world: &'w World, cluster: u8) -> Option<&'w MetadataImage> {
        self.controllers(world, cluster).map(|(_, c)| c.committed_image()).reduce(|a, b| {
            // The first one of equals.
            if b.end() > a.end() {
                b
            } else {
                a
            }
        })
    }
}
