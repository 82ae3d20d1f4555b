//! L3 Every broker that is up gets registered and unfenced, with one epoch.

use super::excuses::Excuse;
use super::liveness::Look;
use super::sight::Sight;
use mirrorlab_model::ids::BrokerId;

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    for cluster in 0..look.roster.clusters.len() as u8 {
        for (slot, node) in look.roster.clusters[usize::from(cluster)].brokers.iter().copied().enumerate() {
            if !look.sight.is_up(node) {
                look.excuse("L3", Excuse::NodeDown, None, Some(node));
                continue;
            }
            let broker = BrokerId(slot as i32 + 1);
            let known = look.sight.image(cluster).and_then(|i| i.broker(broker)).copied();
            let own = look.sight.broker_epoch(node);
            if !known.is_some_and(|k| !k.fenced && Some(k.epoch) == own) {
                let state = |fenced| if fenced { "fenced" } else { "in service" };
                let known = known.map_or("nothing of it".into(), |k| format!("epoch {}, {}", k.epoch, state(k.fenced)));
                let own = own.map_or("none".into(), |own| format!("epoch {own}"));
                let got = format!("the controller knows {known}; the broker knows {own}");
                look.stall("L3", None, Some(node), "registered and unfenced, in the epoch that the broker knows", got);
            }
        }
    }
}
