//! Who waits for an answer of the source, and for which one.

use crate::guards::Guards;
use crate::ids::{
    BrokerId, ConnId, LeaderEpoch, MetadataOffset, MirrorIx, Nanos, NodeId, Now, PartitionEpoch, PartitionIx, TopicId,
    TopicIx,
};
use crate::log::LogPolicy;
use crate::metadata::configs::BrokerConfig;
use crate::metadata::delta::MetadataDelta;
use crate::metadata::image::MetadataImage;
use crate::metadata::records::{PartitionState, Record};
use crate::mirror::{MirrorManager, MirrorTask};
use crate::ports::{Cx, Effect, Entropy, Input, Outbox, Timer};
use crate::replica::channel::ControllerChannel;
use crate::replica::{PartitionSpec, Replicas, TopicPolicy};
use crate::states::{DesiredState, MirrorState};
use crate::testing::MemDisk;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{Body, ConfigResource, Message, MetadataResponse, PartitionMetadata, TopicMetadata};
use std::sync::Arc;

const ME: BrokerId = BrokerId(1);
const SOURCE: NodeId = NodeId(4);

fn registration() -> PartitionState {
    PartitionState {
        replicas: [ME].into_iter().collect(),
        isr: [ME].into_iter().collect(),
        elr: Default::default(),
        last_known_elr: Default::default(),
        leader: ME,
        leader_epoch: LeaderEpoch(0),
        partition_epoch: PartitionEpoch(0),
        recovering: false,
    }
}

/// A manager of a broker that leads everything; every wake runs at once.
struct Rig {
    manager: MirrorManager,
    image: MetadataImage,
    replicas: Replicas,
    controller: ControllerChannel,
    disk: MemDisk,
    guards: Guards,
    connects: Vec<(ConnId, NodeId)>,
    sent: Vec<(ConnId, Message)>,
    now: Now,
    next_conn: u64,
}

impl Rig {
    fn new() -> Self {
        let mut rig = Self {
            manager: MirrorManager::new(ME, &BrokerConfig::default()),
            image: MetadataImage::default(),
            replicas: Replicas::new(ME, Nanos::from_secs(30)),
            controller: ControllerChannel::new(vec![NodeId(100)], Timer(1), Nanos::from_secs(30)),
            disk: MemDisk::new(),
            guards: Guards::default(),
            connects: Vec::new(),
            sent: Vec::new(),
            now: Now { mono: Nanos::from_secs(1), wall_ms: 1_000 },
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

    /// Lets something happen, and everything that it wakes.
    fn with(&mut self, call: impl FnOnce(&mut MirrorManager, &mut MirrorTask<'_>, &mut Cx<'_>, Now)) {
        let mut out = Outbox::default();
        let Self { manager, image, replicas, controller, disk, guards, next_conn, now, .. } = self;
        let mut task = MirrorTask { image, replicas, controller };
        let entropy = Entropy(1);
        let mut cx = Cx { node: NodeId(1), disk, guards, out: &mut out, entropy, next_conn };
        call(manager, &mut task, &mut cx, *now);
        self.take(out);
    }

    fn take(&mut self, out: Outbox) {
        for effect in out.effects {
            match effect {
                Effect::Wake(lane) => self.with(|manager, task, cx, now| manager.run(now, lane, task, cx)),
                Effect::Connect { conn, to } => self.connects.push((conn, to)),
                Effect::Send { conn, message } => self.sent.push((conn, message)),
                _ => {}
            }
        }
    }

    fn metadata(&mut self, records: &[Record]) {
        let mut delta = MetadataDelta::default();
        for record in records {
            let MetadataOffset(end) = self.image.end();
            self.image.apply(end, record, &mut delta);
        }
        self.with(|manager, task, cx, now| {
            for ix in delta.partitions.iter().copied() {
                let entry = task.image.partition(ix).expect("just created");
                let (topic, number) = (entry.topic, entry.number);
                let policy = TopicPolicy { log: LogPolicy::default(), min_isr: 1, mirrored: true, read_only: true };
                task.replicas.set_topic(topic, Some(Arc::new(policy)));
                let topic_id = task.image.topic(topic).expect("its topic").id;
                let spec = PartitionSpec { partition: ix, topic, topic_id, number, state: &entry.state };
                task.replicas.apply(&spec, None, now, cx).expect("a log");
            }
            manager.on_metadata(now, &delta, task, cx);
        });
    }

    /// A topic of one partition, with the topic's index for all its ids.
    fn mirrored_topic(&mut self, n: u32, name: &str) {
        let topic = TopicIx(n);
        self.metadata(&[
            Record::Topic { topic, id: TopicId(u128::from(n)), name: name.into() },
            Record::Partition { partition: PartitionIx(n), topic, number: 0, state: registration() },
            Record::MirrorTopicStateChange { topic, mirror: Some(MirrorIx(0)), desired: DesiredState::Mirroring },
        ]);
    }

    fn opened(&mut self, conn: ConnId) {
        let input = Input::Opened { conn, peer: SOURCE, inbound: false };
        self.with(|manager, _, cx, now| manager.on_input(now, input, cx));
    }

    /// The names in the last question, which is answered with what the source has of these topics.
    fn answer(&mut self, known: &[(u32, &str)]) -> Vec<Arc<str>> {
        let is_question = |(_, m): &(ConnId, Message)| matches!(m.body, Body::MetadataRequest(_));
        let at = self.sent.iter().rposition(is_question).expect("a question");
        let (conn, message) = self.sent.remove(at);
        let Body::MetadataRequest(question) = message.body else { unreachable!("looked at") };
        let names = question.topics.expect("by name");
        let topic = |name: &Arc<str>| {
            let id = known.iter().find(|(_, n)| *n == &**name).map(|(n, _)| *n)?;
            let partition = PartitionMetadata {
                number: 0,
                partition: PartitionIx(id),
                leader: BrokerId(9),
                leader_epoch: LeaderEpoch(0),
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
        let message = Message { correlation: message.correlation, body: answer.into() };
        let input = Input::Message { conn, message };
        self.with(|manager, _, cx, now| manager.on_input(now, input, cx));
        names
    }

    fn state(&self, n: u32) -> (MirrorState, i16) {
        self.manager.part(PartitionIx(n)).map(|p| (p.state, p.attempt)).expect("a mirrored partition")
    }
}

/// A topic is started and the source is asked about it; another one is started before the answer comes. The answer says
/// nothing of the second: it has not failed, it was not asked for.
#[test]
fn a_topic_that_was_not_in_the_question_waits_for_the_next_answer() {
    let mut rig = Rig::new();
    rig.mirrored_topic(0, "first");
    let (conn, to) = rig.connects[0];
    assert_eq!(to, SOURCE);
    rig.opened(conn);
    rig.mirrored_topic(1, "second");
    assert_eq!(*rig.answer(&[(0, "first"), (1, "second")]), ["first".into()]);
    assert_eq!(rig.state(0), (MirrorState::Mirroring, 0));
    assert_eq!(rig.state(1), (MirrorState::LogAlignment, 0));
    assert_eq!(*rig.answer(&[(0, "first"), (1, "second")]), ["first".into(), "second".into()]);
    assert_eq!(rig.state(1), (MirrorState::Mirroring, 0));
}

#[test]
fn a_topic_that_was_in_the_question_and_not_in_the_answer_fails() {
    let mut rig = Rig::new();
    rig.mirrored_topic(0, "first");
    rig.opened(rig.connects[0].0);
    rig.answer(&[]);
    assert_eq!(rig.state(0), (MirrorState::Failed, 1));
}
