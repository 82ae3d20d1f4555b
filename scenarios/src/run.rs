//! Runs a plan: boot, safety, heal, converge, final check; and leaves a record.
//!
//! The runner is what the pump drives. Each step of the world is followed by the checks, the meters and the scripts; the
//! first violation ends the run.

mod drive;
mod outcome;
mod steps;

use crate::census::Census;
use crate::checks::{Options as CheckOptions, Suite};
use crate::conditions::Eye;
use crate::failovers::Failovers;
use crate::faults::{Done, Striker, Undo};
use crate::format::action::{Action, Step, Trigger};
use crate::given::Given;
use crate::hands::Hands;
use crate::lab::{Lab, Manner};
use crate::losses;
use crate::marks::Marks;
use crate::meter::Meter;
use crate::plan::Plan;
use crate::recorder::Recorder;
use crate::story::Story;
use mirrorlab_model::ids::{Nanos, PartitionIx};
use mirrorlab_reports::record::{Band, Violation};
use mirrorlab_sim::node::Condition;
use mirrorlab_sim::pump::Drive;
use mirrorlab_sim::world::Happened;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// What to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// The scenario's path as given, for the record and the repro.
    pub path: String,
    /// Every choice made.
    pub plan: Plan,
}

/// Why a run ended.
#[derive(Clone, Debug, Default)]
pub struct End {
    /// What broke: safety invariants of one event, or liveness properties when their time was over.
    violations: Vec<Violation>,
    /// Excuses that liveness properties named.
    excuses: Vec<String>,
}

impl End {
    /// Whether something broke.
    #[must_use]
    pub fn is_violation(&self) -> bool {
        !self.violations.is_empty()
    }
}

/// What a run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Brokers to register and to be let in.
    BrokersIn,
    /// The topics of the plan.
    TopicsExist,
    /// The end of the safety phase.
    SafetyEnd,
    /// Every liveness property.
    Convergence,
}

/// Scripts from here on end faults.
const UNDO: u32 = 1 << 20;
/// Scripts from here on are strikes of steps whose condition held.
const LATE: u32 = 1 << 21;
/// The script that takes samples.
const SAMPLE: u32 = 1 << 22;
/// The script that looks whether the phase is over.
const PHASE: u32 = SAMPLE + 1;
/// The script that does what was asked for by hand.
const BY_HAND: u32 = SAMPLE + 2;
/// Scripts from here on create mirrors.
const MIRRORS: u32 = SAMPLE + 16;
/// Violations of one event that a record keeps.
const VIOLATIONS_MAX: usize = 20;
/// How often a phase is looked at that waits for the world.
const LOOK: Nanos = Nanos::from_millis(250);
/// The end of the safety phase sweeps all partitions, if there are not more than these.
const SWEEP_AT_HEAL_MAX: u64 = 20_000;
/// Acknowledgements are kept for a stop that may come: with more partitions than this, only if a step orders one.
const KEEPS_ACKS_MAX: u64 = 20_000;
/// What a mirror's retry may take until the mirror has everything again.
const RETRY_TIME: Nanos = Nanos::from_secs(30);
/// How often convergence is looked at in a small world: the grain of the catch-up time.
const LOOK_CLOSELY: Nanos = Nanos::from_millis(20);

/// Where a step of the timeline stands.
#[derive(Clone, Debug, PartialEq)]
enum Stand {
    /// Waits for its time or condition.
    Waiting,
    /// Its condition held; it waits for so many batches or records on these partitions.
    Counting { left: u64, records: bool, on: Vec<(u8, PartitionIx)> },
    /// Its condition held and what it counted came: its strike is due.
    Due,
    /// It struck; how it ends, and the orders it waits for.
    Struck { undo: Vec<Undo>, orders: Vec<u32>, band: usize },
    /// Over.
    Over,
}

/// A run under way.
pub struct Run {
    job: Job,
    lab: Lab,
    suite: Suite,
    striker: Striker,
    marks: Marks,
    meter: Meter,
    failovers: Failovers,
    census: Census,
    story: Story,
    pub(crate) bands: Vec<Band>,
    base: Nanos,
    safety_end: Nanos,
    /// Until when the last retries of mirrors are awaited beyond the converge phase.
    retries_end: Option<Nanos>,
    stands: Vec<Stand>,
    over: BTreeSet<String>,
    waiting: usize,
    counting: usize,
    /// Appends at the last quiet point.
    swept: u64,
    /// Steps that wait for the answers to their orders.
    ordered: usize,
    phase: Phase,
    /// Partitions of the plan's topics.
    partitions: u64,
    mirrors_at: Vec<(Nanos, String)>,
    pub(crate) hands: Hands,
    given: Given,
    recorder: Option<Recorder>,
    /// Events after which it is given up, and whether it was.
    events_max: u64,
    over_budget: bool,
}

impl Drive for Run {
    type Break = End;
    fn now(&self) -> Nanos {
        self.lab.world.now()
    }
    fn next_time(&self) -> Option<Nanos> {
        self.lab.world.next_time()
    }
    fn step(&mut self) -> ControlFlow<End> {
        if self.lab.world.counts().events >= self.events_max {
            self.over_budget = true;
            return ControlFlow::Break(End::default());
        }
        let happened = self.lab.world.step();
        self.look(happened)
    }
}

impl Run {
    /// A run that has not begun.
    ///
    /// # Errors
    /// A config entry that the model does not take.
    pub fn new(job: Job) -> Result<Self, crate::lab::BadConfig> {
        let mut lab = Lab::build(&job.plan.stage, job.plan.seed, job.plan.guards())?;
        let suite = Suite::new(&lab.setup, CheckOptions::default());
        let phases = job.plan.stage.phases;
        let topics = job.plan.stage.topics.values();
        let partitions = topics.map(|t| u64::from(t.topics()) * u64::from(t.partitions)).sum();
        lab.world.schedule_script(LOOK, PHASE);
        Ok(Self {
            meter: Meter::new(phases.safety.nanos() + phases.converge.nanos(), partitions),
            failovers: Failovers::new(partitions <= KEEPS_ACKS_MAX || job.plan.stage.timeline.iter().any(may_stop)),
            stands: vec![Stand::Waiting; job.plan.stage.timeline.len()],
            waiting: 0,
            counting: 0,
            swept: 0,
            ordered: 0,
            job,
            lab,
            suite,
            striker: Striker::default(),
            marks: Marks::default(),
            census: Census::default(),
            story: Story::default(),
            bands: Vec::new(),
            base: Nanos::ZERO,
            safety_end: Nanos::ZERO,
            retries_end: None,
            over: BTreeSet::new(),
            phase: Phase::BrokersIn,
            partitions,
            mirrors_at: Vec::new(),
            hands: Hands::default(),
            given: Given::default(),
            recorder: None,
            events_max: u64::MAX,
            over_budget: false,
        })
    }

    /// The world and its names, for tests and for looking at it afterwards.
    #[must_use]
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// The running hash over everything that happened so far.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.lab.world.trace_hash()
    }

    // ---------------------------------------------------------------------------------------------------- for tests in Rust

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.job.plan
    }

    /// What the run waits for.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The world, to be looked at with the condition language.
    #[must_use]
    pub fn eye(&self) -> Eye<'_> {
        Eye { world: &self.lab.world, setup: &self.lab.setup, done: &self.over }
    }

    /// When the safety phase began.
    pub(crate) fn base(&self) -> Nanos {
        self.base
    }
    pub(crate) fn safety_end(&self) -> Nanos {
        self.safety_end
    }
    pub(crate) fn lab_mut(&mut self) -> &mut Lab {
        &mut self.lab
    }
    pub(crate) fn tell(&mut self, text: String) {
        self.story.tell(&self.lab.world, text, true);
    }
    pub(crate) fn strike_by_hand(&mut self, action: &Action) -> Done {
        self.striker.strike(&mut self.lab, &self.job.plan.stage, action, &self.over)
    }
    /// Asks to be given a turn at an instant.
    pub(crate) fn look_at_hands(&mut self, at: Nanos) {
        self.lab.world.schedule_script(at, BY_HAND);
    }

    // ------------------------------------------------------------------------------------------------------------ phases

    /// Goes on to the next phase if what this one waits for is there, or its time is over.
    fn look_at_phase(&mut self) -> ControlFlow<End> {
        let phases = self.job.plan.stage.phases;
        let boot_over = self.now() >= phases.boot.nanos();
        match self.phase {
            Phase::BrokersIn if self.lab.brokers_in() || boot_over => {
                self.phase = Phase::TopicsExist;
                self.lab.create_topics(&self.job.plan.stage);
            }
            Phase::TopicsExist if self.lab.orders_done() || boot_over => self.begin_safety(),
            Phase::SafetyEnd if self.now() >= self.safety_end && !self.is_held() => {
                if self.partitions <= SWEEP_AT_HEAL_MAX {
                    unbroken(self.suite.at_quiet(&self.lab.world, &self.lab.setup))?;
                }
                self.heal();
            }
            Phase::Convergence => self.look_at_convergence()?,
            _ => {}
        }
        let next = match self.phase {
            Phase::SafetyEnd if self.now() < self.safety_end => self.safety_end,
            // Looking at everything costs what there is: small worlds are looked at more often.
            Phase::Convergence if self.partitions < 1_000 => self.now() + LOOK_CLOSELY,
            _ => self.now() + LOOK,
        };
        self.lab.world.schedule_script(next, PHASE);
        ControlFlow::Continue(())
    }

    fn look_at_convergence(&mut self) -> ControlFlow<End> {
        if self.meter.catch_up.is_none() {
            let caught_up = Meter::is_caught_up(&self.lab.world, &self.lab.setup);
            self.meter.catch_up = caught_up.then(|| self.now().since(self.safety_end));
        }
        // Orders of an operator who insists, one after the other, may go on long after the faults: what each brings about has as much time.
        let from = self.safety_end.max(self.lab.last_order_ended().unwrap_or_default());
        let end = from + self.job.plan.stage.phases.converge.nanos();
        // What an operator still insists on is part of what has to come about.
        let insisted = self.now() < end && !self.lab.orders_done();
        let patient = self.now() < end.max(self.retries_end.unwrap_or_default());
        if insisted || patient && self.suite.is_held_back(&self.lab.world, &self.lab.setup) {
            return ControlFlow::Continue(());
        }
        let left = self.suite.liveness(&self.lab.world, &self.lab.setup);
        if !left.violations.is_empty() {
            // Retries become rare with the faults before: one more of each is awaited, however late (L11).
            if let (Some(due), None) = (left.retry_at, self.retries_end) {
                self.retries_end = Some(due + RETRY_TIME);
                return ControlFlow::Continue(());
            }
            return ControlFlow::Break(End { violations: left.violations, excuses: left.excuses });
        }
        let mut violations = self.suite.at_end(&self.lab.world, &self.lab.setup);
        if violations.is_empty() && losses::is_within_tolerance(&self.job.plan.stage) {
            violations.extend(losses::of(&self.suite.core().ghost).violation(self.now()));
        }
        ControlFlow::Break(End { violations, excuses: left.excuses })
    }

    fn begin_safety(&mut self) {
        self.base = self.now();
        self.meter.base = self.base;
        self.phase = Phase::SafetyEnd;
        self.safety_end = self.base + self.job.plan.stage.phases.safety.nanos();
        let stage = &self.job.plan.stage;
        self.lab.add_clients(stage, self.base, self.safety_end);
        for (name, mirror) in stage.mirrors.iter().filter(|(_, m)| !m.later) {
            self.mirrors_at.push((self.base + mirror.start.unwrap_or_default().nanos(), name.clone()));
        }
        for (n, step) in stage.timeline.iter().enumerate() {
            match &step.trigger {
                Trigger::At { at, .. } => self.lab.world.schedule_script(self.base + at.nanos(), n as u32),
                Trigger::When { .. } => self.waiting += 1,
            }
        }
        for (n, (at, _)) in self.mirrors_at.iter().enumerate() {
            self.lab.world.schedule_script(*at, MIRRORS + n as u32);
        }
        self.lab.world.schedule_script(self.base + self.meter.interval, SAMPLE);
        self.story.tell(&self.lab.world, "clusters stand, topics exist: safety phase begins".to_owned(), false);
    }

    /// Every fault ends, but for permanent ones; whatever is down starts.
    fn heal(&mut self) {
        self.phase = Phase::Convergence;
        self.lab.world.disarm_points();
        self.end_by_hand();
        let mut kept = BTreeSet::new();
        for n in 0..self.stands.len() {
            if self.job.plan.stage.timeline[n].permanent {
                if let Stand::Struck { undo, .. } = &self.stands[n] {
                    kept.extend(undo.iter().filter_map(|u| if let Undo::Start(node) = u { Some(*node) } else { None }));
                }
            } else {
                self.end_step(n as u32);
            }
        }
        for node in self.lab.setup.clusters.clone().iter().flat_map(|c| c.controllers.iter().chain(&c.brokers)) {
            if self.lab.world.node(*node).condition == Condition::Down && !kept.contains(node) {
                self.lab.world.start(*node);
            }
        }
        self.story.tell(&self.lab.world, "all faults end: converge phase begins".to_owned(), true);
    }

    // ------------------------------------------------------------------------------------------------------------- steps

    fn look(&mut self, happened: Happened) -> ControlFlow<End> {
        match happened {
            Happened::Script(PHASE) => self.look_at_phase()?,
            Happened::Script(number) => self.on_script(number),
            Happened::Exited(node, reason) => {
                let name = self.lab.world.node(node).name.clone();
                self.story.tell(&self.lab.world, format!("{name} ended: {reason}"), false);
            }
            Happened::Event | Happened::Nothing => {}
        }
        let world = &self.lab.world;
        if let Some(recorder) = &mut self.recorder {
            recorder.record(world);
        }
        for event in world.trace() {
            self.marks.on_trace(event);
            self.meter.on_trace(world.now(), event);
            self.story.on_trace(world, &self.lab.setup, event);
            self.census.on_trace(world, &self.lab.setup, event);
        }
        self.failovers.on_step(world, &self.lab.setup, &self.suite.core().ghost);
        let violations = self.suite.on_step(&self.lab.world, &self.lab.setup);
        if !violations.is_empty() {
            return ControlFlow::Break(End { violations: violations.to_vec(), excuses: Vec::new() });
        }
        if happened == Happened::Script(SAMPLE) && self.lab.world.net().is_quiet() {
            let appends = self.lab.world.counts().appends;
            if appends != std::mem::replace(&mut self.swept, appends) {
                unbroken(self.suite.at_quiet_point(&self.lab.world, &self.lab.setup))?;
            }
        }
        let traced = !self.lab.world.trace().is_empty() || happened == Happened::Script(SAMPLE);
        if traced && self.phase == Phase::SafetyEnd && self.waiting + self.counting + self.ordered > 0 {
            self.watch_conditions();
        }
        ControlFlow::Continue(())
    }

    fn on_script(&mut self, number: u32) {
        match number {
            SAMPLE => {
                self.meter.sample(&self.lab.world, &self.lab.setup);
                let next = self.now() + self.meter.interval;
                self.lab.world.schedule_script(next, SAMPLE);
            }
            BY_HAND => self.do_by_hand(),
            n if n >= MIRRORS => {
                let name = self.mirrors_at[(n - MIRRORS) as usize].1.clone();
                self.lab.create_mirror(&self.job.plan.stage, &name, Manner::default());
                self.story.tell(&self.lab.world, format!("operator creates mirror {name} and starts its topics"), true);
            }
            // One that is due when the calm phase has begun comes too late: nobody would end it.
            n if n >= LATE && self.phase == Phase::SafetyEnd => self.strike(n - LATE),
            n if n >= LATE => {}
            n if n >= UNDO => self.end_step(n - UNDO),
            n if self.phase == Phase::SafetyEnd => self.strike(n),
            _ => {}
        }
    }
}

/// Goes on unless a sweep found something.
fn unbroken(violations: Vec<Violation>) -> ControlFlow<End> {
    if violations.is_empty() {
        return ControlFlow::Continue(());
    }
    ControlFlow::Break(End { violations, excuses: Vec::new() })
}

/// Whether a step may order a stop.
fn may_stop(step: &Step) -> bool {
    matches!(step.action, Action::StopMirror { .. } | Action::Cli { .. })
}
