//! Records of the metadata log. Names and meanings follow Kafka's metadata schemas; the mirror ones are KIP-1279's.
//! Dense indices are part of the records: the controller gives them, every replay agrees.

use crate::ids::{
    BrokerEpoch, BrokerId, LeaderEpoch, MirrorIx, NodeId, PartitionEpoch, PartitionIx, ProducerId, TopicId, TopicIx,
};
use crate::states::DesiredState;
use crate::wire::messages::ConfigResource;
use smallvec::SmallVec;
use std::sync::Arc;

/// A short list of brokers.
pub type Brokers = SmallVec<[BrokerId; 4]>;

/// One record of the metadata log.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A broker registered (fenced until it catches up). Its epoch is the offset of this record.
    RegisterBroker {
        /// Its id.
        broker: BrokerId,
        /// Its address.
        node: NodeId,
        /// Its process start.
        incarnation: u128,
        /// Its epoch.
        epoch: BrokerEpoch,
    },
    /// A broker's fencing or shutdown state changed.
    BrokerChange {
        /// Its id.
        broker: BrokerId,
        /// Its epoch.
        epoch: BrokerEpoch,
        /// Fenced from now on.
        fenced: bool,
        /// In controlled shutdown from now on.
        shutting_down: bool,
    },
    /// A topic was created.
    Topic {
        /// Its index.
        topic: TopicIx,
        /// Its id.
        id: TopicId,
        /// Its name.
        name: Arc<str>,
    },
    /// A partition was created.
    Partition {
        /// Its index.
        partition: PartitionIx,
        /// Its topic.
        topic: TopicIx,
        /// Its number within the topic.
        number: u32,
        /// Its whole registration.
        state: PartitionState,
    },
    /// A partition changed: only what is `Some` changes. The leader epoch is explicit (PartitionChangeRecord v3, C28).
    PartitionChange {
        /// Which.
        partition: PartitionIx,
        /// New leader, or none.
        leader: Option<BrokerId>,
        /// New leader epoch.
        leader_epoch: Option<LeaderEpoch>,
        /// New ISR.
        isr: Option<Brokers>,
        /// New ELR.
        elr: Option<Brokers>,
        /// New last known ELR.
        last_known_elr: Option<Brokers>,
        /// New recovery flag.
        recovering: Option<bool>,
        /// New replica list.
        replicas: Option<Brokers>,
    },
    /// A topic was removed with all its partitions.
    RemoveTopic {
        /// Its index.
        topic: TopicIx,
    },
    /// A config entry was set (`Some`) or removed.
    Config {
        /// Whose.
        resource: ConfigResource,
        /// Key.
        key: Arc<str>,
        /// Value.
        value: Option<Arc<str>>,
    },
    /// Producer ids below `next` are given away.
    ProducerIds {
        /// To whom.
        broker: BrokerId,
        /// First free id.
        next: ProducerId,
    },
    /// A mirror was created (its configs follow) and has this index.
    Mirror {
        /// Its index.
        mirror: MirrorIx,
        /// Its name.
        name: Arc<str>,
    },
    /// A topic's membership and desired state (MirrorTopicStateChangeRecord, api key 29).
    MirrorTopicStateChange {
        /// The topic.
        topic: TopicIx,
        /// Its mirror; `None` on deletion.
        mirror: Option<MirrorIx>,
        /// What the operator wants.
        desired: DesiredState,
    },
    /// The first record of a new controller leader's term.
    LeaderChange {
        /// The quorum epoch.
        epoch: LeaderEpoch,
        /// The leader's node.
        leader: NodeId,
    },
    /// Nothing.
    NoOp,
    /// The first record of a snapshot, and found nowhere else: what cannot be told from the records that follow.
    SnapshotHeader {
        /// The quorum's epoch and leader at the snapshot's end.
        epoch: LeaderEpoch,
        /// The quorum's leader then.
        leader: NodeId,
        /// The running hash over all records before the snapshot's end.
        hash: u64,
        /// Indices below are given away, removed things included.
        next_topic: TopicIx,
        /// As before.
        next_partition: PartitionIx,
        /// As before.
        next_mirror: MirrorIx,
    },
}

/// A partition's registration at the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionState {
    /// Replicas, preferred first.
    pub replicas: Brokers,
    /// In-sync replicas.
    pub isr: Brokers,
    /// Eligible leader replicas (KIP-966).
    pub elr: Brokers,
    /// The last known ELR (KIP-966), kept when ISR and ELR run empty.
    pub last_known_elr: Brokers,
    /// Leader or none.
    pub leader: BrokerId,
    /// Raised by every leader change and bump.
    pub leader_epoch: LeaderEpoch,
    /// Raised by every change.
    pub partition_epoch: PartitionEpoch,
    /// After an unclean election, until the leader reports recovery.
    pub recovering: bool,
}
