//! L14 Metadata converges: every broker that is up has applied what the controller committed. (Configs, ACLs and log starts
//! of mirrors are joined to it when their sync stands.)

use super::excuses::Excuse;
use super::liveness::Look;
use super::sight::Sight;

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    for cluster in 0..look.roster.clusters.len() as u8 {
        let Some(image) = look.sight.image(cluster) else { continue }; // L4
        let expected = (image.end(), image.hash());
        for node in look.roster.clusters[usize::from(cluster)].brokers.iter().copied() {
            if !look.sight.is_up(node) {
                look.excuse("L14", Excuse::NodeDown, None, Some(node));
                continue;
            }
            let own = look.sight.broker_image(node).map(|i| (i.end(), i.hash()));
            if own != Some(expected) {
                let got = format!("{:?}", own.map(|o| o.0));
                look.stall("L14", None, Some(node), format!("metadata applied up to {}", expected.0), got);
            }
        }
    }
}
