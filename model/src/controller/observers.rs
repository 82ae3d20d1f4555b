//! Observers fetch the metadata log and its snapshots (KIP-595, KIP-630, KIP-1166).
//!
//! An answer carries everything up to the log end, committed or not; the high watermark beside it says what may be applied.
//! An observer that holds something else at an offset is told where its log diverges; one that is too far behind is told
//! which snapshot to load. A fetch without news waits, with one armed timer per observer at most.

use crate::controller::store::Store;
use crate::guards::points::Point;
use crate::guards::{quorum as guard, Guards};
use crate::ids::{ConnId, LeaderEpoch, MetadataOffset, Nanos, NodeId, Offset};
use crate::log::ReadHint;
use crate::ports::Disk;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    EpochEnd, FetchSnapshotRequest, FetchSnapshotResponse, RaftFetchRequest, RaftFetchResponse,
};
use std::collections::BTreeMap;

/// The leader's view of the quorum, for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The leader: this node.
    pub leader: NodeId,
    /// Its epoch.
    pub epoch: LeaderEpoch,
    /// Committed up to here.
    pub high_watermark: MetadataOffset,
}

/// A fetch that waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// On which connection.
    pub conn: ConnId,
    /// Under which number.
    pub correlation: u32,
    /// What is asked.
    pub request: RaftFetchRequest,
    /// Until when.
    pub deadline: Nanos,
}

/// One that fetches.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    waiting: Option<Waiting>,
    armed: bool,
    hint: ReadHint,
}

/// All that fetch, by node id within the cluster.
#[derive(Clone, Debug, Default)]
pub struct Observers {
    by_id: BTreeMap<i32, Observer>,
}

impl Observers {
    /// Keeps a fetch until there is news. Gives back the one it replaces, and whether a timer must be armed.
    pub fn wait(&mut self, waiting: Waiting) -> (Option<Waiting>, bool) {
        let observer = self.by_id.entry(waiting.request.replica).or_default();
        let arm = !std::mem::replace(&mut observer.armed, true);
        (observer.waiting.replace(waiting), arm)
    }
    /// An observer's timer fired. Gives the fetch whose time is over, or the time at which to look again.
    pub fn on_timer(&mut self, id: i32, now: Nanos) -> (Option<Waiting>, Option<Nanos>) {
        let Some(observer) = self.by_id.get_mut(&id) else { return (None, None) };
        observer.armed = false;
        match &observer.waiting {
            Some(waiting) if waiting.deadline > now => {
                observer.armed = true;
                (None, Some(waiting.deadline))
            }
            Some(_) => (observer.waiting.take(), None),
            None => (None, None),
        }
    }
    /// Takes out every fetch that waits: there is news.
    pub fn take_waiting(&mut self) -> Vec<Waiting> {
        self.by_id.values_mut().filter_map(|observer| observer.waiting.take()).collect()
    }
    /// A connection is gone, and what waited on it.
    pub fn closed(&mut self, conn: ConnId) {
        for observer in self.by_id.values_mut() {
            if observer.waiting.as_ref().is_some_and(|w| w.conn == conn) {
                observer.waiting = None;
            }
        }
    }
    /// Where this observer's next read is expected on disk.
    pub fn hint(&mut self, id: i32) -> &mut ReadHint {
        &mut self.by_id.entry(id).or_default().hint
    }
}

/// Answers a fetch, and says whether there is news in the answer.
pub fn fetch(
    store: &Store,
    disk: &dyn Disk,
    view: View,
    request: &RaftFetchRequest,
    hint: &mut ReadHint,
    guards: &mut Guards,
) -> (RaftFetchResponse, bool) {
    let mut answer = RaftFetchResponse {
        error: ErrorCode::None,
        leader: Some(view.leader),
        epoch: view.epoch,
        high_watermark: view.high_watermark,
        ..RaftFetchResponse::default()
    };
    if let Err(error) = check_epoch(view, request) {
        answer.error = error;
        return (answer, true);
    }
    let log = store.log();
    let from = Offset(request.fetch_offset.0);
    if from < log.start() || from.0 < 0 || !is_comparable(store, from, request.last_fetched_epoch, guards) {
        answer.snapshot = store.snapshots().last().copied();
        return (answer, true);
    }
    if let Some(end) = divergence(store, from, request.last_fetched_epoch) {
        if !guards.admits(guard::DivergenceNamed, false) {
            answer.diverging = Some(end);
            return (answer, true);
        }
    }
    let most = if guards.points.fires(Point::MetadataShort) { 1 } else { request.max_bytes };
    if log.read(disk, from, log.end(), most, true, hint, &mut answer.batches).is_err() {
        answer.error = ErrorCode::KafkaStorageError;
        return (answer, true);
    }
    let news = !answer.batches.is_empty() || view.high_watermark > request.high_watermark;
    (answer, news)
}

fn check_epoch(view: View, request: &RaftFetchRequest) -> Result<(), ErrorCode> {
    if request.current_epoch != LeaderEpoch::NONE && request.current_epoch < view.epoch {
        // The epoch and leader beside the error are the news.
        return Err(ErrorCode::FencedLeaderEpoch);
    }
    if request.current_epoch > view.epoch {
        return Err(ErrorCode::UnknownLeaderEpoch);
    }
    Ok(())
}

/// Whether our log reaches back to where a log that ends at `from` with a record of `last` may part from it.
///
/// A leader of epoch 2 is cut off with records of its own from 21 on. Its successor's epoch 3 begins at 21, and its log, behind a
/// snapshot, at 25. The first one asks for 27: in the log that is left, epoch 2 "ends" at 25, and told that it would keep four
/// records that nobody else has.
fn is_comparable(store: &Store, from: Offset, last: LeaderEpoch, guards: &mut Guards) -> bool {
    let start = store.log().start();
    let snapshot = store.snapshots().iter().rfind(|(end, _)| end.0 <= start.0);
    let Some((_, epoch)) = snapshot.filter(|_| start > Offset::ZERO) else { return true };
    let comparable = if from == start { last == *epoch } else { last >= *epoch };
    guards.admits(guard::SnapshotForOlderEpochs, comparable)
}

/// Where the fetcher's log, that ends at `from` with a record of `last`, leaves ours.
fn divergence(store: &Store, from: Offset, last: LeaderEpoch) -> Option<EpochEnd> {
    let log = store.log();
    if from == log.start() {
        // Nothing before it is here to compare: a snapshot's end, or the beginning.
        let snapshot = store.snapshots().iter().find(|(end, _)| end.0 == from.0);
        if from == Offset::ZERO || snapshot.is_some_and(|(_, epoch)| *epoch == last) {
            return None;
        }
    }
    let end = log.end_offset_for(last);
    (end.epoch != last || end.end < from).then_some(end)
}

/// Answers a read of a snapshot.
pub fn fetch_snapshot(store: &Store, disk: &mut dyn Disk, request: &FetchSnapshotRequest) -> FetchSnapshotResponse {
    let position = request.position;
    let refuse = |error| FetchSnapshotResponse { error, position, ..FetchSnapshotResponse::default() };
    match store.read_snapshot(disk, request.snapshot, position, u64::from(request.max_bytes)) {
        Err(_) => refuse(ErrorCode::KafkaStorageError),
        Ok(None) => refuse(ErrorCode::SnapshotNotFound),
        Ok(Some((size, _))) if position > size => refuse(ErrorCode::PositionOutOfRange),
        Ok(Some((size, bytes))) => FetchSnapshotResponse { error: ErrorCode::None, size, position, bytes },
    }
}
