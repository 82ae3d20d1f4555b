//! The checks over a world: finds out by itself who stopped and how, and who joined the cast.

use super::core::{Core, Liveness, Options};
use super::ghost::Stop;
use super::roster::{ClusterPlace, MirrorPlace, Part, Place, Roster};
use super::world_sight::WorldSight;
use crate::setup::Setup;
use mirrorlab_model::ids::NodeId;
use mirrorlab_reports::record::Violation;
use mirrorlab_sim::node::LastStop;
use mirrorlab_sim::world::World;

/// All checks of one run.
#[derive(Clone, Debug)]
pub struct Suite {
    core: Core,
    /// The incarnation of each node at the last look.
    lives: Vec<u32>,
    /// Stops seen so far.
    stops: u64,
    clients: usize,
}

fn clients(setup: &Setup) -> usize {
    setup.producers.len() + setup.consumers.len() + setup.operators().count()
}

impl Suite {
    /// Checks for a world. Clients may join later.
    #[must_use]
    pub fn new(setup: &Setup, options: Options) -> Self {
        Self { core: Core::new(roster(setup), options), lives: Vec::new(), stops: 0, clients: clients(setup) }
    }

    /// Called after every step of the world. Returns what it broke, all of it.
    pub fn on_step(&mut self, world: &World, setup: &Setup) -> &[Violation] {
        let stops = world.counts().stops;
        if stops == self.stops && world.trace().is_empty() {
            return &[];
        }
        let sight = WorldSight { world, setup };
        if clients(setup) != self.clients {
            self.clients = clients(setup);
            let Roster { places, names, producers, consumers, read_committed, .. } = roster(setup);
            let own = &mut self.core.roster;
            (own.places, own.names, own.producers, own.consumers) = (places, names, producers, consumers);
            own.read_committed = read_committed;
        }
        if stops != self.stops {
            // What a process traced with its last breath comes before its end.
            self.core.observe(&sight);
            self.look_for_stops(&sight);
            return self.core.settled(&sight);
        }
        self.core.on_step(&sight)
    }

    /// Who stopped in this step. (One that is about to start again may be told twice: that changes nothing.)
    fn look_for_stops(&mut self, sight: &WorldSight<'_>) {
        self.stops = sight.world.counts().stops;
        let nodes = sight.world.nodes();
        self.lives.resize(nodes.len(), 0);
        for (at, node) in nodes.iter().enumerate() {
            let changed = std::mem::replace(&mut self.lives[at], node.incarnation) != node.incarnation;
            if !changed || node.process.is_some() {
                continue;
            }
            let (stop, broken) = match node.last_stop {
                LastStop::Never => continue,
                LastStop::Clean => (Stop::Clean, None),
                LastStop::Killed => (Stop::Killed, None),
                LastStop::Broken(what) => (Stop::Killed, Some(what)),
                LastStop::PowerLoss => (Stop::Lossy, None),
                LastStop::DiskFailed => (Stop::Failed, None),
                LastStop::Wiped => (Stop::Wiped, None),
                LastStop::Restored => (Stop::Restored, None),
            };
            self.core.on_stop(sight, NodeId(at as u16), stop, broken);
            if node.cut_inside {
                self.core.stopped_inside_a_task(NodeId(at as u16));
            }
        }
    }

    /// A process is about to be stopped from outside: notes what its disk promises to keep (S15). Optional.
    pub fn before_stop(&mut self, world: &World, setup: &Setup, node: NodeId) {
        self.core.before_stop(&WorldSight { world, setup }, node);
    }

    /// Bits of what a node's disk holds flipped.
    pub fn rotted(&mut self, world: &World, setup: &Setup, node: NodeId) {
        self.core.rotted(&WorldSight { world, setup }, node);
    }

    /// A copy of a node's disk was made.
    pub fn copied(&mut self, world: &World, setup: &Setup, node: NodeId) {
        self.core.copied(&WorldSight { world, setup }, node);
    }

    /// Whether something is not so yet, in the converge phase: cheaper than what it is.
    pub fn is_held_back(&mut self, world: &World, setup: &Setup) -> bool {
        self.core.is_held_back(&WorldSight { world, setup })
    }

    /// What is not so yet, in the converge phase.
    pub fn liveness(&mut self, world: &World, setup: &Setup) -> Liveness {
        self.core.liveness(&WorldSight { world, setup })
    }

    /// A quiet point of many: sweeps what changed, and some of the rest.
    pub fn at_quiet_point(&mut self, world: &World, setup: &Setup) -> Vec<Violation> {
        self.core.at_quiet_point(&WorldSight { world, setup })
    }

    /// Sweeps all partitions.
    pub fn at_quiet(&mut self, world: &World, setup: &Setup) -> Vec<Violation> {
        self.core.at_quiet(&WorldSight { world, setup }, false)
    }

    /// The end of a run that converged.
    pub fn at_end(&mut self, world: &World, setup: &Setup) -> Vec<Violation> {
        self.core.at_end(&WorldSight { world, setup })
    }

    /// Excuses used so far, one line each.
    #[must_use]
    pub fn excuses(&self) -> Vec<String> {
        self.core.excuses()
    }

    /// The checks themselves, for reports: the ghost, and what was acknowledged.
    #[must_use]
    pub fn core(&self) -> &Core {
        &self.core
    }
}

fn roster(setup: &Setup) -> Roster {
    let mut roster = Roster::default();
    for (cluster, c) in setup.clusters.iter().enumerate() {
        let cluster = cluster as u8;
        roster.clusters.push(ClusterPlace {
            name: c.name.clone(),
            brokers: c.brokers.clone(),
            controllers: c.controllers.clone(),
        });
        for (slot, node) in c.brokers.iter().enumerate() {
            let name = format!("{}/broker-{}", c.name, slot + 1);
            roster.seat(*node, &name, Place { cluster, part: Part::Broker(slot as u16) });
        }
        for (n, node) in c.controllers.iter().enumerate() {
            let name = format!("{}/controller-{}", c.name, n + 1);
            roster.seat(*node, &name, Place { cluster, part: Part::Controller });
        }
        for admin in setup.admins.get(usize::from(cluster)).into_iter().flatten() {
            roster.seat(*admin, &format!("{}/admin", c.name), Place { cluster, part: Part::Client });
        }
    }
    for client in setup.producers.iter().chain(&setup.consumers) {
        roster.seat(client.node, &client.name, Place { cluster: client.cluster, part: Part::Client });
    }
    roster.mirrors = setup
        .mirrors
        .iter()
        .map(|m| MirrorPlace { name: m.name.clone(), source: m.source, destination: m.destination })
        .collect();
    roster.producers = setup.producers.iter().map(|c| (c.number, c.node)).collect();
    roster.consumers = setup.consumers.iter().map(|c| (c.number, c.node)).collect();
    roster.read_committed = setup.consumers.iter().filter(|c| c.read_committed).map(|c| c.number).collect();
    roster
}
