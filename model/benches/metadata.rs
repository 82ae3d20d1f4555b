//! What a change of a partition costs a metadata image, however many partitions there are: alone, and when an older version
//! of the image is still held.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion};
use mirrorlab_model::ids::{BrokerId, LeaderEpoch, PartitionEpoch, PartitionIx, TopicId, TopicIx};
use mirrorlab_model::metadata::delta::MetadataDelta;
use mirrorlab_model::metadata::image::MetadataImage;
use mirrorlab_model::metadata::records::{Brokers, PartitionState, Record};
use std::hint::black_box;

fn brokers() -> Brokers {
    [1, 2, 3].into_iter().map(BrokerId).collect()
}

fn image(partitions: u32) -> MetadataImage {
    let (mut image, mut delta) = (MetadataImage::default(), MetadataDelta::default());
    image.apply(0, &Record::Topic { topic: TopicIx(0), id: TopicId(1), name: "orders".into() }, &mut delta);
    for number in 0..partitions {
        let state = PartitionState {
            replicas: brokers(),
            isr: brokers(),
            elr: Brokers::default(),
            last_known_elr: Brokers::default(),
            leader: BrokerId(1),
            leader_epoch: LeaderEpoch(0),
            partition_epoch: PartitionEpoch(0),
            recovering: false,
        };
        let record = Record::Partition { partition: PartitionIx(number), topic: TopicIx(0), number, state };
        image.apply(i64::from(number) + 1, &record, &mut delta);
    }
    image
}

fn change(partition: u32, leader: i32) -> Record {
    Record::PartitionChange {
        partition: PartitionIx(partition),
        leader: Some(BrokerId(leader)),
        leader_epoch: None,
        isr: None,
        elr: None,
        last_known_elr: None,
        recovering: None,
        replicas: None,
    }
}

fn changes(c: &mut Criterion) {
    let mut group = c.benchmark_group("a change of leader in an image");
    for partitions in [100, 100_000] {
        let mut image = image(partitions);
        let mut delta = MetadataDelta::default();
        let mut n = 0u32;
        group.bench_function(BenchmarkId::new("alone, partitions", partitions), |b| {
            b.iter(|| {
                n = n.wrapping_add(1);
                let record = change(n % partitions, 1 + (n % 3) as i32);
                image.apply(i64::from(n) + 1_000_000, &record, &mut delta);
                delta.clear();
            });
        });
        group.bench_function(BenchmarkId::new("with the version before held, partitions", partitions), |b| {
            b.iter(|| {
                n = n.wrapping_add(1);
                let held = image.clone();
                let record = change(n % partitions, 1 + (n % 3) as i32);
                image.apply(i64::from(n) + 1_000_000, &record, &mut delta);
                delta.clear();
                black_box(held)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, changes);
criterion_main!(benches);
