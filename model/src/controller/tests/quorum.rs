//! Three controllers on disks in memory, with a network that delivers at once: what one does on its own account is in the tests of
//! the voter, what they come to together is here.

use super::*;
use crate::controller::controller::Role;
use crate::controller::store::DOWNLOAD_FLUSH;
use crate::guards::quorum as guard;
use crate::ports::{first_conn, FlushToken};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const A: NodeId = NodeId(100);
const B: NodeId = NodeId(101);
const C: NodeId = NodeId(102);
const OPERATOR: NodeId = NodeId(1);

struct Node {
    controller: Option<Controller>,
    disk: MemDisk,
    guards: Guards,
    next_conn: u64,
    timers: Vec<(Timer, Nanos)>,
    /// Flushes end when they are asked for, but for these.
    hold: Option<FlushToken>,
}

struct Net {
    nodes: BTreeMap<NodeId, Node>,
    /// Open connections: who asked for it, and whom.
    conns: BTreeMap<ConnId, (NodeId, NodeId)>,
    cut: BTreeSet<NodeId>,
    queue: VecDeque<(NodeId, Input)>,
    now: Now,
    answers: Vec<Body>,
    config: ControllerConfig,
}

impl Net {
    fn new(config: ControllerConfig) -> Self {
        let node = |id: NodeId| {
            let next_conn = first_conn(id);
            let (disk, guards) = (MemDisk::new(), Guards::default());
            (id, Node { controller: None, disk, guards, next_conn, timers: Vec::new(), hold: None })
        };
        let mut net = Self {
            nodes: [A, B, C].into_iter().map(node).collect(),
            conns: BTreeMap::new(),
            cut: BTreeSet::new(),
            queue: VecDeque::new(),
            now: Now::default(),
            answers: Vec::new(),
            config: ControllerConfig { voters: vec![A, B, C], ..config },
        };
        for id in [A, B, C] {
            net.start(id);
        }
        net
    }

    fn with<T>(&mut self, id: NodeId, call: impl FnOnce(&mut Option<Controller>, Now, &mut Cx<'_>) -> T) -> T {
        let (mut out, now) = (Outbox::default(), self.now);
        let Some(node) = self.nodes.get_mut(&id) else { panic!() };
        let Node { controller, disk, guards, next_conn, .. } = node;
        let entropy = Entropy(u64::from(id.0));
        let done = call(controller, now, &mut Cx { node: id, disk, guards, out: &mut out, entropy, next_conn });
        for effect in out.effects {
            self.take(id, effect);
        }
        done
    }

    fn take(&mut self, id: NodeId, effect: Effect) {
        match effect {
            Effect::Wake(lane) => self.with(id, |c, now, cx| c.iter_mut().for_each(|c| c.run(now, lane, cx))),
            Effect::Connect { conn, to } if self.reaches(id, to) => {
                self.conns.insert(conn, (id, to));
                self.queue.push_back((id, Input::Opened { conn, peer: to, inbound: false }));
                self.queue.push_back((to, Input::Opened { conn, peer: id, inbound: true }));
            }
            Effect::Connect { conn, .. } => {
                self.queue.push_back((id, Input::Closed { conn, why: crate::ports::CloseReason::Refused }));
            }
            Effect::Send { conn, message } => match self.conns.get(&conn) {
                Some((OPERATOR, _)) => self.answers.push(message.body),
                Some((from, to)) => {
                    let to = if *from == id { *to } else { *from };
                    self.queue.push_back((to, Input::Message { conn, message }));
                }
                None => {}
            },
            Effect::Close { conn } => self.close(conn),
            Effect::SetTimer { timer, at } => self.node(id).timers.push((timer, at)),
            Effect::Flush { token, .. } | Effect::FlushDir { token, .. } if self.node(id).hold != Some(token) => {
                self.node(id).disk.obey(std::slice::from_ref(&effect));
                self.queue.push_back((id, Input::Flushed { token, result: Ok(()) }));
            }
            Effect::Flush { .. } | Effect::FlushDir { .. } => {}
            Effect::Exit(crate::ports::ExitReason::Shutdown) => {
                self.node(id).controller = None;
                self.close_all(id);
                self.queue.retain(|(to, _)| *to != id);
            }
            Effect::Exit(reason) => panic!("{id:?} ended: {reason:?}"),
        }
    }

    fn node(&mut self, id: NodeId) -> &mut Node {
        self.nodes.get_mut(&id).unwrap()
    }
    fn reaches(&self, from: NodeId, to: NodeId) -> bool {
        let up = self.nodes.get(&to).is_some_and(|node| node.controller.is_some());
        up && !self.cut.contains(&from) && !self.cut.contains(&to)
    }
    fn close(&mut self, conn: ConnId) {
        let Some((from, to)) = self.conns.remove(&conn) else { return };
        for end in [from, to] {
            if self.nodes.contains_key(&end) {
                self.queue.push_back((end, Input::Closed { conn, why: crate::ports::CloseReason::Reset }));
            }
        }
    }
    fn close_all(&mut self, of: NodeId) {
        let all: Vec<_> = self.conns.iter().filter(|(_, (a, b))| *a == of || *b == of).map(|(conn, _)| *conn).collect();
        all.into_iter().for_each(|conn| self.close(conn));
    }

    fn start(&mut self, id: NodeId) {
        let config = ControllerConfig { node: id, ..self.config.clone() };
        self.node(id).timers.clear();
        self.with(id, |c, now, cx| *c = Some(Controller::boot(config, now, cx)));
        self.settle();
    }
    fn stop(&mut self, id: NodeId) {
        self.node(id).controller = None;
        self.close_all(id);
        self.queue.retain(|(to, _)| *to != id);
        self.settle();
    }
    fn cut_off(&mut self, id: NodeId) {
        self.cut.insert(id);
        self.close_all(id);
        self.settle();
    }

    fn settle(&mut self) {
        while let Some((to, input)) = self.queue.pop_front() {
            self.with(to, |c, now, cx| c.iter_mut().for_each(|c| c.accept(now, input.clone(), cx)));
        }
    }
    /// Time passes, in steps of ten milliseconds.
    fn pass(&mut self, ms: u64) {
        for _ in 0..ms / 10 {
            self.now.mono = self.now.mono + Nanos::from_millis(10);
            self.now.wall_ms += 10;
            for id in [A, B, C] {
                let now = self.now.mono;
                let timers = &mut self.node(id).timers;
                let due: Vec<_> = timers.iter().filter(|(_, at)| *at <= now).map(|(timer, _)| *timer).collect();
                timers.retain(|(_, at)| *at > now);
                self.queue.extend(due.into_iter().map(|timer| (id, Input::Timer(timer))));
            }
            self.settle();
        }
    }

    fn controller(&self, id: NodeId) -> &Controller {
        self.nodes[&id].controller.as_ref().unwrap()
    }
    fn leader(&self) -> NodeId {
        let leads = |id: &NodeId| self.nodes[id].controller.as_ref().is_some_and(Controller::is_active);
        let all: Vec<NodeId> = [A, B, C].into_iter().filter(leads).collect();
        assert_eq!(all.len(), 1, "one is active: {all:?}");
        all[0]
    }
    fn others(&self) -> [NodeId; 2] {
        let rest: Vec<NodeId> = [A, B, C].into_iter().filter(|id| *id != self.leader()).collect();
        [rest[0], rest[1]]
    }
    /// An operator's request to one controller; the answer, if there is one yet.
    fn ask(&mut self, of: NodeId, body: impl Into<Body>) -> Option<Body> {
        let conn = ConnId(self.answers.len() as u64 + self.conns.len() as u64 + 7_000_000);
        self.conns.insert(conn, (OPERATOR, of));
        self.answers.clear();
        self.queue.push_back((of, Input::Opened { conn, peer: OPERATOR, inbound: true }));
        let message = Message { correlation: 1, body: body.into() };
        self.queue.push_back((of, Input::Message { conn, message }));
        self.settle();
        self.answers.pop()
    }
    fn register(&mut self, broker: i32) -> ErrorCode {
        let leader = self.leader();
        match self.ask(leader, registration(broker)) {
            Some(Body::BrokerRegistrationResponse(answer)) => answer.error,
            other => panic!("{other:?}"),
        }
    }
    fn ends(&self) -> Vec<i64> {
        let end = |id: &NodeId| self.nodes[id].controller.as_ref().map(|c| c.committed_image().end().0);
        [A, B, C].iter().filter_map(end).collect()
    }
    fn converged(&self) -> bool {
        let images: Vec<_> = [A, B, C].iter().map(|id| self.controller(*id).committed_image()).collect();
        images.windows(2).all(|pair| pair[0] == pair[1] && pair[0].hash() == pair[1].hash())
    }
}

fn registration(broker: i32) -> BrokerRegistrationRequest {
    BrokerRegistrationRequest {
        broker: BrokerId(broker),
        cluster_id: "east".into(),
        incarnation: broker as u128,
        node: NodeId(broker as u16),
        previous_epoch: BrokerEpoch(-1),
    }
}

fn elected() -> Net {
    let mut net = Net::new(config());
    net.pass(4_000);
    net.leader();
    net
}

#[test]
fn one_of_three_is_elected_and_all_apply_what_it_commits() {
    let mut net = elected();
    assert_eq!(net.register(1), ErrorCode::None);
    net.pass(1_000);
    assert!(net.converged());
    let [standby, _] = net.others();
    assert!(net.controller(standby).image().broker(BrokerId(1)).is_some());
    let Some(Body::BrokerRegistrationResponse(answer)) = net.ask(standby, registration(2)) else { panic!() };
    assert_eq!(answer.error, ErrorCode::NotController);
}

#[test]
fn an_answer_waits_for_a_majority_and_is_refused_with_the_term() {
    let mut net = elected();
    let leader = net.leader();
    let epoch = net.controller(leader).quorum().epoch();
    net.cut_off(leader);
    let before = net.controller(leader).committed_image().clone();
    assert_eq!(net.ask(leader, registration(1)), None, "nobody else has it");
    assert!(net.controller(leader).image().broker(BrokerId(1)).is_some());
    net.pass(3_100);
    let Some(Body::BrokerRegistrationResponse(answer)) = net.answers.pop() else { panic!("no answer") };
    assert_eq!(answer.error, ErrorCode::NotController);
    assert_eq!(net.controller(leader).image(), &before, "back to what is committed");
    net.pass(5_000);
    let next = net.leader();
    assert!(next != leader && net.controller(next).quorum().epoch() > epoch);
    assert_eq!(net.register(2), ErrorCode::None);
    // Back in touch, it cuts what nobody else had.
    net.cut.clear();
    net.pass(5_000);
    assert!(net.converged());
    assert!(net.controller(leader).image().broker(BrokerId(1)).is_none());
    assert!(matches!(net.controller(leader).role(), Role::Follower(_)));
}

#[test]
fn what_was_answered_survives_the_power_loss_of_any_two() {
    for seed in 0..20 {
        let mut net = elected();
        assert_eq!(net.register(1), ErrorCode::None);
        let leader = net.leader();
        let [one, two] = net.others();
        for id in [leader, if seed % 2 == 0 { one } else { two }] {
            net.node(id).disk.crash(seed);
            net.stop(id);
        }
        net.pass(1_000);
        for id in [A, B, C] {
            if net.nodes[&id].controller.is_none() {
                net.start(id);
            }
        }
        net.pass(8_000);
        assert!(net.converged(), "seed {seed}");
        let leader = net.leader();
        assert!(net.controller(leader).image().broker(BrokerId(1)).is_some(), "seed {seed}");
    }
}

#[test]
fn who_is_too_far_behind_takes_a_snapshot_and_keeps_its_log_until_that_is_durable() {
    for on in [true, false] {
        let mut net = Net::new(ControllerConfig { records_between_snapshots: 3, log_segment_bytes: 300, ..config() });
        net.pass(4_000);
        let [behind, _] = net.others();
        net.register(1);
        net.pass(1_000);
        let end = net.controller(behind).log().unwrap().end();
        net.stop(behind);
        for broker in 2..30 {
            net.register(broker);
        }
        net.pass(1_000);
        let leader = net.leader();
        assert!(net.controller(leader).log().unwrap().start() > end);
        net.node(behind).guards.set(guard::SnapshotBeforeLog, on);
        net.node(behind).hold = Some(DOWNLOAD_FLUSH);
        net.start(behind);
        net.pass(1_500);
        let log = net.controller(behind).log().unwrap();
        assert_eq!(log.end() == end, on, "{:?}", log.end());
        if on {
            net.node(behind).hold = None;
            net.stop(behind);
            net.start(behind);
            net.pass(3_000);
            assert!(net.converged(), "{:?}", net.ends());
        }
    }
}

#[test]
fn a_controller_with_an_empty_disk_follows_and_has_no_vote() {
    let mut net = elected();
    net.register(1);
    let [one, two] = net.others();
    net.stop(one);
    net.node(one).disk = MemDisk::new();
    net.start(one);
    net.pass(3_000);
    assert_eq!(net.controller(one).quorum().state().name(), "observer");
    assert!(net.converged());
    // Nor after another start.
    net.stop(one);
    net.start(one);
    net.pass(3_000);
    assert_eq!(net.controller(one).quorum().state().name(), "observer");
    // With it alone the last voter is no majority.
    let leader = net.leader();
    net.stop(leader);
    net.pass(10_000);
    assert!(!net.controller(two).is_active());
    net.start(leader);
    net.pass(8_000);
    net.leader();
    assert!(net.converged());
}

#[test]
fn a_leader_that_is_back_at_once_begins_another_term() {
    let mut net = elected();
    net.register(1);
    let leader = net.leader();
    let epoch = net.controller(leader).quorum().epoch();
    net.node(leader).disk.crash_hard();
    net.stop(leader);
    net.start(leader);
    assert_eq!(net.controller(leader).quorum().state().name(), "resigned");
    net.pass(6_000);
    let next = net.leader();
    assert!(net.controller(next).quorum().epoch() > epoch);
    assert!(net.converged());
}

/// KIP-595: a leader that ends in order resigns and says so. It ends when its successor leads, which is soon, for nobody waits
/// for a timeout; a follower has nothing to say.
#[test]
fn a_leader_that_is_shut_down_hands_over() {
    let stop = crate::controller::shutdown::STOP;
    let mut net = Net::new(config());
    net.pass(5_000);
    let (first, epoch) = (net.leader(), net.controller(net.leader()).quorum().epoch());
    net.queue.push_back((first, Input::Timer(stop)));
    net.settle();
    net.pass(200);
    assert!(net.nodes[&first].controller.is_none(), "it has ended");
    let second = net.leader();
    assert_eq!(net.controller(second).quorum().epoch().0, epoch.0 + 1, "one round of votes");

    net.start(first);
    net.pass(1_000);
    net.queue.push_back((first, Input::Timer(stop)));
    net.settle();
    assert!(net.nodes[&first].controller.is_none(), "nobody needs a follower");
    assert_eq!((net.leader(), net.controller(second).quorum().epoch().0), (second, epoch.0 + 1));

    // Nobody can take over: it waits until the others would have found out, does not stand again, and ends.
    let third = [A, B, C].into_iter().find(|id| *id != first && *id != second).unwrap();
    net.stop(third);
    net.queue.push_back((second, Input::Timer(stop)));
    net.settle();
    net.pass(1_900);
    assert!(net.nodes[&second].controller.is_some());
    net.pass(200);
    assert!(net.nodes[&second].controller.is_none());
}
