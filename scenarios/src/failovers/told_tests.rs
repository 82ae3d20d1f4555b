use super::super::acks::Missing;
use super::*;
use mirrorlab_model::ids::{Offset, PartitionIx};

const MS: u64 = 1_000_000;

fn ms(n: u64) -> Nanos {
    Nanos(n * MS)
}

/// A stop of two partitions, ordered at 1 s: the first left 3 records behind, of the second `second` is known.
fn stop_of_two(second: Option<Missing>) -> Failovers {
    let part = |at: u64, missing| Stopped { noted: Some(ms(1_100)), at: Some(ms(at)), missing, ..Stopped::default() };
    let first = part(1_200, Some(Missing { records: 3, oldest: Some(ms(1_060)) }));
    let episode = Episode {
        kind: Kind::Stop,
        mirror: "east-to-west".into(),
        topic: "orders".into(),
        partitions: vec![PartitionIx(4), PartitionIx(5)],
        ordered: ms(1_000),
        sent: ms(1_000),
        stopped: [(PartitionIx(4), first), (PartitionIx(5), part(1_500, second))].into(),
        started: BTreeMap::new(),
    };
    Failovers { episodes: vec![episode], ..Failovers::default() }
}

fn rpo_records(max: u64) -> Expect {
    let bounds = Bounds { p50: None, p90: None, p99: None, p999: None, max: Some(max) };
    Expect { rpo_records: Some(bounds), ..Expect::default() }
}

fn verdict(failovers: &Failovers, expect: &Expect) -> (bool, String) {
    let mut out = Vec::new();
    failovers.expectations(expect, &mut out);
    assert_eq!(out.len(), 1);
    (out[0].met, out[0].got.clone())
}

#[test]
fn the_nearest_rank_is_exact() {
    let samples = Samples::of((1..=200).map(Some));
    assert_eq!([500, 900, 990, 999, 1000].map(|at| samples.at(at)), [100, 180, 198, 200, 200].map(Some));
    assert_eq!(Samples::of([Some(7)].into_iter()).at(500), Some(7));
    assert_eq!(Samples::default().at(500), None);
}

#[test]
fn a_stop_tells_what_was_left_behind_and_how_long_it_took() {
    let told = stop_of_two(Some(Missing::default())).told().remove(0);
    assert_eq!((told.partitions, told.done, told.left_behind), (2, 2, Some(3)));
    assert_eq!(told.rpo_records.map(|p| (p.p50, p.max)), Some((0.0, 3.0)));
    assert_eq!(told.rpo_s.map(|p| p.max), Some(0.04));
    assert_eq!(told.done_s.map(|p| (p.p50, p.max)), Some((0.2, 0.5)));
    assert_eq!(told.source_died_ns, None);
}

#[test]
fn what_is_unknown_of_one_partition_is_no_figure_and_meets_no_bound() {
    let failovers = stop_of_two(None);
    let told = failovers.told().remove(0);
    assert_eq!((told.left_behind, told.left_behind_unknown), (None, 1));
    let mut figures = BTreeMap::new();
    failovers.figures(&mut figures);
    assert!(!figures.contains_key(figures::RPO_RECORDS_MAX) && figures.contains_key(figures::RTO_S_MAX));
    assert_eq!(verdict(&failovers, &rpo_records(100)), (false, "unknown for 1 of 2 partitions".to_owned()));
}

#[test]
fn a_bound_is_met_or_not_and_without_a_stop_it_is_not() {
    let failovers = stop_of_two(Some(Missing::default()));
    assert_eq!(verdict(&failovers, &rpo_records(3)), (true, "3".to_owned()));
    assert_eq!(verdict(&failovers, &rpo_records(2)), (false, "3".to_owned()));
    assert_eq!(verdict(&Failovers::default(), &rpo_records(2)), (false, "no partition was stopped".to_owned()));
}

#[test]
fn the_age_counts_back_from_the_death_of_the_source() {
    let part = Stopped {
        noted: Some(ms(9_000)),
        source_died: Some(ms(2_000)),
        missing: Some(Missing { records: 1, oldest: Some(ms(1_950)) }),
        ..Stopped::default()
    };
    assert_eq!(age(&part), Some(50 * MS));
}

#[test]
fn a_start_tells_what_was_dropped_only_if_it_returns_or_cuts() {
    let mut failovers = stop_of_two(None);
    let episode = &mut failovers.episodes[0];
    episode.kind = Kind::Start;
    episode.started.insert(PartitionIx(4), Started { at: Some(ms(1_300)), ..Started::default() });
    assert_eq!(failovers.told().len(), 0);
    let cut = Some((Offset(10), Offset(14)));
    let part = Started { returns: true, at: Some(ms(1_400)), cut, acked: 2, split: Some((3, 1)) };
    failovers.episodes[0].started.insert(PartitionIx(5), part);
    let told = failovers.told().remove(0);
    assert_eq!((told.dropped_offsets, told.dropped_records, told.dropped_control), (4, Some(3), Some(1)));
    assert_eq!((told.dropped_acked, told.done), (2, 2));
    // Nobody holds what was cut any more.
    failovers.episodes[0].started.insert(PartitionIx(5), Started { split: None, ..part });
    let told = failovers.told().remove(0);
    assert_eq!((told.dropped_offsets, told.dropped_records), (4, None));
}
