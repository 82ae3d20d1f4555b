//! Makes a world from a plan: sites and links, clusters, the operators' clients; and, when the clusters stand, the producers
//! and consumers.

use crate::format::types::{Acks, Isolation, Producer as ProducerPlan, Reset, Stage};
use crate::setup::{ClientSetup, ClusterSetup, MirrorSetup, Setup, Wish};
use crate::units::Chance;
use mirrorlab_model::broker::{BrokerConfig, Release};
use mirrorlab_model::client::admin::{AdminConfig, Order, Outcome};
use mirrorlab_model::client::commands::Command;
use mirrorlab_model::client::consumer::{self, ConsumerConfig};
use mirrorlab_model::client::generator::{Choice, GeneratorConfig, Rate};
use mirrorlab_model::client::mirror_orders::MirrorOrder;
use mirrorlab_model::client::producer::ProducerConfig;
use mirrorlab_model::client::transactions::TransactionConfig;
use mirrorlab_model::controller::ControllerConfig;
use mirrorlab_model::guards::points::Point;
use mirrorlab_model::guards::Guards;
use mirrorlab_model::ids::{BrokerId, Nanos, NodeId, ProducerId};
use mirrorlab_model::metadata::configs;
use mirrorlab_model::metadata::patterns::Patterns;
use mirrorlab_model::wire::messages::{self, NewTopic};
use mirrorlab_sim::net::{self, Jitter, LinkSpec, NodeSpec, Role, SiteIx, Topology};
use mirrorlab_sim::node::{Process, Program};
use mirrorlab_sim::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Partitions that one order creates at most: the controller refuses more than 10,000 (decision 16).
const PARTITIONS_PER_ORDER: u64 = 10_000;
/// How long an operator's order may take.
const ORDER_TIMEOUT: Nanos = Nanos::from_secs(60);

/// How an order is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// It is repeated after any refusal, and not only where Kafka's own client does: nobody looks at its answer.
    pub insist: bool,
    /// By which operator of its cluster, counted from 1.
    pub operator: u32,
}

impl Default for Manner {
    fn default() -> Self {
        Self { insist: true, operator: 1 }
    }
}

/// A world with the names of what is in it.
#[derive(Clone, Debug)]
pub struct Lab {
    /// The world.
    pub world: World,
    /// Who is who.
    pub setup: Setup,
    /// Sites by name.
    pub sites: BTreeMap<String, SiteIx>,
    /// Orders given so far: their ids are unique in the run.
    orders: u32,
    guards: Guards,
}

/// A config entry that the model refused: a scenario file should have been refused before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadConfig(pub String);

impl Lab {
    /// A world with all clusters started and no client but the operators'.
    ///
    /// # Errors
    /// A config entry that the model does not take.
    pub fn build(stage: &Stage, seed: u64, mut guards: Guards) -> Result<Self, BadConfig> {
        stage.perturb.iter().filter_map(|name| Point::named(name)).for_each(|point| guards.points.arm(point));
        stage.perturb_always.iter().filter_map(|name| Point::named(name)).for_each(|p| guards.points.arm_always(p));
        let sites = sites_of(stage);
        let mut topology = Topology::new(sites.len());
        add_links(&mut topology, stage, &sites);
        let mut lab = Self { world: World::new(&topology, seed), setup: Setup::default(), sites, orders: 0, guards };
        if stage.wire {
            lab.world.check_wire();
        }
        for (name, cluster) in &stage.clusters {
            lab.add_cluster(name, cluster)?;
        }
        lab.add_operators(stage);
        for (name, mirror) in &stage.mirrors {
            let (Some(source), Some(destination)) = (lab.setup.cluster(&mirror.source), lab.setup.cluster(&mirror.on))
            else {
                continue;
            };
            lab.setup.mirrors.push(MirrorSetup { name: name.as_str().into(), source, destination });
        }
        for node in 0..lab.world.nodes().len() {
            lab.world.start(NodeId(node as u16));
        }
        Ok(lab)
    }

    fn add_cluster(&mut self, name: &str, plan: &crate::format::types::Cluster) -> Result<(), BadConfig> {
        let index = self.setup.clusters.len() as u8;
        let site = self.sites[&plan.site];
        let mut broker_configs = configs::BrokerConfig {
            default_replication_factor: plan.default_rf,
            mirror_state_topic_replication_factor: plan.default_rf.min(3),
            transaction_state_log_replication_factor: plan.default_rf.min(3),
            transaction_state_log_min_isr: plan.default_rf.min(3).div_ceil(2),
            ..configs::BrokerConfig::default()
        };
        for (key, value) in &plan.config {
            broker_configs.set(key, value).map_err(|e| BadConfig(format!("clusters.{name}.config: {e}")))?;
        }
        let first = self.world.next_node();
        let controllers: Vec<NodeId> = (0..plan.controllers).map(|n| NodeId(first.0 + n as u16)).collect();
        let brokers: Vec<NodeId> = (0..plan.brokers).map(|n| NodeId(first.0 + (plan.controllers + n) as u16)).collect();
        for (n, node) in controllers.iter().enumerate() {
            let mut config = ControllerConfig::alone(&plan.id, *node);
            config.voters.clone_from(&controllers);
            config.broker = broker_configs.clone();
            config.first_producer = ProducerId(plan.first_producer_id as i64);
            let spec = NodeSpec { node: *node, site, role: Role::Controller, cluster: u16::from(index) };
            let name = format!("{name}/controller-{}", n + 1);
            let program = Program::Controller(Arc::new(config));
            self.world.add_node(&name, Some(index), spec, program, self.guards.clone());
        }
        for (n, node) in brokers.iter().enumerate() {
            let config = BrokerConfig {
                release: plan.release.as_deref().and_then(|text| text.parse().ok()).unwrap_or(Release::NEWEST),
                broker: BrokerId(n as i32 + 1),
                node: *node,
                cluster_id: plan.id.as_str().into(),
                controllers: controllers.clone(),
                configs: broker_configs.clone(),
            };
            let spec = NodeSpec { node: *node, site, role: Role::Broker, cluster: u16::from(index) };
            let name = format!("{name}/broker-{}", n + 1);
            self.world.add_node(&name, Some(index), spec, Program::Broker(Arc::new(config)), self.guards.clone());
        }
        let admin = self.add_operator(&format!("{name}/operator"), index, site, &brokers);
        self.setup.admins.push(vec![admin]);
        self.setup.clusters.push(ClusterSetup {
            name: name.into(),
            cluster_id: plan.id.as_str().into(),
            controllers,
            brokers,
        });
        Ok(())
    }

    /// Those beside the first one of each cluster, as many as steps name.
    fn add_operators(&mut self, stage: &Stage) {
        let last = stage.timeline.iter().map(|step| step.operator).max().unwrap_or(1);
        for n in 2..=last {
            for cluster in 0..self.setup.clusters.len() {
                let ClusterSetup { name, brokers, .. } = self.setup.clusters[cluster].clone();
                let site = self.sites[&stage.clusters[&*name].site];
                let admin = self.add_operator(&format!("{name}/operator-{n}"), cluster as u8, site, &brokers);
                self.setup.admins[cluster].push(admin);
            }
        }
    }

    fn add_operator(&mut self, name: &str, cluster: u8, site: SiteIx, brokers: &[NodeId]) -> NodeId {
        let node = self.world.next_node();
        let spec = NodeSpec { node, site, role: Role::Client, cluster: u16::from(cluster) };
        let program = Program::Admin(Arc::new(AdminConfig::new(brokers.to_vec())));
        self.world.add_node(name, None, spec, program, self.guards.clone());
        node
    }

    // ------------------------------------------------------------------------------------------------------------ orders

    /// Gives an order to a cluster's first operator, who insists on it; returns its id.
    pub fn order(&mut self, cluster: u8, command: Command) -> u32 {
        self.give(cluster, command, Manner::default())
    }

    /// Gives an order to an operator of a cluster; returns its id.
    pub fn give(&mut self, cluster: u8, command: Command, manner: Manner) -> u32 {
        self.orders += 1;
        let of = &self.setup.admins[usize::from(cluster)];
        let node = of[(manner.operator as usize).clamp(1, of.len()) - 1];
        self.setup.wishes.extend(Wish::of((cluster, node), self.orders, self.world.now(), &command));
        let order = Order { id: self.orders, command, timeout: ORDER_TIMEOUT, insist: manner.insist };
        self.world.call(node, |process, _, cx| {
            if let Process::Admin(admin) = process {
                admin.submit(order, cx);
            }
        });
        self.orders
    }

    /// Whether every operator has nothing left to do.
    #[must_use]
    pub fn orders_done(&self) -> bool {
        self.setup.operators().all(|node| self.world.node(node).admin().is_some_and(|a| a.is_idle()))
    }

    /// When the last order ended that any operator gave.
    #[must_use]
    pub fn last_order_ended(&self) -> Option<Nanos> {
        let admins = self.setup.operators().filter_map(|node| self.world.node(node).admin());
        admins.filter_map(|admin| admin.outcomes().last()).map(|outcome| outcome.ended).max()
    }

    /// Whether every broker that runs is registered and let in.
    #[must_use]
    pub fn brokers_in(&self) -> bool {
        let nodes = self.setup.clusters.iter().flat_map(|c| &c.brokers);
        nodes.into_iter().all(|n| self.world.node(*n).broker().is_some_and(|b| b.is_running()))
    }

    /// Orders the topics of a plan.
    pub fn create_topics(&mut self, stage: &Stage) {
        let mut batch: BTreeMap<u8, (u64, Vec<NewTopic>)> = BTreeMap::new();
        let mut orders = Vec::new();
        for topic in stage.topics.values() {
            let Some(cluster) = self.setup.cluster(&topic.on) else { continue };
            let min_isr = stage.clusters.get(&topic.on).map_or(1, |c| c.min_isr).min(topic.rf);
            for name in topic.names() {
                let mut entries: Vec<(Arc<str>, Arc<str>)> =
                    topic.config.iter().map(|(k, v)| (k.as_str().into(), v.as_str().into())).collect();
                if !topic.config.contains_key("min.insync.replicas") {
                    entries.push(("min.insync.replicas".into(), min_isr.to_string().into()));
                }
                let new = NewTopic {
                    name: name.as_str().into(),
                    mirror_id: None,
                    partitions: topic.partitions,
                    replication_factor: topic.rf as i16,
                    assignments: Vec::new(),
                    configs: entries,
                };
                let (partitions, list) = batch.entry(cluster).or_default();
                if *partitions + u64::from(topic.partitions) > PARTITIONS_PER_ORDER {
                    orders.push((cluster, std::mem::take(list)));
                    *partitions = 0;
                }
                *partitions += u64::from(topic.partitions);
                list.push(new);
            }
        }
        orders.extend(batch.into_iter().map(|(cluster, (_, list))| (cluster, list)));
        for (cluster, list) in orders {
            if !list.is_empty() {
                self.order(cluster, Command::CreateTopics(list));
            }
        }
    }

    /// Orders a mirror and the start of its topics; returns the last order's id.
    pub fn create_mirror(&mut self, stage: &Stage, name: &str, manner: Manner) -> Option<u32> {
        let plan = stage.mirrors.get(name)?;
        let setup = self.setup.mirrors.iter().find(|m| &*m.name == name)?.clone();
        let source = self.setup.clusters[usize::from(setup.source)].brokers.clone();
        let configs = plan.config.iter().map(|(k, v)| (k.as_str().into(), v.as_str().into())).collect();
        self.give(setup.destination, Command::CreateClusterMirror { mirror: name.into(), source, configs }, manner);
        self.start_mirror(stage, name, &[], manner)
    }

    /// Orders the start of a mirror's topics: these, or all that the plan names.
    pub fn start_mirror(&mut self, stage: &Stage, name: &str, topics: &[String], manner: Manner) -> Option<u32> {
        let plan = stage.mirrors.get(name)?;
        let setup = self.setup.mirrors.iter().find(|m| &*m.name == name)?.clone();
        let source = self.setup.clusters[usize::from(setup.source)].brokers.clone();
        let wanted: Vec<&str> =
            if topics.is_empty() { &plan.topics } else { topics }.iter().map(String::as_str).collect();
        let include = Patterns::of(&wanted);
        let excluded: Vec<&str> = plan.exclude.iter().map(String::as_str).collect();
        let exclude = Patterns::of(&excluded);
        let mut last = None;
        let mut batch: (u64, Vec<Arc<str>>) = (0, Vec::new());
        let there = topics_at(stage, &plan.source, &mut BTreeSet::new());
        for (topic_name, partitions) in there.iter().filter(|(n, _)| include.matches(n) && !exclude.matches(n)) {
            if batch.0 + u64::from(*partitions) > PARTITIONS_PER_ORDER {
                last = Some(self.start_topics(&setup, source.clone(), std::mem::take(&mut batch.1), manner));
                batch.0 = 0;
            }
            batch.0 += u64::from(*partitions);
            batch.1.push(topic_name.as_str().into());
        }
        if batch.1.is_empty() {
            last
        } else {
            Some(self.start_topics(&setup, source, batch.1, manner))
        }
    }

    /// Orders something of a mirror that exists; returns the order's id.
    pub fn mirror_order(&mut self, name: &str, order: MirrorOrder, manner: Manner) -> Option<u32> {
        let destination = self.setup.mirrors.iter().find(|m| &*m.name == name)?.destination;
        Some(self.give(destination, Command::Mirror(order), manner))
    }

    /// How an order ended, once it did.
    #[must_use]
    pub fn outcome(&self, order: u32) -> Option<&Outcome> {
        self.setup.operators().find_map(|node| self.world.node(node).admin()?.outcome(order))
    }

    /// Whether an order waits behind others of its operator.
    #[must_use]
    pub fn waits(&self, order: u32) -> bool {
        self.setup.operators().any(|node| self.world.node(node).admin().is_some_and(|admin| admin.waits(order)))
    }

    fn start_topics(&mut self, setup: &MirrorSetup, source: Vec<NodeId>, topics: Vec<Arc<str>>, manner: Manner) -> u32 {
        let mirror = setup.name.clone();
        let command = Command::StartMirrorTopics { mirror, source, topics, include: Vec::new(), exclude: Vec::new() };
        self.give(setup.destination, command, manner)
    }

    // ----------------------------------------------------------------------------------------------------------- clients

    /// Adds and starts producers and consumers. Their instants count from `base`; producers end at `end` unless the plan says
    /// otherwise.
    pub fn add_clients(&mut self, stage: &Stage, base: Nanos, end: Nanos) {
        for (name, plan) in &stage.producers {
            for n in 0..plan.count {
                self.add_producer(stage, &numbered(name, n, plan.count), plan, base, end);
            }
        }
        for (name, plan) in &stage.consumers {
            for n in 0..plan.count {
                let Some(cluster) = self.setup.cluster(&plan.on) else { continue };
                let brokers = self.setup.clusters[usize::from(cluster)].brokers.clone();
                let number = self.setup.consumers.len() as u32;
                let mut config = ConsumerConfig::new(number, brokers, &topics_of(stage, &plan.topics, &plan.on));
                config.group = plan.group.as_deref().map(Into::into);
                config.resume = plan.group.is_some();
                config.isolation = match plan.isolation {
                    Isolation::ReadUncommitted => messages::Isolation::ReadUncommitted,
                    Isolation::ReadCommitted => messages::Isolation::ReadCommitted,
                };
                config.reset = match plan.reset {
                    Reset::Earliest => consumer::Reset::Earliest,
                    Reset::Latest => consumer::Reset::Latest,
                    Reset::None => consumer::Reset::None,
                };
                config.commit_interval = plan.group.as_ref().and(plan.commit_every).map(|t| t.nanos());
                config.list_ends_interval = plan.poll_end.map(|t| t.nanos());
                config.start = base + plan.start.nanos();
                config.stop = plan.stop.map(|t| base + t.nanos());
                let name = numbered(name, n, plan.count);
                let node = self.add_client(&name, cluster, &plan.site, Program::Consumer(Arc::new(config)));
                let read_committed = plan.isolation == Isolation::ReadCommitted;
                self.setup.consumers.push(ClientSetup {
                    name: name.as_str().into(),
                    number,
                    cluster,
                    node,
                    read_committed,
                });
            }
        }
    }

    fn add_producer(&mut self, stage: &Stage, name: &str, plan: &ProducerPlan, base: Nanos, end: Nanos) {
        let Some(cluster) = self.setup.cluster(&plan.on) else { return };
        let brokers = self.setup.clusters[usize::from(cluster)].brokers.clone();
        let number = self.setup.producers.len() as u32;
        let rate = match (plan.rate, plan.every) {
            (Some(rate), _) => Rate::Total { records: rate.count, per: rate.per.nanos() },
            (None, Some(every)) => Rate::EachPartition { period: every.nanos() },
            // Sends only what `produce` steps order.
            (None, None) => Rate::Total { records: 0, per: Nanos::from_secs(1) },
        };
        let load = GeneratorConfig {
            rate,
            choice: Choice::RoundRobin,
            record_bytes: plan.record.0 as u32,
            keys: plan.keys as u32,
            tombstone_every: plan.tombstone_every.unwrap_or(0) as u32,
            start: base + plan.start.nanos(),
            stop: Some(plan.stop.map_or(end, |t| base + t.nanos())),
            // Neither a rate nor a period: only the timeline makes it write.
            limit: if plan.rate.is_none() && plan.every.is_none() { Some(0) } else { plan.records },
        };
        let mut config = ProducerConfig::new(number, brokers, topics_of(stage, &plan.topics, &plan.on), load);
        config.acks = match plan.acks {
            Acks::All => -1,
            Acks::Leader => 1,
            Acks::None => 0,
        };
        config.idempotent = plan.idempotent;
        config.transactions = plan.transactions.as_ref().map(|transactions| TransactionConfig {
            id: transactions.id.as_deref().unwrap_or(name).into(),
            timeout: transactions.timeout.nanos(),
            records: transactions.records.map_or(u64::MAX, u64::from),
            duration: transactions.duration.map(|duration| duration.nanos()),
            abort_ppb: transactions.abort.0,
        });
        config.linger = plan.linger.nanos();
        config.batch_bytes = plan.batch.0 as u32;
        config.first_sequence = plan.first_sequence.map_or(0, |first| first as i32);
        config.delivery_timeout = plan.delivery_timeout.nanos();
        config.cluster.channel.request_timeout = plan.request_timeout.nanos();
        config.cluster.channel.max_in_flight = plan.in_flight;
        let node = self.add_client(name, cluster, &plan.site, Program::Producer(Arc::new(config)));
        self.setup.producers.push(ClientSetup { name: name.into(), number, cluster, node, read_committed: false });
    }

    fn add_client(&mut self, name: &str, cluster: u8, site: &str, program: Program) -> NodeId {
        let node = self.world.next_node();
        let site = self.sites.get(site).copied().unwrap_or_default();
        let spec = NodeSpec { node, site, role: Role::Client, cluster: u16::from(cluster) };
        self.world.add_node(&format!("clients/{name}"), None, spec, program, self.guards.clone());
        self.world.start(node);
        node
    }
}

/// The topics that a cluster has by the plan, with their sizes: its own, and what its mirrors bring.
fn topics_at(stage: &Stage, cluster: &str, seen: &mut BTreeSet<String>) -> Vec<(String, u32)> {
    if !seen.insert(cluster.to_owned()) {
        return Vec::new();
    }
    let own = stage.topics.values().filter(|topic| topic.on == cluster);
    let mut topics: Vec<(String, u32)> = own.flat_map(|t| t.names().map(|name| (name, t.partitions))).collect();
    for mirror in stage.mirrors.values().filter(|mirror| mirror.on == cluster) {
        let of = |list: &[String]| Patterns::of(&list.iter().map(String::as_str).collect::<Vec<_>>());
        let (include, exclude) = (of(&mirror.topics), of(&mirror.exclude));
        for (name, partitions) in topics_at(stage, &mirror.source, seen) {
            let brought = include.matches(&name) && !exclude.matches(&name);
            if brought && !topics.iter().any(|(known, _)| *known == name) {
                topics.push((name, partitions));
            }
        }
    }
    topics
}

fn numbered(name: &str, n: u32, count: u32) -> String {
    if count == 1 {
        name.to_owned()
    } else {
        format!("{name}-{n}")
    }
}

/// The topics of a cluster that names in a client's table mean; a family's name means all its topics.
fn topics_of(stage: &Stage, names: &[String], on: &str) -> Vec<Arc<str>> {
    let mut topics = Vec::new();
    for name in names {
        let bare = name.strip_prefix(on).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name);
        match stage.topics.values().find(|t| t.name == bare && t.on == on && t.count.is_some()) {
            Some(family) => topics.extend(family.names().map(|n| Arc::from(n.as_str()))),
            None => topics.push(bare.into()),
        }
    }
    topics
}

/// Sites by name, in order of name: those of clusters, clients and links.
fn sites_of(stage: &Stage) -> BTreeMap<String, SiteIx> {
    let mut names: Vec<&String> = stage.clusters.values().map(|c| &c.site).collect();
    names.extend(stage.links.values().flat_map(|l| &l.between));
    names.extend(stage.producers.values().map(|p| &p.site));
    names.extend(stage.consumers.values().map(|c| &c.site));
    names.sort_unstable();
    names.dedup();
    names.into_iter().enumerate().map(|(n, name)| (name.clone(), SiteIx(n as u16))).collect()
}

fn add_links(topology: &mut Topology, stage: &Stage, sites: &BTreeMap<String, SiteIx>) {
    for link in stage.links.values() {
        for from in 0..2 {
            let direction = link.direction(from);
            let (Some(a), Some(b)) = (sites.get(&link.between[from]), sites.get(&link.between[1 - from])) else {
                continue;
            };
            let spec = LinkSpec {
                latency: direction.latency.nanos(),
                jitter: if direction.jitter.0 == 0 {
                    Jitter::None
                } else {
                    Jitter::Uniform { max: direction.jitter.nanos() }
                },
                loss: chance(direction.loss),
                bits_per_second: direction.bandwidth.map_or(u64::MAX, |b| b.0),
                window: link.socket_buffer.map(|s| s.0 as u32),
            };
            if a == b {
                topology.sites[usize::from(a.0)] = spec;
            } else {
                topology.links.insert((*a, *b), spec);
            }
        }
    }
}

/// A scenario's chance (billionths) as the network's.
#[must_use]
pub fn chance(chance: Chance) -> net::Chance {
    net::Chance::from_ratio(f64::from(chance.0) / 1e9)
}
