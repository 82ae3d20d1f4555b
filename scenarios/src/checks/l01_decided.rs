//! L1 Every sent value ends acknowledged, refused or undecided. (A time-out is undecided: it may be in the log, and a checker
//! that counts it as failed cries wolf.)

use super::liveness::Look;
use super::sight::Sight;

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    for (number, node) in look.roster.producers.iter().copied() {
        let Some(producer) = look.sight.producer(number) else { continue };
        if producer.open > 0 || !producer.idle {
            let got =
                format!("{} records of {} are open, idle: {}", producer.open, look.roster.name(node), producer.idle);
            look.stall("L1", None, Some(node), "every record decided, and nothing more to come", got);
        }
    }
}
