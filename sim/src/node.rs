//! A node: a process, or the place where one ran and may run again; with its disk, its clock and its guards.
//!
//! The disk outlives the process, the incarnation number tells its lives apart: whatever was on its way to an earlier life
//! is dropped.

use crate::clock::Clock;
use crate::disk::NodeDisk;
use mirrorlab_model::broker::{Broker, BrokerConfig};
use mirrorlab_model::client::admin::{Admin, AdminConfig};
use mirrorlab_model::client::consumer::{Consumer, ConsumerConfig};
use mirrorlab_model::client::producer::{Producer, ProducerConfig};
use mirrorlab_model::controller::{Controller, ControllerConfig};
use mirrorlab_model::guards::Guards;
use mirrorlab_model::ids::{Nanos, Now};
use mirrorlab_model::ports::{Cx, Entropy, Input, Lane};
use std::sync::Arc;

/// What a node runs, and with which configuration it boots.
#[derive(Clone, Debug)]
pub enum Program {
    /// A broker.
    Broker(Arc<BrokerConfig>),
    /// A KRaft controller.
    Controller(Arc<ControllerConfig>),
    /// A producer.
    Producer(Arc<ProducerConfig>),
    /// A consumer.
    Consumer(Arc<ConsumerConfig>),
    /// An operator's client.
    Admin(Arc<AdminConfig>),
}

/// A running process.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // each variant holds the process of its name
pub enum Process {
    Broker(Box<Broker>),
    Controller(Box<Controller>),
    Producer(Box<Producer>),
    Consumer(Box<Consumer>),
    Admin(Box<Admin>),
}

impl Process {
    /// Starts a process from what is on its disk: the only way back from a crash.
    #[must_use]
    pub fn boot(program: &Program, now: Now, cx: &mut Cx<'_>) -> Self {
        match program {
            Program::Broker(config) => Self::Broker(Box::new(Broker::boot(BrokerConfig::clone(config), now, cx))),
            Program::Controller(config) => {
                Self::Controller(Box::new(Controller::boot(ControllerConfig::clone(config), now, cx)))
            }
            Program::Producer(config) => {
                Self::Producer(Box::new(Producer::boot(ProducerConfig::clone(config), now, cx)))
            }
            Program::Consumer(config) => {
                Self::Consumer(Box::new(Consumer::boot(ConsumerConfig::clone(config), now, cx)))
            }
            Program::Admin(config) => Self::Admin(Box::new(Admin::boot(AdminConfig::clone(config), now, cx))),
        }
    }
    /// Files an input.
    pub fn accept(&mut self, now: Now, input: Input, cx: &mut Cx<'_>) {
        match self {
            Self::Broker(p) => p.accept(now, input, cx),
            Self::Controller(p) => p.accept(now, input, cx),
            Self::Producer(p) => p.accept(now, input, cx),
            Self::Consumer(p) => p.accept(now, input, cx),
            Self::Admin(p) => p.accept(now, input, cx),
        }
    }
    /// Runs one task of a lane.
    pub fn run(&mut self, now: Now, lane: Lane, cx: &mut Cx<'_>) {
        match self {
            Self::Broker(p) => p.run(now, lane, cx),
            Self::Controller(p) => p.run(now, lane, cx),
            Self::Producer(p) => p.run(now, lane, cx),
            Self::Consumer(p) => p.run(now, lane, cx),
            Self::Admin(p) => p.run(now, lane, cx),
        }
    }
}

/// Whether a node's process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// Never started, or ended.
    Down,
    /// Runs.
    Up,
    /// Stopped by a signal: its kernel lives, the process sees nothing until it is resumed.
    Paused,
}

/// How a process last ended: what the disk may have lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LastStop {
    /// It never ran.
    Never,
    /// In order.
    Clean,
    /// Killed: the page cache survived.
    Killed,
    /// Power loss: what was not flushed may be gone.
    PowerLoss,
    /// It stopped on a broken assertion of its own.
    Broken(&'static str),
    /// Its disk failed.
    DiskFailed,
    /// The disk was wiped.
    Wiped,
    /// The disk was set back to an earlier copy of it.
    Restored,
}

/// One node.
#[derive(Clone, Debug)]
pub struct Node {
    /// `east/broker-1`, `client/shop`.
    pub name: Arc<str>,
    /// Index of its cluster; `None` for clients.
    pub cluster: Option<u8>,
    /// What it runs.
    pub program: Program,
    /// The process, while there is one.
    pub process: Option<Process>,
    /// Whether it runs.
    pub condition: Condition,
    /// Raised at every boot.
    pub incarnation: u32,
    /// How the last life ended.
    pub last_stop: LastStop,
    /// Whether it ended inside a task: after some of its disk calls and effects, before the others.
    pub cut_inside: bool,
    /// How this life is to end: inside the next task that writes to the disk.
    pub(crate) doom: Option<LastStop>,
    /// How its next life is to end: inside its start.
    pub(crate) doom_at_start: Option<LastStop>,
    /// It was asked to end in order, and has not yet.
    pub(crate) stopping: bool,
    /// It is to be started as soon as it has ended.
    pub(crate) start_after: bool,
    /// Its data disk.
    pub disk: NodeDisk,
    /// Its clock.
    pub clock: Clock,
    /// Its guards and quirks.
    pub guards: Guards,
    /// Its draws.
    pub entropy: Entropy,
    /// Next connection number.
    pub next_conn: u64,
    /// Counts lane wakes, for their delays.
    pub(crate) wakes: u64,
    /// Lanes that are busy with disk work until then.
    pub(crate) busy: Vec<(Lane, Nanos)>,
    /// Lanes made slow by a fault: extra delay per wake until an instant.
    pub(crate) slow: Vec<SlowLane>,
    /// What waits for a paused process.
    pub(crate) held: Vec<crate::world::Event>,
}

/// A fault on one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowLane {
    /// Which.
    pub lane: Lane,
    /// Added to each wake.
    pub extra: Nanos,
    /// Until when.
    pub until: Nanos,
}

impl Node {
    /// Keeps a lane busy until an instant; forgets lanes that are free again.
    pub(crate) fn occupy(&mut self, lane: Lane, until: Nanos, now: Nanos) {
        match self.busy.iter_mut().find(|(l, _)| *l == lane) {
            Some((_, at)) => *at = until.max(*at),
            None => {
                self.busy.retain(|(_, at)| *at > now);
                self.busy.push((lane, until));
            }
        }
    }
    /// Whether its life, or its next one, is to end inside a task.
    #[must_use]
    pub const fn is_doomed(&self) -> bool {
        self.doom.is_some() || self.doom_at_start.is_some()
    }
    /// What a fault adds to a lane's wakes now.
    pub(crate) fn extra_delay(&mut self, lane: Lane, now: Nanos) -> Nanos {
        if self.slow.is_empty() {
            return Nanos::ZERO;
        }
        self.slow.retain(|s| s.until > now);
        self.slow.iter().filter(|s| s.lane == lane).fold(Nanos::ZERO, |sum, s| sum + s.extra)
    }
    /// The broker that runs here.
    #[must_use]
    pub fn broker(&self) -> Option<&Broker> {
        match &self.process {
            Some(Process::Broker(broker)) => Some(broker),
            _ => None,
        }
    }
    /// The controller that runs here.
    #[must_use]
    pub fn controller(&self) -> Option<&Controller> {
        match &self.process {
            Some(Process::Controller(controller)) => Some(controller),
            _ => None,
        }
    }
    /// The producer that runs here.
    #[must_use]
    pub fn producer(&self) -> Option<&Producer> {
        match &self.process {
            Some(Process::Producer(producer)) => Some(producer),
            _ => None,
        }
    }
    /// The consumer that runs here.
    #[must_use]
    pub fn consumer(&self) -> Option<&Consumer> {
        match &self.process {
            Some(Process::Consumer(consumer)) => Some(consumer),
            _ => None,
        }
    }
    /// The operator's client that runs here.
    #[must_use]
    pub fn admin(&self) -> Option<&Admin> {
        match &self.process {
            Some(Process::Admin(admin)) => Some(admin),
            _ => None,
        }
    }
}
