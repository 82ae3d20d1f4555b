//! The metadata log: Fetch as a quorum member sends it (18, KIP-595, 1166) and FetchSnapshot (1, KIP-630).
//!
//! Errors stand at the partition, where Kafka has all of these but that of a wrong cluster id.

use crate::ids::{controller_id, controller_node, BrokerId, LeaderEpoch, NodeId, Offset};
use crate::wire::codec::coder::{Coder, Done, Wire, Wrong};
use crate::wire::codec::produce_fetch::{diverges, diverging, endpoints};
use crate::wire::codec::records::Records;
use crate::wire::codec::tags::{self, Tag};
use crate::wire::messages::{FetchSnapshotRequest, FetchSnapshotResponse, RaftFetchRequest, RaftFetchResponse};
use crate::wire::size::METADATA_TOPIC;

/// The id of the metadata topic (KIP-516).
pub const METADATA_TOPIC_ID: u128 = 1;

/// The directory id of a quorum member: it has one disk, so that its id is enough.
#[must_use]
pub const fn voter_directory(replica: i32) -> u128 {
    (0x6469_7265_6374_6f72_u128 << 64) | replica as u32 as u128
}

/// The one topic, by id or name, and the one partition of it.
pub(super) fn single(c: &mut Coder<'_>, named: bool, partition: impl FnOnce(&mut Coder<'_>) -> Done) -> Done {
    one(c, "Topics")?;
    if named {
        c.always_text("Name", Some(METADATA_TOPIC))?;
    } else {
        c.always_uuid("TopicId", METADATA_TOPIC_ID)?;
    }
    one(c, "Partitions")?;
    partition(c)?;
    c.end()
}

pub(super) fn one(c: &mut Coder<'_>, field: &'static str) -> Done {
    match c.length(field, Some(1))? {
        Some(1) => Ok(()),
        other => Err(c.wrong(field, Wrong::Value(other.map_or(-1, |len| len as i64)))),
    }
}

fn cluster_tag(c: &mut Coder<'_>) -> Done {
    let id = c.dir.cluster_id();
    c.always_text("ClusterId", Some(id))
}

impl Wire for RaftFetchRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.u32("MaxWaitMs", &mut self.max_wait_ms)?;
        c.always_i32("MinBytes", 0)?;
        c.u32("MaxBytes", &mut self.max_bytes)?;
        c.always_i8("IsolationLevel", 0)?;
        c.always_i32("SessionId", 0)?;
        c.always_i32("SessionEpoch", -1)?;
        let (replica, high_watermark) = (&mut self.replica, &mut self.high_watermark);
        c.preset(replica, -1);
        c.preset(&mut high_watermark.0, i64::MAX);
        let directory = &mut self.directory;
        c.preset(directory, 0);
        single(c, false, |c| {
            c.always_i32("Partition", 0)?;
            c.i32("CurrentLeaderEpoch", &mut self.current_epoch.0)?;
            c.i64("FetchOffset", &mut self.fetch_offset.0)?;
            c.i32("LastFetchedEpoch", &mut self.last_fetched_epoch.0)?;
            c.always_i64("LogStartOffset", -1)?;
            c.always_i32("PartitionMaxBytes", i32::MAX)?;
            c.tags(&mut [
                Tag::new(0, *directory != 0 || c.reads(), &mut |c| c.uuid("ReplicaDirectoryId", directory)),
                Tag::new(1, true, &mut |c| c.i64("HighWatermark", &mut high_watermark.0)),
            ])
        })?;
        c.always_empty("ForgottenTopicsData", false)?;
        c.always_text("RackId", Some(""))?;
        c.tags(&mut [
            Tag::new(0, true, &mut cluster_tag),
            Tag::new(1, true, &mut |c| {
                c.i32("ReplicaId", replica)?;
                c.always_i64("ReplicaEpoch", -1)?;
                c.end()
            }),
        ])
    }
}

impl Wire for RaftFetchResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.always_i16("ErrorCode", 0)?;
        c.always_i32("SessionId", 0)?;
        c.preset(&mut self.epoch, LeaderEpoch::NONE);
        let mut leader = self.leader;
        single(c, false, |c| self.partition(c, &mut leader))?;
        let mut list: Vec<_> = leader.iter().map(|node| (BrokerId(controller_id(*node)), *node)).collect();
        c.tags(&mut [Tag::new(0, leader.is_some(), &mut |c| endpoints(c, &mut list))])?;
        self.leader = leader;
        Ok(())
    }
}

impl RaftFetchResponse {
    fn partition(&mut self, c: &mut Coder<'_>, leader: &mut Option<NodeId>) -> Done {
        c.always_i32("PartitionIndex", 0)?;
        c.code(&mut self.error)?;
        c.i64("HighWatermark", &mut self.high_watermark.0)?;
        c.always_i64("LastStableOffset", -1)?;
        c.always_i64("LogStartOffset", -1)?;
        c.always_empty("AbortedTransactions", true)?;
        c.always_i32("PreferredReadReplica", -1)?;
        let mut records = Records::pass(c, "Records", &self.batches)?;
        let led = leader.is_some() || self.epoch != LeaderEpoch::NONE;
        let (diverges, snapshot, pieces) = (diverges(c, self.diverging), self.snapshot.is_some(), records.in_pieces());
        c.tags(&mut [
            Tag::new(0, diverges, &mut |c| diverging(c, &mut self.diverging)),
            Tag::new(1, led, &mut |c| {
                c.maybe_controller("LeaderId", leader)?;
                c.i32("LeaderEpoch", &mut self.epoch.0)?;
                c.end()
            }),
            Tag::new(2, snapshot, &mut |c| {
                let (end, epoch) = self.snapshot.get_or_insert_default();
                c.i64("EndOffset", &mut end.0)?;
                c.i32("Epoch", &mut epoch.0)?;
                c.end()
            }),
            Tag::new(tags::PIECES, pieces, &mut |c| records.lengths(c)),
        ])?;
        records.cut(c, &mut self.batches)
    }
}

impl Coder<'_> {
    /// A controller, by its id.
    pub(super) fn controller(&mut self, field: &'static str, node: &mut NodeId) -> Done {
        let mut some = Some(*node);
        self.maybe_controller(field, &mut some)?;
        *node = some.ok_or_else(|| self.wrong(field, Wrong::Value(-1)))?;
        Ok(())
    }
    /// A controller or none, by its id.
    pub(super) fn maybe_controller(&mut self, field: &'static str, node: &mut Option<NodeId>) -> Done {
        let mut id = node.map_or(-1, controller_id);
        self.i32(field, &mut id)?;
        *node = controller_node(id);
        if node.is_none() && id != -1 {
            return Err(self.wrong(field, Wrong::Value(id.into())));
        }
        Ok(())
    }
}

impl Wire for FetchSnapshotRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.i32("ReplicaId", &mut self.replica)?;
        c.u32("MaxBytes", &mut self.max_bytes)?;
        let directory = voter_directory(self.replica);
        single(c, true, |c| {
            c.always_i32("Partition", 0)?;
            c.always_i32("CurrentLeaderEpoch", -1)?;
            c.i64("EndOffset", &mut self.snapshot.0 .0)?;
            c.i32("Epoch", &mut self.snapshot.1 .0)?;
            c.end()?;
            c.u64("Position", &mut self.position)?;
            c.tags(&mut [Tag::new(0, true, &mut |c| c.always_uuid("ReplicaDirectoryId", directory))])
        })?;
        c.tags(&mut [Tag::new(0, true, &mut cluster_tag)])
    }
}

impl Wire for FetchSnapshotResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.always_i16("ErrorCode", 0)?;
        single(c, true, |c| {
            c.always_i32("Index", 0)?;
            c.code(&mut self.error)?;
            // The message does not repeat which snapshot, nor who leads: the asker knows the first and finds out the other.
            c.always_i64("EndOffset", Offset::UNKNOWN.0)?;
            c.always_i32("Epoch", -1)?;
            c.end()?;
            c.u64("Size", &mut self.size)?;
            c.u64("Position", &mut self.position)?;
            let mut records = Records::pass(c, "UnalignedRecords", &self.bytes)?;
            let pieces = records.in_pieces();
            c.tags(&mut [
                Tag::new(0, true, &mut |c| {
                    c.always_i32("LeaderId", -1)?;
                    c.always_i32("LeaderEpoch", -1)?;
                    c.end()
                }),
                Tag::new(tags::PIECES, pieces, &mut |c| records.lengths(c)),
            ])?;
            records.cut(c, &mut self.bytes)
        })?;
        c.end()
    }
}
