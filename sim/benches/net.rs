//! What one message costs on its way through the network, from `send` to the input that it becomes. Budget: 100 ns.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use mirrorlab_model::ids::{ConnId, Nanos, NodeId};
use mirrorlab_model::wire::messages::{FetchResponse, Message};
use mirrorlab_sim::net::{Jitter, LinkSpec, NetOut, Network, Role, SiteIx, Topology};
use std::hint::black_box;

struct Pair {
    net: Network,
    out: NetOut,
    now: Nanos,
    spare: Vec<Message>,
}

const NODES: u16 = 6;
const CONNS: u64 = 30;

/// Six brokers with a connection between any two.
fn connected(inside: LinkSpec) -> Pair {
    let mut topology = Topology::new(1);
    topology.sites[0] = inside;
    for node in 0..NODES {
        topology.node(NodeId(node), SiteIx(0), Role::Broker, 0);
    }
    let mut pair =
        Pair { net: Network::new(&topology, 1), out: NetOut::default(), now: Nanos::ZERO, spare: Vec::new() };
    for node in 0..NODES {
        pair.net.node_up(Nanos::ZERO, NodeId(node), 1, &mut pair.out);
    }
    for conn in 0..CONNS {
        let (from, to) = ends(conn);
        pair.net.connect(pair.now, ConnId(conn), from, to, &mut pair.out);
        settle(&mut pair);
    }
    pair
}

fn ends(conn: u64) -> (NodeId, NodeId) {
    let from = (conn / 5) as u16;
    (NodeId(from), NodeId((from + 1 + (conn % 5) as u16) % NODES))
}

/// Runs the events in the order made: no queue, so that only the network is measured.
fn settle(pair: &mut Pair) {
    let mut at = 0;
    while at < pair.out.events.len() {
        let (due, event) = pair.out.events[at];
        pair.now = pair.now.max(due);
        pair.net.arrive(due.max(pair.now), event, &mut pair.out);
        at += 1;
    }
    pair.out.events.clear();
    pair.out.inputs.clear();
}

fn one_message(c: &mut Criterion) {
    let mut group = c.benchmark_group("send and arrive");
    group.throughput(Throughput::Elements(CONNS * 2));
    let plain = LinkSpec { jitter: Jitter::None, ..LinkSpec::LAN };
    for (name, link) in [("with jitter", LinkSpec::LAN), ("without", plain)] {
        let mut pair = connected(link);
        group.bench_function(name, |b| {
            b.iter_batched_ref(
                || (0..CONNS * 2).map(|_| Message { correlation: 1, body: FetchResponse::default().into() }).collect(),
                |messages: &mut Vec<Message>| {
                    for conn in 0..CONNS {
                        let (from, to) = ends(conn);
                        for sender in [from, to] {
                            let Some(message) = messages.pop() else { return };
                            pair.now.0 += 1_000;
                            pair.net.send(pair.now, ConnId(conn), sender, 300, message, &mut pair.out);
                            let Some((due, event)) = pair.out.events.pop() else { return };
                            pair.now = due;
                            pair.net.arrive(due, event, &mut pair.out);
                        }
                    }
                    // The messages are dropped outside the measured part.
                    for (_, input) in pair.out.inputs.drain(..) {
                        if let mirrorlab_model::ports::Input::Message { message, .. } = input {
                            pair.spare.push(message);
                        }
                    }
                    messages.append(&mut pair.spare);
                    black_box(&pair.net);
                },
                criterion::BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, one_message);
criterion_main!(benches);
