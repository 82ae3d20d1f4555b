//! What was acknowledged and is no more, by what accounts for it.
//!
//! A check lets a loss pass that its excuse accounts for, and keeps the cut. Where all faults are within what replicas can stand,
//! there is no such excuse: whatever was lost, the system lost.

use crate::checks::excuses::Excuse;
use crate::checks::ghost::Ghost;
use crate::format::types::Stage;
use mirrorlab_model::ids::Nanos;
use mirrorlab_reports::record::Violation;
use std::collections::BTreeMap;

/// Cuts and acknowledged records in them, by excuse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    by: BTreeMap<&'static str, (Excuse, u64, u64)>,
    /// Batches that rotted on some disk, and those of them that somebody found.
    rotten: (u64, u64),
}

/// All that was cut so far.
pub(crate) fn of(ghost: &Ghost) -> Losses {
    let mut losses = Losses::default();
    let partitions = ghost.clusters.iter().flat_map(|cluster| &cluster.partitions);
    for cut in partitions.filter_map(|p| p.more.as_ref()).flat_map(|more| &more.cuts) {
        let (_, cuts, records) = losses.by.entry(cut.excuse.name()).or_insert((cut.excuse, 0, 0));
        *cuts += 1;
        *records += cut.acked;
    }
    let partitions = ghost.clusters.iter().flat_map(|cluster| &cluster.partitions);
    for more in partitions.filter_map(|p| p.more.as_ref()) {
        losses.rotten.1 += more.rotten.iter().filter(|rot| rot.found).count() as u64;
        losses.rotten.0 += more.rotten.len() as u64;
        if more.rotten_away > 0 {
            let (_, cuts, records) = losses.by.entry(Excuse::BitRot.name()).or_insert((Excuse::BitRot, 0, 0));
            *cuts += 1;
            *records += more.rotten_away;
        }
    }
    losses
}

/// Whether every strike of a plan that may take something is left out where replicas could not make it good.
pub(crate) fn is_within_tolerance(stage: &Stage) -> bool {
    let mut risks = stage.timeline.iter().filter(|step| step.action.may_lose()).peekable();
    risks.peek().is_some() && risks.all(|step| step.within_tolerance)
}

impl Losses {
    /// `rotten_batches` and `rotten_batches_found`, if there are any; `cut_EXCUSE` and `lost_EXCUSE`: partitions that were cut, and acknowledged records in that.
    pub fn figures(&self, figures: &mut BTreeMap<String, f64>) {
        for (name, (_, cuts, records)) in &self.by {
            let name = name.replace(' ', "_");
            figures.insert(format!("cut_{name}"), *cuts as f64);
            figures.insert(format!("lost_{name}"), *records as f64);
        }
        if self.rotten.0 > 0 {
            figures.insert("rotten_batches".to_owned(), self.rotten.0 as f64);
            figures.insert("rotten_batches_found".to_owned(), self.rotten.1 as f64);
        }
    }

    /// What cannot have been lost by faults that replicas can stand.
    pub fn violation(&self, now: Nanos) -> Option<Violation> {
        let faults = |excuse| {
            matches!(
                excuse,
                Excuse::UncleanElection
                    | Excuse::LossyCrashes
                    | Excuse::UncleanStops
                    | Excuse::BitRot
                    | Excuse::OlderCopy
            )
        };
        let (excuse, _, records) = self.by.values().find(|(excuse, _, records)| faults(*excuse) && *records > 0)?;
        Some(Violation {
            id: "S6".to_owned(),
            says: "No acknowledged record is lost by faults that replicas can stand.".to_owned(),
            at: "all clusters".to_owned(),
            expected: "every acknowledged record".to_owned(),
            got: format!("{records} of them cut, for which the checks found the excuse \"{}\"", excuse.name()),
            whose: "system".to_owned(),
            time_ns: now.0,
            step: 0,
        })
    }
}

#[cfg(test)]
#[path = "losses_tests.rs"]
mod tests;
