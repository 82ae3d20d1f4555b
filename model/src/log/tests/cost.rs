//! The figures that measured.md's budgets rest on.

use super::*;

#[test]
fn a_log_of_the_common_kind_is_small() {
    let size = std::mem::size_of::<Log>();
    println!(
        "Log {size}, ProducerEntry {}, ProducerStates {}, EpochCache {}, Segment {}, ReadHint {}, LogPolicy {}",
        std::mem::size_of::<ProducerEntry>(),
        std::mem::size_of::<ProducerStates>(),
        std::mem::size_of::<EpochCache>(),
        std::mem::size_of::<segment::Segment>(),
        std::mem::size_of::<ReadHint>(),
        std::mem::size_of::<LogPolicy>(),
    );
    assert!(size <= 240, "{size}");
    assert!(std::mem::size_of::<ReadHint>() <= 16);
    // One segment, one epoch, one idempotent producer: no heap.
    let mut rig = Rig::new();
    for n in 0..20 {
        rig.lead(&Make { producer: 9, sequence: n, ..Make::default() }.build(), 0).unwrap();
    }
    assert!(rig.log.closed.is_none() && rig.log.unflushed.is_none());
    assert_eq!((rig.log.epochs().entries().len(), rig.log.producers().len()), (1, 1));
    assert_eq!(rig.log.segments().next().unwrap().index_len(), 0);
}
