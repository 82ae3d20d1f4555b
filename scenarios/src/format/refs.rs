//! Resolves what a scenario refers to: clusters, sites, nodes, topics, mirrors, clients. A reference to what does not exist
//! is refused with the nearest thing that does.

use super::action::{NodeRef, Place};
use super::diagnostics::suggest;
use super::table::{At, Cx, Table};
use super::types::Stage;
use crate::units::clip;
use mirrorlab_model::coordinator::routing::{STATE_TOPIC, TRANSACTION_TOPIC};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a topic on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TopicFact {
    pub(crate) partitions: u32,
    pub(crate) rf: u32,
    /// `Some(n)`: the name is that of a family of n topics.
    pub(crate) family: Option<u32>,
}

/// A scenario under construction: what was read so far, and what it may refer to.
pub(crate) struct Build<'v> {
    pub(crate) cx: Cx<'v>,
    pub(crate) stage: Stage,
    /// By cluster and name; a family by its name without number.
    pub(crate) topics: BTreeMap<(String, String), TopicFact>,
    /// Names of steps, for `done(NAME)` and `heal`.
    pub(crate) steps: BTreeSet<String>,
    /// Mirrors that a step deletes, and another may create again.
    pub(crate) deleted: BTreeSet<String>,
    /// Producers that a `produce` step names.
    pub(crate) driven: BTreeSet<String>,
    /// Operators of each cluster, as many as steps name.
    pub(crate) operators: u32,
}

impl Build<'_> {
    /// A cluster by name.
    pub(crate) fn cluster(&mut self, at: &At<String>) -> Option<String> {
        if self.stage.clusters.contains_key(&at.value) {
            return Some(at.value.clone());
        }
        let valid = self.stage.clusters.keys().map(String::as_str);
        self.cx.unknown(at, "unknown-cluster", ("cluster", "clusters"), valid);
        None
    }

    /// The cluster that a key names; without the key the only one.
    pub(crate) fn on(&mut self, t: &mut Table<'_, '_>, key: &'static str) -> Option<String> {
        if let Some(at) = t.text(&mut self.cx, key) {
            return self.cluster(&at);
        }
        if t.has(key) {
            return None;
        }
        let mut names = self.stage.clusters.keys();
        match (names.next(), names.next()) {
            (Some(only), None) => Some(only.clone()),
            (first, _) => {
                let example = format!("\"{}\"", first.map_or("east", String::as_str));
                t.missing(&mut self.cx, key, &example);
                None
            }
        }
    }

    /// All sites.
    pub(crate) fn sites(&self) -> BTreeSet<&str> {
        self.stage.clusters.values().map(|c| &*c.site).collect()
    }

    /// A site by name.
    pub(crate) fn site(&mut self, at: &At<String>) -> Option<String> {
        let sites = self.sites();
        if sites.contains(&*at.value) {
            return Some(at.value.clone());
        }
        let help = suggest(&at.value, "sites", sites);
        let message = format!("there is no site `{}`: no cluster stands there", clip(&at.value, 60));
        self.cx.error(&at.span, "unknown-site", message, help);
        None
    }

    /// A link by name.
    pub(crate) fn link(&mut self, at: &At<String>) -> Option<String> {
        if self.stage.links.contains_key(&at.value) {
            return Some(at.value.clone());
        }
        let valid = self.stage.links.keys().map(String::as_str);
        self.cx.unknown(at, "unknown-link", ("link", "links"), valid);
        None
    }

    /// A mirror by name.
    pub(crate) fn mirror(&mut self, at: &At<String>) -> Option<String> {
        if self.stage.mirrors.contains_key(&at.value) {
            return Some(at.value.clone());
        }
        let valid = self.stage.mirrors.keys().map(String::as_str);
        self.cx.unknown(at, "unknown-mirror", ("mirror", "mirrors"), valid);
        None
    }

    /// A producer by name.
    pub(crate) fn producer(&mut self, at: &At<String>) -> Option<String> {
        if self.stage.producers.contains_key(&at.value) {
            return Some(at.value.clone());
        }
        let valid = self.stage.producers.keys().map(String::as_str);
        self.cx.unknown(at, "unknown-client", ("producer", "producers"), valid);
        None
    }

    /// A consumer by name.
    pub(crate) fn consumer(&mut self, at: &At<String>) -> Option<String> {
        if self.stage.consumers.contains_key(&at.value) {
            return Some(at.value.clone());
        }
        let valid = self.stage.consumers.keys().map(String::as_str);
        self.cx.unknown(at, "unknown-client", ("consumer", "consumers"), valid);
        None
    }

    /// A producer or consumer by name.
    pub(crate) fn client(&mut self, at: &At<String>) -> Option<String> {
        let stage = &self.stage;
        if stage.producers.contains_key(&at.value) || stage.consumers.contains_key(&at.value) {
            return Some(at.value.clone());
        }
        let valid = stage.producers.keys().chain(stage.consumers.keys()).map(String::as_str);
        self.cx.unknown(at, "unknown-client", ("producer or consumer", "clients"), valid);
        None
    }

    /// A node: see [`NodeRef`].
    pub(crate) fn node(&mut self, at: &At<String>) -> Option<NodeRef> {
        let inside =
            |prefix: &str| at.value.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(')')).map(str::to_owned);
        if let Some(inner) = inside("leader(") {
            return self.leader_node(at, &inner);
        }
        if let Some(inner) = inside("active(") {
            return self.cluster(&At { value: inner, span: at.span.clone() }).map(NodeRef::Active);
        }
        if let Some(inner) = inside("coordinator(") {
            return self.mirror(&At { value: inner, span: at.span.clone() }).map(NodeRef::Coordinator);
        }
        let named = at.value.split_once('/').filter(|(owner, _)| !owner.contains('('));
        let Some((owner, process)) = named else {
            let help = "write CLUSTER/broker-N, CLUSTER/controller-1, CLUSTER/*, CLUSTER/controller-*, CLUSTER/operator, clients/NAME, leader(CLUSTER/TOPIC, PARTITION), \
                        active(CLUSTER) or coordinator(MIRROR)";
            let help = match self.stage.clusters.first_key_value() {
                Some((name, _)) => format!("{help}; for example \"{name}/broker-1\""),
                None => help.to_owned(),
            };
            self.cx.error(&at.span, "unknown-node", format!("`{}` is not a node", clip(&at.value, 60)), help);
            return None;
        };
        let (owner, process) = (owner.to_owned(), process.to_owned());
        if owner == "clients" {
            return self.client(&At { value: process, span: at.span.clone() }).map(NodeRef::Client);
        }
        let cluster = self.cluster(&At { value: owner, span: at.span.clone() })?;
        self.process(at, cluster, &process)
    }

    fn process(&mut self, at: &At<String>, cluster: String, process: &str) -> Option<NodeRef> {
        match process {
            "*" | "broker-*" => return Some(NodeRef::Brokers(cluster)),
            "controller-*" => return Some(NodeRef::Controllers(cluster)),
            "operator" => return Some(NodeRef::Operator(cluster, 1)),
            _ => {}
        }
        let number = |prefix: &str, last: u32| {
            let digits = process.strip_prefix(prefix)?;
            let plain = !digits.starts_with(['0', '+']);
            digits.parse::<u32>().ok().filter(|n| plain && (1..=last).contains(n))
        };
        let (brokers, controllers) = self.stage.clusters.get(&cluster).map_or((0, 0), |c| (c.brokers, c.controllers));
        if let Some(n) = number("operator-", self.operators).filter(|n| *n > 1) {
            return Some(NodeRef::Operator(cluster, n));
        }
        if let Some(n) = number("broker-", brokers) {
            return Some(NodeRef::Broker(cluster, n));
        }
        if let Some(n) = number("controller-", controllers) {
            return Some(NodeRef::Controller(cluster, n));
        }
        let message = format!("there is no node `{}`", clip(&at.value, 60));
        let controller = if controllers == 1 {
            "controller-1".to_owned()
        } else {
            format!("controller-1 to controller-{controllers}")
        };
        let help = format!("cluster `{cluster}` has broker-1 to broker-{brokers}, {controller} and an operator");
        self.cx.error(&at.span, "unknown-node", message, help);
        None
    }

    fn leader_node(&mut self, at: &At<String>, inner: &str) -> Option<NodeRef> {
        let (topic, partition) = inner.split_once(',').unwrap_or((inner, "0"));
        let topic = At { value: topic.trim().to_owned(), span: at.span.clone() };
        let (cluster, topic, fact) = self.topic_somewhere(&topic)?;
        let partition = self.partition_text(&At { value: partition.trim().to_owned(), span: at.span.clone() }, fact)?;
        Some(NodeRef::Leader(cluster, topic, partition))
    }

    /// A cluster, a site or a node.
    pub(crate) fn place(&mut self, at: &At<String>) -> Option<Place> {
        if let Some(site) = at.value.strip_prefix("site:") {
            return self.site(&At { value: site.to_owned(), span: at.span.clone() }).map(Place::Site);
        }
        if at.value.contains(['/', '(']) {
            return self.node(at).map(Place::Node);
        }
        if self.stage.clusters.contains_key(&at.value) {
            return Some(Place::Cluster(at.value.clone()));
        }
        if self.sites().contains(&*at.value) {
            return Some(Place::Site(at.value.clone()));
        }
        let mut valid: Vec<&str> = self.stage.clusters.keys().map(String::as_str).collect();
        valid.extend(self.sites());
        let help = suggest(&at.value, "places", valid);
        let message = format!("there is no cluster, site or node `{}`", clip(&at.value, 60));
        self.cx.error(&at.span, "unknown-place", message, help);
        None
    }

    // ------------------------------------------------------------------------------------------------------------ topics

    /// What is known of a topic on a cluster: declared, created by a step, or mirrored there.
    pub(crate) fn find_topic(&self, cluster: &str, name: &str) -> Option<TopicFact> {
        self.find_topic_within(cluster, name, 4).or_else(|| self.own_topic(cluster, name))
    }

    /// The topics that a destination keeps the states of its mirrors in, and any cluster those of transactions.
    fn own_topic(&self, cluster: &str, name: &str) -> Option<TopicFact> {
        let here = self.stage.clusters.get(cluster)?;
        let prefix = match name {
            STATE_TOPIC if self.stage.mirrors.values().any(|mirror| mirror.on == cluster) => "mirror.state.topic",
            TRANSACTION_TOPIC => "transaction.state.log",
            _ => return None,
        };
        let number =
            |key: &str, default: u32| here.config.get(key).and_then(|text| text.parse().ok()).unwrap_or(default);
        Some(TopicFact {
            partitions: number(&format!("{prefix}.num.partitions"), 50),
            rf: number(&format!("{prefix}.replication.factor"), 3),
            family: None,
        })
    }

    fn find_topic_within(&self, cluster: &str, name: &str, hops: u32) -> Option<TopicFact> {
        if let Some(fact) = self.declared(cluster, name) {
            return Some(fact);
        }
        if hops == 0 {
            return None;
        }
        let rf = self.stage.clusters.get(cluster).map_or(1, |c| c.default_rf);
        for mirror in self.stage.mirrors.values().filter(|m| m.on == cluster && m.source != cluster) {
            if let Some(fact) = self.find_topic_within(&mirror.source, name, hops - 1) {
                let sample = if fact.family.is_some() { format!("{name}-0") } else { name.to_owned() };
                if mirror.topics.iter().any(|pattern| may_match(pattern, name) || may_match(pattern, &sample)) {
                    return Some(TopicFact { rf, ..fact });
                }
            }
        }
        None
    }

    fn declared(&self, cluster: &str, name: &str) -> Option<TopicFact> {
        let key = (cluster.to_owned(), name.to_owned());
        if let Some(fact) = self.topics.get(&key) {
            return Some(*fact);
        }
        let (family, number) = name.rsplit_once('-')?;
        let fact = self.topics.get(&(cluster.to_owned(), family.to_owned()))?;
        let plain = number == "0" || !number.starts_with(['0', '+']);
        number.parse::<u32>().ok().filter(|n| plain && fact.family.is_some_and(|count| *n < count))?;
        Some(TopicFact { family: None, ..*fact })
    }

    /// A topic of a cluster, as its name or its family's.
    pub(crate) fn topic(&mut self, cluster: &str, at: &At<String>) -> Option<TopicFact> {
        let found = self.find_topic(cluster, &at.value);
        if found.is_none() {
            let message = format!("cluster `{cluster}` has no topic `{}`", clip(&at.value, 60));
            let here = self.topics.keys().filter(|(on, _)| on == cluster).map(|(_, name)| name.as_str());
            let mirrored = self
                .stage
                .mirrors
                .values()
                .filter(|m| m.on == cluster)
                .flat_map(|m| m.topics.iter().map(String::as_str));
            let valid: BTreeSet<&str> = here.chain(mirrored).collect();
            let mut help = suggest(&at.value, "topics there", valid);
            if let Some((on, _)) = self.topics.keys().find(|(_, name)| *name == at.value) {
                help = format!("it is on `{on}`; mirror it to `{cluster}`, or name the other cluster");
            }
            self.cx.error(&at.span, "unknown-topic", message, help);
        }
        found
    }

    /// A topic written `CLUSTER/TOPIC`, or `TOPIC` if only one cluster has it.
    pub(crate) fn topic_somewhere(&mut self, at: &At<String>) -> Option<(String, String, TopicFact)> {
        if let Some((cluster, topic)) = at.value.split_once('/') {
            let cluster = self.cluster(&At { value: cluster.to_owned(), span: at.span.clone() })?;
            let topic = At { value: topic.to_owned(), span: at.span.clone() };
            let fact = self.topic(&cluster, &topic)?;
            return Some((cluster, topic.value, fact));
        }
        let on: Vec<(String, TopicFact)> = self
            .stage
            .clusters
            .keys()
            .filter_map(|cluster| self.find_topic(cluster, &at.value).map(|fact| (cluster.clone(), fact)))
            .collect();
        match &on[..] {
            [(cluster, fact)] => Some((cluster.clone(), at.value.clone(), *fact)),
            [] => {
                let valid: BTreeSet<&str> = self.topics.keys().map(|(_, name)| name.as_str()).collect();
                self.cx.unknown(at, "unknown-topic", ("topic", "topics"), valid);
                None
            }
            several => {
                let choices: Vec<String> =
                    several.iter().map(|(cluster, _)| format!("{cluster}/{}", at.value)).collect();
                let message = format!("topic `{}` is on {} clusters", at.value, several.len());
                self.cx.error(&at.span, "ambiguous", message, format!("write `{}`", choices.join("` or `")));
                None
            }
        }
    }

    /// A mirrored topic written `MIRROR/TOPIC`, or `TOPIC` if only one mirror has it: the mirror, the topic, what is known.
    pub(crate) fn mirrored(&mut self, at: &At<String>) -> Option<(String, String, TopicFact)> {
        if let Some((mirror, topic)) = at.value.split_once('/') {
            let mirror = self.mirror(&At { value: mirror.to_owned(), span: at.span.clone() })?;
            let source = self.stage.mirrors.get(&mirror)?.source.clone();
            let topic = At { value: topic.to_owned(), span: at.span.clone() };
            let fact = self.topic(&source, &topic)?;
            return Some((mirror, topic.value, fact));
        }
        let mut found = Vec::new();
        for (name, mirror) in &self.stage.mirrors {
            if !mirror.topics.iter().any(|p| may_match(p, &at.value) || may_match(p, &format!("{}-0", at.value))) {
                continue;
            }
            if let Some(fact) = self.find_topic(&mirror.source, &at.value) {
                found.push((name.clone(), fact));
            }
        }
        match &found[..] {
            [(mirror, fact)] => Some((mirror.clone(), at.value.clone(), *fact)),
            [] => {
                let valid: BTreeSet<&str> =
                    self.stage.mirrors.values().flat_map(|m| m.topics.iter().map(String::as_str)).collect();
                self.cx.unknown(at, "unknown-topic", ("mirrored topic", "mirrored topics"), valid);
                None
            }
            several => {
                let choices: Vec<String> = several.iter().map(|(mirror, _)| format!("{mirror}/{}", at.value)).collect();
                let message = format!("topic `{}` belongs to {} mirrors", at.value, several.len());
                self.cx.error(&at.span, "ambiguous", message, format!("write `{}`", choices.join("` or `")));
                None
            }
        }
    }

    /// A partition number written as text.
    pub(crate) fn partition_text(&mut self, at: &At<String>, fact: TopicFact) -> Option<u32> {
        match at.value.parse::<u32>() {
            Ok(n) if n < fact.partitions && !at.value.starts_with('+') => Some(n),
            _ => {
                let message = format!("there is no partition `{}`", clip(&at.value, 40));
                let help = format!("the topic has partitions 0 to {}", fact.partitions.saturating_sub(1));
                self.cx.error(&at.span, "unknown-partition", message, help);
                None
            }
        }
    }
}

/// Whether a text in `topics` is a plain name (a dot counts as itself then).
pub(crate) fn is_literal(pattern: &str) -> bool {
    pattern.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// Whether a name or pattern may take a topic in. Exact for names and for patterns of literal pieces and `.*`; any other
/// pattern is the mirror's business, and counts as a yes here.
pub(crate) fn may_match(pattern: &str, topic: &str) -> bool {
    if is_literal(pattern) {
        return pattern == topic;
    }
    let pieces: Vec<String> = pattern.split(".*").map(|piece| piece.replace("\\.", "\u{1}")).collect();
    let simple = |piece: &String| piece.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '\u{1}'));
    if !pieces.iter().all(simple) {
        return true;
    }
    let pieces: Vec<String> = pieces.iter().map(|piece| piece.replace('\u{1}', ".")).collect();
    let (first, last) = (&pieces[0], &pieces[pieces.len() - 1]);
    if pieces.len() == 1 {
        return topic == first;
    }
    let Some(mut rest) = topic.strip_prefix(first.as_str()).and_then(|rest| rest.strip_suffix(last.as_str())) else {
        return false;
    };
    for piece in &pieces[1..pieces.len() - 1] {
        match rest.find(piece.as_str()) {
            Some(found) => rest = &rest[found + piece.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::may_match;

    #[test]
    fn names_and_simple_patterns_match_exactly_others_may() {
        assert!(may_match("orders", "orders") && !may_match("orders", "orders-1"));
        assert!(may_match(".*", "anything"));
        assert!(may_match("orders-.*", "orders-7") && !may_match("orders-.*", "orders"));
        assert!(may_match("a.*b.*c", "axbxc") && !may_match("a.*b.*c", "axc"));
        assert!(may_match("a\\.b.*", "a.b1") && !may_match("a\\.b.*", "axb1"));
        assert!(may_match("(orders|bills)", "users"));
        assert!(!may_match("aa.*aa", "aaa"));
    }
}
