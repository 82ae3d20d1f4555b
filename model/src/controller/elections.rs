//! Elections that somebody asks for, and the return of leaderships to preferred replicas.

use crate::controller::change::Election;
use crate::controller::plan::Plan;
use crate::ids::{BrokerId, PartitionIx};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{ElectLeadersRequest, ElectLeadersResponse};

/// Elections of one balancing step; what is left follows at once in the next one.
pub const MAX_BALANCE_STEP: usize = 1_000;

/// Plans the elections of a request. Without partitions it means all that are in need.
pub fn elect_leaders(plan: &mut Plan<'_>, request: &ElectLeadersRequest) -> ElectLeadersResponse {
    let index = plan.index();
    let everywhere = if request.unclean { &index.leaderless } else { &index.imbalanced };
    let parts: Vec<PartitionIx> =
        if request.parts.is_empty() { everywhere.iter().copied().collect() } else { request.parts.clone() };
    let elect = |ix: PartitionIx| (ix, if request.unclean { unclean(plan, ix) } else { preferred(plan, ix) });
    ElectLeadersResponse { parts: parts.into_iter().map(elect).collect() }
}

fn preferred(plan: &mut Plan<'_>, ix: PartitionIx) -> ErrorCode {
    let image = plan.image();
    let Some(p) = image.partition(ix) else { return ErrorCode::UnknownTopicOrPartition };
    if p.state.replicas.first() == Some(&p.state.leader) || plan.has_changed(ix) {
        return ErrorCode::ElectionNotNeeded;
    }
    let mut change = plan.change(ix, &p.state);
    change.election = Election::Preferred;
    let preferred = p.state.replicas.first().copied();
    if plan.finish(change, |b| image.is_active(b)) && elected(plan) == preferred {
        ErrorCode::None
    } else {
        ErrorCode::PreferredLeaderNotAvailable
    }
}

fn unclean(plan: &mut Plan<'_>, ix: PartitionIx) -> ErrorCode {
    let image = plan.image();
    let Some(p) = image.partition(ix) else { return ErrorCode::UnknownTopicOrPartition };
    if p.state.leader != BrokerId::NONE || plan.has_changed(ix) {
        return ErrorCode::ElectionNotNeeded;
    }
    let mut change = plan.change(ix, &p.state);
    change.election = Election::Unclean;
    if plan.finish(change, |b| image.is_active(b)) {
        ErrorCode::None
    } else {
        ErrorCode::EligibleLeadersNotAvailable
    }
}

/// The leader that the last record chose.
fn elected(plan: &Plan<'_>) -> Option<BrokerId> {
    match &plan.entries.last()?.record {
        crate::metadata::records::Record::PartitionChange { leader, .. } => *leader,
        _ => None,
    }
}

/// Plans one step of balancing: the first `MAX_BALANCE_STEP` partitions whose preferred replica can take over. True if more
/// may be left.
pub fn balance(plan: &mut Plan<'_>) -> bool {
    let index = plan.index();
    for &ix in &index.imbalanced {
        if plan.entries.len() >= MAX_BALANCE_STEP {
            return true;
        }
        let image = plan.image();
        let Some(p) = image.partition(ix) else { continue };
        let can = p.state.replicas.first().is_some_and(|b| p.state.isr.contains(b) && image.is_active(*b));
        if can {
            let mut change = plan.change(ix, &p.state);
            change.election = Election::Preferred;
            plan.finish(change, |b| image.is_active(b));
        }
    }
    false
}

/// Plans that a partition is led by this in-sync replica. True if it has a record.
pub fn move_leader(plan: &mut Plan<'_>, ix: PartitionIx, to: BrokerId) -> bool {
    let image = plan.image();
    let Some(p) = image.partition(ix).filter(|p| p.state.isr.contains(&to) && p.state.leader != to) else {
        return false;
    };
    let change = plan.change(ix, &p.state);
    // Nobody else may lead, so the election has no choice.
    !plan.has_changed(ix) && image.is_active(to) && plan.finish(change, |b| b == to)
}
