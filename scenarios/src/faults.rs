//! Carries out the steps of a timeline: strikes faults, remembers how each ends, and gives operators their orders.

use crate::conditions::Eye;
use crate::format::action::{Action, ConfigTarget, DiskCall, Elect, Keep, NodeRef, Place, Role};
use crate::format::types::{Config, Stage};
use crate::lab::{chance, Lab};
use crate::units::Time;
use mirrorlab_model::admin::command::{parse, Call};
use mirrorlab_model::broker::lanes;
use mirrorlab_model::client::commands::Command;
use mirrorlab_model::client::mirror_orders::{MirrorOrder, Which};
use mirrorlab_model::ids::{BrokerId, LeaderEpoch, Nanos, NodeId, Offset, TopicId};
use mirrorlab_model::ports::{DirName, Input, Lane};
use mirrorlab_model::wire::messages::{ConfigEntry, ConfigResource, NewTopic};
use mirrorlab_sim::disk::{DiskModel, ErrorRule, Ops};
use mirrorlab_sim::net::{self, Cut, Degrade, Fault, FaultId, Jitter, Only, Perturb, SiteIx, Who};
use mirrorlab_sim::node::{Condition, LastStop, Process, Program};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How a fault ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Undo {
    /// Start the process again.
    Start(NodeId),
    /// Let it go on.
    Resume(NodeId),
    /// Lift a fault of the network.
    Net(FaultId),
    /// Give the disk room again.
    Room(NodeId),
    /// Lift errors of a disk.
    Errors(NodeId),
    /// Let the disk's flushes go on.
    Flushes(NodeId),
    /// Give the disk its speed back.
    Speed(NodeId),
    /// Let the clock keep time again.
    Drift(NodeId),
}

/// What a step did.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// How what it struck ends.
    pub undo: Vec<Undo>,
    /// The orders it gave; the step is over when they are answered.
    pub orders: Vec<u32>,
    /// In words, for the story; empty if nothing was there to strike.
    pub text: String,
    /// A call of the operators' tool, or why it ended before anything was sent.
    pub call: Option<Result<Call, String>>,
}

/// Lanes by the names that `slow-lane` steps use.
pub const LANES: &[(&str, Lane)] = &[
    ("metadata", lanes::METADATA),
    ("controller", lanes::CONTROLLER),
    ("chores", lanes::CHORES),
    ("requests", Lane(lanes::REQUESTS)),
    ("replica-fetcher", Lane(lanes::FETCHERS)),
    ("mirror", Lane(lanes::MIRROR)),
    ("mirror-fetcher", Lane(lanes::MIRROR + 1)),
];

/// Strikes faults and gives orders; counts network faults.
#[derive(Clone, Debug, Default)]
pub struct Striker {
    net_faults: u32,
    /// Operators give an order only once, because its answer is looked at.
    pub once: bool,
}

impl Striker {
    /// Carries out one action.
    pub fn strike(&mut self, lab: &mut Lab, stage: &Stage, action: &Action, over: &BTreeSet<String>) -> Done {
        let mut done = Done { text: format!("{}{}", action.name(), target_text(action)), ..Done::default() };
        match action {
            Action::PowerLoss { node, inside_task: true, .. } => {
                self.down(lab, node, over, &mut done, |lab, n| lab.world.crash_inside_a_task(n, LastStop::PowerLoss));
            }
            Action::Kill { node, inside_task: true, .. } => {
                self.down(lab, node, over, &mut done, |lab, n| lab.world.crash_inside_a_task(n, LastStop::Killed));
            }
            Action::PowerLoss { node, .. } => {
                self.down(lab, node, over, &mut done, |lab, n| lab.world.power_loss(n));
            }
            Action::Kill { node, .. } => {
                self.down(lab, node, over, &mut done, |lab, n| lab.world.kill(n));
            }
            Action::Wipe { node, .. } => {
                self.down(lab, node, over, &mut done, |lab, n| lab.world.wipe(n));
            }
            Action::Shutdown { node, .. } => {
                for n in nodes(lab, node, over) {
                    stop(lab, n);
                    done.undo.push(Undo::Start(n));
                }
            }
            Action::Restart { node } => {
                for n in nodes(lab, node, over) {
                    stop(lab, n);
                    // As soon as it has ended.
                    lab.world.start(n);
                    done.undo.push(Undo::Start(n));
                }
            }
            Action::Start { node } => nodes(lab, node, over).into_iter().for_each(|n| lab.world.start(n)),
            Action::Pause { node, .. } => {
                for n in nodes(lab, node, over) {
                    if lab.world.node(n).condition == Condition::Up {
                        lab.world.pause(n);
                        done.undo.push(Undo::Resume(n));
                    }
                }
            }
            Action::Resume { node } => nodes(lab, node, over).into_iter().for_each(|n| lab.world.resume(n)),
            Action::Partition { between, node, role, one_way, .. } => {
                let cuts = self.cuts(lab, between.as_ref(), node.as_ref(), *role, *one_way, over);
                cuts.into_iter().for_each(|cut| done.undo.push(self.net(lab, Fault::Cut(cut))));
            }
            // Partitions that a step ends are lifted by the runner, which knows which step struck them.
            Action::Heal { .. } => {}
            Action::Latency { link, latency, jitter, toward, .. } => {
                self.degrade(lab, stage, link, toward.as_deref(), &mut done, |d, base| {
                    d.extra_latency = latency.nanos().since(base);
                    d.jitter = jitter.map(|max| Jitter::Uniform { max: max.nanos() });
                })
            }
            Action::Loss { link, loss, toward, .. } => {
                self.degrade(lab, stage, link, toward.as_deref(), &mut done, |d, _| d.loss = chance(*loss));
            }
            Action::Bandwidth { link, bandwidth, toward, .. } => {
                self.degrade(lab, stage, link, toward.as_deref(), &mut done, |d, _| {
                    d.bits_per_second = Some(bandwidth.0);
                })
            }
            Action::ResetConnections { link, node, silent } => {
                let ends = link.as_ref().and_then(|link| stage.links.get(link)).and_then(|link| {
                    let site = |n: usize| lab.sites.get(&link.between[n]).copied().map(Who::Site);
                    Some((site(0)?, site(1)?))
                });
                let of_nodes = node.iter().flat_map(|node| nodes(lab, node, over)).map(|n| (Who::Node(n), Who::Anyone));
                let pairs: Vec<(Who, Who)> = ends.into_iter().chain(of_nodes).collect();
                let many: usize = pairs.into_iter().map(|(a, b)| lab.world.reset_connections(a, b, *silent)).sum();
                done.text = format!("{} ({many} of them{})", done.text, if *silent { ", silently" } else { "" });
            }
            Action::Duplicate { kind, from, to, probability, extra, .. } => {
                let rule = rule(kind, *probability, *extra, true);
                self.perturb(lab, rule, from.as_ref(), to.as_ref(), over, &mut done);
            }
            Action::DelayMessages { kind, from, to, probability, extra, .. } => {
                let rule = rule(kind, *probability, *extra, false);
                self.perturb(lab, rule, from.as_ref(), to.as_ref(), over, &mut done);
            }
            _ => self.strike_node(lab, stage, action, over, &mut done),
        }
        done
    }

    fn strike_node(&mut self, lab: &mut Lab, stage: &Stage, action: &Action, over: &BTreeSet<String>, done: &mut Done) {
        match action {
            Action::DiskFull { node, .. } => {
                for n in nodes(lab, node, over) {
                    lab.world.node_mut(n).disk.set_capacity(0);
                    done.undo.push(Undo::Room(n));
                }
            }
            Action::DiskError { node, call, probability, .. } => {
                for n in nodes(lab, node, over) {
                    let rule =
                        ErrorRule { ops: ops(*call), file: None, chance: f64::from(probability.0) / 1e9, count: None };
                    lab.world.node_mut(n).disk.add_error(rule);
                    done.undo.push(Undo::Errors(n));
                }
            }
            Action::DiskStall { node, .. } => {
                for n in nodes(lab, node, over) {
                    lab.world.node_mut(n).disk.stall();
                    done.undo.push(Undo::Flushes(n));
                }
            }
            Action::DiskSlow { node, call, by, .. } => {
                for n in nodes(lab, node, over) {
                    let disk = &mut lab.world.node_mut(n).disk;
                    let mut model = *disk.model();
                    // Reads and writes have one price.
                    if *call != DiskCall::Flush {
                        model.call = model.call + by.nanos();
                    }
                    if matches!(call, DiskCall::Any | DiskCall::Flush) {
                        model.flush_latency = model.flush_latency + by.nanos();
                        model.flush_latency_max = model.flush_latency_max + by.nanos();
                    }
                    disk.set_model(model);
                    done.undo.push(Undo::Speed(n));
                }
            }
            Action::BitRot { node, topic, partition, bits } => {
                for n in nodes(lab, node, over) {
                    let Some(dir) = dir_of(lab, n, topic, *partition) else { continue };
                    let rotten = (0..*bits).filter(|bit| lab.world.rot(n, dir, u64::from(*bit))).count();
                    done.text = format!("{} {topic}-{partition} ({rotten} bits)", done.text);
                }
            }
            Action::ClockJump { node, by } => {
                for n in nodes(lab, node, over) {
                    lab.world.node_mut(n).clock.jump(by.0 / 1_000_000);
                }
            }
            Action::ClockDrift { node, rate, .. } => {
                let now = lab.world.now();
                for n in nodes(lab, node, over) {
                    lab.world.node_mut(n).clock.set_drift(now, rate.0);
                    done.undo.push(Undo::Drift(n));
                }
            }
            Action::DelayMetadata { node, by, lasting } => self.slow(lab, node, lanes::METADATA, *by, *lasting, over),
            Action::SlowLane { node, lane, by, lasting } => {
                if let Some((_, lane)) = LANES.iter().find(|(name, _)| name == lane) {
                    self.slow(lab, node, *lane, *by, *lasting, over);
                }
            }
            _ => self.operate(lab, stage, action, over, done),
        }
    }

    // --------------------------------------------------------------------------------------------------------- operators

    fn operate(&mut self, lab: &mut Lab, stage: &Stage, action: &Action, over: &BTreeSet<String>, done: &mut Done) {
        let command = match action {
            Action::Elect { on, topic, partition, elect } => {
                return elect_leader(lab, on, topic, *partition, elect, over, done)
            }
            Action::CreateTopic { on, topic, partitions, rf, config, id_of } => Some((
                on,
                Command::CreateTopics(vec![NewTopic {
                    name: topic.as_str().into(),
                    mirror_id: id_of.as_ref().and_then(|cluster| topic_id(lab, cluster, topic)),
                    partitions: *partitions,
                    replication_factor: *rf as i16,
                    assignments: Vec::new(),
                    configs: config.iter().map(|(k, v)| (k.as_str().into(), v.as_str().into())).collect(),
                }]),
            )),
            Action::DeleteTopic { on, topic } => Some((on, Command::DeleteTopics(vec![topic.as_str().into()]))),
            Action::AddPartitions { on, topic, partitions } => {
                Some((on, Command::CreatePartitions(vec![(topic.as_str().into(), *partitions)])))
            }
            Action::SetConfig { on, target, config, remove } => {
                Some((on, Command::AlterConfigs(vec![(resource(target), entries(config, remove))])))
            }
            Action::DeleteRecords { on, topic, partition, before } => {
                let numbers = partition.map_or_else(|| 0..partitions_of(lab, on, topic), |p| p..p + 1);
                let parts = numbers.map(|p| ((topic.as_str().into(), p), Offset(*before as i64))).collect();
                Some((on, Command::DeleteRecords(parts)))
            }
            Action::BumpEpoch { on, topic, partition, min } => {
                let numbers = partition.map_or_else(|| 0..partitions_of(lab, on, topic), |p| p..p + 1);
                let least = LeaderEpoch(i32::try_from(*min).unwrap_or(i32::MAX));
                let parts = numbers.map(|p| ((topic.as_str().into(), p), least)).collect();
                Some((on, Command::BumpLeaderEpochs(parts)))
            }
            Action::SetClusterId { on, id } => {
                set_cluster_id(lab, on, id);
                None
            }
            Action::CreateMirror { mirror } => {
                done.orders.extend(lab.create_mirror(stage, mirror, !self.once));
                None
            }
            Action::StartMirror { mirror, topics } => {
                done.orders.extend(lab.start_mirror(stage, mirror, topics, !self.once));
                None
            }
            Action::StopMirror { .. }
            | Action::PauseMirror { .. }
            | Action::ResumeMirror { .. }
            | Action::RecoverMirror { .. }
            | Action::DeleteMirror { .. } => {
                if let Some((mirror, order)) = mirror_order(action) {
                    done.orders.extend(lab.mirror_order(mirror, order, !self.once));
                }
                None
            }
            Action::Cli { on, args, files, .. } => {
                call_tool(lab, on, args, files, done);
                None
            }
            Action::Produce { producer, records, .. } => {
                for n in nodes(lab, &NodeRef::Client(producer.clone()), over) {
                    lab.world.call(n, |process, now, cx| {
                        if let Process::Producer(p) = process {
                            p.produce_now(*records, now, cx);
                        }
                    });
                }
                None
            }
            Action::StopClient { client } => {
                for n in nodes(lab, &NodeRef::Client(client.clone()), over) {
                    lab.world.kill(n);
                }
                None
            }
            Action::StartClient { client } => {
                nodes(lab, &NodeRef::Client(client.clone()), over).into_iter().for_each(|n| lab.world.start(n));
                None
            }
            _ => None,
        };
        if let Some((on, command)) = command {
            if let Some(cluster) = lab.setup.cluster(on) {
                done.orders.push(lab.give(cluster, command, !self.once));
            }
        }
    }

    // ------------------------------------------------------------------------------------------------------------ pieces

    fn down(
        &mut self,
        lab: &mut Lab,
        node: &NodeRef,
        over: &BTreeSet<String>,
        done: &mut Done,
        how: impl Fn(&mut Lab, NodeId),
    ) {
        let struck = nodes(lab, node, over);
        let names: Vec<String> = struck.iter().map(|n| lab.world.node(*n).name.to_string()).collect();
        if !names.is_empty() && !done.text.contains(&names[0]) {
            done.text = format!("{} ({})", done.text, names.join(", "));
        }
        for n in struck {
            how(lab, n);
            done.undo.push(Undo::Start(n));
        }
    }

    fn slow(
        &mut self,
        lab: &mut Lab,
        node: &NodeRef,
        lane: Lane,
        by: Time,
        lasting: Option<Time>,
        over: &BTreeSet<String>,
    ) {
        let until = lasting.map_or(Nanos(u64::MAX), |t| lab.world.now() + t.nanos());
        for n in nodes(lab, node, over) {
            lab.world.slow_lane(n, lane, by.nanos(), until);
        }
    }

    fn net(&mut self, lab: &mut Lab, fault: Fault) -> Undo {
        self.net_faults += 1;
        let id = FaultId(self.net_faults);
        let now = lab.world.now();
        lab.world.net_mut().set_fault(now, id, fault);
        Undo::Net(id)
    }

    /// One rule for each pair of ends that the places name.
    fn perturb(
        &mut self,
        lab: &mut Lab,
        rule: Perturb,
        from: Option<&Place>,
        to: Option<&Place>,
        over: &BTreeSet<String>,
        done: &mut Done,
    ) {
        let ends = |place: Option<&Place>| place.map_or_else(|| vec![Who::Anyone], |place| who(lab, place, over));
        let (senders, receivers) = (ends(from), ends(to));
        for from in senders {
            for to in &receivers {
                let rule = Perturb { from, to: *to, ..rule.clone() };
                done.undo.push(self.net(lab, Fault::Perturb(rule)));
            }
        }
    }

    fn cuts(
        &mut self,
        lab: &Lab,
        between: Option<&[Place; 2]>,
        node: Option<&NodeRef>,
        role: Option<Role>,
        one_way: bool,
        over: &BTreeSet<String>,
    ) -> Vec<Cut> {
        let only = match role {
            None => Only::Everything,
            Some(Role::Controller) => Only::Controllers,
            Some(Role::Replication) => Only::InterBroker,
            Some(Role::Mirror) => Only::InterCluster,
            Some(Role::Client) => Only::Clients,
        };
        let one_sided = |from: Who, to: Who| Cut { from, to, both_ways: !one_way, only };
        match (between, node) {
            (Some([a, b]), _) => {
                let pairs = |place: &Place| who(lab, place, over);
                pairs(a)
                    .into_iter()
                    .flat_map(|x| pairs(b).into_iter().map(move |y| (x, y)))
                    .map(|(x, y)| one_sided(x, y))
                    .collect()
            }
            // One way, a node hears nothing but is heard.
            (None, Some(node)) => {
                nodes(lab, node, over).into_iter().map(|n| one_sided(Who::Anyone, Who::Node(n))).collect()
            }
            (None, None) => vec![one_sided(Who::Anyone, Who::Anyone)],
        }
    }

    fn degrade(
        &mut self,
        lab: &mut Lab,
        stage: &Stage,
        link: &str,
        toward: Option<&str>,
        done: &mut Done,
        how: impl Fn(&mut Degrade, Nanos),
    ) {
        let Some(plan) = stage.links.get(link) else { return };
        for from in 0..2 {
            if toward.is_some_and(|to| to != plan.between[1 - from]) {
                continue;
            }
            let (Some(a), Some(b)) = (lab.sites.get(&plan.between[from]), lab.sites.get(&plan.between[1 - from]))
            else {
                continue;
            };
            let mut degrade = Degrade {
                from: *a,
                to: *b,
                extra_latency: Nanos::ZERO,
                jitter: None,
                loss: net::Chance::NEVER,
                bits_per_second: None,
            };
            how(&mut degrade, plan.direction(from).latency.nanos());
            done.undo.push(self.net(lab, Fault::Degrade(degrade)));
        }
    }
}

/// Ends a fault.
pub fn undo(lab: &mut Lab, undo: &Undo) {
    let now = lab.world.now();
    match undo {
        Undo::Start(node) => {
            lab.world.spare(*node);
            lab.world.start(*node);
        }
        Undo::Resume(node) => lab.world.resume(*node),
        Undo::Net(id) => lab.world.net_mut().clear_fault(now, *id),
        Undo::Room(node) => {
            lab.world.node_mut(*node).disk.set_capacity(u64::MAX);
            start_again(lab, *node);
        }
        Undo::Errors(node) => {
            lab.world.node_mut(*node).disk.lift_errors();
            start_again(lab, *node);
        }
        Undo::Flushes(node) => lab.world.release_disk(*node),
        Undo::Speed(node) => lab.world.node_mut(*node).disk.set_model(DiskModel::default()),
        Undo::Drift(node) => lab.world.node_mut(*node).clock.set_drift(now, 0),
    }
}

/// A process that ended because its disk failed is started when the disk works again.
fn start_again(lab: &mut Lab, node: NodeId) {
    let n = lab.world.node(node);
    if n.condition == Condition::Down && n.last_stop == LastStop::DiskFailed {
        lab.world.start(node);
    }
}

/// Asks a broker for a controlled shutdown, and a controller to resign; clients are killed.
pub fn stop(lab: &mut Lab, node: NodeId) {
    let stopped = lab.world.node(node);
    if stopped.broker().is_some() {
        lab.world.stop(node, Input::Timer(lanes::STOP));
    } else if stopped.controller().is_some() {
        lab.world.stop(node, Input::Timer(mirrorlab_model::controller::shutdown::STOP));
    } else {
        lab.world.kill(node);
    }
}

fn nodes(lab: &Lab, node: &NodeRef, over: &BTreeSet<String>) -> Vec<NodeId> {
    Eye { world: &lab.world, setup: &lab.setup, done: over }.nodes(node)
}

fn who(lab: &Lab, place: &Place, over: &BTreeSet<String>) -> Vec<Who> {
    match place {
        Place::Cluster(name) => lab.setup.cluster(name).map(|c| Who::Cluster(u16::from(c))).into_iter().collect(),
        Place::Site(name) => vec![Who::Site(lab.sites.get(name).copied().unwrap_or(SiteIx(u16::MAX)))],
        Place::Node(node) => nodes(lab, node, over).into_iter().map(Who::Node).collect(),
    }
}

/// The directory of a partition's replica at a node.
fn dir_of(lab: &Lab, node: NodeId, topic: &str, partition: u32) -> Option<DirName> {
    let image = lab.setup.image(&lab.world, lab.world.node(node).cluster?)?;
    Some(DirName::Partition { topic: image.topic(image.topic_by_name(topic)?)?.id, partition })
}

fn rule(kind: &str, probability: crate::units::Chance, extra: Time, duplicate: bool) -> Perturb {
    let body = (kind != "any").then(|| kind.into());
    let (chance, extra) = (chance(probability), extra.nanos());
    Perturb { from: Who::Anyone, to: Who::Anyone, body, chance, extra, duplicate }
}

/// All processes of a cluster take another cluster id on: those that run, and those that start later.
fn set_cluster_id(lab: &mut Lab, on: &str, id: &str) {
    let Some(cluster) = lab.setup.cluster(on).and_then(|c| lab.setup.clusters.get(usize::from(c))).cloned() else {
        return;
    };
    let id: Arc<str> = id.into();
    for node in cluster.controllers.iter().chain(&cluster.brokers) {
        let node = lab.world.node_mut(*node);
        match &mut node.program {
            Program::Broker(config) => Arc::make_mut(config).cluster_id = id.clone(),
            Program::Controller(config) => Arc::make_mut(config).cluster_id = id.clone(),
            _ => {}
        }
        match &mut node.process {
            Some(Process::Broker(broker)) => broker.set_cluster_id(id.clone()),
            Some(Process::Controller(controller)) => controller.set_cluster_id(id.clone()),
            _ => {}
        }
    }
}

fn ops(call: DiskCall) -> Ops {
    match call {
        DiskCall::Any => Ops::ALL,
        DiskCall::Read => Ops::READ,
        DiskCall::Write => Ops::WRITE,
        DiskCall::Flush => Ops::FLUSH,
    }
}

fn topic_id(lab: &Lab, on: &str, topic: &str) -> Option<TopicId> {
    let image = lab.setup.cluster(on).and_then(|c| lab.setup.image(&lab.world, c))?;
    Some(image.topic(image.topic_by_name(topic)?)?.id)
}

fn partitions_of(lab: &Lab, on: &str, topic: &str) -> u32 {
    let image = lab.setup.cluster(on).and_then(|c| lab.setup.image(&lab.world, c));
    let topic = image.and_then(|i| i.topic(i.topic_by_name(topic)?));
    topic.map_or(0, |t| t.partitions.len() as u32)
}

fn resource(target: &ConfigTarget) -> ConfigResource {
    match target {
        ConfigTarget::Topic(name) => ConfigResource::Topic(name.as_str().into()),
        ConfigTarget::Mirror(name) => ConfigResource::ClusterMirror(name.as_str().into()),
        ConfigTarget::Node(NodeRef::Broker(_, n)) => ConfigResource::Broker(Some(BrokerId(*n as i32))),
        ConfigTarget::Node(_) => ConfigResource::Broker(None),
    }
}

fn entries(config: &Config, remove: &[String]) -> Vec<ConfigEntry> {
    let set = config.iter().map(|(k, v)| (Arc::from(k.as_str()), Some(Arc::from(v.as_str()))));
    set.chain(remove.iter().map(|k| (Arc::from(k.as_str()), None))).collect()
}

/// Moves leadership. Kafka has no order for "this broker": its operators reorder the replicas and ask for the preferred one;
/// here the controller is asked directly, by the same rule (an in-sync replica only).
fn elect_leader(
    lab: &mut Lab,
    on: &str,
    topic: &str,
    partition: Option<u32>,
    elect: &Elect,
    over: &BTreeSet<String>,
    done: &mut Done,
) {
    let Some(cluster) = lab.setup.cluster(on) else { return };
    let numbers: Vec<u32> = match partition {
        Some(p) => vec![p],
        None => (0..partitions_of(lab, on, topic)).collect(),
    };
    let named = |numbers: &[u32]| numbers.iter().map(|p| (Arc::from(topic), *p)).collect();
    match elect {
        Elect::Preferred(_) => {
            let command = Command::ElectLeaders { unclean: false, partitions: named(&numbers) };
            done.orders.push(lab.order(cluster, command));
        }
        Elect::Unclean(_) => {
            let command = Command::ElectLeaders { unclean: true, partitions: named(&numbers) };
            done.orders.push(lab.order(cluster, command));
        }
        Elect::To(node) => {
            let wanted = nodes(lab, node, over).first().copied();
            move_leaders(lab, cluster, topic, &numbers, |candidates, _| {
                candidates.iter().copied().find(|(_, n)| Some(*n) == wanted)
            });
        }
        Elect::Pick(n) => {
            move_leaders(lab, cluster, topic, &numbers, |candidates, _| {
                candidates.get(*n as usize % candidates.len().max(1)).copied()
            });
        }
    }
}

type Candidates = Vec<(BrokerId, NodeId)>;

fn move_leaders(
    lab: &mut Lab,
    cluster: u8,
    topic: &str,
    numbers: &[u32],
    pick: impl Fn(&Candidates, u32) -> Option<(BrokerId, NodeId)>,
) {
    let Some(image) = lab.setup.image(&lab.world, cluster) else { return };
    let Some(partitions) = image.topic_by_name(topic).and_then(|t| image.topic(t)).map(|t| t.partitions.clone()) else {
        return;
    };
    let mut moves = Vec::new();
    for number in numbers {
        let Some(partition) = partitions.get(*number as usize) else { continue };
        let Some(state) = image.partition(*partition).map(|p| &p.state) else { continue };
        let candidates: Candidates = state
            .isr
            .iter()
            .filter(|b| **b != state.leader)
            .filter_map(|b| Some((*b, lab.setup.broker_node(cluster, *b)?)))
            .collect();
        if let Some((broker, _)) = pick(&candidates, *number) {
            moves.push((*partition, broker));
        }
    }
    let Some(controller) = lab.setup.active(&lab.world, cluster) else { return };
    lab.world.call(controller, |process, now, cx| {
        if let Process::Controller(controller) = process {
            controller.move_leaders(&moves, now, cx);
        }
    });
}

/// What a step orders of a mirror, and which mirror.
fn mirror_order(action: &Action) -> Option<(&String, MirrorOrder)> {
    let which = |topics: &[String]| {
        let words: Vec<Arc<str>> = topics.iter().map(|t| t.as_str().into()).collect();
        Which::of(&words, false)
    };
    Some(match action {
        Action::StopMirror { mirror, topics } => (mirror, MirrorOrder::Stop(mirror.as_str().into(), which(topics))),
        Action::PauseMirror { mirror, topics } => (mirror, MirrorOrder::Pause(mirror.as_str().into(), which(topics))),
        Action::ResumeMirror { mirror, topics } => (mirror, MirrorOrder::Resume(mirror.as_str().into(), which(topics))),
        // The destination's side wins by being stopped (decision 39).
        Action::RecoverMirror { mirror, topics, keep: Some(Keep::Destination) } => {
            (mirror, MirrorOrder::Stop(mirror.as_str().into(), which(topics)))
        }
        Action::RecoverMirror { mirror, topics, keep } => {
            let (which, keep_source) = (which(topics), *keep == Some(Keep::Source));
            (mirror, MirrorOrder::Recover { mirror: mirror.as_str().into(), which, keep_source })
        }
        Action::DeleteMirror { mirror } => (mirror, MirrorOrder::Delete(mirror.as_str().into())),
        _ => return None,
    })
}

/// Calls the operators' tool: what breaks its rules sends nothing.
fn call_tool(lab: &mut Lab, on: &str, args: &str, files: &BTreeMap<String, String>, done: &mut Done) {
    let words: Vec<&str> = args.split_whitespace().collect();
    let call = parse(&words, Some(on)).and_then(|call| {
        let command = call.command(|name| files.get(name).map(|text| with_nodes(lab, text)))?;
        Ok((call, command))
    });
    match (call, lab.setup.cluster(on)) {
        (Ok((call, command)), Some(cluster)) => {
            done.orders.push(lab.give(cluster, command, false));
            done.call = Some(Ok(call));
        }
        (Ok(_), None) => {}
        (Err(message), _) => done.call = Some(Err(message)),
    }
}

/// A file of settings in which names of clusters in `bootstrap.servers` stand for their brokers.
fn with_nodes(lab: &Lab, text: &str) -> String {
    let nodes = |name: &str| {
        let cluster = lab.setup.cluster(name.trim()).and_then(|at| lab.setup.clusters.get(usize::from(at)));
        let list = |brokers: &[NodeId]| brokers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        cluster.map_or_else(|| name.trim().to_owned(), |cluster| list(&cluster.brokers))
    };
    let line = |line: &str| match line.split_once('=') {
        Some((key, value)) if key.trim() == "bootstrap.servers" => format!("bootstrap.servers={}", nodes(value)),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn target_text(action: &Action) -> String {
    match action {
        Action::PowerLoss { node, .. }
        | Action::Kill { node, .. }
        | Action::Shutdown { node, .. }
        | Action::Wipe { node, .. }
        | Action::Start { node }
        | Action::Restart { node }
        | Action::Pause { node, .. }
        | Action::Resume { node }
        | Action::DiskFull { node, .. }
        | Action::DiskError { node, .. }
        | Action::DiskStall { node, .. }
        | Action::DiskSlow { node, .. }
        | Action::BitRot { node, .. }
        | Action::ClockJump { node, .. }
        | Action::ClockDrift { node, .. }
        | Action::DelayMetadata { node, .. }
        | Action::SlowLane { node, .. } => format!(" {node}"),
        Action::Partition { between: Some([a, b]), one_way, .. } => {
            format!(" {a} {} {b}", if *one_way { "->" } else { "|" })
        }
        Action::Partition { node: Some(node), .. } => format!(" {node}"),
        Action::Latency { link, latency, .. } => format!(" {link} {latency}"),
        Action::Loss { link, .. } => format!(" {link}"),
        Action::Bandwidth { link, bandwidth, .. } => format!(" {link} {bandwidth}"),
        Action::Elect { on, topic, partition, .. } => {
            format!(" {on}/{topic}{}", partition.map_or(String::new(), |p| format!("-{p}")))
        }
        Action::CreateTopic { on, topic, .. }
        | Action::DeleteTopic { on, topic }
        | Action::AddPartitions { on, topic, .. }
        | Action::DeleteRecords { on, topic, .. }
        | Action::BumpEpoch { on, topic, .. } => {
            format!(" {on}/{topic}")
        }
        Action::ResetConnections { node: Some(node), .. } => format!(" {node}"),
        Action::ResetConnections { link: Some(link), .. } => format!(" {link}"),
        Action::SetClusterId { on, id } => format!(" {on} {id}"),
        Action::CreateMirror { mirror } | Action::DeleteMirror { mirror } => format!(" {mirror}"),
        Action::StartMirror { mirror, topics }
        | Action::StopMirror { mirror, topics }
        | Action::PauseMirror { mirror, topics }
        | Action::ResumeMirror { mirror, topics }
        | Action::RecoverMirror { mirror, topics, .. } => {
            let topics = if topics.is_empty() { String::new() } else { format!(" [{}]", topics.join(", ")) };
            format!(" {mirror}{topics}")
        }
        Action::Cli { on, args, .. } => format!(" on {on}: {args}"),
        Action::Duplicate { kind, .. } | Action::DelayMessages { kind, .. } => format!(" {kind}"),
        _ => String::new(),
    }
}
