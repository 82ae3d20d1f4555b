//! What two failures have in common: the invariant that broke first, and the kind of place where.

use mirrorlab_reports::record::Violation;
pub use mirrorlab_reports::sweep::kind_of;

/// `S2 west/orders-# at west/broker-#`.
#[must_use]
pub fn signature(violation: &Violation) -> String {
    format!("{} {}", violation.id, kind_of(&violation.at))
}

/// Whether what broke is a property that must come to hold: it breaks when the time of the last phase is over. A loop without
/// waiting (L19) is found where it is.
#[must_use]
pub fn breaks_at_the_end(id: &str) -> bool {
    id.starts_with('L') && id != "L19"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_make_no_difference() {
        assert_eq!(kind_of("west/orders-17 at west/broker-2"), "west/orders-# at west/broker-#");
        assert_eq!(kind_of("east"), "east");
    }
}
