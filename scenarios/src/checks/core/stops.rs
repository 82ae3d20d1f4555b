//! How processes end, and what their logs are when they are there again.

use super::{seated, Core};
use crate::checks::cx::Cx;
use crate::checks::ghost::{self, ClusterGhost, PartitionGhost, Stop};
use crate::checks::member::Member;
use crate::checks::report::At;
use crate::checks::roster::{Part, Place};
use crate::checks::sight::{LogSight, Sight};
use crate::checks::{damage, logs, s04_candidate_completeness, s09_epochs, s15_recovery, s51_legal_compaction, walk};
use mirrorlab_model::ids::{LeaderEpoch, NodeId, Offset, PartitionIx};

impl Core {
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
                    let (aligns, floor) = (s04_candidate_completeness::aligns(g), g.floor);
                    if let Some((_, m)) = g.member(slot) {
                        m.set_cut_inside(true);
                        m.set_cut_short(aligns || floor > m.end);
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
                g.members[at] = Member::wiped(slot);
                s51_legal_compaction::shortened(g, slot, Offset::ZERO);
            }
            if stop == Stop::Restored {
                let ix = PartitionIx(ix as u32);
                let copy = copies.get(&(slot, ix));
                g.members[at] = Member::set_back(copy.map_or(Member::wiped(slot), |copy| copy.member));
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
}

pub(super) fn recovered<S: Sight>(
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
    let short = g.members[own].cut_short() || (inside && start == end);
    s51_legal_compaction::recovered(cx, g, end, stop == Some(Stop::Wiped), short || rotten);
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
    m.epoch = log.map_or(LeaderEpoch::NONE, |l| logs::epoch_before(l, end));
    walk::recovered(cx, g, cx.slot, start);
    s09_epochs::table(cx, g, cx.slot);
}

/// A replica that takes part again after a power loss, and no log of it was recovered: its directory was lost, and it began
/// with an empty one.
pub(super) fn begun_anew<S: Sight>(cx: &mut Cx<'_, S>, c: &mut ClusterGhost) {
    let partition = cx.partition();
    let g = c.partition(partition);
    if g.position(cx.slot).is_some_and(|own| g.members[own].torn()) {
        let promised = c.promised.remove(&(cx.slot, partition));
        let stop = c.broker(cx.slot).stop;
        recovered(cx, c.partition(partition), (Offset::ZERO, Offset::ZERO), false, stop, promised);
    }
}
