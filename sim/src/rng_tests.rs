use super::*;
use rand::distributions::{Distribution, Uniform};

#[test]
fn the_same_on_every_machine() {
    // Golden values: a change here changes every history ever recorded.
    let mut stream = Seed(7).stream(Concern::Lane, 3, 5);
    let first: Vec<u64> = (0..4).map(|_| stream.next()).collect();
    assert_eq!(first, GOLDEN_DRAWS);
    let mut delays = Seed(7).stream(Concern::NetLatency, 1, 0);
    let drawn: Vec<u64> = (0..4)
        .map(|_| delays.exponential(Nanos::from_millis(1)).0)
        .chain((0..2).map(|i| {
            Seed(9).stream(Concern::Lane, 1, i).heavy_tailed(Nanos::from_micros(2), 1.1, Nanos::from_millis(5)).0
        }))
        .collect();
    assert_eq!(drawn, GOLDEN_DELAYS);
    assert_eq!(join(join(1, 2), 3), 4_912_160_498_862_707_491);
}

const GOLDEN_DRAWS: [u64; 4] =
    [382_719_644_142_283_533, 17_940_002_289_465_864_326, 4_679_945_415_111_374_559, 9_031_522_649_058_010_514];
const GOLDEN_DELAYS: [u64; 6] = [261_586, 535_954, 3_380_780, 2_227_299, 103_981, 2_407];

#[test]
fn removing_one_stream_leaves_the_others_alone() {
    let draws = |skip: u64| -> Vec<(u64, u64)> {
        (0..50)
            .filter(|id| *id != skip)
            .map(|id| {
                let mut stream = Seed(1).stream(Concern::DiskFlush, id, 0);
                (id, stream.next() ^ stream.next())
            })
            .collect()
    };
    let all = draws(u64::MAX);
    let fewer = draws(17);
    assert_eq!(fewer, all.into_iter().filter(|(id, _)| *id != 17).collect::<Vec<_>>());
}

#[test]
fn every_coordinate_matters_and_neighbours_are_unrelated() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..8 {
        for concern in [Concern::Lane, Concern::Boot, Concern::NetLoss] {
            for id in 0..8 {
                for ordinal in 0..8 {
                    assert!(seen.insert(Seed(seed).draw(concern, id, ordinal)));
                }
            }
        }
    }
    // Bits of neighbouring draws differ in half of the places.
    let flips: u32 = (0..1_000)
        .map(|n| (Seed(0).draw(Concern::Lane, 0, n) ^ Seed(0).draw(Concern::Lane, 0, n + 1)).count_ones())
        .sum();
    assert!((31_000..33_000).contains(&flips), "{flips}");
}

#[test]
fn helpers_keep_their_ranges_and_means() {
    let mut s = Seed(3).stream(Concern::Test, 0, 0);
    assert_eq!(s.below(0), 0);
    assert!((0..1_000).all(|_| s.below(7) < 7));
    assert!((0..1_000).all(|_| (5..=9).contains(&s.between(5, 9))));
    let _ = s.between(0, u64::MAX);
    assert!((0..1_000).all(|_| !s.chance(0.0) && s.chance(1.0)));
    let hits = (0..100_000).filter(|_| s.chance(0.3)).count();
    assert!((29_000..31_000).contains(&hits), "{hits}");
    let mean = (0..100_000).map(|_| s.exponential(Nanos(1_000)).0).sum::<u64>() / 100_000;
    assert!((980..1_020).contains(&mean), "{mean}");
    let tail: Vec<u64> = (0..100_000).map(|_| s.heavy_tailed(Nanos(1_000), 1.0, Nanos(1_000_000)).0).collect();
    assert!(tail.iter().all(|d| (1_000..=1_000_000).contains(d)));
    let long = tail.iter().filter(|d| **d > 100_000).count();
    assert!((900..1_100).contains(&long), "{long}");
    let picks = (0..10_000).filter_map(|_| s.weighted(&[1, 0, 3])).fold([0; 3], |mut n, i| {
        n[i] += 1;
        n
    });
    assert!(picks[1] == 0 && (2_300..2_700).contains(&picks[0]), "{picks:?}");
    assert_eq!(s.weighted(&[0, 0]), None);
}

#[test]
fn a_generator_for_rand() {
    let die = Uniform::new(1u32, 7);
    let mut s = Seed(1).stream(Concern::Workload, 4, 2);
    assert!((0..100).all(|_| (1..7).contains(&die.sample(&mut s))));
    let mut buffer = [0u8; 13];
    s.fill_bytes(&mut buffer);
    assert!(buffer.iter().any(|b| *b != 0));
}
