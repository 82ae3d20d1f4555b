//! Strikes under way, to keep within budgets.
//!
//! Here stands what can be known before the run: how many strikes there are at once, how many brokers of a cluster are out of
//! service, that a quorum keeps its majority. Whether replicas could make a loss good depends on who is in sync when it
//! strikes: that is looked at then (`faults/tolerance.rs`).

use super::{Drawn, Node};
use crate::format::chaos::{Chaos, ChaosKind};
use crate::format::types::Stage;
use crate::units::Time;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Budget {
    /// Until when each strike lasts.
    active: Vec<Time>,
    /// Which broker, or controller, is out of service until when.
    down: Vec<(Node, Time)>,
    used: BTreeMap<ChaosKind, u32>,
}

impl Budget {
    pub fn admits(&mut self, chaos: &Chaos, stage: &Stage, strike: &Drawn, at: Time) -> bool {
        self.active.retain(|until| *until > at);
        self.down.retain(|(_, until)| *until > at);
        let used = self.used.get(&strike.kind).copied().unwrap_or(0);
        let limit = chaos.strikes.get(&strike.kind).and_then(|s| s.count);
        if limit.is_some_and(|limit| used >= limit) || self.active.len() >= chaos.max_at_once as usize {
            return false;
        }
        if strike.hits.iter().any(|hit| self.down.iter().any(|(down, _)| down == hit)) {
            return false;
        }
        !strike.kind.takes_down() || strike.hits.iter().all(|hit| self.may_fall(chaos, stage, strike, hit))
    }

    fn may_fall(&self, chaos: &Chaos, stage: &Stage, strike: &Drawn, hit: &Node) -> bool {
        let alike = |(node, _): &&(Node, Time)| (&node.0, node.2) == (&hit.0, hit.2);
        let down = self.down.iter().filter(alike).count();
        if strike.kind.is_beyond_tolerance() {
            // It takes all there are.
            return down == 0;
        }
        let limit =
            if hit.2 { stage.clusters.get(&hit.0).map_or(0, |c| (c.controllers - 1) / 2) } else { chaos.max_down };
        down < limit as usize
    }

    pub fn take(&mut self, strike: &Drawn, at: Time) {
        let until = at.plus(strike.length);
        self.active.push(until);
        *self.used.entry(strike.kind).or_default() += 1;
        if strike.kind.takes_down() {
            self.down.extend(strike.hits.iter().map(|hit| (hit.clone(), until)));
        }
    }
}
