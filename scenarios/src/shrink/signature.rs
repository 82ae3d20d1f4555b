//! What two failures have in common: the invariant that broke first, and the kind of place where.

use mirrorlab_reports::record::Violation;

/// `S2 west/orders-# at west/broker-#`.
#[must_use]
pub fn signature(violation: &Violation) -> String {
    format!("{} {}", violation.id, kind_of(&violation.at))
}

/// A place or a sentence without its numbers: which partition of a topic, and which broker of a cluster, is no difference.
#[must_use]
pub fn kind_of(place: &str) -> String {
    let mut out = String::with_capacity(place.len());
    for c in place.chars() {
        match c {
            '0'..='9' if out.ends_with('#') => {}
            '0'..='9' => out.push('#'),
            c => out.push(c),
        }
    }
    out
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
