//! Which guards and quirks a run reached: those that refused something, or whose place was passed.
//!
//! A run that did not reach a guard has the same history with it and without it, to the last event: nothing asked it, or it had
//! nothing to refuse. So a hunt has to repeat only those runs of the baseline that reached the target.

use mirrorlab_model::guards::{self, GuardId, WORDS};
use mirrorlab_reports::sweep::Finished;

/// A bit for each guard and quirk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Reached([u64; WORDS]);

impl Reached {
    /// What a run says.
    #[must_use]
    pub fn of(run: &Finished) -> Self {
        let mut reached = Self::default();
        let names = run.hits.iter().chain(&run.passed);
        names.filter_map(|name| guards::by_name(name)).for_each(|row| reached.set(row.id));
        reached
    }

    fn set(&mut self, id: GuardId) {
        self.0[usize::from(id.0 / 64)] |= 1 << (id.0 % 64);
    }

    /// Whether a guard or quirk was reached.
    #[must_use]
    pub const fn has(&self, id: GuardId) -> bool {
        self.0[id.0 as usize / 64] & (1 << (id.0 % 64)) != 0
    }

    /// As a line of a hunt's file has it: 16 digits for each room.
    #[must_use]
    pub fn hex(&self) -> String {
        self.0.iter().map(|word| format!("{word:016x}")).collect()
    }

    /// From a line; `None` if it is none of this program.
    #[must_use]
    pub fn from_hex(hex: &str) -> Option<Self> {
        let mut reached = Self::default();
        if hex.len() != 16 * WORDS {
            return None;
        }
        for (n, word) in reached.0.iter_mut().enumerate() {
            *word = u64::from_str_radix(hex.get(16 * n..16 * (n + 1))?, 16).ok()?;
        }
        Some(reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mirrorlab_model::guards::{prototype, replication};
    use mirrorlab_reports::record::Verdict;

    #[test]
    fn what_a_run_reached_survives_its_line() {
        let mut run = Finished::without_record("x.toml", 0, Verdict::Pass, String::new(), String::new());
        run.hits = vec!["FetchOffsetMatches".into(), "of another program".into()];
        run.passed = vec!["BumpWaitsForCompany".into()];
        let reached = Reached::of(&run);
        assert!(reached.has(replication::FetchOffsetMatches) && reached.has(prototype::BumpWaitsForCompany));
        assert!(!reached.has(replication::ReconcileByEpoch));
        assert_eq!(Reached::from_hex(&reached.hex()), Some(reached));
        assert_eq!(Reached::from_hex("00ff"), None);
        assert_eq!(Reached::from_hex(&"é".repeat(8 * WORDS)), None);
    }
}
