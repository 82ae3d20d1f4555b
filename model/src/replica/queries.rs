//! Questions about offsets and epochs that a leader answers (KIP-101, 207, 320).

use crate::guards::replication as guard;
use crate::ids::{BrokerId, LeaderEpoch, Now, Offset, PartitionIx};
use crate::ports::Cx;
use crate::replica::fetch_serve::check_epoch;
use crate::replica::partition::{Hot, Replicas};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    EpochAnswer, EpochEnd, EpochQuestion, Isolation, OffsetAnswer, OffsetQuestion, EARLIEST, LATEST,
};

impl Replicas {
    /// The slot of a partition that is led here, in the epoch that the asker believes in.
    pub(crate) fn asked(&self, partition: PartitionIx, epoch: LeaderEpoch) -> Result<usize, ErrorCode> {
        let slot = self.slot(partition).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let hot = &self.hot[slot];
        if hot.flags & Hot::OFFLINE != 0 {
            return Err(ErrorCode::KafkaStorageError);
        }
        let error = check_epoch(epoch, hot.leader_epoch);
        if !error.is_none() {
            return Err(error);
        }
        if self.lead(slot).is_none() {
            return Err(ErrorCode::NotLeaderOrFollower);
        }
        Ok(slot)
    }

    /// Where does this epoch end (KIP-279: the answer names the epoch it stands for)?
    pub fn epoch_end(&self, question: &EpochQuestion) -> EpochAnswer {
        let undefined = EpochEnd { epoch: LeaderEpoch::NONE, end: Offset::UNKNOWN };
        let partition = question.partition;
        let slot = match self.asked(partition, question.current_leader_epoch) {
            Ok(slot) => slot,
            Err(error) => return EpochAnswer { partition, error, end: undefined },
        };
        let Some(log) = self.logs[slot].as_ref() else {
            return EpochAnswer { partition, error: ErrorCode::KafkaStorageError, end: undefined };
        };
        let end = if question.epoch == LeaderEpoch::NONE { undefined } else { log.end_offset_for(question.epoch) };
        EpochAnswer { partition, error: ErrorCode::None, end }
    }

    /// Offsets by time, for a client of this isolation or a follower.
    pub fn list_offset(
        &self,
        replica: BrokerId,
        isolation: Isolation,
        question: &OffsetQuestion,
        _now: Now,
        cx: &mut Cx,
    ) -> OffsetAnswer {
        let partition = question.partition;
        let answer =
            |error, timestamp, offset, leader_epoch| OffsetAnswer { partition, error, timestamp, offset, leader_epoch };
        let refuse = |error| answer(error, -1, Offset::UNKNOWN, LeaderEpoch::NONE);
        let slot = match self.asked(partition, question.current_leader_epoch) {
            Ok(slot) => slot,
            Err(error) => return refuse(error),
        };
        let Some(log) = self.logs[slot].as_ref() else { return refuse(ErrorCode::KafkaStorageError) };
        let Some(lead) = self.lead(slot) else { return refuse(ErrorCode::NotLeaderOrFollower) };
        let client = replica.0 < 0;
        let end = match (client, isolation) {
            (false, _) => log.end(),
            (true, Isolation::ReadUncommitted) => log.high_watermark(),
            (true, Isolation::ReadCommitted) => log.last_stable(),
        };
        // A new leader may know a smaller watermark than the old one told (KIP-207).
        let known = !client || log.high_watermark() >= self.leaders[lead].epoch_start;
        match question.timestamp {
            EARLIEST => {
                let start = log.start();
                answer(ErrorCode::None, -1, start, log.epoch_of(start))
            }
            LATEST => {
                if !cx.guards.admits(guard::EndKnownAfterEpochStart, known) {
                    return refuse(ErrorCode::OffsetNotAvailable);
                }
                answer(ErrorCode::None, -1, end, log.latest_epoch())
            }
            wanted => match log.offset_for_timestamp(cx.disk, wanted, end) {
                Err(error) => refuse(error.code()),
                Ok(Some((offset, timestamp))) => answer(ErrorCode::None, timestamp, offset, log.epoch_of(offset)),
                Ok(None) if !known => refuse(ErrorCode::OffsetNotAvailable),
                Ok(None) => answer(ErrorCode::None, -1, Offset::UNKNOWN, LeaderEpoch::NONE),
            },
        }
    }
}
