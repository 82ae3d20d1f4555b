//! Random operations on several disks that share content, against plain vectors of bytes.

use super::{partition, World};
use bytes::Bytes;
use mirrorlab_model::ports::{FileId, FileName};
use mirrorlab_sim::disk::CrashRules;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    /// Append a piece of the common arena, as replicas do.
    Append {
        node: usize,
        file: usize,
        piece: usize,
    },
    /// Append a private copy of such a piece, or of a part of it.
    AppendCopy {
        node: usize,
        file: usize,
        piece: usize,
        short: bool,
    },
    /// Append what another replica has at this place.
    Follow {
        node: usize,
        leader: usize,
        file: usize,
    },
    Truncate {
        node: usize,
        file: usize,
        share: u8,
    },
    Flush {
        node: usize,
        file: usize,
    },
    Read {
        node: usize,
        file: usize,
        share: u8,
        max: u64,
    },
    Recreate {
        node: usize,
        file: usize,
    },
    WriteBack {
        node: usize,
    },
    Rot {
        node: usize,
        file: usize,
        share: u8,
    },
    PowerLoss {
        node: usize,
    },
    Clone,
    /// A task whose last calls did not happen.
    CutTask {
        node: usize,
        file: usize,
        keep: usize,
    },
}

const NODES: usize = 3;
const FILES: usize = 3;

fn op() -> impl Strategy<Value = Op> {
    let at = (0..NODES, 0..FILES);
    prop_oneof![
        8 => (at.clone(), 0..6usize).prop_map(|((node, file), piece)| Op::Append { node, file, piece }),
        2 => (at.clone(), 0..6usize, any::<bool>())
            .prop_map(|((node, file), piece, short)| Op::AppendCopy { node, file, piece, short }),
        12 => (at.clone(), 0..NODES).prop_map(|((node, file), leader)| Op::Follow { node, leader, file }),
        3 => (at.clone(), any::<u8>()).prop_map(|((node, file), share)| Op::Truncate { node, file, share }),
        2 => at.clone().prop_map(|(node, file)| Op::Flush { node, file }),
        3 => (at.clone(), any::<u8>(), 0..60u64)
            .prop_map(|((node, file), share, max)| Op::Read { node, file, share, max }),
        1 => at.clone().prop_map(|(node, file)| Op::Recreate { node, file }),
        1 => (0..NODES).prop_map(|node| Op::WriteBack { node }),
        1 => (at.clone(), any::<u8>()).prop_map(|((node, file), share)| Op::Rot { node, file, share }),
        1 => (0..NODES).prop_map(|node| Op::PowerLoss { node }),
        1 => Just(Op::Clone),
        2 => (at, 0..5usize).prop_map(|((node, file), keep)| Op::CutTask { node, file, keep }),
    ]
}

struct Pair {
    world: World,
    ids: Vec<[FileId; FILES]>,
    model: Vec<[Vec<u8>; FILES]>,
    arena: Bytes,
}

const NAMES: [FileName; FILES] = [FileName::Segment(0), FileName::Segment(9), FileName::MetadataSnapshot(1)];

impl Pair {
    fn new() -> Self {
        let mut world = World::new(NODES as u16, 5);
        let ids: Vec<_> = (0..NODES).map(|n| NAMES.map(|name| world.file(n, partition(0), name))).collect();
        world.disks.iter_mut().for_each(|d| d.write_back(&mut world.store));
        let model = (0..NODES).map(|_| [const { Vec::new() }; FILES]).collect();
        Self { world, ids, model, arena: (0..200u8).collect::<Vec<_>>().into() }
    }

    fn piece(&self, piece: usize) -> Bytes {
        self.arena.slice(piece * 20..piece * 20 + 10 + piece)
    }

    fn append(&mut self, node: usize, file: usize, bytes: Bytes) {
        self.model[node][file].extend_from_slice(&bytes);
        self.world.append(node, self.ids[node][file], &bytes);
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Append { node, file, piece } => self.append(node, file, self.piece(piece)),
            Op::AppendCopy { node, file, piece, short } => {
                let bytes = self.piece(piece);
                let len = if short { 3 } else { bytes.len() };
                self.append(node, file, Bytes::copy_from_slice(&bytes[..len]));
            }
            Op::Follow { node, leader, file } => {
                let at = self.model[node][file].len() as u64;
                let mut out = Vec::new();
                let from = self.ids[leader][file];
                self.world.on(leader, |d| d.read(from, at, 40, &mut out)).unwrap();
                out.into_iter().for_each(|bytes| self.append(node, file, bytes));
            }
            Op::Truncate { node, file, share } => {
                let len = self.model[node][file].len() * usize::from(share) / 255;
                self.model[node][file].truncate(len);
                self.world.on(node, |d| d.truncate(self.ids[node][file], len as u64)).unwrap();
            }
            Op::Flush { node, file } => self.world.flush(node, self.ids[node][file]).unwrap(),
            Op::Read { node, file, share, max } => self.read(node, file, share, max),
            Op::Recreate { node, file } => {
                self.ids[node][file] = self.world.on(node, |d| {
                    let dir = d.open_dir(partition(0), false).unwrap();
                    d.remove(dir, NAMES[file]).unwrap();
                    d.create(dir, NAMES[file]).unwrap()
                });
                self.model[node][file].clear();
                // Names are not what this test is about.
                self.world.flush_dir(node, partition(0));
            }
            Op::WriteBack { node } => self.world.disks[node].write_back(&mut self.world.store),
            Op::Rot { node, file, share } => {
                let pos = self.model[node][file].len() * usize::from(share) / 256;
                if self.world.disks[node].rot(&mut self.world.store, self.ids[node][file], pos as u64, share) {
                    self.model[node][file][pos] ^= 1 << (share & 7);
                }
            }
            Op::PowerLoss { node } => {
                // Whatever is left is taken over; the part that was durable must be there.
                let look = self.world.disks[node].look(&self.world.store);
                let durable = self.ids[node].map(|id| look.durable(id) as usize);
                self.world.disks[node].power_loss(&mut self.world.store, &CrashRules::default());
                for file in 0..FILES {
                    let left = self.world.content(node, self.ids[node][file]);
                    assert_eq!(left[..durable[file]], self.model[node][file][..durable[file]]);
                    self.model[node][file] = left;
                }
            }
            Op::Clone => {
                let copy = self.world.clone();
                std::mem::replace(&mut self.world, copy).check();
            }
            Op::CutTask { node, file, keep } => self.cut_task(node, file, keep),
        }
    }

    fn read(&mut self, node: usize, file: usize, share: u8, max: u64) {
        let bytes = &self.model[node][file];
        let pos = bytes.len() * usize::from(share) / 255;
        let mut out = Vec::new();
        let id = self.ids[node][file];
        let read = self.world.on(node, |d| d.read(id, pos as u64, max, &mut out)).unwrap() as usize;
        assert_eq!(out.concat(), bytes[pos..pos + read]);
        assert!(read > 0 || pos == bytes.len());
        assert!(read as u64 <= max || out.len() == 1);
    }

    fn cut_task(&mut self, node: usize, file: usize, keep: usize) {
        let before = self.model[node].clone();
        let used = self.world.disks[node].used();
        self.world.disks[node].begin_journal();
        let id = self.ids[node][file];
        let piece = self.piece(1);
        let dir = self.world.on(node, |d| {
            let dir = d.open_dir(partition(0), false).unwrap();
            d.append(id, piece.clone()).unwrap();
            d.truncate(id, 5).unwrap();
            d.remove(dir, NAMES[file]).unwrap();
            let new = d.create(dir, NAMES[file]).unwrap();
            d.append(new, piece.clone()).unwrap();
            let removed = d.open_dir(partition(1), true).unwrap();
            d.create(removed, FileName::Segment(1)).unwrap();
            d.remove_dir(removed).unwrap();
            dir
        });
        assert_eq!(self.world.disks[node].journaled(), 8);
        self.world.disks[node].end_journal(&mut self.world.store, keep);
        let mut expected = before[file].clone();
        if keep >= 1 {
            expected.extend_from_slice(&piece);
        }
        if keep >= 2 {
            expected.truncate(5);
        }
        let there = self.world.on(node, |d| d.open(dir, NAMES[file]));
        match keep {
            0..=2 => assert_eq!(there, Ok(id)),
            3 => {
                assert!(there.is_err());
                self.ids[node][file] = self.world.on(node, |d| d.create(dir, NAMES[file])).unwrap();
                expected.clear();
            }
            _ => {
                self.ids[node][file] = there.unwrap();
                expected.clear();
            }
        }
        assert_eq!(self.world.content(node, self.ids[node][file]), expected);
        let grown = expected.len() as i64 - before[file].len() as i64;
        assert_eq!(self.world.disks[node].used() as i64, used as i64 + grown);
        self.model[node][file] = expected;
        self.world.flush_dir(node, partition(0));
    }

    fn check(&self) {
        self.world.check();
        for node in 0..NODES {
            for file in 0..FILES {
                assert_eq!(self.world.content(node, self.ids[node][file]), self.model[node][file]);
            }
            let used: usize = self.model[node].iter().map(Vec::len).sum();
            assert_eq!(self.world.disks[node].used(), used as u64);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn like_vectors_of_bytes(ops in prop::collection::vec(op(), 1..120)) {
        let mut pair = Pair::new();
        for op in ops {
            pair.step(op);
        }
        pair.check();
        let World { mut store, mut disks } = pair.world;
        disks.iter_mut().for_each(|d| d.wipe(&mut store));
        prop_assert_eq!(store.lineages(), 0);
        store.check(&disks.iter().collect::<Vec<_>>()).unwrap();
    }
}
