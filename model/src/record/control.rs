//! Control records: end of a transaction, a quorum's leader, a mirror's producer reset.
//!
//! A control batch holds one record; its key is version and type, two bytes each, its value depends on the type.

use crate::ids::{LeaderEpoch, Offset, ProducerEpoch, ProducerId};
use crate::record::batch::{BatchError, BatchView};
use crate::record::builder::{BatchBuilder, BatchMeta};
use crate::record::varint::{put_unsigned, take_unsigned};
use bytes::{BufMut, Bytes, BytesMut};

/// What a control record says. Numbers are Kafka's; 7 is KIP-1279's and provisional.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i16)]
pub enum ControlType {
    /// A transaction was aborted.
    Abort = 0,
    /// A transaction was committed.
    Commit = 1,
    /// A new leader of the metadata quorum (KIP-595).
    LeaderChange = 2,
    /// First record of a metadata snapshot (KIP-630).
    SnapshotHeader = 3,
    /// Last record of a metadata snapshot.
    SnapshotFooter = 4,
    /// The quorum's feature version (KIP-853).
    KRaftVersion = 5,
    /// The quorum's voters (KIP-853).
    KRaftVoters = 6,
    /// All producers of the partition are forgotten: they were another cluster's (spec 5.3).
    MirrorPidReset = 7,
    /// Something of a later version, or unreadable: skipped.
    Unknown = -1,
}

impl ControlType {
    const KEY_VERSION: i16 = 0;

    /// The type of that number.
    #[must_use]
    pub const fn from_code(code: i16) -> Self {
        match code {
            0 => Self::Abort,
            1 => Self::Commit,
            2 => Self::LeaderChange,
            3 => Self::SnapshotHeader,
            4 => Self::SnapshotFooter,
            5 => Self::KRaftVersion,
            6 => Self::KRaftVoters,
            7 => Self::MirrorPidReset,
            _ => Self::Unknown,
        }
    }
    /// Reads a control record's key. Later versions may be longer; a negative version is malformed.
    #[must_use]
    pub fn from_key(key: &[u8]) -> Option<Self> {
        let version = i16::from_be_bytes(*key.first_chunk()?);
        let code = i16::from_be_bytes(*key.get(2..)?.first_chunk()?);
        (version >= 0).then_some(Self::from_code(code))
    }
    /// The key of a record of this type.
    #[must_use]
    pub const fn key(self) -> [u8; 4] {
        let (v, c) = (Self::KEY_VERSION.to_be_bytes(), (self as i16).to_be_bytes());
        [v[0], v[1], c[0], c[1]]
    }
}

/// What a control batch says, with its contents where somebody here reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlRecord<'a> {
    /// The transaction of the batch's producer ended.
    EndTxn {
        /// Committed or aborted.
        commit: bool,
        /// Epoch of the coordinator that decided.
        coordinator_epoch: i32,
    },
    /// The quorum has a leader.
    LeaderChange {
        /// Its node id.
        leader: i32,
    },
    /// Producers of the source are forgotten.
    MirrorPidReset {
        /// The source cluster; the prototype's later version leaves it out (correction K17).
        source_cluster_id: Option<&'a str>,
    },
    /// Something else; nothing here depends on its contents.
    Other(ControlType),
}

impl<'a> ControlRecord<'a> {
    /// Reads the first record of a control batch.
    ///
    /// # Errors
    /// `Record` if it is not a control batch, has no record or a malformed one.
    pub fn parse(batch: &BatchView<'a>) -> Result<Self, BatchError> {
        if !batch.is_control() {
            return Err(BatchError::Record);
        }
        let record = batch.records().next().ok_or(BatchError::Record)??;
        let control = record.key.and_then(ControlType::from_key).ok_or(BatchError::Record)?;
        Self::from_value(control, record.value.unwrap_or_default()).ok_or(BatchError::Record)
    }

    fn from_value(control: ControlType, value: &'a [u8]) -> Option<Self> {
        match control {
            ControlType::Abort | ControlType::Commit => {
                let coordinator_epoch = i32::from_be_bytes(*value.get(2..)?.first_chunk()?);
                Some(Self::EndTxn { commit: control == ControlType::Commit, coordinator_epoch })
            }
            ControlType::LeaderChange => {
                let leader = i32::from_be_bytes(*value.get(2..)?.first_chunk()?);
                Some(Self::LeaderChange { leader })
            }
            ControlType::MirrorPidReset => {
                let mut rest = value.get(2..)?;
                // 0 alone is "no tagged fields": the value without a cluster id.
                let source_cluster_id = match take_unsigned(&mut rest)? {
                    0 => None,
                    len => Some(std::str::from_utf8(rest.get(..len as usize - 1)?).ok()?),
                };
                Some(Self::MirrorPidReset { source_cluster_id })
            }
            other => Some(Self::Other(other)),
        }
    }
}

/// A control batch of one record. `meta.control` is set here.
#[must_use]
pub fn control_batch(meta: BatchMeta, control: ControlType, value: &[u8]) -> Bytes {
    let mut batch = BatchBuilder::with_capacity(BatchMeta { control: true, ..meta }, 96 + value.len());
    batch.push(meta.base_timestamp, Some(&control.key()), Some(value));
    batch.finish()
}

/// The marker that ends a producer's transaction in a partition: transactional, without a sequence.
#[must_use]
pub fn end_txn_marker(
    commit: bool,
    producer: ProducerId,
    producer_epoch: ProducerEpoch,
    coordinator_epoch: i32,
    timestamp: i64,
) -> Bytes {
    let meta =
        BatchMeta { producer, producer_epoch, transactional: true, base_timestamp: timestamp, ..BatchMeta::default() };
    let [a, b, c, d] = coordinator_epoch.to_be_bytes();
    let control = if commit { ControlType::Commit } else { ControlType::Abort };
    control_batch(meta, control, &[0, 0, a, b, c, d])
}

/// The record that separates a mirror's producers from local ones (spec 5.3): a quorum-style control batch with epoch 0,
/// restamped by the append. `None` leaves the cluster id out.
#[must_use]
pub fn mirror_pid_reset(source_cluster_id: Option<&str>, timestamp: i64) -> Bytes {
    let mut value = BytesMut::with_capacity(48);
    value.put_i16(0);
    if let Some(id) = source_cluster_id {
        put_unsigned(&mut value, id.len() as u32 + 1);
        value.put_slice(id.as_bytes());
    }
    value.put_u8(0);
    let meta = BatchMeta { leader_epoch: LeaderEpoch(0), base_timestamp: timestamp, ..BatchMeta::default() };
    control_batch(meta, ControlType::MirrorPidReset, &value)
}

/// The record with which a quorum leader opens its epoch (LeaderChangeMessage v0).
#[must_use]
pub fn leader_change(
    base: Offset,
    epoch: LeaderEpoch,
    leader: i32,
    voters: &[i32],
    granting: &[i32],
    timestamp: i64,
) -> Bytes {
    let mut value = BytesMut::with_capacity(16 + 5 * (voters.len() + granting.len()));
    value.put_i16(0);
    value.put_i32(leader);
    for list in [voters, granting] {
        put_unsigned(&mut value, list.len() as u32 + 1);
        for id in list {
            value.put_i32(*id);
            value.put_u8(0);
        }
    }
    value.put_u8(0);
    let meta = BatchMeta { base_offset: base, leader_epoch: epoch, base_timestamp: timestamp, ..BatchMeta::default() };
    control_batch(meta, ControlType::LeaderChange, &value)
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
