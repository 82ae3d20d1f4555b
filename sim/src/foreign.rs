//! Sources whose answers are plausible, and wrong or old: as those of another implementation may be.
//!
//! A cluster that is *foreign* gives the brokers of other clusters, now and then, an answer that it gave before, or that it
//! could have given: the end of an epoch as it stood earlier, an older view of its topics, the wrong broker as the leader, a
//! batch once more.
//! Its own brokers and clients are told the truth. Nothing is made up that a source could not say: what a destination has to
//! stand is a source that is wrong, not one that talks nonsense.

use crate::rng::{Concern, Seed};
use mirrorlab_model::ids::{NodeId, PartitionIx};
use mirrorlab_model::wire::messages::{Body, EpochAnswer, FetchResponse, MetadataResponse};
use std::collections::BTreeMap;

/// What a foreign cluster is wrong about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answers {
    /// Ends of epochs: as they were when it was first asked.
    Epochs,
    /// Who leads, where a fetch went to the wrong broker: another of the brokers.
    Leaders,
    /// Topics, partitions and leaders: as they were when it was first asked.
    Metadata,
    /// Batches: the first one of a partition again, behind the last.
    Batches,
}

impl Answers {
    /// Whether an answer of this kind can be wrong about it.
    const fn are_in(self, body: &Body) -> bool {
        match self {
            Self::Epochs => matches!(body, Body::OffsetForLeaderEpochResponse(_)),
            Self::Leaders | Self::Batches => matches!(body, Body::FetchResponse(_)),
            Self::Metadata => matches!(body, Body::MetadataResponse(_)),
        }
    }
}

/// One rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The cluster that is foreign.
    pub cluster: u8,
    /// What it is wrong about.
    pub answers: Answers,
    /// How often.
    pub chance: f64,
}

/// All rules of a world, and what was said before.
#[derive(Clone, Debug, Default)]
pub struct Foreign {
    rules: Vec<(u32, Rule)>,
    next: u32,
    /// The first answers, by who gave them: the end of an epoch by partition, a view by who asked.
    ends: BTreeMap<(NodeId, PartitionIx), EpochAnswer>,
    views: BTreeMap<(NodeId, NodeId), MetadataResponse>,
    asked: u64,
    wrong: u64,
}

impl Foreign {
    /// A rule that holds until it is lifted.
    pub fn add(&mut self, rule: Rule) -> u32 {
        self.next += 1;
        self.rules.push((self.next, rule));
        self.next
    }
    /// Lifts a rule.
    pub fn lift(&mut self, id: u32) {
        self.rules.retain(|(other, _)| *other != id);
        if self.rules.is_empty() {
            self.ends.clear();
            self.views.clear();
        }
    }
    /// Whether every source tells the truth.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.rules.is_empty()
    }
    /// How many answers were not those that were given.
    #[must_use]
    pub fn wrong(&self) -> u64 {
        self.wrong
    }

    /// An answer on its way from a node of a cluster to a broker of another; true if it is another answer now.
    pub(crate) fn pass(&mut self, seed: Seed, cluster: u8, from: NodeId, to: NodeId, body: &mut Body) -> bool {
        let mut rules = self.rules.iter().map(|(_, rule)| *rule);
        let Some(rule) = rules.find(|rule| rule.cluster == cluster && rule.answers.are_in(body)) else { return false };
        self.asked += 1;
        let strikes = seed.stream(Concern::Foreign, u64::from(from.0), self.asked).chance(rule.chance);
        let changed = match body {
            Body::OffsetForLeaderEpochResponse(answer) => answer.parts.iter_mut().fold(false, |any, part| {
                let first = *self.ends.entry((from, part.partition)).or_insert(*part);
                let is_older = strikes && part.error.is_none() && first.error.is_none() && first.end != part.end;
                if is_older {
                    part.end = first.end;
                }
                any | is_older
            }),
            Body::MetadataResponse(answer) => {
                let first = self.views.entry((from, to)).or_insert_with(|| MetadataResponse::clone(answer));
                // Only what was asked for can be answered: another list of topics would be nonsense.
                let same_topics = first.topics.iter().map(|t| &t.name).eq(answer.topics.iter().map(|t| &t.name));
                let is_older = strikes && *first != **answer && same_topics;
                if is_older {
                    (**answer).clone_from(first);
                }
                is_older
            }
            Body::FetchResponse(answer) if strikes && rule.answers == Answers::Batches => repeat_batches(answer),
            Body::FetchResponse(answer) if strikes => answer.parts.iter_mut().fold(false, |any, part| {
                let Some(hint) = &mut part.current_leader else { return any };
                hint.node = Some(from);
                true
            }),
            _ => false,
        };
        self.wrong += u64::from(changed);
        changed
    }
}

/// Each partition that brings something brings its first batch again, behind the last one.
fn repeat_batches(answer: &mut FetchResponse) -> bool {
    let mut batches = Vec::with_capacity(answer.batches.len() + answer.parts.len());
    let before = answer.batches.len();
    for part in &mut answer.parts {
        let first = part.first_batch as usize;
        let own = answer.batches.get(first..first + part.batch_count as usize).unwrap_or_default();
        part.first_batch = batches.len() as u32;
        batches.extend(own.iter().chain(own.first()).cloned());
        part.batch_count = batches.len() as u32 - part.first_batch;
    }
    answer.batches = batches;
    answer.batches.len() > before
}

#[cfg(test)]
mod tests {
    use super::*;
    use mirrorlab_model::wire::messages::FetchPartAnswer;

    #[test]
    fn a_batch_comes_again_behind_the_last_of_its_partition() {
        let part =
            |first_batch, batch_count| FetchPartAnswer { first_batch, batch_count, ..FetchPartAnswer::default() };
        let batches = ["a", "b", "c"].map(bytes::Bytes::from).to_vec();
        let mut answer =
            FetchResponse { parts: vec![part(0, 2), part(2, 0), part(2, 1)], batches, ..FetchResponse::default() };
        assert!(repeat_batches(&mut answer));
        assert_eq!(answer.batches, ["a", "b", "a", "c", "c"]);
        let places: Vec<_> = answer.parts.iter().map(|part| (part.first_batch, part.batch_count)).collect();
        assert_eq!(places, [(0, 3), (3, 0), (3, 2)]);
        assert!(!repeat_batches(&mut FetchResponse::default()));
    }
}
