//! A bench for the mirror room: a manager of a broker that leads everything, its partition of `__mirror_state` too, over a
//! source that the test plays.

use crate::coordinator::routing::STATE_TOPIC;
use crate::guards::Guards;
use crate::ids::{
    BrokerEpoch, BrokerId, ConnId, LeaderEpoch, MetadataOffset, MirrorIx, Nanos, NodeId, Now, Offset, PartitionEpoch,
    PartitionIx, TopicId, TopicIx,
};
use crate::log::{FlushUpto, LogPolicy};
use crate::metadata::configs::BrokerConfig;
use crate::metadata::delta::MetadataDelta;
use crate::metadata::image::MetadataImage;
use crate::metadata::records::{PartitionState, Record};
use crate::mirror::manager::TIMER_MANAGER;
use crate::mirror::{MirrorManager, MirrorTask};
use crate::ports::{Cx, Effect, Entropy, Input, Outbox, Timer};
use crate::replica::channel::ControllerChannel;
use crate::replica::testing::batch;
use crate::replica::waits::Ticket;
use crate::replica::{PartitionSpec, Replicas, TopicPolicy};
use crate::states::{DesiredState, MirrorState};
use crate::testing::MemDisk;
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    Body, ConfigResource, DescribeClusterMirrorsResponse, FetchPartAnswer, FetchResponse, FoundPosition,
    ListClusterMirrorsResponse, ListedMirror, Message, MetadataResponse, PartitionMetadata, TopicMetadata,
};
use bytes::Bytes;
use std::sync::Arc;

pub const ME: BrokerId = BrokerId(1);
/// The only broker of the source.
pub const SOURCE: NodeId = NodeId(4);

fn registration(epoch: i32) -> PartitionState {
    PartitionState {
        replicas: [ME].into_iter().collect(),
        isr: [ME].into_iter().collect(),
        elr: Default::default(),
        last_known_elr: Default::default(),
        leader: ME,
        leader_epoch: LeaderEpoch(epoch),
        partition_epoch: PartitionEpoch(0),
        recovering: false,
    }
}

/// The only partition of `__mirror_state`.
const STATES: u32 = 90;

fn plain(n: u32, name: &str, epoch: i32) -> Vec<Record> {
    let topic = TopicIx(n);
    vec![
        Record::Topic { topic, id: TopicId(u128::from(n)), name: name.into() },
        Record::Partition { partition: PartitionIx(n), topic, number: 0, state: registration(epoch) },
    ]
}

fn starts(n: u32) -> Record {
    let desired = DesiredState::Mirroring;
    Record::MirrorTopicStateChange { topic: TopicIx(n), mirror: Some(MirrorIx(0)), desired }
}

fn policy(image: &MetadataImage, topic: TopicIx) -> TopicPolicy {
    let mirrored = image.mirror_of(topic).is_some();
    TopicPolicy { log: LogPolicy::default(), min_isr: 1, mirrored, read_only: mirrored }
}

/// Every flush that is wanted is done at once; true if there was one.
fn flush(replicas: &mut Replicas, now: Now, cx: &mut Cx<'_>) -> bool {
    let due = replicas.take_flush_due();
    for partition in &due {
        if let Some(target) = replicas.plan_flush(*partition, FlushUpto::End, &mut Vec::new(), cx) {
            replicas.flushed(*partition, target, true, now.mono, cx);
        }
    }
    !due.is_empty()
}

/// What the source says of its own mirrors.
#[derive(Clone, Debug, Default)]
pub struct SourceMirrors {
    pub listed: Vec<ListedMirror>,
    pub positions: Vec<FoundPosition>,
    /// Those of one mirror, where they differ.
    pub positions_of: Vec<(Arc<str>, Vec<FoundPosition>)>,
    /// The verdict of both answers.
    pub error: ErrorCode,
    /// How often it was asked for positions.
    pub asked: u32,
}

impl SourceMirrors {
    fn answer(&mut self, question: &Body) -> Option<Body> {
        let (error, positions) = (self.error, self.positions.clone());
        match question {
            Body::ListClusterMirrorsRequest(_) => {
                Some(ListClusterMirrorsResponse { error, mirrors: self.listed.clone() }.into())
            }
            Body::DescribeClusterMirrorsRequest(asked) => {
                self.asked += 1;
                let about = |name| asked.mirrors.as_ref().is_some_and(|mirrors| mirrors.contains(name));
                let own = self.positions_of.iter().find(|(name, _)| about(name));
                let positions = own.map_or(positions, |(_, positions)| positions.clone());
                Some(DescribeClusterMirrorsResponse { error, mirrors: Vec::new(), positions }.into())
            }
            _ => None,
        }
    }
}

/// A manager of a broker that leads everything; every wake runs at once.
pub struct Rig {
    pub manager: MirrorManager,
    pub image: MetadataImage,
    pub replicas: Replicas,
    pub controller: ControllerChannel,
    pub disk: MemDisk,
    pub guards: Guards,
    pub connects: Vec<(ConnId, NodeId)>,
    pub sent: Vec<(ConnId, Message)>,
    /// What was traced.
    pub trace: Vec<Trace>,
    /// Its one broker is asked, and answers at once.
    pub source: SourceMirrors,
    /// Every partition's leader epoch in the source's answers.
    pub source_epoch: i32,
    pub now: Now,
    coordinates: bool,
    next_conn: u64,
}

impl Rig {
    /// One whose states have no coordinator: nothing is done after a task but what the test does.
    pub fn bare() -> Self {
        let config = BrokerConfig {
            mirror_state_topic_num_partitions: 1,
            mirror_coordinator_append_linger_ms: 0,
            ..BrokerConfig::default()
        };
        let mut rig = Self {
            manager: MirrorManager::new(ME, &config),
            image: MetadataImage::default(),
            replicas: Replicas::new(ME, Nanos::from_secs(30)),
            controller: ControllerChannel::new(vec![NodeId(100)], Timer(1), Nanos::from_secs(30)),
            disk: MemDisk::new(),
            guards: Guards::default(),
            connects: Vec::new(),
            sent: Vec::new(),
            trace: Vec::new(),
            source: SourceMirrors::default(),
            source_epoch: 0,
            now: Now { mono: Nanos::from_secs(1), wall_ms: 1_000 },
            coordinates: false,
            next_conn: 1,
        };
        let servers = Record::Config {
            resource: ConfigResource::ClusterMirror("m".into()),
            key: "bootstrap.servers".into(),
            value: Some("4".into()),
        };
        rig.metadata(&[Record::Mirror { mirror: MirrorIx(0), name: "m".into() }, servers]);
        rig
    }

    pub fn new() -> Self {
        let mut rig = Self { coordinates: true, ..Self::bare() };
        let (incarnation, epoch) = (Default::default(), BrokerEpoch(1));
        rig.metadata(&[Record::RegisterBroker { broker: ME, node: NodeId(1), incarnation, epoch }]);
        rig.metadata(&plain(STATES, STATE_TOPIC, 0));
        rig
    }

    /// Edits the mirror's config.
    pub fn config(&mut self, key: &str, value: &str) {
        let resource = ConfigResource::ClusterMirror("m".into());
        self.metadata(&[Record::Config { resource, key: key.into(), value: Some(value.into()) }]);
    }

    /// Lets something happen, and everything that it wakes.
    pub fn with(&mut self, call: impl FnOnce(&mut MirrorManager, &mut MirrorTask<'_>, &mut Cx<'_>, Now)) {
        let mut out = Outbox::default();
        let Self { manager, image, replicas, controller, disk, guards, next_conn, now, coordinates, .. } = self;
        let cluster_id = &"destination".into();
        let mut task = MirrorTask { image, cluster_id, replicas, controller };
        let entropy = Entropy(1);
        let mut cx = Cx { node: NodeId(1), disk, guards, out: &mut out, entropy, next_conn };
        call(manager, &mut task, &mut cx, *now);
        loop {
            if *coordinates {
                manager.after(*now, &mut task, &mut cx);
            }
            task.replicas.settle_lowered();
            if !flush(task.replicas, *now, &mut cx) {
                break;
            }
        }
        self.take(out);
    }

    fn take(&mut self, out: Outbox) {
        self.trace.extend(out.trace.iter().map(|event| event.trace));
        for effect in out.effects {
            match effect {
                Effect::Wake(lane) => self.with(|manager, task, cx, now| manager.run(now, lane, task, cx)),
                Effect::Connect { conn, .. } if self.manager.inquires_on(conn) => self.opened(conn),
                Effect::Connect { conn, to } => self.connects.push((conn, to)),
                Effect::Send { conn, message } => match self.source.answer(&message.body) {
                    Some(body) => self.reply(conn, message.correlation, body),
                    None => self.sent.push((conn, message)),
                },
                Effect::SetTimer { timer: TIMER_MANAGER, at } if at <= self.now.mono => self.timer(TIMER_MANAGER),
                _ => {}
            }
        }
    }

    pub fn metadata(&mut self, records: &[Record]) {
        let mut delta = MetadataDelta::default();
        for record in records {
            let MetadataOffset(end) = self.image.end();
            self.image.apply(end, record, &mut delta);
        }
        self.with(|manager, task, cx, now| {
            for ix in delta.partitions.iter().copied() {
                let entry = task.image.partition(ix).expect("just created");
                let (topic, number) = (entry.topic, entry.number);
                task.replicas.set_topic(topic, Some(Arc::new(policy(task.image, topic))));
                let topic_id = task.image.topic(topic).expect("its topic").id;
                let spec = PartitionSpec { partition: ix, topic, topic_id, number, state: &entry.state };
                task.replicas.apply(&spec, None, now, cx).expect("a log");
            }
            for topic in delta.mirror_topics.iter().copied() {
                task.replicas.set_topic(topic, Some(Arc::new(policy(task.image, topic))));
            }
            manager.on_metadata(now, &delta, task, cx);
        });
    }

    /// A topic of one partition, with the topic's index for all its ids.
    pub fn mirrored_topic(&mut self, n: u32, name: &str) {
        self.mirrored_topic_in(n, name, 0);
    }

    /// The same, led here in this epoch.
    pub fn mirrored_topic_in(&mut self, n: u32, name: &str, epoch: i32) {
        self.metadata(&[plain(n, name, epoch), vec![starts(n)]].concat());
    }

    /// Topic `n` is led here in this epoch from now on.
    pub fn new_term(&mut self, n: u32, epoch: i32) {
        self.metadata(&[Record::PartitionChange {
            partition: PartitionIx(n),
            leader: None,
            leader_epoch: Some(LeaderEpoch(epoch)),
            isr: None,
            elr: None,
            last_known_elr: None,
            recovering: None,
            replicas: None,
        }]);
    }

    /// A topic of one partition that is not mirrored yet.
    pub fn plain_topic(&mut self, n: u32, name: &str) {
        self.metadata(&plain(n, name, 0));
    }

    /// It is mirrored from now on.
    pub fn start(&mut self, n: u32) {
        self.metadata(&[starts(n)]);
    }

    /// Records that a client writes to it.
    pub fn produce(&mut self, n: u32, records: usize) {
        let batch = batch(records, 1);
        let ticket = Ticket { request: 0, generation: 0, part: 0 };
        self.with(|_, task, cx, now| {
            let produced = task.replicas.produce(PartitionIx(n), &batch, 1, ticket, now, cx);
            assert!(produced.answer.error.is_none(), "{:?}", produced.answer);
        });
    }

    /// Answers the last request of a kind; returns it.
    pub fn answer_to(&mut self, is_it: impl Fn(&Body) -> bool, body: impl Into<Body>) -> Body {
        let at = self.sent.iter().rposition(|(_, m)| is_it(&m.body)).expect("a request");
        let (conn, message) = self.sent.remove(at);
        self.reply(conn, message.correlation, body.into());
        message.body
    }

    pub fn opened(&mut self, conn: ConnId) {
        let input = Input::Opened { conn, peer: SOURCE, inbound: false };
        self.with(|manager, _, cx, now| manager.on_input(now, input, cx));
    }

    /// The names in the last question, which is answered with what the source has of these topics.
    pub fn answer(&mut self, known: &[(u32, &str)]) -> Vec<Arc<str>> {
        let is_question = |(_, m): &(ConnId, Message)| matches!(m.body, Body::MetadataRequest(_));
        let at = self.sent.iter().rposition(is_question).expect("a question");
        let (conn, message) = self.sent.remove(at);
        let Body::MetadataRequest(question) = message.body else { unreachable!("looked at") };
        let names = question.topics.expect("by name");
        let leader_epoch = LeaderEpoch(self.source_epoch);
        let topic = |name: &Arc<str>| {
            let id = known.iter().find(|(_, n)| *n == &**name).map(|(n, _)| *n)?;
            let partition = PartitionMetadata {
                number: 0,
                partition: PartitionIx(id),
                leader: BrokerId(9),
                leader_epoch,
                replicas: Default::default(),
                isr: Default::default(),
            };
            let id = TopicId(u128::from(id));
            Some(TopicMetadata { error: ErrorCode::None, name: name.clone(), id, partitions: vec![partition] })
        };
        let answer = MetadataResponse {
            cluster_id: "source".into(),
            brokers: vec![(BrokerId(9), SOURCE)],
            topics: names.iter().filter_map(topic).collect(),
        };
        self.reply(conn, message.correlation, answer.into());
        names
    }

    /// An answer arrives.
    pub fn reply(&mut self, conn: ConnId, correlation: u32, body: Body) {
        let input = Input::Message { conn, message: Message { correlation, body } };
        self.with(|manager, _, cx, now| manager.on_input(now, input, cx));
    }

    /// Time passes, and every timer of the room is due.
    pub fn pass(&mut self, seconds: u64) {
        self.now.mono = self.now.mono + Nanos::from_secs(seconds);
        for nth in 0..=self.manager.fetchers.len() as u64 {
            self.timer(Timer(TIMER_MANAGER.0 + nth));
        }
    }

    fn timer(&mut self, timer: Timer) {
        self.with(|manager, _, cx, now| manager.on_input(now, Input::Timer(timer), cx));
    }

    /// Topic `n` is mirrored by a fetcher whose connection stands; its first request is out.
    pub fn fetching(&mut self, n: u32, name: &str, epoch: i32) {
        self.mirrored_topic_in(n, name, epoch);
        self.opened(self.connects[0].0);
        self.answer(&[(n, name)]);
        let (conn, to) = *self.connects.last().expect("a fetcher's connection");
        assert_eq!(to, SOURCE);
        self.opened(conn);
    }

    /// The last request that was sent.
    pub fn last(&self) -> &(ConnId, Message) {
        self.sent.last().expect("a request")
    }

    /// Answers the fetch that was sent last: batches of partition 0, under this high watermark.
    pub fn fetched(&mut self, high_watermark: i64, batches: &[Bytes]) {
        let (conn, message) = self.sent.pop().expect("a request");
        let Body::FetchRequest(asked) = message.body else { panic!("{message:?}") };
        let part = FetchPartAnswer {
            slot: 0,
            partition: PartitionIx(0),
            error: ErrorCode::None,
            high_watermark: Offset(high_watermark),
            last_stable: Offset(high_watermark),
            log_start: Offset(0),
            diverging: None,
            current_leader: None,
            mirror_leader_epoch: LeaderEpoch::NONE,
            misaligned: false,
            first_batch: 0,
            batch_count: batches.len() as u32,
            aborted: None,
        };
        let session_id = asked.session_id.max(1);
        let answer =
            FetchResponse { session_id, parts: vec![part], batches: batches.to_vec(), ..FetchResponse::default() };
        self.reply(conn, message.correlation, answer.into());
    }

    /// The end of the local log of partition 0.
    pub fn end(&self) -> i64 {
        self.replicas.log(PartitionIx(0)).expect("a log").end().0
    }

    pub fn state(&self, n: u32) -> (MirrorState, i16) {
        self.manager.part(PartitionIx(n)).map(|p| (p.state, p.attempt)).expect("a mirrored partition")
    }
}
