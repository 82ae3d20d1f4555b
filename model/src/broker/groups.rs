//! Committed positions of consumers without group membership.
//!
//! For now a group lives in the memory of the broker that its name hashes to, among the registered brokers: it is lost with
//! that broker's process. The persistent group coordinator (`__consumer_offsets`) takes this place later.

use crate::ids::{BrokerId, LeaderEpoch, Offset, PartitionIx};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Positions by group and partition.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    groups: BTreeMap<Arc<str>, BTreeMap<PartitionIx, (Offset, LeaderEpoch)>>,
}

impl Groups {
    /// Notes a position.
    pub fn commit(&mut self, group: &Arc<str>, partition: PartitionIx, offset: Offset, epoch: LeaderEpoch) {
        if !self.groups.contains_key(group) {
            self.groups.insert(group.clone(), BTreeMap::new());
        }
        if let Some(positions) = self.groups.get_mut(group) {
            positions.insert(partition, (offset, epoch));
        }
    }

    /// A position, or (−1, −1).
    #[must_use]
    pub fn position(&self, group: &str, partition: PartitionIx) -> (Offset, LeaderEpoch) {
        let found = self.groups.get(group).and_then(|g| g.get(&partition));
        found.copied().unwrap_or((Offset::UNKNOWN, LeaderEpoch::NONE))
    }

    /// All positions, for checkers.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, PartitionIx, Offset, LeaderEpoch)> {
        self.groups.iter().flat_map(|(group, g)| g.iter().map(move |(p, (o, e))| (group, *p, *o, *e)))
    }
}

/// The broker that keeps a group: by hash of the name, among the registered brokers in order of id.
#[must_use]
pub fn coordinator_of(group: &str, brokers: &[BrokerId]) -> Option<BrokerId> {
    // FNV-1a.
    let hash = group.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    brokers.get((hash % brokers.len().max(1) as u64) as usize).copied()
}
