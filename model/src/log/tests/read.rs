use super::*;

fn read(rig: &Rig, from: i64, upto: i64, max: u32, min_one: bool, hint: &mut ReadHint) -> Vec<i64> {
    let mut out = Vec::new();
    let bytes = rig.log.read(&rig.disk, Offset(from), Offset(upto), max, min_one, hint, &mut out).unwrap();
    assert_eq!(bytes as usize, out.iter().map(Bytes::len).sum::<usize>());
    out.iter().map(|batch| BatchView::parse(batch).unwrap().base_offset().0).collect()
}

fn filled(policy: LogPolicy, batches: i64) -> Rig {
    let mut rig = Rig::with(policy);
    for n in 0..batches {
        rig.follow(&[at(2 * n, 0, 2)], 0).unwrap();
    }
    rig
}

#[test]
fn limits_of_a_read() {
    let rig = filled(LogPolicy { index_interval_bytes: 300, ..LogPolicy::default() }, 100);
    let size = at(0, 0, 2).len() as u32;
    let none = &mut ReadHint::NONE.clone();
    assert_eq!(read(&rig, 0, 200, 3 * size, false, none), [0, 2, 4]);
    assert_eq!(read(&rig, 0, 200, 3 * size + 1, false, none), [0, 2, 4]);
    assert_eq!(read(&rig, 1, 200, 1, true, none), [0], "the batch that holds the offset");
    assert_eq!(read(&rig, 1, 200, 1, false, none), [] as [i64; 0]);
    assert_eq!(read(&rig, 150, 155, 10_000, true, none), [150, 152], "the limit is inside the batch at 154");
    assert_eq!(read(&rig, 0, 1, 10_000, true, none), [] as [i64; 0]);
    assert_eq!(read(&rig, 200, 200, 10_000, true, none), [] as [i64; 0]);
    assert_eq!(read(&rig, 0, 10_000, 1 << 20, false, none).len(), 100);
    let mut out = vec![Bytes::from_static(b"kept")];
    rig.log.read(&rig.disk, Offset(7), Offset(9), 10_000, true, none, &mut out).unwrap();
    assert_eq!(out.len(), 2, "what was there stays");
    let batch = rig.log.batch_at(&rig.disk, Offset(41)).unwrap().unwrap();
    assert_eq!(BatchView::parse(&batch).unwrap().base_offset(), Offset(40));
}

/// A header that claims more than the log holds is damage, and not the end of what can be read: its reader would wait for ever.
#[test]
fn a_batch_that_reaches_beyond_the_end_is_damaged() {
    let mut rig = filled(LogPolicy::default(), 3);
    rig.disk.rot(rig.log.active.file, 25); // the last offset delta, by 256
    for from in [0, 2] {
        let (mut hint, mut out) = (ReadHint::NONE, Vec::new());
        let found = rig.log.read(&rig.disk, Offset(from), Offset(6), 10_000, true, &mut hint, &mut out);
        assert!(matches!(found, Err(ReadError::Corrupt(_))) && out.is_empty(), "{from}: {found:?}");
    }
}

#[test]
fn a_hint_leads_on_and_never_astray() {
    let mut rig = filled(tiny(), 50);
    let (mut hint, mut from, mut seen) = (ReadHint::NONE, 0, Vec::new());
    while from < 100 {
        let got = read(&rig, from, 100, 200, true, &mut hint);
        from = got.last().unwrap() + 2;
        seen.extend(got);
    }
    assert_eq!(seen, (0..50).map(|n| 2 * n).collect::<Vec<_>>());
    // At the end, empty reads keep the hint; then the log is cut and filled with other batches.
    assert!(read(&rig, 100, 100, 200, true, &mut hint).is_empty());
    rig.cut(90);
    rig.follow(&[at(90, 1, 1), at(91, 1, 6), at(97, 1, 4), at(101, 1, 1)], 1).unwrap();
    assert_eq!(read(&rig, 100, 102, 1000, true, &mut hint), [97, 101]);
    // A hint for another offset is ignored.
    assert_eq!(read(&rig, 40, 42, 1000, true, &mut hint), [40]);
}

#[test]
fn gaps_are_passed_over() {
    let mut rig = Rig::with(tiny());
    for base in [0, 10, 20, 30, 40, 50] {
        rig.follow(&[at(base, 0, 1)], 0).unwrap();
    }
    let mut hint = ReadHint::NONE;
    for from in 1..=10 {
        assert_eq!(read(&rig, from, 51, 1, true, &mut hint), [10]);
    }
    assert_eq!(read(&rig, 21, 51, 1, true, &mut hint), [30], "the next segment");
    assert_eq!(read(&rig, 11, 51, 1, true, &mut hint), [20]);
}

#[test]
fn offsets_by_time() {
    let mut rig = Rig::with(tiny());
    for n in 0..10 {
        rig.lead(&Make { timestamp: 1000 + 10 * n, records: 2, ..Make::default() }.build(), 0).unwrap();
    }
    let find = |timestamp, upto| rig.log.offset_for_timestamp(&rig.disk, timestamp, Offset(upto)).unwrap();
    assert_eq!(find(0, 20), Some((Offset(0), 1000)));
    assert_eq!(find(1011, 20), Some((Offset(3), 1011)));
    assert_eq!(find(1012, 20), Some((Offset(4), 1020)));
    assert_eq!(find(1012, 4), None);
    assert_eq!(find(2000, 20), None);
}

#[test]
fn pieces_that_are_not_batches_are_read_all_the_same() {
    let mut rig = Rig::new();
    let file = rig.log.segments().next().unwrap().file;
    let bytes: Bytes = (0..6).map(|n| at(n, 0, 1)).collect::<Vec<_>>().concat().into();
    for cut in [0..100, 100..130, 130..bytes.len()] {
        rig.disk.append(file, bytes.slice(cut)).unwrap();
    }
    let from = rig.checkpointed(false);
    rig.load(from);
    assert_eq!(rig.log.end(), Offset(6));
    let mut hint = ReadHint::NONE;
    assert_eq!(read(&rig, 0, 6, 250, true, &mut hint), [0, 1]);
    assert_eq!(read(&rig, 2, 6, 10_000, true, &mut hint), [2, 3, 4, 5]);
    assert_eq!(read(&rig, 4, 5, 10_000, true, &mut hint), [4]);
}
