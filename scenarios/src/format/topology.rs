//! Reads `[clusters]`, `[links]`, `[topics]` and `[mirrors]`, and every `config` table.

use super::refs::{is_literal, may_match, Build, TopicFact};
use super::table::{kind_of, At, Table};
use super::types::{Cluster, Config, Direction, DirectionChange, Link, Mirror, Topic};
use super::vocabulary::{ConfigOf, ValueKind};
use super::{limits, reach};
use crate::units::{clip, Chance, Quantity, Size, Time};
use mirrorlab_model::broker::Release;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::de::DeValue;
use toml::Spanned;

/// Topics that a cluster creates by itself.
const INTERNAL: &[&str] =
    &["__consumer_offsets", "__transaction_state", "__share_group_state", "__mirror_state", "__cluster_metadata"];

impl Build<'_> {
    /// Refuses a name that could not be written where names are written.
    pub(crate) fn name(&mut self, at: &At<String>, what: &str) -> bool {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let fits = (1..=64).contains(&at.value.len()) && at.value.starts_with(|c: char| c.is_ascii_alphanumeric());
        if fits && at.value.chars().all(good) && at.value != "clients" {
            return true;
        }
        let message = format!("`{}` cannot be the name of {what}", clip(&at.value, 60));
        let help =
            "a name has 1 to 64 letters, digits, `-`, `_` and `.`, begins with a letter or digit, and is not `clients`";
        self.cx.error(&at.span, "bad-name", message, help.to_owned());
        false
    }

    fn too_many(&mut self, found: usize, most: usize, what: &str, span: &Range<usize>) -> bool {
        if found <= most {
            return false;
        }
        let message = format!("{found} {what} are too many");
        self.cx.error(span, "too-many", message, format!("the limit is {most}"));
        true
    }

    /// The named tables under a key, refused if there are too many.
    pub(crate) fn named<'t, 'i>(
        &mut self,
        root: &mut Table<'t, 'i>,
        key: &'static str,
        most: usize,
    ) -> Vec<(At<String>, Table<'t, 'i>)> {
        let mut tables = root.tables(&mut self.cx, key);
        if self.too_many(tables.len(), most, key, &root.key_span(key)) {
            tables.truncate(most);
        }
        tables
    }

    // ---------------------------------------------------------------------------------------------------------- clusters

    pub(crate) fn clusters(&mut self, root: &mut Table<'_, '_>) {
        if !root.has("clusters") {
            let message = "there is no cluster".to_owned();
            let help = "add a table such as\n[clusters.east]\nbrokers = 3".to_owned();
            self.cx.error(&(0..0), "missing-key", message, help);
        }
        let mut total = 0_u64;
        for (name, mut t) in self.named(root, "clusters", limits::CLUSTERS) {
            self.name(&name, "a cluster");
            let span = t.key_span("brokers");
            let cluster = self.read_cluster(&name.value, &mut t);
            total += u64::from(cluster.brokers);
            if total > u64::from(limits::BROKERS) && total - u64::from(cluster.brokers) <= u64::from(limits::BROKERS) {
                let message = format!("{total} brokers in all are too many");
                self.cx.error(
                    &span,
                    "too-many",
                    message,
                    format!("the limit over all clusters is {}", limits::BROKERS),
                );
            }
            self.stage.clusters.insert(name.value, cluster);
            t.finish(&mut self.cx);
        }
    }

    fn read_cluster(&mut self, name: &str, t: &mut Table<'_, '_>) -> Cluster {
        let cx = &mut self.cx;
        let brokers = t.count32(cx, "brokers", 1..=limits::BROKERS).unwrap_or(3);
        let controllers = t.count32(cx, "controllers", 1..=limits::CONTROLLERS).unwrap_or(1);
        let site = t.text(cx, "site");
        let default_rf = self.replicas(t, "default_rf", brokers, name).unwrap_or(brokers.min(3));
        let min_isr = self.replicas(t, "min_isr", brokers, name).unwrap_or(default_rf.saturating_sub(1).max(1));
        let cx = &mut self.cx;
        let first_producer_id = t.count(cx, "first_producer_id", 0..=(1 << 62)).map_or(0, |n| n.value);
        let id = t.text(cx, "id");
        let release = self.release(t);
        for at in [&site, &id].into_iter().flatten() {
            self.name(at, "a site or a cluster id");
        }
        Cluster {
            brokers,
            controllers,
            site: site.map_or_else(|| name.to_owned(), |at| at.value),
            default_rf,
            min_isr,
            first_producer_id,
            release,
            id: id.map_or_else(|| name.to_owned(), |at| at.value),
            config: self.config(t, ConfigOf::Broker),
        }
    }

    /// What the cluster's brokers can do for others.
    fn release(&mut self, t: &mut Table<'_, '_>) -> Option<String> {
        let release = t.text(&mut self.cx, "release")?;
        if release.value.parse::<Release>().is_ok_and(Release::is_known) {
            return Some(release.value);
        }
        let message = format!("`{}` is not the name of a release that is known here", clip(&release.value, 60));
        let known: Vec<String> =
            Release::KNOWN.iter().map(|(major, minors)| format!("{major}.0 to {major}.{minors}")).collect();
        let help =
            format!("write one of {}; without it, the cluster knows everything that this model does", known.join(", "));
        self.cx.error(&release.span, "bad-value", message, help);
        None
    }

    /// A number of replicas, which must find brokers.
    pub(crate) fn replicas(
        &mut self,
        t: &mut Table<'_, '_>,
        key: &'static str,
        brokers: u32,
        cluster: &str,
    ) -> Option<u32> {
        let at = t.count(&mut self.cx, key, 1..=u64::from(limits::BROKERS))?;
        match u32::try_from(at.value) {
            Ok(n) if n <= brokers => Some(n),
            _ => {
                let message = format!("`{key} = {}` in {} needs {} brokers", at.value, t.what, at.value);
                let help = format!("cluster `{cluster}` has {brokers}: raise its `brokers`, or lower `{key}`");
                self.cx.error(&at.span, "impossible-replication", message, help);
                None
            }
        }
    }

    // ----------------------------------------------------------------------------------------------------------- configs

    /// A `config` table, as Kafka's texts under the newest names.
    pub(crate) fn config(&mut self, t: &mut Table<'_, '_>, of: ConfigOf) -> Config {
        let what = format!("the config of {}", t.what);
        let Some(inner) = t.table(&mut self.cx, "config", what) else { return Config::new() };
        let mut config = Config::new();
        for (key, value) in inner.entries() {
            if let Some((name, text)) = self.config_entry(&inner.what, of, &key, value) {
                if config.insert(name.clone(), text).is_some() {
                    let message = format!("`{name}` stands twice in {}, once under an older name", inner.what);
                    self.cx.error(&key.span, "duplicate", message, "remove one of the two".to_owned());
                }
            }
        }
        config
    }

    fn config_entry(
        &mut self,
        what: &str,
        of: ConfigOf,
        key: &At<String>,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<(String, String)> {
        let vocabulary = self.cx.vocabulary;
        let Some(known) = vocabulary.config_key(of, &key.value) else {
            if self.cx.problems.is_full() {
                self.cx.problems.count_only();
                return None;
            }
            if let DeValue::Table(_) = value.get_ref() {
                let message = format!("`{}` in {what} is a table, not a value", clip(&key.value, 60));
                let help =
                    "a config key with points stands in quotes: `config = { \"min.insync.replicas\" = 2 }`".to_owned();
                self.cx.error(&key.span, "unquoted-key", message, help);
                return None;
            }
            let valid = vocabulary.config(of).iter().map(|k| &*k.name);
            let help = super::diagnostics::suggest(&key.value, "keys", valid);
            let message = format!("unknown key `{}` in {what}", clip(&key.value, 60));
            self.cx.error(&key.span, "unknown-key", message, help);
            return None;
        };
        match config_value(known.kind, value.get_ref()) {
            Ok(text) => {
                if let Some(refused) = reach::config(of, &known.name, &text) {
                    let message = format!("`{}` in {what} cannot be {}", known.name, shown(value.get_ref()));
                    self.cx.error(&value.span(), "bad-config", message, refused.to_string());
                    return None;
                }
                Some((known.name.to_string(), text))
            }
            Err(wanted) => {
                let message = format!("`{}` in {what} cannot be {}", known.name, shown(value.get_ref()));
                self.cx.error(&value.span(), "bad-config", message, format!("it is {wanted}"));
                None
            }
        }
    }

    // ------------------------------------------------------------------------------------------------------------- links

    pub(crate) fn links(&mut self, root: &mut Table<'_, '_>) {
        let mut pairs: BTreeMap<[String; 2], String> = BTreeMap::new();
        for (name, mut t) in self.named(root, "links", limits::LINKS) {
            self.name(&name, "a link");
            let Some(link) = self.read_link(&mut t) else {
                t.finish(&mut self.cx);
                continue;
            };
            let mut pair = link.between.clone();
            pair.sort();
            if let Some(other) = pairs.get(&pair) {
                let message = format!("links `{other}` and `{}` join the same sites", clip(&name.value, 60));
                self.cx.error(&name.span, "duplicate", message, "two sites have one link: merge the two".to_owned());
            }
            pairs.insert(pair, name.value.clone());
            self.stage.links.insert(name.value, link);
            t.finish(&mut self.cx);
        }
    }

    fn read_link(&mut self, t: &mut Table<'_, '_>) -> Option<Link> {
        let between = self.two_sites(t);
        let cx = &mut self.cx;
        if !t.has("latency") {
            t.missing(cx, "latency", "\"40 ms\"");
        }
        let latency: Option<Time> = t.unit(cx, "latency");
        let both = Direction {
            latency: latency.unwrap_or_default(),
            jitter: t.unit(cx, "jitter").unwrap_or_default(),
            bandwidth: t.unit(cx, "bandwidth"),
            loss: self.loss(t, "loss").unwrap_or_default(),
            queue: t.unit(&mut self.cx, "queue"),
        };
        let socket_buffer: Option<Size> = t.unit(&mut self.cx, "socket_buffer");
        self.above_zero(t, "socket_buffer", socket_buffer.map(|s| s.0));
        let toward = self.toward(t, between.as_ref());
        between.map(|between| Link { between, both, socket_buffer, toward })
    }

    pub(crate) fn above_zero(&mut self, t: &mut Table<'_, '_>, key: &'static str, value: Option<u64>) {
        if value == Some(0) {
            let span = t.raw(key).map_or_else(|| t.span.clone(), Spanned::span);
            let message = format!("`{key}` in {} is zero", t.what);
            self.cx.error(&span, "zero", message, "a value above zero is needed here".to_owned());
        }
    }

    /// A loss: a link that loses everything is a partition and says so.
    pub(crate) fn loss(&mut self, t: &mut Table<'_, '_>, key: &'static str) -> Option<Chance> {
        let loss = t.chance(&mut self.cx, key)?;
        if loss.0 < 1_000_000_000 {
            return Some(loss);
        }
        let span = t.raw(key).map_or_else(|| t.span.clone(), Spanned::span);
        let message = format!("`{key}` in {} loses every packet", t.what);
        self.cx.error(&span, "out-of-range", message, "use `do = \"partition\"` for a link that is down".to_owned());
        None
    }

    fn two_sites(&mut self, t: &mut Table<'_, '_>) -> Option<[String; 2]> {
        if !t.has("between") {
            t.missing(&mut self.cx, "between", "[\"dc-east\", \"dc-west\"]");
            return None;
        }
        let texts = t.texts(&mut self.cx, "between")?;
        let [a, b] = &texts[..] else {
            let span = t.key_span("between");
            let message = format!("`between` in {} names {} sites", t.what, texts.len());
            self.cx.error(
                &span,
                "wrong-count",
                message,
                "a link has two: `between = [\"dc-east\", \"dc-west\"]`".to_owned(),
            );
            return None;
        };
        let (a, b) = (self.site(a), self.site(b));
        Some([a?, b?])
    }

    fn toward(&mut self, t: &mut Table<'_, '_>, between: Option<&[String; 2]>) -> BTreeMap<String, DirectionChange> {
        let what = format!("`toward` of {}", t.what);
        let Some(inner) = t.table(&mut self.cx, "toward", what) else { return BTreeMap::new() };
        let mut toward = BTreeMap::new();
        for (site, value) in inner.entries() {
            let DeValue::Table(map) = value.get_ref() else {
                let message = format!(
                    "`{}` in {} is a table, not {}",
                    clip(&site.value, 60),
                    inner.what,
                    kind_of(value.get_ref())
                );
                self.cx.error(&value.span(), "wrong-type", message, "write it as `{ latency = \"60 ms\" }`".to_owned());
                continue;
            };
            if let Some(ends) = between.filter(|ends| !ends.contains(&site.value) || ends[0] == ends[1]) {
                let ends: &[String] = if ends[0] == ends[1] { &[] } else { ends };
                self.cx.unknown(&site, "unknown-site", ("end of this link", "ends"), ends.iter().map(String::as_str));
            }
            let mut t = Table::new(format!("`toward.{}`", clip(&site.value, 60)), value.span(), map);
            let change = DirectionChange {
                latency: t.unit(&mut self.cx, "latency"),
                jitter: t.unit(&mut self.cx, "jitter"),
                bandwidth: t.unit(&mut self.cx, "bandwidth"),
                loss: self.loss(&mut t, "loss"),
                queue: t.unit(&mut self.cx, "queue"),
            };
            t.finish(&mut self.cx);
            toward.insert(site.value, change);
        }
        toward
    }

    /// Refuses traffic between two sites that no link joins.
    pub(crate) fn joined(&mut self, a: &str, b: &str, span: &Range<usize>, who: &str) {
        let joins = |l: &Link| l.between == [a, b] || l.between == [b, a];
        if a == b || self.stage.links.values().any(joins) {
            return;
        }
        let message = format!("{who} needs a link between sites `{a}` and `{b}`, and there is none");
        let help = format!("add a table such as\n[links.wan]\nbetween = [\"{a}\", \"{b}\"]\nlatency = \"40 ms\"");
        self.cx.error(span, "missing-link", message, help);
    }

    // ------------------------------------------------------------------------------------------------------------ topics

    pub(crate) fn topics(&mut self, root: &mut Table<'_, '_>) {
        for (name, mut t) in self.named(root, "topics", limits::TOPICS) {
            if self.cx.problems.is_hopeless() {
                return;
            }
            let other = t.text(&mut self.cx, "name");
            let named = other.unwrap_or_else(|| name.clone());
            self.topic_name(&named);
            if let Some(topic) = self.read_topic(&mut t, named) {
                self.stage.topics.insert(name.value, topic);
            }
            t.finish(&mut self.cx);
        }
    }

    fn read_topic(&mut self, t: &mut Table<'_, '_>, named: At<String>) -> Option<Topic> {
        let on = self.on(t, "on");
        let (brokers, default_rf) = on
            .as_ref()
            .and_then(|on| self.stage.clusters.get(on))
            .map_or((limits::BROKERS, 1), |c| (c.brokers, c.default_rf));
        let partitions = t.count32(&mut self.cx, "partitions", 1..=2_000_000).unwrap_or(1);
        self.check_created(partitions, &t.key_span("partitions"));
        let rf = self.replicas(t, "rf", brokers, on.as_deref().unwrap_or("")).unwrap_or(default_rf);
        let count = t.count32(&mut self.cx, "count", 1..=2_000_000);
        let config = self.config(t, ConfigOf::Topic);
        let topic = Topic { on: on?, name: named.value, partitions, rf, count, config };
        let fact = TopicFact { partitions, rf, family: count };
        if self.topics.insert((topic.on.clone(), topic.name.clone()), fact).is_some() {
            let message = format!("cluster `{}` has topic `{}` twice", topic.on, topic.name);
            self.cx.error(&named.span, "duplicate", message, "remove one of the two".to_owned());
        }
        Some(topic)
    }

    /// Refuses what Kafka refuses as a topic name, and internal topics.
    pub(crate) fn topic_name(&mut self, at: &At<String>) -> bool {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let fits = (1..=limits::NAME_BYTES).contains(&at.value.len()) && at.value != "." && at.value != "..";
        let (message, help) = if !fits || !at.value.chars().all(good) {
            (
                "cannot be the name of a topic",
                "Kafka takes 1 to 249 letters, digits, `.`, `_` and `-`, but not `.` or `..`",
            )
        } else if INTERNAL.contains(&&*at.value) {
            ("is an internal topic", "the cluster creates it by itself; configure it through the cluster's `config`")
        } else {
            return true;
        };
        self.cx.error(&at.span, "bad-name", format!("`{}` {message}", clip(&at.value, 60)), help.to_owned());
        false
    }

    // ----------------------------------------------------------------------------------------------------------- mirrors

    pub(crate) fn mirrors(&mut self, root: &mut Table<'_, '_>) {
        for (name, mut t) in self.named(root, "mirrors", limits::MIRRORS) {
            self.name(&name, "a mirror");
            if let Some(mirror) = self.read_mirror(&name, &mut t) {
                self.stage.mirrors.insert(name.value, mirror);
            }
            t.finish(&mut self.cx);
        }
    }

    fn read_mirror(&mut self, name: &At<String>, t: &mut Table<'_, '_>) -> Option<Mirror> {
        let on = self.required_cluster(t, "on");
        let source = self.required_cluster(t, "source");
        let topics = self.patterns(t, "topics");
        if topics.is_empty() && !t.has("topics") {
            t.missing(&mut self.cx, "topics", "[\"orders\"]");
        }
        let exclude = self.patterns(t, "exclude");
        let later = t.boolean(&mut self.cx, "later").unwrap_or(false);
        let start = t.unit(&mut self.cx, "start");
        if later {
            t.exclusive(&mut self.cx, "later", "start");
        }
        let config = self.config(t, ConfigOf::Mirror);
        let (on, source) = (on?, source?);
        if on == source {
            let message = format!("mirror `{}` mirrors cluster `{on}` to itself", clip(&name.value, 60));
            let span = t.raw("source").map_or_else(|| name.span.clone(), Spanned::span);
            self.cx.error(
                &span,
                "self-mirror",
                message,
                "`on` is the destination, `source` another cluster".to_owned(),
            );
            return None;
        }
        if let Some(release) = self.stage.clusters.get(&on).and_then(|cluster| cluster.release.clone()) {
            let message = format!("cluster `{on}` is of release {release}, and no such release has mirrors");
            let span = t.raw("on").map_or_else(|| name.span.clone(), Spanned::span);
            self.cx.error(&span, "no-mirrors", message, "it can only be a `source`".to_owned());
        }
        let site = |name: &str| self.stage.clusters.get(name).map(|c| c.site.clone()).unwrap_or_default();
        let (a, b) = (site(&on), site(&source));
        self.joined(&a, &b, &name.span, &format!("mirror `{}`", clip(&name.value, 60)));
        let topics = topics.into_iter().map(|at| at.value).collect();
        let exclude = exclude.into_iter().map(|at| at.value).collect();
        Some(Mirror { on, source, topics, exclude, start, later, config })
    }

    fn required_cluster(&mut self, t: &mut Table<'_, '_>, key: &'static str) -> Option<String> {
        if !t.has(key) {
            let name = self.stage.clusters.keys().next().cloned().unwrap_or_default();
            t.missing(&mut self.cx, key, &format!("\"{name}\""));
        }
        let at = t.text(&mut self.cx, key)?;
        self.cluster(&at)
    }

    /// Topic names and patterns.
    pub(crate) fn patterns(&mut self, t: &mut Table<'_, '_>, key: &'static str) -> Vec<At<String>> {
        let mut patterns = t.texts(&mut self.cx, key).unwrap_or_default();
        let span = t.key_span(key);
        if self.too_many(patterns.len(), limits::PATTERNS, "patterns", &span) {
            patterns.truncate(limits::PATTERNS);
        }
        for at in &patterns {
            if at.value.is_empty() || at.value.len() > limits::NAME_BYTES {
                let message = format!("`{}` in `{key}` is neither a topic name nor a pattern", clip(&at.value, 60));
                self.cx.error(
                    &at.span,
                    "bad-name",
                    message,
                    "write a name, or a pattern such as \"orders-.*\"".to_owned(),
                );
            } else {
                self.check_pattern(key, at);
            }
        }
        patterns
    }

    /// Names of mirrored topics that no source has: a slip more often than a wish. Patterns may wait for later topics.
    pub(crate) fn check_mirrored_names(&mut self, root: &mut Table<'_, '_>) {
        for (name, mut t) in root.tables(&mut self.cx, "mirrors") {
            let Some(source) = self.stage.mirrors.get(&name.value).map(|m| m.source.clone()) else { continue };
            for at in t.texts(&mut self.cx, "topics").unwrap_or_default() {
                if is_literal(&at.value) && !at.value.starts_with("__") {
                    self.topic(&source, &at);
                }
            }
        }
    }

    /// Refuses more replicas than the machine could hold.
    pub(crate) fn check_replicas(&mut self, root: &mut Table<'_, '_>) {
        let mut total = 0_u64;
        for (name, mut t) in root.tables(&mut self.cx, "topics") {
            let Some(topic) = self.stage.topics.get(&name.value) else { continue };
            let partitions = u64::from(topic.partitions).saturating_mul(u64::from(topic.topics()));
            let mut replicas = partitions.saturating_mul(u64::from(topic.rf));
            let sample = topic.names().next().unwrap_or_default();
            for mirror in self.stage.mirrors.values().filter(|m| m.source == topic.on) {
                if mirror.topics.iter().any(|p| may_match(p, &topic.name) || may_match(p, &sample)) {
                    let rf = self.stage.clusters.get(&mirror.on).map_or(1, |c| c.default_rf);
                    replicas = replicas.saturating_add(partitions.saturating_mul(u64::from(rf)));
                }
            }
            total = total.saturating_add(replicas);
            if total > limits::REPLICAS {
                let span = if t.has("partitions") { t.key_span("partitions") } else { t.span.clone() };
                let message =
                    format!("{total} replicas in all are too many: {replicas} of them for topic `{}`", topic.name);
                let help = format!(
                    "partitions x replicas over all topics, mirrored ones counted on both sides, is at most {}; lower \
                     `partitions`, `rf` or `count`",
                    limits::REPLICAS
                );
                self.cx.error(&span, "too-many", message, help);
                return;
            }
        }
    }
}

/// A config value as Kafka's text, or what it should be.
fn config_value(kind: ValueKind, value: &DeValue<'_>) -> Result<String, String> {
    match kind {
        ValueKind::Bool => match value {
            DeValue::Boolean(b) => Ok(b.to_string()),
            DeValue::String(s) if s == "true" || s == "false" => Ok(s.to_string()),
            _ => Err("`true` or `false`".to_owned()),
        },
        ValueKind::Int { min, max } => whole(value, min, max).ok_or_else(|| bounds("a whole number", min, max)),
        ValueKind::Millis { min, max } => {
            let quantity = |s: &str| Time::read(s).ok().filter(|t| t.0 % 1_000_000 == 0).map(|t| t.0 / 1_000_000);
            unit_or_whole(value, min, max, quantity)
                .ok_or_else(|| bounds("a number of milliseconds, or a duration such as \"30 s\",", min, max))
        }
        ValueKind::Bytes { min, max } => unit_or_whole(value, min, max, |s| Size::read(s).ok().map(|s| s.0))
            .ok_or_else(|| bounds("a number of bytes, or a size such as \"1 MiB\",", min, max)),
        ValueKind::Fraction => {
            let read = match value {
                DeValue::Float(f) => Chance::read_decimal(f.as_str()).ok(),
                DeValue::Integer(n) => Chance::read_decimal(n.as_str()).ok(),
                DeValue::String(s) => Chance::read_decimal(s).ok(),
                _ => None,
            };
            read.map(|c| c.to_string()).ok_or_else(|| "a number from 0 to 1".to_owned())
        }
        ValueKind::Choice(words) => match value {
            DeValue::String(s) if words.contains(&&**s) => Ok(s.to_string()),
            _ => Err(format!("one of `{}`", words.join("`, `"))),
        },
        ValueKind::List => list(value).ok_or_else(|| "a list of texts, or a text with commas".to_owned()),
        ValueKind::Text => match value {
            DeValue::String(s) => Ok(s.to_string()),
            _ => Err("a text".to_owned()),
        },
    }
}

fn whole(value: &DeValue<'_>, min: i64, max: i64) -> Option<String> {
    let number = match value {
        DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok(),
        DeValue::String(s) => s.trim().parse().ok(),
        _ => None,
    };
    number.filter(|n| (min..=max).contains(n)).map(|n| n.to_string())
}

fn unit_or_whole(value: &DeValue<'_>, min: i64, max: i64, read: impl Fn(&str) -> Option<u64>) -> Option<String> {
    if let Some(text) = whole(value, min, max) {
        return Some(text);
    }
    let DeValue::String(text) = value else { return None };
    let number = read(text).and_then(|n| i64::try_from(n).ok())?;
    (min..=max).contains(&number).then(|| number.to_string())
}

fn list(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(s) => Some(s.to_string()),
        DeValue::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(|item| item.get_ref().as_str()).collect();
            texts.filter(|texts| texts.iter().all(|t| !t.contains(','))).map(|texts| texts.join(","))
        }
        _ => None,
    }
}

fn bounds(what: &str, min: i64, max: i64) -> String {
    if max == i64::MAX {
        format!("{what} of at least {min}")
    } else {
        format!("{what} from {min} to {max}")
    }
}

fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(s) => format!("`{}`", clip(s, 40)),
        DeValue::Integer(n) => format!("`{}`", clip(n.as_str(), 40)),
        DeValue::Float(n) => format!("`{}`", clip(n.as_str(), 40)),
        DeValue::Boolean(b) => format!("`{b}`"),
        other => kind_of(other).to_owned(),
    }
}
