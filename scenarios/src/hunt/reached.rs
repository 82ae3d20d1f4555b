//! Which guards and quirks a run reached: those that refused something, or whose place was passed.
//!
//! A run that did not reach a guard has the same history with it and without it, to the last event: nothing asked it, or it had
//! nothing to refuse. So a hunt has to repeat only those runs of the baseline that reached the target.

use mirrorlab_model::guards::{self, GuardSet};
use mirrorlab_reports::sweep::Finished;

/// What a run says.
#[must_use]
pub fn reached(run: &Finished) -> GuardSet {
    let mut reached = GuardSet::default();
    let names = run.hits.iter().chain(&run.passed);
    names.filter_map(|name| guards::by_name(name)).for_each(|row| reached.set(row.id, true));
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use mirrorlab_model::guards::{prototype, replication};
    use mirrorlab_reports::record::Verdict;

    #[test]
    fn what_refused_or_was_passed_is_reached() {
        let mut run = Finished::without_record("x.toml", 0, Verdict::Pass, String::new(), String::new());
        run.hits = vec!["FetchOffsetMatches".into(), "of another program".into()];
        run.passed = vec!["BumpWaitsForCompany".into()];
        let reached = reached(&run);
        assert!(reached.has(replication::FetchOffsetMatches) && reached.has(prototype::BumpWaitsForCompany));
        assert!(!reached.has(replication::ReconcileByEpoch));
    }
}
