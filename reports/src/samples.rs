//! Records for the tests of the renderings.

use crate::figures;
use crate::record::{
    Band, Build, Curve, Expectation, GuardUse, Percentiles, Record, Row, StoryLine, Verdict, Violation,
};
use std::collections::BTreeMap;

const S: u64 = 1_000_000_000;

fn map<V: Copy>(entries: &[(&str, V)]) -> BTreeMap<String, V> {
    entries.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

fn line(time_ms: u64, text: &str, fault: bool) -> StoryLine {
    StoryLine { time_ns: time_ms * 1_000_000, step: time_ms * 7, text: text.to_owned(), fault }
}

fn band(from_s: u64, to_s: u64, label: &str) -> Band {
    Band { from_ns: from_s * S, to_ns: to_s * S, label: label.to_owned() }
}

/// A passing run of a minute with a cut WAN and a power loss.
pub(crate) fn pass() -> Record {
    let wave = |n: usize| (n * n * 7 % 31) as f64 / 10.0;
    let throughput = (0..240).map(|n| Some(if (80..140).contains(&n) { 0.0 } else { 18.0 + wave(n) })).collect();
    let lag = (0..240).map(|n| match n {
        0..=3 | 90..=139 => None,
        80..=89 => Some((n - 79) as f64 * 5000.0),
        140..=170 => Some((171 - n) as f64 * 9000.0),
        _ => Some(wave(n) * 40.0),
    });
    let curve = |name: &str, unit: &str, values| Curve {
        name: name.to_owned(),
        unit: unit.to_owned(),
        start_ns: S / 4,
        interval_ns: S / 4,
        values,
    };
    Record {
        scenario: "scenarios/replication/wan_cut.toml".to_owned(),
        title: "The WAN is cut <twice> & heals".to_owned(),
        seed: 7,
        profile: "corrected".to_owned(),
        resolved: "east 1 controller + 3 brokers, west 1 controller + 3 brokers; 1 topics with 12 partitions; \
                   mirrors: east-to-west (east -> west); 1 producers, 0 consumers; 2 steps"
            .to_owned(),
        verdict: Verdict::Pass,
        reason: "every check held".to_owned(),
        violations: Vec::new(),
        excuses: Vec::new(),
        expectations: vec![Expectation {
            what: "state of orders".to_owned(),
            expected: "MIRRORING".to_owned(),
            got: "MIRRORING".to_owned(),
            met: true,
        }],
        marks: map(&[("Acked", 1_170_000), ("LeaderElected", 25), ("MirrorRecordsAppended", 48_000)]),
        guards: GuardUse { hit: vec!["FetchOffsetMatches".to_owned()], ..GuardUse::default() },
        trace_hash: "00c0ffee00c0ffee".to_owned(),
        events: 12_345_678,
        messages: 4_567_890,
        appends: 345_678,
        simulated_s: 60.25,
        wall_s: 0.0,
        peak_rss_mb: 0.0,
        figures: map(&[
            (figures::ACKED_RECORDS, 1_170_000.0),
            (figures::MIRRORED_RECORDS, 1_170_000.0),
            (figures::READ_RECORDS, 0.0),
            (figures::MIRRORED_MB, 1234.5),
            (figures::MIRRORED_MB_PER_S, 20.61),
            (figures::LAG_END, 0.0),
            (figures::LAG_SAMPLES_UNKNOWN, 648.0),
        ]),
        failovers: vec![],
        lag: Percentiles { count: 2232, p50: 72.0, p99: 23_000.0, max: 27_900.0 },
        curves: vec![curve("mirrored", "MB/s", throughput), curve("lag", "records", lag.collect())],
        bands: vec![
            band(20, 35, "cut dc-east <-> dc-west"),
            band(22, 22, "power loss of west/broker-1"),
            band(22, 27, "west/broker-1 down"),
            band(50, 52, "slow disk of west/broker-2"),
        ],
        orders: vec![],
        story: vec![
            line(1_200, "clusters stand, topics exist: safety phase begins", false),
            line(1_900, "west/orders-0: LOG_ALIGNMENT -> MIRRORING", false),
            line(20_000, "cut dc-east <-> dc-west", true),
            line(22_000, "power loss of west/broker-1", true),
            line(22_614, "west/orders-3: broker 2 elected, epoch 2 (clean)", false),
            line(35_000, "cut dc-east <-> dc-west ends", true),
        ],
        story_omitted: 0,
        repro: "mirrorlab run scenarios/replication/wan_cut.toml --seed 7".to_owned(),
        build: Build {
            commit: "unknown".to_owned(),
            toolchain: "rustc 1.85.0".to_owned(),
            lockfile: "1f2e3d4c".to_owned(),
        },
        census: BTreeMap::new(),
        rows: Vec::new(),
    }
}

/// The same, but a follower lost acknowledged records.
pub(crate) fn violation() -> Record {
    let broken = Violation {
        id: "S2".to_owned(),
        says: "two logs that hold a batch of one epoch and offset are equal up to it".to_owned(),
        at: "west/orders-3 on west/broker-2".to_owned(),
        expected: "batch 9f31 at offset 1041, epoch 3, as on west/broker-1".to_owned(),
        got: "batch 77aa at offset 1041, epoch 3".to_owned(),
        whose: "system".to_owned(),
        time_ns: 24_512_345_678,
        step: 987_654,
    };
    let mut story = pass().story;
    story.extend((0..60).map(|n| line(35_001 + n, &format!("west/orders-{n}: FAILED -> PREPARING"), false)));
    Record {
        verdict: Verdict::Violation,
        reason: "S2: two logs that hold a batch of one epoch and offset are equal up to it".to_owned(),
        violations: vec![broken],
        excuses: vec!["L10: source east is not reachable (environment)".to_owned()],
        expectations: Vec::new(),
        guards: GuardUse {
            off: vec!["FollowerReachedEpochStart".to_owned()],
            quirks: vec!["D-4".to_owned()],
            ..GuardUse::default()
        },
        orders: vec![],
        story,
        story_omitted: 112,
        wall_s: 1.234,
        peak_rss_mb: 87.5,
        ..pass()
    }
}

/// Round trip times fetchers.
pub(crate) fn matrix() -> Record {
    let mut rows = Vec::new();
    for (latency, bound, rate) in [("500 us", 10_485.76, 20.48), ("25 ms", 209.715, 20.47), ("75 ms", 69.905, 11.25)] {
        for fetchers in [1, 4] {
            let mut record = Record { title: "What one mirror carries over a long link".to_owned(), ..pass() };
            record.figures.insert(figures::FETCH_BOUND_MB_PER_S.to_owned(), bound * f64::from(fetchers));
            record.figures.insert(figures::MIRRORED_MB_PER_S.to_owned(), rate);
            record.figures.insert(figures::CATCH_UP_S.to_owned(), 0.5);
            let set = [
                ("links.wan.latency", latency),
                ("clusters.west.config.mirror.num.replica.fetchers", ["1", "4"][usize::from(fetchers == 4)]),
            ];
            rows.push(Row { set: set.map(|(k, v)| (k.to_owned(), v.to_owned())).into(), record });
        }
    }
    rows[1].record.figures.remove(figures::LAG_SAMPLES_UNKNOWN);
    rows[5].record = Record { lag: Percentiles::default(), ..violation() };
    Record {
        scenario: "scenarios/throughput/wan.toml".to_owned(),
        title: "What one mirror carries over a long link".to_owned(),
        verdict: Verdict::Violation,
        reason: "1 of 6 rows did not pass".to_owned(),
        expectations: Vec::new(),
        marks: BTreeMap::new(),
        figures: BTreeMap::new(),
        lag: Percentiles::default(),
        curves: Vec::new(),
        bands: Vec::new(),
        story: Vec::new(),
        repro: "mirrorlab run scenarios/throughput/wan.toml --seed 7".to_owned(),
        rows,
        ..pass()
    }
}
