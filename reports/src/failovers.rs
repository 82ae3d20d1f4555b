//! What stops and starts cost, in words: text and page say the same.
//!
//! "Unknown" is said wherever something is not known, and what never came is said to have never come.

use crate::record::{Failover, FailoverKind, Percentiles};
use crate::show::{count, number, plural, seconds};

/// Orders that the printed form tells.
pub(crate) const TOLD_MAX: usize = 8;

/// An order that waited for so long, in nanoseconds, is told both times of.
const WAIT_TOLD_MIN: u64 = 100_000_000;

/// What an order cost, as heads and texts; the first head names the order's kind.
pub(crate) fn lines(failover: &Failover) -> Vec<(&'static str, String)> {
    match failover.kind {
        FailoverKind::Stop => stop(failover),
        FailoverKind::Start => start(failover),
    }
}

fn stop(f: &Failover) -> Vec<(&'static str, String)> {
    let mut lines = vec![("failover", came(f, "STOPPED")), ("  rpo", rpo(f)), ("  rto", rto(f))];
    if f.done > 0 {
        let control =
            f.control_added.map_or_else(|| "an unknown number of control records".to_owned(), control_records);
        lines.push(("  kept", format!("all that was mirrored; {control} added to close it")));
    }
    if f.gap_records > 0 {
        let gap = count(f.gap_records);
        lines.push((
            "  gap",
            format!("{gap} more records: the source's retention removed them before they were mirrored"),
        ));
    }
    lines
}

fn start(f: &Failover) -> Vec<(&'static str, String)> {
    let took = f.done_s.map_or_else(String::new, |p| format!(" after {}", spread(p, " s")));
    vec![("failback", format!("{}{took}", came(f, "MIRRORING"))), ("  dropped", dropped(f))]
}

/// How far an order came.
fn came(f: &Failover, state: &str) -> String {
    let (mirror, topic, at) = (&f.mirror, &f.topic, seconds(f.ordered_ns));
    let (done, all) = (count(f.done), count(f.partitions));
    let waited = f.sent_ns.saturating_sub(f.ordered_ns) >= WAIT_TOLD_MIN;
    let sent = if waited { format!(", sent at {} s behind earlier orders", seconds(f.sent_ns)) } else { String::new() };
    format!("{mirror}/{topic}, ordered at {at} s{sent}: {done} of {all} partition{} {state}", plural(f.partitions))
}

fn control_records(n: u64) -> String {
    format!("{} control record{}", count(n), plural(n))
}

fn rpo(f: &Failover) -> String {
    let source = match (f.source_died_ns, f.source_died_of) {
        (Some(at), n) if n == f.done => format!("the source died at {} s", seconds(at)),
        (Some(at), n) => format!("of {n} partitions the source died, the last at {} s", seconds(at)),
        (None, _) => "the source lives".to_owned(),
    };
    if f.done == 0 {
        return "unknown: no partition came to STOPPED".to_owned();
    }
    let unknown = match f.left_behind_unknown {
        0 => String::new(),
        n => format!(" (unknown for {} partition{})", count(n), plural(n)),
    };
    let Some(by) = f.rpo_records else { return format!("unknown{unknown}; {source}") };
    let before = if f.source_died_of > 0 { "it died" } else { "the position was noted" };
    let total = f.left_behind.map_or_else(
        || "an unknown number of acknowledged records left behind".to_owned(),
        |n| format!("{} acknowledged record{} left behind", count(n), plural(n)),
    );
    let age = match f.rpo_s.filter(|_| by.max > 0.0) {
        Some(p) if p.count > 1 && p.p50 != p.max => {
            let (p50, p99, max) = (number(p.p50), number(p.p99), number(p.max));
            format!(", acknowledged up to {max} s (P50 {p50}, P99 {p99}) before {before}")
        }
        Some(p) => format!(", acknowledged up to {} s before {before}", number(p.max)),
        None => String::new(),
    };
    let by = if by.max > 0.0 { format!(", by partition {}", spread(by, "")) } else { String::new() };
    format!("{total}{by}{unknown}{age}; {source}")
}

fn rto(f: &Failover) -> String {
    let first = |what: &str, p: Option<Percentiles>| match p {
        Some(p) => format!("first {what} after {} ({} partition{})", spread(p, " s"), count(p.count), plural(p.count)),
        None => format!("no {what} after STOPPED"),
    };
    let writable =
        f.done_s.map_or_else(|| "never writable".to_owned(), |p| format!("writable after {}", spread(p, " s")));
    format!("{writable}; {}; {}", first("accepted write", f.first_write_s), first("read", f.first_read_s))
}

fn dropped(f: &Failover) -> String {
    if f.dropped_offsets == 0 {
        return "nothing".to_owned();
    }
    let acked = count(f.dropped_acked);
    match (f.dropped_records, f.dropped_control) {
        (Some(records), Some(control)) => {
            let (s, all) = (plural(records), count(records));
            format!("{all} record{s}, {acked} of them acknowledged, and {}", control_records(control))
        }
        _ => format!(
            "at most {} records, {acked} of them acknowledged: no replica held them any more",
            count(f.dropped_offsets)
        ),
    }
}

/// Percentiles, or the one value if there is only one.
pub(crate) fn spread(p: Percentiles, unit: &str) -> String {
    if p.count <= 1 || p.p50 == p.max {
        return format!("{}{unit}", number(p.max));
    }
    format!("P50 {}, P99 {}, max {}{unit}", number(p.p50), number(p.p99), number(p.max))
}

#[cfg(test)]
#[path = "failovers_tests.rs"]
mod tests;
