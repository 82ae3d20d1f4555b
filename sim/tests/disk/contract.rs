//! What `ports::Disk` promises, asked of both disks.

use super::{partition, pieces, read_all, World};
use bytes::Bytes;
use mirrorlab_model::ids::{TopicId, TopicIx, TopicLife};
use mirrorlab_model::ports::{DirName, Disk, DiskError, FileId, FileName};
use mirrorlab_sim::disk::RealDisk;

/// Runs one test against each disk. `reopen` stands for another process on the same disk.
macro_rules! contract {
    ($($name:ident;)*) => {
        mod simulated {
            use super::*;
            $(#[test] fn $name() {
                let mut world = World::new(1, 1);
                let test: fn(&mut dyn Disk) = super::$name;
                test(&mut world.disks[0].view(&mut world.store));
                world.check();
                world.disks[0].wipe(&mut world.store);
                world.check();
                assert_eq!((world.store.lineages(), world.disks[0].used()), (0, 0));
            })*
        }
        mod real {
            use super::*;
            $(#[test] fn $name() {
                let root = tempfile::tempdir().unwrap();
                let test: fn(&mut dyn Disk) = super::$name;
                test(&mut RealDisk::open(root.path()).unwrap());
            })*
        }
    };
}

contract! {
    directories;
    files_and_names;
    rename_replaces;
    removing_a_directory_takes_its_files;
    appends_are_read_back_in_pieces;
    reading_bounds;
    truncation;
    nothing_is_appended_by_nothing;
    dead_ids;
}

fn segment(disk: &mut dyn Disk) -> FileId {
    let dir = disk.open_dir(partition(0), true).unwrap();
    disk.create(dir, FileName::Segment(0)).unwrap()
}

fn directories(disk: &mut dyn Disk) {
    assert_eq!(disk.list_dirs(), [DirName::Root]);
    assert_eq!(disk.open_dir(partition(1), false), Err(DiskError::NotFound));
    let one = disk.open_dir(partition(1), true).unwrap();
    assert_eq!(disk.open_dir(partition(1), true), Ok(one));
    assert_eq!(disk.open_dir(partition(1), false), Ok(one));
    let earlier_topic = DirName::Partition { topic: TopicLife { id: TopicId(3), ix: TopicIx(0) }, partition: 12 };
    for name in [DirName::Metadata, partition(11), partition(0), earlier_topic] {
        disk.open_dir(name, true).unwrap();
    }
    let all = [DirName::Root, earlier_topic, partition(0), partition(1), partition(11), DirName::Metadata];
    assert_eq!(disk.list_dirs(), all);
    disk.remove_dir(one).unwrap();
    assert_eq!(disk.list_dirs().len(), 5);
    assert_eq!(disk.remove_dir(one), Err(DiskError::NotFound));
    let root = disk.open_dir(DirName::Root, false).unwrap();
    assert!(disk.remove_dir(root).is_err());
    assert_ne!(disk.open_dir(partition(1), true), Ok(one));
}

fn files_and_names(disk: &mut dyn Disk) {
    let root = disk.open_dir(DirName::Root, false).unwrap();
    let dir = disk.open_dir(partition(0), true).unwrap();
    let names = [
        FileName::Segment(-1),
        FileName::Segment(0),
        FileName::Segment(0x1_0000_0002),
        FileName::ProducerSnapshot(5),
        FileName::MetadataSnapshot(i64::MAX),
        FileName::EpochCheckpoint,
        FileName::HighWatermarks,
        FileName::RecoveryPoints,
        FileName::LogStarts,
        FileName::CleanShutdown,
        FileName::MetaProperties,
        FileName::QuorumState,
        FileName::Alignments,
        FileName::Temp(3),
    ];
    for name in names.iter().rev() {
        assert_eq!(disk.open(dir, *name), Err(DiskError::NotFound));
        let file = disk.create(dir, *name).unwrap();
        assert_eq!(disk.create(dir, *name), Err(DiskError::Exists));
        assert_eq!(disk.open(dir, *name), Ok(file));
        assert_eq!(disk.len(file), 0);
    }
    assert_eq!(disk.list(dir), names);
    assert_eq!(disk.list(root), []);
    disk.remove(dir, FileName::LogStarts).unwrap();
    assert_eq!(disk.remove(dir, FileName::LogStarts), Err(DiskError::NotFound));
    assert_eq!(disk.list(dir).len(), names.len() - 1);
}

fn rename_replaces(disk: &mut dyn Disk) {
    let root = disk.open_dir(DirName::Root, false).unwrap();
    let old = disk.create(root, FileName::HighWatermarks).unwrap();
    disk.append(old, Bytes::from_static(b"old")).unwrap();
    let new = disk.create(root, FileName::Temp(1)).unwrap();
    disk.append(new, Bytes::from_static(b"newer")).unwrap();
    disk.rename(root, new, FileName::HighWatermarks).unwrap();
    assert_eq!(disk.list(root), [FileName::HighWatermarks]);
    assert_eq!(disk.open(root, FileName::HighWatermarks), Ok(new));
    assert_eq!(read_all(disk, new), b"newer");
    assert_eq!(disk.len(old), 0);
    disk.rename(root, new, FileName::HighWatermarks).unwrap();
    assert_eq!(disk.open(root, FileName::HighWatermarks), Ok(new));
    let dir = disk.open_dir(partition(0), true).unwrap();
    assert_eq!(disk.rename(dir, new, FileName::LogStarts), Err(DiskError::NotFound));
}

fn removing_a_directory_takes_its_files(disk: &mut dyn Disk) {
    let file = segment(disk);
    disk.append(file, Bytes::from_static(b"gone")).unwrap();
    let dir = disk.open_dir(partition(0), false).unwrap();
    disk.remove_dir(dir).unwrap();
    assert_eq!(disk.list(dir), []);
    assert_eq!(disk.len(file), 0);
    assert!(disk.append(file, Bytes::from_static(b"x")).is_err());
    let again = segment(disk);
    assert_ne!(again, file);
    assert_eq!(disk.len(again), 0);
}

fn appends_are_read_back_in_pieces(disk: &mut dyn Disk) {
    for name in [FileName::Segment(0), FileName::QuorumState] {
        let dir = disk.open_dir(partition(0), true).unwrap();
        let file = disk.create(dir, name).unwrap();
        let pieces = pieces(600);
        let mut at = 0;
        for piece in &pieces {
            assert_eq!(disk.append(file, piece.clone()), Ok(at));
            at += piece.len() as u64;
            assert_eq!(disk.len(file), at);
        }
        let mut out = Vec::new();
        assert_eq!(disk.read(file, 0, u64::MAX, &mut out), Ok(at));
        assert_eq!(out, pieces);
    }
}

fn reading_bounds(disk: &mut dyn Disk) {
    let file = segment(disk);
    for piece in [&b"abcd"[..], b"efg", b"hijkl"] {
        disk.append(file, Bytes::copy_from_slice(piece)).unwrap();
    }
    let read = |pos, max| {
        let mut out = vec![Bytes::from_static(b"kept")];
        let many = disk.read(file, pos, max, &mut out).unwrap();
        assert_eq!(out.remove(0), "kept");
        assert_eq!(many as usize, out.iter().map(Bytes::len).sum::<usize>());
        out.into_iter().map(|b| String::from_utf8(b.to_vec()).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(read(0, 7), ["abcd", "efg"]);
    assert_eq!(read(0, 11), ["abcd", "efg"]);
    assert_eq!(read(0, 12), ["abcd", "efg", "hijkl"]);
    assert_eq!(read(0, 0), ["abcd"]); // at least one, however long
    assert_eq!(read(4, 1), ["efg"]);
    assert_eq!(read(5, 2), ["fg"]); // from within an append: its rest
    assert_eq!(read(5, 7), ["fg", "hijkl"]);
    assert_eq!(read(11, 100), ["l"]);
    assert!(read(12, 100).is_empty());
    assert!(read(u64::MAX, 100).is_empty());
}

fn truncation(disk: &mut dyn Disk) {
    let file = segment(disk);
    for piece in [&b"abcd"[..], b"efg", b"hijkl"] {
        disk.append(file, Bytes::copy_from_slice(piece)).unwrap();
    }
    disk.truncate(file, 99).unwrap();
    disk.truncate(file, 12).unwrap();
    assert_eq!(disk.len(file), 12);
    disk.truncate(file, 9).unwrap(); // within an append
    assert_eq!((disk.len(file), read_all(disk, file)), (9, b"abcdefghi".to_vec()));
    assert_eq!(disk.append(file, Bytes::from_static(b"XY")), Ok(9));
    let mut out = Vec::new();
    disk.read(file, 0, 100, &mut out).unwrap();
    assert_eq!(out, [&b"abcd"[..], b"efg", b"hi", b"XY"]);
    disk.truncate(file, 4).unwrap(); // at a border
    assert_eq!(disk.append(file, Bytes::from_static(b"efg")), Ok(4));
    assert_eq!(read_all(disk, file), b"abcdefg");
    disk.truncate(file, 2).unwrap();
    assert_eq!(read_all(disk, file), b"ab");
    disk.truncate(file, 0).unwrap();
    assert_eq!((disk.len(file), read_all(disk, file)), (0, Vec::new()));
    assert_eq!(disk.append(file, Bytes::from_static(b"new")), Ok(0));
    let dir = disk.open_dir(partition(0), false).unwrap();
    let small = disk.create(dir, FileName::EpochCheckpoint).unwrap();
    disk.append(small, Bytes::from_static(b"checkpoint")).unwrap();
    disk.truncate(small, 5).unwrap();
    assert_eq!(read_all(disk, small), b"check");
    disk.append(small, Bytes::from_static(b"ed")).unwrap();
    assert_eq!(read_all(disk, small), b"checked");
}

fn nothing_is_appended_by_nothing(disk: &mut dyn Disk) {
    let file = segment(disk);
    assert_eq!(disk.append(file, Bytes::new()), Ok(0));
    disk.append(file, Bytes::from_static(b"a")).unwrap();
    assert_eq!(disk.append(file, Bytes::new()), Ok(1));
    assert_eq!(disk.len(file), 1);
}

fn dead_ids(disk: &mut dyn Disk) {
    let file = segment(disk);
    let dir = disk.open_dir(partition(0), false).unwrap();
    disk.remove(dir, FileName::Segment(0)).unwrap();
    for id in [file, FileId(4_000_000_000)] {
        assert_eq!(disk.len(id), 0);
        assert_eq!(disk.read(id, 0, 1, &mut Vec::new()), Err(DiskError::NotFound));
        assert_eq!(disk.append(id, Bytes::from_static(b"x")), Err(DiskError::NotFound));
        assert_eq!(disk.truncate(id, 0), Err(DiskError::NotFound));
        assert_eq!(disk.rename(dir, id, FileName::Segment(1)), Err(DiskError::NotFound));
    }
    let nowhere = mirrorlab_model::ports::DirId(77);
    assert_eq!(disk.list(nowhere), []);
    assert_eq!(disk.create(nowhere, FileName::Segment(0)), Err(DiskError::NotFound));
    assert_eq!(disk.open(nowhere, FileName::Segment(0)), Err(DiskError::NotFound));
    assert_eq!(disk.remove(nowhere, FileName::Segment(0)), Err(DiskError::NotFound));
}

/// Another process finds what the first one wrote; a segment's batches keep their borders.
#[test]
fn a_real_disk_is_found_again() {
    let root = tempfile::tempdir().unwrap();
    let batch = |fill: u8, size: usize| {
        let mut bytes = vec![fill; 12 + size];
        bytes[8..12].copy_from_slice(&(size as i32).to_be_bytes());
        Bytes::from(bytes)
    };
    let batches = [batch(1, 70), batch(2, 90), Bytes::from_static(b"torn")];
    {
        let mut disk = RealDisk::open(root.path()).unwrap();
        let file = segment(&mut disk);
        batches.iter().for_each(|b| assert!(disk.append(file, b.clone()).is_ok()));
        let dir = disk.open_dir(partition(0), false).unwrap();
        disk.flush(file).unwrap();
        disk.flush_dir(dir).unwrap();
    }
    let mut disk = RealDisk::open(root.path()).unwrap();
    assert_eq!(disk.list_dirs(), [DirName::Root, partition(0)]);
    let dir = disk.open_dir(partition(0), false).unwrap();
    let file = disk.open(dir, FileName::Segment(0)).unwrap();
    let mut out = Vec::new();
    disk.read(file, 0, u64::MAX, &mut out).unwrap();
    assert_eq!(out, batches);
}
