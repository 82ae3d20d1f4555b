//! Topics are created, grown and removed.

use crate::controller::plan::Plan;
use crate::controller::state::Note;
use crate::guards::{controller as guard, mirror as mirror_guard};
use crate::ids::{BrokerId, LeaderEpoch, PartitionEpoch, PartitionIx, TopicId, TopicIx};
use crate::metadata::configs::{ConfigError, TopicConfig};
use crate::metadata::records::{Brokers, PartitionState, Record};
use crate::states::DesiredState;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    ConfigResource, CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse,
    DeleteTopicsRequest, DeleteTopicsResponse, NamedResult, NewTopic,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A refusal: the code, and why, for people.
pub type Refusal = (ErrorCode, Option<String>);

/// Whether a topic (and a mirror, spec 7.2) may have this name.
#[must_use]
pub fn is_legal_name(name: &str) -> bool {
    (1..=249).contains(&name.len())
        && name != "."
        && name != ".."
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// The verdict on a thing with a name.
#[must_use]
pub fn verdict(name: &Arc<str>, result: Result<(), Refusal>) -> NamedResult {
    let (error, message) = result.err().unwrap_or_default();
    NamedResult { name: name.clone(), error, message: message.map(Arc::from) }
}

fn refuse<T>(error: ErrorCode, message: impl Into<String>) -> Result<T, Refusal> {
    Err((error, Some(message.into())))
}

impl From<ConfigError> for Refused {
    fn from(error: ConfigError) -> Self {
        Self((error.code(), Some(error.to_string())))
    }
}
/// A refusal that a config error turns into.
pub struct Refused(pub Refusal);

/// Gives out dense indices and keeps count of limits while topics are planned one after another.
#[derive(Debug)]
pub struct Creation {
    next_topic: u32,
    next_partition: u32,
    partitions_left: u32,
    names: BTreeSet<Arc<str>>,
    ids: BTreeSet<TopicId>,
}

impl Creation {
    /// Nothing created yet.
    #[must_use]
    pub fn new(plan: &Plan<'_>) -> Self {
        Self {
            next_topic: plan.image().next_topic().0,
            next_partition: plan.image().next_partition().0,
            partitions_left: plan.config.max_partitions_per_request,
            names: BTreeSet::new(),
            ids: BTreeSet::new(),
        }
    }

    /// Plans one topic; all its records or none.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn create(&mut self, plan: &mut Plan<'_>, new: &NewTopic) -> Result<TopicIx, Refusal> {
        self.check_name(plan, new)?;
        let id = self.id_for(plan, new)?;
        check_configs(plan, new)?;
        let placements = self.place(plan, new)?;
        let count = placements.len() as u32;
        if count > self.partitions_left {
            return refuse(ErrorCode::PolicyViolation, "too many partitions in one request; split it");
        }
        let topic = TopicIx(self.next_topic);
        self.next_topic += 1;
        self.partitions_left -= count;
        self.names.insert(new.name.clone());
        self.ids.insert(id);
        plan.push(Record::Topic { topic, id, name: new.name.clone() });
        for (key, value) in &new.configs {
            let resource = ConfigResource::Topic(new.name.clone());
            plan.push(Record::Config { resource, key: key.clone(), value: Some(value.clone()) });
        }
        self.push_partitions(plan, topic, 0, placements);
        Ok(topic)
    }

    fn check_name(&self, plan: &Plan<'_>, new: &NewTopic) -> Result<(), Refusal> {
        if !is_legal_name(&new.name) {
            return refuse(
                ErrorCode::InvalidTopic,
                "names have 1 to 249 characters of a-z, A-Z, 0-9, '.', '_' and '-'",
            );
        }
        if self.names.contains(&new.name) || plan.image().topic_by_name(&new.name).is_some() {
            return refuse(ErrorCode::TopicAlreadyExists, format!("topic '{}' exists", new.name));
        }
        Ok(())
    }

    fn id_for(&self, plan: &Plan<'_>, new: &NewTopic) -> Result<TopicId, Refusal> {
        // A source older than 2.8 has no topic ids: the topic gets one of its own (spec 1.4).
        let Some(id) = new.mirror_id.filter(|id| *id != TopicId::ZERO) else {
            return Ok(plan.fresh_topic_id(self.next_topic));
        };
        if self.ids.contains(&id) || plan.image().topic_of(id).is_some() {
            return refuse(ErrorCode::TopicAlreadyExists, "another topic has this id");
        }
        Ok(id)
    }

    fn place(&self, plan: &Plan<'_>, new: &NewTopic) -> Result<Vec<Brokers>, Refusal> {
        if !new.assignments.is_empty() {
            return assigned(plan, new);
        }
        if new.partitions == 0 {
            return refuse(ErrorCode::InvalidPartitions, "a topic has at least one partition");
        }
        if new.partitions > self.partitions_left {
            return refuse(ErrorCode::PolicyViolation, "too many partitions in one request; split it");
        }
        let factor = match new.replication_factor {
            -1 => plan.image().broker_config(BrokerId::NONE, &plan.config.broker).default_replication_factor,
            n => u32::try_from(n).unwrap_or(0),
        };
        place(plan, self.next_partition, new.partitions, factor)
    }

    fn push_partitions(&mut self, plan: &mut Plan<'_>, topic: TopicIx, first: u32, placements: Vec<Brokers>) {
        for (number, replicas) in (first..).zip(placements) {
            let isr: Brokers = replicas.iter().copied().filter(|b| plan.image().is_active(*b)).collect();
            let leader = isr.first().copied().unwrap_or(BrokerId::NONE);
            let state = PartitionState {
                replicas,
                isr,
                elr: Brokers::new(),
                last_known_elr: Brokers::new(),
                leader,
                leader_epoch: LeaderEpoch(0),
                partition_epoch: PartitionEpoch(0),
                recovering: false,
            };
            let partition = PartitionIx(self.next_partition);
            self.next_partition += 1;
            plan.push(Record::Partition { partition, topic, number, state });
        }
    }
}

fn check_configs(plan: &Plan<'_>, new: &NewTopic) -> Result<(), Refusal> {
    let mut config = TopicConfig::clone(plan.image().topic_defaults());
    for (key, value) in &new.configs {
        config.set(key, value).map_err(|e| Refused::from(e).0)?;
    }
    Ok(())
}

/// Replicas as the request says.
fn assigned(plan: &Plan<'_>, new: &NewTopic) -> Result<Vec<Brokers>, Refusal> {
    let count = new.assignments.len();
    if new.partitions != 0 && new.partitions as usize != count {
        return refuse(ErrorCode::InvalidReplicaAssignment, "partition count and assignments differ");
    }
    let factor = new.assignments[0].len();
    let image = plan.image();
    for replicas in &new.assignments {
        let distinct: BTreeSet<_> = replicas.iter().collect();
        let known = replicas.iter().all(|b| image.broker(*b).is_some());
        if factor == 0 || replicas.len() != factor || distinct.len() != factor || !known {
            let why = "every partition needs the same number of different, registered brokers";
            return refuse(ErrorCode::InvalidReplicaAssignment, why);
        }
        if new.mirror_id.is_some() && !replicas.iter().all(|b| image.is_active(*b)) {
            return refuse(ErrorCode::InvalidReplicationFactor, "a mirror topic needs all its replicas alive");
        }
        if !replicas.iter().any(|b| image.is_active(*b)) {
            return refuse(
                ErrorCode::InvalidReplicaAssignment,
                "all brokers of a partition are fenced or shutting down",
            );
        }
    }
    Ok(new.assignments.iter().map(|replicas| replicas.iter().copied().collect()).collect())
}

/// Places partitions over the brokers in service: leaders go round by partition index, followers follow with a shift that
/// grows with every round, so that the load of a broker that fails spreads over all others.
fn place(plan: &Plan<'_>, first: u32, count: u32, factor: u32) -> Result<Vec<Brokers>, Refusal> {
    let active: Vec<BrokerId> = plan.image().brokers().filter(|(_, b)| b.is_active()).map(|(id, _)| id).collect();
    let n = active.len() as u32;
    if factor == 0 || factor > n {
        let why = format!("replication factor {factor} with {n} broker(s) in service");
        return refuse(ErrorCode::InvalidReplicationFactor, why);
    }
    let replicas_of = |ix: u32| {
        let (lead, shift) = (ix % n, ix / n);
        let follower = |j: u32| (lead + 1 + (shift + j) % (n - 1).max(1)) % n;
        std::iter::once(lead).chain((0..factor - 1).map(follower)).map(|at| active[at as usize]).collect()
    };
    Ok((first..first.saturating_add(count)).map(replicas_of).collect())
}

/// Plans the creation of topics, each on its own.
pub fn create_topics(plan: &mut Plan<'_>, request: &CreateTopicsRequest) -> CreateTopicsResponse {
    let mut creation = Creation::new(plan);
    let create = |new: &NewTopic| verdict(&new.name, creation.create(plan, new).map(|_| ()));
    CreateTopicsResponse { topics: request.topics.iter().map(create).collect() }
}

/// Plans the removal of topics.
pub fn delete_topics(plan: &mut Plan<'_>, request: &DeleteTopicsRequest) -> DeleteTopicsResponse {
    let mut gone = BTreeSet::new();
    let mut delete = |name: &Arc<str>| {
        let topic = plan.image().topic_by_name(name).filter(|topic| gone.insert(*topic));
        let Some(topic) = topic else {
            return verdict(name, Err((ErrorCode::UnknownTopicOrPartition, None)));
        };
        let desired = plan.image().mirror_of(topic).map(|(_, desired)| desired);
        let is_active = matches!(desired, Some(DesiredState::Mirroring | DesiredState::Paused));
        if !plan.guards.admits(guard::MirroredTopicStays, !is_active) {
            let why = "the topic belongs to a mirror and is not stopped".to_string();
            return verdict(name, Err((ErrorCode::InvalidClusterMirrorStates, Some(why))));
        }
        plan.push_noted(Record::RemoveTopic { topic }, Note::Removed(desired.unwrap_or_default()));
        verdict(name, Ok(()))
    };
    DeleteTopicsResponse { topics: request.topics.iter().map(&mut delete).collect() }
}

/// Plans the growth of topics, each on its own.
pub fn create_partitions(plan: &mut Plan<'_>, request: &CreatePartitionsRequest) -> CreatePartitionsResponse {
    let mut creation = Creation::new(plan);
    let own = request.for_mirror;
    let grow = |(name, total): &(Arc<str>, u32)| verdict(name, creation.grow(plan, name, *total, own));
    CreatePartitionsResponse { topics: request.topics.iter().map(grow).collect() }
}

impl Creation {
    /// A topic that is copied or held has as many partitions as its source: only its mirror lets it grow (peer case PART-02). Brokers
    /// may not have heard yet that it is mirrored, when a client asks them.
    fn grow(&mut self, plan: &mut Plan<'_>, name: &Arc<str>, total: u32, for_mirror: bool) -> Result<(), Refusal> {
        let topic = plan.image().topic_by_name(name).ok_or((ErrorCode::UnknownTopicOrPartition, None))?;
        let desired = plan.image().mirror_of(topic).map(|(_, desired)| desired);
        let grows = for_mirror || !matches!(desired, Some(DesiredState::Mirroring | DesiredState::Paused));
        if !plan.guards.admits(mirror_guard::MirroredTopicGrowsWithSource, grows) {
            let why = "the topic belongs to a mirror and is not stopped";
            return refuse(ErrorCode::InvalidClusterMirrorStates, why);
        }
        let image = plan.image();
        let Some(known) = image.topic(topic) else { return Err((ErrorCode::UnknownTopicOrPartition, None)) };
        if !self.names.insert(name.clone()) {
            return refuse(ErrorCode::InvalidRequest, "the topic is named twice");
        }
        let have = known.partitions.len() as u32;
        if total == have {
            return refuse(ErrorCode::InvalidPartitions, format!("topic '{name}' already has {have} partition(s)"));
        }
        if total < have {
            return refuse(
                ErrorCode::InvalidPartitions,
                format!("topic '{name}' has {have} partition(s), cannot shrink"),
            );
        }
        if total - have > self.partitions_left {
            return refuse(ErrorCode::PolicyViolation, "too many partitions in one request; split it");
        }
        let first = known.partitions.first().and_then(|ix| image.partition(*ix));
        let factor = first.map_or(1, |p| p.state.replicas.len() as u32);
        let placements = place(plan, self.next_partition, total - have, factor)?;
        self.partitions_left -= total - have;
        self.push_partitions(plan, topic, have, placements);
        Ok(())
    }
}
