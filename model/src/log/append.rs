//! Appending, as leader and as follower. Judging comes first and changes nothing; then the bytes are written; only then do
//! the tables follow. A failed write is taken back, so an append happens whole or not at all.

use crate::guards::points::Point;
use crate::guards::{log as guard, Guards};
use crate::ids::{LeaderEpoch, Now, Offset};
use crate::log::epoch_cache::EpochCache;
use crate::log::log::Log;
use crate::log::policy::LogPolicy;
use crate::log::producer_state::{ProducerRefusal, ProducerStates, Verdict};
use crate::log::segment::Segment;
use crate::ports::{Disk, DiskError, FileName};
use crate::record::{stamp, views, BatchError, BatchView};
use crate::trace::Origin;
use crate::wire::errors::ErrorCode;
use bytes::{Bytes, BytesMut};

/// What an append did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendInfo {
    /// Offset of the first record appended (of the known one, if it was a duplicate).
    pub base: Offset,
    /// The offset after the last record appended.
    pub next: Offset,
    /// Epoch of the last batch appended, −1 if none was.
    pub last_epoch: LeaderEpoch,
    /// Largest timestamp, milliseconds; −1 if nothing was appended.
    pub max_timestamp: i64,
    /// Bytes appended.
    pub bytes: u32,
    /// Batches appended. A follower's append may leave some or all of what it was given (R14).
    pub batches: u32,
    /// Whether a segment was closed: time for [`Log::plan_flush`] up to [`super::FlushUpto::Rolled`].
    pub rolled: bool,
    /// Nothing was appended: the batch is in the log already, at these offsets.
    pub duplicate: bool,
}

/// Why an append did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendError {
    /// Whoever sent it: malformed, or the CRC does not match.
    Corrupt(BatchError),
    /// The client: a kind of batch that clients do not send.
    InvalidRecord(&'static str),
    /// The client: larger than the topic allows.
    TooLarge {
        /// Bytes of the batch.
        size: u32,
        /// Bytes allowed.
        limit: u32,
    },
    /// The client: refused by its producer state.
    Producer(ProducerRefusal),
    /// The leader: offsets do not rise.
    OutOfOrderOffsets {
        /// The smallest base offset that would do.
        expected: Offset,
        /// The batch's base offset.
        got: Offset,
    },
    /// The leader, or we: the first batch begins below our end.
    BelowLogEnd {
        /// First offset of the first batch.
        first: Offset,
        /// Its last offset.
        last: Offset,
        /// Our end.
        end: Offset,
    },
    /// The disk; the log is offline now.
    Disk(DiskError),
    /// The log is offline since an earlier failure.
    Offline,
    /// The log was cut, and the checkpoint that says so is on its way to the disk.
    NotYet,
}

impl AppendError {
    /// What a client is told.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Corrupt(_) => ErrorCode::CorruptMessage,
            Self::InvalidRecord(_) => ErrorCode::InvalidRecord,
            Self::TooLarge { .. } => ErrorCode::MessageTooLarge,
            Self::Producer(ProducerRefusal::OutOfOrderSequence { .. }) => ErrorCode::OutOfOrderSequenceNumber,
            Self::Producer(ProducerRefusal::InvalidEpoch { .. }) => ErrorCode::InvalidProducerEpoch,
            Self::Producer(ProducerRefusal::CoordinatorFenced { .. }) => ErrorCode::TransactionCoordinatorFenced,
            Self::Producer(ProducerRefusal::TransactionOpen) => ErrorCode::InvalidTxnState,
            Self::OutOfOrderOffsets { .. } | Self::BelowLogEnd { .. } => ErrorCode::UnknownServerError,
            Self::Disk(_) | Self::Offline => ErrorCode::KafkaStorageError,
            // Clients come again.
            Self::NotYet => ErrorCode::NotLeaderOrFollower,
        }
    }
}

impl From<ProducerRefusal> for AppendError {
    fn from(refusal: ProducerRefusal) -> Self {
        Self::Producer(refusal)
    }
}

impl Log {
    /// Appends what a leader accepts: offsets and epoch are written into one copy of the batches, of which every replica's
    /// batches are slices. The copy is made in `arena`, of which it keeps its part: with room for a whole request there, one
    /// allocation serves all partitions of it.
    ///
    /// # Errors
    /// See [`AppendError`]; the log is unchanged.
    #[allow(clippy::too_many_arguments)] // the door's handles, the policy, and what is appended by whom
    pub fn append_as_leader(
        &mut self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        policy: &LogPolicy,
        batches: &Bytes,
        arena: &mut BytesMut,
        epoch: LeaderEpoch,
        origin: Origin,
        now: Now,
    ) -> Result<AppendInfo, AppendError> {
        self.admit_append(guards)?;
        if !self.admits_growth(guards) {
            return Err(AppendError::NotYet);
        }
        let client = origin == Origin::Client;
        let mut count = 0;
        for view in views(batches) {
            let view = view.map_err(AppendError::Corrupt)?;
            admit_batch(&view, guards, policy, client)?;
            count += 1;
        }
        if count == 0 {
            return Ok(self.nothing());
        }
        if let Some(duplicate) = self.judge_producers(batches, count, client, guards)? {
            return Ok(duplicate);
        }
        let tight;
        let policy = if guards.points.fires(Point::RollEarly) {
            tight = LogPolicy { segment_bytes: 1, ..*policy };
            &tight
        } else {
            policy
        };
        let stamped = stamped(batches, arena, self.end, epoch);
        let mark = self.mark();
        let mut info = self.nothing();
        let (mut noted, mut before) = (0, None);
        for view in views(&stamped) {
            let Ok(view) = view else { break };
            if self.must_note_before(policy, &view, now, &info, noted) {
                let written = views(&stamped).flatten().take(info.batches as usize).skip(noted as usize);
                before.get_or_insert_with(|| (self.epochs.clone(), self.producers.clone()));
                self.note(info.base, &info, written, guards);
                noted = info.batches;
            }
            let at = view.bytes().as_ptr() as usize - stamped.as_ptr() as usize;
            let batch = stamped.slice(at..at + view.size());
            if let Err(error) = self.write(disk, policy, batch, &view, now, &mut info) {
                return Err(self.fail(disk, guards, (mark, before), error));
            }
        }
        self.note(info.base, &info, views(&stamped).flatten().skip(noted as usize), guards);
        Ok(info)
    }

    /// Appends batches as another log has them: offsets, epochs and bytes stay. Each element holds whole batches. What has
    /// an epoch above `epoch_bound` is left, with all after it; everything is left while a cut is not durable.
    ///
    /// # Errors
    /// See [`AppendError`]; the log is unchanged.
    pub fn append_as_follower(
        &mut self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        policy: &LogPolicy,
        batches: &[Bytes],
        epoch_bound: LeaderEpoch,
        now: Now,
    ) -> Result<AppendInfo, AppendError> {
        self.admit_append(guards)?;
        let taken = self.judge_replicated(guards, batches, epoch_bound)?;
        let mark = self.mark();
        let mut info = self.nothing();
        if taken.count == 0 || !self.admits_growth(guards) {
            return Ok(info);
        }
        if taken.restart_at != self.active.base && self.is_empty() {
            if let Err(error) = self.restart_at(disk, taken.restart_at) {
                self.flags.offline = true;
                return Err(AppendError::Disk(error));
            }
        }
        info.base = taken.base;
        let mut left = taken.count;
        let (mut noted, mut before) = (0, None);
        for piece in batches {
            for view in views(piece).flatten().take(left as usize) {
                if self.must_note_before(policy, &view, now, &info, noted) {
                    let all = batches.iter().flat_map(|piece| views(piece).flatten());
                    let written = all.take(info.batches as usize).skip(noted as usize);
                    before.get_or_insert_with(|| (self.epochs.clone(), self.producers.clone()));
                    self.note(taken.base, &info, written, guards);
                    noted = info.batches;
                }
                let at = view.bytes().as_ptr() as usize - piece.as_ptr() as usize;
                let batch = piece.slice(at..at + view.size());
                if let Err(error) = self.write(disk, policy, batch, &view, now, &mut info) {
                    return Err(self.fail(disk, guards, (mark, before), error));
                }
                left -= 1;
            }
            if left == 0 {
                break;
            }
        }
        let written = batches.iter().flat_map(|piece| views(piece).flatten()).take(taken.count as usize);
        self.note(taken.base, &info, written.skip(noted as usize), guards);
        Ok(info)
    }

    fn nothing(&self) -> AppendInfo {
        AppendInfo {
            base: self.end,
            next: self.end,
            last_epoch: LeaderEpoch::NONE,
            max_timestamp: -1,
            bytes: 0,
            batches: 0,
            rolled: false,
            duplicate: false,
        }
    }

    fn admit_append(&self, guards: &mut Guards) -> Result<(), AppendError> {
        // 1. A write fails half-way. 2. Handling it is asynchronous. 3. Another append lands behind the torn batch, or gets
        // the same offsets (KAFKA-10778).
        if guards.admits(guard::OfflineIsSticky, !self.flags.offline) {
            Ok(())
        } else {
            Err(AppendError::Offline)
        }
    }

    /// Judges all batches of a leader's append by producer. `Some`: the request was appended before.
    fn judge_producers(
        &self,
        batches: &Bytes,
        count: u32,
        client: bool,
        guards: &mut Guards,
    ) -> Result<Option<AppendInfo>, AppendError> {
        // Later batches are judged as if the earlier ones were in; produce requests have one, so the copy is rare.
        let mut ahead = if count > 1 { Some(self.producers.clone()) } else { None };
        for view in views(batches).flatten() {
            match ahead.as_ref().unwrap_or(&self.producers).check(&view, client, guards)? {
                Verdict::Append => {}
                Verdict::Duplicate(known) => {
                    let mut info = self.nothing();
                    (info.base, info.next, info.duplicate) = (known.base, known.last.plus(1), true);
                    return Ok(Some(info));
                }
            }
            if let Some(ahead) = &mut ahead {
                ahead.apply(&view, || true);
            }
        }
        Ok(None)
    }

    fn judge_replicated(
        &self,
        guards: &mut Guards,
        batches: &[Bytes],
        epoch_bound: LeaderEpoch,
    ) -> Result<Taken, AppendError> {
        let mut taken = Taken { count: 0, base: self.end, restart_at: self.active.base };
        let mut next = self.end;
        for view in batches.iter().flat_map(|piece| views(piece)) {
            let view = view.map_err(AppendError::Corrupt)?;
            let (base, last) = (view.base_offset(), view.last_offset());
            if taken.count == 0 {
                // A log start in the middle of a batch (DeleteRecords): the leader can only send the whole batch
                // (KAFKA-6975, catalogue D12). It fits a log that holds nothing.
                let spans = self.has_nothing_to_read() && base < next && last >= next;
                if spans {
                    taken.restart_at = base.min(self.active.base);
                } else if !guards.admits(guard::AppendStartsAtEnd, base >= next) {
                    return Err(AppendError::BelowLogEnd { first: base, last, end: next });
                }
            } else if !guards.admits(guard::OffsetsMonotone, base >= next) {
                return Err(AppendError::OutOfOrderOffsets { expected: next, got: base });
            }
            // 1. A fetch is served. 2. Between locating and reading, the serving log is cut and refilled in a newer epoch.
            // 3. The answer holds batches that this follower's epoch knows nothing of (KAFKA-18723).
            if !guards.admits(guard::BatchEpochBounded, view.leader_epoch() <= epoch_bound) {
                break;
            }
            if !guards.admits(guard::CrcCheckedOnAppend, view.crc_valid()) {
                return Err(AppendError::Corrupt(crc_error(&view)));
            }
            if taken.count == 0 {
                taken.base = base;
            }
            taken.count += 1;
            next = view.next_offset();
        }
        Ok(taken)
    }

    fn has_nothing_to_read(&self) -> bool {
        self.start == self.end && self.is_empty()
    }

    /// Replaces the single, empty segment by one that begins earlier.
    fn restart_at(&mut self, disk: &mut dyn Disk, base: Offset) -> Result<(), DiskError> {
        let file = disk.create(self.dir, FileName::Segment(base.0))?;
        disk.remove(self.dir, FileName::Segment(self.active.base.0))?;
        self.active = Segment::new(base, file);
        // Nothing to wait for: all of what begins the log ends above what any checkpoint vouches for.
        self.recovery_point = self.recovery_point.min(base);
        self.flags.names = true;
        Ok(())
    }

    #[inline]
    fn write(
        &mut self,
        disk: &mut dyn Disk,
        policy: &LogPolicy,
        batch: Bytes,
        view: &BatchView<'_>,
        now: Now,
        info: &mut AppendInfo,
    ) -> Result<(), DiskError> {
        let size = batch.len() as u32;
        if self.roll_is_due(policy, view, now) {
            self.roll(disk)?;
            info.rolled = true;
        }
        disk.append(self.active.file, batch)?;
        self.active.note(view, policy.index_interval_bytes);
        self.end = view.next_offset();
        info.next = self.end;
        info.last_epoch = view.leader_epoch();
        info.max_timestamp = info.max_timestamp.max(view.max_timestamp());
        info.bytes += size;
        info.batches += 1;
        Ok(())
    }

    /// Kafka's `LogSegment.shouldRoll`, per batch.
    #[inline]
    fn roll_is_due(&self, policy: &LogPolicy, view: &BatchView<'_>, now: Now) -> bool {
        let segment = &self.active;
        if segment.size == 0 {
            return false;
        }
        let full = u64::from(segment.size) + view.size() as u64 > u64::from(policy.segment_bytes);
        let far = view.last_offset().0 - segment.base.0 > i64::from(i32::MAX);
        // By record time, so that replicas agree; by the clock where records carry none.
        let reached = if view.max_timestamp() >= 0 { view.max_timestamp() } else { now.wall_ms };
        let old = segment.first_timestamp >= 0 && reached - segment.first_timestamp > policy.segment_ms;
        full || far || old
    }

    /// Whether a segment is about to be closed in the middle of an append: the snapshot of producers that goes with it has to
    /// know the batches that this append has written before it. If a later one fails, what was noted is taken back with them.
    fn must_note_before(
        &self,
        policy: &LogPolicy,
        view: &BatchView<'_>,
        now: Now,
        info: &AppendInfo,
        noted: u32,
    ) -> bool {
        info.batches > noted && self.roll_is_due(policy, view, now)
    }

    /// The tables follow what was written.
    fn note<'a>(
        &mut self,
        base: Offset,
        info: &AppendInfo,
        written: impl Iterator<Item = BatchView<'a>>,
        guards: &mut Guards,
    ) {
        debug_assert!(info.next > base, "appended nothing and took note of it");
        for view in written {
            // A batch that spans the log start begins, for the cache, at the start.
            let begins = view.base_offset().max(self.start);
            self.flags.epochs |= self.epochs.assign(view.leader_epoch(), begins);
            let touched = self.producers.apply(&view, || !guards.admits(guard::PidResetAppliedOnAppend, false));
            self.flags.producers |= touched;
        }
    }

    fn fail(
        &mut self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        (mark, before): (super::log::Mark, Option<Tables>),
        error: DiskError,
    ) -> AppendError {
        self.undo(disk, guards, mark);
        if let Some((epochs, producers)) = before {
            (self.epochs, self.producers) = (epochs, producers);
        }
        self.flags.offline = true;
        AppendError::Disk(error)
    }
}

/// Epochs and producers as they were before an append that noted some of its batches already.
type Tables = (EpochCache, ProducerStates);

/// What a follower takes of an answer.
#[derive(Clone, Copy, Debug)]
struct Taken {
    count: u32,
    base: Offset,
    restart_at: Offset,
}

fn crc_error(view: &BatchView<'_>) -> BatchError {
    view.check_crc().err().unwrap_or(BatchError::Record)
}

/// What a leader refuses by looking at the batch alone (Kafka's LogValidator).
fn admit_batch(view: &BatchView<'_>, guards: &mut Guards, policy: &LogPolicy, client: bool) -> Result<(), AppendError> {
    let size = view.size() as u32;
    let limit = policy.max_message_bytes.min(policy.segment_bytes);
    if size > limit {
        return Err(AppendError::TooLarge { size, limit });
    }
    if !guards.admits(guard::CrcCheckedOnAppend, view.crc_valid()) {
        return Err(AppendError::Corrupt(crc_error(view)));
    }
    if client {
        let count = view.record_count();
        if view.is_control() {
            return Err(AppendError::InvalidRecord("a client sent a control batch"));
        }
        if count == 0 || count != view.last_offset_delta() + 1 {
            return Err(AppendError::InvalidRecord("the record count does not fit the offsets"));
        }
        if policy.compact && view.records().flatten().any(|record| record.key.is_none()) {
            return Err(AppendError::InvalidRecord("a compacted topic takes no record without a key"));
        }
        if view.producer().0 >= 0 && view.base_sequence() < 0 {
            return Err(AppendError::InvalidRecord("an idempotent producer sent no sequence"));
        }
    }
    Ok(())
}

/// One copy of the request, with offsets and epoch in the headers.
fn stamped(batches: &Bytes, arena: &mut BytesMut, first: Offset, epoch: LeaderEpoch) -> Bytes {
    arena.clear();
    arena.extend_from_slice(batches);
    let (mut at, mut base) = (0, first);
    while let Ok(view) = BatchView::parse(&arena[at..]) {
        let (size, span) = (view.size(), i64::from(view.last_offset_delta()) + 1);
        stamp(&mut arena[at..at + size], base, epoch);
        at += size;
        base = base.plus(span);
    }
    arena.split().freeze()
}
