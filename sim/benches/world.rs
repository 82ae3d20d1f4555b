//! Protocol messages per second of a small world: one controller, three brokers, two producers, twelve partitions.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

use criterion::{criterion_group, criterion_main, BatchSize, Criterion, Throughput};
use mirrorlab_model::broker::{BrokerConfig, Release};
use mirrorlab_model::client::admin::{AdminConfig, Order};
use mirrorlab_model::client::commands::Command;
use mirrorlab_model::client::generator::{Choice, GeneratorConfig, Rate};
use mirrorlab_model::client::producer::ProducerConfig;
use mirrorlab_model::controller::ControllerConfig;
use mirrorlab_model::guards::Guards;
use mirrorlab_model::ids::{BrokerId, Nanos, NodeId};
use mirrorlab_model::metadata::configs;
use mirrorlab_model::wire::messages::NewTopic;
use mirrorlab_sim::net::{NodeSpec, Role, SiteIx, Topology};
use mirrorlab_sim::node::Program;
use mirrorlab_sim::world::World;
use std::sync::Arc;

fn add(world: &mut World, name: &str, cluster: Option<u8>, role: Role, program: Program) {
    let node = world.next_node();
    let spec = NodeSpec { node, site: SiteIx(0), role, cluster: 0 };
    world.add_node(name, cluster, spec, program, Guards::default());
    world.start(node);
}

fn run_until(world: &mut World, until: Nanos) {
    while world.next_time().is_some_and(|at| at <= until) {
        world.step();
    }
}

/// A world in which producers have been busy for a while.
fn warm() -> World {
    let mut world = World::new(&Topology::new(1), 1);
    let controller = NodeId(0);
    let nodes: Vec<NodeId> = (1..=3).map(NodeId).collect();
    let config = ControllerConfig::alone("east", controller);
    add(&mut world, "controller", Some(0), Role::Controller, Program::Controller(Arc::new(config)));
    for node in &nodes {
        let config = BrokerConfig {
            release: Release::NEWEST,
            broker: BrokerId(i32::from(node.0)),
            node: *node,
            cluster_id: "east".into(),
            controllers: vec![controller],
            configs: configs::BrokerConfig::default(),
        };
        add(&mut world, "broker", Some(0), Role::Broker, Program::Broker(Arc::new(config)));
    }
    run_until(&mut world, Nanos::from_secs(3));
    let topic = NewTopic {
        name: "orders".into(),
        mirror_id: None,
        partitions: 12,
        replication_factor: 3,
        assignments: Vec::new(),
        configs: Vec::new(),
    };
    let mut admin = AdminConfig::new(nodes.clone());
    let command = Command::CreateTopics(vec![topic]);
    admin.orders.push(Order { id: 1, command, timeout: Nanos::from_secs(30), insist: true });
    add(&mut world, "operator", None, Role::Client, Program::Admin(Arc::new(admin)));
    run_until(&mut world, Nanos::from_secs(5));
    for number in 0..2 {
        let load = GeneratorConfig {
            rate: Rate::Total { records: 2_000, per: Nanos::from_secs(1) },
            choice: Choice::RoundRobin,
            record_bytes: 100,
            keys: 0,
            tombstone_every: 0,
            start: Nanos::ZERO,
            stop: None,
            limit: None,
        };
        let mut config = ProducerConfig::new(number, nodes.clone(), vec!["orders".into()], load);
        config.linger = Nanos::from_millis(1);
        add(&mut world, "producer", None, Role::Client, Program::Producer(Arc::new(config)));
    }
    run_until(&mut world, Nanos::from_secs(7));
    world
}

fn messages(c: &mut Criterion) {
    let world = warm();
    let until = world.now() + Nanos::from_millis(500);
    let mut after = world.clone();
    run_until(&mut after, until);
    let count = after.counts().messages - world.counts().messages;
    assert!(count > 1_000, "{count} messages: the world of this benchmark does not do what it is there for");
    let mut group = c.benchmark_group("world");
    group.throughput(Throughput::Elements(count)).sample_size(10);
    group.bench_function("messages, half a simulated second", |b| {
        b.iter_batched_ref(|| world.clone(), |world| run_until(world, until), BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(benches, messages);
criterion_main!(benches);
