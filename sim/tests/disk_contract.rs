//! One contract for every disk: the simulated one and a real directory pass the same tests; then random operations on several
//! disks that share content, against plain vectors of bytes; then what only the simulated disk has: crashes and faults.

#[path = "disk/contract.rs"]
mod contract;
#[path = "disk/crash.rs"]
mod crash;
#[path = "disk/fault.rs"]
mod fault;
#[path = "disk/logs.rs"]
mod logs;
#[path = "disk/random.rs"]
mod random;
#[path = "disk/sharing.rs"]
mod sharing;

use bytes::Bytes;
use mirrorlab_model::ids::{Nanos, NodeId, TopicId, TopicIx, TopicLife};
use mirrorlab_model::ports::{DirName, Disk, FileId, FileName, FlushToken};
use mirrorlab_sim::disk::{DiskModel, FlushEnd, NodeDisk, Store};
use mirrorlab_sim::rng::Seed;

/// Some disks with one store.
#[derive(Clone)]
struct World {
    store: Store,
    disks: Vec<NodeDisk>,
}

impl World {
    fn new(nodes: u16, seed: u64) -> Self {
        let disk = |n| NodeDisk::new(NodeId(n), Seed(seed), DiskModel::default());
        Self { store: Store::new(), disks: (0..nodes).map(disk).collect() }
    }
    fn on<R>(&mut self, node: usize, work: impl FnOnce(&mut dyn Disk) -> R) -> R {
        work(&mut self.disks[node].view(&mut self.store))
    }
    fn file(&mut self, node: usize, dir: DirName, name: FileName) -> FileId {
        self.on(node, |d| {
            let dir = d.open_dir(dir, true).unwrap();
            d.create(dir, name).unwrap()
        })
    }
    fn segment(&mut self, node: usize) -> FileId {
        self.file(node, partition(0), FileName::Segment(0))
    }
    fn append(&mut self, node: usize, file: FileId, bytes: &Bytes) {
        self.on(node, |d| d.append(file, bytes.clone())).unwrap();
    }
    fn flush(&mut self, node: usize, file: FileId) -> Result<(), mirrorlab_model::ports::DiskError> {
        let start = self.disks[node].begin_flush(&mut self.store, file, FlushToken(1), Nanos::ZERO);
        match self.disks[node].complete_flush(&mut self.store, start.ticket) {
            FlushEnd::Done { token: FlushToken(1), result } => result,
            other => panic!("{other:?}"),
        }
    }
    fn flush_dir(&mut self, node: usize, dir: DirName) {
        let dir = self.on(node, |d| d.open_dir(dir, false)).unwrap();
        let start = self.disks[node].begin_flush_dir(dir, FlushToken(2), Nanos::ZERO);
        let end = self.disks[node].complete_flush(&mut self.store, start.ticket);
        assert_eq!(end, FlushEnd::Done { token: FlushToken(2), result: Ok(()) });
    }
    /// A flushed segment in a flushed directory.
    fn settled(&mut self, node: usize, pieces: &[Bytes]) -> FileId {
        let file = self.segment(node);
        for piece in pieces {
            self.append(node, file, piece);
        }
        self.flush(node, file).unwrap();
        self.flush_dir(node, partition(0));
        self.flush_dir(node, DirName::Root);
        file
    }
    fn content(&self, node: usize, file: FileId) -> Vec<u8> {
        self.disks[node].look(&self.store).content(file)
    }
    fn check(&self) {
        self.store.check(&self.disks.iter().collect::<Vec<_>>()).unwrap();
    }
}

fn partition(number: u32) -> DirName {
    DirName::Partition { topic: TopicLife { id: TopicId(7), ix: TopicIx(0) }, partition: number }
}

/// Pieces that differ from each other and are cut from one arena, as a leader's batches are.
fn pieces(many: usize) -> Vec<Bytes> {
    let arena: Bytes = (0..many * 10).map(|i| (i / 10 * 31 + i % 10) as u8).collect::<Vec<_>>().into();
    (0..many).map(|i| arena.slice(i * 10..i * 10 + 10 - i % 3)).collect()
}

fn read_all(disk: &dyn Disk, file: FileId) -> Vec<u8> {
    let mut out = Vec::new();
    let read = disk.read(file, 0, u64::MAX, &mut out).unwrap();
    assert_eq!(read, out.iter().map(|b| b.len() as u64).sum::<u64>());
    out.concat()
}
