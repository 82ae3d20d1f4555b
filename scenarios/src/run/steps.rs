//! The steps of a timeline while a run is under way: what strikes when, and how it ends.

use super::{Run, Stand, LATE, UNDO};
use crate::faults::undo;
use crate::format::action::{Action, After, NodeRef, Step, Trigger};
use crate::lab::Manner;
use mirrorlab_model::ids::Nanos;
use mirrorlab_model::trace::{Origin, Trace};
use mirrorlab_reports::record::Band;
use mirrorlab_sim::pump::Drive;

impl Run {
    pub(super) fn strike(&mut self, n: u32) {
        let step: Step = self.job.plan.stage.timeline[n as usize].clone();
        if let Action::Heal { step: named } = &step.action {
            self.heal_partitions(named.as_deref());
        }
        self.striker.manner = Manner { insist: step.expect_error.is_none(), operator: step.operator };
        let done = self.striker.refusal(&self.lab, &step, &self.over).unwrap_or_else(|| {
            self.note_disks_before(&step.action);
            self.census.on_strike(&self.lab, &step.action, &self.over);
            let done = self.striker.strike(&mut self.lab, &self.job.plan.stage, &step.action, &self.over);
            self.note_disks_after(&step.action);
            done
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
    pub(super) fn note_disks_before(&mut self, action: &Action) {
        // What a crash inside a task finds durable is known only then.
        let (Action::PowerLoss { node, inside_task: false, .. }
        | Action::Kill { node, inside_task: false, .. }
        | Action::CrashAtStart { node, .. }
        | Action::Wipe { node, .. }) = action
        else {
            return;
        };
        let eye = self.eye();
        for n in eye.nodes(node) {
            self.suite.before_stop(&self.lab.world, &self.lab.setup, n);
        }
    }

    /// Tells the checks what became of disks by no doing of those who use them.
    fn note_disks_after(&mut self, action: &Action) {
        let (rots, node) = match action {
            Action::BitRot { node, .. } => (true, node.clone()),
            Action::SnapshotCluster { on } => (false, NodeRef::Brokers(on.clone())),
            _ => return,
        };
        for n in self.eye().nodes(&node) {
            let (world, setup) = (&self.lab.world, &self.lab.setup);
            if rots {
                self.suite.rotted(world, setup, n);
            } else {
                self.suite.copied(world, setup, n);
            }
        }
    }

    pub(super) fn heal_partitions(&mut self, named: Option<&str>) {
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
    pub(super) fn end_step(&mut self, n: u32) {
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

    pub(super) fn finish_step(&mut self, n: u32) {
        if let Some(name) = &self.job.plan.stage.timeline[n as usize].name {
            self.over.insert(name.clone());
        }
    }

    pub(super) fn watch_conditions(&mut self) {
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
                    let eye = self.eye();
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
                Stand::Struck { orders, undo, .. }
                    if !orders.is_empty()
                        && undo.is_empty()
                        && orders.iter().all(|id| self.lab.outcome(*id).is_some()) =>
                {
                    self.ordered -= 1;
                    self.end_step(n as u32);
                }
                _ => {}
            }
        }
    }

    pub(super) fn start_counting(&mut self, n: usize, left: u64, records: bool) {
        let Trigger::When { when, .. } = &self.job.plan.stage.timeline[n].trigger else { return };
        let eye = self.eye();
        let on = eye.partitions_of(when);
        self.counting += 1;
        self.stands[n] = Stand::Counting { left, records, on };
    }

    pub(super) fn count_for(&mut self, n: usize) {
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
    pub(super) fn strike_after(&mut self, n: usize, time: Nanos) {
        self.stands[n] = Stand::Due;
        self.lab.world.schedule_script(self.now() + time, LATE + n as u32);
    }
}
