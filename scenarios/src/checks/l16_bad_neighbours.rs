//! L16 One bad partition, task or source does not stop others. Within one run: where a partition of a mirror is bad for good (FAILED
//! until an operator comes, or its source has no leader), and another one of the same mirror, whose own source is well, does not
//! get where it has to, it is said to be stopped by the bad one. That it stalls at all is said by L8 to L11 as well.

use super::liveness::{Look, Spot};
use super::sight::Sight;
use mirrorlab_model::ids::{MirrorIx, NodeId, PartitionIx};
use mirrorlab_model::states::MirrorState;
use std::collections::BTreeMap;

/// What became of the partitions of one mirror.
#[derive(Default)]
struct Company {
    bad: Vec<PartitionIx>,
    stalled: Vec<(PartitionIx, NodeId, MirrorState)>,
}

/// What is not so yet.
pub(super) fn left<S: Sight>(look: &mut Look<'_, S>) {
    let mut mirrors: BTreeMap<(u8, MirrorIx), Company> = BTreeMap::new();
    look.each_partition(|look, p: Spot<'_>| {
        let Some((node, mirror)) = look.mirror(p) else { return };
        let rests = matches!(mirror.state, MirrorState::Stopped | MirrorState::Paused);
        let for_good = mirror.state == MirrorState::Failed && !mirror.retries;
        let works = mirror.state == MirrorState::Mirroring && mirror.fetching;
        if rests || works {
            return;
        }
        let company = mirrors.entry((p.cluster, mirror.mirror)).or_default();
        if for_good || look.source_is_down(p) {
            company.bad.push(p.ix);
        // Without its topic at the source every partition is bad, told so or not yet.
        } else if !look.too_few(p) && !look.source_refuses(p) && look.has_its_topic(p) == Some(true) {
            company.stalled.push((p.ix, node, mirror.state));
        }
    });
    for ((cluster, _), Company { bad, stalled }) in mirrors {
        let Some(first) = bad.first() else { continue };
        for (ix, node, state) in stalled {
            let Some(p) = look.at(cluster, ix) else { continue };
            let got = format!("{}, beside partition {first} that is bad for good", state.name());
            look.stall("L16", Some(p), Some(node), "a partition that works beside a bad one", got);
        }
    }
}
