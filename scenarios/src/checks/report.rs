//! What checks have to say: violations with their place, and excuses that were used.

use super::excuses::{Excuse, Excused, Whose};
use super::roster::Roster;
use super::sight::Sight;
use mirrorlab_model::ids::{Nanos, NodeId, PartitionIx};
use mirrorlab_reports::record::Violation;
use std::fmt::{Display, Write};

/// Where and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// The cluster.
    pub cluster: u8,
    /// The partition, if it is about one.
    pub partition: Option<PartitionIx>,
    /// The node, if it is about one.
    pub node: Option<NodeId>,
    /// Simulated time.
    pub now: Nanos,
    /// Number of the event.
    pub step: u64,
}

impl At {
    /// The same place, another node.
    #[must_use]
    pub fn with_node(self, node: Option<NodeId>) -> Self {
        Self { node, ..self }
    }
}

/// A finding before its place has a name.
#[derive(Clone, Debug)]
struct Found {
    id: &'static str,
    at: At,
    expected: String,
    got: String,
    whose: Whose,
}

/// Where checks leave what they find.
#[derive(Clone, Debug, Default)]
pub struct Report {
    found: Vec<Found>,
    /// Excuses used so far, without repetition of the same text.
    pub excused: Vec<Excused>,
    /// Ids that are not reported.
    muted: Vec<&'static str>,
}

/// Excuses kept of a run; further ones say nothing new.
const EXCUSES_MAX: usize = 200;

impl Report {
    /// A report that leaves out some checks.
    #[must_use]
    pub fn without(muted: Vec<&'static str>) -> Self {
        Self { muted, ..Self::default() }
    }
    /// An empty report that leaves out the same checks.
    #[must_use]
    pub fn fresh(&self) -> Self {
        Self::without(self.muted.clone())
    }
    /// A property does not hold.
    #[cold]
    pub fn broken(&mut self, id: &'static str, at: At, expected: impl Display, got: impl Display) {
        self.broken_by(id, at, expected, got, Whose::System);
    }
    /// A property does not hold, and whose it is.
    #[cold]
    pub fn broken_by(&mut self, id: &'static str, at: At, expected: impl Display, got: impl Display, whose: Whose) {
        if !self.muted.contains(&id) {
            self.found.push(Found { id, at, expected: expected.to_string(), got: got.to_string(), whose });
        }
    }
    /// Whether one more excuse would be kept: else its text need not be made.
    #[must_use]
    pub fn takes_excuses(&self) -> bool {
        self.excused.len() < EXCUSES_MAX
    }
    /// A property does not hold, for a reason on the list.
    #[cold]
    pub fn excuse(&mut self, id: &'static str, excuse: Excuse, text: impl Display) {
        let text = text.to_string();
        let known = |e: &Excused| e.id == id && e.excuse == excuse && e.text == text;
        if self.takes_excuses() && !self.excused.iter().any(known) {
            self.excused.push(Excused { id, excuse, text });
        }
    }
    /// Nothing was found since the last call.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.found.is_empty()
    }
    /// Takes what was found, with names for its places.
    pub(super) fn take<S: Sight>(&mut self, sight: &S, roster: &Roster, into: &mut Vec<Violation>) {
        for found in self.found.drain(..) {
            into.push(Violation {
                id: found.id.to_owned(),
                says: super::explain(found.id).map_or("", |info| info.statement).to_owned(),
                at: place_name(sight, roster, found.at),
                expected: found.expected,
                got: found.got,
                whose: found.whose.name().to_owned(),
                time_ns: found.at.now.0,
                step: found.at.step,
            });
        }
    }
}

/// `east/orders-3 at east/broker-1`.
pub fn place_name<S: Sight>(sight: &S, roster: &Roster, at: At) -> String {
    let mut text = String::new();
    let cluster = roster.clusters.get(usize::from(at.cluster)).map_or("?", |c| &*c.name);
    match at.partition {
        None => text.push_str(cluster),
        Some(ix) => {
            let named = sight.image(at.cluster).and_then(|image| {
                let partition = image.partition(ix)?;
                Some((image.topic(partition.topic)?.name.clone(), partition.number))
            });
            let _ = match named {
                Some((topic, number)) => write!(text, "{cluster}/{topic}-{number}"),
                None => write!(text, "{cluster}/partition {ix}"),
            };
        }
    }
    if let Some(node) = at.node {
        let _ = write!(text, " at {}", roster.name(node));
    }
    text
}
