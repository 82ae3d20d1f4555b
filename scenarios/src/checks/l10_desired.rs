//! L10 The actual state reaches the desired one: MIRRORING, PAUSED or STOPPED; also from FAILED, and with a dead source, when the
//! order is stop. Desired is what metadata says; but a stop is never refused (decision 1), so that the operator's last word
//! counts where it was stop, whatever came of it, from when it was sent: an operator carries out one order after the other. What is to be copied and failed is L11's business; what awaits something, L9's. And what an operator was
//! told is recovered is not as it was: an answer comes when the state that it leads back to is committed (spec 8.14).

use super::excuses::Excuse;
use super::liveness::{Look, Spot};
use super::roster::slot_of;
use super::sight::Sight;
use mirrorlab_model::states::{DesiredState, MirrorState};

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    // What was said of the last topic: its partitions stand together.
    let mut said = (None, Default::default());
    look.each_partition(|look, p| {
        let Some(image) = look.sight.image(p.cluster) else { return };
        let Some(entry) = image.partition(p.ix) else { return };
        let Some(topic) = image.topic(entry.topic) else { return };
        let Some((mirror, mut desired)) = topic.mirror else { return };
        if said.0 != Some((p.cluster, entry.topic)) {
            let wanted = image.mirror(mirror).map(|m| look.sight.wanted(p.cluster, &m.name, &topic.name));
            said = (Some((p.cluster, entry.topic)), wanted.unwrap_or_default());
        }
        let (wanted, is_behind) = said.1;
        if wanted == Some(DesiredState::Stopped) {
            desired = DesiredState::Stopped;
        }
        let Some(node) = look.roster.broker(p.cluster, slot_of(p.ghost.leader)).filter(|n| look.sight.is_up(*n)) else {
            return; // L4
        };
        let Some((_, mirror)) = look.mirror(p) else {
            let expected = format!("{}, as ordered", desired.name());
            return look.stall("L10", Some(p), Some(node), expected, "no mirror at the leader");
        };
        use MirrorState as M;
        let reached = match (desired, mirror.state) {
            (DesiredState::Mirroring, M::Mirroring) | (DesiredState::Paused, M::Paused) => true,
            (DesiredState::Stopped, M::Stopped) | (DesiredState::Unknown, _) => true,
            // L11, and L9.
            (DesiredState::Mirroring | DesiredState::Paused, M::Failed) => true,
            (_, M::LogAlignment | M::EpochFencing | M::UleRecovery | M::Pausing | M::Stopping) => true,
            _ => false,
        };
        if reached {
            if is_behind {
                look.excuse("L10", Excuse::OrderWaits, Some(p), Some(node));
            }
            return;
        }
        if look.too_few(p) {
            return look.excuse("L10", Excuse::TooFewReplicas, Some(p), Some(node));
        }
        look.stall("L10", Some(p), Some(node), format!("{}, as ordered", desired.name()), mirror.state.name());
    });
}

/// Whether an operator was told that a partition is recovered, and nothing became of it since it failed for good.
pub(super) fn was_told_recovered<S: Sight>(look: &Look<'_, S>, p: Spot<'_>) -> bool {
    let Some(life) = p.ghost.life().filter(|life| life.ended_by.is_some()) else { return false };
    let image = look.sight.image(p.cluster);
    let topic = image.and_then(|image| image.topic(image.partition(p.ix)?.topic));
    let told = topic.and_then(|topic| look.sight.recovered(p.cluster, &life.mirror, &topic.name));
    told.is_some_and(|at| at > life.since)
}
