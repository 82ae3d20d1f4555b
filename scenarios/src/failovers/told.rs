//! What is told of stops and starts: lists for the record, figures, and what a scenario expects of them.

use super::{Episode, Failovers, Kind, Started, Stopped};
use crate::format::types::{Bounds, Expect};
use mirrorlab_model::ids::Nanos;
use mirrorlab_reports::figures;
use mirrorlab_reports::record::{Expectation, Failover, FailoverKind, FailoverPart, Percentiles};
use std::collections::BTreeMap;

/// Partitions of an order that are told one by one.
const PARTS_MAX: usize = 16;

/// Samples of all partitions that stopped, sorted; of some it may be unknown.
#[derive(Clone, Debug, Default, PartialEq)]
struct Samples {
    known: Vec<u64>,
    unknown: usize,
}

impl Samples {
    fn of(values: impl Iterator<Item = Option<u64>>) -> Self {
        let mut samples = Self::default();
        for value in values {
            match value {
                Some(value) => samples.known.push(value),
                None => samples.unknown += 1,
            }
        }
        samples.known.sort_unstable();
        samples
    }

    /// The value at or below which so many of a thousand lie, exactly: the nearest rank.
    fn at(&self, permille: usize) -> Option<u64> {
        let rank = (self.known.len() * permille).div_ceil(1000).max(1);
        self.known.get(rank - 1).copied()
    }

    fn percentiles(&self, scale: f64) -> Option<Percentiles> {
        let at = |permille| self.at(permille).map(|v| v as f64 / scale);
        Some(Percentiles { count: self.known.len() as u64, p50: at(500)?, p99: at(990)?, max: at(1000)? })
    }
}

/// Nanoseconds in a second.
const S: f64 = 1e9;

fn since(sent: Nanos, at: Option<Nanos>) -> Option<u64> {
    at.map(|at| at.since(sent).0)
}

/// How long before the source died, or else the position was noted, the first of the records left behind was acknowledged.
fn age(part: &Stopped) -> Option<u64> {
    let until = part.source_died.or(part.noted).or(part.at)?;
    let oldest = part.missing?.oldest;
    Some(oldest.map_or(0, |oldest| until.since(oldest).0))
}

fn lost(part: &Stopped) -> Option<u64> {
    part.missing.map(|m| m.records)
}

/// Those that came to rest.
fn at_rest(episode: &Episode) -> impl Iterator<Item = &Stopped> {
    episode.stopped.values().filter(|p| p.at.is_some())
}

/// Those of a start that are worth telling: they return, or something was cut.
fn returned(episode: &Episode) -> impl Iterator<Item = &Started> {
    episode.started.values().filter(|p| p.returns || p.cut.is_some())
}

impl Failovers {
    fn all_at_rest(&self) -> impl Iterator<Item = (&Episode, &Stopped)> {
        self.episodes.iter().flat_map(|e| at_rest(e).map(move |p| (e, p)))
    }
    fn rpo_records(&self) -> Samples {
        Samples::of(self.all_at_rest().map(|(_, p)| lost(p)))
    }
    fn rpo(&self) -> Samples {
        Samples::of(self.all_at_rest().map(|(_, p)| age(p)))
    }
    /// From order to STOPPED; of a partition that was ordered to stop and did not, unknown.
    fn rto(&self) -> Samples {
        let stops = self.episodes.iter().filter(|e| e.kind == Kind::Stop);
        Samples::of(
            stops.flat_map(|e| e.partitions.iter().map(|ix| since(e.sent, e.stopped.get(ix).and_then(|part| part.at)))),
        )
    }

    /// The list for the record, in the order in which it was ordered.
    #[must_use]
    pub fn told(&self) -> Vec<Failover> {
        let told = |e: &Episode| match e.kind {
            Kind::Stop => Some(stop(e)),
            Kind::Start => returned(e).next().is_some().then(|| start(e)),
        };
        self.episodes.iter().filter_map(told).collect()
    }

    /// The figures over all stops and starts. What is unknown of one partition is absent.
    pub fn figures(&self, into: &mut BTreeMap<String, f64>) {
        if self.all_at_rest().next().is_some() {
            let (records, time, writable) = (self.rpo_records(), self.rpo(), self.rto());
            if let (0, Some(p)) = (records.unknown, records.percentiles(1.0)) {
                into.insert(figures::LEFT_BEHIND_RECORDS.into(), records.known.iter().sum::<u64>() as f64);
                into.insert(figures::RPO_RECORDS_P99.into(), p.p99);
                into.insert(figures::RPO_RECORDS_MAX.into(), p.max);
            }
            if let (0, Some(p)) = (time.unknown, time.percentiles(S)) {
                into.insert(figures::RPO_S_P99.into(), p.p99);
                into.insert(figures::RPO_S_MAX.into(), p.max);
            }
            if let (0, Some(p)) = (writable.unknown, writable.percentiles(S)) {
                into.insert(figures::RTO_S_P99.into(), p.p99);
                into.insert(figures::RTO_S_MAX.into(), p.max);
            }
        }
        let starts: Vec<&Started> = self.episodes.iter().flat_map(returned).collect();
        if !starts.is_empty() {
            into.insert(figures::DROPPED_ACKED_RECORDS.into(), starts.iter().map(|p| p.acked as f64).sum());
        }
    }

    /// What a scenario expects of stops.
    pub fn expectations(&self, expect: &Expect, out: &mut Vec<Expectation>) {
        let time = |b: &Bounds<crate::units::Time>| {
            let ns = |t: Option<crate::units::Time>| t.map(|t| t.nanos().0);
            Bounds { p50: ns(b.p50), p90: ns(b.p90), p99: ns(b.p99), p999: ns(b.p999), max: ns(b.max) }
        };
        let records = |n: u64| n.to_string();
        let seconds = |ns: u64| format!("{:.3} s", ns as f64 / S);
        if let Some(bounds) = &expect.rpo_records {
            bounded("rpo_records", bounds, &self.rpo_records(), records, out);
        }
        if let Some(bounds) = &expect.rpo {
            bounded("rpo", &time(bounds), &self.rpo(), seconds, out);
        }
        if let Some(bounds) = &expect.rto {
            bounded("rto", &time(bounds), &self.rto(), seconds, out);
        }
    }
}

fn bounded(
    what: &str,
    bounds: &Bounds<u64>,
    samples: &Samples,
    say: impl Fn(u64) -> String,
    out: &mut Vec<Expectation>,
) {
    let Bounds { p50, p90, p99, p999, max } = *bounds;
    for (name, permille, most) in
        [("p50", 500, p50), ("p90", 900, p90), ("p99", 990, p99), ("p999", 999, p999), ("max", 1000, max)]
    {
        let Some(most) = most else { continue };
        let value = samples.at(permille).filter(|_| samples.unknown == 0);
        let got = match (value, samples.unknown, samples.known.len()) {
            (Some(value), ..) => say(value),
            (None, 0, _) => "no partition was stopped".to_owned(),
            (None, unknown, known) => format!("unknown for {unknown} of {} partitions", unknown + known),
        };
        let met = value.is_some_and(|value| value <= most);
        out.push(Expectation { what: format!("{what} {name}"), expected: format!("at most {}", say(most)), got, met });
    }
}

/// The sum if every part is known.
fn sum(values: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    values.sum()
}

fn empty(e: &Episode, kind: FailoverKind) -> Failover {
    Failover {
        kind,
        mirror: e.mirror.to_string(),
        topic: e.topic.to_string(),
        ordered_ns: e.ordered.0,
        sent_ns: e.sent.0,
        partitions: e.partitions.len() as u64,
        ..Failover::default()
    }
}

fn stop(e: &Episode) -> Failover {
    let samples = |of: &dyn Fn(&Stopped) -> Option<u64>| Samples::of(at_rest(e).map(of));
    let known = |of: &dyn Fn(&Stopped) -> Option<u64>| Samples { unknown: 0, ..samples(of) };
    let part = |ix| e.stopped.get(ix).cloned().unwrap_or_default();
    let parts = e.partitions.iter().enumerate().map(|(number, ix)| {
        let part = part(ix);
        FailoverPart {
            partition: number as u32,
            done_s: since(e.sent, part.at).map(|ns| ns as f64 / S),
            left_behind: lost(&part).filter(|_| part.at.is_some()),
            rpo_s: age(&part).filter(|_| part.at.is_some()).map(|ns| ns as f64 / S),
            first_write_s: since(e.sent, part.first_write).map(|ns| ns as f64 / S),
            first_read_s: since(e.sent, part.first_read).map(|ns| ns as f64 / S),
            ..FailoverPart::default()
        }
    });
    let few = e.partitions.len() <= PARTS_MAX;
    let (lost_records, ages) = (samples(&lost), samples(&age));
    Failover {
        done: at_rest(e).count() as u64,
        done_s: samples(&|p| since(e.sent, p.at)).percentiles(S),
        source_died_ns: at_rest(e).filter_map(|p| p.source_died).max().map(|at| at.0),
        source_died_of: at_rest(e).filter(|p| p.source_died.is_some()).count() as u64,
        left_behind: sum(at_rest(e).map(lost)),
        left_behind_unknown: lost_records.unknown as u64,
        rpo_records: lost_records.percentiles(1.0),
        rpo_s: ages.percentiles(S),
        first_write_s: known(&|p| since(e.sent, p.first_write)).percentiles(S),
        first_read_s: known(&|p| since(e.sent, p.first_read)).percentiles(S),
        gap_records: at_rest(e).map(|p| p.gap).sum(),
        control_added: sum(at_rest(e).map(|p| p.control)),
        parts: if few { parts.collect() } else { Vec::new() },
        ..empty(e, FailoverKind::Stop)
    }
}

fn start(e: &Episode) -> Failover {
    let offsets = |p: &Started| p.cut.map_or(0, |(to, from)| (from.0 - to.0).max(0) as u64);
    let of_cut = |p: &Started| if p.cut.is_some() { p.split } else { Some((0, 0)) };
    let all = || e.started.values();
    let parts = e.partitions.iter().enumerate().map(|(number, ix)| {
        let part = e.started.get(ix).copied().unwrap_or_default();
        FailoverPart {
            partition: number as u32,
            done_s: since(e.sent, part.at).map(|ns| ns as f64 / S),
            dropped_offsets: offsets(&part),
            dropped_acked: part.acked,
            ..FailoverPart::default()
        }
    });
    Failover {
        done: all().filter(|p| p.at.is_some()).count() as u64,
        done_s: Samples { unknown: 0, ..Samples::of(all().map(|p| since(e.sent, p.at))) }.percentiles(S),
        dropped_offsets: all().map(offsets).sum(),
        dropped_records: sum(all().map(|p| of_cut(p).map(|s| s.0))),
        dropped_control: sum(all().map(|p| of_cut(p).map(|s| s.1))),
        dropped_acked: all().map(|p| p.acked).sum(),
        parts: if e.partitions.len() <= PARTS_MAX { parts.collect() } else { Vec::new() },
        ..empty(e, FailoverKind::Start)
    }
}

#[cfg(test)]
#[path = "told_tests.rs"]
mod tests;
