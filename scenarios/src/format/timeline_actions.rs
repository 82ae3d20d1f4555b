//! Reads what a step does: the keys that belong to each `do = "…"`.

use super::action::{Action, Answers, ConfigTarget, DiskCall, Elect, Keep, Loses, NodeRef, Place, Role};
use super::refs::{may_match, Build, TopicFact};
use super::table::{At, Table};
use super::types::Mirror;
use super::vocabulary::ConfigOf;
use crate::units::{clip, Chance, Drift, SignedTime, Size, Time};
use toml::Spanned;

impl Build<'_> {
    /// The action of that name; it exists.
    pub(crate) fn action(&mut self, name: &At<String>, t: &mut Table<'_, '_>) -> Option<Action> {
        match &*name.value {
            "power-loss" | "kill" | "crash-at-start" | "shutdown" | "wipe" | "start" | "restart" | "pause"
            | "resume" => self.process_action(name, t),
            "partition" | "heal" | "reset-connections" | "duplicate" | "delay-messages" => self.network_action(name, t),
            "latency" | "loss" | "bandwidth" => self.link_action(name, t),
            "disk-full" | "disk-error" | "disk-stall" | "disk-slow" | "bit-rot" => self.disk_action(name, t),
            "clock-jump" | "clock-drift" | "delay-metadata" | "slow-lane" => self.node_action(name, t),
            "cli" => self.cli(t),
            "start-client" | "stop-client" | "produce" => self.client_action(name, t),
            mirror if mirror.ends_with("-mirror") => self.mirror_action(name, t),
            _ => self.cluster_action(name, t),
        }
    }

    fn required(&mut self, t: &mut Table<'_, '_>, key: &'static str, example: &str) -> Option<At<String>> {
        if !t.has(key) {
            t.missing(&mut self.cx, key, example);
        }
        t.text(&mut self.cx, key)
    }

    fn needs(&mut self, t: &mut Table<'_, '_>, key: &'static str, example: &str) {
        if !t.has(key) {
            t.missing(&mut self.cx, key, example);
        }
    }

    fn node_key(&mut self, t: &mut Table<'_, '_>) -> Option<NodeRef> {
        let cluster = self.stage.clusters.keys().next().cloned().unwrap_or_default();
        let at = self.required(t, "node", &format!("\"{cluster}/broker-1\""))?;
        self.node(&at)
    }

    fn lasting(&mut self, t: &mut Table<'_, '_>) -> Option<Time> {
        t.duration(&mut self.cx, "for")
    }

    // --------------------------------------------------------------------------------------------------------- processes

    fn process_action(&mut self, name: &At<String>, t: &mut Table<'_, '_>) -> Option<Action> {
        let node = self.node_key(t);
        let falls = matches!(&*name.value, "power-loss" | "kill" | "crash-at-start" | "shutdown" | "wipe");
        let restart_after = if falls { t.duration(&mut self.cx, "restart_after") } else { None };
        let lasting = if name.value == "pause" { self.lasting(t) } else { None };
        let crashes = matches!(&*name.value, "power-loss" | "kill");
        let inside_task = crashes && t.boolean(&mut self.cx, "inside_task").unwrap_or(false);
        let loses = if name.value == "power-loss" { t.one_of(&mut self.cx, "loses", Loses::NAMED) } else { None };
        let loses = loses.unwrap_or_default();
        if inside_task && loses != Loses::Drawn {
            let span = t.key_span("loses");
            let message = "what a power loss inside a task takes is drawn".to_owned();
            self.cx.error(&span, "conflict", message, "leave `loses` or `inside_task` out".to_owned());
        }
        let power = name.value == "crash-at-start" && t.boolean(&mut self.cx, "power").unwrap_or(false);
        let node = node?;
        self.check_diskless(name, &node, inside_task)?;
        Some(match &*name.value {
            "power-loss" => Action::PowerLoss { node, restart_after, inside_task, loses },
            "kill" => Action::Kill { node, restart_after, inside_task },
            "crash-at-start" => Action::CrashAtStart { node, power, restart_after },
            "shutdown" => Action::Shutdown { node, restart_after },
            "wipe" => Action::Wipe { node, restart_after },
            "start" => Action::Start { node },
            "restart" => Action::Restart { node },
            "pause" => Action::Pause { node, lasting },
            _ => Action::Resume { node },
        })
    }

    /// Clients and operators have no disk and no orderly end.
    fn check_diskless(&mut self, name: &At<String>, node: &NodeRef, inside_task: bool) -> Option<()> {
        if !node.is_diskless() {
            return Some(());
        }
        if inside_task {
            let message = "a client has no disk: its crash cannot fall inside a task".to_owned();
            self.cx.error(&name.span, "conflict", message, "leave `inside_task` out".to_owned());
        }
        if !matches!(&*name.value, "pause" | "resume" | "kill" | "start") {
            let message = format!("`{}` cannot be done to a client", name.value);
            let help = "a client can be `pause`d, `resume`d, `kill`ed and `start`ed".to_owned();
            self.cx.error(&name.span, "conflict", message, help);
            return None;
        }
        Some(())
    }

    // ----------------------------------------------------------------------------------------------------------- network

    fn network_action(&mut self, name: &At<String>, t: &mut Table<'_, '_>) -> Option<Action> {
        match &*name.value {
            "partition" => self.partition_action(t),
            "heal" => {
                let step = t.text(&mut self.cx, "step");
                if let Some(at) = step.as_ref().filter(|at| !self.steps.contains(&at.value)) {
                    let valid = self.steps.iter().map(String::as_str);
                    self.cx.unknown(at, "unknown-step", ("step", "named steps"), valid);
                }
                Some(Action::Heal { step: step.map(|at| at.value) })
            }
            "reset-connections" => {
                let link = t.text(&mut self.cx, "link").and_then(|at| self.link(&at));
                let node = t.text(&mut self.cx, "node").and_then(|at| self.node(&at));
                let silent = t.boolean(&mut self.cx, "silent").unwrap_or(false);
                t.exclusive(&mut self.cx, "link", "node");
                if !t.has("link") && !t.has("node") {
                    t.missing(&mut self.cx, "link", "\"wan\"");
                }
                Some(Action::ResetConnections { link, node, silent })
            }
            _ => self.message_action(name, t),
        }
    }

    fn message_action(&mut self, name: &At<String>, t: &mut Table<'_, '_>) -> Option<Action> {
        let kind = self.required(t, "kind", "\"FetchRequest\"");
        let vocabulary = self.cx.vocabulary;
        let is_known = |kind: &str| kind == "any" || vocabulary.messages.iter().any(|m| *m == kind);
        if let Some(at) = kind.as_ref().filter(|at| !is_known(&at.value)) {
            let valid = std::iter::once("any").chain(vocabulary.messages.iter().map(|m| &**m));
            self.cx.unknown(at, "unknown-name", ("kind of message", "kinds of messages"), valid);
        }
        self.needs(t, "extra", "\"200 ms\"");
        let from = t.text(&mut self.cx, "from").and_then(|at| self.place(&at));
        let to = t.text(&mut self.cx, "to").and_then(|at| self.place(&at));
        let probability = t.chance(&mut self.cx, "probability").unwrap_or(Chance(1_000_000_000));
        let extra: Option<Time> = t.duration(&mut self.cx, "extra");
        let lasting = self.lasting(t);
        let (kind, extra) = (kind?.value, extra?);
        Some(match &*name.value {
            "duplicate" => Action::Duplicate { kind, from, to, probability, extra, lasting },
            _ => Action::DelayMessages { kind, from, to, probability, extra, lasting },
        })
    }

    fn partition_action(&mut self, t: &mut Table<'_, '_>) -> Option<Action> {
        t.exclusive(&mut self.cx, "between", "node");
        let between = self.two_places(t);
        let node = t.text(&mut self.cx, "node").and_then(|at| self.node(&at));
        let role = t.one_of(&mut self.cx, "role", Role::NAMED);
        let one_way = t.boolean(&mut self.cx, "one_way").unwrap_or(false);
        let lasting = self.lasting(t);
        if !t.has("between") && !t.has("node") && !t.has("role") {
            let message = format!("{} does not say what is parted", t.what);
            let help = "add `between = [\"east\", \"west\"]`, `node = \"east/broker-1\"` (from everybody), or `role = \"mirror\"`";
            self.cx.error(&t.span, "missing-key", message, help.to_owned());
        }
        if one_way && !t.has("between") && !t.has("node") {
            let span = t.key_span("one_way");
            let message = "a partition in one direction needs its two sides".to_owned();
            let help = "add `between`: what the first says does not reach the second; with `node`: it hears nothing"
                .to_owned();
            self.cx.error(&span, "conflict", message, help);
        }
        Some(Action::Partition { between, node, role, one_way, lasting })
    }

    fn two_places(&mut self, t: &mut Table<'_, '_>) -> Option<[Place; 2]> {
        let texts = t.texts(&mut self.cx, "between")?;
        let [a, b] = &texts[..] else {
            let span = t.key_span("between");
            let message = format!("`between` in {} names {} places", t.what, texts.len());
            self.cx.error(&span, "wrong-count", message, "write two: `between = [\"east\", \"west\"]`".to_owned());
            return None;
        };
        let (first, second) = (self.place(a), self.place(b));
        let (first, second) = (first?, second?);
        if first == second && matches!(first, Place::Node(_)) {
            let message = format!("a node cannot be parted from itself: `{}`", clip(&b.value, 60));
            self.cx.error(&b.span, "conflict", message, "name two different nodes".to_owned());
        }
        Some([first, second])
    }

    fn link_action(&mut self, name: &At<String>, t: &mut Table<'_, '_>) -> Option<Action> {
        let example = format!("\"{}\"", self.stage.links.keys().next().map_or("wan", String::as_str));
        let link = self.required(t, "link", &example).and_then(|at| self.link(&at));
        let toward = t.text(&mut self.cx, "toward");
        if let Some((link, at)) = link.as_ref().and_then(|l| self.stage.links.get(l)).zip(toward.as_ref()) {
            if !link.between.contains(&at.value) {
                let valid: Vec<String> = link.between.to_vec();
                self.cx.unknown(at, "unknown-site", ("end of this link", "ends"), valid.iter().map(String::as_str));
            }
        }
        let toward = toward.map(|at| at.value);
        let lasting = self.lasting(t);
        match &*name.value {
            "latency" => {
                self.needs(t, "latency", "\"200 ms\"");
                let latency = t.unit(&mut self.cx, "latency");
                let jitter = t.unit(&mut self.cx, "jitter");
                Some(Action::Latency { link: link?, latency: latency?, jitter, toward, lasting })
            }
            "loss" => {
                self.needs(t, "loss", "0.05");
                let loss = self.loss(t, "loss");
                Some(Action::Loss { link: link?, loss: loss?, toward, lasting })
            }
            _ => {
                self.needs(t, "bandwidth", "\"10 Mbit/s\"");
                let bandwidth = t.unit(&mut self.cx, "bandwidth");
                Some(Action::Bandwidth { link: link?, bandwidth: bandwidth?, toward, lasting })
            }
        }
    }

    // ------------------------------------------------------------------------------------------- disks, clocks and lanes

    /// A node that has a disk and lanes of its own: not a client.
    fn server_key(&mut self, name: &At<String>, t: &mut Table<'_, '_>) -> Option<NodeRef> {
        let node = self.node_key(t)?;
        if node.is_diskless() {
            let message = format!("`{}` cannot be done to a client", name.value);
            self.cx.error(&name.span, "conflict", message, "name a broker or a controller".to_owned());
            return None;
        }
        Some(node)
    }

    fn disk_action(&mut self, name: &At<String>, t: &mut Table<'_, '_>) -> Option<Action> {
        let node = self.server_key(name, t);
        if name.value == "bit-rot" {
            let topic = self.required(t, "topic", "\"orders\"");
            let bits = t.count32(&mut self.cx, "bits", 1..=1_000).unwrap_or(1);
            let cluster = match &node {
                Some(NodeRef::Broker(cluster, _) | NodeRef::Brokers(cluster) | NodeRef::Leader(cluster, ..)) => {
                    Some(cluster.clone())
                }
                _ => None,
            };
            let fact = topic.as_ref().zip(cluster.as_deref()).and_then(|(at, cluster)| self.topic(cluster, at));
            let partition = self.partition_key(t, fact).unwrap_or(0);
            return Some(Action::BitRot { node: node?, topic: topic?.value, partition, bits });
        }
        let call = if name.value == "disk-full" {
            DiskCall::Write
        } else {
            t.one_of(&mut self.cx, "call", DiskCall::NAMED).unwrap_or_default()
        };
        let lasting = self.lasting(t);
        match &*name.value {
            "disk-full" => Some(Action::DiskFull { node: node?, lasting }),
            "disk-error" => {
                let probability = t.chance(&mut self.cx, "probability").unwrap_or(Chance(1_000_000_000));
                Some(Action::DiskError { node: node?, call, probability, lasting })
            }
            "disk-stall" if matches!(call, DiskCall::Read | DiskCall::Write) => {
                // A process does nothing while it reads or writes: that is a `pause`, or a `disk-slow`.
                let message = "only flushes can be kept from ending".to_owned();
                let help =
                    "leave `call` out, or write `call = \"flush\"`; `disk-slow` makes reads and writes slow".to_owned();
                self.cx.error(&name.span, "conflict", message, help);
                None
            }
            "disk-stall" => Some(Action::DiskStall { node: node?, call, lasting }),
            _ => {
                self.needs(t, "by", "\"50 ms\"");
                let by = t.duration(&mut self.cx, "by");
                Some(Action::DiskSlow { node: node?, call, by: by?, lasting })
            }
        }
    }

    fn node_action(&mut self, name: &At<String>, t: &mut Table<'_, '_>) -> Option<Action> {
        let clock = name.value.starts_with("clock");
        let node = if clock { self.node_key(t) } else { self.server_key(name, t) };
        match &*name.value {
            "clock-jump" => {
                self.needs(t, "by", "\"-3 s\"");
                let by: Option<SignedTime> = t.unit(&mut self.cx, "by");
                Some(Action::ClockJump { node: node?, by: by? })
            }
            "clock-drift" => {
                self.needs(t, "rate", "\"200 ppm\"");
                let rate: Option<Drift> = t.unit(&mut self.cx, "rate");
                let lasting = self.lasting(t);
                Some(Action::ClockDrift { node: node?, rate: rate?, lasting })
            }
            "delay-metadata" => {
                self.needs(t, "by", "\"2 s\"");
                let by = t.duration(&mut self.cx, "by");
                let lasting = self.lasting(t);
                Some(Action::DelayMetadata { node: node?, by: by?, lasting })
            }
            _ => {
                let vocabulary = self.cx.vocabulary;
                let lane = self.required(t, "lane", "\"mirror-fetcher\"");
                if let Some(at) = lane.as_ref().filter(|at| !vocabulary.lanes.iter().any(|l| *l == at.value)) {
                    self.cx.unknown(at, "unknown-name", ("lane", "lanes"), vocabulary.lanes.iter().map(|l| &**l));
                }
                self.needs(t, "by", "\"100 ms\"");
                let by = t.duration(&mut self.cx, "by");
                let lasting = self.lasting(t);
                Some(Action::SlowLane { node: node?, lane: lane?.value, by: by?, lasting })
            }
        }
    }

    // --------------------------------------------------------------------------------------------------- cluster operators

    /// `partition`, if written; within the topic's partitions if these are known.
    fn partition_key(&mut self, t: &mut Table<'_, '_>, fact: Option<TopicFact>) -> Option<u32> {
        let last = fact.map_or(u64::from(u32::MAX), |f| u64::from(f.partitions.saturating_sub(1)));
        t.count(&mut self.cx, "partition", 0..=last).and_then(|n| u32::try_from(n.value).ok())
    }

    /// `on` and `topic`, which must exist there.
    fn topic_keys(&mut self, t: &mut Table<'_, '_>) -> Option<(String, String, TopicFact)> {
        let on = self.on(t, "on");
        let topic = self.required(t, "topic", "\"orders\"");
        let (on, topic) = (on?, topic?);
        let fact = self.topic(&on, &topic)?;
        Some((on, topic.value, fact))
    }

    fn cluster_action(&mut self, name: &At<String>, t: &mut Table<'_, '_>) -> Option<Action> {
        match &*name.value {
            "create-topic" => self.create_topic(t),
            "set-config" => self.set_config(t),
            "set-cluster-id" => {
                let on = self.on(t, "on");
                let id = self.required(t, "id", "\"another\"");
                if let Some(id) = &id {
                    self.name(id, "a cluster id");
                }
                let node = t.text(&mut self.cx, "node").and_then(|at| self.node(&at));
                Some(Action::SetClusterId { on: on?, node, id: id?.value })
            }
            "snapshot-cluster" => Some(Action::SnapshotCluster { on: self.on(t, "on")? }),
            "restore-cluster" => Some(Action::RestoreCluster { on: self.on(t, "on")? }),
            "foreign" => {
                let on = self.on(t, "on");
                self.needs(t, "answers", "\"epochs\"");
                let answers = t.one_of(&mut self.cx, "answers", Answers::NAMED);
                let probability = t.chance(&mut self.cx, "probability").unwrap_or(Chance(1_000_000_000));
                let lasting = self.lasting(t);
                Some(Action::Foreign { on: on?, answers: answers?, probability, lasting })
            }
            "elect" => self.elect(t),
            _ => self.topic_action(name, t),
        }
    }

    fn topic_action(&mut self, name: &At<String>, t: &mut Table<'_, '_>) -> Option<Action> {
        let place = self.topic_keys(t);
        let fact = place.as_ref().map(|(.., fact)| *fact);
        match &*name.value {
            "delete-topic" => place.map(|(on, topic, _)| Action::DeleteTopic { on, topic }),
            "add-partitions" => {
                self.needs(t, "partitions", "12");
                let partitions = t.count32(&mut self.cx, "partitions", 2..=100_000);
                let (on, topic, _) = place?;
                Some(Action::AddPartitions { on, topic, partitions: partitions? })
            }
            "delete-records" => {
                let partition = self.partition_key(t, fact);
                self.needs(t, "before", "100");
                let before = t.count(&mut self.cx, "before", 0..=(1 << 62));
                let (on, topic, _) = place?;
                Some(Action::DeleteRecords { on, topic, partition, before: before?.value })
            }
            _ => {
                let partition = self.partition_key(t, fact);
                let min = t.count32(&mut self.cx, "min", 0..=2_000_000_000).unwrap_or(0);
                let (on, topic, _) = place?;
                Some(Action::BumpEpoch { on, topic, partition, min })
            }
        }
    }

    fn create_topic(&mut self, t: &mut Table<'_, '_>) -> Option<Action> {
        let on = self.on(t, "on");
        let topic = self.required(t, "topic", "\"orders\"");
        if let Some(at) = &topic {
            self.topic_name(at);
        }
        let (brokers, default_rf) =
            on.as_ref().and_then(|on| self.stage.clusters.get(on)).map_or((1_000, 1), |c| (c.brokers, c.default_rf));
        let partitions = t.count32(&mut self.cx, "partitions", 1..=100_000).unwrap_or(1);
        let rf = self.replicas(t, "rf", brokers, on.as_deref().unwrap_or("")).unwrap_or(default_rf);
        let config = self.config(t, ConfigOf::Topic);
        let id_of = t.text(&mut self.cx, "id_of").and_then(|at| self.cluster(&at));
        if let (Some(cluster), Some(at)) = (&id_of, &topic) {
            self.topic(cluster, at);
        }
        Some(Action::CreateTopic { on: on?, topic: topic?.value, partitions, rf, config, id_of })
    }

    fn elect(&mut self, t: &mut Table<'_, '_>) -> Option<Action> {
        let place = self.topic_keys(t);
        let partition = self.partition_key(t, place.as_ref().map(|(.., fact)| *fact));
        let to = t.text(&mut self.cx, "to").and_then(|at| {
            let node = self.node(&at)?;
            let here = place.as_ref().map(|(on, ..)| on.clone());
            if matches!(&node, NodeRef::Broker(cluster, _) if here.as_ref().is_none_or(|on| on == cluster)) {
                return Some(node);
            }
            let message = format!("`{}` cannot lead the topic", clip(&at.value, 60));
            let help = format!(
                "name a broker of its cluster, such as \"{}/broker-1\"",
                here.unwrap_or_else(|| "east".to_owned())
            );
            self.cx.error(&at.span, "conflict", message, help);
            None
        });
        let preferred = t.boolean(&mut self.cx, "preferred").unwrap_or(false);
        let unclean = t.boolean(&mut self.cx, "unclean").unwrap_or(false);
        let pick = t.count32(&mut self.cx, "pick", 0..=1_000);
        let written: Vec<&str> =
            ["to", "preferred", "unclean", "pick"].into_iter().filter(|k| t.key_is_written(k)).collect();
        if written.len() != 1 {
            let message = format!("{} does not say who becomes leader, or says it twice", t.what);
            let help =
                "write one of `to = \"east/broker-2\"`, `preferred = true`, `unclean = true`, or `pick = 0` (the n-th \
                        other in-sync replica)";
            self.cx.error(&t.span, "conflict", message, help.to_owned());
            return None;
        }
        let elect = match (to, pick) {
            (Some(node), _) => Elect::To(node),
            (None, Some(pick)) => Elect::Pick(pick),
            (None, None) if preferred => Elect::Preferred(true),
            (None, None) if unclean => Elect::Unclean(true),
            _ => return None,
        };
        let (on, topic, _) = place?;
        Some(Action::Elect { on, topic, partition, elect })
    }

    fn set_config(&mut self, t: &mut Table<'_, '_>) -> Option<Action> {
        let targets: Vec<&str> = ["topic", "node", "mirror"].into_iter().filter(|k| t.key_is_written(k)).collect();
        let topic = t.text(&mut self.cx, "topic");
        let node = t.text(&mut self.cx, "node");
        let mirror = t.text(&mut self.cx, "mirror");
        if targets.len() != 1 {
            let message = format!("{} does not say whose config, or says it twice", t.what);
            let help = "write one of `topic = \"orders\"`, `node = \"east/*\"`, `mirror = \"east-to-west\"`".to_owned();
            self.cx.error(&t.span, "conflict", message, help);
        }
        let (on, target, of) = if let Some(at) = mirror {
            t.allow("on");
            let mirror = self.mirror(&at);
            let on = mirror.as_ref().and_then(|m| self.stage.mirrors.get(m)).map(|m| m.on.clone());
            (on, mirror.map(ConfigTarget::Mirror), ConfigOf::Mirror)
        } else if let Some(at) = node {
            t.allow("on");
            let node = self.node(&at);
            let on = match &node {
                Some(NodeRef::Broker(cluster, _) | NodeRef::Brokers(cluster)) => Some(cluster.clone()),
                Some(_) => {
                    let message = format!("`{}` is not a broker", clip(&at.value, 60));
                    self.cx.error(&at.span, "conflict", message, "name one broker, or all: \"east/*\"".to_owned());
                    None
                }
                None => None,
            };
            (on, node.map(ConfigTarget::Node), ConfigOf::Broker)
        } else {
            let on = self.on(t, "on");
            if let Some((on, at)) = on.clone().zip(topic.as_ref()) {
                self.topic(&on, at);
            }
            (on, topic.map(|at| ConfigTarget::Topic(at.value)), ConfigOf::Topic)
        };
        let config = self.config(t, of);
        let vocabulary = self.cx.vocabulary;
        let keys = || vocabulary.config(of).iter().map(|k| &*k.name).collect();
        let remove = t.names(&mut self.cx, "remove", ("config key", "config keys"), keys);
        if config.is_empty() && remove.is_empty() && !t.has("config") && !t.has("remove") {
            t.missing(&mut self.cx, "config", "{ \"retention.ms\" = \"1 h\" }");
        }
        Some(Action::SetConfig { on: on?, target: target?, config, remove })
    }

    // ---------------------------------------------------------------------------------------------------- mirror operators

    fn mirror_action(&mut self, name: &At<String>, t: &mut Table<'_, '_>) -> Option<Action> {
        let example = format!("\"{}\"", self.stage.mirrors.keys().next().map_or("east-to-west", String::as_str));
        let mirror = self.required(t, "mirror", &example).and_then(|at| self.mirror(&at));
        if name.value == "create-mirror" || name.value == "delete-mirror" {
            let mirror = mirror?;
            if name.value == "delete-mirror" {
                return Some(Action::DeleteMirror { mirror });
            }
            if self.stage.mirrors.get(&mirror).is_some_and(|m| !m.later) && !self.deleted.contains(&mirror) {
                let message = format!("mirror `{mirror}` is created by itself");
                let help =
                    format!("write `later = true` in [mirrors.{mirror}], delete it in a step, or remove this one");
                self.cx.error(&name.span, "conflict", message, help);
            }
            return Some(Action::CreateMirror { mirror });
        }
        let topics = self.mirror_topics(t, mirror.as_deref());
        let keep = if name.value == "recover-mirror" { t.one_of(&mut self.cx, "keep", Keep::NAMED) } else { None };
        let mirror = mirror?;
        Some(match &*name.value {
            "start-mirror" => Action::StartMirror { mirror, topics },
            "stop-mirror" => Action::StopMirror { mirror, topics },
            "pause-mirror" => Action::PauseMirror { mirror, topics },
            "resume-mirror" => Action::ResumeMirror { mirror, topics },
            _ => Action::RecoverMirror { mirror, topics, keep },
        })
    }

    /// A call of the operators' tool. What is wrong with its arguments the tool itself says, at its time.
    fn cli(&mut self, t: &mut Table<'_, '_>) -> Option<Action> {
        let on = self.on(t, "on");
        let args = self.required(t, "args", "\"--list\"");
        let mut files = std::collections::BTreeMap::new();
        if let Some(table) = t.table(&mut self.cx, "files", "`files` of a `cli` step".to_owned()) {
            for (name, value) in table.entries() {
                match value.get_ref().as_str() {
                    Some(text) => {
                        files.insert(name.value.clone(), text.to_owned());
                    }
                    None => {
                        let message = format!("the file `{}` is not a text", clip(&name.value, 60));
                        let help = "write its lines as one text: \"\"\"…\"\"\"".to_owned();
                        self.cx.error(&name.span, "wrong-type", message, help);
                    }
                }
            }
        }
        let expect_exit = t.count32(&mut self.cx, "expect_exit", 0..=1);
        let expect_output = t.text(&mut self.cx, "expect_output").map(|at| at.value);
        let expect_stderr = t.text(&mut self.cx, "expect_stderr").map(|at| at.value);
        Some(Action::Cli { on: on?, args: args?.value, files, expect_exit, expect_output, expect_stderr })
    }

    /// Topic names and patterns of an order; names must be known at one of the two clusters.
    fn mirror_topics(&mut self, t: &mut Table<'_, '_>, mirror: Option<&str>) -> Vec<String> {
        t.exclusive(&mut self.cx, "topics", "topic");
        let mut topics = self.patterns(t, "topics");
        if topics.is_empty() && t.raw("topics").and_then(|v| v.get_ref().as_array()).is_some_and(|list| list.is_empty())
        {
            let message = format!("`topics` in {} is empty: that would mean all topics of the mirror", t.what);
            let help = "name them, or leave `topics` out if all are meant".to_owned();
            self.cx.error(&t.key_span("topics"), "empty", message, help);
        }
        topics.extend(t.text(&mut self.cx, "topic"));
        let facts: Option<Mirror> = mirror.and_then(|m| self.stage.mirrors.get(m)).cloned();
        if let Some(mirror) = facts {
            for at in &topics {
                let known = !super::refs::is_literal(&at.value)
                    || at.value.starts_with("__")
                    || self.find_topic(&mirror.on, &at.value).is_some()
                    || mirror.topics.iter().any(|p| may_match(p, &at.value));
                if !known {
                    self.topic(&mirror.source, at);
                }
            }
        }
        topics.into_iter().map(|at| at.value).collect()
    }

    // ----------------------------------------------------------------------------------------------------------- clients

    fn client_action(&mut self, name: &At<String>, t: &mut Table<'_, '_>) -> Option<Action> {
        if name.value != "produce" {
            let example = format!("\"{}\"", self.stage.producers.keys().next().map_or("shop", String::as_str));
            let client = self.required(t, "client", &example).and_then(|at| self.client(&at))?;
            return Some(if name.value == "start-client" {
                Action::StartClient { client }
            } else {
                Action::StopClient { client }
            });
        }
        let example = format!("\"{}\"", self.stage.producers.keys().next().map_or("shop", String::as_str));
        let producer = self.required(t, "producer", &example).and_then(|at| self.producer(&at));
        self.needs(t, "records", "3");
        let records = t.count(&mut self.cx, "records", 1..=1_000_000_000);
        let record: Option<Size> = t.unit(&mut self.cx, "record");
        if record.is_some_and(|size| !(32..=16 << 20).contains(&size.0)) {
            let span = t.raw("record").map_or_else(|| t.span.clone(), Spanned::span);
            let message = format!("`record` in {} is out of range", t.what);
            self.cx.error(&span, "out-of-range", message, "a record has 32 B (its identity) to 16 MiB".to_owned());
        }
        Some(Action::Produce { producer: producer?, records: records?.value, record })
    }
}
