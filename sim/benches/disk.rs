//! What an append costs that another replica has made already, one that is new, and a read by position.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

use bytes::Bytes;
use criterion::{criterion_group, criterion_main, BatchSize, BenchmarkId, Criterion, Throughput};
use mirrorlab_model::ids::{NodeId, TopicId, TopicIx, TopicLife};
use mirrorlab_model::ports::{DirName, Disk, FileId, FileName};
use mirrorlab_sim::disk::{DiskModel, NodeDisk, Store};
use mirrorlab_sim::rng::Seed;
use std::hint::black_box;

const FILES: u32 = 1_000;
const APPENDS: usize = 100;

struct Disks {
    store: Store,
    nodes: Vec<NodeDisk>,
    batches: Vec<Bytes>,
}

/// Two disks with a thousand empty segments each; batches of 200 bytes.
fn disks() -> Disks {
    let mut store = Store::new();
    let mut nodes: Vec<_> = (0..2).map(|n| NodeDisk::new(NodeId(n), Seed(0), DiskModel::default())).collect();
    for node in &mut nodes {
        let mut view = node.view(&mut store);
        for partition in 0..FILES {
            let dir = view
                .open_dir(DirName::Partition { topic: TopicLife { id: TopicId(1), ix: TopicIx(0) }, partition }, true);
            dir.and_then(|dir| view.create(dir, FileName::Segment(0))).unwrap_or(FileId(0));
        }
    }
    let batches = (0..FILES as usize * APPENDS).map(|i| Bytes::from(vec![i as u8; 200])).collect();
    Disks { store, nodes, batches }
}

fn fill(disks: &mut Disks, node: usize) {
    for (i, batch) in disks.batches.iter().enumerate() {
        let mut view = disks.nodes[node].view(&mut disks.store);
        let _ = black_box(view.append(FileId(i as u32 % FILES), batch.clone()));
    }
}

fn appends(c: &mut Criterion) {
    let mut group = c.benchmark_group("disk");
    group.throughput(Throughput::Elements(FILES as u64 * APPENDS as u64)).sample_size(10);
    group.bench_function("append what is new", |b| {
        b.iter_batched_ref(disks, |disks| fill(disks, 0), BatchSize::PerIteration);
    });
    group.bench_function("append what another replica has", |b| {
        let first = || {
            let mut disks = disks();
            fill(&mut disks, 0);
            disks
        };
        b.iter_batched_ref(first, |disks| fill(disks, 1), BatchSize::PerIteration);
    });
    group.finish();
}

fn reads(c: &mut Criterion) {
    let mut disks = disks();
    let long = FileId(0);
    for batch in &disks.batches {
        let _ = disks.nodes[0].view(&mut disks.store).append(long, batch.clone());
    }
    let mut group = c.benchmark_group("disk");
    let view = disks.nodes[0].view(&mut disks.store);
    let len = view.len(long);
    let mut out = Vec::new();
    for (place, pos) in [("last batch", len - 200), ("middle", len / 2)] {
        group.bench_function(BenchmarkId::new("read one batch of 100,000", place), |b| {
            b.iter(|| {
                out.clear();
                let _ = black_box(view.read(long, black_box(pos), 200, &mut out));
            });
        });
    }
    group.finish();
    c.bench_function("disk/clone a store of 100,000 batches", |b| b.iter(|| black_box(disks.store.clone())));
}

criterion_group!(benches, appends, reads);
criterion_main!(benches);
