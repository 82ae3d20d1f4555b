use super::node::{DiskModel, NodeDisk};
use super::store::Store;
use crate::rng::Seed;
use bytes::{Bytes, BytesMut};
use mirrorlab_model::ids::{NodeId, TopicId, TopicIx, TopicLife};
use mirrorlab_model::ports::{DirName, Disk, FileId, FileName};

/// The sizes that the memory goal rests on.
#[test]
fn sizes() {
    use super::{lineage, node, tree};
    assert_eq!(size_of::<node::File>(), 32);
    assert_eq!(size_of::<tree::Entry>(), 16);
    assert!(size_of::<tree::Dir>() <= 64);
    assert_eq!(size_of::<lineage::Piece>(), 56);
    assert_eq!(size_of::<lineage::Lineage>(), 48);
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

/// 600,000 files on six disks, six appends each, sharing 100,000 lineages: below 150 MB without the batches.
#[test]
fn memory_at_scale() {
    const PARTITIONS: u32 = 100_000;
    let mut store = Store::new();
    let mut disks: Vec<NodeDisk> = (0..6).map(|n| NodeDisk::new(NodeId(n), Seed(0), DiskModel::default())).collect();
    let batches: Vec<Bytes> = {
        let mut arena = BytesMut::zeroed(PARTITIONS as usize * 6 * 8);
        (0..PARTITIONS * 6)
            .map(|i| {
                let mut batch = arena.split_to(8);
                batch.copy_from_slice(&u64::from(i).to_le_bytes());
                batch.freeze()
            })
            .collect()
    };
    let before = resident_bytes();
    for disk in &mut disks {
        let mut view = disk.view(&mut store);
        for p in 0..PARTITIONS {
            // A thousand topics of a hundred partitions.
            let dir = view
                .open_dir(
                    DirName::Partition {
                        topic: TopicLife { id: TopicId(u128::from(p / 100)), ix: TopicIx(0) },
                        partition: p % 100,
                    },
                    true,
                )
                .unwrap();
            view.create(dir, FileName::Segment(0)).unwrap();
        }
        disk.write_back(&mut store);
    }
    eprintln!("names {} MB", (resident_bytes() - before) / 1_000_000);
    for (i, batch) in batches.iter().enumerate() {
        let file = FileId(i as u32 % PARTITIONS);
        for disk in &mut disks {
            disk.view(&mut store).append(file, batch.clone()).unwrap();
        }
    }
    let resident = resident_bytes() - before;
    let (shared, own) = (store.heap_bytes(), disks.iter().map(NodeDisk::heap_bytes).sum::<usize>());
    eprintln!(
        "resident {} MB; counted: store {} MB ({} B per lineage), disks {} MB ({} B per file with its directory)",
        resident / 1_000_000,
        shared / 1_000_000,
        shared / PARTITIONS as usize,
        own / 1_000_000,
        own / 600_000
    );
    assert_eq!(store.lineages(), PARTITIONS as usize);
    assert!(shared + own < 145_000_000);
}
