//! What a controller does as a voter: it answers and asks the others, follows whoever leads, and applies what is committed.
//!
//! Whatever follows from an epoch, a vote or a leader waits until that is durable in `quorum-state`
//! (`Controller::settle`). A follower asks for the next record only when all before it is on its disk: the offset that it
//! asks for is what its leader counts (KIP-595).

use crate::controller::controller::Controller;
use crate::controller::peers::{Asked, Question};
use crate::controller::quorum::{directory_of, Ask, LogEnd, State};
use crate::controller::state::{ClusterState, Entry, Note};
use crate::coordinator::engine::Engine;
use crate::guards::quorum as guard;
use crate::ids::{controller_id, ConnId, MetadataOffset, NodeId, Now};
use crate::log::AppendError;
use crate::metadata::batches::ReplayError;
use crate::metadata::records::Record;
use crate::ports::{first_conn, Cx, ExitReason, Timer};
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    BeginQuorumEpochRequest, Body, EndQuorumEpochRequest, EpochEnd, FetchSnapshotRequest, FetchSnapshotResponse,
    RaftFetchRequest, RaftFetchResponse, VoteRequest,
};

/// Something of the quorum may be due.
pub(super) const QUORUM_TIMER: Timer = Timer(3);
/// How long a fetch without news waits at the leader.
const WAIT_MS: u32 = 500;
const MAX_BYTES: u32 = 8 << 20;

/// An answer to another voter that waits until what it says is on disk.
#[derive(Clone, Debug)]
pub(super) struct Held {
    conn: ConnId,
    correlation: u32,
    body: Body,
    vote: Option<Trace>,
}

// ------------------------------------------------------------------------------------------------- what a task ends with

impl Controller {
    /// What every task ends with: a lost term is left, promises are written, what waited for them goes out.
    pub(super) fn settle(&mut self, now: Now, cx: &mut Cx<'_>) {
        if self.is_dead() {
            return;
        }
        if self.leading.is_some() && self.leading != self.quorum.term().map(|_| self.quorum.epoch()) {
            self.step_down(cx);
        }
        if self.end_if_stopped(now, cx) {
            return;
        }
        let Some(store) = &mut self.store else { return };
        let elected = self.quorum.elected();
        if !store.remembers(elected) {
            if store.write_quorum(cx.disk, elected, &mut cx.out.effects).is_err() {
                return self.die(ExitReason::DiskFailed, cx);
            }
            // Its end goes on from here.
            return;
        }
        if !self.quorum.is_alone() && *cx.next_conn == first_conn(self.config.node) {
            // From here on an empty disk is another one.
            *cx.next_conn += 1;
        }
        for held in std::mem::take(&mut self.held) {
            self.answer_voter(held, cx);
        }
        if self.quorum.term().is_some() && self.leading.is_none() {
            self.lead(self.quorum.epoch(), now, cx);
        }
        self.ask_peers(now, cx);
        self.arm_quorum(now, cx);
    }

    fn is_settled(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.remembers(self.quorum.elected()))
    }

    /// One timer for the state's deadline and for everybody who is asked or to be told.
    fn arm_quorum(&mut self, now: Now, cx: &mut Cx<'_>) {
        if self.quorum.is_alone() {
            return;
        }
        let quorum = &self.quorum;
        let due = self.peers.next_due(|node| quorum.wants(node, now.mono).is_some(), now.mono);
        let tell = quorum.term().and_then(|term| term.tell_at()).filter(|at| *at > now.mono);
        // One that is about to end does not stand.
        let deadline = self.stopping.is_none().then(|| quorum.deadline());
        let Some(at) = [deadline, due, tell].into_iter().flatten().min() else { return };
        let at = at.max(now.mono);
        if self.quorum_timer.is_none_or(|armed| armed > at || armed < now.mono) {
            self.quorum_timer = Some(at);
            cx.set_timer(QUORUM_TIMER, at);
        }
    }

    pub(super) fn on_quorum_timer(&mut self, now: Now, cx: &mut Cx<'_>) {
        if self.quorum_timer.is_some_and(|at| at <= now.mono) {
            self.quorum_timer = None;
        }
        if self.stopping.is_none() {
            self.quorum.on_deadline(now.mono, cx.guards, cx.entropy);
        }
    }
}

// --------------------------------------------------------------------------------------------------- questions of others

impl Controller {
    /// A message of another voter that is no fetch. False if it is none.
    pub(super) fn on_voter(&mut self, conn: ConnId, correlation: u32, body: &Body, now: Now, cx: &mut Cx<'_>) -> bool {
        let Some(store) = &self.store else { return true };
        let (own, at) = (store.end(), now.mono);
        let (quorum, guards, entropy) = (&mut self.quorum, &mut *cx.guards, cx.entropy);
        let mut vote = None;
        let body: Body = match body {
            Body::VoteRequest(r) => {
                let answer = quorum.on_vote_request(r, own, at, guards, entropy);
                let given = answer.granted && !r.pre_vote;
                vote = given.then_some(Trace::VoteGranted { epoch: r.epoch, candidate: r.candidate });
                answer.into()
            }
            Body::BeginQuorumEpochRequest(r) => quorum.on_begin(r, at, guards, entropy).into(),
            Body::EndQuorumEpochRequest(r) => quorum.on_end(r, at, guards, entropy).into(),
            _ => return false,
        };
        let settled = self.is_settled();
        let held = Held { conn, correlation, body, vote };
        if cx.guards.admits(guard::VoteIsDurable, settled) {
            self.answer_voter(held, cx);
        } else {
            self.held.push(held);
        }
        true
    }

    fn answer_voter(&mut self, held: Held, cx: &mut Cx<'_>) {
        if let Some(vote) = held.vote {
            cx.trace(vote);
        }
        self.send(held.conn, held.correlation, held.body, cx);
    }
}

// --------------------------------------------------------------------------------------------------- questions to others

impl Controller {
    fn ask_peers(&mut self, now: Now, cx: &mut Cx<'_>) {
        if self.quorum.is_alone() {
            return;
        }
        let quorum = &self.quorum;
        self.peers.give_up(now.mono, |node, _| quorum.wants(node, now.mono) == Some(Ask::Fetch), cx);
        for node in self.quorum.others() {
            let Some(ask) = self.quorum.wants(node, now.mono) else { continue };
            if !self.peers.is_free(node, now, cx) {
                continue;
            }
            let epoch = self.quorum.epoch();
            let Some(question) = self.question(node, ask, cx) else { continue };
            if question.ask == Ask::Begin {
                self.quorum.term_mut().iter_mut().for_each(|term| term.told(node, now.mono));
            }
            self.peers.ask(node, epoch, question, now.mono, cx);
        }
    }

    fn question(&mut self, node: NodeId, ask: Ask, cx: &mut Cx<'_>) -> Option<Question> {
        let store = self.store.as_ref()?;
        let (me, epoch) = (self.config.node, self.quorum.epoch());
        let own = store.end();
        let mut snapshot = None;
        let body = match &ask {
            Ask::Vote { pre_vote } => VoteRequest {
                voter: node,
                voter_directory: directory_of(node),
                candidate: me,
                candidate_directory: self.quorum.directory(),
                epoch,
                last_epoch: own.epoch,
                end: own.end,
                pre_vote: *pre_vote,
            }
            .into(),
            Ask::Begin => {
                let voter_directory = directory_of(node);
                BeginQuorumEpochRequest { voter: node, voter_directory, leader: me, epoch }.into()
            }
            Ask::End => {
                let successors = self.quorum.successors().iter().map(|node| (*node, directory_of(*node))).collect();
                EndQuorumEpochRequest { leader: me, epoch, successors }.into()
            }
            Ask::Fetch if self.installing => return None,
            Ask::Fetch => match store.wanted(cx.disk) {
                Some((id, position)) => {
                    snapshot = Some(id);
                    let replica = controller_id(me);
                    FetchSnapshotRequest { replica, snapshot: id, position, max_bytes: MAX_BYTES }.into()
                }
                None if !cx.guards.admits(guard::FetchedIsDurable, !store.log().has_unflushed()) => return None,
                None => self.fetch_request(own).into(),
            },
        };
        Some(Question { ask, snapshot, body })
    }

    fn fetch_request(&self, own: LogEnd) -> RaftFetchRequest {
        RaftFetchRequest {
            replica: controller_id(self.config.node),
            directory: self.quorum.directory(),
            current_epoch: self.quorum.epoch(),
            fetch_offset: own.end,
            last_fetched_epoch: own.epoch,
            high_watermark: MetadataOffset(self.engine.committed_end()),
            max_wait_ms: WAIT_MS,
            max_bytes: MAX_BYTES,
        }
    }

    /// Another voter answered.
    pub(super) fn on_peer(&mut self, node: NodeId, asked: &Asked, body: Body, now: Now, cx: &mut Cx<'_>) {
        let (at, entropy) = (now.mono, cx.entropy);
        match body {
            Body::VoteResponse(answer) => {
                let Ask::Vote { pre_vote } = asked.ask else { return };
                self.quorum.on_vote(node, (asked.epoch, pre_vote), &answer, at, cx.guards, entropy);
            }
            Body::BeginQuorumEpochResponse(r) => {
                self.quorum.on_told(node, asked.epoch, (r.leader, r.epoch), at, cx.guards, entropy);
            }
            Body::EndQuorumEpochResponse(r) => {
                self.quorum.on_told(node, asked.epoch, (r.leader, r.epoch), at, cx.guards, entropy);
            }
            Body::RaftFetchResponse(answer) => self.on_fetched(node, asked, &answer, now, cx),
            Body::FetchSnapshotResponse(answer) => self.on_piece(node, asked, &answer, now, cx),
            _ => {}
        }
    }
}

// ------------------------------------------------------------------------------------------------------------- following

impl Controller {
    /// Whether an answer to a fetch is from who is followed, in the epoch in which it was asked.
    fn follows(&self, node: NodeId, asked: &Asked) -> bool {
        let follows = matches!(self.quorum.state(), State::Follower { .. } | State::Observer);
        follows && self.quorum.leader() == Some(node) && self.quorum.epoch() == asked.epoch
    }

    fn on_fetched(&mut self, node: NodeId, asked: &Asked, answer: &RaftFetchResponse, now: Now, cx: &mut Cx<'_>) {
        self.quorum.learn(answer.leader, answer.epoch, now.mono, cx.guards, cx.entropy);
        if !self.follows(node, asked) || answer.epoch != asked.epoch {
            return self.peers.back_off(node, now.mono);
        }
        if !answer.error.is_none() {
            return self.peers.back_off(node, now.mono);
        }
        self.quorum.on_fetched(now.mono);
        if let Some(id) = answer.snapshot {
            let Some(store) = &mut self.store else { return };
            if store.start_download(cx.disk, id).is_err() {
                self.die(ExitReason::DiskFailed, cx);
            }
        } else if let Some(end) = answer.diverging {
            self.cut_log(end, cx);
        } else {
            self.take_records(answer, now, cx);
        }
    }

    fn take_records(&mut self, answer: &RaftFetchResponse, now: Now, cx: &mut Cx<'_>) {
        let Some(store) = &mut self.store else { return };
        if !answer.batches.is_empty() {
            match store.append_fetched(cx.disk, cx.guards, &answer.batches, answer.epoch, now) {
                // What does not fit is asked for again.
                Ok(()) | Err(AppendError::BelowLogEnd { .. } | AppendError::Corrupt(_)) => {}
                Err(_) => return self.die(ExitReason::DiskFailed, cx),
            }
            if store.want_flush(cx.disk, cx.guards, &mut cx.out.effects).is_err() {
                return self.die(ExitReason::DiskFailed, cx);
            }
        }
        self.follow_commit(answer.high_watermark.0, now, cx);
    }

    /// Our log parts from the leader's: it is cut where they part. What is committed is never cut.
    fn cut_log(&mut self, end: EpochEnd, cx: &mut Cx<'_>) {
        let Some(store) = &mut self.store else { return };
        let to = store.cut_for(end.epoch, end.end);
        cx.trace(Trace::MetadataTruncated { to: to.0, committed: self.engine.committed_end() });
        if to.0 < self.engine.committed_end() {
            return self.die(ExitReason::Broken("a leader's log lacks what is committed"), cx);
        }
        if store.cut(cx.disk, cx.guards, to).is_err() {
            self.die(ExitReason::DiskFailed, cx);
        }
    }

    /// The leader says what is committed: that is applied, as far as it is here.
    fn follow_commit(&mut self, high_watermark: i64, now: Now, cx: &mut Cx<'_>) {
        let Some(store) = &mut self.store else { return };
        let to = high_watermark.min(store.log().end().0);
        let from = self.engine.end();
        if to <= self.engine.committed_end() {
            return;
        }
        store.set_high_watermark(cx.guards, to);
        let (engine, since) = (&mut self.engine, &mut self.since_snapshot);
        let applied = store.replay(cx.disk, from, |offset, bytes| {
            if offset >= to {
                return Ok(());
            }
            let record = Record::decode(bytes).map_err(ReplayError::Record)?;
            *since = (since.0 + bytes.len() as u64, since.1 + 1);
            engine.recovered(offset, &Entry { record, bytes: bytes.to_vec(), note: Note::Plain });
            Ok(())
        });
        if applied.is_err() {
            return self.die(ExitReason::Broken("the metadata log holds a record that cannot be read"), cx);
        }
        self.engine.on_committed(to, |_, _, _| {}, |_| {});
        let image = self.engine.committed();
        cx.trace(Trace::MetadataReplicated { end: image.end().0, hash: image.hash() });
        self.maybe_snapshot(now, cx);
    }

    fn on_piece(&mut self, node: NodeId, asked: &Asked, answer: &FetchSnapshotResponse, now: Now, cx: &mut Cx<'_>) {
        let follows = self.follows(node, asked);
        let Some(store) = &mut self.store else { return };
        let Some((id, position)) = store.wanted(cx.disk) else { return };
        if !follows || asked.snapshot != Some(id) || !answer.error.is_none() || answer.position != position {
            // Whoever leads now says what is to be fetched.
            store.end_download();
            return self.peers.back_off(node, now.mono);
        }
        self.quorum.on_fetched(now.mono);
        match store.add_piece(cx.disk, &answer.bytes, answer.size) {
            Err(_) => self.die(ExitReason::DiskFailed, cx),
            Ok(false) => {}
            Ok(true) => {
                self.installing = true;
                store.keep_download(&mut cx.out.effects);
                // Off: the log gives way before the snapshot is safe.
                if cx.guards.admits(guard::SnapshotBeforeLog, false) {
                    self.install(cx);
                }
            }
        }
    }

    /// A flush for a fetched snapshot ended.
    pub(super) fn on_download_flushed(&mut self, cx: &mut Cx<'_>) {
        let follows = matches!(self.quorum.state(), State::Follower { .. } | State::Observer);
        let Some(store) = &mut self.store else { return };
        if !follows {
            self.installing = false;
            return store.end_download();
        }
        match store.on_download_flushed(cx.disk, &mut cx.out.effects) {
            Err(_) => self.die(ExitReason::DiskFailed, cx),
            Ok(false) => {}
            Ok(true) => self.install(cx),
        }
    }

    /// The log gives way to a snapshot of the leader's, and so does the image.
    fn install(&mut self, cx: &mut Cx<'_>) {
        self.installing = false;
        let Some(store) = &mut self.store else { return };
        match store.install(cx.disk, cx.guards) {
            Err(_) => return self.die(ExitReason::DiskFailed, cx),
            Ok(None) => return,
            Ok(Some(image)) => {
                let end = image.end().0;
                self.engine = Engine::new(ClusterState::of(image), end);
                self.since_snapshot = (0, 0);
            }
        }
        if store.want_flush(cx.disk, cx.guards, &mut cx.out.effects).is_err() {
            return self.die(ExitReason::DiskFailed, cx);
        }
        let image = self.engine.committed();
        cx.trace(Trace::SnapshotInstalled { end: image.end().0 });
        cx.trace(Trace::MetadataReplicated { end: image.end().0, hash: image.hash() });
    }
}

/// What is answered to a fetch, or a piece of a snapshot, by one that does not lead.
pub(super) fn not_leader(quorum: &crate::controller::quorum::Quorum, me: NodeId) -> RaftFetchResponse {
    RaftFetchResponse {
        error: ErrorCode::NotLeaderOrFollower,
        leader: quorum.leader().filter(|leader| *leader != me),
        epoch: quorum.epoch(),
        ..RaftFetchResponse::default()
    }
}
