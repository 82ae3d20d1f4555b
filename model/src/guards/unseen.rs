//! Guards and quirks whose absence no world of this simulation can show, and why. The hunt prints the reason beside a miss; what
//! is not listed here and not found is a hole in the checks or in the worlds.

use super::GuardId;

/// Why on and off look the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Another rule, which is no switch, makes both the same in every world.
    Equivalent,
    /// The simulation has no step in which they differ.
    Granularity,
}

impl Why {
    /// One word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Equivalent => "equivalent",
            Self::Granularity => "granularity",
        }
    }
}

/// A row that nothing can show.
#[derive(Clone, Copy, Debug)]
pub struct Unseen {
    /// The guard or quirk.
    pub id: GuardId,
    /// The kind of reason.
    pub why: Why,
    /// The reason, in one or two sentences.
    pub says: &'static str,
}

/// All of them, in order of bit. One that is masked by another guard is not here: its file switches both off.
pub const UNSEEN: &[Unseen] = &[];

/// Why a guard or quirk cannot be seen.
#[must_use]
pub fn of(id: GuardId) -> Option<&'static Unseen> {
    UNSEEN.iter().find(|unseen| unseen.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_once_in_order_and_with_a_reason() {
        assert!(UNSEEN.windows(2).all(|two| two[0].id < two[1].id));
        assert!(UNSEEN.iter().all(|unseen| unseen.says.len() > 40 && unseen.says.ends_with('.')));
        assert!(UNSEEN.iter().all(|unseen| of(unseen.id).is_some()));
    }
}
