//! Questions about offsets: ListOffsets (10), OffsetForLeaderEpoch (4), DeleteRecords (2).

use crate::wire::codec::coder::{Coder, Done, Wire};
use crate::wire::codec::produce_fetch::isolation;
use crate::wire::codec::topics::By;
use crate::wire::messages::{
    DeleteRecordsRequest, DeleteRecordsResponse, ListOffsetsRequest, ListOffsetsResponse, OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
};

/// `TimeoutMs` of requests that hold none here: Kafka's default.
pub const TIMEOUT_MS: i32 = 60_000;

impl Wire for ListOffsetsRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.i32("ReplicaId", &mut self.replica.0)?;
        isolation(c, &mut self.isolation)?;
        c.topics(
            By::Name,
            &mut self.parts,
            |part| &mut part.partition,
            |c, index, part| {
                c.u32("PartitionIndex", index)?;
                c.i32("CurrentLeaderEpoch", &mut part.current_leader_epoch.0)?;
                c.i64("Timestamp", &mut part.timestamp)?;
                c.end()
            },
        )?;
        c.always_i32("TimeoutMs", TIMEOUT_MS)?;
        c.end()
    }
}

impl Wire for ListOffsetsResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.topics(
            By::Name,
            &mut self.parts,
            |part| &mut part.partition,
            |c, index, part| {
                c.u32("PartitionIndex", index)?;
                c.code(&mut part.error)?;
                c.i64("Timestamp", &mut part.timestamp)?;
                c.i64("Offset", &mut part.offset.0)?;
                c.i32("LeaderEpoch", &mut part.leader_epoch.0)?;
                c.end()
            },
        )?;
        c.end()
    }
}

impl Wire for OffsetForLeaderEpochRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.i32("ReplicaId", &mut self.replica.0)?;
        c.topics(
            By::Name,
            &mut self.parts,
            |part| &mut part.partition,
            |c, index, part| {
                c.u32("Partition", index)?;
                c.i32("CurrentLeaderEpoch", &mut part.current_leader_epoch.0)?;
                c.i32("LeaderEpoch", &mut part.epoch.0)?;
                c.end()
            },
        )?;
        c.end()
    }
}

impl Wire for OffsetForLeaderEpochResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.topics(
            By::Name,
            &mut self.parts,
            |part| &mut part.partition,
            |c, index, part| {
                c.code(&mut part.error)?;
                c.u32("Partition", index)?;
                c.i32("LeaderEpoch", &mut part.end.epoch.0)?;
                c.i64("EndOffset", &mut part.end.end.0)?;
                c.end()
            },
        )?;
        c.end()
    }
}

impl Wire for DeleteRecordsRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.topics(
            By::Name,
            &mut self.parts,
            |part| &mut part.0,
            |c, index, (_, offset)| {
                c.u32("PartitionIndex", index)?;
                c.i64("Offset", &mut offset.0)?;
                c.end()
            },
        )?;
        c.always_i32("TimeoutMs", TIMEOUT_MS)?;
        c.end()
    }
}

impl Wire for DeleteRecordsResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.topics(
            By::Name,
            &mut self.parts,
            |part| &mut part.0,
            |c, index, (_, error, low)| {
                c.u32("PartitionIndex", index)?;
                c.i64("LowWatermark", &mut low.0)?;
                c.code(error)?;
                c.end()
            },
        )?;
        c.end()
    }
}
