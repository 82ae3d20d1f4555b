//! Admin commands as plain values: how each becomes a request, and how its answer is judged.

use crate::client::metadata::ClusterView;
use crate::client::mirror_orders::{self, MirrorOrder};
use crate::ids::{BrokerId, LeaderEpoch, MetadataOffset, NodeId, Offset, PartitionIx};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    Body, BumpLeaderEpochsRequest, ConfigEntry, ConfigResource, CreateClusterMirrorRequest, CreatePartitionsRequest,
    CreateTopicsRequest, DeleteRecordsRequest, DeleteTopicsRequest, ElectLeadersRequest,
    IncrementalAlterConfigsRequest, ListedMirror, NamedResult, NewTopic, StartMirrorTopicsRequest,
};
use std::sync::Arc;

/// A partition as people name it.
pub type PartitionName = (Arc<str>, u32);

/// What an operator orders.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Create topics.
    CreateTopics(Vec<NewTopic>),
    /// Delete topics.
    DeleteTopics(Vec<Arc<str>>),
    /// Raise partition counts to these totals.
    CreatePartitions(Vec<(Arc<str>, u32)>),
    /// Set and remove configs.
    AlterConfigs(Vec<(ConfigResource, Vec<ConfigEntry>)>),
    /// Elect leaders: preferred, or unclean. No partitions: all.
    ElectLeaders {
        /// Unclean instead of preferred.
        unclean: bool,
        /// Which.
        partitions: Vec<PartitionName>,
    },
    /// Delete records below these offsets (−1: the high watermark); goes to each partition's leader.
    DeleteRecords(Vec<(PartitionName, Offset)>),
    /// Raise leader epochs above these minima (spec 3.4). Kafka's own tool has no such order; brokers send the request when
    /// they mirror, and whoever wants a partition in a given epoch can too.
    BumpLeaderEpochs(Vec<(PartitionName, LeaderEpoch)>),
    /// Create a mirror. `bootstrap.servers` and `source.cluster.id` are filled in from the source, where not given: the
    /// client asks it (spec 1.3).
    CreateClusterMirror {
        /// Name.
        mirror: Arc<str>,
        /// The source's bootstrap list.
        source: Vec<NodeId>,
        /// Configs.
        configs: Vec<(Arc<str>, Arc<str>)>,
    },
    /// Start topics of a mirror. Names are resolved at the source to ids and partition counts (spec 1.4).
    StartMirrorTopics {
        /// Mirror.
        mirror: Arc<str>,
        /// The source's bootstrap list.
        source: Vec<NodeId>,
        /// Topics by name.
        topics: Vec<Arc<str>>,
        /// Patterns to merge into `topics.include`.
        include: Vec<Arc<str>>,
        /// Patterns to merge into `topics.exclude`.
        exclude: Vec<Arc<str>>,
    },
    /// What else there is to do with mirrors.
    Mirror(MirrorOrder),
}

/// What was answered to one thing that a command names.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemResult {
    /// Topic, resource, mirror, or `topic-partition`.
    pub name: Arc<str>,
    /// Verdict.
    pub error: ErrorCode,
    /// Why, where the cluster said so.
    pub message: Option<Arc<str>>,
}

impl From<NamedResult> for ItemResult {
    fn from(r: NamedResult) -> Self {
        Self { name: r.name, error: r.error, message: r.message }
    }
}

/// What a command needs to know before it can be sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// Topics of its own cluster; `None`: all.
    Own(Option<Vec<Arc<str>>>),
    /// The mirrors of its own cluster.
    Mirrors,
    /// The source at these nodes, with these topics; `None`: all.
    Source(Vec<NodeId>, Option<Vec<Arc<str>>>),
}

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Any broker; it passes on what is the controller's.
    Any,
    /// This one.
    Broker(BrokerId),
}

impl Command {
    /// Its name, for reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::CreateTopics(_) => "CreateTopics",
            Self::DeleteTopics(_) => "DeleteTopics",
            Self::CreatePartitions(_) => "CreatePartitions",
            Self::AlterConfigs(_) => "IncrementalAlterConfigs",
            Self::ElectLeaders { .. } => "ElectLeaders",
            Self::DeleteRecords(_) => "DeleteRecords",
            Self::BumpLeaderEpochs(_) => "BumpLeaderEpochs",
            Self::CreateClusterMirror { .. } => "CreateClusterMirror",
            Self::StartMirrorTopics { .. } => "StartMirrorTopics",
            Self::Mirror(order) => order.name(),
        }
    }

    /// What has to be looked up first; asked again when the mirrors are `listed`. `all_topics` is the quirk of E-16.
    #[must_use]
    pub fn need(&self, listed: Option<&[ListedMirror]>, all_topics: bool) -> Need {
        match self {
            Self::ElectLeaders { partitions, .. } if !partitions.is_empty() => {
                Need::Own(Some(topics_of(partitions.iter())))
            }
            Self::DeleteRecords(parts) => Need::Own(Some(topics_of(parts.iter().map(|p| &p.0)))),
            Self::BumpLeaderEpochs(parts) => Need::Own(Some(topics_of(parts.iter().map(|p| &p.0)))),
            // A bootstrap list without a broker leads nowhere: the cluster says what is missing.
            Self::CreateClusterMirror { source, .. } if source.is_empty() => Need::Nothing,
            // The source may be out of reach by then: what it would be asked for is given.
            Self::CreateClusterMirror { configs, .. } if has(configs, "source.cluster.id") => Need::Nothing,
            Self::CreateClusterMirror { source, .. } => Need::Source(source.clone(), Some(Vec::new())),
            Self::StartMirrorTopics { source, topics, .. } => Need::Source(source.clone(), Some(topics.clone())),
            Self::Mirror(order) => order.need(listed, all_topics),
            _ => Need::Nothing,
        }
    }

    /// Whether every broker is asked, and a silent one is only noted.
    #[must_use]
    pub const fn is_survey(&self) -> bool {
        matches!(self, Self::Mirror(order) if order.is_survey())
    }

    /// The requests, with where they go. `own`, `source` and `listed` hold what [`Self::need`] asked for.
    ///
    /// # Errors
    /// Items that cannot be resolved.
    pub fn requests(
        &self,
        own: &ClusterView,
        source: Option<&ClusterView>,
        listed: Option<&[ListedMirror]>,
    ) -> Result<Vec<(Target, Body)>, Vec<ItemResult>> {
        let body: Body = match self {
            Self::CreateTopics(topics) => CreateTopicsRequest { topics: topics.clone() }.into(),
            Self::DeleteTopics(topics) => DeleteTopicsRequest { topics: topics.clone() }.into(),
            Self::CreatePartitions(topics) => {
                CreatePartitionsRequest { topics: topics.clone(), for_mirror: false }.into()
            }
            Self::AlterConfigs(resources) => IncrementalAlterConfigsRequest { resources: resources.clone() }.into(),
            Self::ElectLeaders { unclean, partitions } => {
                let parts = resolve(partitions.iter(), own)?;
                ElectLeadersRequest { unclean: *unclean, parts }.into()
            }
            Self::DeleteRecords(parts) => return delete_records(parts, own),
            Self::BumpLeaderEpochs(parts) => {
                let found = resolve(parts.iter().map(|p| &p.0), own)?;
                let parts = found.into_iter().zip(parts.iter().map(|p| p.1)).collect();
                BumpLeaderEpochsRequest { parts }.into()
            }
            Self::CreateClusterMirror { mirror, source: nodes, configs } => {
                let mut configs = configs.clone();
                if !has(&configs, "bootstrap.servers") && !nodes.is_empty() {
                    let list: Vec<String> = nodes.iter().map(ToString::to_string).collect();
                    configs.push(("bootstrap.servers".into(), list.join(",").into()));
                }
                if let Some(view) = source.filter(|_| !has(&configs, "source.cluster.id")) {
                    configs.push(("source.cluster.id".into(), view.cluster_id().clone()));
                }
                CreateClusterMirrorRequest { mirror: mirror.clone(), configs }.into()
            }
            Self::StartMirrorTopics { mirror, topics, include, exclude, .. } => {
                let topics = source_topics(topics, source)?;
                StartMirrorTopicsRequest {
                    mirror: mirror.clone(),
                    topics,
                    include: include.clone(),
                    exclude: exclude.clone(),
                    state_offset: MetadataOffset(-1),
                }
                .into()
            }
            Self::Mirror(order) => return order.requests(own, source, listed),
        };
        Ok(vec![(Target::Any, body)])
    }

    /// An error that a command meets when an earlier sending of it, whose answer was lost, has been carried out.
    #[must_use]
    pub fn is_echo(&self, error: ErrorCode) -> bool {
        match self {
            Self::CreateTopics(_) => error == ErrorCode::TopicAlreadyExists,
            Self::DeleteTopics(_) => {
                matches!(error, ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId)
            }
            Self::CreatePartitions(_) => error == ErrorCode::InvalidPartitions,
            Self::ElectLeaders { .. } => error == ErrorCode::ElectionNotNeeded,
            Self::CreateClusterMirror { .. } => error == ErrorCode::ClusterMirrorAlreadyExists,
            Self::Mirror(MirrorOrder::Delete(_)) => error == ErrorCode::UnknownClusterMirror,
            _ => false,
        }
    }
}

fn has(configs: &[(Arc<str>, Arc<str>)], key: &str) -> bool {
    configs.iter().any(|config| &*config.0 == key)
}

fn topics_of<'a>(parts: impl Iterator<Item = &'a PartitionName>) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = parts.map(|p| p.0.clone()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn label(name: &PartitionName) -> Arc<str> {
    format!("{}-{}", name.0, name.1).into()
}

fn find(name: &PartitionName, view: &ClusterView) -> Option<PartitionIx> {
    view.topic(&name.0).and_then(|(_, t)| t.partitions.get(name.1 as usize)).copied()
}

fn unknown(name: Arc<str>) -> ItemResult {
    ItemResult { name, error: ErrorCode::UnknownTopicOrPartition, message: None }
}

fn resolve<'a>(
    parts: impl Iterator<Item = &'a PartitionName>,
    view: &ClusterView,
) -> Result<Vec<PartitionIx>, Vec<ItemResult>> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for name in parts {
        match find(name, view) {
            Some(partition) => found.push(partition),
            None => missing.push(unknown(label(name))),
        }
    }
    if missing.is_empty() {
        Ok(found)
    } else {
        Err(missing)
    }
}

/// One request per leader.
fn delete_records(
    parts: &[(PartitionName, Offset)],
    view: &ClusterView,
) -> Result<Vec<(Target, Body)>, Vec<ItemResult>> {
    let mut by_leader = std::collections::BTreeMap::<BrokerId, Vec<(PartitionIx, Offset)>>::new();
    let mut missing = Vec::new();
    for (name, offset) in parts {
        match find(name, view) {
            None => missing.push(unknown(label(name))),
            Some(partition) => match view.leadership(partition).leader {
                BrokerId::NONE => {
                    missing.push(ItemResult { error: ErrorCode::LeaderNotAvailable, ..unknown(label(name)) });
                }
                leader => by_leader.entry(leader).or_default().push((partition, *offset)),
            },
        }
    }
    if !missing.is_empty() {
        return Err(missing);
    }
    Ok(by_leader.into_iter().map(|(b, parts)| (Target::Broker(b), DeleteRecordsRequest { parts }.into())).collect())
}

type SourceTopic = (crate::ids::TopicId, Arc<str>, u32);

fn source_topics(names: &[Arc<str>], source: Option<&ClusterView>) -> Result<Vec<SourceTopic>, Vec<ItemResult>> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for name in names {
        match source.and_then(|v| v.topic(name)).filter(|(_, t)| t.error.is_none() && !t.partitions.is_empty()) {
            Some((_, topic)) => found.push((topic.id, name.clone(), topic.partitions.len() as u32)),
            None => missing.push(unknown(name.clone())),
        }
    }
    if missing.is_empty() {
        Ok(found)
    } else {
        Err(missing)
    }
}

/// What an answer says: the verdict on the whole and on each item. None if it is no answer to an admin command.
#[must_use]
pub fn judge(body: Body, view: &ClusterView) -> Option<(ErrorCode, Vec<ItemResult>)> {
    let named = |list: Vec<NamedResult>| (ErrorCode::None, list.into_iter().map(ItemResult::from).collect());
    let placed = |partition: PartitionIx, error| ItemResult { name: label_of(partition, view), error, message: None };
    Some(match body {
        Body::CreateTopicsResponse(a) => named(a.topics),
        Body::DeleteTopicsResponse(a) => named(a.topics),
        Body::CreatePartitionsResponse(a) => named(a.topics),
        Body::IncrementalAlterConfigsResponse(a) => named(a.resources),
        Body::ElectLeadersResponse(a) => (ErrorCode::None, a.parts.into_iter().map(|(p, e)| placed(p, e)).collect()),
        Body::DeleteRecordsResponse(a) => {
            (ErrorCode::None, a.parts.into_iter().map(|(p, e, _)| placed(p, e)).collect())
        }
        Body::BumpLeaderEpochsResponse(a) => (a.error, a.parts.into_iter().map(|(p, e)| placed(p, e)).collect()),
        Body::CreateClusterMirrorResponse(a) => {
            let item = ItemResult { name: "".into(), error: a.error, message: a.message };
            (a.error, if a.error.is_none() { Vec::new() } else { vec![item] })
        }
        Body::StartMirrorTopicsResponse(a) => (a.error, a.topics.into_iter().map(ItemResult::from).collect()),
        other => return mirror_orders::judge(other).ok(),
    })
}

fn label_of(partition: PartitionIx, view: &ClusterView) -> Arc<str> {
    let topic = view.topics().get(view.leadership(partition).topic as usize);
    let number = topic.and_then(|t| t.partitions.iter().position(|p| *p == partition));
    match (topic, number) {
        (Some(topic), Some(number)) => label(&(topic.name.clone(), number as u32)),
        _ => format!("partition {partition}").into(),
    }
}
