//! Trace events in words, with their weight: what decides more is kept longer.

use super::place::Place;
use mirrorlab_model::ids::{BrokerId, PartitionIx};
use mirrorlab_model::states::{DesiredState, LastPosition};
use mirrorlab_model::trace::{Origin, Trace};

/// Traffic: appends, positions, watermarks.
pub(super) const LIGHT: u8 = 1;
/// Agreement: replicas in sync, committed states.
pub(super) const MIDDLE: u8 = 3;
/// Messages that led straight to it.
pub(super) const PATH: u8 = 4;
/// Elections, cuts, states, restarts.
pub(super) const HEAVY: u8 = 5;
/// Faults and orders.
pub(super) const CAUSE: u8 = 6;

/// An event in words. What is alike is folded: the first word tells it apart, offsets become one span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// How much it decides.
    pub weight: u8,
    /// What it is.
    pub what: String,
    /// The partition that it is about.
    pub partition: Option<PartitionIx>,
    /// From where to where.
    pub span: Option<(i64, i64)>,
    /// What else is to be said.
    pub tail: String,
}

fn words(weight: u8, partition: PartitionIx, what: impl Into<String>) -> Words {
    Words { weight, what: what.into(), partition: Some(partition), span: None, tail: String::new() }
}

impl Words {
    fn span(self, from: i64, to: i64) -> Self {
        Self { span: Some((from, to)), ..self }
    }
    fn tail(self, tail: String) -> Self {
        Self { tail, ..self }
    }
}

/// A trace event of a cluster in words; `None` if it has nothing to do with the place.
pub(super) fn of(trace: &Trace, cluster: u8, place: &Place) -> Option<Words> {
    let words = about_logs(trace)
        .or_else(|| about_roles(trace, cluster, place))
        .or_else(|| about_mirrors(trace, cluster, place));
    if let Some(words) = words {
        return words.partition.is_none_or(|partition| place.holds(cluster, partition)).then_some(words);
    }
    place.touches(cluster).then(|| about_nodes(trace)).flatten()
}

fn about_logs(trace: &Trace) -> Option<Words> {
    Some(match *trace {
        Trace::Appended { partition, origin, base, next, epoch, leader_epoch, .. } => {
            let from = match origin {
                Origin::Client => "appended for a client",
                Origin::Replication => "copied from its leader",
                Origin::Mirror => "copied from the source",
                Origin::Coordinator => "appended a record of its own",
            };
            let own = if leader_epoch == epoch { String::new() } else { format!(", led in epoch {leader_epoch}") };
            words(LIGHT, partition, from).span(base.0, next.0).tail(format!(" (epoch {epoch}{own})"))
        }
        Trace::HighWatermarkMoved { partition, from, to, leader } => {
            words(LIGHT, partition, if leader { "high watermark, as leader" } else { "high watermark" })
                .span(from.0, to.0)
        }
        Trace::FollowerPosition { partition, follower, position } => {
            words(LIGHT, partition, format!("learns the position of broker {follower}")).span(position.0, position.0)
        }
        Trace::Acked { partition, base, count, acks, .. } => {
            let acks = if acks == -1 { "all".to_owned() } else { acks.to_string() };
            words(LIGHT, partition, format!("acknowledged, acks {acks}")).span(base.0, base.0 + i64::from(count))
        }
        Trace::Read { partition, base, next, .. } => words(LIGHT, partition, "read").span(base.0, next.0),
        Trace::Truncated { partition, from, to, cause } => {
            words(HEAVY, partition, format!("log cut from {from} to {to} ({})", cause.name()))
        }
        Trace::Diverged { partition, epoch, end } => {
            words(HEAVY, partition, format!("told that logs part in epoch {epoch}, which ends at {end}"))
        }
        Trace::LogStartMoved { partition, to } => words(MIDDLE, partition, format!("log starts at {to}")),
        Trace::LogRecovered { partition, start, end, clean } => {
            let how = if clean { "log loaded" } else { "log recovered" };
            words(HEAVY, partition, format!("{how}: {start}..{end}"))
        }
        Trace::CorruptFound { partition, at } => words(HEAVY, partition, format!("finds a damaged batch at {at}")),
        Trace::Cleaned { partition, from, to, .. } => words(MIDDLE, partition, "log compacted").span(from.0, to.0),
        _ => return None,
    })
}

fn about_roles(trace: &Trace, cluster: u8, place: &Place) -> Option<Words> {
    Some(match *trace {
        Trace::BecameLeader { partition, epoch, epoch_start, .. } => {
            words(HEAVY, partition, format!("leads in epoch {epoch}, from offset {epoch_start}"))
        }
        Trace::BecameFollower { partition, epoch, leader } => {
            words(HEAVY, partition, format!("follows {} in epoch {epoch}", broker(leader)))
        }
        Trace::ReplicaRemoved { partition } => words(HEAVY, partition, "replica removed"),
        Trace::IsrProposed { partition, isr, .. } => {
            words(MIDDLE, partition, format!("asks for in-sync replicas {}", place.brokers(cluster, partition, isr)))
        }
        Trace::IsrCommitted { partition, isr, .. } => {
            words(MIDDLE, partition, format!("learns in-sync replicas {}", place.brokers(cluster, partition, isr)))
        }
        Trace::PartitionChanged { partition, leader, epoch, isr, .. } => {
            let text = format!(
                "decides: led by {}, epoch {epoch}, in-sync replicas {}",
                broker(leader),
                place.brokers(cluster, partition, isr)
            );
            words(MIDDLE, partition, text)
        }
        Trace::Elected { partition, leader, epoch, kind } => {
            words(HEAVY, partition, format!("elects broker {leader}, epoch {epoch} ({})", kind.name()))
        }
        _ => return None,
    })
}

fn about_mirrors(trace: &Trace, cluster: u8, place: &Place) -> Option<Words> {
    Some(match *trace {
        Trace::MirrorOrdered { topic, desired, .. } => {
            if !(place.partitions.is_empty() && place.touches(cluster) || place.topics.contains(&(cluster, topic))) {
                return None;
            }
            let text = if desired == DesiredState::Unknown {
                "takes the topic out of its mirror".to_owned()
            } else {
                format!("wants the topic {}", desired.name())
            };
            Words { weight: HEAVY, what: text, partition: None, span: None, tail: String::new() }
        }
        Trace::TopicRemoved { topic, .. } if place.topics.contains(&(cluster, topic)) => {
            let what = "removes the topic".to_owned();
            Words { weight: HEAVY, what, partition: None, span: None, tail: String::new() }
        }
        Trace::MirrorStateChanged { partition, from, to, attempt, .. } => {
            let attempt = if attempt > 0 { format!(" (attempt {attempt})") } else { String::new() };
            words(HEAVY, partition, format!("{} -> {}{attempt}", from.name(), to.name()))
        }
        Trace::MirrorStateCommitted { partition, state, leader_epoch, .. } => {
            words(MIDDLE, partition, format!("{} committed, of leader epoch {leader_epoch}", state.name()))
        }
        Trace::MirrorPositionCommitted { partition, epoch, offset } => {
            words(HEAVY, partition, format!("last mirrored position committed: {}", LastPosition { epoch, offset }))
        }
        Trace::MirrorStateRemoved { partition } => words(HEAVY, partition, "mirror state removed"),
        Trace::MirrorFetcherAdded { partition, offset, epoch, .. } => {
            words(HEAVY, partition, format!("fetches from the source at {offset}, source epoch {epoch}"))
        }
        Trace::MirrorFetcherRemoved { partition, .. } => words(MIDDLE, partition, "fetches from the source no more"),
        Trace::Mirrored { partition, base, next, source_epoch, .. } => {
            words(LIGHT, partition, "mirrored").span(base.0, next.0).tail(format!(" (source epoch {source_epoch})"))
        }
        Trace::BumpRequested { partition, min } => {
            words(HEAVY, partition, format!("asks for a leader epoch above {min}"))
        }
        Trace::MirrorGap { partition, from, to } => {
            words(HEAVY, partition, format!("{from}..{to} were gone at the source"))
        }
        Trace::ReadOnlyRefused { partition, .. } => words(MIDDLE, partition, "refuses a write: read-only"),
        _ => return None,
    })
}

fn node(weight: u8, what: String) -> Words {
    Words { weight, what, partition: None, span: None, tail: String::new() }
}

/// What is told of the event that broke it, and would be noise before.
pub(super) fn at_the_end(trace: &Trace) -> Option<Words> {
    Some(match *trace {
        Trace::MetadataCommitted { end, .. } => node(CAUSE, format!("has committed the metadata log up to {end}")),
        Trace::MetadataApplied { end, .. } => node(CAUSE, format!("has applied the metadata log up to {end}")),
        _ => return None,
    })
}

fn about_nodes(trace: &Trace) -> Option<Words> {
    Some(match *trace {
        Trace::BrokerFenced { broker, fenced } => {
            node(MIDDLE, format!("broker {broker} {}", if fenced { "fenced" } else { "in service" }))
        }
        Trace::QuorumLed { epoch } => node(HEAVY, format!("leads the quorum in epoch {epoch}")),
        Trace::QuorumLost { epoch } => node(HEAVY, format!("leads the quorum no more, epoch {epoch}")),
        Trace::VoteGranted { epoch, candidate } => node(MIDDLE, format!("votes for node {candidate} in epoch {epoch}")),
        Trace::SnapshotInstalled { end } => {
            node(HEAVY, format!("metadata log gives way to a snapshot that ends at {end}"))
        }
        Trace::MetadataTruncated { to, committed } => {
            node(HEAVY, format!("metadata log cut to {to}; it had applied what is below {committed}"))
        }
        Trace::TxnTimedOut { producer, epoch } => {
            node(HEAVY, format!("transaction of {producer} timed out, epoch {epoch}"))
        }
        Trace::TxnDecided { producer, commit, .. } => {
            node(MIDDLE, format!("decides the transaction of {producer}: {}", if commit { "commit" } else { "abort" }))
        }
        _ => return None,
    })
}

fn broker(id: BrokerId) -> String {
    if id == BrokerId::NONE {
        return "nobody".to_owned();
    }
    format!("broker {id}")
}
