//! S13 Metadata. What a broker or a standby controller applied is a prefix of what the active one committed: at the same end the
//! running hash over all records is the same. What was committed stays so: a majority of the voters holds it when it is said to
//! be committed, whoever leads later has it, nobody cuts it. In each epoch one controller leads, and each voter votes once.
//!
//! A disk that was wiped or failed excuses nothing as long as a majority is left; the only voter's is held to nothing then.

use super::cx::Cx;
use super::ghost::ClusterGhost;
use super::logs;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::{LeaderEpoch, NodeId, Offset};

/// Committed ends that are remembered.
const ENDS_MAX: usize = 1 << 16;

fn controllers<'a, S: Sight>(cx: &Cx<'a, S>) -> &'a [NodeId] {
    cx.roster.clusters.get(usize::from(cx.at.cluster)).map_or(&[], |c| &c.controllers)
}

/// The controller committed up to `end`.
pub(super) fn committed<S: Sight>(cx: &mut Cx<'_, S>, c: &mut ClusterGhost, end: i64, hash: u64) {
    if controllers(cx).len() > 1 && c.committed.last().is_some_and(|(last, _)| end < *last) {
        return late(cx, c, end, hash);
    }
    if let Some((last, _)) = c.committed.last().filter(|last| end < last.0) {
        cx.broken("S13", format_args!("the metadata that was committed, up to {last}"), format_args!("up to {end}"));
    }
    let keep = c.committed.partition_point(|e| e.0 < end);
    let rewritten = c.committed.get(keep).is_some_and(|e| *e != (end, hash));
    if rewritten {
        let expected = format_args!("a metadata log that is never rewritten below {end}").to_string();
        if let Some((slot, b)) = c.brokers.iter().enumerate().find(|(_, b)| b.applied.0 >= end) {
            let got = format_args!("broker {} applied another one up to {}", slot + 1, b.applied.0);
            cx.broken("S13", expected, got);
        } else if controllers(cx).len() > 1 {
            cx.broken("S13", expected, "another one was committed");
        }
    }
    c.committed.truncate(keep);
    if c.committed.len() >= ENDS_MAX {
        c.committed.drain(..ENDS_MAX / 2);
    }
    c.committed.push((end, hash));
    if controllers(cx).len() > 1 {
        let log = cx.at.node.and_then(|node| cx.sight.metadata_log(node)).filter(|log| log.start().0 < end);
        c.committed_in = log.map_or(LeaderEpoch::NONE, |log| last_epoch(log, Offset(end)));
        majority(cx, end);
    }
}

/// A leader commits less than another one has: its term is over, and it does not know yet. What it says is true all the same: a
/// majority answered it while its term lasted. It is what whoever led since has at these offsets.
fn late<S: Sight>(cx: &mut Cx<'_, S>, c: &ClusterGhost, end: i64, hash: u64) {
    let at = c.committed.partition_point(|e| e.0 < end);
    if let Some((_, known)) = c.committed.get(at).filter(|(e, known)| *e == end && *known != hash) {
        cx.broken("S13", format_args!("hash {known:016x} at metadata offset {end}"), format_args!("{hash:016x}"));
    }
    let Some((node, own)) = cx.at.node.and_then(|node| Some((node, cx.sight.metadata_log(node)?))) else { return };
    for other in controllers(cx).iter().filter(|other| **other != node) {
        let (Some(theirs), Some(voter)) = (cx.sight.metadata_log(*other), cx.sight.voter(*other)) else { continue };
        let from = own.start().max(theirs.start());
        if voter.committed >= end && from.0 < end && !logs::equal(own, theirs, from, Offset(end)) {
            let got = format_args!("{} committed something else", cx.roster.name(*other)).to_string();
            cx.broken("S13", format_args!("metadata up to {end} as it was committed"), got);
        }
    }
}

/// Whether a majority of the voters holds what is called committed. Equal epochs before an offset mean equal logs up to it;
/// one that is down is given the benefit of the doubt.
fn majority<S: Sight>(cx: &mut Cx<'_, S>, end: i64) {
    let Some(own) = cx.at.node.and_then(|node| cx.sight.metadata_log(node)) else { return };
    let last = last_epoch(own, Offset(end));
    let all = controllers(cx);
    let holds = |node: &&NodeId| match (cx.sight.metadata_log(**node), cx.sight.voter(**node)) {
        (_, Some(voter)) if voter.is_observer => false,
        (Some(log), _) => log.end().0 >= end && (log.start().0 >= end || last_epoch(log, Offset(end)) == last),
        _ => true,
    };
    let holding = all.iter().filter(holds).count();
    if holding * 2 <= all.len() {
        let expected = format_args!("metadata up to {end} on a majority of {} voters", all.len());
        cx.broken("S13", expected, format_args!("it is on {holding} of them"));
    }
}

fn last_epoch<L: LogSight>(log: L, end: Offset) -> LeaderEpoch {
    logs::epoch_before(log, end)
}

/// A broker applied the metadata log up to `end`.
pub(super) fn applied<S: Sight>(cx: &mut Cx<'_, S>, c: &mut ClusterGhost, end: i64, hash: u64) {
    c.broker(cx.slot).applied = (end, hash);
    replicated(cx, c, end, hash);
}

/// Somebody applied the metadata log up to `end`.
pub(super) fn replicated<S: Sight>(cx: &mut Cx<'_, S>, c: &ClusterGhost, end: i64, hash: u64) {
    let at = c.committed.partition_point(|e| e.0 < end);
    match c.committed.get(at) {
        Some((e, h)) if *e == end && *h != hash => {
            cx.broken("S13", format_args!("hash {h:016x} at metadata offset {end}"), format_args!("{hash:016x}"));
        }
        None if !c.committed.is_empty() => {
            let last = c.committed.last().map_or(0, |e| e.0);
            cx.broken(
                "S13",
                format_args!("metadata up to {last}, the committed end"),
                format_args!("applied up to {end}"),
            );
        }
        _ => {}
    }
}

/// A controller leads in an epoch: nobody else did, and it has what was committed.
pub(super) fn led<S: Sight>(cx: &mut Cx<'_, S>, c: &mut ClusterGhost, epoch: LeaderEpoch) {
    let Some(node) = cx.at.node else { return };
    if let Some(other) = c.led.insert(epoch, node) {
        let expected = format_args!("one term in epoch {epoch}, that of {}", cx.roster.name(other)).to_string();
        cx.broken("S13", expected, format_args!("{} leads in it too, or again", cx.roster.name(node)).to_string());
    }
    let Some(log) = cx.sight.metadata_log(node) else { return };
    if let Some((last, _)) = c.committed.last().filter(|(last, _)| log.end().0 < *last) {
        let got = format_args!("a log that ends at {}", log.end()).to_string();
        cx.broken("S13", format_args!("a leader with the metadata that was committed, up to {last}"), got);
    } else if let Some((last, _)) = c.committed.last().filter(|(last, _)| log.start().0 < *last) {
        // As long, and another one: whoever has what was committed may be down (Raft, figure 8).
        let (epoch, theirs) = (c.committed_in, last_epoch(log, Offset(*last)));
        if epoch != LeaderEpoch::NONE && theirs != epoch {
            let expected = format_args!("a leader whose record before {last} is of epoch {epoch}, as it was committed")
                .to_string();
            cx.broken("S13", expected, format_args!("one of epoch {theirs}"));
        }
    }
    for other in controllers(cx).iter().filter(|other| **other != node) {
        let (Some(theirs), Some(voter)) = (cx.sight.metadata_log(*other), cx.sight.voter(*other)) else { continue };
        let (from, upto) = (log.start().max(theirs.start()), Offset(voter.committed).min(log.end()));
        let upto = upto.min(theirs.end());
        if from < upto && !logs::equal(log, theirs, from, upto) {
            let got = format_args!("{} applied something else", cx.roster.name(*other)).to_string();
            cx.broken("S13", format_args!("a leader whose log is what was committed, up to {upto}"), got);
        }
    }
}

/// A voter gave its vote.
pub(super) fn voted<S: Sight>(cx: &mut Cx<'_, S>, c: &mut ClusterGhost, epoch: LeaderEpoch, candidate: NodeId) {
    let Some(node) = cx.at.node else { return };
    if let Some(other) = c.votes.insert((epoch, node), candidate).filter(|other| *other != candidate) {
        let expected = format_args!("one vote in epoch {epoch}, for {}", cx.roster.name(other)).to_string();
        cx.broken("S13", expected, format_args!("one for {} too", cx.roster.name(candidate)).to_string());
    }
}

/// A voter cuts its log.
pub(super) fn cut<S: Sight>(cx: &mut Cx<'_, S>, to: i64, committed: i64) {
    if to < committed {
        cx.broken(
            "S13",
            format_args!("no cut below {committed}, where it is committed"),
            format_args!("a cut to {to}"),
        );
    }
}
