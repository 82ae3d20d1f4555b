//! Brokers come, live and go: registration, heartbeats, fencing, controlled shutdown (KIP-631, 841, 966).

use crate::controller::plan::Plan;
use crate::controller::sessions::Sessions;
use crate::controller::state::Note;
use crate::guards::controller as guard;
use crate::ids::{BrokerEpoch, BrokerId, Nanos, PartitionIx};
use crate::metadata::image::BrokerImage;
use crate::metadata::records::Record;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationRequest, BrokerRegistrationResponse,
};

/// Where a heartbeat leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Fenced,
    Unfenced,
    ShuttingDown,
    ShutdownNow,
}

/// Plans a registration.
pub fn register(
    plan: &mut Plan<'_>,
    sessions: &Sessions,
    now: Nanos,
    request: &BrokerRegistrationRequest,
) -> BrokerRegistrationResponse {
    let answer = |error, epoch| BrokerRegistrationResponse { error, incarnation: request.incarnation, epoch };
    let refuse = |error| answer(error, BrokerEpoch(-1));
    let cluster = &plan.config.cluster_id;
    if !plan.guards.admits(guard::RegistrationClusterIdMatches, request.cluster_id == *cluster) {
        return refuse(ErrorCode::InconsistentClusterId);
    }
    if request.broker.0 < 0 {
        return refuse(ErrorCode::InvalidRequest);
    }
    let known = plan.image().broker(request.broker).copied();
    if let Some(known) = known {
        if known.incarnation == request.incarnation {
            return answer(ErrorCode::None, known.epoch);
        }
        let free = !sessions.is_alive(request.broker, now) || known.shutting_down;
        if !plan.guards.admits(guard::DuplicateRegistrationRefused, free) {
            return refuse(ErrorCode::DuplicateBrokerRegistration);
        }
    }
    let epoch = BrokerEpoch(plan.base);
    plan.push_noted(
        Record::RegisterBroker { broker: request.broker, node: request.node, incarnation: request.incarnation, epoch },
        Note::Fenced(true),
    );
    if let Some(known) = known {
        leave_after_restart(plan, request.broker, &known, request.previous_epoch);
    }
    answer(ErrorCode::None, epoch)
}

/// A registered broker came back as a new process: it is fenced, and if it cannot show that it stopped in order (its
/// previous epoch, from the clean-shutdown marker, is the registered one), its disk may lack what it once had (KIP-966).
fn leave_after_restart(plan: &mut Plan<'_>, broker: BrokerId, known: &BrokerImage, previous: BrokerEpoch) {
    let clean = previous == known.epoch;
    let forget = !plan.guards.admits(guard::UncleanRegistrationLeavesIsr, clean);
    let parts = plan.index().of_broker(broker);
    let mut partitions: Vec<PartitionIx> = parts.in_isr.iter().copied().collect();
    if forget {
        partitions.extend(parts.in_elr.iter().filter(|ix| !parts.in_isr.contains(ix)));
    }
    for partition in partitions {
        leave_sets(plan, partition, broker, forget);
    }
}

/// Takes a broker that may not lead out of one partition's ISR; with `forget` also out of its ELR, and for good.
fn leave_sets(plan: &mut Plan<'_>, partition: PartitionIx, broker: BrokerId, forget: bool) {
    let image = plan.image();
    let Some(p) = image.partition(partition) else { return };
    let mut change = plan.change(partition, &p.state);
    if forget || !plan.guards.admits(guard::FencedLeavesIsr, !change.isr.contains(&broker)) {
        change.isr.retain(|b| *b != broker);
    }
    if forget {
        change.unclean = Some(broker);
        change.raise_epoch = !plan.guards.admits(guard::UncleanRegistrationBumpsEpoch, false);
    }
    plan.finish(change, |b| b != broker && image.is_active(b));
}

/// Plans the fencing of a broker whose session is over, or that asked for it.
pub fn fence(plan: &mut Plan<'_>, broker: BrokerId) {
    let Some(known) = plan.image().broker(broker).copied() else { return };
    change_broker(plan, broker, &known, true, known.shutting_down);
    leave_all(plan, broker);
}

fn change_broker(plan: &mut Plan<'_>, broker: BrokerId, known: &BrokerImage, fenced: bool, shutting_down: bool) {
    let note = if fenced == known.fenced { Note::Plain } else { Note::Fenced(fenced) };
    plan.push_noted(Record::BrokerChange { broker, epoch: known.epoch, fenced, shutting_down }, note);
}

/// Takes a broker out of every ISR it is in, and its leaderships away.
fn leave_all(plan: &mut Plan<'_>, broker: BrokerId) {
    for &partition in &plan.index().of_broker(broker).in_isr {
        leave_sets(plan, partition, broker, false);
    }
}

/// Plans that a fenced broker is let in: partitions without a leader may have found one.
fn unfence(plan: &mut Plan<'_>, broker: BrokerId, known: &BrokerImage) {
    change_broker(plan, broker, known, false, false);
    let image = plan.image();
    for &partition in &plan.index().leaderless {
        let Some(p) = image.partition(partition) else { continue };
        if p.state.replicas.contains(&broker) {
            let change = plan.change(partition, &p.state);
            plan.finish(change, |b| b == broker || image.is_active(b));
        }
    }
}

/// Plans what a heartbeat asks for, and tells the session. `now` is the arrival.
pub fn heartbeat(
    plan: &mut Plan<'_>,
    sessions: &mut Sessions,
    now: Nanos,
    request: &BrokerHeartbeatRequest,
) -> BrokerHeartbeatResponse {
    let broker = request.broker;
    let refuse = |error| BrokerHeartbeatResponse { error, fenced: true, may_shutdown: false };
    let Some(known) = plan.image().broker(broker).copied() else { return refuse(ErrorCode::BrokerIdNotRegistered) };
    if !plan.guards.admits(guard::StaleBrokerEpochRefused, known.epoch == request.epoch) {
        return refuse(ErrorCode::StaleBrokerEpoch);
    }
    let next = next_state(plan, sessions, &known, request);
    match next {
        Next::Fenced if !known.fenced => fence(plan, broker),
        Next::Unfenced if known.fenced => unfence(plan, broker, &known),
        Next::ShuttingDown if !known.shutting_down => {
            change_broker(plan, broker, &known, false, true);
            leave_all(plan, broker);
        }
        Next::ShutdownNow if !known.fenced => {
            change_broker(plan, broker, &known, true, true);
            leave_all(plan, broker);
        }
        _ => {}
    }
    let in_service = matches!(next, Next::Unfenced | Next::ShuttingDown);
    let shutdown_from = (next == Next::ShuttingDown).then(|| plan.base + plan.entries.len() as i64);
    sessions.touch(broker, now, in_service, request.metadata_offset.0, shutdown_from);
    BrokerHeartbeatResponse { error: ErrorCode::None, fenced: !in_service, may_shutdown: next == Next::ShutdownNow }
}

fn next_state(plan: &mut Plan<'_>, sessions: &Sessions, known: &BrokerImage, request: &BrokerHeartbeatRequest) -> Next {
    let leads = !plan.index().of_broker(request.broker).leads.is_empty();
    if known.fenced {
        // The offset in a heartbeat is exclusive; the registration stands at the broker's epoch.
        let caught_up = request.metadata_offset.0 > known.epoch.0;
        return if request.want_shutdown {
            Next::ShutdownNow
        } else if request.want_fence || !plan.guards.admits(guard::UnfenceNeedsCatchUp, caught_up) {
            Next::Fenced
        } else {
            Next::Unfenced
        };
    }
    if known.shutting_down {
        let others_know = sessions.shutdown_is_known(request.broker, plan.image());
        return if !leads && others_know { Next::ShutdownNow } else { Next::ShuttingDown };
    }
    match (request.want_fence, request.want_shutdown) {
        (false, false) => Next::Unfenced,
        (false, true) if leads => Next::ShuttingDown,
        (_, true) => Next::ShutdownNow,
        (true, false) => Next::Fenced,
    }
}
