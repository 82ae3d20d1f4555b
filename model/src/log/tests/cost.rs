//! The figures that measured.md's budgets rest on.

use super::*;
use crate::ports::{DiskError, FileId};

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
    assert!(size <= 232, "{size}");
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

/// A disk that keeps nothing, to see what the log alone costs.
#[derive(Debug)]
struct Null(u64);
impl Disk for Null {
    fn open_dir(&mut self, _: DirName, _: bool) -> Result<DirId, DiskError> {
        Ok(DirId(0))
    }
    fn list_dirs(&self) -> Vec<DirName> {
        Vec::new()
    }
    fn remove_dir(&mut self, _: DirId) -> Result<(), DiskError> {
        Ok(())
    }
    fn list(&self, _: DirId) -> Vec<FileName> {
        Vec::new()
    }
    fn create(&mut self, _: DirId, _: FileName) -> Result<FileId, DiskError> {
        Ok(FileId(0))
    }
    fn open(&mut self, _: DirId, _: FileName) -> Result<FileId, DiskError> {
        Ok(FileId(0))
    }
    fn rename(&mut self, _: DirId, _: FileId, _: FileName) -> Result<(), DiskError> {
        Ok(())
    }
    fn remove(&mut self, _: DirId, _: FileName) -> Result<(), DiskError> {
        Ok(())
    }
    fn len(&self, _: FileId) -> u64 {
        self.0
    }
    fn append(&mut self, _: FileId, bytes: Bytes) -> Result<u64, DiskError> {
        self.0 += bytes.len() as u64;
        Ok(self.0)
    }
    fn read(&self, _: FileId, _: u64, _: u64, _: &mut Vec<Bytes>) -> Result<u64, DiskError> {
        Ok(0)
    }
    fn truncate(&mut self, _: FileId, _: u64) -> Result<(), DiskError> {
        Ok(())
    }
}

/// Run by hand: `cargo test --release -p mirrorlab-model --lib cost -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
#[allow(clippy::disallowed_methods)] // a measurement needs the wall clock
fn nanoseconds_per_append() {
    let mut disk = Null(0);
    let (mut guards, policy) = (Guards::default(), LogPolicy::default());
    let mut log = Log::create(&mut disk, DirId(0), Offset(0)).unwrap();
    let make = |n: i32| Make { base: i64::from(n), epoch: 1, producer: 9, sequence: n, ..Make::default() };
    let with_value = |make: Make| {
        let meta = BatchMeta {
            base_offset: Offset(make.base),
            leader_epoch: LeaderEpoch(1),
            producer: ProducerId(9),
            producer_epoch: ProducerEpoch(0),
            base_sequence: make.sequence,
            ..BatchMeta::default()
        };
        let mut batch = BatchBuilder::new(meta);
        batch.push(1, None, Some(&[1; 100]));
        batch.finish()
    };
    let batches: Vec<_> = (0..100_000).map(|n| [with_value(make(n))]).collect();
    let begin = std::time::Instant::now();
    let valid = batches.iter().filter(|batch| BatchView::parse(&batch[0]).unwrap().crc_valid()).count();
    println!("parse and CRC alone: {:?} ({valid})", begin.elapsed() / 100_000);
    let begin = std::time::Instant::now();
    for batch in &batches {
        log.append_as_follower(&mut disk, &mut guards, &policy, batch, LeaderEpoch(1), now(1)).unwrap();
    }
    let follower = begin.elapsed();
    disk.0 = 0;
    let mut log = Log::create(&mut disk, DirId(0), Offset(0)).unwrap();
    let begin = std::time::Instant::now();
    for batch in &batches {
        let (epoch, origin) = (LeaderEpoch(1), Origin::Client);
        log.append_as_leader(&mut disk, &mut guards, &policy, &batch[0], epoch, origin, now(1)).unwrap();
    }
    let leader = begin.elapsed();
    println!("{} bytes: follower {:?}, leader {:?}", batches[0][0].len(), follower / 100_000, leader / 100_000);

    let mut rig = Rig::new();
    for batch in &batches {
        rig.follow(batch, 1).unwrap();
    }
    let (mut hint, mut out) = (ReadHint::NONE, Vec::new());
    let begin = std::time::Instant::now();
    for from in 0..100_000 {
        out.clear();
        rig.log.read(&rig.disk, Offset(from), Offset(from + 1), 1000, true, &mut hint, &mut out).unwrap();
    }
    println!("read of one batch with a hint, 100,000 in the file: {:?}", begin.elapsed() / 100_000);
}
