//! Measures a run: throughput and lag of mirrors over simulated time, and the figures of the summary.
//!
//! Bytes and records are counted from trace events; lag is sampled from the mirror leaders, as they would tell it. Where a
//! mirror leader does not know its lag, the sample is unknown and counted as such, never as zero (decision 19).
//!
//! Looking at every partition at every sample would cost more than a large run itself. Above [`LAGS_MAX`] looks in a run each
//! sample looks at every n-th partition of a broker, at others each time, and the curve shows n times their sum.

use crate::setup::Setup;
use mirrorlab_model::ids::Nanos;
use mirrorlab_model::states::MirrorState;
use mirrorlab_model::trace::{Trace, TraceEvent};
use mirrorlab_reports::distribution::Distribution;
use mirrorlab_reports::record::{Curve, Percentiles};
use mirrorlab_sim::world::World;
use std::collections::BTreeMap;

/// Samples over a run, at most.
const SAMPLES: u64 = 600;

/// Partitions looked at in all samples of a run, about.
const LAGS_MAX: u64 = 1_000_000;

/// Counts and samples of a run.
#[derive(Clone, Debug)]
pub struct Meter {
    /// Time between samples.
    pub interval: Nanos,
    /// When sampling began.
    pub base: Nanos,
    mirrored_bytes: u64,
    mirrored_records: u64,
    at_last_sample: u64,
    acked: u64,
    read: u64,
    throughput: Vec<Option<f64>>,
    lag: Vec<Option<f64>>,
    distribution: Distribution,
    unknown: u64,
    /// Every n-th partition is looked at in a sample.
    stride: usize,
    /// From the end of the safety phase until every lag was zero.
    pub catch_up: Option<Nanos>,
    mirrored_first: Option<Nanos>,
    mirrored_last: Option<Nanos>,
}

impl Meter {
    /// A meter for a run that lasts about so long, with about so many partitions in each mirrored cluster.
    #[must_use]
    pub fn new(length: Nanos, partitions: u64) -> Self {
        let interval = Nanos((length.0 / SAMPLES).max(Nanos::from_millis(100).0));
        Self {
            interval,
            base: Nanos::ZERO,
            mirrored_bytes: 0,
            mirrored_records: 0,
            at_last_sample: 0,
            acked: 0,
            read: 0,
            throughput: Vec::new(),
            lag: Vec::new(),
            distribution: Distribution::new(),
            unknown: 0,
            stride: (partitions * SAMPLES).div_ceil(LAGS_MAX).max(1) as usize,
            catch_up: None,
            mirrored_first: None,
            mirrored_last: None,
        }
    }

    /// Counts a trace event.
    pub fn on_trace(&mut self, now: Nanos, event: &TraceEvent) {
        match event.trace {
            Trace::Mirrored { base, next, bytes, .. } => {
                self.mirrored_bytes += u64::from(bytes);
                self.mirrored_records += (next.0 - base.0).max(0) as u64;
                self.mirrored_first.get_or_insert(now);
                self.mirrored_last = Some(now);
            }
            Trace::Acked { count, .. } => self.acked += u64::from(count),
            Trace::Read { base, next, .. } => self.read += (next.0 - base.0).max(0) as u64,
            _ => {}
        }
    }

    /// Takes a sample.
    pub fn sample(&mut self, world: &World, setup: &Setup) {
        let bytes = self.mirrored_bytes - self.at_last_sample;
        self.at_last_sample = self.mirrored_bytes;
        self.throughput.push(Some(bytes as f64 / self.interval.as_secs_f64() / 1e6));
        let (mut total, mut known, mut unknown) = (0u64, 0u64, 0u64);
        let first = self.lag.len() % self.stride;
        let mut destinations: Vec<u8> = setup.mirrors.iter().map(|m| m.destination).collect();
        destinations.dedup();
        for cluster in destinations {
            for broker in setup.clusters[usize::from(cluster)].brokers.iter().filter_map(|n| world.node(*n).broker()) {
                for part in broker.mirror.iter_some(first, self.stride) {
                    match broker.mirror.lag(part, &broker.replicas) {
                        Some(lag) => {
                            self.distribution.record(lag as u64);
                            total += lag as u64;
                            known += 1;
                        }
                        None => unknown += 1,
                    }
                }
            }
        }
        self.unknown += unknown;
        self.lag.push((known > 0 && unknown == 0).then_some(total as f64 * self.stride as f64));
    }

    /// The sum of all lags as the mirror leaders tell it now; `None` while one does not know.
    #[must_use]
    pub fn lag_now(world: &World, setup: &Setup) -> Option<u64> {
        let mut sum = 0;
        for mirror in &setup.mirrors {
            for broker in
                setup.clusters[usize::from(mirror.destination)].brokers.iter().filter_map(|n| world.node(*n).broker())
            {
                for part in broker.mirror.iter().filter(|p| p.state != MirrorState::Stopped) {
                    sum += u64::try_from(broker.mirror.lag(part, &broker.replicas)?).ok()?;
                }
            }
        }
        Some(sum)
    }

    /// Lag over all samples and partitions, in records.
    #[must_use]
    pub fn lag_percentiles(&self) -> Percentiles {
        self.distribution.percentiles()
    }

    /// The curves.
    #[must_use]
    pub fn curves(&self) -> Vec<Curve> {
        let curve = |name: &str, unit: &str, values: &Vec<Option<f64>>| Curve {
            name: name.to_owned(),
            unit: unit.to_owned(),
            start_ns: (self.base + self.interval).0,
            interval_ns: self.interval.0,
            values: values.clone(),
        };
        vec![curve("mirrored", "MB/s", &self.throughput), curve("lag of all partitions", "records", &self.lag)]
    }

    /// The figures.
    pub fn figures(&self, into: &mut BTreeMap<String, f64>) {
        into.insert("mirrored_mb".into(), self.mirrored_bytes as f64 / 1e6);
        into.insert("mirrored_records".into(), self.mirrored_records as f64);
        into.insert("acked_records".into(), self.acked as f64);
        into.insert("read_records".into(), self.read as f64);
        into.insert("lag_samples_unknown".into(), self.unknown as f64);
        if let (Some(first), Some(last)) = (self.mirrored_first, self.mirrored_last) {
            let seconds = last.since(first).as_secs_f64();
            if seconds > 0.0 {
                into.insert("mirrored_mb_per_s".into(), self.mirrored_bytes as f64 / 1e6 / seconds);
            }
        }
        if let Some(took) = self.catch_up {
            into.insert("catch_up_s".into(), took.as_secs_f64());
        }
    }
}
