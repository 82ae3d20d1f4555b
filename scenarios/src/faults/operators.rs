//! What operators do: orders to clusters and mirrors, calls of their tool, and what becomes of a cluster behind its address.

use super::elections::elect_leader;
use super::{nodes, Done, Striker};
use crate::format::action::{Action, ConfigTarget, Keep, NodeRef};
use crate::format::types::{Config, Stage};
use crate::lab::{Lab, Manner};
use mirrorlab_model::admin::command::parse;
use mirrorlab_model::client::commands::Command;
use mirrorlab_model::client::mirror_orders::{MirrorOrder, Which};
use mirrorlab_model::ids::{BrokerId, LeaderEpoch, NodeId, Offset, TopicId};
use mirrorlab_model::wire::messages::{ConfigEntry, ConfigResource, NewTopic};
use mirrorlab_sim::node::{Process, Program};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Striker {
    pub(super) fn operate(
        &mut self,
        lab: &mut Lab,
        stage: &Stage,
        action: &Action,
        over: &BTreeSet<String>,
        done: &mut Done,
    ) -> bool {
        let command = match action {
            Action::Elect { on, topic, partition, elect } => {
                elect_leader(lab, on, topic, *partition, elect, over, done);
                None
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
            Action::SetClusterId { on, node, id } => {
                let own = node.as_ref().map_or_else(|| all_of(lab, on), |node| nodes(lab, node, over));
                set_cluster_id(lab, &own, id);
                None
            }
            Action::CreateMirror { mirror } => {
                done.orders.extend(lab.create_mirror(stage, mirror, self.manner));
                None
            }
            Action::StartMirror { mirror, topics } => {
                done.orders.extend(lab.start_mirror(stage, mirror, topics, self.manner));
                None
            }
            Action::StopMirror { .. }
            | Action::PauseMirror { .. }
            | Action::ResumeMirror { .. }
            | Action::RecoverMirror { .. }
            | Action::DeleteMirror { .. } => {
                if let Some((mirror, order)) = mirror_order(action) {
                    done.orders.extend(lab.mirror_order(mirror, order, self.manner));
                }
                None
            }
            Action::Cli { on, args, files, .. } => {
                call_tool(lab, on, (args, files), self.manner, done);
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
            _ => return false,
        };
        if let Some((on, command)) = command {
            if let Some(cluster) = lab.setup.cluster(on) {
                done.orders.push(lab.give(cluster, command, self.manner));
            }
        }
        true
    }
}

/// Controllers and brokers of a cluster.
fn all_of(lab: &Lab, on: &str) -> Vec<NodeId> {
    let cluster = lab.setup.cluster(on).and_then(|c| lab.setup.clusters.get(usize::from(c)));
    cluster.map_or_else(Vec::new, |c| c.controllers.iter().chain(&c.brokers).copied().collect())
}

/// Processes take another cluster id on: those that run, and those that start later.
fn set_cluster_id(lab: &mut Lab, nodes: &[NodeId], id: &str) {
    let id: Arc<str> = id.into();
    for node in nodes {
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

fn topic_id(lab: &Lab, on: &str, topic: &str) -> Option<TopicId> {
    let image = lab.setup.cluster(on).and_then(|c| lab.setup.image(&lab.world, c))?;
    Some(image.topic(image.topic_by_name(topic)?)?.id)
}

pub(super) fn partitions_of(lab: &Lab, on: &str, topic: &str) -> u32 {
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
fn call_tool(
    lab: &mut Lab,
    on: &str,
    (args, files): (&str, &BTreeMap<String, String>),
    manner: Manner,
    done: &mut Done,
) {
    let words: Vec<&str> = args.split_whitespace().collect();
    let call = parse(&words, Some(on)).and_then(|call| {
        let command = call.command(|name| files.get(name).map(|text| with_nodes(lab, text)))?;
        Ok((call, command))
    });
    match (call, lab.setup.cluster(on)) {
        (Ok((call, command)), Some(cluster)) => {
            done.orders.push(lab.give(cluster, command, Manner { insist: false, ..manner }));
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
