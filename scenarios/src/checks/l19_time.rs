//! L19 Time goes on: no node takes more than a bounded number of steps at one instant of simulated time.

use super::liveness::Look;
use super::sight::Sight;

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    if let Some((node, lane)) = look.sight.stuck() {
        look.stall(
            "L19",
            None,
            Some(node),
            "time that goes on",
            format!("lane {} runs without end at one instant", lane.0),
        );
    }
}
