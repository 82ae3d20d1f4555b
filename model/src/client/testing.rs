//! A bench for client processes: connections stand or are refused as told, metadata and producer ids are answered, all other
//! requests wait for the test to answer them. Time moves only when the test says so.

use crate::guards::Guards;
use crate::ids::{BrokerId, ConnId, LeaderEpoch, Nanos, NodeId, Now, PartitionIx, ProducerEpoch, ProducerId, TopicId};
use crate::ports::{
    CloseReason, Cx, DirId, DirName, Disk, DiskError, Effect, Entropy, FileId, FileName, Input, Lane, Outbox, Timer,
};
use crate::trace::Trace;
use crate::wire::messages::{
    Body, InitProducerIdResponse, Message, MetadataResponse, PartitionMetadata, TopicMetadata,
};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Clients have no disk.
pub struct NoDisk;
impl Disk for NoDisk {
    fn open_dir(&mut self, _: DirName, _: bool) -> Result<DirId, DiskError> {
        Err(DiskError::Io)
    }
    fn list_dirs(&self) -> Vec<DirName> {
        Vec::new()
    }
    fn remove_dir(&mut self, _: DirId) -> Result<(), DiskError> {
        Err(DiskError::Io)
    }
    fn list(&self, _: DirId) -> Vec<FileName> {
        Vec::new()
    }
    fn create(&mut self, _: DirId, _: FileName) -> Result<FileId, DiskError> {
        Err(DiskError::Io)
    }
    fn open(&mut self, _: DirId, _: FileName) -> Result<FileId, DiskError> {
        Err(DiskError::Io)
    }
    fn rename(&mut self, _: DirId, _: FileId, _: FileName) -> Result<(), DiskError> {
        Err(DiskError::Io)
    }
    fn remove(&mut self, _: DirId, _: FileName) -> Result<(), DiskError> {
        Err(DiskError::Io)
    }
    fn len(&self, _: FileId) -> u64 {
        0
    }
    fn append(&mut self, _: FileId, _: Bytes) -> Result<u64, DiskError> {
        Err(DiskError::Io)
    }
    fn read(&self, _: FileId, _: u64, _: u64, _: &mut Vec<Bytes>) -> Result<u64, DiskError> {
        Err(DiskError::Io)
    }
    fn truncate(&mut self, _: FileId, _: u64) -> Result<(), DiskError> {
        Err(DiskError::Io)
    }
}

/// The door, for the bench.
pub trait Process {
    fn accept(&mut self, now: Now, input: Input, cx: &mut Cx);
    fn run(&mut self, now: Now, lane: Lane, cx: &mut Cx);
}
macro_rules! process {
    ($($t:ty),*) => { $( impl Process for $t {
        fn accept(&mut self, now: Now, input: Input, cx: &mut Cx) { <$t>::accept(self, now, input, cx) }
        fn run(&mut self, now: Now, lane: Lane, cx: &mut Cx) { <$t>::run(self, now, lane, cx) }
    } )* };
}
process!(crate::client::producer::Producer, crate::client::consumer::Consumer, crate::client::admin::Admin);

/// A request that waits for the test.
#[derive(Clone, Debug)]
pub struct Request {
    pub node: NodeId,
    pub conn: ConnId,
    pub message: Message,
}

/// What surrounds a process.
pub struct Around {
    pub guards: Guards,
    out: Outbox,
    next_conn: u64,
    pub now: Nanos,
}

impl Around {
    pub fn new() -> Self {
        Self { guards: Guards::default(), out: Outbox::default(), next_conn: 0, now: Nanos::ZERO }
    }
    pub fn now(&self) -> Now {
        Now { mono: self.now, wall_ms: 1_000_000 + self.now.as_millis() as i64 }
    }
    pub fn with<R>(&mut self, f: impl FnOnce(Now, &mut Cx) -> R) -> R {
        let now = self.now();
        let mut cx = Cx {
            node: NodeId(900),
            disk: &mut NoDisk,
            guards: &mut self.guards,
            out: &mut self.out,
            entropy: Entropy(1),
            next_conn: &mut self.next_conn,
        };
        f(now, &mut cx)
    }
    pub fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.out.effects)
    }
}

/// One process and a scripted cluster.
pub struct Bench<P> {
    pub process: P,
    pub around: Around,
    pub conns: BTreeMap<ConnId, NodeId>,
    /// Nodes that refuse connections.
    pub dead: BTreeSet<NodeId>,
    /// What every node answers to a metadata request; by node where it differs.
    pub metadata: MetadataResponse,
    pub metadata_of: BTreeMap<NodeId, MetadataResponse>,
    pub metadata_requests: usize,
    pub producer_id: i64,
    timers: BTreeSet<Nanos>,
    /// By connection: what was sent and is not answered, in order, with answers that wait for earlier ones.
    open: BTreeMap<ConnId, VecDeque<(u32, Option<Body>)>>,
    pub requests: VecDeque<Request>,
    pub trace: Vec<Trace>,
}

impl<P: Process> Bench<P> {
    /// Boots a process and lets it connect and learn the metadata.
    pub fn new(metadata: MetadataResponse, boot: impl FnOnce(Now, &mut Cx) -> P) -> Self {
        Self::with_guards(Guards::default(), metadata, boot)
    }

    pub fn with_guards(guards: Guards, metadata: MetadataResponse, boot: impl FnOnce(Now, &mut Cx) -> P) -> Self {
        let mut around = Around::new();
        around.guards = guards;
        let process = around.with(boot);
        let mut bench = Self {
            process,
            around,
            conns: BTreeMap::new(),
            dead: BTreeSet::new(),
            metadata,
            metadata_of: BTreeMap::new(),
            metadata_requests: 0,
            producer_id: 70,
            timers: BTreeSet::new(),
            open: BTreeMap::new(),
            requests: VecDeque::new(),
            trace: Vec::new(),
        };
        bench.settle();
        bench
    }

    pub fn act(&mut self, f: impl FnOnce(&mut P, Now, &mut Cx)) {
        let process = &mut self.process;
        self.around.with(|now, cx| f(process, now, cx));
        self.settle();
    }

    pub fn feed(&mut self, input: Input) {
        self.act(|p, now, cx| p.accept(now, input, cx));
    }

    fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 10_000, "does not come to rest at {:?}", self.around.now);
            self.trace.extend(std::mem::take(&mut self.around.out.trace).into_iter().map(|e| e.trace));
            let effects = self.around.effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                self.on_effect(effect);
            }
        }
    }

    fn on_effect(&mut self, effect: Effect) {
        let process = &mut self.process;
        match effect {
            Effect::Wake(lane) => self.around.with(|now, cx| process.run(now, lane, cx)),
            Effect::SetTimer { at, .. } => {
                self.timers.insert(at);
            }
            Effect::Connect { conn, to } => {
                let input = if self.dead.contains(&to) {
                    Input::Closed { conn, why: CloseReason::Refused }
                } else {
                    self.conns.insert(conn, to);
                    Input::Opened { conn, peer: to, inbound: false }
                };
                self.around.with(|now, cx| process.accept(now, input, cx));
            }
            Effect::Close { conn } => {
                self.conns.remove(&conn);
            }
            Effect::Send { conn, message } => self.on_send(conn, message),
            other => panic!("a client asked for {other:?}"),
        }
    }

    fn on_send(&mut self, conn: ConnId, message: Message) {
        let node = self.conns[&conn];
        let correlation = message.correlation;
        let oneway = matches!(&message.body, Body::ProduceRequest(p) if p.acks == 0);
        let body: Option<Body> = match &message.body {
            Body::MetadataRequest(_) => {
                self.metadata_requests += 1;
                Some(self.metadata_of.get(&node).unwrap_or(&self.metadata).clone().into())
            }
            Body::InitProducerIdRequest(_) => {
                self.producer_id += 1;
                let producer = ProducerId(self.producer_id);
                Some(InitProducerIdResponse { error: Default::default(), producer, epoch: ProducerEpoch(0) }.into())
            }
            _ => {
                self.requests.push_back(Request { node, conn, message });
                None
            }
        };
        if !oneway {
            self.open.entry(conn).or_default().push_back((correlation, body));
            self.flush(conn);
        }
    }

    /// Brokers answer the requests of one connection in order.
    fn flush(&mut self, conn: ConnId) {
        let Some(open) = self.open.get_mut(&conn) else { return };
        while let Some((correlation, Some(_))) = open.front() {
            let correlation = *correlation;
            let body = open.pop_front().and_then(|o| o.1).unwrap();
            let input = Input::Message { conn, message: Message { correlation, body } };
            let process = &mut self.process;
            self.around.with(|now, cx| process.accept(now, input, cx));
        }
    }

    /// The oldest request that waits.
    pub fn request(&mut self) -> Request {
        self.requests.pop_front().expect("no request waits")
    }

    /// Answers a request, once those before it on its connection are answered.
    pub fn answer(&mut self, to: &Request, body: impl Into<Body>) {
        let open = self.open.get_mut(&to.conn).into_iter().flatten();
        for (correlation, answer) in open {
            if *correlation == to.message.correlation && answer.is_none() {
                *answer = Some(body.into());
                break;
            }
        }
        self.flush(to.conn);
        self.settle();
    }

    /// Resets all connections to a node.
    pub fn cut(&mut self, node: NodeId) {
        let conns: Vec<ConnId> = self.conns.iter().filter(|c| *c.1 == node).map(|c| *c.0).collect();
        for conn in conns {
            self.conns.remove(&conn);
            self.open.remove(&conn);
            self.requests.retain(|r| r.conn != conn);
            self.feed(Input::Closed { conn, why: CloseReason::Reset });
        }
    }

    /// Moves the time on, firing timers.
    pub fn pass(&mut self, time: Nanos) {
        let end = self.around.now + time;
        while let Some(at) = self.timers.first().copied().filter(|t| *t <= end) {
            self.timers.remove(&at);
            self.around.now = self.around.now.max(at);
            self.feed(Input::Timer(Timer(at.0)));
        }
        self.around.now = end;
    }

    pub fn pass_ms(&mut self, ms: u64) {
        self.pass(Nanos::from_millis(ms));
    }

    pub fn timers(&self) -> usize {
        self.timers.len()
    }

    pub fn take_trace(&mut self) -> Vec<Trace> {
        std::mem::take(&mut self.trace)
    }
}

/// The address of a broker.
pub fn node_of(broker: i32) -> NodeId {
    NodeId(100 + broker as u16)
}

/// A topic `t` whose partition `n` has index `n` and this leader and epoch, in a cluster of brokers 1 to 3.
pub fn metadata(leaders: &[(i32, i32)]) -> MetadataResponse {
    let partitions = leaders.iter().enumerate().map(|(n, &(leader, epoch))| PartitionMetadata {
        number: n as u32,
        partition: PartitionIx(n as u32),
        leader: BrokerId(leader),
        leader_epoch: LeaderEpoch(epoch),
        replicas: Default::default(),
        isr: Default::default(),
    });
    MetadataResponse {
        cluster_id: "east".into(),
        brokers: (1..=3).map(|b| (BrokerId(b), node_of(b))).collect(),
        topics: vec![TopicMetadata {
            error: Default::default(),
            name: "t".into(),
            id: TopicId(7),
            partitions: partitions.collect(),
        }],
    }
}
