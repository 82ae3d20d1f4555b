//! What operators order of mirrors, and what they ask: how each becomes requests, and what the answers of all brokers come to
//! (spec 8.2 to 8.8, 8.14, 9.6).
//!
//! Patterns are matched by the client: for a start against the source's topics, for the rest against the topics that the mirror
//! copies or holds (K18). Names that are no patterns go out as they are: the cluster says what is wrong with them.

use crate::client::commands::{ItemResult, Need, Target};
use crate::client::metadata::ClusterView;
use crate::ids::{BrokerId, MetadataOffset, NodeId};
use crate::metadata::configs::parse_nodes;
use crate::metadata::patterns::Patterns;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    Body, DeleteClusterMirrorRequest, DescribeClusterMirrorsRequest, DescribedMirror, DescribedPart,
    ListClusterMirrorsRequest, ListedMirror, NamedResult, PauseMirrorTopicsRequest, RecoverMirrorTopicsRequest,
    ResumeMirrorTopicsRequest, StartMirrorTopicsRequest, StopMirrorTopicsRequest,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which topics of a mirror an order is about: those named, and those that patterns match. Neither: all of the mirror.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Which {
    /// By name.
    pub names: Vec<Arc<str>>,
    /// By pattern.
    pub patterns: Vec<Arc<str>>,
    /// The patterns and names are edits of the mirror's lists too: a stop takes them out of `topics.include`, or adds them to
    /// `topics.exclude`.
    pub edits: bool,
}

impl Which {
    /// Splits words into names and patterns: a word of nothing but letters, digits, `.`, `_` and `-` is a name.
    #[must_use]
    pub fn of(words: &[Arc<str>], edits: bool) -> Self {
        let (names, patterns) = words.iter().cloned().partition(|word| is_name(word));
        Self { names, patterns, edits }
    }
    fn is_all(&self) -> bool {
        self.names.is_empty() && self.patterns.is_empty()
    }
}

/// Whether a word can only mean the topic of that name. A dot is a name's more often than a pattern's.
#[must_use]
pub fn is_name(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// What an operator does.
#[derive(Clone, Debug, PartialEq)]
pub enum MirrorOrder {
    /// Start what the patterns match at the source, now and later.
    Start {
        /// Mirror.
        mirror: Arc<str>,
        /// Patterns for `topics.include`.
        include: Vec<Arc<str>>,
        /// Patterns for `topics.exclude`.
        exclude: Vec<Arc<str>>,
    },
    /// Make topics writable here.
    Stop(Arc<str>, Which),
    /// Hold topics.
    Pause(Arc<str>, Which),
    /// Let paused topics go on.
    Resume(Arc<str>, Which),
    /// Lead failed topics back.
    Recover {
        /// Mirror.
        mirror: Arc<str>,
        /// Topics.
        which: Which,
        /// Of diverged ones the source's side wins.
        keep_source: bool,
    },
    /// Delete a mirror.
    Delete(Arc<str>),
    /// Ask for all mirrors.
    List,
    /// Ask every broker for states and offsets.
    Describe {
        /// Which mirrors; `None`: all.
        mirrors: Option<Vec<Arc<str>>>,
    },
}

/// What questions were answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// All mirrors.
    Mirrors(Vec<ListedMirror>),
    /// Mirrors with their partitions, and the brokers that did not answer.
    Described(Vec<DescribedMirror>, Vec<BrokerId>),
}

impl MirrorOrder {
    /// Its name, for reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Start { .. } => "StartMirrorTopics",
            Self::Stop(..) => "StopMirrorTopics",
            Self::Pause(..) => "PauseMirrorTopics",
            Self::Resume(..) => "ResumeMirrorTopics",
            Self::Recover { .. } => "RecoverMirrorTopics",
            Self::Delete(_) => "DeleteClusterMirror",
            Self::List => "ListClusterMirrors",
            Self::Describe { .. } => "DescribeClusterMirrors",
        }
    }

    /// The mirror that it is about, if one.
    #[must_use]
    pub fn mirror(&self) -> Option<&Arc<str>> {
        match self {
            Self::Start { mirror, .. }
            | Self::Stop(mirror, _)
            | Self::Pause(mirror, _)
            | Self::Resume(mirror, _)
            | Self::Recover { mirror, .. }
            | Self::Delete(mirror) => Some(mirror),
            Self::List | Self::Describe { .. } => None,
        }
    }

    fn which(&self) -> Option<&Which> {
        match self {
            Self::Stop(_, which) | Self::Pause(_, which) | Self::Resume(_, which) | Self::Recover { which, .. } => {
                Some(which)
            }
            _ => None,
        }
    }

    fn stops_everything(&self) -> bool {
        matches!(self, Self::Stop(_, which) if which.is_all())
    }

    /// Whether every broker is asked and those that are silent are only noted.
    #[must_use]
    pub const fn is_survey(&self) -> bool {
        matches!(self, Self::Describe { .. })
    }

    /// What has to be known first. `listed` are the mirrors, once they were asked for; `all_topics`: patterns are matched
    /// against all topics of the cluster (E-16).
    #[must_use]
    pub fn need(&self, listed: Option<&[ListedMirror]>, all_topics: bool) -> Need {
        match self {
            Self::Start { mirror, .. } => match listed {
                None => Need::Mirrors,
                Some(listed) => match source_of(mirror, listed) {
                    Some(nodes) if !nodes.is_empty() => Need::Source(nodes, None),
                    _ => Need::Nothing,
                },
            },
            // A recovery of everything is the brokers' to spell out: stopped topics are not in the list.
            Self::Recover { which, .. } if which.is_all() => Need::Nothing,
            // So is a stop of everything the controller's: a list may be older than the start that went before.
            Self::Stop(..) if self.stops_everything() => Need::Nothing,
            Self::Stop(_, which) | Self::Pause(_, which) | Self::Resume(_, which) | Self::Recover { which, .. } => {
                match listed {
                    _ if !which.patterns.is_empty() && all_topics => Need::Own(None),
                    None if which.is_all() || !which.patterns.is_empty() => Need::Mirrors,
                    _ => Need::Nothing,
                }
            }
            // Who the brokers are.
            Self::Describe { .. } => Need::Own(Some(Vec::new())),
            Self::Delete(_) | Self::List => Need::Nothing,
        }
    }

    /// The requests, with where they go.
    ///
    /// # Errors
    /// What cannot be resolved.
    pub fn requests(
        &self,
        own: &ClusterView,
        source: Option<&ClusterView>,
        listed: Option<&[ListedMirror]>,
    ) -> Result<Vec<(Target, Body)>, Vec<ItemResult>> {
        let state_offset = MetadataOffset(-1);
        let topics = match self.which() {
            Some(which) if !self.stops_everything() => resolve(which, self.mirror(), own, listed)?,
            _ => Vec::new(),
        };
        let body: Body = match self {
            Self::Start { mirror, include, exclude } => {
                let topics = match source {
                    Some(view) => matching(view, include, exclude)?,
                    None => Vec::new(),
                };
                let (mirror, include, exclude) = (mirror.clone(), include.clone(), exclude.clone());
                StartMirrorTopicsRequest { mirror, topics, include, exclude, state_offset }.into()
            }
            Self::Stop(mirror, which) => {
                let edits = which.names.iter().chain(&which.patterns).filter(|_| which.edits);
                let patterns = if which.edits { edits.cloned().collect() } else { which.patterns.clone() };
                StopMirrorTopicsRequest { mirror: mirror.clone(), topics, patterns, state_offset }.into()
            }
            Self::Pause(mirror, _) => PauseMirrorTopicsRequest { mirror: mirror.clone(), topics, state_offset }.into(),
            Self::Resume(mirror, _) => {
                ResumeMirrorTopicsRequest { mirror: mirror.clone(), topics, state_offset }.into()
            }
            Self::Recover { mirror, keep_source, .. } => {
                let (mirror, keep_source) = (mirror.clone(), *keep_source);
                RecoverMirrorTopicsRequest { mirror, topics, parts: Vec::new(), keep_source }.into()
            }
            Self::Delete(mirror) => DeleteClusterMirrorRequest { mirror: mirror.clone(), state_offset }.into(),
            Self::List => ListClusterMirrorsRequest {}.into(),
            Self::Describe { mirrors } => {
                let request = DescribeClusterMirrorsRequest {
                    mirrors: mirrors.clone(),
                    states: true,
                    offsets: true,
                    ..DescribeClusterMirrorsRequest::default()
                };
                let to = |(broker, _): &(BrokerId, NodeId)| (Target::Broker(*broker), request.clone().into());
                return Ok(own.brokers().iter().map(to).collect());
            }
        };
        Ok(vec![(Target::Any, body)])
    }
}

/// The source's brokers by the mirror's own `bootstrap.servers`.
fn source_of(mirror: &str, listed: &[ListedMirror]) -> Option<Vec<NodeId>> {
    let found = listed.iter().find(|m| *m.name == *mirror)?;
    parse_nodes(&found.bootstrap)
}

fn bad_pattern(word: Arc<str>) -> Vec<ItemResult> {
    let message = Some(format!("'{word}' is not a regular expression").into());
    vec![ItemResult { name: word, error: ErrorCode::InvalidRequest, message }]
}

fn resolve(
    which: &Which,
    mirror: Option<&Arc<str>>,
    own: &ClusterView,
    listed: Option<&[ListedMirror]>,
) -> Result<Vec<Arc<str>>, Vec<ItemResult>> {
    let mut topics = which.names.clone();
    if which.patterns.is_empty() && !which.is_all() {
        return Ok(topics);
    }
    let patterns = Patterns::new(which.patterns.clone()).map_err(bad_pattern)?;
    let mut candidates: Vec<Arc<str>> = match listed {
        Some(listed) => {
            let of = listed.iter().find(|m| Some(&m.name) == mirror);
            of.map(|m| m.topics.clone()).unwrap_or_default()
        }
        None => own.topics().iter().filter(|t| !t.name.starts_with("__")).map(|t| t.name.clone()).collect(),
    };
    candidates.sort_unstable();
    candidates.retain(|name| (which.is_all() || patterns.matches(name)) && !which.names.contains(name));
    topics.append(&mut candidates);
    Ok(topics)
}

type SourceTopic = (crate::ids::TopicId, Arc<str>, u32);

/// The source's topics that are included and not excluded; internal ones never are (decision 22).
fn matching(
    view: &ClusterView,
    include: &[Arc<str>],
    exclude: &[Arc<str>],
) -> Result<Vec<SourceTopic>, Vec<ItemResult>> {
    let include = Patterns::new(include.to_vec()).map_err(bad_pattern)?;
    let exclude = Patterns::new(exclude.to_vec()).map_err(bad_pattern)?;
    let mut found: Vec<SourceTopic> = view
        .topics()
        .iter()
        .filter(|t| t.error.is_none() && !t.partitions.is_empty() && !t.name.starts_with("__"))
        .filter(|t| include.matches(&t.name) && !exclude.matches(&t.name))
        .map(|t| (t.id, t.name.clone(), t.partitions.len() as u32))
        .collect();
    found.sort_unstable_by(|a, b| a.1.cmp(&b.1));
    Ok(found)
}

/// What an answer to one of these says: the verdict on the whole and on each item. `None` if it is no such answer.
pub(super) fn judge(body: Body) -> Result<(ErrorCode, Vec<ItemResult>), Body> {
    let whole = |error: ErrorCode, message: Option<Arc<str>>| {
        let item = ItemResult { name: "".into(), error, message };
        (error, if error.is_none() { Vec::new() } else { vec![item] })
    };
    let named =
        |error: ErrorCode, topics: Vec<NamedResult>| (error, topics.into_iter().map(ItemResult::from).collect());
    Ok(match body {
        Body::StopMirrorTopicsResponse(a) => named(a.error, a.topics),
        Body::PauseMirrorTopicsResponse(a) => named(a.error, a.topics),
        Body::ResumeMirrorTopicsResponse(a) => named(a.error, a.topics),
        Body::RecoverMirrorTopicsResponse(a) => named(a.error, a.topics),
        Body::DeleteClusterMirrorResponse(a) => whole(a.error, a.message),
        other => return Err(other),
    })
}

// ----------------------------------------------------------------------------------------------------------------- surveys

/// What the brokers said so far, put together: one row per partition.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Survey {
    mirrors: BTreeMap<Arc<str>, Merged>,
    answered: u32,
    silent: Vec<BrokerId>,
}

#[derive(Clone, Debug, PartialEq, Default)]
struct Merged {
    known: bool,
    mirror: DescribedMirror,
    parts: BTreeMap<(Arc<str>, u32), DescribedPart>,
}

impl Survey {
    /// A broker did not answer.
    pub fn miss(&mut self, broker: BrokerId) {
        self.silent.push(broker);
    }

    /// Takes a broker's answer. The later word on a state counts: that of the coordinator, or of a leader that was told by it.
    /// Offsets are the leader's; of two that claim to be it, the one that the source answered more lately.
    pub fn add(&mut self, mirrors: Vec<DescribedMirror>) {
        self.answered += 1;
        for DescribedMirror { name, error, bootstrap, source, parts } in mirrors {
            let merged = self.mirrors.entry(name.clone()).or_default();
            if merged.known && !error.is_none() {
                continue; // a broker that lags does not know it yet
            }
            merged.known |= error.is_none();
            merged.mirror = DescribedMirror { name, error, bootstrap, source, parts: Vec::new() };
            for part in parts {
                match merged.parts.get_mut(&(part.topic.clone(), part.number)) {
                    Some(known) => merge(known, part),
                    None => {
                        merged.parts.insert((part.topic.clone(), part.number), part);
                    }
                }
            }
        }
    }

    /// The table, and a verdict: refused if nobody answered, or for mirrors that nobody knows.
    pub fn end(self) -> (Report, Vec<ItemResult>) {
        let mut items = Vec::new();
        if self.answered == 0 {
            items.push(ItemResult { name: "".into(), error: ErrorCode::RequestTimedOut, message: None });
        }
        let mut mirrors = Vec::new();
        for Merged { known, mut mirror, parts } in self.mirrors.into_values() {
            if known {
                mirror.parts = parts.into_values().collect();
                mirrors.push(mirror);
            } else {
                items.push(ItemResult { name: mirror.name, error: mirror.error, message: None });
            }
        }
        (Report::Described(mirrors, self.silent), items)
    }
}

fn merge(known: &mut DescribedPart, other: DescribedPart) {
    let age = |part: &DescribedPart| part.source_age_ms.unwrap_or(u32::MAX);
    let leads = |part: &DescribedPart| part.destination_offset.0 >= 0;
    if leads(&other) && (!leads(known) || age(&other) < age(known)) {
        known.source_offset = other.source_offset;
        known.destination_offset = other.destination_offset;
        known.source_age_ms = other.source_age_ms;
    }
    if other.state_epoch > known.state_epoch {
        known.state = other.state;
        known.state_epoch = other.state_epoch;
        known.attempt = other.attempt;
        known.message = other.message;
        known.position = other.position;
    }
}

#[cfg(test)]
#[path = "mirror_orders_tests.rs"]
mod tests;
