//! L8 With the source idle, the mirror's log end is the source's watermark, and so is its own watermark; and it is the source's
//! present leader that told so. A source that lost data may come back with another log that happens to be as long. A source topic that was
//! created again under its name is not that topic: its mirror fails for good (decision 4), and does not tell that it copies.

use super::excuses::Excuse;
use super::liveness::Look;
use super::roster::slot_of;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::LeaderEpoch;
use mirrorlab_model::states::MirrorState;

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    look.each_partition(|look, p| {
        let Some((node, mirror)) = look.mirror(p) else { return };
        if mirror.state != MirrorState::Mirroring {
            return; // L9 to L11
        }
        let Some((cluster, there)) = look.source(p) else { return };
        if !look.is_same_topic(p, (cluster, there)) {
            let expected = "a mirror that sees that its source's topic is another one";
            return look.stall("L8", Some(p), Some(node), expected, mirror.state.name());
        }
        let leader = look.ghost.clusters.get(usize::from(cluster)).and_then(|c| c.partitions.get(there.0 as usize));
        let source = leader
            .and_then(|o| look.roster.broker(cluster, slot_of(o.leader)))
            .and_then(|n| look.sight.replica(n, there));
        let (Some(source), Some(own)) = (source, look.sight.replica(node, p.ix)) else {
            return look.excuse("L8", Excuse::SourceDown, Some(p), Some(node));
        };
        let fetches = if mirror.fetching { "it fetches" } else { "it does not fetch" };
        let (expected, end, hw) = (source.log.high_watermark(), own.log.end(), own.log.high_watermark());
        if (end != expected || hw != expected) && look.rot_holds_a_mirror(p) {
            return look.excuse("L8", Excuse::BitRot, Some(p), Some(node));
        }
        if end != expected || hw != expected {
            let got = format!("end {end}, high watermark {hw}; {fetches}");
            look.stall(
                "L8",
                Some(p),
                Some(node),
                format!("the source's high watermark {expected} as end and as high watermark"),
                got,
            );
        }
        let (told, now) = (mirror.source_epoch, leader.map_or(LeaderEpoch::NONE, |o| o.leader_epoch));
        if told < now {
            let told = if told == LeaderEpoch::NONE { "none".to_owned() } else { format!("one of epoch {told}") };
            let got = format!("{told}; {fetches}");
            look.stall("L8", Some(p), Some(node), format!("an answer of the source's leader in epoch {now}"), got);
        }
    });
}
