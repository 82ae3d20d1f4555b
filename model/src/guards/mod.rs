//! The registry of load-bearing conditions (**guards**) and of the prototype's behaviours that this project corrects
//! (**quirks**).
//!
//! One table serves as documentation ("what carries the weight here"), mutation test ("do the checkers bite?"), coverage
//! (a guard that never refused anything is a MISS) and demonstration (a quirk switched on shows its bug). Code asks at the
//! one place where the condition stands: `if cx.guards.admits(replication::FetchOffsetMatches, a == b) { … }`.

/// Names one guard or quirk: a bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuardId(pub u16);

/// Guard (on by default) or quirk (off by default).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A condition that must hold; switching it off is a mutant.
    Guard,
    /// A documented behaviour of the public prototype; switching it on shows the defect. J, L or JL: the versions that have it.
    Quirk(&'static str),
}

/// One row of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its bit.
    pub id: GuardId,
    /// Its name, as scenario files and the command line spell it.
    pub name: &'static str,
    /// Guard or quirk.
    pub kind: Kind,
    /// One sentence: what must hold (guard), or what the prototype does (quirk).
    pub says: &'static str,
    /// Where it comes from: KIP, JIRA, spec section, catalogue id.
    pub source: &'static str,
    /// The invariants that break without it, likeliest first.
    pub breaks: &'static [&'static str],
}

/// Declares one room's rows. `base` is the room's first bit (64 each).
macro_rules! registry {
    (base $base:literal; $( $kind:ident $($version:literal)? $name:ident : $says:literal, $source:literal, [$($breaks:literal),+]; )*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, clippy::enum_variant_names)]
        #[repr(u16)]
        enum Order { $( $name ),* , End }
        $(
            #[doc = $says]
            #[doc = concat!("\n\nSource: ", $source)]
            #[allow(non_upper_case_globals)]
            pub const $name: $crate::guards::GuardId = $crate::guards::GuardId($base + Order::$name as u16);
        )*
        const _: () = assert!((Order::End as u16) <= 64, "a room has 64 rows; take another base");
        /// The rows of this room.
        pub const ROWS: &[$crate::guards::Row] = &[ $( $crate::guards::Row {
            id: $name,
            name: stringify!($name),
            kind: registry!(@kind $kind $($version)?),
            says: $says,
            source: $source,
            breaks: &[$($breaks),+],
        } ),* ];
    };
    (@kind guard) => { $crate::guards::Kind::Guard };
    (@kind quirk $version:literal) => { $crate::guards::Kind::Quirk($version) };
}

pub mod alignment;
pub mod client;
pub mod controller;
pub mod log;
pub mod mirror;
pub mod points;
pub mod prototype;
pub mod quorum;
pub mod replication;
pub mod transactions;
pub mod unseen;

/// Words of a set: nine rooms of 64.
const WORDS: usize = 9;

/// A set of guards and quirks: a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct GuardSet([u64; WORDS]);

impl GuardSet {
    const DIGITS: usize = 16;

    /// Takes one in, or out.
    #[inline]
    pub fn set(&mut self, id: GuardId, on: bool) {
        let bit = 1 << (id.0 % 64);
        let word = &mut self.0[usize::from(id.0 / 64)];
        if on {
            *word |= bit;
        } else {
            *word &= !bit;
        }
    }
    /// Whether one is in it.
    #[must_use]
    #[inline]
    pub fn has(&self, id: GuardId) -> bool {
        self.0[usize::from(id.0 / 64)] & (1 << (id.0 % 64)) != 0
    }
    /// Takes in all of another.
    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine |= theirs;
        }
    }
    /// As text: 16 digits for each room.
    #[must_use]
    pub fn hex(&self) -> String {
        self.0.iter().map(|word| format!("{word:016x}")).collect()
    }
    /// From such a text; `None` if it is none of this program.
    #[must_use]
    pub fn from_hex(hex: &str) -> Option<Self> {
        let mut set = Self::default();
        if hex.len() != Self::DIGITS * WORDS {
            return None;
        }
        for (n, word) in set.0.iter_mut().enumerate() {
            *word = u64::from_str_radix(hex.get(Self::DIGITS * n..Self::DIGITS * (n + 1))?, 16).ok()?;
        }
        Some(set)
    }
}

/// Which guards and quirks are on at one node, and which conditions were ever refused, how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guards {
    on: GuardSet,
    hit: GuardSet,
    /// By bit. Only guards are counted: a quirk's place may be passed with every batch.
    refused: Box<[u32]>,
    /// Points of perturbation.
    pub points: points::Points,
}

impl Default for Guards {
    fn default() -> Self {
        let (on, hit) = (GuardSet::default(), GuardSet::default());
        let mut guards = Self { on, hit, refused: vec![0; WORDS * 64].into(), points: points::Points::default() };
        for row in rows() {
            guards.set(row.id, row.kind == Kind::Guard);
        }
        guards
    }
}

impl Guards {
    /// Switches a guard or quirk.
    pub fn set(&mut self, id: GuardId, on: bool) {
        self.on.set(id, on);
    }
    /// Whether it is on.
    #[must_use]
    #[inline]
    pub fn is_on(&self, id: GuardId) -> bool {
        self.on.has(id)
    }
    /// The guard's verdict on an input: true to go on. A condition that does not hold is noted as a hit (on and off would
    /// differ here) and refused only while the guard is on.
    #[must_use]
    #[inline]
    pub fn admits(&mut self, id: GuardId, condition: bool) -> bool {
        if condition {
            return true;
        }
        self.hit.set(id, true);
        let refused = &mut self.refused[usize::from(id.0)];
        *refused = refused.saturating_add(1);
        !self.is_on(id)
    }
    /// A quirk's say at a place where its behaviour and the corrected one differ: notes a hit, true if the quirk is on.
    #[must_use]
    #[inline]
    pub fn quirk(&mut self, id: GuardId) -> bool {
        self.hit.set(id, true);
        self.is_on(id)
    }
    /// Whether a condition of this guard was ever refused (or a quirk's place reached).
    #[must_use]
    pub fn was_hit(&self, id: GuardId) -> bool {
        self.hit.has(id)
    }
    /// How often a condition of this guard did not hold.
    #[must_use]
    pub fn refusals(&self, id: GuardId) -> u32 {
        self.refused[usize::from(id.0)]
    }
    /// Takes over the hits of another node, for the summary of a run.
    pub fn merge_hits(&mut self, other: &Self) {
        for (mine, theirs) in self.refused.iter_mut().zip(&other.refused) {
            *mine = mine.saturating_add(*theirs);
        }
        self.hit.merge(&other.hit);
    }
}

/// The rooms, in order of their first bit.
const ROOMS: [(&str, &[Row]); WORDS] = [
    ("log", log::ROWS),
    ("replication", replication::ROWS),
    ("controller", controller::ROWS),
    ("client", client::ROWS),
    ("mirror", mirror::ROWS),
    ("transactions", transactions::ROWS),
    ("prototype", prototype::ROWS),
    ("alignment", alignment::ROWS),
    ("quorum", quorum::ROWS),
];

/// All rows, in order of bit.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    ROOMS.into_iter().flat_map(|(_, rows)| rows)
}

/// The room that a guard or quirk belongs to.
#[must_use]
pub fn room(id: GuardId) -> &'static str {
    ROOMS.get(usize::from(id.0 / 64)).map_or("", |(name, _)| name)
}

/// Finds a row by its name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Row> {
    rows().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bits_are_unique() {
        let mut names: Vec<_> = rows().map(|r| r.name).collect();
        let mut bits: Vec<_> = rows().map(|r| r.id).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        bits.sort_unstable();
        bits.dedup();
        assert_eq!((names.len(), bits.len()), (count, count));
        for (name, rows) in ROOMS {
            assert!(rows.iter().all(|row| room(row.id) == name), "{name} has a base of its own, in order");
        }
    }

    #[test]
    fn a_set_survives_its_text() {
        let mut set = GuardSet::default();
        [replication::FetchOffsetMatches, prototype::BumpWaitsForCompany].iter().for_each(|id| set.set(*id, true));
        assert!(set.has(replication::FetchOffsetMatches) && set.has(prototype::BumpWaitsForCompany));
        assert!(!set.has(replication::ReconcileByEpoch));
        assert_eq!(GuardSet::from_hex(&set.hex()), Some(set));
        assert_eq!(GuardSet::from_hex("00ff"), None);
        assert_eq!(GuardSet::from_hex(&"é".repeat(8 * WORDS)), None);
    }

    #[test]
    fn a_refused_condition_is_a_hit_and_passes_only_when_off() {
        let mut guards = Guards::default();
        let id = replication::FetchOffsetMatches;
        assert!(guards.admits(id, true));
        assert!(!guards.was_hit(id));
        assert!(!guards.admits(id, false));
        assert!(guards.was_hit(id));
        guards.set(id, false);
        assert!(guards.admits(id, false));
        assert_eq!(guards.refusals(id), 2);
    }
}
