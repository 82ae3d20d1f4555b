//! ISR proposals of leaders (AlterPartition; KIP-497, 841, 903, 704).

use crate::controller::plan::Plan;
use crate::controller::refuse::no_verdict;
use crate::guards::controller as guard;
use crate::ids::{BrokerEpoch, BrokerId, PartitionIx};
use crate::metadata::records::{Brokers, PartitionState, Record};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{AlterPartitionRequest, AlterPartitionResponse, IsrProposal, IsrVerdict};

/// Plans the proposals of one leader; each has its own verdict.
pub fn alter_partition(plan: &mut Plan<'_>, request: &AlterPartitionRequest) -> AlterPartitionResponse {
    let known = plan.image().broker(request.broker).map(|b| b.epoch);
    let Some(known) = known else {
        return AlterPartitionResponse { error: ErrorCode::BrokerIdNotRegistered, parts: Vec::new() };
    };
    if !plan.guards.admits(guard::StaleBrokerEpochRefused, known == request.broker_epoch) {
        return AlterPartitionResponse { error: ErrorCode::StaleBrokerEpoch, parts: Vec::new() };
    }
    let parts = request.parts.iter().map(|proposal| propose(plan, request.broker, proposal)).collect();
    AlterPartitionResponse { error: ErrorCode::None, parts }
}

fn propose(plan: &mut Plan<'_>, leader: BrokerId, proposal: &IsrProposal) -> IsrVerdict {
    let ix = proposal.partition;
    let image = plan.image();
    let Some(p) = image.partition(ix) else { return no_verdict(ix, ErrorCode::UnknownTopicOrPartition) };
    if plan.has_changed(ix) {
        return no_verdict(ix, ErrorCode::InvalidUpdateVersion);
    }
    if let Err(error) = check(plan, leader, proposal, &p.state) {
        return no_verdict(ix, error);
    }
    let mut change = plan.change(ix, &p.state);
    change.isr = proposal.isr.iter().map(|(b, _)| *b).collect();
    change.recovered = proposal.recovered;
    plan.finish(change, |b| image.is_active(b));
    let after = planned_state(plan, ix, &p.state);
    // The leader may have lost the partition by its own proposal: it must not go on in its epoch.
    let error = if after.leader_epoch == p.state.leader_epoch { ErrorCode::None } else { ErrorCode::NewLeaderElected };
    IsrVerdict {
        partition: ix,
        error,
        leader: after.leader,
        leader_epoch: after.leader_epoch,
        isr: after.isr,
        partition_epoch: after.partition_epoch,
    }
}

/// What the partition will be once the records of this operation are applied.
fn planned_state(plan: &Plan<'_>, ix: PartitionIx, old: &PartitionState) -> PartitionState {
    let mut after = old.clone();
    let Some(entry) = plan.entries.last().filter(|_| plan.has_changed(ix)) else { return after };
    if let Record::PartitionChange { leader, leader_epoch, isr, .. } = &entry.record {
        after.leader = leader.unwrap_or(after.leader);
        after.leader_epoch = leader_epoch.unwrap_or(after.leader_epoch);
        if let Some(isr) = isr {
            after.isr.clone_from(isr);
        }
        after.partition_epoch.0 += 1;
    }
    after
}

/// The order of the tests is Kafka's: it decides which error a doubly wrong proposal gets.
fn check(
    plan: &mut Plan<'_>,
    leader: BrokerId,
    proposal: &IsrProposal,
    state: &PartitionState,
) -> Result<(), ErrorCode> {
    let refuse_unless = |holds: bool, error: ErrorCode| if holds { Ok(()) } else { Err(error) };
    let guards = &mut *plan.guards;
    // A leader that knows more than we do talks to a deposed controller.
    let ahead = proposal.leader_epoch > state.leader_epoch || proposal.partition_epoch > state.partition_epoch;
    refuse_unless(!ahead, ErrorCode::NotController)?;
    refuse_unless(guards.admits(guard::AlterPartitionFromLeader, leader == state.leader), ErrorCode::InvalidRequest)?;
    let same_epoch = proposal.leader_epoch == state.leader_epoch;
    refuse_unless(guards.admits(guard::AlterPartitionLeaderEpochMatches, same_epoch), ErrorCode::FencedLeaderEpoch)?;
    let same_version = proposal.partition_epoch == state.partition_epoch;
    refuse_unless(guards.admits(guard::AlterPartitionEpochMatches, same_version), ErrorCode::InvalidUpdateVersion)?;
    let isr: Brokers = proposal.isr.iter().map(|(b, _)| *b).collect();
    let distinct = isr.iter().enumerate().all(|(at, b)| !isr[..at].contains(b));
    let within = distinct && isr.iter().all(|b| state.replicas.contains(b));
    refuse_unless(within && isr.contains(&leader), ErrorCode::InvalidRequest)?;
    let recovering = state.recovering && !proposal.recovered;
    refuse_unless(
        guards.admits(guard::NoIsrGrowthInRecovery, !(recovering && isr.len() > 1)),
        ErrorCode::InvalidRequest,
    )?;
    let image = plan.state.image();
    let eligible = proposal.isr.iter().all(|(broker, epoch)| {
        let known = image.broker(*broker);
        known.is_some_and(|k| k.is_active() && (*epoch == BrokerEpoch(-1) || *epoch == k.epoch))
    });
    refuse_unless(plan.guards.admits(guard::AlterPartitionEligibility, eligible), ErrorCode::IneligibleReplica)
}
