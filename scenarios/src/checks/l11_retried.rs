//! L11 A retryable failure of a mirrored partition whose cause ended returns to its former work. Its time is its own: retries
//! are further and further apart, so the one that succeeds may be due after everything else has converged. What failed for good waits
//! for an operator; but a topic that the source has had all the time did not fail because it was deleted there.

use super::excuses::Excuse;
use super::l10_desired;
use super::liveness::{Look, Spot};
use super::sight::Sight;
use mirrorlab_model::ids::Nanos;
use mirrorlab_model::mirror::fetcher::FailCause;
use mirrorlab_model::states::MirrorState;

/// What is not so yet. Returns when the last of the retries that are awaited is due; nothing if none is, or one that is due
/// never.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    let mut due = Some(Nanos::ZERO);
    look.each_partition(|look, p| {
        let Some((node, mirror)) = look.mirror(p) else { return };
        if mirror.state != MirrorState::Failed {
            return;
        }
        // Partitions that were added before the topic was mirrored may have no source, and wait until there is one.
        // So does who looks for a topic that was deleted, and another one made under its name, before it ever saw the first.
        let other = look.has_its_topic(p) == Some(false);
        if mirror.retries && (other || !p.ghost.born_a_copy && look.lacks_source(p)) {
            look.excuse("L11", Excuse::NoSourcePartition, Some(p), Some(node));
        } else if mirror.retries && look.source_refuses(p) {
            look.excuse("L11", Excuse::SourceRefuses, Some(p), Some(node));
        } else if mirror.retries && !look.lacks_source(p) && look.source_is_down(p) {
            look.excuse("L11", Excuse::SourceDown, Some(p), Some(node));
        } else if mirror.retries && look.rot_holds_a_mirror(p) {
            look.excuse("L11", Excuse::BitRot, Some(p), Some(node));
        } else if mirror.retries {
            due = due.zip(mirror.retry_at).map(|(last, at)| last.max(at));
            let got = "FAILED, to be retried";
            look.stall("L11", Some(p), Some(node), "back at work after a failure whose cause ended", got);
        } else if was_never_deleted(look, p) {
            look.stall(
                "L11",
                Some(p),
                Some(node),
                "no end for good: the source has the topic",
                "FAILED: it is deleted",
            );
        } else if l10_desired::was_told_recovered(look, p) {
            look.stall(
                "L10",
                Some(p),
                Some(node),
                "back at work, as an operator was told",
                "FAILED for good, as before",
            );
        } else {
            look.excuse("L11", Excuse::FailedForGood, Some(p), Some(node));
        }
    });
    look.retry_at = due.filter(|at| *at > Nanos::ZERO);
}

/// Whether a partition failed for good because its source's topic was deleted, and it never was.
fn was_never_deleted<S: Sight>(look: &mut Look<'_, S>, p: Spot<'_>) -> bool {
    let ended_by = p.ghost.life().and_then(|life| life.ended_by.as_deref());
    if ended_by != Some(FailCause::SourceTopicDeleted.text()) || look.has_its_topic(p) != Some(true) {
        return false;
    }
    let Some((source, there)) = look.source(p) else { return false };
    let topic = look.sight.image(source).and_then(|image| image.partition(there)).map(|entry| entry.topic);
    topic.is_some_and(|topic| !look.ghost.clusters[usize::from(source)].removed.contains(&topic))
}
