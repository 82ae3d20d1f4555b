//! What happens to mirrored partitions, and which checks see it.

use super::cx::Cx;
use super::ghost::{Ghost, PartitionGhost};
use super::sight::{LogSight, Sight};
use super::{
    s10_one_writer, s30_mirror_equality, s31_origin, s32_read_only, s33_fence_at_stop, s34_epoch_floor, s35_exact_cut,
    s36_barrier, s37_state_machine, s38_durable_states, s39_position, s40_producer_reset, s41_no_open_transaction,
    s42_isolation, s46_topics, s47_no_loop, s48_source_identity, s49_desired_rules, s50_honest_lag,
    s51_legal_compaction,
};
use mirrorlab_model::ids::{LeaderEpoch, Offset};
use mirrorlab_model::states::MirrorState;
use mirrorlab_model::trace::{CutCause, Origin, Trace};

/// A leader of a partition that has to do with a mirror appended.
pub(super) fn appended<S: Sight>(
    cx: &mut Cx<'_, S>,
    g: &mut PartitionGhost,
    origin: Origin,
    base: Offset,
    (epoch, local): (LeaderEpoch, LeaderEpoch),
) {
    g.mirrored = true;
    s32_read_only::appended(cx, g, origin, local);
    s34_epoch_floor::appended(cx, g, origin, epoch, local);
    if origin == Origin::Mirror {
        s33_fence_at_stop::appended(cx, g, local);
        s39_position::copied(cx, g, local);
        g.more().mirrored_epoch = epoch;
    } else {
        if origin == Origin::Client {
            s40_producer_reset::local(cx, g, base);
        }
        s39_position::local(cx, g, base, local);
    }
}

/// Something was copied, taken up, let go, or came into another state.
pub(super) fn on_event<S: Sight>(cx: &mut Cx<'_, S>, ghost: &mut Ghost, trace: &Trace) {
    let node = cx.at.node.unwrap_or_default();
    let own = usize::from(cx.at.cluster);
    let knows = !ghost.clusters[own].states_read.is_empty();
    match *trace {
        Trace::Mirrored { partition, source, source_partition, base, next, source_hw, source_epoch, .. } => {
            cx.at.partition = Some(partition);
            let cluster = cx.roster.place(source).map(|p| p.cluster);
            let truth = cluster.and_then(|c| ghost.clusters.get(usize::from(c))).and_then(|c| {
                let origin = c.partitions.get(source_partition.0 as usize)?;
                Some((origin.true_hw, origin.lineage > 0))
            });
            s31_origin::mirrored(cx, source, next, source_hw, truth);
            let g = ghost.clusters[own].partition(partition);
            // A leader that was deposed meanwhile knows less, and is S10's and S33's business.
            if g.more().fetcher_of == node {
                s31_origin::asked(cx, g.more(), source_epoch);
            }
            s33_fence_at_stop::mirrored(cx, g, source);
            s42_isolation::comes_from(cx, source);
            if let Some(cluster) = cluster {
                s48_source_identity::mirrored(cx, g, cluster);
            }
            if let Some(cut) = g.more().life.as_mut().and_then(|life| life.cut.take()) {
                s36_barrier::passed(cx, g, cut);
            }
            if let Some(cluster) = cluster {
                let here = ghost.clusters[own].partition(partition).compacted();
                let there = ghost.clusters[usize::from(cluster)].partition(source_partition);
                s30_mirror_equality::mirrored(cx, (source, source_partition), there, base, next);
                let (inherited, compacts) = (there.compacted().min(next), there.compacts);
                if base < inherited && here < inherited {
                    let g = ghost.clusters[own].partition(partition);
                    g.compacts = true;
                    g.more().compaction.get_or_insert_default().upto = inherited;
                }
                // A copy learns later than its first records that it is to be compacted.
                if compacts {
                    let g = ghost.clusters[own].partition(partition);
                    g.compacts = true;
                    s51_legal_compaction::given(cx, g, base, next);
                }
            }
            let g = ghost.clusters[own].partition(partition);
            let from = cluster.map(|c| (c, source_partition));
            if let Some((cluster, there)) = from.filter(|_| g.more().source != from) {
                g.more().source = from;
                s46_topics::mirrored(cx, cluster, there);
            }
        }
        Trace::MirrorFetcherAdded { partition, source, epoch, .. } => {
            cx.at.partition = Some(partition);
            let g = ghost.clusters[own].partition(partition);
            g.mirrored = true;
            s10_one_writer::fetches(cx, g);
            fetcher_added(cx, g, knows);
            if g.more().fetcher_of != node {
                (g.more().fetcher_of, g.more().source_epoch) = (node, LeaderEpoch::NONE);
            }
            s31_origin::fetches(g.more(), epoch);
            let fetchers = &mut g.more().fetchers;
            fetchers.retain(|f| f.0 != node);
            fetchers.push((node, source));
        }
        Trace::MirrorFetcherRemoved { partition, source } => {
            let g = ghost.clusters[own].partition(partition);
            g.more().fetchers.retain(|f| *f != (node, source));
        }
        Trace::MirrorStateChanged { partition, mirror, from, to, .. } => {
            cx.at.partition = Some(partition);
            let g = ghost.clusters[own].partition(partition);
            g.mirrored = true;
            g.more().mirror = (node, to);
            s42_isolation::acts(cx, Some(mirror), to.name());
            if knows && !g.more().states_lost {
                s38_durable_states::acts(cx, g, Some(to));
                s37_state_machine::acts(cx, g, true);
                state_changed(cx, ghost, from, to);
            }
        }
        _ => {}
    }
}

/// A mirror leader begins to copy. `knows`: states are committed in a topic of this cluster.
fn fetcher_added<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, knows: bool) {
    s42_isolation::acts(cx, None, "a fetcher");
    s50_honest_lag::begins(cx);
    if knows && !g.more().states_lost {
        s38_durable_states::acts(cx, g, Some(MirrorState::Mirroring));
        s37_state_machine::acts(cx, g, false);
        let epoch = cx.replica(cx.slot).map_or(LeaderEpoch::NONE, |r| r.leader_epoch);
        s49_desired_rules::acts(cx, g.life(), epoch, "a fetcher took it up");
        s49_desired_rules::fetches(cx);
    }
}

/// A mirror leader acts on a state that was just committed.
fn state_changed<S: Sight>(cx: &mut Cx<'_, S>, ghost: &mut Ghost, from: MirrorState, to: MirrorState) {
    let (own, ix) = (usize::from(cx.at.cluster), cx.partition());
    match (from, to) {
        (_, MirrorState::LogAlignment) => {
            let aligning = s35_exact_cut::begins(cx, ghost);
            let source = s30_mirror_equality::source_of(cx);
            let looped = source.is_some_and(|source| s47_no_loop::is_reversed(cx, ghost, source));
            if let Some(life) = ghost.clusters[own].partition(ix).more().life.as_mut() {
                (life.aligning, life.looped) = (aligning, looped);
            }
        }
        (MirrorState::LogAlignment | MirrorState::UleRecovery, MirrorState::Mirroring) => {
            let end = cx.replica(cx.slot).map_or(Offset::ZERO, |r| r.log.end());
            let g = ghost.clusters[own].partition(ix);
            if let Some(life) = &mut g.more().life {
                life.cut = None;
            }
            s36_barrier::passed(cx, g, end);
            let looped = g.life().is_some_and(|life| life.looped);
            if from == MirrorState::LogAlignment {
                if let Some(source) = s30_mirror_equality::source_of(cx) {
                    s47_no_loop::copies(cx, ghost, source, looped);
                }
                s35_exact_cut::aligned(cx, ghost);
            }
        }
        (_, MirrorState::Stopping) => {
            if let Some(life) = ghost.clusters[own].partition(ix).more().life.as_mut() {
                s41_no_open_transaction::begins(cx, life);
            }
        }
        (_, MirrorState::Stopped) => {
            let g = ghost.clusters[own].partition(ix);
            s40_producer_reset::stopped(cx, g);
            s41_no_open_transaction::stopped(cx, g);
        }
        _ => {}
    }
}

/// A mirror leader's log was cut to fit its source's.
pub(super) fn cut<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, to: Offset, cause: CutCause) {
    if cause == CutCause::OutOfRange {
        return;
    }
    s42_isolation::acts(cx, None, "a cut");
    s49_desired_rules::acts(cx, g.life(), g.lead.epoch, "its log was cut");
    if cause == CutCause::Alignment {
        s49_desired_rules::aligns(cx);
    }
    if cause == CutCause::Alignment && g.life().is_some() {
        s38_durable_states::acts(cx, g, Some(MirrorState::LogAlignment));
    }
    if let Some(life) = &mut g.more().life {
        life.cut = Some(to);
    }
}

/// Another one leads, or the same one in another epoch.
pub(super) fn became_leader<S: Sight>(cx: &Cx<'_, S>, g: &mut PartitionGhost) {
    let Some(life) = g.more.as_mut().and_then(|m| m.life.as_mut()) else { return };
    if life.position_by != cx.slot {
        life.position_by = u16::MAX;
    }
    if life.last().state == MirrorState::Stopping {
        s41_no_open_transaction::begins(cx, life);
    }
}
