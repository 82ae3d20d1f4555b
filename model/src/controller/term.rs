//! A leader's term: how far each voter has come, what a majority has, and whether a majority still fetches (KIP-595,
//! KAFKA-15489).

use crate::guards::{quorum as guard, Guards};
use crate::ids::{Nanos, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// What a leader knows of another voter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progress {
    /// It has everything below, on its disk; `None` before its first fetch of this term.
    end: Option<i64>,
    /// When it is to be told again who leads.
    tell_at: Nanos,
}

/// One term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Where its first record stands.
    start: Option<i64>,
    others: BTreeMap<NodeId, Progress>,
    /// Who fetched since a majority last had.
    heard: BTreeSet<NodeId>,
    check_at: Nanos,
    fetch_timeout: Nanos,
}

impl Term {
    /// A term begins: nothing is known of anybody, and everybody is to be told.
    #[must_use]
    pub fn new(others: &[NodeId], now: Nanos, fetch_timeout: Nanos) -> Self {
        let blank = Progress { end: None, tell_at: now };
        Self {
            start: None,
            others: others.iter().map(|node| (*node, blank)).collect(),
            heard: BTreeSet::new(),
            check_at: now + patience(fetch_timeout),
            fetch_timeout,
        }
    }

    /// Its first record stands here.
    pub fn begin_at(&mut self, offset: i64) {
        self.start = Some(offset);
    }
    /// Where its first record stands.
    #[must_use]
    pub fn start(&self) -> Option<i64> {
        self.start
    }
    /// When no majority fetched for too long.
    #[must_use]
    pub fn check_at(&self) -> Nanos {
        self.check_at
    }
    /// It goes on without a majority.
    pub fn hold_on(&mut self, now: Nanos) {
        self.check_at = now + patience(self.fetch_timeout);
    }

    /// A voter asks for what comes after `from`: it has everything before.
    pub fn on_fetch(&mut self, node: NodeId, from: i64, now: Nanos) {
        let Some(progress) = self.others.get_mut(&node) else { return };
        progress.end = Some(from);
        progress.tell_at = now + half(self.fetch_timeout);
        self.heard.insert(node);
        // With this one, half of the others make a majority.
        if self.heard.len() >= self.others.len().div_ceil(2) {
            self.heard.clear();
            self.check_at = now + patience(self.fetch_timeout);
        }
    }

    /// Whether a voter has not been heard of for so long that it may not know who leads.
    #[must_use]
    pub fn is_to_be_told(&self, node: NodeId, now: Nanos) -> bool {
        self.others.get(&node).is_some_and(|progress| progress.tell_at <= now)
    }
    /// It is being told.
    pub fn told(&mut self, node: NodeId, now: Nanos) {
        if let Some(progress) = self.others.get_mut(&node) {
            progress.tell_at = now + half(self.fetch_timeout);
        }
    }
    /// When somebody is to be told next.
    #[must_use]
    pub fn tell_at(&self) -> Option<Nanos> {
        self.others.values().map(|progress| progress.tell_at).min()
    }

    /// What a majority has, if the leader has everything below `durable`; `None` if nothing of it may be committed.
    pub fn committed(&self, durable: i64, guards: &mut Guards) -> Option<i64> {
        let mut ends: Vec<i64> = self.others.values().map(|p| p.end.unwrap_or(-1)).collect();
        ends.push(durable);
        ends.sort_unstable();
        let majority = ends[(ends.len() - 1) / 2];
        let lone = durable > majority && guards.admits(guard::HighWatermarkByMajority, false);
        let end = if lone { durable } else { majority };
        // 1. A leader replicates records of an earlier term to a majority, and calls them committed. 2. It is gone. 3. One
        // whose last record is of a term in between is elected, by the rule, and cuts them.
        let own = self.start.is_some_and(|start| end > start);
        (end >= 0 && guards.admits(guard::CommitOwnEpochOnly, own)).then_some(end)
    }

    /// The other voters, those that have most first.
    #[must_use]
    pub fn successors(&self) -> Vec<NodeId> {
        let mut all: Vec<_> = self.others.iter().map(|(node, p)| (std::cmp::Reverse(p.end), *node)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, node)| node).collect()
    }
}

/// How long a leader goes without a majority that fetches: the followers have given it up by then.
fn patience(fetch_timeout: Nanos) -> Nanos {
    fetch_timeout + half(fetch_timeout)
}

fn half(time: Nanos) -> Nanos {
    Nanos(time.0 / 2)
}
