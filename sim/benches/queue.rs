//! How fast events are queued and taken: at tens, a thousand and ten thousand waiting events.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion, Throughput};
use mirrorlab_model::ids::Nanos;
use mirrorlab_sim::queue::EventQueue;
use mirrorlab_sim::rng::{Concern, Seed};
use std::hint::black_box;

fn hold(c: &mut Criterion) {
    let mut group = c.benchmark_group("queue");
    group.throughput(Throughput::Elements(1));
    for waiting in [30, 1_000, 10_000] {
        let mut queue = EventQueue::new();
        let mut draw = Seed(0).stream(Concern::Test, 0, 0);
        for n in 0..waiting {
            queue.push(Nanos(draw.below(1_000_000)), [n; 12]);
        }
        group.bench_function(BenchmarkId::new("take one, push one", waiting), |b| {
            b.iter(|| {
                let (now, _, event) = queue.pop().unwrap_or_default();
                queue.push(Nanos(now.0 + draw.below(1_000_000)), black_box(event));
            });
        });
    }
    group.finish();
}

fn draws(c: &mut Criterion) {
    let mut ordinal = 0;
    c.bench_function("rng/one draw", |b| {
        b.iter(|| {
            ordinal += 1;
            black_box(Seed(1).draw(Concern::Lane, 7, ordinal))
        });
    });
    c.bench_function("rng/heavy-tailed delay", |b| {
        b.iter(|| {
            ordinal += 1;
            let mut draw = Seed(1).stream(Concern::Lane, 7, ordinal);
            black_box(draw.heavy_tailed(Nanos(2_000), 1.0, Nanos(5_000_000)))
        });
    });
}

criterion_group!(benches, hold, draws);
criterion_main!(benches);
