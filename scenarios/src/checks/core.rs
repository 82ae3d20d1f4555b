//! Which event goes to which check: one static match by kind, nothing is broadcast (measured.md, 7). A step that traced
//! nothing costs one comparison. `stops` is how processes end and come back, `sweeps` what looks at everything.

mod stops;
mod sweeps;

use super::cx::Cx;
use super::ghost::{self, ClusterGhost, Ghost, PartitionGhost};
use super::member::Member;
use super::report::{At, Report};
use super::roster::{slot_of, Part, Roster};
use super::sight::Sight;
use super::{
    damage, lives, mirror_events, s01_valid_log, s02_log_matching, s03_leader_completeness, s04_candidate_completeness,
    s05_quorum_superset, s06_no_global_loss, s07_watermarks, s08_repeatable_read, s09_epochs, s10_one_writer,
    s11_no_zombie_ack, s12_membership, s13_metadata, s14_unclean_exclusion, s16_idempotence, s17_producer_table,
    s18_atomicity, s19_stable, s21_log_start, s22_visible_ends, s30_mirror_equality, s38_durable_states,
    s49_desired_rules, s51_legal_compaction, s52_undisturbed_quorum, transactions,
};
use mirrorlab_model::ids::{LeaderEpoch, Nanos, Offset, PartitionIx};
use mirrorlab_model::states::DesiredState;
use mirrorlab_model::trace::{CutCause, ElectionKind, Origin, Trace, TraceEvent};
use mirrorlab_reports::record::Violation;
use stops::{begun_anew, recovered};
use sweeps::lines;

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
                // What was walked is known to S3: an older copy that leads next may hold something else there.
                ghost::extend_chain(g, cx.sight, cx.roster, cx.at.cluster, partition);
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
                *m = Member::wiped(slot);
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
