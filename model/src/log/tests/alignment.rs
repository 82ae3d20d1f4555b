//! The table of alignments: what a replica that missed some has to hear, and what is left after a restart.

use super::*;
use crate::log::epoch_cache::EpochEntry;

fn entry(epoch: i32, start: i64) -> EpochEntry {
    EpochEntry { epoch: LeaderEpoch(epoch), start: Offset(start) }
}

#[test]
fn who_missed_several_hears_of_the_first() {
    let mut rig = Rig::new();
    for (term, end) in [(3, 10), (7, 40), (9, 90)] {
        rig.log.note_alignment(&mut rig.disk, LeaderEpoch(term), Offset(end)).unwrap();
    }
    assert_eq!(rig.log.aligned(), LeaderEpoch(9));
    assert_eq!(rig.log.alignment_after(LeaderEpoch::NONE), Some(entry(3, 10)));
    assert_eq!(rig.log.alignment_after(LeaderEpoch(3)), Some(entry(7, 40)));
    assert_eq!(rig.log.alignment_after(LeaderEpoch(8)), Some(entry(9, 90)));
    assert_eq!(rig.log.alignment_after(LeaderEpoch(9)), None);
}

#[test]
fn a_lower_end_does_away_with_the_higher_ones() {
    let mut rig = Rig::new();
    for (term, end) in [(3, 10), (7, 40), (9, 20)] {
        rig.log.note_alignment(&mut rig.disk, LeaderEpoch(term), Offset(end)).unwrap();
    }
    assert_eq!(rig.log.alignments(), [entry(3, 10), entry(9, 20)]);
    assert_eq!(rig.log.forget_alignments_after(&mut rig.disk, LeaderEpoch(5)).unwrap(), Offset(20));
    assert_eq!(rig.log.alignments(), [entry(3, 10)]);
    assert_eq!(rig.log.forget_alignments_after(&mut rig.disk, LeaderEpoch(5)).unwrap(), rig.log.end());
}

#[test]
fn a_restart_reads_them_and_believes_no_torn_file() {
    let mut rig = Rig::new();
    rig.log.note_alignment(&mut rig.disk, LeaderEpoch(3), Offset(0)).unwrap();
    rig.load(rig.checkpointed(false));
    assert_eq!(rig.log.alignments(), [entry(3, 0)]);
    let file = rig.disk.open(rig.dir, FileName::Alignments).unwrap();
    let len = rig.disk.len(file);
    rig.disk.truncate(file, len - 1).unwrap();
    rig.load(rig.checkpointed(false));
    assert_eq!(rig.log.alignments(), []);
}
