//! Random messages of every kind, from a seed. They are such as the programs send: ranges of batches one after another, a
//! position never before the log's first offset.

use bytes::Bytes;
use mirrorlab_model::ids::*;
use mirrorlab_model::ports::Entropy;
use mirrorlab_model::wire::errors::ErrorCode;
use mirrorlab_model::wire::messages::*;
use std::sync::Arc;

#[path = "dice_mirrors.rs"]
mod mirrors;
use mirrors::{mirror_body, MIRRORS};

/// Draws, one after another.
pub struct Dice {
    entropy: Entropy,
    drawn: u64,
}

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self { entropy: Entropy(seed), drawn: 0 }
    }
    pub fn below(&mut self, below: u64) -> u64 {
        self.drawn += 1;
        self.entropy.below(0, self.drawn, below)
    }
    pub fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
    /// Mostly small; sometimes around where a varint grows.
    pub fn count(&mut self) -> usize {
        match self.below(8) {
            0 => 0,
            1 => 120 + self.below(20) as usize,
            _ => self.below(6) as usize,
        }
    }
    pub fn text(&mut self) -> Arc<str> {
        let len = self.count();
        let first = self.below(26) as usize;
        (0..len).map(|at| char::from(b'a' + ((first + at) % 26) as u8)).collect::<String>().into()
    }
    pub fn maybe_text(&mut self) -> Option<Arc<str>> {
        self.coin().then(|| self.text())
    }
    pub fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.count()).map(|_| item(self)).collect()
    }
    pub fn i64(&mut self) -> i64 {
        self.below(1 << 40) as i64 - 1
    }
    pub fn i32(&mut self) -> i32 {
        self.below(1 << 20) as i32 - 1
    }
    pub fn small(&mut self) -> i32 {
        self.below(5) as i32 - 1
    }
    fn broker(&mut self) -> BrokerId {
        BrokerId(self.small())
    }
    pub fn epoch(&mut self) -> LeaderEpoch {
        LeaderEpoch(self.small())
    }
    pub fn partition(&mut self) -> PartitionIx {
        PartitionIx(self.below(1000) as u32)
    }
    pub fn error(&mut self) -> ErrorCode {
        let code = if self.coin() { 0 } else { self.below(150) as i16 - 1 };
        ErrorCode::from_code(code).unwrap_or(ErrorCode::NotLeaderOrFollower)
    }
    fn node(&mut self) -> NodeId {
        NodeId(self.below(1 << 16) as u16)
    }
    fn blob(&mut self) -> Bytes {
        let len = [0, 100, 126, 127, 16_382, 16_383, 70_000][self.below(7) as usize];
        Bytes::from(vec![self.below(256) as u8; len])
    }
    fn hint(&mut self) -> Option<LeaderHint> {
        let (leader, epoch, known) = (self.broker(), self.epoch(), self.coin());
        // No leader has no address.
        let node = (known && leader != BrokerId::NONE).then(|| self.node());
        self.coin().then_some(LeaderHint { leader, epoch, node })
    }
    fn epoch_end(&mut self) -> EpochEnd {
        if self.below(4) == 0 {
            EpochEnd { epoch: LeaderEpoch::NONE, end: Offset::UNKNOWN }
        } else {
            EpochEnd { epoch: self.epoch(), end: Offset(self.i64()) }
        }
    }
    pub fn named(&mut self) -> NamedResult {
        NamedResult { name: self.text(), error: self.error(), message: self.maybe_text() }
    }
    pub fn id(&mut self) -> TopicId {
        TopicId(u128::from(self.below(u64::MAX)) << 64 | u128::from(self.below(1 << 20)))
    }
    fn groups(&mut self, parts: usize) -> u32 {
        if parts == 0 {
            0
        } else {
            1 + self.below(parts as u64) as u32
        }
    }
    pub fn pair(&mut self) -> (Arc<str>, Arc<str>) {
        (self.text(), self.text())
    }
    fn fetch_answer(&mut self, batches: &mut Vec<Bytes>) -> FetchPartAnswer {
        let first_batch = batches.len() as u32;
        for _ in 0..self.below(4) {
            batches.push(self.blob());
        }
        FetchPartAnswer {
            slot: self.below(1 << 20) as u32,
            partition: self.partition(),
            error: self.error(),
            high_watermark: Offset(self.i64()),
            last_stable: Offset(self.i64()),
            log_start: Offset(self.i64()),
            diverging: self.coin().then(|| self.epoch_end()),
            current_leader: self.hint(),
            misaligned: self.coin(),
            mirror_leader_epoch: self.epoch(),
            first_batch,
            batch_count: batches.len() as u32 - first_batch,
            aborted: self.coin().then(|| {
                Box::new(self.list(|d| AbortedTransaction { producer: ProducerId(d.i64()), first: Offset(d.i64()) }))
            }),
        }
    }
    fn topic_metadata(&mut self) -> TopicMetadata {
        let partition = |d: &mut Self| PartitionMetadata {
            number: d.below(300) as u32,
            partition: d.partition(),
            leader: d.broker(),
            leader_epoch: d.epoch(),
            replicas: d.list(Self::broker).into(),
            isr: d.list(Self::broker).into(),
        };
        TopicMetadata { error: self.error(), name: self.text(), id: self.id(), partitions: self.list(partition) }
    }
    pub fn new_topic(&mut self) -> NewTopic {
        NewTopic {
            name: self.text(),
            mirror_id: None,
            partitions: self.below(100) as u32,
            replication_factor: self.small() as i16,
            assignments: self.list(|d| d.list(Self::broker)),
            configs: self.list(Self::pair),
        }
    }
    fn resource(&mut self) -> ConfigResource {
        match self.below(4) {
            0 => ConfigResource::Broker(None),
            1 => ConfigResource::Broker(Some(BrokerId(self.i32()))),
            2 => ConfigResource::ClusterMirror(self.text()),
            _ => ConfigResource::Topic(self.text()),
        }
    }

    fn fetch(&mut self) -> FetchRequest {
        let parts = self.list(|d| FetchPart {
            slot: d.below(1 << 20) as u32,
            partition: d.partition(),
            fetch_offset: Offset(d.i64()),
            current_leader_epoch: d.epoch(),
            last_fetched_epoch: d.epoch(),
            log_start: Offset(d.i64()),
            max_bytes: d.below(1 << 31) as u32,
            mirror_leader_epoch: d.epoch(),
            aligned: d.epoch(),
        });
        FetchRequest {
            replica: self.broker(),
            broker_epoch: BrokerEpoch(i64::from(self.small())),
            max_wait_ms: self.below(1000) as u32,
            min_bytes: self.below(9) as u32,
            max_bytes: self.below(1 << 30) as u32,
            isolation: self.isolation(),
            session_id: self.below(u64::from(u32::MAX)) as u32,
            session_epoch: self.i32(),
            topic_groups: self.groups(parts.len()),
            parts,
            forgotten: self.list(|d| d.below(9) as u32),
        }
    }

    fn fetched(&mut self) -> FetchResponse {
        let mut batches = Vec::new();
        let parts = self.list(|d| d.fetch_answer(&mut batches));
        let session_id = self.below(1 << 31) as u32;
        FetchResponse { error: self.error(), session_id, topic_groups: self.groups(parts.len()), parts, batches }
    }

    fn isolation(&mut self) -> Isolation {
        if self.coin() {
            Isolation::ReadCommitted
        } else {
            Isolation::ReadUncommitted
        }
    }

    fn produced(&mut self) -> ProduceResponse {
        let parts = self.list(|d| ProducePartAnswer {
            partition: d.partition(),
            error: d.error(),
            base: Offset(d.i64()),
            log_start: Offset(d.i64()),
            current_leader: d.hint(),
        });
        ProduceResponse { topic_groups: self.groups(parts.len()), parts }
    }
}

/// How many kinds of stock messages there are.
pub const STOCK: u64 = 54;
/// How many kinds [`message`] knows.
pub const KINDS: u64 = STOCK + MIRRORS;

/// A random message of a kind; the stock ones come first.
#[allow(clippy::too_many_lines)] // one arm per kind
pub fn message(kind: u64, d: &mut Dice) -> Message {
    let body: Body = match kind {
        0 => {
            let parts = d.list(|d| ProducePart { partition: d.partition(), batches: d.blob() });
            ProduceRequest {
                transactional_id: d.maybe_text(),
                acks: d.small() as i16,
                timeout_ms: d.below(1 << 31) as u32,
                topic_groups: d.groups(parts.len()),
                parts,
            }
            .into()
        }
        1 => d.produced().into(),
        2 => d.fetch().into(),
        3 => d.fetched().into(),
        4 => RaftFetchRequest {
            replica: d.small().max(0),
            directory: if d.coin() { d.id().0 } else { 0 },
            current_epoch: d.epoch(),
            fetch_offset: MetadataOffset(d.i64()),
            last_fetched_epoch: d.epoch(),
            high_watermark: MetadataOffset(d.i64()),
            max_wait_ms: d.below(1000) as u32,
            max_bytes: d.below(1 << 31) as u32,
        }
        .into(),
        5 => RaftFetchResponse {
            error: d.error(),
            leader: d.coin().then(|| d.node()),
            epoch: d.epoch(),
            high_watermark: MetadataOffset(d.i64()),
            diverging: d.coin().then(|| d.epoch_end()),
            snapshot: d.coin().then(|| (MetadataOffset(d.below(1 << 40) as i64), LeaderEpoch(d.below(9) as i32))),
            batches: d.list(Dice::blob),
        }
        .into(),
        6 => FetchSnapshotRequest {
            replica: d.small(),
            snapshot: (MetadataOffset(d.i64()), d.epoch()),
            position: d.below(1 << 40),
            max_bytes: d.below(1 << 31) as u32,
        }
        .into(),
        7 => FetchSnapshotResponse {
            error: d.error(),
            size: d.below(1 << 40),
            position: d.below(1 << 40),
            bytes: d.list(Dice::blob),
        }
        .into(),
        8 => ListOffsetsRequest {
            replica: d.broker(),
            isolation: d.isolation(),
            parts: d.list(|d| OffsetQuestion {
                partition: d.partition(),
                current_leader_epoch: d.epoch(),
                timestamp: d.i64() - 1,
            }),
        }
        .into(),
        9 => ListOffsetsResponse {
            parts: d.list(|d| OffsetAnswer {
                partition: d.partition(),
                error: d.error(),
                timestamp: d.i64(),
                offset: Offset(d.i64()),
                leader_epoch: d.epoch(),
            }),
        }
        .into(),
        10 => OffsetForLeaderEpochRequest {
            replica: d.broker(),
            parts: d.list(|d| EpochQuestion {
                partition: d.partition(),
                current_leader_epoch: d.epoch(),
                epoch: d.epoch(),
            }),
        }
        .into(),
        11 => OffsetForLeaderEpochResponse {
            parts: d.list(|d| EpochAnswer { partition: d.partition(), error: d.error(), end: d.epoch_end() }),
        }
        .into(),
        12 => DeleteRecordsRequest { parts: d.list(|d| (d.partition(), Offset(d.i64()))) }.into(),
        13 => DeleteRecordsResponse { parts: d.list(|d| (d.partition(), d.error(), Offset(d.i64()))) }.into(),
        14 => MetadataRequest { topics: d.coin().then(|| d.list(Dice::text)) }.into(),
        15 => MetadataResponse {
            cluster_id: d.text(),
            brokers: d.list(|d| (d.broker(), d.node())),
            topics: d.list(Dice::topic_metadata),
        }
        .into(),
        16 => InitProducerIdRequest {
            transactional_id: d.maybe_text(),
            timeout_ms: d.below(1 << 31) as u32,
            producer: ProducerId(d.i64()),
            epoch: ProducerEpoch(d.small() as i16),
        }
        .into(),
        17 => InitProducerIdResponse {
            error: d.error(),
            producer: ProducerId(d.i64()),
            epoch: ProducerEpoch(d.small() as i16),
        }
        .into(),
        18 => BrokerRegistrationRequest {
            broker: d.broker(),
            cluster_id: d.text(),
            incarnation: d.id().0,
            node: d.node(),
            previous_epoch: BrokerEpoch(d.i64()),
        }
        .into(),
        19 => {
            BrokerRegistrationResponse { error: d.error(), incarnation: d.id().0, epoch: BrokerEpoch(d.i64()) }.into()
        }
        20 => BrokerHeartbeatRequest {
            broker: d.broker(),
            epoch: BrokerEpoch(d.i64()),
            metadata_offset: MetadataOffset(d.i64()),
            want_fence: d.coin(),
            want_shutdown: d.coin(),
        }
        .into(),
        21 => BrokerHeartbeatResponse { error: d.error(), fenced: d.coin(), may_shutdown: d.coin() }.into(),
        22 => AlterPartitionRequest {
            broker: d.broker(),
            broker_epoch: BrokerEpoch(d.i64()),
            parts: d.list(|d| IsrProposal {
                partition: d.partition(),
                leader_epoch: d.epoch(),
                partition_epoch: PartitionEpoch(d.i32()),
                isr: d.list(|d| (d.broker(), BrokerEpoch(d.i64()))).into(),
                recovered: d.coin(),
            }),
        }
        .into(),
        23 => AlterPartitionResponse {
            error: d.error(),
            parts: d.list(|d| IsrVerdict {
                partition: d.partition(),
                error: d.error(),
                leader: d.broker(),
                leader_epoch: d.epoch(),
                isr: d.list(Dice::broker).into(),
                partition_epoch: PartitionEpoch(d.i32()),
            }),
        }
        .into(),
        24 => AllocateProducerIdsRequest { broker: d.broker(), broker_epoch: BrokerEpoch(d.i64()) }.into(),
        25 => {
            AllocateProducerIdsResponse { error: d.error(), first: ProducerId(d.i64()), count: d.below(1 << 31) as u32 }
                .into()
        }
        26 => CreateTopicsRequest { topics: d.list(Dice::new_topic) }.into(),
        27 => CreateTopicsResponse { topics: d.list(Dice::named) }.into(),
        28 => DeleteTopicsRequest { topics: d.list(Dice::text) }.into(),
        29 => DeleteTopicsResponse { topics: d.list(Dice::named) }.into(),
        30 => CreatePartitionsRequest { topics: d.list(|d| (d.text(), d.below(99) as u32)), for_mirror: false }.into(),
        31 => CreatePartitionsResponse { topics: d.list(Dice::named) }.into(),
        32 => IncrementalAlterConfigsRequest {
            resources: d.list(|d| (d.resource(), d.list(|d| (d.text(), d.maybe_text())))),
        }
        .into(),
        33 => IncrementalAlterConfigsResponse { resources: d.list(Dice::named) }.into(),
        34 => ElectLeadersRequest { unclean: d.coin(), parts: d.list(Dice::partition) }.into(),
        35 => ElectLeadersResponse { parts: d.list(|d| (d.partition(), d.error())) }.into(),
        36 => OffsetCommitRequest { group: d.text(), parts: d.list(|d| (d.partition(), Offset(d.i64()), d.epoch())) }
            .into(),
        37 => OffsetCommitResponse { parts: d.list(|d| (d.partition(), d.error())) }.into(),
        38 => OffsetFetchRequest { group: d.text(), parts: d.list(Dice::partition) }.into(),
        39 => OffsetFetchResponse { error: d.error(), parts: d.list(|d| (d.partition(), Offset(d.i64()), d.epoch())) }
            .into(),
        40..48 => transaction_body(kind, d),
        48..STOCK => quorum_body(kind, d),
        _ => mirror_body(kind - STOCK, d),
    };
    Message { correlation: d.below(1 << 31) as u32, body }
}

fn transaction_body(kind: u64, d: &mut Dice) -> Body {
    match kind {
        40 => {
            let kind = if d.coin() { CoordinatorKind::Group } else { CoordinatorKind::Transaction };
            FindCoordinatorRequest { kind, keys: d.list(Dice::text) }.into()
        }
        41 => FindCoordinatorResponse {
            coordinators: d.list(|d| FoundCoordinator {
                key: d.text(),
                error: d.error(),
                broker: d.broker(),
                node: d.coin().then(|| d.node()),
            }),
        }
        .into(),
        42 => AddPartitionsToTxnRequest {
            transactional_id: d.text(),
            producer: ProducerId(d.i64()),
            epoch: ProducerEpoch(d.small() as i16),
            parts: d.list(Dice::partition),
        }
        .into(),
        43 => AddPartitionsToTxnResponse { parts: d.list(|d| (d.partition(), d.error())) }.into(),
        44 => EndTxnRequest {
            transactional_id: d.text(),
            producer: ProducerId(d.i64()),
            epoch: ProducerEpoch(d.small() as i16),
            commit: d.coin(),
        }
        .into(),
        45 => {
            EndTxnResponse { error: d.error(), producer: ProducerId(d.i64()), epoch: ProducerEpoch(d.small() as i16) }
                .into()
        }
        46 => WriteTxnMarkersRequest {
            markers: d.list(|d| TxnMarker {
                producer: ProducerId(d.i64()),
                epoch: ProducerEpoch(d.small() as i16),
                commit: d.coin(),
                coordinator_epoch: d.small(),
                // The oracle does not know the version that names another; golden bytes stand beside the codec.
                version: 0,
                parts: d.list(Dice::partition),
            }),
        }
        .into(),
        _ => WriteTxnMarkersResponse {
            markers: d.list(|d| TxnMarkerAnswer {
                producer: ProducerId(d.i64()),
                parts: d.list(|d| (d.partition(), d.error())),
            }),
        }
        .into(),
    }
}

fn quorum_body(kind: u64, d: &mut Dice) -> Body {
    let controller = |d: &mut Dice| NodeId(d.below(1 << 16) as u16);
    let leader = |d: &mut Dice| d.coin().then(|| NodeId(d.below(1 << 16) as u16));
    match kind {
        48 => VoteRequest {
            voter: controller(d),
            voter_directory: d.id().0,
            candidate: controller(d),
            candidate_directory: d.id().0,
            epoch: d.epoch(),
            last_epoch: d.epoch(),
            end: MetadataOffset(d.i64()),
            pre_vote: d.coin(),
        }
        .into(),
        49 => VoteResponse { error: d.error(), leader: leader(d), epoch: d.epoch(), granted: d.coin() }.into(),
        50 => BeginQuorumEpochRequest {
            voter: controller(d),
            voter_directory: d.id().0,
            leader: controller(d),
            epoch: d.epoch(),
        }
        .into(),
        51 => BeginQuorumEpochResponse { error: d.error(), leader: leader(d), epoch: d.epoch() }.into(),
        52 => EndQuorumEpochRequest {
            leader: controller(d),
            epoch: d.epoch(),
            successors: d.list(|d| (controller(d), d.id().0)),
        }
        .into(),
        _ => EndQuorumEpochResponse { error: d.error(), leader: leader(d), epoch: d.epoch() }.into(),
    }
}
