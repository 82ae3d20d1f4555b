//! What is committed of mirrored partitions: the ghost reads `__mirror_state` as its watermark moves, record by record, and keeps
//! the last few states of each. Everything that asks "was it committed?" asks here, and not a broker.

use super::cx::Cx;
use super::ghost::{ClusterGhost, PartitionGhost};
use super::logs;
use super::sight::{LogSight, Sight};
use super::{s37_state_machine, s39_position, s40_producer_reset, s49_desired_rules};
use mirrorlab_model::ids::{LeaderEpoch, Nanos, NodeId, Offset, PartitionIx, ProducerId};
use mirrorlab_model::mirror::records::{MirrorRecord, StateKey};
use mirrorlab_model::states::{DesiredState, LastPosition, MirrorState, Session, StateRecord};
use smallvec::SmallVec;
use std::sync::Arc;

/// One committed state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The state.
    pub state: MirrorState,
    /// Its writer's leader epoch.
    pub leader_epoch: LeaderEpoch,
    /// Its number.
    pub state_epoch: i32,
}

/// States kept of a partition.
const KEPT: usize = 4;

/// What was known when a partition began to align.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aligning {
    /// The end of the longest common prefix with the source's leader, as far as it was committed here.
    pub common: Offset,
    /// The end of the last session in this direction was known.
    pub own: bool,
    /// The end of the last session in the other direction was known.
    pub reverse: bool,
    /// The source partition's lineage.
    pub lineage: u32,
    /// The mirror in the other direction was on its way to STOPPED, in the state of this number.
    pub reverse_stops: Option<i32>,
}

/// A mirrored partition as `__mirror_state` tells of it.
#[derive(Clone, Debug)]
pub struct Life {
    /// Its mirror.
    pub mirror: Arc<str>,
    /// Its incarnation, as records tell.
    pub session: Option<Session>,
    /// The partition of `__mirror_state` that tells of it.
    pub home: PartitionIx,
    /// The last states, the newest at the end.
    states: SmallVec<[Committed; KEPT]>,
    /// FAILED: the state before.
    pub previous: MirrorState,
    /// FAILED: how often in a row.
    pub attempt: i16,
    /// The last mirrored position.
    pub position: Option<LastPosition>,
    /// The end of a session was known when the alignment that is the newest began.
    pub position_before: bool,
    /// MIRRORING was committed since there was a position.
    pub copied: bool,
    /// Times that it left STOPPED (or nothing), and PAUSED for MIRRORING.
    pub departures: (u32, u32),
    /// Times that it went on after it had failed for good.
    pub recoveries: usize,
    /// What was known when it began to align; `None`: nothing was.
    pub aligning: Option<Aligning>,
    /// The mirror leader's log was cut to here, and nothing was copied since.
    pub cut: Option<Offset>,
    /// Transactions that were open when it began to stop, by first offset.
    pub open: Vec<(Offset, ProducerId)>,
    /// Who ran actions last, and in which leader epoch.
    pub actor: (LeaderEpoch, NodeId),
    /// The present leader's epoch, and the number of the state that was committed before its term began.
    pub term: (LeaderEpoch, i32),
    /// When the newest state was committed: in which step, and at what time.
    pub changed_at: u64,
    /// See `changed_at`.
    pub since: Nanos,
    /// FAILED for good: why.
    pub ended_by: Option<Arc<str>>,
    /// The source mirrored the other way when this began to align.
    pub looped: bool,
    /// Where this session's batches come from.
    pub source: Option<u8>,
    /// The position was noted by the present stop, of what its session copied, and nothing local was appended since.
    pub is_fresh: bool,
    /// Who led when it was noted; `u16::MAX`: it does not lead with that log any more.
    pub position_by: u16,
    /// The leader epoch in which it was noted.
    pub position_in: LeaderEpoch,
    /// A leader of an earlier term that copied on after it was noted; `u16::MAX`: none did.
    pub copied_late: u16,
    /// The state that its last stop began in.
    pub stopped_in: MirrorState,
    /// Where the log ended of who began that stop, or took it up last.
    pub stopped_at: Offset,
}

impl Life {
    fn new(mirror: Arc<str>, home: PartitionIx) -> Self {
        Self {
            mirror,
            session: None,
            home,
            states: SmallVec::new(),
            previous: MirrorState::Unknown,
            attempt: 0,
            position: None,
            position_before: false,
            copied: false,
            departures: (0, 0),
            recoveries: 0,
            aligning: None,
            cut: None,
            open: Vec::new(),
            actor: (LeaderEpoch::NONE, NodeId::default()),
            term: (LeaderEpoch::NONE, 0),
            changed_at: 0,
            since: Nanos::ZERO,
            ended_by: None,
            looped: false,
            source: None,
            is_fresh: false,
            position_by: u16::MAX,
            position_in: LeaderEpoch::NONE,
            copied_late: u16::MAX,
            stopped_in: MirrorState::Unknown,
            stopped_at: Offset::ZERO,
        }
    }
    /// The newest state.
    #[must_use]
    pub fn last(&self) -> Committed {
        let none = Committed { state: MirrorState::Unknown, leader_epoch: LeaderEpoch::NONE, state_epoch: 0 };
        self.states.last().copied().unwrap_or(none)
    }
    /// The state of that number, if it is among the last few.
    #[must_use]
    pub fn numbered(&self, state_epoch: i32) -> Option<Committed> {
        self.states.iter().rev().find(|c| c.state_epoch == state_epoch).copied()
    }
    /// The newest state that a leader of this epoch, or of an earlier one, wrote. Who leads in it may act on that and on nothing
    /// older, unless it is on its way from MIRRORING and was not told yet.
    #[must_use]
    pub fn upto(&self, epoch: LeaderEpoch) -> Option<MirrorState> {
        self.told(epoch, 0)
    }
    /// The same of a leader that was told of the state of a number. One that was deposed and does not know it may have heard so
    /// what a later leader wrote.
    #[must_use]
    pub fn told(&self, epoch: LeaderEpoch, number: i32) -> Option<MirrorState> {
        self.states.iter().rev().find(|c| c.leader_epoch <= epoch || c.state_epoch == number).map(|c| c.state)
    }
    /// A leader's term begins. What is committed in the same event it may not know yet. One that hears of its term when a later one
    /// has begun knows nothing of that, and does not end that.
    pub fn begin_term(&mut self, epoch: LeaderEpoch, step: u64) {
        if epoch < self.term.0.max(self.last().leader_epoch) {
            return;
        }
        let unseen = usize::from(self.changed_at == step);
        let known = self.states.iter().rev().nth(unseen).map_or(0, |c| c.state_epoch);
        self.term = (epoch, known);
    }
    /// The end of its last session is known. One that was stopped before it copied ended nowhere.
    #[must_use]
    pub fn ended_somewhere(&self) -> bool {
        self.position.is_some_and(|position| position != LastPosition::NOTHING)
    }
    fn push(&mut self, record: &StateRecord) {
        if self.states.len() == KEPT {
            self.states.remove(0);
        }
        let StateRecord { state, leader_epoch, state_epoch, .. } = *record;
        let before = self.last().state;
        let before = if before == MirrorState::Failed { self.previous } else { before };
        if state == MirrorState::Stopping && before != MirrorState::Stopping {
            self.stopped_in = before;
        }
        self.states.push(Committed { state, leader_epoch, state_epoch });
        (self.previous, self.attempt) = (record.previous, record.attempt);
        let for_good = state == MirrorState::Failed && record.attempt < 0;
        self.ended_by = record.message.clone().filter(|_| for_good);
        match state {
            MirrorState::LogAlignment => {
                (self.position_before, self.aligning, self.looped) = (self.ended_somewhere(), None, false);
                self.source = None;
            }
            MirrorState::Mirroring => self.copied = true,
            _ => {}
        }
    }
}

/// What was ordered of a topic: counts of what lets partitions go on. An order is applied by brokers in turn, so a partition
/// can go on no more often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// The last one.
    pub desired: DesiredState,
    /// To go on after a stop, or after nothing.
    pub starts: u32,
    /// To copy after a pause.
    pub resumes: u32,
    was_paused: bool,
}

impl Orders {
    /// One more order was committed.
    pub fn note(&mut self, desired: DesiredState) {
        use DesiredState as D;
        let goes = |d: D| matches!(d, D::Mirroring | D::Paused);
        self.starts += u32::from(goes(desired) && !goes(self.desired));
        self.was_paused |= desired == D::Paused;
        if desired == D::Mirroring {
            self.resumes += u32::from(std::mem::take(&mut self.was_paused));
        }
        self.desired = desired;
    }
}

/// The watermark of a partition of `__mirror_state` moved at its leader: what became committed is read.
pub(super) fn read<S: Sight>(cx: &mut Cx<'_, S>, c: &mut ClusterGhost) {
    let home = cx.partition();
    let (to, lineage) = (c.partition(home).true_hw, c.partition(home).lineage);
    let (from, before) = c.states_read.get(&home).copied().unwrap_or((Offset::ZERO, lineage));
    if before != lineage {
        // The log lost committed records, whoever is to blame (S3, S6). Brokers know what is not there any more: what they
        // do for it can be judged no longer.
        for m in c.partitions.iter_mut().filter_map(|g| g.more.as_mut()) {
            if m.life.as_ref().is_some_and(|life| life.home == home) {
                (m.life, m.states_lost) = (None, true);
            }
        }
        c.states_read.insert(home, (to, lineage));
        return;
    }
    let Some(log) = cx.replica(cx.slot).map(|r| r.log).filter(|log| log.end() >= to) else { return };
    let silent = log.start() > from;
    let mut records = Vec::new();
    logs::for_each(log, from.max(log.start()), to, |batch| {
        if !batch.is_control() {
            let decode = |r: mirrorlab_model::record::RecordView<'_>| {
                MirrorRecord::decode(r.key.unwrap_or_default(), r.value)
                    .ok()
                    .filter(|_| r.offset >= from && r.offset < to)
            };
            records.extend(batch.records().filter_map(Result::ok).filter_map(decode));
        }
        true
    });
    c.states_read.insert(home, (to, lineage));
    for record in records {
        if let Some(partition) = told_of(cx, &record).or_else(|| partition_of(cx, record.key())) {
            cx.at.partition = Some(partition);
            apply(cx, c, home, &record, silent);
        }
    }
    cx.at.partition = Some(home);
}

/// The partition that a key names, as far as this cluster has it; or had it, as far as its coordinator knows: a topic that is
/// deleted has states until brokers hear of it.
pub(super) fn partition_of<S: Sight>(cx: &Cx<'_, S>, key: &StateKey) -> Option<PartitionIx> {
    let images = [cx.sight.image(cx.at.cluster), cx.at.node.and_then(|node| cx.sight.broker_image(node))];
    images.into_iter().flatten().find_map(|image| image.partition_of(image.topic_of(key.topic)?, key.number))
}

/// Whether a broker acts on a state of a life that is over, as it was committed, and has not heard of its end.
pub(super) fn is_of_the_former<S: Sight>(cx: &Cx<'_, S>, g: &PartitionGhost, state: MirrorState, number: i32) -> bool {
    let former = g.more.as_ref().and_then(|more| more.former.as_ref());
    let image = cx.at.node.and_then(|node| cx.sight.broker_image(node));
    former.zip(image).is_some_and(|(former, image)| {
        let topic = image.partition(cx.partition()).map(|entry| entry.topic);
        let present = image.mirror_by_name(&former.mirror).zip(topic).map(|(mirror, topic)| Session::of(mirror, topic));
        present.is_some()
            && present == former.session
            && former.numbered(number).is_some_and(|committed| committed.state == state)
    })
}

/// The partition of the incarnation that a record names: one that is deleted has states until brokers hear of it, and there may be
/// another one of its id by then.
fn told_of<S: Sight>(cx: &Cx<'_, S>, record: &MirrorRecord) -> Option<PartitionIx> {
    let (key, session) = (record.key(), session_of(record)?);
    let images = [cx.sight.image(cx.at.cluster), cx.at.node.and_then(|node| cx.sight.broker_image(node))];
    images.into_iter().flatten().find_map(|image| {
        let (mirror, topic) = (image.mirror_by_name(&key.mirror)?, image.topic_of(key.topic)?);
        image.partition_of(topic, key.number).filter(|_| Session::of(mirror, topic) == session)
    })
}

fn session_of(record: &MirrorRecord) -> Option<Session> {
    match record {
        MirrorRecord::State(_, record) => record.as_ref().and_then(|record| record.session),
        MirrorRecord::Position(_, _, session) => *session,
    }
}

fn apply<S: Sight>(cx: &mut Cx<'_, S>, c: &mut ClusterGhost, home: PartitionIx, record: &MirrorRecord, silent: bool) {
    let key = record.key();
    let topic = cx.sight.image(cx.at.cluster).and_then(|i| i.partition(cx.partition())).map(|p| p.topic);
    let mirror = cx.sight.image(cx.at.cluster).and_then(|image| image.mirror_by_name(&key.mirror));
    c.partition(cx.partition());
    let ClusterGhost { partitions, orders, .. } = c;
    let g = &mut partitions[cx.partition().0 as usize];
    if g.more().states_lost {
        return;
    }
    let leader_epoch = g.leader_epoch;
    let (lead, life) = (g.lead, &mut g.more().life);
    match record {
        MirrorRecord::State(_, None) => {
            if let Some(over) = life.take_if(|life| life.mirror == key.mirror) {
                g.more().former = Some(over);
            }
            return;
        }
        // The second of a life's two tombstones: it begins no new one.
        MirrorRecord::Position(_, None, _) if life.as_ref().is_none_or(|life| life.mirror != key.mirror) => return,
        _ => {}
    }
    let session = session_of(record);
    // Of a mirror of this name, or a topic of this id, that was deleted before the present one was created: its coordinator, who may
    // hear of that late, takes it away, and nobody takes it up.
    let present = mirror.zip(topic).map(|(mirror, topic)| Session::of(mirror, topic));
    let held = life.as_ref().filter(|life| life.mirror == key.mirror).and_then(|life| life.session);
    if session.is_some_and(|session| present.is_some_and(|present| present != session) && held != Some(session)) {
        return;
    }
    // Another mirror of the same name has nothing to do with what the first one left (decision 18).
    let other = |life: &Life| life.session.is_some() && session.is_some() && life.session != session;
    if life.as_ref().is_none_or(|life| life.mirror != key.mirror || other(life)) {
        *life = Some(Box::new(Life::new(key.mirror.clone(), home)));
    }
    let Some(life) = life else { return };
    life.session = session.or(life.session);
    match record {
        MirrorRecord::State(_, None) => {}
        MirrorRecord::State(_, Some(record)) => {
            if !silent {
                s37_state_machine::committed(cx, life, record, leader_epoch);
                s39_position::state_committed(cx, life, record.state);
                s40_producer_reset::committed(cx, life, lead.slot, record.state);
            }
            let (before, now) = (life.last().state, record.state);
            let ended = now == MirrorState::Failed && record.attempt < 0;
            let goes_on = before == MirrorState::Failed && life.attempt < 0 && !ended && now != MirrorState::Stopping;
            life.recoveries += usize::from(goes_on);
            if goes_on && !silent {
                s37_state_machine::recovered(cx, life);
            }
            let rests = matches!(before, MirrorState::Stopped | MirrorState::Unknown);
            life.departures.0 += u32::from(rests && now == MirrorState::LogAlignment);
            life.departures.1 += u32::from(before == MirrorState::Paused && now == MirrorState::Mirroring);
            if let Some(orders) = topic.and_then(|topic| orders.get_mut(&topic)).filter(|_| !silent) {
                s49_desired_rules::departed(cx, life, orders, before, now);
            }
            life.push(record);
            (life.changed_at, life.since) = (cx.at.step, cx.at.now);
        }
        MirrorRecord::Position(_, position, _) => {
            if !silent {
                s39_position::committed(cx, life, *position);
            }
            life.position = *position;
            if position.is_some() {
                let whole = life.copied && life.last().state == MirrorState::Stopping && !silent;
                (life.copied, life.is_fresh) = (false, whole);
                life.position_in = lead.epoch;
                life.position_by = if life.last().leader_epoch == lead.epoch { lead.slot } else { u16::MAX };
            }
        }
    }
}
