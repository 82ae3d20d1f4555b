//! L13 Every consumer with data before it makes progress: in the end it has read everything (no endless metadata refresh,
//! session error or redirect loop).

use super::excuses::Excuse;
use super::liveness::Look;
use super::roster::slot_of;
use super::sight::{LogSight, Sight};

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    for (number, node) in look.roster.consumers.iter().copied() {
        let Some(place) = look.roster.place(node) else { continue };
        for position in look.sight.positions(number).unwrap_or_default() {
            let ix = position.partition;
            let Some(p) = look.at(place.cluster, ix) else { continue };
            if position.given_up {
                look.excuse("L13", Excuse::NoResetPolicy, Some(p), Some(node));
                continue;
            }
            let leader = look.roster.broker(place.cluster, slot_of(p.ghost.leader));
            let Some(replica) = leader.and_then(|n| look.sight.replica(n, ix)) else { continue }; // L4
            let (stable, hw) = (replica.log.last_stable(), replica.log.high_watermark());
            let end = if position.read_committed { stable } else { hw };
            if position.offset < end && look.is_rotten_at(p, position.offset) {
                look.excuse("L13", Excuse::BitRot, Some(p), Some(node));
            } else if position.offset < end {
                look.stall(
                    "L13",
                    Some(p),
                    Some(node),
                    format!("everything read, up to {end}"),
                    format!("it is at {}", position.offset),
                );
            } else if position.read_committed && stable < hw {
                look.excuse("L13", Excuse::OpenTransaction, Some(p), Some(node));
            }
        }
    }
}
