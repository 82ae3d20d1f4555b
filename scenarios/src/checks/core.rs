//! Which event goes to which check: one static match by kind, nothing is broadcast (measured.md, 7). A step that traced
//! nothing costs one comparison.

use super::cx::Cx;
use super::ghost::{self, ClusterGhost, Ghost, PartitionGhost, Stop};
use super::liveness::Look;
use super::report::{At, Report};
use super::roster::{slot_of, Part, Place, Roster};
use super::sight::{LogSight, Sight};
use super::transactions;
use super::{
    damage, l01_decided, l02_everywhere, l03_registered, l04_leaders, l05_in_sync, l06_watermark, l07_stable,
    l08_mirrored, l09_no_transient_state, l10_desired, l11_retried, l13_consumers, l14_metadata, l16_bad_neighbours,
    l17_quorum, l19_time, lives, mirror_events, s01_valid_log, s02_log_matching, s03_leader_completeness,
    s04_candidate_completeness, s05_quorum_superset, s06_no_global_loss, s07_watermarks, s08_repeatable_read,
    s09_epochs, s10_one_writer, s11_no_zombie_ack, s12_membership, s13_metadata, s14_unclean_exclusion, s15_recovery,
    s16_idempotence, s17_producer_table, s18_atomicity, s19_stable, s21_log_start, s22_visible_ends,
    s30_mirror_equality, s38_durable_states, s47_no_loop, s48_source_identity, s49_desired_rules, s50_honest_lag,
    s51_legal_compaction, s52_undisturbed_quorum, walk,
};
use mirrorlab_model::ids::{LeaderEpoch, Nanos, NodeId, Offset, PartitionIx};
use mirrorlab_model::states::DesiredState;
use mirrorlab_model::trace::{CutCause, ElectionKind, Origin, Trace, TraceEvent};
use mirrorlab_reports::record::Violation;
use smallvec::SmallVec;

/// What may be set.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Checks that are not reported.
    pub muted: Vec<&'static str>,
}

/// What liveness comes to.
#[derive(Clone, Debug, Default)]
pub struct Liveness {
    /// What is not so yet, without an excuse.
    pub violations: Vec<Violation>,
    /// Excuses, one line each.
    pub excuses: Vec<String>,
    /// Nothing is left but mirrors that failed and will try again, and records that will time out: when the last of them does.
    pub retry_at: Option<Nanos>,
}

/// Partitions that every quiet point sweeps whole.
const SWEPT_WHOLE: usize = 256;
/// Of more: those of a cluster that events told of, at most.
const SWEPT_TOUCHED: usize = 16;
/// And of all in turn.
const SWEPT_IN_TURN: usize = 16;

/// All checks of one run, over whatever can be looked at.
#[derive(Clone, Debug, Default)]
pub struct Core {
    /// Who is who.
    pub roster: Roster,
    /// What is known.
    pub ghost: Ghost,
    report: Report,
    violations: Vec<Violation>,
    acked: Vec<u64>,
    /// The partition, counted over all clusters, at which the next quiet point goes on.
    next: usize,
    /// The liveness check that held convergence back at the last look.
    holds_back: usize,
}

impl Core {
    /// Checks for a cast.
    #[must_use]
    pub fn new(roster: Roster, options: Options) -> Self {
        let report = Report::without(options.muted);
        let clusters = roster.clusters.iter().map(|_| ClusterGhost::default()).collect();
        Self { roster, ghost: Ghost { clusters, ..Ghost::default() }, report, ..Self::default() }
    }

    /// Looks at what the last step traced. Returns what it broke, all of it.
    pub fn on_step<S: Sight>(&mut self, sight: &S) -> &[Violation] {
        if sight.trace().is_empty() && self.report.is_clean() {
            return &[];
        }
        self.observe(sight);
        self.settled(sight)
    }

    /// Looks at what the last step traced; [`Core::settled`] tells what it broke.
    pub fn observe<S: Sight>(&mut self, sight: &S) {
        for event in sight.trace() {
            self.on_event(sight, event);
        }
    }

    /// What was broken since the last call.
    pub fn settled<S: Sight>(&mut self, sight: &S) -> &[Violation] {
        self.violations.clear();
        self.settle(sight)
    }

    fn settle<S: Sight>(&mut self, sight: &S) -> &[Violation] {
        if !self.report.is_clean() {
            self.report.take(sight, &self.roster, &mut self.violations);
        }
        &self.violations
    }

    /// Excuses used so far, one line each.
    #[must_use]
    pub fn excuses(&self) -> Vec<String> {
        lines(&self.report)
    }

    /// Records acknowledged with acks=all or less, by producer number.
    #[must_use]
    pub fn acked_by(&self, producer: u32) -> u64 {
        self.acked.get(producer as usize).copied().unwrap_or(0)
    }

    /// A process is about to be stopped from outside: notes what its disk promises to keep.
    pub fn before_stop<S: Sight>(&mut self, sight: &S, node: NodeId) {
        let Some(Place { cluster, part: Part::Broker(slot) }) = self.roster.place(node) else { return };
        let Some(c) = self.ghost.clusters.get_mut(usize::from(cluster)) else { return };
        for ix in sight.hosted(node) {
            // A log that was begun anew behind a gap is durable up to where the former one was, of which there is nothing left.
            let durable = |log: S::Log<'_>| Some(log.recovery_point()).filter(|point| *point >= log.start());
            if let Some(point) = sight.replica(node, ix).and_then(|replica| durable(replica.log)) {
                c.promised.entry((slot, ix)).or_insert(point);
            }
        }
    }

    /// The last stop fell inside a task: some of its disk calls happened, and of its trace what came before the cut.
    pub fn stopped_inside_a_task(&mut self, node: NodeId) {
        if let Some(Place { cluster, part: Part::Broker(slot) }) = self.roster.place(node) {
            if let Some(c) = self.ghost.clusters.get_mut(usize::from(cluster)) {
                for g in &mut c.partitions {
                    if let Some((_, m)) = g.member(slot) {
                        m.set_cut_inside(true);
                    }
                }
            }
        }
    }

    /// A process ended. `broken`: its own assertion that failed, if that was it.
    pub fn on_stop<S: Sight>(&mut self, sight: &S, node: NodeId, stop: Stop, broken: Option<&'static str>) {
        let Some(Place { cluster, part }) = self.roster.place(node) else { return };
        if let Some(what) = broken {
            let at = At { cluster, partition: None, node: Some(node), now: sight.now(), step: sight.step() };
            self.report.broken("S0", at, "a process that goes on", what);
        }
        let Some(c) = self.ghost.clusters.get_mut(usize::from(cluster)) else { return };
        if part == Part::Controller && matches!(stop, Stop::Wiped | Stop::Failed) {
            c.lost.insert(node);
            if c.lost.len() * 2 > self.roster.clusters[usize::from(cluster)].controllers.len() {
                // A majority's logs are gone: S13 has nothing to hold the others to.
                c.committed.clear();
                c.committed_in = LeaderEpoch::NONE;
                c.led.clear();
                c.lost.clear();
            }
        }
        let Part::Broker(slot) = part else { return };
        c.broker(slot).stop = Some(stop);
        c.broker(slot).applied = (0, 0);
        if matches!(stop, Stop::Wiped | Stop::Restored) {
            // What another disk promised: the empty one does not, even if its first start ends before it loads anything.
            c.promised.retain(|(of, _), _| *of != slot);
        }
        let lossy = matches!(stop, Stop::Lossy | Stop::Failed | Stop::Wiped | Stop::Restored);
        let ClusterGhost { partitions, copies, promised, .. } = c;
        for (ix, g) in partitions.iter_mut().enumerate() {
            let Some(at) = g.position(slot) else { continue };
            if stop == Stop::Clean {
                g.members[at].set_at_rest(true);
            } else {
                g.members[at].set_doubtful();
            }
            if lossy {
                g.members[at].set_lossy(true);
                g.members[at].set_torn(true);
                if stop == Stop::Failed {
                    g.members[at].set_cut_inside(true); // what failed may be there
                }
                // What was committed has to be known before its last holders are gone.
                ghost::extend_chain(g, sight, &self.roster, cluster, PartitionIx(ix as u32));
            }
            if stop == Stop::Wiped {
                let slot = g.members[at].slot;
                g.members[at] = ghost::wiped(slot);
                s51_legal_compaction::shortened(g, slot, Offset::ZERO);
            }
            if stop == Stop::Restored {
                let ix = PartitionIx(ix as u32);
                let copy = copies.get(&(slot, ix));
                g.members[at] = ghost::Member::set_back(copy.map_or(ghost::wiped(slot), |copy| copy.member));
                damage::is_put_back(g, slot, copy);
                if let Some(copy) = copy.filter(|copy| copy.whole) {
                    promised.insert((slot, ix), copy.member.end);
                }
            }
            if let Some(more) = g.more.as_mut() {
                more.fetchers.retain(|f| f.0 != node);
                if more.fetcher_of == node {
                    more.source_epoch = LeaderEpoch::NONE; // what it knew of the source died with it
                }
            }
        }
    }

    // ------------------------------------------------------------------------------------------------------------ events

    fn on_event<S: Sight>(&mut self, sight: &S, event: &TraceEvent) {
        let Some(place) = self.roster.place(event.node) else { return };
        let Self { roster, ghost, report, acked, .. } = self;
        let Ghost { clusters, said } = ghost;
        let Some(c) = clusters.get_mut(usize::from(place.cluster)) else { return };
        let slot = if let Part::Broker(slot) = place.part { slot } else { u16::MAX };
        let at = At {
            cluster: place.cluster,
            partition: None,
            node: Some(event.node),
            now: sight.now(),
            step: sight.step(),
        };
        let mut cx = Cx { sight, roster, report, at, slot };
        match event.trace {
            Trace::Appended { partition, origin, base, next, epoch, leader_epoch, .. } => {
                cx.at.partition = Some(partition);
                let g = c.partition(partition);
                let Some(own) = seated(&cx, g) else { return };
                let m = g.members[own];
                s01_valid_log::appended(&mut cx, m, origin, base, next);
                s09_epochs::appended(&mut cx, m, epoch);
                if origin != Origin::Replication {
                    s10_one_writer::writes(&mut cx, g, leader_epoch);
                    if g.mirrored || origin == Origin::Mirror {
                        mirror_events::appended(&mut cx, g, origin, base, (epoch, leader_epoch));
                    }
                }
                if g.compacts && origin == Origin::Replication && g.compacted() > m.end {
                    s51_legal_compaction::copied(&mut cx, g, m.end, next);
                }
                if g.compacts && g.mirrored && origin == Origin::Replication && cx.replica(g.lead.slot).is_none() {
                    // Copied in a mirror leader's last task, and fetched from it before it was gone.
                    s51_legal_compaction::given(&cx, g, base, next);
                }
                let m = &mut g.members[own];
                m.set_end(next);
                m.set_aligned_early(false);
                m.epoch = epoch;
            }
            Trace::HighWatermarkMoved { partition, from, to, leader } => {
                cx.at.partition = Some(partition);
                let g = c.partition(partition);
                let Some(own) = seated(&cx, g) else { return };
                s07_watermarks::moved(&mut cx, g, own, from, to, leader);
                g.members[own].hw = to;
                if leader && to > g.true_hw && (to <= g.floor || s05_quorum_superset::watermark(&mut cx, g, own, to)) {
                    g.true_hw = to;
                    let (compacts, keeps_states) = (g.compacts, g.keeps_states);
                    if compacts {
                        super::compaction::follow(&cx, g);
                    }
                    if keeps_states {
                        lives::read(&mut cx, c);
                    }
                    if compacts {
                        transactions::extend_at(&mut cx, clusters, said, slot);
                    }
                }
            }
            Trace::FollowerPosition { partition, follower, position } => {
                cx.at.partition = Some(partition);
                let stop = c.brokers.get(usize::from(slot_of(follower))).and_then(|b| b.stop);
                s05_quorum_superset::position(&mut cx, c.partition(partition), follower, position, stop);
            }
            Trace::Acked { partition, producer, first, count, base, acks } => {
                let at = producer as usize;
                if acked.len() <= at {
                    acked.resize(at + 1, 0);
                }
                acked[at] += u64::from(count);
                if base != Offset::UNKNOWN && acks != 0 {
                    cx.at.partition = Some(partition);
                    let g = c.partition(partition);
                    s16_idempotence::acked(&mut cx, g, base, producer, first, (count, acks));
                    if acks == -1 {
                        s11_no_zombie_ack::acked(&mut cx, g, base, base.plus(i64::from(count)));
                    }
                }
            }
            Trace::Nacked { partition, error, .. } => {
                cx.at.partition = Some(partition);
                s16_idempotence::refused(&mut cx, c.partition(partition), error);
            }
            Trace::Read { partition, consumer, base, next, hash } => {
                cx.at.partition = Some(partition);
                s08_repeatable_read::read(&mut cx, c.partition(partition), consumer, (base, next), hash);
                if cx.roster.read_committed.contains(&consumer) {
                    let before = c.read_ends.insert((consumer, partition), next);
                    s19_stable::read(&mut cx, clusters, said, before, (base, next));
                }
            }
            Trace::PositionReset { partition, consumer, to, .. } => {
                s08_repeatable_read::reset(c.partition(partition), consumer);
                if cx.roster.read_committed.contains(&consumer) {
                    c.read_ends.insert((consumer, partition), to);
                }
            }
            Trace::TxnBegun { producer, first } => said.begun(producer, first),
            Trace::TxnEnded { producer, first, outcome, .. } => {
                said.ended(producer, first, outcome);
                s18_atomicity::told(&mut cx, said, (producer, first), outcome);
            }
            Trace::TxnDecided { producer, epoch, commit, .. } => said.decided(place.cluster, producer, epoch, commit),
            Trace::ToldEnd { partition, client, end } => {
                cx.at.partition = Some(partition);
                s22_visible_ends::told(&mut cx, c, client, end);
            }
            Trace::MetadataApplied { end, hash } => s13_metadata::applied(&mut cx, c, end, hash),
            Trace::MetadataCommitted { end, hash } => s13_metadata::committed(&mut cx, c, end, hash),
            Trace::MetadataReplicated { end, hash } => s13_metadata::replicated(&mut cx, c, end, hash),
            Trace::Mirrored { .. }
            | Trace::MirrorFetcherAdded { .. }
            | Trace::MirrorFetcherRemoved { .. }
            | Trace::MirrorStateChanged { .. } => mirror_events::on_event(&mut cx, ghost, &event.trace),
            Trace::CorruptFound { partition, at } => {
                let g = c.partition(partition);
                damage::found(g, at);
                // A mirror leader's fetcher tells of what its source sent.
                let source = g.more.as_ref().and_then(|more| more.source);
                if let Some((c, there)) = source.and_then(|(at, ix)| Some((clusters.get_mut(usize::from(at))?, ix))) {
                    damage::found(c.partition(there), at);
                }
            }
            Trace::CleaningBegun { partition, .. } => {
                // What this replica has committed is all there, for the last time.
                cx.at.partition = Some(partition);
                transactions::extend_at(&mut cx, clusters, said, slot);
                if let Some(c) = clusters.get_mut(usize::from(place.cluster)) {
                    on_rare(&mut cx, c, &event.trace);
                }
            }
            other => on_rare(&mut cx, c, &other),
        }
    }
}

/// The position of the node's replica among the partition's members.
#[inline]
fn seated<S: Sight>(cx: &Cx<'_, S>, g: &mut PartitionGhost) -> Option<usize> {
    match g.position(cx.slot) {
        Some(at) => Some(at),
        None => seat(cx, g),
    }
}

#[cold]
fn seat<S: Sight>(cx: &Cx<'_, S>, g: &mut PartitionGhost) -> Option<usize> {
    ghost::seat(g, cx.sight, cx.at.cluster, cx.at.node, cx.partition());
    g.position(cx.slot)
}

/// Events that come with elections, cuts, restarts and membership.
fn on_rare<S: Sight>(cx: &mut Cx<'_, S>, c: &mut ClusterGhost, trace: &Trace) {
    match *trace {
        Trace::Truncated { partition, to, cause, .. } => {
            cx.at.partition = Some(partition);
            truncated(cx, c.partition(partition), to, cause);
        }
        Trace::CleaningBegun { partition, to, at_ms } | Trace::Cleaned { partition, to, at_ms, .. } => {
            cx.at.partition = Some(partition);
            let g = c.partition(partition);
            let done = matches!(trace, Trace::Cleaned { .. });
            s51_legal_compaction::cleaned(cx, g, to, at_ms, done);
            ghost::extend_chain(g, cx.sight, cx.roster, cx.at.cluster, partition);
        }
        Trace::LogStartMoved { partition, to } => {
            cx.at.partition = Some(partition);
            let g = c.partition(partition);
            let Some(own) = seated(cx, g) else { return };
            s21_log_start::moved(cx, g, g.members[own], to);
            let m = g.members[own];
            if m.known() && to > m.end && g.mirrored && cx.replica(cx.slot).is_some_and(|replica| replica.leads) {
                s30_mirror_equality::jumped(cx, m.end, to);
            }
            let m = &mut g.members[own];
            m.start = to;
            m.set_end(m.end.max(to));
            if g.lead.slot == cx.slot {
                g.floor = g.floor.max(to);
            }
        }
        Trace::Rolled { partition, .. } => {
            // A closed segment is what retention may remove: its sequences are walked while they are there.
            cx.at.partition = Some(partition);
            let g = c.partition(partition);
            if slot_of(g.leader) == cx.slot {
                s16_idempotence::sequences(cx, g);
            }
        }
        Trace::LogRecovered { partition, start, end, clean } => {
            cx.at.partition = Some(partition);
            let promised = c.promised.remove(&(cx.slot, partition));
            let stop = c.broker(cx.slot).stop;
            recovered(cx, c.partition(partition), (start, end), clean, stop, promised);
        }
        Trace::BecameFollower { partition, .. } => {
            cx.at.partition = Some(partition);
            begun_anew(cx, c);
        }
        Trace::BecameLeader { partition, epoch, .. } => {
            cx.at.partition = Some(partition);
            begun_anew(cx, c);
            became_leader(cx, c.partition(partition), epoch);
            if let Some(life) = c.partition(partition).more.as_mut().and_then(|more| more.life.as_mut()) {
                life.begin_term(epoch, cx.at.step);
            }
            if c.partition(partition).keeps_states {
                lives::read(cx, c); // it may lack what was committed
            }
        }
        Trace::IsrProposed { partition, isr, .. } => {
            let g = c.partition(partition);
            if g.lead.slot == cx.slot {
                g.lead.proposed = isr;
            }
        }
        Trace::IsrCommitted { partition, isr, partition_epoch } => {
            cx.at.partition = Some(partition);
            let g = c.partition(partition);
            s05_quorum_superset::committed(cx, g, isr, partition_epoch);
            if g.lead.slot == cx.slot {
                (g.lead.isr, g.lead.proposed) = (isr, isr);
            }
        }
        Trace::Elected { partition, epoch, kind, .. } => {
            let g = c.partition(partition);
            if kind == ElectionKind::Unclean {
                g.unclean = epoch;
            }
        }
        Trace::PartitionChanged { .. } => partition_changed(cx, c, trace),
        Trace::BrokerFenced { broker, fenced } => {
            c.broker(slot_of(broker)).fenced = fenced;
            if !fenced {
                s12_membership::let_in(cx, broker);
            }
        }
        Trace::Registered { clean, .. } => {
            s12_membership::registered(cx);
            let lossy = if clean { 0 } else { c.partitions.len() };
            for ix in 0..lossy {
                cx.at.partition = Some(PartitionIx(ix as u32));
                s14_unclean_exclusion::registered(cx, &c.partitions[ix]);
            }
        }
        Trace::QuorumLed { epoch } => {
            s13_metadata::led(cx, c, epoch);
            s52_undisturbed_quorum::led(cx, epoch);
        }
        Trace::VoteGranted { epoch, candidate } => s13_metadata::voted(cx, c, epoch, candidate),
        Trace::MetadataTruncated { to, committed } => s13_metadata::cut(cx, to, committed),
        Trace::MirrorOrdered { topic, desired, again } => {
            c.orders.entry(topic).or_default().note(desired);
            if again {
                s49_desired_rules::ordered_again(cx, desired);
            }
            if desired == DesiredState::Unknown {
                s49_desired_rules::freed(cx, c, topic);
            }
        }
        Trace::TopicRemoved { topic, desired } => {
            c.removed.insert(topic);
            s49_desired_rules::removed(cx, desired);
        }
        Trace::MirrorStatesLoaded { partition, end } => {
            cx.at.partition = Some(partition);
            s38_durable_states::loaded(cx, c, end);
        }
        Trace::MirrorGrew { topic, .. } => s49_desired_rules::grew(cx, topic),
        Trace::BumpRequested { partition, .. } => {
            cx.at.partition = Some(partition);
            s49_desired_rules::bumped(cx, c);
        }
        Trace::ReadOnlyRefused { partition, .. } => {
            cx.at.partition = Some(partition);
            s49_desired_rules::refused(cx);
        }
        Trace::ReplicaRemoved { partition } => {
            let slot = cx.slot;
            // With a topic that is deleted nothing is asked of its replicas any more; its leader may not have heard of that yet.
            if cx.sight.image(cx.at.cluster).is_some_and(|image| image.partition(partition).is_none()) {
                return;
            }
            if let Some((_, m)) = c.partition(partition).member(slot) {
                *m = ghost::wiped(slot);
                m.set_lossy(false);
            }
            s51_legal_compaction::shortened(c.partition(partition), slot, Offset::ZERO);
        }
        _ => {}
    }
}

fn truncated<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, to: Offset, cause: CutCause) {
    let Some(own) = seated(cx, g) else { return };
    let leads = g.lead.slot == cx.slot && cause != CutCause::Divergence;
    let orders = matches!(cause, CutCause::MirrorDivergence | CutCause::Alignment | CutCause::OutOfRange);
    if leads && orders && g.mirrored {
        mirror_events::cut(cx, g, to, cause);
        if cause == CutCause::MirrorDivergence && g.members[own].known() {
            s06_no_global_loss::diverged(cx, g.members[own].end, to);
        }
        s06_no_global_loss::mirror_cut(cx, g, to, cause);
    } else {
        s04_candidate_completeness::truncated(cx, g, own, to, cause);
    }
    let epoch = cx.replica(cx.slot).map_or(LeaderEpoch::NONE, |r| super::logs::epoch_before(r.log, to));
    s51_legal_compaction::shortened(g, cx.slot, to);
    damage::is_cut(g, cx.slot, to);
    let m = &mut g.members[own];
    m.set_end(to);
    // One that is cut below its start begins anew there.
    m.start = m.start.min(to);
    m.set_cut(true);
    m.epoch = epoch;
    s09_epochs::table(cx, g, cx.slot);
    s17_producer_table::table(cx, cx.slot, g.loose(cx.slot));
}

fn recovered<S: Sight>(
    cx: &mut Cx<'_, S>,
    g: &mut PartitionGhost,
    (start, end): (Offset, Offset),
    clean: bool,
    stop: Option<Stop>,
    promised: Option<Offset>,
) {
    let Some(own) = seated(cx, g) else { return };
    let inside = g.members[own].cut_inside();
    // The marker is of the last stop, whatever a log lost before that and was not told of yet.
    let marked = stop == Some(Stop::Clean);
    let stop = if g.members[own].torn() && stop != Some(Stop::Failed) { Some(Stop::Lossy) } else { stop };
    let rotten = damage::is_cut(g, cx.slot, end);
    s15_recovery::recovered(cx, g.members[own], (stop, marked, inside), promised, (end, rotten), clean);
    if rotten && end < g.members[own].end {
        g.members[own].set_rotten();
    }
    s51_legal_compaction::recovered(cx, g, end, stop == Some(Stop::Wiped));
    if inside && g.mirrored && g.members[own].known() {
        // Copied in the task that the crash fell into: there was nobody to look at then.
        let from = g.members[own].hw;
        s51_legal_compaction::given(cx, g, from, end);
    }
    g.members[own].set_torn(false);
    if stop != Some(Stop::Killed) {
        g.members[own].set_cut(false); // else it is still in the page cache only
    }
    g.members[own].set_cut_inside(false);
    g.members[own].set_at_rest(false);
    let log = cx.replica(cx.slot).map(|r| r.log);
    if let Some(life) = g.more.as_mut().and_then(|m| m.life.as_mut()).filter(|life| life.position_by == cx.slot) {
        life.position_by = u16::MAX; // what it had not flushed may be gone
    }
    let m = &mut g.members[own];
    m.set_end(end);
    m.start = m.start.max(start);
    m.hw = log.map_or(start, |l| l.high_watermark());
    m.epoch = log.map_or(LeaderEpoch::NONE, |l| super::logs::epoch_before(l, end));
    walk::recovered(cx, g, cx.slot, start);
    s09_epochs::table(cx, g, cx.slot);
}

/// A replica that takes part again after a power loss, and no log of it was recovered: its directory was lost, and it began
/// with an empty one.
fn begun_anew<S: Sight>(cx: &mut Cx<'_, S>, c: &mut ClusterGhost) {
    let partition = cx.partition();
    let g = c.partition(partition);
    if g.position(cx.slot).is_some_and(|own| g.members[own].torn()) {
        let promised = c.promised.remove(&(cx.slot, partition));
        let stop = c.broker(cx.slot).stop;
        recovered(cx, c.partition(partition), (Offset::ZERO, Offset::ZERO), false, stop, promised);
    }
}

fn became_leader<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, epoch: LeaderEpoch) {
    ghost::seat(g, cx.sight, cx.at.cluster, cx.at.node, cx.partition());
    s10_one_writer::writes(cx, g, epoch);
    s03_leader_completeness::became_leader(cx, g, epoch);
    if epoch >= g.leader_epoch && epoch >= g.lead.epoch {
        let bits = cx.at.node.and_then(|n| cx.sight.leader(n, cx.partition())).map_or(g.isr, |l| l.isr);
        g.lead = ghost::Lead { slot: cx.slot, epoch, isr: bits, proposed: bits };
        s04_candidate_completeness::candidates(cx, g);
    }
    mirror_events::became_leader(cx, g);
    s02_log_matching::around(cx, g, cx.slot);
    s51_legal_compaction::holds(cx, g, cx.slot);
    s09_epochs::table(cx, g, cx.slot);
    ghost::extend_chain(g, cx.sight, cx.roster, cx.at.cluster, cx.partition());
}

fn partition_changed<S: Sight>(cx: &mut Cx<'_, S>, c: &mut ClusterGhost, trace: &Trace) {
    let Trace::PartitionChanged { partition, leader, epoch, partition_epoch, isr, elr } = *trace else { return };
    cx.at.partition = Some(partition);
    c.partition(partition);
    let ClusterGhost { partitions, brokers, .. } = c;
    let g = &mut partitions[partition.0 as usize];
    let before = g.isr;
    if partition_epoch <= g.partition_epoch {
        return; // told again by a controller that came back
    }
    let fenced = |slot: u16| brokers.get(usize::from(slot)).is_some_and(|b| b.fenced);
    let created = g.members.is_empty();
    let same_term = epoch == g.leader_epoch;
    if let Some(image) = cx.sight.image(cx.at.cluster) {
        g.seat(image, partition);
    }
    let change = s12_membership::Change { leader, same_term, isr, elr };
    // A new partition's first ISR is as its creator wanted it.
    s12_membership::changed(cx, g, change, if created { isr } else { before }, fenced);
    (g.leader, g.leader_epoch, g.partition_epoch) = (leader, epoch, partition_epoch);
    (g.isr, g.elr) = (isr, elr);
    if !created {
        s14_unclean_exclusion::entered(cx, g, before, isr);
    }
}

// ---------------------------------------------------------------------------------------------------------------- sweeps

impl Core {
    /// A quiet point of many: sweeps everything, if there is not much. Of more, where a look at everything would cost more than
    /// the run itself, it sweeps what events told of since it was swept last, and some of the rest, each in its turn.
    pub fn at_quiet_point<S: Sight>(&mut self, sight: &S) -> Vec<Violation> {
        self.violations.clear();
        let all: usize = self.ghost.clusters.iter().map(|c| c.partitions.len()).sum();
        let turns = if all > SWEPT_WHOLE { SWEPT_IN_TURN } else { all };
        for cluster in 0..self.ghost.clusters.len() {
            for _ in 0..SWEPT_TOUCHED {
                let Some(ix) = self.ghost.clusters[cluster].take_touched() else { break };
                if turns < all {
                    self.sweep(sight, cluster as u8, ix, false);
                    self.ghost.clusters[cluster].was_swept(ix);
                }
            }
        }
        for _ in 0..turns {
            let (mut cluster, mut ix) = (0, self.next % all);
            while let Some(rest) = ix.checked_sub(self.ghost.clusters[cluster].partitions.len()) {
                (cluster, ix) = (cluster + 1, rest);
            }
            let ix = PartitionIx(ix as u32);
            self.sweep(sight, cluster as u8, ix, false);
            self.ghost.clusters[cluster].was_swept(ix);
            self.next = (self.next + 1) % all;
        }
        self.settle(sight).to_vec()
    }

    /// Sweeps all partitions. `settled`: every fault ended and everything had the time to converge.
    pub fn at_quiet<S: Sight>(&mut self, sight: &S, settled: bool) -> Vec<Violation> {
        self.violations.clear();
        for cluster in 0..self.ghost.clusters.len() {
            for ix in 0..self.ghost.clusters[cluster].partitions.len() {
                self.sweep(sight, cluster as u8, PartitionIx(ix as u32), settled);
            }
        }
        self.settle(sight).to_vec()
    }

    fn sweep<S: Sight>(&mut self, sight: &S, cluster: u8, ix: PartitionIx, settled: bool) {
        if sight.image(cluster).is_some_and(|i| i.partition(ix).is_none()) {
            return; // its topic was deleted
        }
        let Self { roster, ghost, report, .. } = self;
        let at = At { cluster, partition: Some(ix), node: None, now: sight.now(), step: sight.step() };
        let mut cx = Cx { sight, roster, report, at, slot: u16::MAX };
        let Ghost { clusters, said } = &mut *ghost;
        let g = &mut clusters[usize::from(cluster)].partitions[ix.0 as usize];
        ghost::seat(g, sight, cluster, None, ix);
        ghost::extend_chain(g, sight, cx.roster, cluster, ix);
        s04_candidate_completeness::candidates(&mut cx, g);
        let leader = slot_of(g.leader);
        walk::leader(&mut cx, g);
        transactions::extend(&mut cx, clusters, said);
        let g = &mut clusters[usize::from(cluster)].partitions[ix.0 as usize];
        s02_log_matching::around(&mut cx, g, leader);
        let in_sync: SmallVec<[u16; 4]> = g.of_mask(g.isr).map(|(_, m)| m.slot).collect();
        for slot in in_sync {
            s51_legal_compaction::holds(&mut cx, g, slot);
        }
        for at in 0..g.members.len() {
            let slot = g.members[at].slot;
            s07_watermarks::replica(&mut cx, slot);
            s19_stable::replica(&mut cx, said, slot);
            if slot != leader && twins(&cx, leader, slot) {
                continue; // what is asked of the leader's tables and bytes is asked of these
            }
            s09_epochs::table(&mut cx, g, slot);
            if slot != leader {
                s17_producer_table::table(&mut cx, slot, g.loose(slot));
            }
        }
        if settled && ghost.clusters[usize::from(cluster)].partitions[ix.0 as usize].mirrored {
            let g = &ghost.clusters[usize::from(cluster)].partitions[ix.0 as usize];
            s30_mirror_equality::quiet(&mut cx, ghost, g);
            s47_no_loop::quiet(&mut cx, ghost);
        }
        let g = &ghost.clusters[usize::from(cluster)].partitions[ix.0 as usize];
        if g.mirrored {
            s50_honest_lag::quiet(&mut cx, ghost, g, settled);
        }
    }

    /// The end of a run that converged: everything once more, and nothing acknowledged is lost.
    pub fn at_end<S: Sight>(&mut self, sight: &S) -> Vec<Violation> {
        let mut all = self.at_quiet(sight, true);
        self.violations.clear();
        for cluster in 0..self.ghost.clusters.len() {
            for ix in 0..self.ghost.clusters[cluster].partitions.len() {
                let partition = PartitionIx(ix as u32);
                if sight.image(cluster as u8).is_some_and(|i| i.partition(partition).is_none()) {
                    continue;
                }
                let at = At {
                    cluster: cluster as u8,
                    partition: Some(partition),
                    node: None,
                    now: sight.now(),
                    step: sight.step(),
                };
                let mut cx = Cx { sight, roster: &self.roster, report: &mut self.report, at, slot: u16::MAX };
                let g = &mut self.ghost.clusters[cluster].partitions[ix];
                s06_no_global_loss::at_end(&mut cx, g);
                damage::at_end(&mut cx, g);
            }
        }
        all.extend_from_slice(self.settle(sight));
        all
    }

    /// Whether something is not so yet, at the price of the first of it: what held back at the last look is looked at first.
    pub fn is_held_back<S: Sight>(&mut self, sight: &S) -> bool {
        let mut report = self.report.fresh();
        let mut look = Look::new(sight, &self.roster, &self.ghost, &mut report);
        look.only_whether = true;
        let all = liveness_checks::<S>();
        let held = (0..all.len()).map(|n| (self.holds_back + n) % all.len()).find(|n| {
            all[*n](&mut look);
            !look.report.is_clean()
        });
        self.holds_back = held.unwrap_or_default();
        held.is_some()
    }

    /// What is not so yet, in the converge phase, all of it.
    pub fn liveness<S: Sight>(&mut self, sight: &S) -> Liveness {
        let mut report = self.report.fresh();
        let mut look = Look::new(sight, &self.roster, &self.ghost, &mut report);
        liveness_checks::<S>().iter().for_each(|left| left(&mut look));
        let (decided_at, retry_at) = (look.decided_at, look.retry_at);
        let mut violations = Vec::new();
        report.take(sight, &self.roster, &mut violations);
        let mut excuses = lines(&self.report);
        excuses.extend(lines(&report));
        // Each of the two has a time of its own; whatever has none is not worth waiting for.
        let waits = |id: &str, at: Option<Nanos>| {
            let none = !violations.iter().any(|v: &Violation| v.id == id);
            at.or_else(|| none.then_some(Nanos::ZERO))
        };
        let both = waits("L11", retry_at).zip(waits("L1", decided_at)).map(|(a, b)| a.max(b));
        let retry_at = both.filter(|_| violations.iter().all(|v| matches!(&*v.id, "L11" | "L1")));
        Liveness { violations, excuses, retry_at }
    }
}

/// What each of them adds to what is left.
fn liveness_checks<S: Sight>() -> [fn(&mut Look<'_, S>); 17] {
    [
        l19_time::left,
        l03_registered::left,
        l17_quorum::left,
        l14_metadata::left,
        l04_leaders::left,
        l05_in_sync::left,
        l06_watermark::left,
        l07_stable::left,
        l01_decided::left,
        l02_everywhere::left,
        l08_mirrored::left,
        s48_source_identity::left,
        l09_no_transient_state::left,
        l10_desired::left,
        l16_bad_neighbours::left,
        l11_retried::left,
        l13_consumers::left,
    ]
}

fn lines(report: &Report) -> Vec<String> {
    let line = |e: &super::excuses::Excused| {
        format!("{}: {} ({}): {}", e.id, e.excuse.name(), e.excuse.whose().name(), e.text)
    };
    report.excused.iter().map(line).collect()
}

/// Whether two replicas hold the same bytes, because they are stored once, and have the same tables over them.
fn twins<S: Sight>(cx: &Cx<'_, S>, one: u16, other: u16) -> bool {
    let (Some(a), Some(b)) = (cx.replica(one), cx.replica(other)) else { return false };
    let (x, y) = (a.log, b.log);
    let same = !a.offline
        && !b.offline
        && (x.start(), x.end()) == (y.start(), y.end())
        && super::logs::same_storage(x, y)
        && x.epochs() == y.epochs();
    same && x.producers().entries().eq(y.producers().entries())
}
