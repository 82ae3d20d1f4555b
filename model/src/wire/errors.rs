//! Error codes of the Kafka protocol, with their numbers; the mirror ones as the proposal's fork numbers them (spec 8.15,
//! provisional).

macro_rules! codes {
    ($( $(#[$doc:meta])* $name:ident = $code:literal ),* $(,)?) => {
        /// An answer's verdict. Names and numbers are Kafka's.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(i16)]
        pub enum ErrorCode { $( $(#[$doc])* $name = $code ),* }
        impl ErrorCode {
            /// All codes.
            pub const ALL: &'static [Self] = &[ $( Self::$name ),* ];
            /// Finds a code by its number.
            #[must_use]
            pub const fn from_code(code: i16) -> Option<Self> {
                match code { $( $code => Some(Self::$name), )* _ => None }
            }
        }
    };
}

codes! {
    /// Unexpected server error.
    UnknownServerError = -1,
    /// No error.
    #[default]
    None = 0,
    /// The requested offset is not within the log.
    OffsetOutOfRange = 1,
    /// A batch failed its CRC or is malformed.
    CorruptMessage = 2,
    /// Unknown topic or partition.
    UnknownTopicOrPartition = 3,
    /// The partition has no leader now.
    LeaderNotAvailable = 5,
    /// This broker does not lead, or does not host, the partition.
    NotLeaderOrFollower = 6,
    /// Timed out on the server.
    RequestTimedOut = 7,
    /// A batch is larger than the topic allows.
    MessageTooLarge = 10,
    /// The coordinator is loading.
    CoordinatorLoadInProgress = 14,
    /// The coordinator is not available.
    CoordinatorNotAvailable = 15,
    /// This broker is not the coordinator.
    NotCoordinator = 16,
    /// Fewer in-sync replicas than `min.insync.replicas`: nothing was appended.
    NotEnoughReplicas = 19,
    /// As before, found after the append.
    NotEnoughReplicasAfterAppend = 20,
    /// Acks is not −1, 0 or 1.
    InvalidRequiredAcks = 21,
    /// The topic name is not legal.
    InvalidTopic = 17,
    /// Not authorised for the topic.
    TopicAuthorizationFailed = 29,
    /// Not authorised for the cluster.
    ClusterAuthorizationFailed = 31,
    /// The version is not supported.
    UnsupportedVersion = 35,
    /// The topic exists.
    TopicAlreadyExists = 36,
    /// The partition count is invalid.
    InvalidPartitions = 37,
    /// The replication factor is invalid, or there are too few live brokers.
    InvalidReplicationFactor = 38,
    /// The assignment is invalid.
    InvalidReplicaAssignment = 39,
    /// The configuration is invalid.
    InvalidConfig = 40,
    /// This node is not the active controller.
    NotController = 41,
    /// The request is malformed or not allowed here.
    InvalidRequest = 42,
    /// A limit of the cluster was exceeded.
    PolicyViolation = 44,
    /// Sequence gap.
    OutOfOrderSequenceNumber = 45,
    /// The sequence was already appended.
    DuplicateSequenceNumber = 46,
    /// A newer producer with this id exists.
    InvalidProducerEpoch = 47,
    /// A batch does not fit the producer's open transaction.
    InvalidTxnState = 48,
    /// The producer id is not the one of the transactional id.
    InvalidProducerIdMapping = 49,
    /// The transaction timeout is longer than the broker allows.
    InvalidTransactionTimeout = 50,
    /// The transaction before is not quite over, or another request for it is under way.
    ConcurrentTransactions = 51,
    /// A newer transaction coordinator exists.
    TransactionCoordinatorFenced = 52,
    /// Not authorised for the transactional id.
    TransactionalIdAuthorizationFailed = 53,
    /// Nothing was done about this one, because of another one's error.
    OperationNotAttempted = 55,
    /// The log directory failed.
    KafkaStorageError = 56,
    /// The producer id is not known here.
    UnknownProducerId = 59,
    /// The fetch session is gone.
    FetchSessionIdNotFound = 70,
    /// The fetch session's epoch does not fit.
    InvalidFetchSessionEpoch = 71,
    /// The request's leader epoch is older than the broker's.
    FencedLeaderEpoch = 74,
    /// The request's leader epoch is newer than the broker's.
    UnknownLeaderEpoch = 75,
    /// The broker's registration epoch is stale.
    StaleBrokerEpoch = 77,
    /// The offset is not available yet (KIP-207).
    OffsetNotAvailable = 78,
    /// The preferred leader is not available.
    PreferredLeaderNotAvailable = 80,
    /// No eligible leader.
    EligibleLeadersNotAvailable = 83,
    /// No election needed.
    ElectionNotNeeded = 84,
    /// The record is invalid.
    InvalidRecord = 87,
    /// The producer was fenced.
    ProducerFenced = 90,
    /// The broker id is registered by a live broker.
    DuplicateBrokerRegistration = 101,
    /// The broker id is not registered.
    BrokerIdNotRegistered = 102,
    /// The topic id of the request is not the topic's.
    InconsistentTopicId = 103,
    /// The cluster id of the request is not this cluster's.
    InconsistentClusterId = 104,
    /// Unknown topic id.
    UnknownTopicId = 100,
    /// The partition epoch of an AlterPartition is stale.
    InvalidUpdateVersion = 95,
    /// The position is not in the leader's log.
    PositionOutOfRange = 99,
    /// A proposed in-sync replica may not be one (KIP-841, 903).
    IneligibleReplica = 107,
    /// The leader has a newer state than the controller's answer.
    NewLeaderElected = 108,
    /// The snapshot is not there.
    SnapshotNotFound = 98,
    /// A stale leader epoch in a raft request.
    FencedStateEpoch = 124,
    /// A message of the quorum is for a voter with another disk (KIP-853).
    InvalidVoterKey = 125,
    /// Client writes are refused: the topic is a mirror.
    ReadOnlyTopic = 134,
    /// A mirror of that name exists.
    ClusterMirrorAlreadyExists = 136,
    /// No mirror of that name.
    UnknownClusterMirror = 137,
    /// The topic belongs to another mirror.
    TopicAlreadyInClusterMirror = 138,
    /// The topic does not belong to this mirror.
    TopicNotInClusterMirror = 139,
    /// The topic is paused.
    MirrorTopicAlreadyPaused = 140,
    /// The topic is not paused.
    MirrorTopicNotPaused = 141,
    /// The topic is stopped or being stopped.
    MirrorTopicBeingStopped = 142,
    /// The mirror has active topics.
    ClusterMirrorNotEmpty = 143,
    /// Not authorised for the mirror.
    ClusterMirrorAuthorizationFailed = 144,
    /// A state changed since it was checked, or does not allow the command.
    InvalidClusterMirrorStates = 145,
    /// The topic is not stopped.
    MirrorTopicNotStopped = 146,
}

impl ErrorCode {
    /// True for [`ErrorCode::None`].
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::None
    }
    /// Its name as protocol documents spell it: `INVALID_CLUSTER_MIRROR_STATES`.
    #[must_use]
    pub fn name(self) -> String {
        let mut name = String::new();
        for c in format!("{self:?}").chars() {
            if c.is_ascii_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.push(c.to_ascii_uppercase());
        }
        name
    }
    /// Whether a client may send the same again and hope.
    #[must_use]
    pub const fn is_retriable(self) -> bool {
        matches!(
            self,
            Self::UnknownTopicOrPartition
                | Self::LeaderNotAvailable
                | Self::NotLeaderOrFollower
                | Self::RequestTimedOut
                | Self::CoordinatorLoadInProgress
                | Self::CoordinatorNotAvailable
                | Self::NotCoordinator
                | Self::NotEnoughReplicas
                | Self::NotEnoughReplicasAfterAppend
                | Self::NotController
                | Self::KafkaStorageError
                | Self::FetchSessionIdNotFound
                | Self::InvalidFetchSessionEpoch
                | Self::FencedLeaderEpoch
                | Self::UnknownLeaderEpoch
                | Self::OffsetNotAvailable
                | Self::UnknownTopicId
                | Self::InconsistentTopicId
                | Self::CorruptMessage
                | Self::ConcurrentTransactions
        )
    }
}
