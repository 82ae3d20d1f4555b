//! S13 Metadata. What a broker applied is a prefix of what the controller committed: at the same end the running hash over all
//! records is the same. And what was committed stays so: a controller that came back knows all of it, whatever it died of,
//! unless its disk was wiped or failed. (One voter; more of them come with the quorum.)

use super::cx::Cx;
use super::ghost::ClusterGhost;
use super::sight::Sight;

/// Committed ends that are remembered.
const ENDS_MAX: usize = 1 << 16;

/// The controller committed up to `end`.
pub(super) fn committed<S: Sight>(cx: &mut Cx<'_, S>, c: &mut ClusterGhost, end: i64, hash: u64) {
    if let Some((last, _)) = c.committed.last().filter(|last| end < last.0) {
        cx.broken("S13", format_args!("the metadata that was committed, up to {last}"), format_args!("up to {end}"));
    }
    let keep = c.committed.partition_point(|e| e.0 < end);
    let rewritten = c.committed.get(keep).is_some_and(|e| *e != (end, hash));
    if rewritten {
        if let Some((slot, b)) = c.brokers.iter().enumerate().find(|(_, b)| b.applied.0 >= end) {
            let got = format_args!("broker {} applied another one up to {}", slot + 1, b.applied.0);
            cx.broken("S13", format_args!("a metadata log that is never rewritten below {end}"), got);
        }
    }
    c.committed.truncate(keep);
    if c.committed.len() >= ENDS_MAX {
        c.committed.drain(..ENDS_MAX / 2);
    }
    c.committed.push((end, hash));
}

/// A broker applied the metadata log up to `end`.
pub(super) fn applied<S: Sight>(cx: &mut Cx<'_, S>, c: &mut ClusterGhost, end: i64, hash: u64) {
    c.broker(cx.slot).applied = (end, hash);
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
