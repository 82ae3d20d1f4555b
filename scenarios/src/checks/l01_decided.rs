//! L1 Every sent value ends acknowledged, refused or undecided. (A time-out is undecided: it may be in the log, and a checker
//! that counts it as failed cries wolf.) A record that nobody takes, of a partition that is no more, say, is decided when its time is
//! over, which may be after everything else has converged.

use super::liveness::Look;
use super::sight::Sight;
use mirrorlab_model::ids::Nanos;

/// What is not so yet. Returns when the last of what is open has timed out; nothing if none is open, or one has no such time.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    let mut due = Some(Nanos::ZERO);
    for (number, node) in look.roster.producers.iter().copied() {
        let Some(producer) = look.sight.producer(number) else { continue };
        if producer.open > 0 || !producer.idle {
            due = due.zip(producer.decided_by).map(|(last, at)| last.max(at));
            let more = if producer.idle { "" } else { "; it is still at work" };
            let got = format!("records of {} that are open: {}{more}", look.roster.name(node), producer.open);
            look.stall("L1", None, Some(node), "every record decided, and nothing more to come", got);
        }
    }
    look.decided_at = due.filter(|at| *at > Nanos::ZERO);
}
