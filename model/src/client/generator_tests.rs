//! Schedules: how many, when, where.

use super::*;

fn load(rate: Rate, choice: Choice) -> GeneratorConfig {
    GeneratorConfig {
        rate,
        choice,
        record_bytes: 100,
        keys: 0,
        tombstone_every: 0,
        start: Nanos::ZERO,
        stop: None,
        limit: None,
    }
}

const RATE_3_PER_7: Rate = Rate::Total { records: 3, per: Nanos(7) };

fn take(g: &mut Generator, now: Nanos) -> Vec<(u32, u32)> {
    let mut dealt = Vec::new();
    let due = g.due(now);
    g.take(due, Entropy(3), |slot, n| dealt.push((slot, n)));
    dealt
}

#[test]
fn a_rational_rate_does_not_drift() {
    let mut g = Generator::new(load(RATE_3_PER_7, Choice::RoundRobin), Nanos::ZERO);
    g.set_partitions(2, Nanos::ZERO);
    let mut now = Nanos::ZERO;
    let mut times = vec![0; take(&mut g, now).len()];
    while let Some(at) = g.next_tick(now) {
        now = at;
        assert_eq!(take(&mut g, now).len(), 1);
        times.push(at.0);
        if at.0 > 20 {
            break;
        }
    }
    assert_eq!(times, [0, 3, 5, 7, 10, 12, 14, 17, 19, 21]);
    assert_eq!(g.due(Nanos(7_000_000_000_000)) + g.total(), 3_000_000_000_001);
}

#[test]
fn ticks_are_multiples_of_the_linger_and_idle_ones_are_skipped() {
    let rate = Rate::Total { records: 1, per: Nanos(95) };
    let mut g = Generator::new(load(rate, Choice::RoundRobin), Nanos(10));
    g.set_partitions(1, Nanos(5));
    assert_eq!(g.next_tick(Nanos(5)), Some(Nanos(15)));
    take(&mut g, Nanos(15));
    assert_eq!(g.next_tick(Nanos(15)), Some(Nanos(105)));
}

#[test]
fn a_rate_per_partition_spreads_them_evenly_over_the_period() {
    let rate = Rate::EachPartition { period: Nanos(1_000) };
    let mut g = Generator::new(load(rate, Choice::Uniform), Nanos::ZERO);
    g.set_partitions(4, Nanos::ZERO);
    assert_eq!(take(&mut g, Nanos(250)), [(0, 1), (1, 1)]);
    assert_eq!(take(&mut g, Nanos(999)), [(2, 1), (3, 1)]);
    assert_eq!(take(&mut g, Nanos(1_000)), [(0, 1)]);
    // With more partitions the schedule starts anew.
    g.set_partitions(5, Nanos(2_000));
    assert_eq!(take(&mut g, Nanos(2_200)), [(0, 1), (1, 1)]);
}

#[test]
fn dealing_many_touches_each_partition_once() {
    let mut g = Generator::new(load(Rate::Total { records: 11, per: Nanos(11) }, Choice::RoundRobin), Nanos::ZERO);
    g.set_partitions(4, Nanos::ZERO);
    assert_eq!(take(&mut g, Nanos(9)), [(0, 3), (1, 3), (2, 2), (3, 2)]);
    assert_eq!(take(&mut g, Nanos(10)), [(2, 1)]);
}

#[test]
fn stop_and_limit_end_it() {
    let mut config = load(Rate::Total { records: 1, per: Nanos(10) }, Choice::RoundRobin);
    config.stop = Some(Nanos(30));
    let mut g = Generator::new(config, Nanos(100));
    g.set_partitions(1, Nanos::ZERO);
    // What is due before the stop goes out at the stop.
    assert_eq!(g.next_tick(Nanos::ZERO), Some(Nanos(30)));
    assert!(!g.is_over(Nanos(30)));
    assert_eq!(take(&mut g, Nanos(30)), [(0, 3)]);
    assert!(g.is_over(Nanos(30)));
    config.stop = None;
    config.limit = Some(2);
    let mut g = Generator::new(config, Nanos(100));
    g.set_partitions(1, Nanos::ZERO);
    assert_eq!(take(&mut g, Nanos(1_000)), [(0, 2)]);
    assert_eq!((g.is_over(Nanos(1_000)), g.next_tick(Nanos(1_000))), (true, None));
}

/// A producer that only sends what scripts order may be asked before it knows the partitions.
#[test]
fn what_was_ordered_before_the_partitions_were_known_is_due_then() {
    let mut g = Generator::new(load(Rate::Total { records: 0, per: Nanos(1) }, Choice::RoundRobin), Nanos::ZERO);
    g.add(3);
    assert_eq!(g.next_tick(Nanos(5)), None);
    g.set_partitions(1, Nanos(7));
    let tick = g.next_tick(Nanos(7)).unwrap();
    assert_eq!(take(&mut g, tick), [(0, 3)]);
    assert_eq!((g.is_over(tick), g.next_tick(tick)), (true, None));
}

#[test]
fn draws_are_repeatable_and_the_hot_partition_gets_its_share() {
    let rate = Rate::Total { records: 1, per: Nanos(1) };
    let shares = |choice| {
        let mut g = Generator::new(load(rate, choice), Nanos::ZERO);
        g.set_partitions(10, Nanos::ZERO);
        let mut shares = [0; 10];
        for (slot, n) in take(&mut g, Nanos(9_999)) {
            shares[slot as usize] += n;
        }
        shares
    };
    assert_eq!(shares(Choice::Uniform), shares(Choice::Uniform));
    assert!(shares(Choice::Uniform).iter().all(|s| (850..1_150).contains(s)));
    assert!((5_200..5_800).contains(&shares(Choice::HotShare { ppm: 500_000 })[0]));
}

/// A transaction that began for records that nobody could place yet was full of nothing, and was aborted.
#[test]
fn nothing_is_due_before_there_are_partitions() {
    let mut g = Generator::new(load(Rate::Total { records: 0, per: Nanos(1) }, Choice::RoundRobin), Nanos::ZERO);
    g.add(5);
    assert_eq!((g.due(Nanos(3)), take(&mut g, Nanos(3))), (0, Vec::new()));
    g.set_partitions(2, Nanos(4));
    assert_eq!(g.next_tick(Nanos(4)), Some(Nanos(5)));
    assert_eq!(take(&mut g, Nanos(5)).iter().map(|(_, n)| n).sum::<u32>(), 5);
}
