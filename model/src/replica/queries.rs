//! Questions about offsets and epochs that a leader answers (KIP-101, 207, 320).

use crate::guards::replication as guard;
use crate::ids::{BrokerId, LeaderEpoch, Now, Offset, PartitionIx};
use crate::ports::Cx;
use crate::record::batch::BatchView;
use crate::replica::fetch_serve::check_epoch;
use crate::replica::partition::{Hot, Replicas, mutant};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{EARLIEST, EpochAnswer, EpochEnd, EpochQuestion, Isolation, LATEST, OffsetAnswer, OffsetQuestion};

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
    pub fn epoch_end(&self, question: &EpochQuestion, cx: &mut Cx) -> EpochAnswer {
        let undefined = EpochEnd { epoch: LeaderEpoch::NONE, end: Offset::UNKNOWN };
        let partition = question.partition;
        let slot = match self.asked(partition, question.current_leader_epoch) {
            Ok(slot) => slot,
            Err(error) => return EpochAnswer { partition, error, end: undefined },
        };
        let Some(log) = self.logs[slot].as_ref() else {
            return EpochAnswer { partition, error: ErrorCode::KafkaStorageError, end: undefined };
        };
        let end = if question.epoch == LeaderEpoch::NONE {
            if mutant(cx.guards, guard::UndefinedEpochAnswer, true) {
                EpochEnd { epoch: LeaderEpoch::NONE, end: log.end() }
            } else {
                undefined
            }
        } else {
            log.end_offset_for(question.epoch)
        };
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
        let answer = |error, timestamp, offset, leader_epoch| OffsetAnswer {
            partition,
            error,
            timestamp,
            offset,
            leader_epoch,
        };
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
                answer(ErrorCode::None, -1, start, epoch_at(log, start))
            }
            LATEST => {
                if !cx.guards.admits(guard::EndKnownAfterEpochStart, known) {
                    return refuse(ErrorCode::OffsetNotAvailable);
                }
                answer(ErrorCode::None, -1, end, log.latest_epoch().unwrap_or(LeaderEpoch::NONE))
            }
            wanted => match self.search(slot, wanted, end, cx) {
                Some((offset, timestamp)) => answer(ErrorCode::None, timestamp, offset, epoch_at(log, offset)),
                None if !known => refuse(ErrorCode::OffsetNotAvailable),
                None => answer(ErrorCode::None, -1, Offset::UNKNOWN, LeaderEpoch::NONE),
            },
        }
    }

    /// The first record at or after a time, below `end`. Reads the log from its start: rare, and exact.
    fn search(&self, slot: usize, wanted: i64, end: Offset, cx: &mut Cx) -> Option<(Offset, i64)> {
        let log = self.logs[slot].as_ref()?;
        let mut hint = crate::log::ReadHint::default();
        let mut from = log.start();
        let mut batches = Vec::new();
        while from < end {
            batches.clear();
            log.read(cx.disk, from, end, 1 << 20, true, &mut hint, &mut batches).ok()?;
            if batches.is_empty() {
                return None;
            }
            for bytes in &batches {
                let batch = BatchView::parse(bytes).ok()?;
                from = batch.next_offset();
                if batch.max_timestamp() < wanted {
                    continue;
                }
                for record in batch.records() {
                    match record {
                        Ok(r) if r.timestamp >= wanted && r.offset < end => return Some((r.offset, r.timestamp)),
                        Ok(_) => {}
                        // Compressed: only the batch is known, as with brokers that do not look inside.
                        Err(_) => return Some((batch.base_offset(), batch.max_timestamp())),
                    }
                }
            }
        }
        None
    }
}

fn epoch_at(log: &crate::log::Log, offset: Offset) -> LeaderEpoch {
    log.epoch_of(offset).unwrap_or(LeaderEpoch::NONE)
}
