//! Failures that are alike: one signature, one group.

use super::Finished;
use crate::record::{Record, Verdict};
use crate::rows;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Runs of a group that are named, those with the fewest events.
const NAMED_MAX: usize = 10;

/// A failed run of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its seed.
    pub seed: u64,
    /// How many events it took.
    pub events: u64,
}

/// Runs that failed alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// How they ended.
    pub verdict: Verdict,
    /// The invariant that broke first, or what else they failed of.
    pub invariant: String,
    /// The scenario file.
    pub scenario: String,
    /// Where, numbers taken out.
    pub place: String,
    /// How many runs.
    pub runs: u64,
    /// The seed of the run with the fewest events.
    pub seed: u64,
    /// Its events.
    pub events: u64,
    /// Why it failed, in one line.
    pub reason: String,
    /// The command that does it again.
    pub repro: String,
    /// Its run folder, once it has one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// The runs with the fewest events, at most ten.
    pub fastest: Vec<Member>,
}

/// What failed runs have in common.
type Signature = (Verdict, String, String, String);

/// Groups by signature.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups(BTreeMap<Signature, Group>);

fn key(run: &Finished) -> Signature {
    (run.verdict, run.invariant.clone(), run.scenario.clone(), run.place.clone())
}

impl Groups {
    pub(super) fn knows(&self, run: &Finished) -> bool {
        run.verdict == Verdict::Pass || self.0.contains_key(&key(run))
    }

    pub(super) fn add(&mut self, run: &Finished) {
        if run.verdict == Verdict::Pass {
            return;
        }
        let group = self.0.entry(key(run)).or_insert_with(|| Group {
            verdict: run.verdict,
            invariant: run.invariant.clone(),
            scenario: run.scenario.clone(),
            place: run.place.clone(),
            runs: 0,
            seed: run.seed,
            events: u64::MAX,
            reason: String::new(),
            repro: String::new(),
            folder: String::new(),
            fastest: Vec::new(),
        });
        group.runs += 1;
        // Equal ones in order of seed: lines come in any order.
        if (run.events, run.seed) < (group.events, group.seed) || group.runs == 1 {
            group.seed = run.seed;
            group.events = run.events;
            group.reason.clone_from(&run.reason);
            group.repro.clone_from(&run.repro);
        }
        let member = Member { seed: run.seed, events: run.events };
        let at = group.fastest.partition_point(|m| (m.events, m.seed) < (member.events, member.seed));
        group.fastest.insert(at, member);
        group.fastest.truncate(NAMED_MAX);
    }

    pub(super) fn told(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = self.0.values().cloned().collect();
        groups.sort_by_key(|g| (std::cmp::Reverse(rows::rank(g.verdict)), g.events));
        groups
    }
}

/// What broke first in a run, and the kind of place where: the two parts of its signature, empty for a pass.
pub(super) fn signature(record: &Record) -> (String, String) {
    if record.verdict == Verdict::Pass {
        return (String::new(), String::new());
    }
    if let Some(first) = record.violations.first() {
        return (first.id.clone(), kind_of(&first.at));
    }
    let unmet = record.expectations.iter().find(|e| !e.met).filter(|_| record.verdict == Verdict::Unmet);
    let place = unmet.map_or_else(|| kind_of(&record.reason), |e| kind_of(&e.what));
    (record.verdict.name().to_owned(), place)
}

/// A place or a sentence without its numbers: `west/orders-3 at west/broker-1` is `west/orders-# at west/broker-#`.
#[must_use]
pub fn kind_of(place: &str) -> String {
    let mut out = String::new();
    for c in place.chars() {
        match c {
            '0'..='9' if out.ends_with('#') => {}
            '0'..='9' => out.push('#'),
            _ => out.push(c),
        }
    }
    out
}
