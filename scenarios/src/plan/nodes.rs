//! The processes of a plan, in a fixed order: what a world is built from.

use super::Plan;
use crate::format::types::Topic;
use crate::units::Time;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeKind {
    /// Controller, counted from 1.
    Controller(u32),
    /// Broker, counted from 1.
    Broker(u32),
}

/// A server process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanNode {
    /// `east/broker-1`.
    pub name: String,
    /// Its cluster.
    pub cluster: String,
    /// What it is.
    pub kind: NodeKind,
    /// Where it stands.
    pub site: String,
}

/// What a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientKind {
    /// A producer.
    Producer,
    /// A consumer.
    Consumer,
}

/// A client process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanClient {
    /// `shop`, or `shop-0` of several alike.
    pub name: String,
    /// The name of its table.
    pub table: String,
    /// Which of several alike, from 0.
    pub index: u32,
    /// What it is.
    pub kind: ClientKind,
    /// Where it runs.
    pub site: String,
}

impl Plan {
    /// All controllers and brokers: clusters by name, controllers first.
    #[must_use]
    pub fn nodes(&self) -> Vec<PlanNode> {
        let mut nodes = Vec::new();
        for (name, cluster) in &self.stage.clusters {
            let node = |process: String, kind| PlanNode {
                name: format!("{name}/{process}"),
                cluster: name.clone(),
                kind,
                site: cluster.site.clone(),
            };
            nodes.extend((1..=cluster.controllers).map(|n| node(format!("controller-{n}"), NodeKind::Controller(n))));
            nodes.extend((1..=cluster.brokers).map(|n| node(format!("broker-{n}"), NodeKind::Broker(n))));
        }
        nodes
    }

    /// All producers, then all consumers, by name.
    #[must_use]
    pub fn clients(&self) -> Vec<PlanClient> {
        let producers = self.stage.producers.iter().map(|(name, p)| (name, p.count, &p.site, ClientKind::Producer));
        let consumers = self.stage.consumers.iter().map(|(name, c)| (name, c.count, &c.site, ClientKind::Consumer));
        let mut clients = Vec::new();
        for (table, count, site, kind) in producers.chain(consumers) {
            for index in 0..count {
                let name = if count == 1 { table.clone() } else { format!("{table}-{index}") };
                clients.push(PlanClient { name, table: table.clone(), index, kind, site: site.clone() });
            }
        }
        clients
    }

    /// The topic tables of a cluster, by name.
    pub fn topics_on<'a>(&'a self, cluster: &'a str) -> impl Iterator<Item = &'a Topic> + 'a {
        self.stage.topics.values().filter(move |topic| topic.on == cluster)
    }

    /// The topics that a name stands for on a cluster: itself, or the members of a family.
    #[must_use]
    pub fn expand_topic(&self, cluster: &str, name: &str) -> Vec<String> {
        let family = self.stage.topics.values().find(|t| t.name == name && t.count.is_some() && t.on == cluster);
        // A mirrored family has the members that its source has.
        let family = family.or_else(|| {
            let sources = self.stage.mirrors.values().filter(|m| m.on == cluster).map(|m| &m.source);
            let mut families = sources.flat_map(|source| self.topics_on(source));
            families.find(|t| t.name == name && t.count.is_some())
        });
        family.map_or_else(|| vec![name.to_owned()], |family| family.names().collect())
    }

    /// The longest that the run can take, boot to converge.
    #[must_use]
    pub fn duration(&self) -> Time {
        let phases = &self.stage.phases;
        phases.boot.plus(phases.safety).plus(phases.converge)
    }
}
