//! What happened, in lines that a person reads: one per state change, at most fifty; the rest is counted.

use crate::setup::Setup;
use mirrorlab_model::ids::{BrokerId, NodeId, PartitionIx};
use mirrorlab_model::states::MirrorState;
use mirrorlab_model::trace::{Trace, TraceEvent};
use mirrorlab_reports::record::StoryLine;
use mirrorlab_sim::world::World;

/// Lines kept.
const LINES_MAX: usize = 50;

/// The story so far.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// The lines.
    pub lines: Vec<StoryLine>,
    /// Lines that were left out.
    pub omitted: u64,
}

impl Story {
    /// Adds a line.
    pub fn tell(&mut self, world: &World, text: String, fault: bool) {
        tracing::info!(t_ns = world.now().0, step = world.counts().events, "{text}");
        // Faults are always told: without them the rest makes no sense.
        if self.lines.len() >= LINES_MAX && !fault {
            self.omitted += 1;
            return;
        }
        self.lines.push(StoryLine { time_ns: world.now().0, step: world.counts().events, text, fault });
    }

    /// Adds a line for a trace event that changes a state.
    pub fn on_trace(&mut self, world: &World, setup: &Setup, event: &TraceEvent) {
        if self.lines.len() >= LINES_MAX {
            self.omitted += u64::from(tellable(&event.trace));
            return;
        }
        let place = |p: PartitionIx| partition_name(world, setup, event.node, p);
        let text = match &event.trace {
            Trace::Elected { partition, leader, epoch, kind } => {
                format!("{}: broker {leader} elected, epoch {epoch} ({})", place(*partition), kind.name())
            }
            Trace::BrokerFenced { broker, fenced } => {
                let cluster = cluster_name(world, setup, event.node);
                format!("{cluster}/broker-{broker} {}", if *fenced { "fenced" } else { "in service" })
            }
            Trace::MirrorStateChanged { partition, from, to, attempt, .. } if interesting(*from, *to) => {
                let attempt = if *to == MirrorState::Failed { format!(" (attempt {attempt})") } else { String::new() };
                format!("{}: {} -> {}{attempt}", place(*partition), from.name(), to.name())
            }
            Trace::Truncated { partition, from, to, cause } => {
                format!(
                    "{} on {}: log cut from {from} to {to} ({})",
                    place(*partition),
                    world.node(event.node).name,
                    cause.name()
                )
            }
            Trace::MirrorGap { partition, from, to } => {
                format!("{}: {from} to {to} were gone at the source", place(*partition))
            }
            Trace::TxnTimedOut { producer, epoch } => {
                let cluster = cluster_name(world, setup, event.node);
                format!("{cluster}: a transaction of producer id {producer} timed out, aborted under epoch {epoch}")
            }
            _ => return,
        };
        self.tell(world, text, false);
    }
}

fn interesting(from: MirrorState, to: MirrorState) -> bool {
    from != to && from != MirrorState::Unknown
}

fn tellable(trace: &Trace) -> bool {
    matches!(
        trace,
        Trace::Elected { .. }
            | Trace::BrokerFenced { .. }
            | Trace::Truncated { .. }
            | Trace::MirrorGap { .. }
            | Trace::TxnTimedOut { .. }
    ) || matches!(trace, Trace::MirrorStateChanged { from, to, .. } if interesting(*from, *to))
}

fn cluster_name(world: &World, setup: &Setup, node: NodeId) -> String {
    let cluster = world.node(node).cluster.and_then(|c| setup.clusters.get(usize::from(c)));
    cluster.map_or_else(|| "?".to_owned(), |c| c.name.to_string())
}

/// `west/orders-3`.
#[must_use]
pub fn partition_name(world: &World, setup: &Setup, node: NodeId, partition: PartitionIx) -> String {
    let Some(cluster) = world.node(node).cluster else { return partition.to_string() };
    let name = setup.image(world, cluster).and_then(|image| {
        let entry = image.partition(partition)?;
        Some(format!("{}-{}", image.topic(entry.topic)?.name, entry.number))
    });
    format!("{}/{}", cluster_name(world, setup, node), name.unwrap_or_else(|| format!("#{partition}")))
}

/// `west/broker-2`, by broker id.
#[must_use]
pub fn broker_name(setup: &Setup, cluster: u8, broker: BrokerId) -> String {
    let cluster = setup.clusters.get(usize::from(cluster)).map_or("?", |c| &*c.name);
    format!("{cluster}/broker-{broker}")
}
