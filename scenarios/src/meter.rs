//! Measures a run: throughput and lag of mirrors over simulated time, and the figures of the summary.
//!
//! Bytes and records are counted from trace events. Lag is the true one, which nobody inside the world can know at that
//! instant: what the source's leader has committed and the mirror's leader has not. Where one of both has no leader, the
//! sample is unknown and counted as such, never as zero (decision 19).

use crate::setup::Setup;
use mirrorlab_model::ids::{BrokerId, Nanos, PartitionIx};
use mirrorlab_model::metadata::image::MetadataImage;
use mirrorlab_model::trace::{Trace, TraceEvent};
use mirrorlab_reports::distribution::Distribution;
use mirrorlab_reports::record::{Curve, Percentiles};
use mirrorlab_sim::world::World;
use std::collections::BTreeMap;

/// Samples over a run, at most.
const SAMPLES: u64 = 600;

/// Samples of lag over a run and all partitions, about: more cost time and tell nothing new.
const LAG_SAMPLES: u64 = 200_000;
/// But at least at so many instants.
const LAG_INSTANTS: u64 = 5;

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
    samples: u64,
    /// Lag is taken at every so many samples.
    stride: u64,
    /// From the end of the safety phase until every lag was zero.
    pub catch_up: Option<Nanos>,
    mirrored_first: Option<Nanos>,
    mirrored_last: Option<Nanos>,
}

impl Meter {
    /// A meter for a run that lasts about so long.
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
            samples: 0,
            stride: (partitions * SAMPLES / LAG_SAMPLES).clamp(1, SAMPLES / LAG_INSTANTS),
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

    /// Takes a sample: of throughput always, of lag as often as the number of partitions allows.
    pub fn sample(&mut self, world: &World, setup: &Setup) {
        let bytes = self.mirrored_bytes - self.at_last_sample;
        self.at_last_sample = self.mirrored_bytes;
        self.throughput.push(Some(bytes as f64 / self.interval.as_secs_f64() / 1e6));
        self.samples += 1;
        if self.samples % self.stride != 0 {
            let last = self.lag.last().copied().flatten();
            return self.lag.push(last);
        }
        let (mut pairs, mut total, mut unknown) = (0u64, 0u64, 0u64);
        for pair in mirrored_pairs(world, setup) {
            pairs += 1;
            match pair.lag(world, setup) {
                Some(lag) => {
                    self.distribution.record(lag);
                    total += lag;
                }
                None => unknown += 1,
            }
        }
        self.unknown += unknown;
        self.lag.push((pairs > 0 && unknown == 0).then_some(total as f64));
    }

    /// The sum of all lags now; `None` while one is not known.
    #[must_use]
    pub fn lag_now(world: &World, setup: &Setup) -> Option<u64> {
        mirrored_pairs(world, setup).map(|pair| pair.lag(world, setup)).sum()
    }

    /// Whether every mirrored partition is known to have all that its source has.
    #[must_use]
    pub fn is_caught_up(world: &World, setup: &Setup) -> bool {
        mirrored_pairs(world, setup).all(|pair| pair.lag(world, setup) == Some(0))
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

/// One mirrored partition on both sides.
struct Pair {
    clusters: [u8; 2],
    partitions: [PartitionIx; 2],
    leaders: [BrokerId; 2],
}

impl Pair {
    /// Records committed at the source and not at the destination.
    fn lag(&self, world: &World, setup: &Setup) -> Option<u64> {
        let committed = |side: usize| {
            let node = setup.broker_node(self.clusters[side], self.leaders[side])?;
            let replicas = &world.node(node).broker()?.replicas;
            replicas.leads(self.partitions[side])?;
            Some(replicas.log(self.partitions[side])?.high_watermark())
        };
        u64::try_from((committed(0)?.0 - committed(1)?.0).max(0)).ok()
    }
}

/// Every partition of every mirrored topic, source first.
fn mirrored_pairs<'w>(world: &'w World, setup: &'w Setup) -> impl Iterator<Item = Pair> + 'w {
    setup.mirrors.iter().flat_map(move |mirror| {
        let clusters = [mirror.source, mirror.destination];
        let images = setup.image(world, clusters[0]).zip(setup.image(world, clusters[1]));
        images.into_iter().flat_map(move |(source, here)| pairs_of(&mirror.name, clusters, source, here))
    })
}

fn pairs_of<'w>(
    mirror: &str,
    clusters: [u8; 2],
    source: &'w MetadataImage,
    here: &'w MetadataImage,
) -> impl Iterator<Item = Pair> + 'w {
    let entry = here.mirror_by_name(mirror).and_then(|m| here.mirror(m));
    let topics = entry.into_iter().flat_map(|entry| &entry.topics).filter_map(|topic| here.topic(*topic));
    let twins = topics.filter_map(|topic| Some((source.topic(source.topic_of(topic.id)?)?, topic)));
    let leader = |image: &MetadataImage, p| image.partition(p).map_or(BrokerId::NONE, |p| p.state.leader);
    twins.flat_map(|(twin, topic)| twin.partitions.iter().zip(&topic.partitions)).map(move |(there, here_ix)| Pair {
        clusters,
        partitions: [*there, *here_ix],
        leaders: [leader(source, *there), leader(here, *here_ix)],
    })
}
