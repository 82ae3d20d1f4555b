//! Runs a plan: boot, safety, heal, converge, final check; and leaves a record.
//!
//! The runner is what the pump drives. Each step of the world is followed by the checks, the meters and the scripts; the
//! first violation ends the run.

use crate::census::Census;
use crate::checks::{Options as CheckOptions, Suite};
use crate::conditions::Eye;
use crate::failovers::Failovers;
use crate::faults::{undo, Done, Striker, Undo};
use crate::format::action::{Action, After, Step, Trigger};
use crate::given::Given;
use crate::hands::Hands;
use crate::lab::Lab;
use crate::losses;
use crate::marks::{Mark, Marks};
use crate::meter::Meter;
use crate::plan::Plan;
use crate::recorder::Recorder;
use crate::story::Story;
use mirrorlab_model::guards::{self, Guards, Kind};
use mirrorlab_model::ids::{Nanos, PartitionIx};
use mirrorlab_model::trace::{Origin, Trace};
use mirrorlab_reports::record::{Band, Expectation, GuardUse, Record, Verdict, Violation};
use mirrorlab_sim::node::Condition;
use mirrorlab_sim::pump::{pump, Drive};
use mirrorlab_sim::world::Happened;
use std::collections::{BTreeMap, BTreeSet};
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
/// A sweep costs what there is: with more partitions than this, quiet points within the safety phase have none.
const SWEEP_MAX: u64 = 1_000;
/// The same of the end of the safety phase.
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
    /// Appends at the last sweep.
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

    /// Runs to the end, paced by madsim's clock, and gives the record.
    pub async fn to_end(&mut self) -> Record {
        match pump(self, Nanos(u64::MAX)).await {
            ControlFlow::Break(end) => self.record(end),
            ControlFlow::Continue(()) => self.record(End::default()),
        }
    }

    /// Runs to the end at full speed and gives the record; `None` if it takes more events than so many, or lasts longer.
    pub fn to_end_within(&mut self, events: u64, until: Nanos) -> Option<Record> {
        while self.next_time().is_some() {
            if self.lab.world.counts().events >= events || self.now() > until {
                return None;
            }
            if let ControlFlow::Break(end) = self.step() {
                return Some(self.record(end));
            }
        }
        Some(self.record(End::default()))
    }

    /// Runs to the end at full speed, shows what each event left to `look`, and gives the record.
    pub fn to_end_watched(&mut self, mut look: impl FnMut(&Self)) -> Record {
        while self.next_time().is_some() {
            let end = self.step();
            look(self);
            if let ControlFlow::Break(end) = end {
                return self.record(end);
            }
        }
        self.record(End::default())
    }

    /// Takes events up to an instant; false if the run ended before it.
    pub fn go_to(&mut self, until: Nanos) -> bool {
        while self.next_time().is_some_and(|at| at < until) {
            if self.step().is_break() {
                return false;
            }
        }
        self.next_time().is_some()
    }

    /// Notes from now on what leads to what ([`mirrorlab_sim::causes`]). The history stays the same.
    pub fn note_causes(&mut self) {
        self.lab.world.note_causes();
    }

    /// Lets every draw from now on come from another seed. The steps of the plan stay.
    pub fn reseed(&mut self, seed: u64) {
        self.lab.world.reseed(seed);
    }

    /// Gives the run up after so many events: what it would have come to is unknown.
    pub fn limit_events(&mut self, most: u64) {
        self.events_max = most;
    }

    /// Writes every trace event down from now on.
    pub fn record_trace(&mut self, recorder: Recorder) {
        self.recorder = Some(recorder);
    }

    /// Takes the recorder back, to be finished.
    pub fn take_recorder(&mut self) -> Option<Recorder> {
        self.recorder.take()
    }

    /// Takes one event; false at the end.
    pub fn single_step(&mut self) -> bool {
        self.next_time().is_some() && self.step().is_continue()
    }

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
                self.sweep(SWEEP_AT_HEAL_MAX)?;
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
            let lag = Meter::lag_now(&self.lab.world, &self.lab.setup);
            self.meter.catch_up = (lag == Some(0)).then(|| self.now().since(self.safety_end));
        }
        let left = self.suite.liveness(&self.lab.world, &self.lab.setup);
        let end = self.safety_end + self.job.plan.stage.phases.converge.nanos();
        // What an operator still insists on is part of what has to come about.
        if left.violations.is_empty() && self.now() < end && !self.lab.orders_done() {
            return ControlFlow::Continue(());
        }
        if !left.violations.is_empty() {
            if self.now() < end.max(self.retries_end.unwrap_or_default()) {
                return ControlFlow::Continue(());
            }
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
                self.story.tell(&self.lab.world, format!("{name} ended: {reason:?}"), false);
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
            self.sweep(SWEEP_MAX)?;
        }
        let traced = !self.lab.world.trace().is_empty() || happened == Happened::Script(SAMPLE);
        if traced && self.phase == Phase::SafetyEnd && self.waiting + self.counting + self.ordered > 0 {
            self.watch_conditions();
        }
        ControlFlow::Continue(())
    }

    /// Sweeps all partitions at a quiet point, if there are not more than `most` and something was appended since.
    fn sweep(&mut self, most: u64) -> ControlFlow<End> {
        let appends = self.lab.world.counts().appends;
        if self.partitions > most || appends == self.swept {
            return ControlFlow::Continue(());
        }
        self.swept = appends;
        let violations = self.suite.at_quiet(&self.lab.world, &self.lab.setup);
        if violations.is_empty() {
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(End { violations, excuses: Vec::new() })
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
                self.lab.create_mirror(&self.job.plan.stage, &name, true);
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

    fn strike(&mut self, n: u32) {
        let step: Step = self.job.plan.stage.timeline[n as usize].clone();
        if let Action::Heal { step: named } = &step.action {
            self.heal_partitions(named.as_deref());
        }
        self.striker.once = step.expect_error.is_some();
        let done = self.striker.refusal(&self.lab, &step, &self.over).unwrap_or_else(|| {
            self.note_disks_before(&step.action);
            self.census.on_strike(&self.lab, &step.action, &self.over);
            self.striker.strike(&mut self.lab, &self.job.plan.stage, &step.action, &self.over)
        });
        self.story.tell(&self.lab.world, done.text.clone(), true);
        let band = self.bands.len();
        self.bands.push(Band { from_ns: self.now().0, to_ns: self.now().0, label: done.text });
        if let (Some(lasting), false) = (step.action.lasting(), done.undo.is_empty()) {
            self.lab.world.schedule_script(self.now() + lasting.nanos(), UNDO + n);
        }
        self.given.note(n, self.lab.world.now(), &done.orders, done.call);
        let nothing = done.undo.is_empty() && done.orders.is_empty();
        self.ordered += usize::from(!done.orders.is_empty());
        self.stands[n as usize] = Stand::Struck { undo: done.undo, orders: done.orders, band };
        if nothing {
            self.finish_step(n);
        }
    }

    /// Lets the checks note what the disks of those promise that are about to be stopped (S15).
    fn note_disks_before(&mut self, action: &Action) {
        // What a crash inside a task finds durable is known only then.
        let (Action::PowerLoss { node, inside_task: false, .. }
        | Action::Kill { node, inside_task: false, .. }
        | Action::CrashAtStart { node, .. }
        | Action::Wipe { node, .. }) = action
        else {
            return;
        };
        let eye = Eye { world: &self.lab.world, setup: &self.lab.setup, done: &self.over };
        for n in eye.nodes(node) {
            self.suite.before_stop(&self.lab.world, &self.lab.setup, n);
        }
    }

    fn heal_partitions(&mut self, named: Option<&str>) {
        for n in 0..self.stands.len() {
            let step = &self.job.plan.stage.timeline[n];
            let meant = matches!(step.action, Action::Partition { .. })
                && named.is_none_or(|s| step.name.as_deref() == Some(s));
            if meant && matches!(self.stands[n], Stand::Struck { .. }) {
                self.end_step(n as u32);
            }
        }
    }

    /// Ends what a step struck. One that did not strike stays what it is: it was not carried out, and the run tells so.
    fn end_step(&mut self, n: u32) {
        let Stand::Struck { undo: ends, band, .. } = &mut self.stands[n as usize] else { return };
        let (ends, band) = (std::mem::take(ends), *band);
        self.stands[n as usize] = Stand::Over;
        for end in &ends {
            undo(&mut self.lab, end);
        }
        let now = self.now().0;
        self.bands[band].to_ns = now;
        if !ends.is_empty() {
            let text = format!("{} ends", self.bands[band].label);
            self.story.tell(&self.lab.world, text, true);
        }
        self.finish_step(n);
    }

    fn finish_step(&mut self, n: u32) {
        if let Some(name) = &self.job.plan.stage.timeline[n as usize].name {
            self.over.insert(name.clone());
        }
    }

    fn watch_conditions(&mut self) {
        for n in 0..self.stands.len() {
            match &self.stands[n] {
                Stand::Waiting => {
                    let Trigger::When { when, after, within } = &self.job.plan.stage.timeline[n].trigger else {
                        continue;
                    };
                    // Too late: the step stays undone, and the run is unmet.
                    if within.is_some_and(|t| self.now() > self.base + t.nanos()) {
                        continue;
                    }
                    let eye = Eye { world: &self.lab.world, setup: &self.lab.setup, done: &self.over };
                    if !eye.holds(when) {
                        continue;
                    }
                    let after = *after;
                    self.waiting -= 1;
                    match after {
                        None => self.strike_after(n, Nanos::ZERO),
                        Some(After::Time(time)) => self.strike_after(n, time.nanos()),
                        Some(After::Batches(left)) => self.start_counting(n, left, false),
                        Some(After::Records(left)) => self.start_counting(n, left, true),
                    }
                }
                Stand::Counting { .. } => self.count_for(n),
                Stand::Struck { orders, undo, .. } if !orders.is_empty() && undo.is_empty() => {
                    let admins = self.lab.setup.admins.iter().filter_map(|a| self.lab.world.node(*a).admin());
                    let answered = |id: &u32| admins.clone().any(|a| a.outcome(*id).is_some());
                    if orders.iter().all(answered) {
                        self.ordered -= 1;
                        self.end_step(n as u32);
                    }
                }
                _ => {}
            }
        }
    }

    fn start_counting(&mut self, n: usize, left: u64, records: bool) {
        let Trigger::When { when, .. } = &self.job.plan.stage.timeline[n].trigger else { return };
        let eye = Eye { world: &self.lab.world, setup: &self.lab.setup, done: &self.over };
        let on = eye.partitions_of(when);
        self.counting += 1;
        self.stands[n] = Stand::Counting { left, records, on };
    }

    fn count_for(&mut self, n: usize) {
        let Stand::Counting { left, records, on } = &mut self.stands[n] else { return };
        for event in self.lab.world.trace() {
            let Trace::Appended { partition, origin, base, next, .. } = event.trace else { continue };
            let cluster = self.lab.world.node(event.node).cluster.unwrap_or(u8::MAX);
            if origin != Origin::Replication && on.contains(&(cluster, partition)) {
                *left = left.saturating_sub(if *records { (next.0 - base.0).max(0) as u64 } else { 1 });
            }
        }
        if *left == 0 {
            self.counting -= 1;
            self.strike_after(n, Nanos::ZERO);
        }
    }

    /// Lets a step whose condition held strike as an event of its own, be it at this very instant: what it traces then
    /// passes the checks, marks and story as the trace of any event does.
    fn strike_after(&mut self, n: usize, time: Nanos) {
        self.stands[n] = Stand::Due;
        self.lab.world.schedule_script(self.now() + time, LATE + n as u32);
    }

    // ------------------------------------------------------------------------------------------------------------ record

    pub(crate) fn record(&mut self, end: End) -> Record {
        let End { mut violations, excuses } = end;
        let expectations = if violations.is_empty() && !self.over_budget { self.expectations() } else { Vec::new() };
        let (verdict, mut reason) = self.verdict(&violations, &expectations);
        if violations.len() > VIOLATIONS_MAX {
            reason = format!("{reason} ({} places; the first {VIOLATIONS_MAX} are kept)", violations.len());
            violations.truncate(VIOLATIONS_MAX);
        }
        let mut figures = BTreeMap::new();
        self.meter.figures(&mut figures);
        if let Some(lag) =
            Meter::lag_now(&self.lab.world, &self.lab.setup).filter(|_| !self.lab.setup.mirrors.is_empty())
        {
            figures.insert("lag_end".into(), lag as f64);
        }
        self.bounds(&mut figures);
        self.failovers.figures(&mut figures);
        self.strikes_told(&mut figures);
        losses::of(&self.suite.core().ghost).figures(&mut figures);
        let counts = self.lab.world.counts();
        let end = self.now();
        let orders = self.given.told(&self.job.plan.stage, &self.lab);
        let points: Vec<_> = self.lab.world.nodes().iter().map(|node| node.guards.points.clone()).collect();
        let mut refusals = Guards::default();
        self.lab.world.nodes().iter().for_each(|node| refusals.merge_hits(&node.guards));
        Record {
            census: self.census.told(&orders, &refusals, &points),
            scenario: self.job.path.clone(),
            title: self.job.plan.title.clone(),
            seed: self.job.plan.seed,
            profile: self.job.plan.profile.name().to_owned(),
            resolved: self.resolved(),
            verdict,
            reason,
            violations,
            excuses,
            expectations,
            marks: self.marks.reached().map(|(name, n)| (name.to_owned(), n)).collect(),
            guards: self.guard_use(&refusals),
            trace_hash: format!("{:016x}", self.lab.world.trace_hash()),
            events: counts.events,
            messages: counts.messages,
            appends: counts.appends,
            simulated_s: end.as_secs_f64(),
            wall_s: 0.0,
            peak_rss_mb: 0.0,
            figures,
            failovers: self.failovers.told(),
            lag: self.meter.lag_percentiles(),
            curves: self.meter.curves(),
            bands: self.bands.clone(),
            orders,
            story: self.story.lines.clone(),
            story_omitted: self.story.omitted,
            repro: String::new(),
            build: Default::default(),
            rows: Vec::new(),
        }
    }

    /// What bounds mirrored throughput: the fetch bound (response maximum over round trip, for each fetcher that has
    /// partitions), the link, and what producers offer. Only for worlds with one mirror over one link.
    fn bounds(&self, figures: &mut BTreeMap<String, f64>) {
        let stage = &self.job.plan.stage;
        let (Some((name, mirror)), 1) = (stage.mirrors.iter().next(), stage.mirrors.len()) else { return };
        let (Some(from), Some(to)) = (stage.clusters.get(&mirror.source), stage.clusters.get(&mirror.on)) else {
            return;
        };
        let between = |l: &&crate::format::types::Link| l.between.contains(&from.site) && l.between.contains(&to.site);
        let Some(link) = stage.links.values().find(between) else { return };
        let data = link.direction(usize::from(link.between[0] != from.site));
        let back = link.direction(usize::from(link.between[0] == from.site));
        let round_trip = (data.latency.0 + back.latency.0) as f64 / 1e9;
        let setup = self.lab.setup.mirrors.iter().find(|m| *m.name == **name);
        let Some(destination) = setup.map(|m| &self.lab.setup.clusters[usize::from(m.destination)]) else { return };
        let brokers = destination.brokers.iter().filter_map(|n| self.lab.world.node(*n).broker());
        let mut fetchers = 0;
        let mut response_max = 0;
        for broker in brokers {
            fetchers += broker.mirror.busy_fetchers();
            let image = &broker.image;
            let config =
                image.mirror_by_name(name).and_then(|m| image.mirror(m)).map(|m| m.config.fetch_response_max_bytes);
            response_max = response_max.max(config.unwrap_or(0));
        }
        if round_trip > 0.0 && fetchers > 0 {
            let bound = fetchers as f64 * f64::from(response_max) / round_trip / 1e6;
            figures.insert("fetch_bound_mb_per_s".into(), bound);
        }
        if let Some(bandwidth) = data.bandwidth {
            figures.insert("link_bound_mb_per_s".into(), bandwidth.0 as f64 / 8e6);
        }
        let offered = stage.producers.values().filter_map(|p| {
            let rate = p.rate?;
            Some(rate.count as f64 / (rate.per.0 as f64 / 1e9) * p.record.0 as f64 / 1e6 * f64::from(p.count))
        });
        let offered: f64 = offered.sum();
        if offered > 0.0 {
            figures.insert("offered_mb_per_s".into(), offered);
        }
    }

    /// What was left out because replicas could not have stood it, and how often each armed point of perturbation fired.
    fn strikes_told(&self, figures: &mut BTreeMap<String, f64>) {
        if self.job.plan.stage.timeline.iter().any(|step| step.within_tolerance) {
            figures.insert("strikes_left_out".into(), self.striker.left_out as f64);
        }
        if self.lab.world.foreign().wrong() > 0 {
            figures.insert("wrong_answers".into(), self.lab.world.foreign().wrong() as f64);
        }
        let mut fired: BTreeMap<&'static str, u64> = BTreeMap::new();
        for (point, _, times) in self.lab.world.nodes().iter().flat_map(|node| node.guards.points.counts()) {
            *fired.entry(point.name()).or_default() += u64::from(times);
        }
        for name in &self.job.plan.stage.perturb {
            figures.insert(format!("fired_{name}"), fired.get(&**name).copied().unwrap_or(0) as f64);
        }
    }

    fn resolved(&self) -> String {
        let stage = &self.job.plan.stage;
        let clusters: Vec<String> = stage
            .clusters
            .iter()
            .map(|(name, c)| format!("{name} {} controller + {} brokers", c.controllers, c.brokers))
            .collect();
        let partitions = self.partitions;
        let mirrors: Vec<String> =
            stage.mirrors.iter().map(|(name, m)| format!("{name} ({} -> {})", m.source, m.on)).collect();
        let drawn = &self.job.plan.plan.drawn;
        let drawn = if drawn.is_empty() { String::new() } else { format!("; drawn: {}", drawn.join("; ")) };
        format!(
            "{}; {} topics with {partitions} partitions; mirrors: {}; {} producers, {} consumers; {} steps{drawn}",
            clusters.join(", "),
            stage.topics.values().map(|t| u64::from(t.topics())).sum::<u64>(),
            if mirrors.is_empty() { "none".to_owned() } else { mirrors.join(", ") },
            stage.producers.len(),
            stage.consumers.len(),
            stage.timeline.len()
        )
    }

    fn guard_use(&self, all: &Guards) -> GuardUse {
        let set = self.job.plan.guards();
        let named = |keep: &dyn Fn(&guards::Row) -> bool| {
            guards::rows().filter(|r| keep(r)).map(|r| r.name.to_owned()).collect()
        };
        GuardUse {
            hit: named(&|r| r.kind == Kind::Guard && all.was_hit(r.id)),
            off: named(&|r| r.kind == Kind::Guard && !set.is_on(r.id)),
            quirks: named(&|r| r.kind != Kind::Guard && set.is_on(r.id)),
        }
    }

    fn expectations(&self) -> Vec<Expectation> {
        let expect = &self.job.plan.stage.expect;
        let eye = Eye { world: &self.lab.world, setup: &self.lab.setup, done: &self.over };
        let mut out = Vec::new();
        for (topic, state) in &expect.states {
            let (met, got) = eye.topic_state(topic, state);
            out.push(Expectation { what: format!("state of {topic}"), expected: state.clone(), got, met });
        }
        for (topic, count) in &expect.records {
            let got = eye.records(topic);
            let met = got.is_some_and(|n| count.admits(n));
            let got = got.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
            out.push(Expectation { what: format!("records of {topic}"), expected: format!("{count:?}"), got, met });
        }
        for equal in &expect.equals {
            let (met, got) = eye.equals(&equal.term, &equal.value);
            out.push(Expectation { what: equal.term.to_string(), expected: format!("{:?}", equal.value), got, met });
        }
        for name in &expect.never_reach {
            let n = Mark::named(name).map_or(0, |m| self.marks.count(m));
            out.push(Expectation {
                what: format!("never {name}"),
                expected: "0".into(),
                got: n.to_string(),
                met: n == 0,
            });
        }
        self.failovers.expectations(expect, &mut out);
        self.given.expectations(&self.job.plan.stage, &self.lab, &mut out);
        if !expect.steps_may_miss {
            for (n, got) in self.missed_steps() {
                let what = format!("step {} ({})", n + 1, self.job.plan.stage.timeline[n].action.name());
                out.push(Expectation { what, expected: "struck".into(), got: got.into(), met: false });
            }
        }
        out
    }

    /// Steps of the timeline that did not strike, and why.
    pub(crate) fn missed_steps(&self) -> Vec<(usize, &'static str)> {
        let steps = self.stands.iter().zip(&self.job.plan.stage.timeline).enumerate();
        let missed = steps.filter_map(|(n, (stand, step))| {
            let got = match (stand, &step.trigger) {
                (Stand::Waiting, Trigger::When { .. }) => "its condition never held in time",
                (Stand::Counting { .. }, _) => "the batches that it waits for never came",
                (Stand::Waiting | Stand::Due, _) => "the safety phase was over before",
                _ => return None,
            };
            Some((n, got))
        });
        missed.collect()
    }

    fn verdict(&self, violations: &[Violation], expectations: &[Expectation]) -> (Verdict, String) {
        if self.over_budget {
            return (Verdict::Unknown, format!("given up after {} events, which is the budget", self.events_max));
        }
        let expected = &self.job.plan.stage.expect.violation;
        let wanted = !expected.is_empty();
        if let Some(first) = violations.first() {
            let names = |v: &Violation| expected.contains(&v.id);
            if wanted {
                // What the story rests on has to be so as well: the answers to its orders.
                let wrong = self.given.wrong_answer(&self.job.plan.stage, &self.lab);
                return if let Some(e) = wrong.filter(|_| violations.iter().any(names)) {
                    (
                        Verdict::Unmet,
                        format!("{} broke first, but {}: expected {}, got {}", first.id, e.what, e.expected, e.got),
                    )
                } else if violations.iter().any(names) {
                    (Verdict::Pass, format!("{} broke first, as expected", first.id))
                } else {
                    (Verdict::Unmet, format!("{} broke first, not {}", first.id, expected.join(" or ")))
                };
            }
            let verdict = if first.id.starts_with('L') { Verdict::Stall } else { Verdict::Violation };
            return (verdict, format!("{}: {}", first.id, first.says));
        }
        if wanted {
            return (Verdict::Unmet, format!("nothing broke; {} was expected to", expected.join(" or ")));
        }
        if let Some(missing) = self.missing_mark() {
            return (Verdict::Vacuous, format!("{missing}: the run proved nothing about it"));
        }
        match expectations.iter().find(|e| !e.met) {
            Some(e) => (Verdict::Unmet, format!("{}: expected {}, got {}", e.what, e.expected, e.got)),
            None => (Verdict::Pass, "every check held".to_owned()),
        }
    }

    /// The first mark that the run had to reach and did not: those that the file names, and what any mirror or producer is
    /// there for.
    fn missing_mark(&self) -> Option<String> {
        let stage = &self.job.plan.stage;
        let named = stage.expect.must_reach.iter().filter_map(|r| Some((Mark::named(r.mark())?, r.at_least())));
        let mirrors = (!stage.mirrors.is_empty() && !stage.producers.is_empty()).then_some(Mark::Mirrored);
        let producers =
            stage.producers.values().any(|p| p.acks != crate::format::types::Acks::None).then_some(Mark::Acked);
        let implied = mirrors.into_iter().chain(producers).map(|mark| (mark, 1));
        named.chain(implied).find_map(|(mark, least)| match (self.marks.count(mark), mark.name()) {
            (0, name) => Some(format!("`{name}` was never reached")),
            (count, name) if count < least => Some(format!("`{name}` was reached {count} of {least} times")),
            _ => None,
        })
    }
}

/// Whether a step may order a stop.
fn may_stop(step: &Step) -> bool {
    matches!(step.action, Action::StopMirror { .. } | Action::Cli { .. })
}
