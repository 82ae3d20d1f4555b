//! What strikes can hit.

use crate::format::chaos::Chaos;
use crate::format::types::Stage;
use crate::format::Vocabulary;

/// All of it, by name.
pub(super) struct Targets {
    pub brokers: Vec<(String, u32)>,
    /// Of quorums of three and more.
    pub controllers: Vec<(String, u32)>,
    pub links: Vec<(String, [String; 2])>,
    pub topics: Vec<String>,
    /// Topics that no producer writes to.
    pub idle_topics: Vec<String>,
    /// Topics that a mirror copies from where they are, by mirror.
    pub mirrored: Vec<(String, String)>,
    pub clients: Vec<String>,
    pub mirrors: Vec<String>,
    /// Mirrors that would run against one that stands.
    pub reverses: Vec<String>,
    pub lanes: Vec<String>,
    /// Kinds of messages that answer.
    pub answers: Vec<String>,
}

impl Targets {
    pub fn of(chaos: &Chaos, stage: &Stage, vocabulary: &Vocabulary) -> Self {
        let on = |cluster: &String| chaos.on.is_empty() || chaos.on.contains(cluster);
        let brokers = stage.clusters.iter().filter(|(name, _)| on(name));
        let mirrors = || stage.mirrors.iter().filter(|(_, m)| on(&m.on) && !m.later);
        let quorums = stage.clusters.iter().filter(|(name, c)| on(name) && c.controllers > 2);
        let topics = || stage.topics.iter().filter(|(_, t)| on(&t.on));
        let is_written = |table: &str, on: &str| {
            let name = &stage.topics[table].name;
            stage.producers.values().any(|p| p.on == on && p.topics.contains(name))
        };
        let copies = |mirror: &crate::format::types::Mirror, name: &String| mirror.topics.contains(name);
        let mirrored = mirrors().flat_map(|(mirror, m)| {
            let here = stage.topics.iter().filter(move |(_, t)| t.on == m.source && t.count.is_none());
            here.filter(move |(_, t)| copies(m, &t.name)).map(move |(table, _)| (mirror.clone(), table.clone()))
        });
        let reverses = stage
            .mirrors
            .iter()
            .filter(|(_, back)| back.later && mirrors().any(|(_, m)| (&m.on, &m.source) == (&back.source, &back.on)));
        Self {
            controllers: quorums.flat_map(|(name, c)| (1..=c.controllers).map(move |n| (name.clone(), n))).collect(),
            brokers: brokers.flat_map(|(name, c)| (1..=c.brokers).map(move |n| (name.clone(), n))).collect(),
            links: stage.links.iter().map(|(name, l)| (name.clone(), l.between.clone())).collect(),
            topics: topics().map(|(table, _)| table.clone()).collect(),
            idle_topics: topics()
                .filter(|(table, t)| !is_written(table, &t.on))
                .map(|(table, _)| table.clone())
                .collect(),
            mirrored: mirrored.collect(),
            clients: stage.producers.keys().chain(stage.consumers.keys()).cloned().collect(),
            mirrors: mirrors().map(|(name, _)| name.clone()).collect(),
            reverses: reverses.map(|(name, _)| name.clone()).collect(),
            // Strikes hit brokers, which have no controller lane.
            lanes: vocabulary.lanes.iter().filter(|lane| *lane != "controller").map(|lane| lane.to_string()).collect(),
            answers: vocabulary.messages.iter().filter(|m| m.ends_with("Response")).map(|m| m.to_string()).collect(),
        }
    }
}
