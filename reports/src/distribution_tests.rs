use super::*;

#[test]
fn an_empty_distribution_has_zero_percentiles() {
    assert_eq!(Distribution::new().percentiles(), Percentiles::default());
}

#[test]
fn percentiles_of_one_to_a_hundred() {
    let mut distribution = Distribution::new();
    (1..=100).for_each(|value| distribution.record(value));
    assert_eq!(distribution.percentiles(), Percentiles { count: 100, p50: 50.0, p99: 99.0, max: 100.0 });
}

#[test]
fn zero_is_a_value() {
    let mut distribution = Distribution::new();
    distribution.record_n(0, 99);
    distribution.record(7);
    assert_eq!(distribution.percentiles(), Percentiles { count: 100, p50: 0.0, p99: 0.0, max: 7.0 });
}

#[test]
fn a_value_out_of_range_saturates() {
    let mut distribution = Distribution::new();
    distribution.record(u64::MAX);
    distribution.record(1);
    let got = distribution.percentiles();
    assert_eq!((got.count, got.p50), (2, 1.0));
    assert_eq!(got.max, HIGHEST as f64);
}

#[test]
fn the_largest_is_exact_and_no_percentile_exceeds_it() {
    let mut distribution = Distribution::new();
    distribution.record(1_000_001);
    assert_eq!(
        distribution.percentiles(),
        Percentiles { count: 1, p50: 1_000_001.0, p99: 1_000_001.0, max: 1_000_001.0 }
    );
}

#[test]
fn merged_equals_counted_together() {
    let (mut left, mut right, mut both) = (Distribution::new(), Distribution::new(), Distribution::new());
    for value in 0..5_000_u64 {
        let half = if value % 3 == 0 { &mut left } else { &mut right };
        half.record(value * value);
        both.record(value * value);
    }
    left.merge(&right);
    assert_eq!(left.percentiles(), both.percentiles());
}
