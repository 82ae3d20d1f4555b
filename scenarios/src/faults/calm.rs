//! What is left of faults when all of them should have ended: nothing, or the calm phase is none.

use crate::lab::Lab;
use mirrorlab_model::ids::NodeId;
use mirrorlab_sim::node::Condition;

/// Every fault that is in force, in words.
#[must_use]
pub fn left(lab: &Lab) -> Vec<String> {
    let world = &lab.world;
    let mut left: Vec<String> = world.net().faults().map(|(_, fault)| format!("{fault:?}")).collect();
    if !world.foreign().is_idle() {
        left.push("a cluster gives wrong answers".to_owned());
    }
    for (at, node) in world.nodes().iter().enumerate() {
        let mut is = |what: &str| left.push(format!("{} {what}", node.name));
        if node.disk.is_troubled() {
            is("has a disk with a fault");
        }
        if node.clock.drift_ppb() != 0 {
            is("has a clock that drifts");
        }
        if node.guards.points.is_armed() {
            is("has points of perturbation that are armed");
        }
        if node.is_doomed() {
            is("is to crash inside a task");
        }
        if world.slow_lanes(NodeId(at as u16)).next().is_some() {
            is("has a slow lane");
        }
        if node.condition == Condition::Paused {
            is("stands still");
        }
    }
    left
}

#[cfg(test)]
#[path = "calm_tests.rs"]
mod tests;
