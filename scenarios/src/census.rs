//! The census: how often each fault, order, election, change of a mirror's state and refusal of a guard happened in a run, and
//! what met a mirrored partition in which state, and in which step of a stop or an alignment. Over a sweep it tells what a
//! profile never reaches.
//!
//! While a run goes on everything is an index into an array of fixed size; words come with the record. What can be counted is
//! known from the model's enums ([`known`]), so that what never happened can be named.
//!
//! Keys: `runs`; `fault.NAME`; `order.NAME`, and `.accepted`, `.refused`, `.refused.ERROR`, `.unanswered` behind it;
//! `election.KIND`; `transition.FROM.TO`; `guard.NAME`; `point.NAME` (of perturbation); `event.STATE.EVENT`; `role.STATE.STEP.CHANGE` (STEP is `-` in states that
//! have none).

use crate::conditions::Eye;
use crate::format::action::{Action, NodeRef};
use crate::lab::Lab;
use crate::setup::Setup;
use mirrorlab_model::guards::points::{Point, Points};
use mirrorlab_model::guards::{self, Guards, Kind};
use mirrorlab_model::ids::{BrokerId, LeaderEpoch, PartitionIx};
use mirrorlab_model::mirror::steps::Step;
use mirrorlab_model::states::{DesiredState, MirrorState};
use mirrorlab_model::trace::{CutCause, ElectionKind, Origin, Trace, TraceEvent};
use mirrorlab_reports::record::OrderTold;
use mirrorlab_sim::world::World;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// Declares an enum whose members have names.
macro_rules! named {
    ($(#[$doc:meta])* $enum:ident; $( $name:ident $text:literal; )*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs)] // each is explained by its name in keys
        pub enum $enum { $( $name ),* }
        impl $enum {
            /// All of them.
            pub const ALL: &'static [Self] = &[ $( Self::$name ),* ];
            /// The name in keys.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$name => $text ),* }
            }
        }
    };
}

named! {
    /// What can meet a mirrored partition.
    Event;
    OrderStart "order-start";
    OrderPause "order-pause";
    OrderStop "order-stop";
    OrderEnd "order-end";
    Elected "elected";
    ElectedUnclean "elected-unclean";
    Bumped "bumped";
    Leaderless "leaderless";
    IsrChanged "isr-changed";
    LeaderKilled "leader-killed";
    LeaderLostPower "leader-lost-power";
    LeaderWiped "leader-wiped";
    LeaderShutDown "leader-shut-down";
    LeaderPaused "leader-paused";
    LeaderCutOff "leader-cut-off";
    LeaderDiskFails "leader-disk-fails";
    LeaderMetadataLate "leader-metadata-late";
    LeaderSlow "leader-slow";
    LeaderClock "leader-clock";
    SourceElected "source-elected";
    SourceUnclean "source-elected-unclean";
    SourceBumped "source-bumped";
    SourceLeaderless "source-leaderless";
    SourceCut "source-cut";
    SourceLogStart "source-log-start";
    FetcherAdded "fetcher-added";
    FetcherRemoved "fetcher-removed";
    Mirrored "mirrored";
    Diverged "diverged";
    CutAligned "cut-aligned";
    CutDiverged "cut-diverged";
    CutReplica "cut-replica";
    Gap "gap";
    BumpAsked "bump-asked";
    StateCommitted "state-committed";
    PositionCommitted "position-committed";
    StateRemoved "state-removed";
    Local "local-append";
    ClientAppend "client-append";
    Refused "write-refused";
    Recovered "log-recovered";
    Grew "topic-grew";
}

named! {
    /// What can become of the leader of a mirrored partition.
    Change;
    Elected "elected";
    Unclean "elected-unclean";
    Bumped "bumped";
    Leaderless "leaderless";
    Killed "killed";
    LostPower "lost-power";
    ShutDown "shut-down";
    Paused "paused";
    CutOff "cut-off";
}

/// What else clients and operators do, answered in words or not at all. All other actions are faults.
const DOINGS: &[&str] = &["cli", "start-client", "stop-client", "produce"];

/// Whether an action of that name is somebody's doing, and no fault.
#[must_use]
pub fn is_order(name: &str) -> bool {
    Action::ORDERS.contains(&name) || DOINGS.contains(&name)
}

const KINDS: [(ElectionKind, &str); 4] = [
    (ElectionKind::Clean, "clean"),
    (ElectionKind::Eligible, "eligible"),
    (ElectionKind::Preferred, "preferred"),
    (ElectionKind::Unclean, "unclean"),
];

const STATES: usize = MirrorState::ALL.len();
/// Steps, and the place for states that have none.
const STEPS: usize = Step::ALL.len() + 1;
const NO_STATE: u8 = u8::MAX;

/// What is known of one partition.
#[derive(Clone, Copy, Debug)]
struct Known {
    leader: BrokerId,
    epoch: LeaderEpoch,
    /// Its mirror state, by place in [`MirrorState::ALL`].
    state: u8,
    /// An unclean election was traced, and the change that comes of it not yet.
    unclean: bool,
    /// The partition of another cluster that is copied from here.
    source: Option<(u8, PartitionIx)>,
}

impl Default for Known {
    fn default() -> Self {
        Self { leader: BrokerId::NONE, epoch: LeaderEpoch::NONE, state: NO_STATE, unclean: false, source: None }
    }
}

/// The partitions that are copied from one: nearly always one.
type Copies = SmallVec<[(u8, PartitionIx); 1]>;

/// Counts of one run.
#[derive(Clone, Debug)]
pub struct Census {
    struck: [u64; Action::NAMES.len()],
    elections: [u64; KINDS.len()],
    quorum: [u64; 2],
    transitions: [[u64; STATES]; STATES],
    events: Box<[[u64; Event::ALL.len()]; STATES]>,
    roles: Box<[[[u64; Change::ALL.len()]; STEPS]; STATES]>,
    known: Vec<Vec<Known>>,
    /// Copies by the partition that they are copied from: asked at elections, not with batches.
    copies: BTreeMap<(u8, PartitionIx), Copies>,
}

impl Default for Census {
    fn default() -> Self {
        Self {
            struck: [0; Action::NAMES.len()],
            elections: [0; KINDS.len()],
            quorum: [0; 2],
            transitions: [[0; STATES]; STATES],
            events: Box::new([[0; Event::ALL.len()]; STATES]),
            roles: Box::new([[[0; Change::ALL.len()]; STEPS]; STATES]),
            known: Vec::new(),
            copies: BTreeMap::new(),
        }
    }
}

// ------------------------------------------------------------------------------------------------------------------ counting

impl Census {
    /// Counts a trace event.
    pub fn on_trace(&mut self, world: &World, setup: &Setup, event: &TraceEvent) {
        let Some(cluster) = world.node(event.node).cluster else { return };
        let met = match event.trace {
            Trace::MirrorStateChanged { partition, from, to, .. } => {
                self.transitions[place(from)][place(to)] += 1;
                self.at(cluster, partition).state = place(to) as u8;
                return;
            }
            Trace::MirrorStateRemoved { partition } => {
                self.meets(cluster, partition, Event::StateRemoved);
                self.at(cluster, partition).state = NO_STATE;
                return;
            }
            Trace::PartitionChanged { partition, leader, epoch, .. } => {
                return self.on_change(world, setup, cluster, partition, leader, epoch);
            }
            Trace::Elected { partition, kind, .. } => {
                self.elections[kind as usize] += 1;
                self.at(cluster, partition).unclean = kind == ElectionKind::Unclean;
                return;
            }
            Trace::QuorumLed { .. } => {
                self.quorum[0] += 1;
                return;
            }
            Trace::QuorumLost { .. } => {
                self.quorum[1] += 1;
                return;
            }
            Trace::MirrorOrdered { topic, desired, .. } => {
                let met = match desired {
                    DesiredState::Mirroring => Event::OrderStart,
                    DesiredState::Paused => Event::OrderPause,
                    DesiredState::Stopped => Event::OrderStop,
                    _ => Event::OrderEnd,
                };
                return self.topic_meets(world, setup, (cluster, topic), met);
            }
            Trace::MirrorGrew { topic, .. } => {
                return self.topic_meets(world, setup, (cluster, topic), Event::Grew);
            }
            Trace::Mirrored { partition, source, source_partition, .. } => {
                let from = world.node(source).cluster.map(|c| (c, source_partition));
                self.copied(cluster, partition, from);
                (partition, Event::Mirrored)
            }
            Trace::Truncated { partition, cause, .. } => {
                self.source_meets(cluster, partition, Event::SourceCut);
                let met = match cause {
                    CutCause::Alignment => Event::CutAligned,
                    CutCause::MirrorDivergence => Event::CutDiverged,
                    _ => Event::CutReplica,
                };
                (partition, met)
            }
            Trace::LogStartMoved { partition, .. } => {
                return self.source_meets(cluster, partition, Event::SourceLogStart);
            }
            Trace::Appended { partition, origin: Origin::Client, .. } => (partition, Event::ClientAppend),
            Trace::Appended { partition, origin: Origin::Coordinator, .. } => (partition, Event::Local),
            Trace::MirrorFetcherAdded { partition, .. } => (partition, Event::FetcherAdded),
            Trace::MirrorFetcherRemoved { partition, .. } => (partition, Event::FetcherRemoved),
            Trace::Diverged { partition, .. } => (partition, Event::Diverged),
            Trace::MirrorGap { partition, .. } => (partition, Event::Gap),
            Trace::BumpRequested { partition, .. } => (partition, Event::BumpAsked),
            Trace::MirrorStateCommitted { partition, .. } => (partition, Event::StateCommitted),
            Trace::MirrorPositionCommitted { partition, .. } => (partition, Event::PositionCommitted),
            Trace::ReadOnlyRefused { partition, .. } => (partition, Event::Refused),
            Trace::LogRecovered { partition, clean: false, .. } => (partition, Event::Recovered),
            _ => return,
        };
        self.meets(cluster, met.0, met.1);
    }

    /// Counts a step of the timeline that is about to strike.
    pub fn on_strike(&mut self, lab: &Lab, action: &Action, done: &BTreeSet<String>) {
        if let Some(n) = Action::NAMES.iter().position(|name| *name == action.name()) {
            self.struck[n] += 1;
        }
        let Some((node, event, change)) = aims(action) else { return };
        let eye = Eye { world: &lab.world, setup: &lab.setup, done };
        for node in eye.nodes(node) {
            let Some(broker) = lab.world.node(node).broker() else { continue };
            for part in broker.mirror.iter() {
                self.events[place(part.state)][event as usize] += 1;
                if let Some(change) = change {
                    self.roles[place(part.state)][step_place(part.step())][change as usize] += 1;
                }
            }
        }
    }

    /// The controller changed a partition: another leader, none, the same in a new epoch, or other replicas in sync. The old
    /// leader does not know yet: the step that it stands at is the one that the change meets.
    fn on_change(
        &mut self,
        world: &World,
        setup: &Setup,
        cluster: u8,
        partition: PartitionIx,
        leader: BrokerId,
        epoch: LeaderEpoch,
    ) {
        let known = self.at(cluster, partition);
        let (before, old_epoch) = (known.leader, known.epoch);
        (known.leader, known.epoch) = (leader, epoch);
        let unclean = std::mem::take(&mut known.unclean);
        if before == BrokerId::NONE && old_epoch == LeaderEpoch::NONE {
            return;
        }
        let (event, change, source) = if leader == BrokerId::NONE && before != leader {
            (Event::Leaderless, Some(Change::Leaderless), Some(Event::SourceLeaderless))
        } else if unclean {
            (Event::ElectedUnclean, Some(Change::Unclean), Some(Event::SourceUnclean))
        } else if before != leader {
            (Event::Elected, Some(Change::Elected), Some(Event::SourceElected))
        } else if epoch != old_epoch {
            (Event::Bumped, Some(Change::Bumped), Some(Event::SourceBumped))
        } else {
            (Event::IsrChanged, None, None)
        };
        self.meets(cluster, partition, event);
        if let Some(source) = source {
            self.source_meets(cluster, partition, source);
        }
        let state = self.at(cluster, partition).state;
        if let (Some(change), true) = (change, state != NO_STATE) {
            let old = setup.broker_node(cluster, before).and_then(|node| world.node(node).broker());
            let part = old.and_then(|broker| broker.mirror.part(partition));
            let state = part.map_or(usize::from(state), |part| place(part.state));
            self.roles[state][step_place(part.and_then(|part| part.step()))][change as usize] += 1;
        }
    }

    fn at(&mut self, cluster: u8, partition: PartitionIx) -> &mut Known {
        let cluster = usize::from(cluster);
        if self.known.len() <= cluster {
            self.known.resize_with(cluster + 1, Vec::new);
        }
        let of = &mut self.known[cluster];
        let at = partition.0 as usize;
        if of.len() <= at {
            of.resize(at + 1, Known::default());
        }
        &mut of[at]
    }

    #[inline]
    fn meets(&mut self, cluster: u8, partition: PartitionIx, event: Event) {
        let known = self.known.get(usize::from(cluster)).and_then(|of| of.get(partition.0 as usize));
        if let Some(known) = known.filter(|known| known.state != NO_STATE) {
            self.events[usize::from(known.state)][event as usize] += 1;
        }
    }

    fn topic_meets(
        &mut self,
        world: &World,
        setup: &Setup,
        (cluster, topic): (u8, mirrorlab_model::ids::TopicIx),
        event: Event,
    ) {
        let Some(topic) = setup.image(world, cluster).and_then(|image| image.topic(topic)) else { return };
        for partition in &topic.partitions {
            self.meets(cluster, *partition, event);
        }
    }

    fn source_meets(&mut self, cluster: u8, partition: PartitionIx, event: Event) {
        let Some(copies) = self.copies.get(&(cluster, partition)) else { return };
        for (cluster, partition) in copies.clone() {
            self.meets(cluster, partition, event);
        }
    }

    fn copied(&mut self, cluster: u8, partition: PartitionIx, from: Option<(u8, PartitionIx)>) {
        let known = self.at(cluster, partition);
        if known.source == from {
            return;
        }
        let before = std::mem::replace(&mut known.source, from);
        if let Some(copies) = before.and_then(|before| self.copies.get_mut(&before)) {
            copies.retain(|copy| *copy != (cluster, partition));
        }
        if let Some(from) = from {
            self.copies.entry(from).or_default().push((cluster, partition));
        }
    }
}

/// Where a strike aims at that counts as something that happens to a leader.
fn aims(action: &Action) -> Option<(&NodeRef, Event, Option<Change>)> {
    Some(match action {
        Action::Kill { node, .. } | Action::CrashAtStart { node, .. } => {
            (node, Event::LeaderKilled, Some(Change::Killed))
        }
        Action::PowerLoss { node, .. } => (node, Event::LeaderLostPower, Some(Change::LostPower)),
        Action::Wipe { node, .. } => (node, Event::LeaderWiped, None),
        Action::Shutdown { node, .. } | Action::Restart { node } => {
            (node, Event::LeaderShutDown, Some(Change::ShutDown))
        }
        Action::Pause { node, .. } => (node, Event::LeaderPaused, Some(Change::Paused)),
        Action::Partition { node: Some(node), .. } => (node, Event::LeaderCutOff, Some(Change::CutOff)),
        Action::DiskFull { node, .. }
        | Action::DiskError { node, .. }
        | Action::DiskStall { node, .. }
        | Action::DiskSlow { node, .. }
        | Action::BitRot { node, .. } => (node, Event::LeaderDiskFails, None),
        Action::DelayMetadata { node, .. } => (node, Event::LeaderMetadataLate, None),
        Action::SlowLane { node, .. } => (node, Event::LeaderSlow, None),
        Action::ClockJump { node, .. } | Action::ClockDrift { node, .. } => (node, Event::LeaderClock, None),
        _ => return None,
    })
}

/// The place of a state in [`MirrorState::ALL`].
#[inline]
fn place(state: MirrorState) -> usize {
    state as usize
}

fn step_place(step: Option<Step>) -> usize {
    step.map_or(0, |step| step as usize + 1)
}

// ---------------------------------------------------------------------------------------------------------------------- words

impl Census {
    /// The counts by key; what did not happen is left out.
    #[must_use]
    pub fn told(&self, orders: &[OrderTold], guards: &Guards, points: &[Points]) -> BTreeMap<String, u64> {
        let mut out = BTreeMap::new();
        let mut add = |key: String, n: u64| {
            if n > 0 {
                *out.entry(key).or_default() += n;
            }
        };
        add("runs".to_owned(), 1);
        Action::NAMES.iter().zip(self.struck).for_each(|(name, n)| add(struck(name), n));
        for order in orders {
            let key = struck(&order.order);
            match &*order.answer {
                "NONE" => add(format!("{key}.accepted"), 1),
                "no answer" => add(format!("{key}.unanswered"), 1),
                answer if answer.starts_with("not sent") => add(format!("{key}.unanswered"), 1),
                error => {
                    add(format!("{key}.refused"), 1);
                    add(format!("{key}.refused.{error}"), 1);
                }
            }
        }
        KINDS.iter().zip(self.elections).for_each(|((_, name), n)| add(format!("election.{name}"), n));
        add("election.quorum-led".to_owned(), self.quorum[0]);
        add("election.quorum-lost".to_owned(), self.quorum[1]);
        for row in guards::rows().filter(|row| row.kind == Kind::Guard) {
            add(format!("guard.{}", row.name), u64::from(guards.refusals(row.id)));
        }
        for (point, _, fired) in points.iter().flat_map(Points::counts) {
            add(format!("point.{}", point.name()), u64::from(fired));
        }
        for from in MirrorState::ALL {
            for to in MirrorState::ALL {
                add(transition(from, to), self.transitions[place(from)][place(to)]);
            }
            for event in Event::ALL {
                add(met(from, *event), self.events[place(from)][*event as usize]);
            }
            for step in steps_and_none() {
                for change in Change::ALL {
                    add(role(from, step, *change), self.roles[place(from)][step_place(step)][*change as usize]);
                }
            }
        }
        out
    }
}

/// Every key that a sweep could count, in the order of the printed form: what is missing in a census was not reached.
#[must_use]
pub fn known() -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for name in Action::NAMES {
        keys.push(struck(name));
        // Elections are counted by what came of them.
        if Action::ORDERS.contains(name) && *name != "elect" {
            keys.extend(["accepted", "refused"].map(|answer| format!("{}.{answer}", struck(name))));
        }
    }
    keys.extend(KINDS.iter().map(|(_, name)| format!("election.{name}")));
    keys.extend(["quorum-led", "quorum-lost"].map(|name| format!("election.{name}")));
    for to in MirrorState::ALL {
        let legal = |from: &MirrorState| to.can_follow(*from) && *from != to && *from != MirrorState::Unknown;
        keys.extend(MirrorState::ALL.into_iter().filter(legal).map(|from| transition(from, to)));
    }
    keys.push(transition(MirrorState::Unknown, MirrorState::LogAlignment));
    keys.extend(guards::rows().filter(|row| row.kind == Kind::Guard).map(|row| format!("guard.{}", row.name)));
    keys.extend(Point::ALL.iter().map(|(point, ..)| format!("point.{}", point.name())));
    for state in MirrorState::ALL.into_iter().filter(|state| *state != MirrorState::Unknown) {
        keys.extend(Event::ALL.iter().map(|event| met(state, *event)));
    }
    for state in MirrorState::ALL.into_iter().filter(|state| *state != MirrorState::Unknown) {
        let own: Vec<Option<Step>> = steps_and_none().filter(|s| s.is_some_and(|s| s.state() == state)).collect();
        for step in if own.is_empty() { vec![None] } else { own } {
            keys.extend(Change::ALL.iter().map(|change| role(state, step, *change)));
        }
    }
    keys
}

fn steps_and_none() -> impl Iterator<Item = Option<Step>> {
    std::iter::once(None).chain(Step::ALL.into_iter().map(Some))
}

fn struck(name: &str) -> String {
    format!("{}.{name}", if is_order(name) { "order" } else { "fault" })
}

fn transition(from: MirrorState, to: MirrorState) -> String {
    format!("transition.{}.{}", from.name(), to.name())
}

fn met(state: MirrorState, event: Event) -> String {
    format!("event.{}.{}", state.name(), event.name())
}

fn role(state: MirrorState, step: Option<Step>, change: Change) -> String {
    format!("role.{}.{}.{}", state.name(), step.map_or("-", Step::name), change.name())
}

#[cfg(test)]
#[path = "census_tests.rs"]
mod tests;
