//! The leader's term: the log is written, a majority's word makes records committed, whoever fetches is served; and its end.

use crate::controller::controller::{Controller, OBSERVER_TIMERS};
use crate::controller::observers::{self, View, Waiting};
use crate::controller::refuse::refusal;
use crate::controller::replication::not_leader;
use crate::controller::sessions::Sessions;
use crate::controller::state::{Entry, Note};
use crate::controller::traces::{entry_traces, note_of, partition_changed};
use crate::guards::points::Point;
use crate::guards::quorum as guard;
use crate::ids::{controller_node, ConnId, LeaderEpoch, MetadataOffset, Nanos, Now};
use crate::metadata::batches::{pack, ReplayError};
use crate::metadata::records::Record;
use crate::ports::{Cx, ExitReason, Timer};
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::RaftFetchRequest;

// ------------------------------------------------------------------------------------------------------------ begin and end

impl Controller {
    /// That it leads is durable: the log's tail becomes part of the state, and the term's first record is written.
    pub(super) fn lead(&mut self, epoch: LeaderEpoch, now: Now, cx: &mut Cx<'_>) {
        self.leading = Some(epoch);
        let alone = self.quorum.is_alone();
        if !alone {
            cx.trace(Trace::QuorumLed { epoch });
            if self.take_over(cx).is_err() {
                return self.die(ExitReason::Broken("the metadata log holds a record that cannot be read"), cx);
            }
        }
        let start = self.engine.end();
        self.quorum.term_mut().iter_mut().for_each(|term| term.begin_at(start));
        if alone {
            self.start_sessions(now);
        }
        let record = Record::LeaderChange { epoch, leader: self.config.node };
        let _ = self.append(vec![Entry::new(record, Note::Plain)], now, cx);
        if alone {
            self.arm_sessions(cx);
            self.arm_balance(now.mono, cx);
        }
    }

    /// Everything that earlier terms left in the log is replayed: it is committed together with this term's first record.
    fn take_over(&mut self, cx: &mut Cx<'_>) -> Result<(), ReplayError> {
        let Some(store) = &self.store else { return Ok(()) };
        let (engine, since) = (&mut self.engine, &mut self.since_snapshot);
        let from = engine.end();
        store.replay(cx.disk, from, |_, bytes| {
            let record = Record::decode(bytes).map_err(ReplayError::Record)?;
            let note = note_of(engine.latest().image(), &record);
            *since = (since.0 + bytes.len() as u64, since.1 + 1);
            engine.appended(vec![Entry { record, bytes: bytes.to_vec(), note }]);
            Ok(())
        })
    }

    /// The term's first record is committed: from now on it is the active controller. Brokers owe it nothing yet: each has a
    /// full session before it.
    fn activate(&mut self, now: Now, cx: &mut Cx<'_>) {
        self.start_sessions(now);
        self.arm_sessions(cx);
        self.arm_balance(now.mono, cx);
    }

    fn start_sessions(&mut self, now: Now) {
        let timeout = Nanos::from_millis(self.config.broker.broker_session_timeout_ms);
        self.sessions = Sessions::start(self.image(), timeout, now.mono);
    }

    /// The term is over: what is not committed may or may not become so. Whoever waits is sent to another controller.
    pub(super) fn step_down(&mut self, cx: &mut Cx<'_>) {
        self.leading = None;
        cx.trace(Trace::QuorumLost { epoch: self.quorum.epoch() });
        let mut refused = Vec::new();
        if cx.guards.admits(guard::LostTermRolledBack, false) {
            // Off: it keeps what it made of its last records.
            let end = self.engine.end();
            self.engine.on_committed(end, |_, _, _| {}, |answer| refused.push(answer));
        } else {
            self.engine.on_failed(|answer| refused.push(answer));
        }
        self.sessions = Sessions::default();
        self.recovered.clear();
        for answer in refused {
            self.refuse(answer.conn, answer.correlation, &answer.request, ErrorCode::NotController, cx);
        }
        self.serve_observers(cx);
    }
}

// ----------------------------------------------------------------------------------------------------- append and commit

impl Controller {
    /// Appends and replays; nothing happens on an error.
    pub(super) fn append(&mut self, entries: Vec<Entry>, now: Now, cx: &mut Cx<'_>) -> Result<(), ()> {
        if entries.is_empty() {
            return Ok(());
        }
        let (Some(store), Some(epoch)) = (&mut self.store, self.leading) else { return Err(()) };
        let base = self.engine.end();
        if base != store.log().end().0 {
            self.die(ExitReason::Broken("the metadata log and its replay end at different offsets"), cx);
            return Err(());
        }
        let batches = pack(base, epoch, now.wall_ms, entries.iter().map(|e| e.bytes.as_slice()));
        let appended = store.append(cx.disk, cx.guards, &batches, epoch, now);
        let flush = appended.is_ok().then(|| store.want_flush(cx.disk, cx.guards, &mut cx.out.effects));
        let offline = store.log().is_offline();
        if appended.is_ok() {
            self.since_snapshot.0 += batches.len() as u64;
            self.since_snapshot.1 += entries.len() as u64;
            self.engine.appended(entries);
        }
        if offline || matches!(flush, Some(Err(_))) {
            self.on_flush_failed(cx);
            return Err(());
        }
        if appended.is_ok() {
            self.serve_observers(cx);
        }
        appended.map_err(|_| ())
    }

    #[cfg(test)]
    pub(super) fn append_for_test(&mut self, record: Record, now: Now, cx: &mut Cx<'_>) {
        let _ = self.append(vec![Entry::new(record, Note::Plain)], now, cx);
    }

    pub(super) fn on_log_flushed(&mut self, now: Now, cx: &mut Cx<'_>) {
        let Some(store) = &mut self.store else { return };
        let durable = store.on_log_flushed(cx.guards);
        if store.want_flush(cx.disk, cx.guards, &mut cx.out.effects).is_err() {
            return self.on_flush_failed(cx);
        }
        if durable.is_some() {
            self.advance(now, cx);
        }
    }

    /// More is durable here or elsewhere: what a majority has now is committed.
    fn advance(&mut self, now: Now, cx: &mut Cx<'_>) {
        let (Some(store), Some(_)) = (&mut self.store, self.leading) else { return };
        let Some(term) = self.quorum.term() else { return };
        let Some(end) = term.committed(store.log().recovery_point().0, cx.guards) else { return };
        let end = end.min(self.engine.end());
        if end > self.engine.committed_end() {
            let was_active = self.is_active();
            if let Some(store) = &mut self.store {
                store.set_high_watermark(cx.guards, end);
            }
            self.commit(end, now, cx);
            if !was_active && self.is_active() {
                self.activate(now, cx);
            }
        }
    }

    fn commit(&mut self, end: i64, now: Now, cx: &mut Cx<'_>) {
        let (mut traces, mut released) = (Vec::new(), Vec::new());
        self.engine.on_committed(
            end,
            |image, _, entry| entry_traces(image, entry, &mut traces),
            |answer| released.push(answer),
        );
        let image = self.engine.committed();
        for &partition in self.recovered.iter() {
            traces.extend(partition_changed(image, partition));
        }
        self.recovered.clear();
        traces.push(Trace::MetadataCommitted { end: image.end().0, hash: image.hash() });
        for trace in traces {
            cx.trace(trace);
        }
        for answer in released {
            self.send(answer.conn, answer.correlation, answer.response, cx);
        }
        self.serve_observers(cx);
        self.maybe_snapshot(now, cx);
    }

    /// The disk may or may not have what we appended: nobody is told that it has, and the process ends, for only a start
    /// from the disk can tell.
    pub(super) fn on_flush_failed(&mut self, cx: &mut Cx<'_>) {
        let mut refused = Vec::new();
        self.engine.on_failed(|answer| refused.push(answer));
        for answer in refused {
            if let Some(body) = refusal(&answer.request, ErrorCode::KafkaStorageError) {
                self.send(answer.conn, answer.correlation, body, cx);
            }
        }
        self.die(ExitReason::DiskFailed, cx);
    }

    pub(super) fn maybe_snapshot(&mut self, now: Now, cx: &mut Cx<'_>) {
        let limit = self.config.broker.metadata_log_max_record_bytes_between_snapshots;
        let (bytes, records) = self.since_snapshot;
        let Some(store) = &mut self.store else { return };
        let little = bytes < limit && records < self.config.records_between_snapshots;
        let early = records > 0 && cx.guards.points.fires(Point::SnapshotAtOnce);
        if (little && !early) || store.is_writing_snapshot() {
            return;
        }
        self.since_snapshot = (0, 0);
        // A snapshot that fails is no harm: the log has everything.
        let _ = store.start_snapshot(cx.disk, self.engine.committed(), now, &mut cx.out.effects);
    }

    pub(super) fn on_snapshot_flushed(&mut self, now: Now, cx: &mut Cx<'_>) {
        let Some(store) = &mut self.store else { return };
        if store.on_snapshot_flushed(cx.disk, cx.guards, now, &mut cx.out.effects).is_err() {
            store.abandon_snapshot();
            if store.log().is_offline() {
                self.on_flush_failed(cx);
            }
        }
    }
}

// -------------------------------------------------------------------------------------------------------- whoever fetches

fn observer_timer(replica: i32) -> Timer {
    Timer(OBSERVER_TIMERS + u64::from(replica as u32))
}

impl Controller {
    /// Somebody fetches the log. A voter that asks for what comes after an offset has everything before it.
    pub(super) fn on_fetch(
        &mut self,
        conn: ConnId,
        correlation: u32,
        request: RaftFetchRequest,
        now: Now,
        cx: &mut Cx<'_>,
    ) {
        let (Some(view), Some(store)) = (self.view(), &self.store) else { return };
        let hint = self.observers.hint(request.replica);
        let (mut answer, mut news) = observers::fetch(store, cx.disk, view, &request, hint, cx.guards);
        let voter = controller_node(request.replica);
        let agrees = answer.error.is_none() && answer.diverging.is_none() && answer.snapshot.is_none();
        if let Some(node) = voter.filter(|node| agrees && self.quorum.is_voter(*node, request.directory, cx.guards)) {
            self.quorum.term_mut().iter_mut().for_each(|t| t.on_fetch(node, request.fetch_offset.0, now.mono));
            self.advance(now, cx);
            if let (Some(now), Some(store)) = (self.view().filter(|now| *now != view), &self.store) {
                let hint = self.observers.hint(request.replica);
                (answer, news) = observers::fetch(store, cx.disk, now, &request, hint, cx.guards);
            }
        }
        if news || request.max_wait_ms == 0 {
            return self.send(conn, correlation, answer.into(), cx);
        }
        let deadline = now.mono + Nanos::from_millis(u64::from(request.max_wait_ms));
        let timer = observer_timer(request.replica);
        let (replaced, arm) = self.observers.wait(Waiting { conn, correlation, request, deadline });
        if arm {
            cx.set_timer(timer, deadline);
        }
        if let Some(old) = replaced {
            self.answer_fetch(old, cx);
        }
    }

    fn view(&self) -> Option<View> {
        let epoch = self.leading?;
        let high_watermark = MetadataOffset(self.engine.committed_end());
        Some(View { leader: self.config.node, epoch, high_watermark })
    }

    fn answer_fetch(&mut self, waiting: Waiting, cx: &mut Cx<'_>) {
        if self.leading.is_none() {
            let body = not_leader(&self.quorum, self.config.node).into();
            return self.send(waiting.conn, waiting.correlation, body, cx);
        }
        let (Some(view), Some(store)) = (self.view(), &self.store) else { return };
        let hint = self.observers.hint(waiting.request.replica);
        let (answer, _) = observers::fetch(store, cx.disk, view, &waiting.request, hint, cx.guards);
        self.send(waiting.conn, waiting.correlation, answer.into(), cx);
    }

    /// The log grew, or more of it is committed: whoever waits is told.
    fn serve_observers(&mut self, cx: &mut Cx<'_>) {
        for waiting in self.observers.take_waiting() {
            self.answer_fetch(waiting, cx);
        }
    }

    pub(super) fn on_observer_timer(&mut self, timer: Timer, now: Now, cx: &mut Cx<'_>) {
        let (over, again) = self.observers.on_timer((timer.0 - OBSERVER_TIMERS) as u32 as i32, now.mono);
        if let Some(waiting) = over {
            self.answer_fetch(waiting, cx);
        }
        if let Some(at) = again {
            cx.set_timer(timer, at);
        }
    }
}
