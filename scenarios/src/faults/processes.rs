//! Strikes at processes, clocks and lanes.

use super::{nodes, stop, Done, Striker, Undo, LANES};
use crate::format::action::{Action, Loses, NodeRef};
use crate::lab::Lab;
use crate::units::Time;
use mirrorlab_model::broker::lanes;
use mirrorlab_model::ids::{Nanos, NodeId};
use mirrorlab_model::ports::Lane;
use mirrorlab_sim::disk::CrashRules;
use mirrorlab_sim::node::{Condition, LastStop};
use std::collections::BTreeSet;

impl Striker {
    /// True if it was one.
    pub(super) fn strike_process(
        &mut self,
        lab: &mut Lab,
        action: &Action,
        over: &BTreeSet<String>,
        done: &mut Done,
    ) -> bool {
        match action {
            Action::PowerLoss { node, inside_task: true, .. } => {
                self.down(lab, node, over, done, |lab, n| lab.world.crash_inside_a_task(n, LastStop::PowerLoss));
            }
            Action::Kill { node, inside_task: true, .. } => {
                self.down(lab, node, over, done, |lab, n| lab.world.crash_inside_a_task(n, LastStop::Killed));
            }
            Action::PowerLoss { node, loses, .. } => {
                let rules = rules(*loses);
                self.down(lab, node, over, done, |lab, n| lab.world.power_loss_by(n, &rules));
            }
            Action::CrashAtStart { node, power, .. } => {
                let how = if *power { LastStop::PowerLoss } else { LastStop::Killed };
                self.down(lab, node, over, done, |lab, n| lab.world.crash_at_start(n, how));
            }
            Action::Kill { node, .. } => {
                self.down(lab, node, over, done, |lab, n| lab.world.kill(n));
            }
            Action::Wipe { node, .. } => {
                self.down(lab, node, over, done, |lab, n| lab.world.wipe(n));
            }
            Action::Shutdown { node, .. } => {
                for n in nodes(lab, node, over) {
                    stop(lab, n);
                    done.undo.push(Undo::Start(n));
                }
            }
            Action::Restart { node } => {
                for n in nodes(lab, node, over) {
                    stop(lab, n);
                    // As soon as it has ended.
                    lab.world.start(n);
                    done.undo.push(Undo::Start(n));
                }
            }
            Action::Start { node } => nodes(lab, node, over).into_iter().for_each(|n| lab.world.start(n)),
            Action::Pause { node, .. } => {
                for n in nodes(lab, node, over) {
                    if lab.world.node(n).condition == Condition::Up {
                        lab.world.pause(n);
                        done.undo.push(Undo::Resume(n));
                    }
                }
            }
            Action::Resume { node } => nodes(lab, node, over).into_iter().for_each(|n| lab.world.resume(n)),
            _ => return self.strike_lane(lab, action, over, done),
        }
        true
    }

    /// Clocks and lanes.
    fn strike_lane(&mut self, lab: &mut Lab, action: &Action, over: &BTreeSet<String>, done: &mut Done) -> bool {
        match action {
            Action::ClockJump { node, by } => {
                for n in nodes(lab, node, over) {
                    lab.world.node_mut(n).clock.jump(by.0 / 1_000_000);
                }
            }
            Action::ClockDrift { node, rate, .. } => {
                let now = lab.world.now();
                for n in nodes(lab, node, over) {
                    lab.world.node_mut(n).clock.set_drift(now, rate.0);
                    done.undo.push(Undo::Drift(n));
                }
            }
            Action::DelayMetadata { node, by, lasting } => {
                self.slow(lab, node, lanes::METADATA, *by, *lasting, (over, done))
            }
            Action::SlowLane { node, lane, by, lasting } => {
                if let Some((_, lane)) = LANES.iter().find(|(name, _)| name == lane) {
                    self.slow(lab, node, *lane, *by, *lasting, (over, done));
                }
            }
            _ => return false,
        }
        true
    }

    fn down(
        &mut self,
        lab: &mut Lab,
        node: &NodeRef,
        over: &BTreeSet<String>,
        done: &mut Done,
        how: impl Fn(&mut Lab, NodeId),
    ) {
        let struck = nodes(lab, node, over);
        let names: Vec<String> = struck.iter().map(|n| lab.world.node(*n).name.to_string()).collect();
        if !names.is_empty() && !done.text.contains(&names[0]) {
            done.text = format!("{} ({})", done.text, names.join(", "));
        }
        for n in struck {
            how(lab, n);
            done.undo.push(Undo::Start(n));
        }
    }

    fn slow(
        &mut self,
        lab: &mut Lab,
        node: &NodeRef,
        lane: Lane,
        by: Time,
        lasting: Option<Time>,
        (over, done): (&BTreeSet<String>, &mut Done),
    ) {
        let until = lasting.map_or(Nanos(u64::MAX), |t| lab.world.now() + t.nanos());
        for n in nodes(lab, node, over) {
            lab.world.slow_lane(n, lane, by.nanos(), until);
            done.undo.push(Undo::Lane(n, lane, by.nanos()));
        }
    }
}

fn rules(loses: Loses) -> CrashRules {
    match loses {
        Loses::Drawn => CrashRules::default(),
        Loses::Unflushed => CrashRules::strict(),
        Loses::Tails => CrashRules::torn_tails(),
        Loses::Spoilt => CrashRules::spoilt_tails(),
        Loses::Names => CrashRules::names_lost(),
    }
}
