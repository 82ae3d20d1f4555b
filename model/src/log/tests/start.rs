use super::*;
use crate::guards::log as guard;

#[test]
fn ret_11_high_watermark_guards() {
    let mut rig = Rig::with(LogPolicy { retention_ms: 10, ..tiny() });
    for base in 0..100 {
        rig.follow(&[at(base, 0, 1)], 0).unwrap();
    }
    for hw in 0..=100 {
        rig.hw(hw);
        rig.retain(1_000_000);
        assert!(rig.log.start() <= rig.log.high_watermark());
    }
    assert_eq!((rig.bounds(), rig.log.segment_count()), ((100, 100, 100), 1));
    assert_eq!(rig.log.size_bytes(), 0);
    let (mut out, mut hint) = (Vec::new(), ReadHint::NONE);
    let low = rig.log.read(&rig.disk, Offset(99), Offset(100), 10, true, &mut hint, &mut out);
    assert_eq!(low, Err(ReadError::OutOfRange { start: Offset(100), end: Offset(100) }));

    let mut rig = Rig::new();
    rig.follow(&[at(0, 0, 30)], 0).unwrap();
    rig.hw(25);
    assert!(!rig.log.maybe_raise_log_start(&mut rig.guards, Offset(26)));
    assert!(rig.log.maybe_raise_log_start(&mut rig.guards, Offset(25)));
    assert!(!rig.log.maybe_raise_log_start(&mut rig.guards, Offset(7)));
    assert_eq!(rig.bounds(), (25, 25, 30));
    rig.guards.set(guard::LogStartWithinHighWatermark, false);
    assert!(rig.log.maybe_raise_log_start(&mut rig.guards, Offset(26)));
}

#[test]
fn ret_01_delete_records() {
    let mut rig = Rig::new();
    rig.follow(&[at(0, 0, 10)], 0).unwrap();
    rig.hw(8);
    let delete = |rig: &mut Rig, upto| rig.log.delete_records(&mut rig.guards, Offset(upto)).map(|o| o.0);
    assert_eq!(delete(&mut rig, 5), Ok(5));
    assert_eq!(delete(&mut rig, 3), Ok(5));
    assert_eq!(delete(&mut rig, 9), Err(Offset(8)));
    assert_eq!(delete(&mut rig, -2), Err(Offset(8)));
    assert_eq!(delete(&mut rig, -1), Ok(8));
}

#[test]
fn ret_12_snapshots_under_retention() {
    let mut rig = Rig::with(LogPolicy { segment_bytes: 100, retention_ms: 10, ..LogPolicy::default() });
    for n in 0..3 {
        rig.lead(&Make { producer: n % 2, sequence: n as i32 / 2, ..Make::default() }.build(), 0).unwrap();
    }
    assert_eq!((rig.log.segment_count(), rig.files(is_snapshot)), (3, 2));
    rig.hw(3);
    assert_eq!(rig.retain(1_000_000), Some(3));
    assert_eq!((rig.files(is_snapshot), rig.log.segment_count()), (1, 1));
    assert_eq!(rig.log.producers().len(), 2);
    assert_eq!(rig.retain(1_000_000), None);
    // They outlive a restart by the snapshot, though no batch of theirs is left.
    rig.stop_clean();
    let from = rig.checkpointed(true);
    rig.load(from);
    assert_eq!((rig.log.producers().len(), rig.bounds()), (2, (3, 3, 3)));
    assert_eq!(rig.log.expire_producers(1_000_000, 1000), 2);
}

#[test]
fn retention_by_size_keeps_at_least_so_much() {
    let mut rig = Rig::with(LogPolicy { retention_bytes: 500, retention_ms: -1, ..tiny() });
    for base in 0..12 {
        rig.follow(&[at(base, 0, 1)], 0).unwrap();
    }
    rig.hw(12);
    let segment = u64::from(rig.log.segments().next().unwrap().size);
    assert_eq!(rig.log.size_bytes(), 4 * segment);
    rig.retain(1000);
    assert_eq!(rig.log.size_bytes(), 500_u64.div_ceil(segment) * segment);
}
