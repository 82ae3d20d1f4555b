use super::*;

fn cache(entries: &[(i32, i64)]) -> EpochCache {
    let mut cache = EpochCache::default();
    for (epoch, start) in entries {
        cache.assign(LeaderEpoch(*epoch), Offset(*start));
    }
    cache
}

fn listed(cache: &EpochCache) -> Vec<(i32, i64)> {
    cache.entries().iter().map(|e| (e.epoch.0, e.start.0)).collect()
}

fn end(epoch: i32, end: i64) -> EpochEnd {
    EpochEnd { epoch: LeaderEpoch(epoch), end: Offset(end) }
}

#[test]
fn lead_13_end_offset_lookup_table() {
    type Row = (&'static [(i32, i64)], i64, i32, EpochEnd);
    let table: &[Row] = &[
        (&[(2, 11)], 14, 2, end(2, 14)),
        (&[(2, 11)], 14, -1, UNDEFINED),
        (&[], 14, -1, UNDEFINED),
        (&[], 14, 3, UNDEFINED),
        (&[(2, 11)], 14, 3, UNDEFINED),
        (&[(5, 11), (6, 12), (7, 13)], 20, 4, end(4, 11)),
        (&[(0, 10), (2, 13), (4, 17)], 20, 1, end(0, 13)),
        (&[(0, 10), (2, 13), (4, 17)], 20, 2, end(2, 17)),
        (&[(0, 10), (2, 13), (4, 17)], 20, 3, end(2, 17)),
        (&[(1, 11), (2, 13), (3, 15)], 20, 2, end(2, 15)),
    ];
    for (entries, log_end, asked, expected) in table {
        let got = cache(entries).end_offset_for(LeaderEpoch(*asked), Offset(*log_end));
        assert_eq!(got, *expected, "{entries:?} asked for {asked}");
    }
}

#[test]
fn lead_14_assignments_into_the_epoch_cache() {
    let mut c = cache(&[(2, 6)]);
    assert!(!c.assign(LeaderEpoch(2), Offset(9)), "same epoch again is ignored");
    assert_eq!(listed(&c), [(2, 6)]);
    // A lower epoch at a later offset drops the later entries.
    assert_eq!(listed(&cache(&[(2, 6), (4, 8), (3, 9)])), [(2, 6), (3, 9)]);
    assert_eq!(listed(&cache(&[(2, 6), (3, 5)])), [(3, 5)]);
    assert_eq!(listed(&cache(&[(2, 6), (3, 6)])), [(3, 6)], "both columns rise strictly");
    assert_eq!(listed(&cache(&[(-1, 6), (3, -1)])), []);
}

#[test]
fn cut_from_either_end() {
    let full = cache(&[(0, 0), (1, 7), (2, 10)]);
    let mut c = full.clone();
    assert!(!c.truncate_from_end(Offset(11)));
    assert!(c.truncate_from_end(Offset(10)));
    assert_eq!(listed(&c), [(0, 0), (1, 7)]);
    assert!(c.truncate_from_end(Offset(0)));
    assert_eq!(listed(&c), []);
    for (start, expected) in [
        (0, vec![(0, 0), (1, 7), (2, 10)]),
        (5, vec![(0, 5), (1, 7), (2, 10)]),
        (7, vec![(1, 7), (2, 10)]),
        (12, vec![(2, 12)]),
    ] {
        let mut c = full.clone();
        assert_eq!(c.truncate_from_start(Offset(start)), start > 0);
        assert_eq!(listed(&c), expected);
    }
}

#[test]
fn epoch_of_an_offset_and_the_previous_epoch() {
    let c = cache(&[(1, 5), (3, 8)]);
    let of = |offset| c.epoch_of(Offset(offset)).0;
    assert_eq!([of(4), of(5), of(7), of(8), of(100)], [-1, 1, 1, 3, 3]);
    let previous = |epoch| c.previous(LeaderEpoch(epoch)).0;
    assert_eq!([previous(1), previous(2), previous(3), previous(9)], [-1, 1, 1, 3]);
}
