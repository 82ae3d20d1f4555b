//! Decisions of a run, and which node is absent when one commits.

use crate::format::action::{Action, NodeRef};
use crate::plan::draw::{below, between, pick};
use crate::plan::Plan;
use crate::run::{Job, Phase, Run};
use crate::story::partition_name;
use crate::units::Time;
use mirrorlab_model::ids::Nanos;
use mirrorlab_model::trace::Trace;
use mirrorlab_reports::record::Record;
use mirrorlab_sim::node::Condition;
use mirrorlab_sim::pump::on_fresh_runtime;

/// How long before it commits the node is gone, at most, in nanoseconds: the record may be appended, on its way, or not written.
const EARLY_MAX: u64 = 2_000_000;
/// The shortest absence: a restart before anybody notices.
const SHORTEST: Time = Time::millis(200);
/// The longest: beyond the broker's session and the replicas' lag time.
const LONGEST: Time = Time::secs(20);
/// A fault of the plan that ended so long ago is got over.
const QUIET: u64 = 5_000_000_000;

/// What kind of decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DecisionKind {
    /// Records of the metadata log.
    Metadata,
    /// A partition's mirror state.
    State,
    /// A last mirrored position.
    Position,
    /// An operator's order about a mirrored topic.
    Order,
    /// The end of a transaction.
    Transaction,
}

/// A decision that was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What kind.
    pub kind: DecisionKind,
    /// When.
    pub at: Nanos,
    /// The event's number.
    pub step: u64,
    /// Index of its cluster.
    pub cluster: u8,
    /// In words.
    pub what: String,
}

/// A decision, and the absence that it has to bear.
pub(super) struct Sample {
    pub decision: Decision,
    pub node: NodeRef,
    pub from: Nanos,
    pub lasting: Time,
}

/// Runs to the end, and notes the decisions of the safety phase.
pub(super) fn watch(run: &mut Run) -> (Record, Vec<Decision>) {
    let mut decisions = Vec::new();
    let record = run.to_end_watched(|run| {
        if run.phase() != Phase::SafetyEnd {
            return;
        }
        let (world, setup) = (&run.lab().world, &run.lab().setup);
        for event in world.trace() {
            let Some(cluster) = world.node(event.node).cluster else { continue };
            let partition = |p| partition_name(world, setup, event.node, p);
            let (kind, what) = match event.trace {
                Trace::MetadataCommitted { end, .. } => (DecisionKind::Metadata, format!("metadata below {end}")),
                Trace::MirrorStateCommitted { partition: p, state, .. } => {
                    (DecisionKind::State, format!("{} of {}", state.name(), partition(p)))
                }
                Trace::MirrorPositionCommitted { partition: p, .. } => {
                    (DecisionKind::Position, format!("the last mirrored position of {}", partition(p)))
                }
                Trace::MirrorOrdered { desired, .. } => {
                    let cluster = &setup.clusters[usize::from(cluster)].name;
                    (DecisionKind::Order, format!("the order {} of {cluster}", desired.name()))
                }
                Trace::TxnDecided { producer, commit, .. } => {
                    let end = if commit { "commit" } else { "abort" };
                    (DecisionKind::Transaction, format!("the {end} of producer {producer}"))
                }
                _ => continue,
            };
            decisions.push(Decision { kind, at: world.now(), step: world.counts().events, cluster, what });
        }
    });
    (record, decisions)
}

/// The n-th sample: kinds in turn, everything else drawn by the seed. `None` if nobody may be absent then.
pub(super) fn sample(plan: &Plan, decisions: &[Decision], record: &Record, base: Nanos, n: u64) -> Option<Sample> {
    let lasting = between(plan.seed, "absence.length", n, SHORTEST, LONGEST);
    let early = 1 + below(plan.seed, "absence.early", n, EARLY_MAX);
    let calm: Vec<&Decision> = decisions.iter().filter(|d| is_calm(plan, record, base, d.at, lasting)).collect();
    let mut kinds: Vec<DecisionKind> = calm.iter().map(|d| d.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let kind = *kinds.get(usize::try_from(n).ok()? % kinds.len().max(1))?;
    let of_kind: Vec<&Decision> = calm.into_iter().filter(|d| d.kind == kind).collect();
    let decision = (*pick(plan.seed, "absence.decision", n, &of_kind)?).clone();
    let from = Nanos(decision.at.0.saturating_sub(early)).max(base + Nanos(1));
    let free = free_nodes(plan, decision.cluster, from);
    let node = pick(plan.seed, "absence.node", n, &free)?.clone();
    Some(Sample { decision, node, from, lasting })
}

/// Whether no fault of the plan is under way from shortly before an instant until the absence is over and got over: two faults
/// at once may be more than the clusters bear.
fn is_calm(plan: &Plan, record: &Record, base: Nanos, at: Nanos, lasting: Time) -> bool {
    let end = base.0 + plan.stage.phases.safety.0;
    let (from, to) = (at.0.saturating_sub(QUIET), at.0 + lasting.0 + QUIET);
    let is_fault = |label: &str| {
        let name = label.split(' ').next().unwrap_or_default();
        Action::NAMES.contains(&name) && !crate::census::is_order(name)
    };
    let disturbs = |from_ns: u64, to_ns: u64| from_ns <= to && to_ns.max(from_ns) >= from;
    at.0 < end && !record.bands.iter().any(|band| is_fault(&band.label) && disturbs(band.from_ns, band.to_ns))
}

/// Nodes of a cluster that availability does not need at an instant: brokers without which every partition has enough replicas
/// in sync, controllers of a quorum that has a majority without.
fn free_nodes(plan: &Plan, cluster: u8, at: Nanos) -> Vec<NodeRef> {
    let job = Job { path: String::new(), plan: plan.clone() };
    on_fresh_runtime(plan.seed, async move || {
        let Ok(mut run) = Run::new(job) else { return Vec::new() };
        if !run.go_to(at) {
            return Vec::new();
        }
        free_now(&run, cluster)
    })
}

fn free_now(run: &Run, cluster: u8) -> Vec<NodeRef> {
    let (world, setup) = (&run.lab().world, &run.lab().setup);
    let Some(of) = setup.clusters.get(usize::from(cluster)) else { return Vec::new() };
    let all_up = of.controllers.iter().chain(&of.brokers).all(|node| world.node(*node).condition == Condition::Up);
    let Some(image) = setup.image(world, cluster).filter(|_| all_up) else { return Vec::new() };
    let mut needed = vec![false; of.brokers.len()];
    for (_, partition) in image.partitions() {
        let least = image.topic_config(partition.topic).min_insync_replicas.max(1) as usize;
        let in_sync = &partition.state.isr;
        for (slot, needed) in needed.iter_mut().enumerate() {
            let is_member = in_sync.iter().any(|broker| broker.0 == slot as i32 + 1);
            *needed |= is_member && in_sync.len() <= least;
        }
    }
    let serving = |slot: usize| image.brokers().any(|(id, broker)| id.0 == slot as i32 + 1 && !broker.fenced);
    if !(0..needed.len()).all(serving) {
        return Vec::new();
    }
    let brokers = needed.iter().enumerate().filter(|(_, needed)| !**needed);
    let mut free: Vec<NodeRef> = brokers.map(|(n, _)| NodeRef::Broker(of.name.to_string(), n as u32 + 1)).collect();
    if of.controllers.len() > 2 {
        free.extend((1..=of.controllers.len() as u32).map(|n| NodeRef::Controller(of.name.to_string(), n)));
    }
    free
}
