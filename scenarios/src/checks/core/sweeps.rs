//! Looks at everything: at quiet points, at the end, and while the world is to converge.

use super::{Core, Liveness};
use crate::checks::cx::Cx;
use crate::checks::excuses::Excused;
use crate::checks::ghost::{self, Ghost};
use crate::checks::liveness::Look;
use crate::checks::report::{At, Report};
use crate::checks::roster::slot_of;
use crate::checks::sight::{LogSight, Sight};
use crate::checks::{
    damage, l01_decided, l02_everywhere, l03_registered, l04_leaders, l05_in_sync, l06_watermark, l07_stable,
    l08_mirrored, l09_no_transient_state, l10_desired, l11_retried, l13_consumers, l14_metadata, l16_bad_neighbours,
    l17_quorum, l19_time, logs, s02_log_matching, s04_candidate_completeness, s06_no_global_loss, s07_watermarks,
    s09_epochs, s17_producer_table, s19_stable, s30_mirror_equality, s47_no_loop, s48_source_identity, s50_honest_lag,
    s51_legal_compaction, transactions, walk,
};
use mirrorlab_model::ids::{Nanos, PartitionIx};
use mirrorlab_reports::record::Violation;
use smallvec::SmallVec;

/// Partitions that every quiet point sweeps whole.
const SWEPT_WHOLE: usize = 256;
/// Of more: those of a cluster that events told of, at most.
const SWEPT_TOUCHED: usize = 16;
/// And of all in turn.
const SWEPT_IN_TURN: usize = 16;

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

pub(super) fn lines(report: &Report) -> Vec<String> {
    let line = |e: &Excused| format!("{}: {} ({}): {}", e.id, e.excuse.name(), e.excuse.whose().name(), e.text);
    report.excused.iter().map(line).collect()
}

/// Whether two replicas hold the same bytes, because they are stored once, and have the same tables over them.
fn twins<S: Sight>(cx: &Cx<'_, S>, one: u16, other: u16) -> bool {
    let (Some(a), Some(b)) = (cx.replica(one), cx.replica(other)) else { return false };
    let (x, y) = (a.log, b.log);
    let same = !a.offline
        && !b.offline
        && (x.start(), x.end()) == (y.start(), y.end())
        && logs::same_storage(x, y)
        && x.epochs() == y.epochs();
    same && x.producers().entries().eq(y.producers().entries())
}
