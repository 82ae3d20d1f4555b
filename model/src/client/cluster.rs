//! A client's whole link to one cluster: channels, the view of it, and when the view is asked for again: by age, by error,
//! and when a leader is missing; through any broker that answers, the bootstrap list last (KIP-899).

use crate::client::connections::{ChannelConfig, ChannelEvent, ChannelStatus, Channels};
use crate::client::door::{earlier, Backoff};
use crate::client::metadata::{ClusterView, NO_TOPIC};
use crate::ids::{BrokerId, ConnId, Nanos, NodeId, Now, PartitionIx};
use crate::ports::{Cx, Input};
use crate::wire::messages::{Body, LeaderHint, MetadataRequest, MetadataResponse};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Which cluster, which topics, and the times.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterConfig {
    /// `bootstrap.servers`.
    pub bootstrap: Vec<NodeId>,
    /// The topics of interest; `None` for all.
    pub topics: Option<Vec<Arc<str>>>,
    /// `metadata.max.age.ms`.
    pub max_age: Nanos,
    /// `retry.backoff.ms` and `retry.backoff.max.ms`: the least time between two refreshes, doubled while refreshes follow
    /// each other closely.
    pub backoff: Backoff,
    /// Channels.
    pub channel: ChannelConfig,
}

impl ClusterConfig {
    /// Kafka's defaults.
    #[must_use]
    pub fn new(bootstrap: Vec<NodeId>, topics: Option<Vec<Arc<str>>>) -> Self {
        Self {
            bootstrap,
            topics,
            max_age: Nanos::from_secs(300),
            backoff: Backoff { first: Nanos::from_millis(100), max: Nanos::from_secs(1) },
            channel: ChannelConfig::default(),
        }
    }
}

/// What a request in flight stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Token<T> {
    /// A refresh of the view.
    Metadata,
    /// The owner's own.
    Own(T),
}

/// News for the owner.
#[derive(Clone, Debug, PartialEq)]
pub enum ClusterEvent<T> {
    /// A channel opened.
    Opened(NodeId),
    /// A channel was lost; the owner's requests on it failed.
    Lost {
        /// The peer.
        node: NodeId,
        /// The owner's requests, in the order they were sent.
        failed: Vec<T>,
    },
    /// An answer to the owner.
    Answer {
        /// The peer.
        node: NodeId,
        /// What the request left.
        token: T,
        /// The answer.
        body: Body,
        /// When the request was sent.
        sent: Nanos,
    },
    /// The view changed for these partitions.
    Metadata {
        /// Partitions whose leader or epoch changed, appeared or vanished.
        changed: Vec<PartitionIx>,
    },
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Refresh {
    in_flight: bool,
    all: bool,
    stale: BTreeSet<u32>,
    /// The request in flight names all topics of interest.
    whole: bool,
    fresh: bool,
    answered: Option<Nanos>,
    not_before: Nanos,
    streak: u32,
    rotor: u32,
}

/// Channels and view.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster<T> {
    config: ClusterConfig,
    /// Channels to its brokers.
    pub channels: Channels<Token<T>>,
    /// What is believed of it.
    pub view: ClusterView,
    refresh: Refresh,
    quiet: bool,
}

/// The concern of the draw that spreads clients over the bootstrap list ("BOOT").
const SPREAD: u64 = 0x424f_4f54;

impl<T> Cluster<T> {
    /// Knows nothing yet and wants to.
    #[must_use]
    pub fn new(config: ClusterConfig, cx: &Cx) -> Self {
        let rotor = cx.entropy.below(SPREAD, 0, 1 << 16) as u32;
        let channels = Channels::new(config.channel);
        let refresh = Refresh { all: true, rotor, ..Refresh::default() };
        Self { config, channels, view: ClusterView::default(), refresh, quiet: false }
    }

    /// Whether an answer was ever taken.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.refresh.answered.is_some()
    }

    /// Whether a connection is this cluster's.
    #[must_use]
    pub fn owns(&self, conn: ConnId) -> bool {
        self.channels.owns(conn)
    }

    /// A quiet cluster is not refreshed by age: its owner is done.
    pub fn set_quiet(&mut self, quiet: bool) {
        self.quiet = quiet;
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &ClusterConfig {
        &self.config
    }

    /// Other topics are of interest from now on; the view is not fresh until they were answered for.
    pub fn set_topics(&mut self, topics: impl Into<Option<Vec<Arc<str>>>>) {
        self.config.topics = topics.into();
        self.refresh.all = true;
        self.refresh.fresh = false;
    }

    /// Whether everything asked for was answered for since [`Self::set_topics`] (or the start).
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.refresh.fresh
    }

    /// Asks for the whole view again, as soon as the backoff allows.
    pub fn want_refresh(&mut self) {
        self.refresh.all = true;
    }

    /// Asks for the topic of this partition again.
    pub fn want_refresh_of(&mut self, partition: PartitionIx) {
        match self.view.leadership(partition).topic {
            NO_TOPIC => self.refresh.all = true,
            topic => {
                self.refresh.stale.insert(topic);
            }
        }
    }

    /// A leader refused: takes its hint, or asks for the topic again. `changed` gets the partition if it has another leader.
    pub fn refused(
        &mut self,
        partition: PartitionIx,
        hint: Option<LeaderHint>,
        cx: &mut Cx,
        changed: &mut Vec<PartitionIx>,
    ) {
        if !hint.is_some_and(|hint| self.view.hint(partition, hint, cx.guards, changed)) {
            self.want_refresh_of(partition);
        }
    }

    /// Sends a request of the owner. False, and the token is dropped, if the channel is not open.
    pub fn send(&mut self, now: Now, node: NodeId, body: Body, token: T, cx: &mut Cx) -> bool {
        self.channels.send(now, node, body, Token::Own(token), cx).is_ok()
    }

    /// Closes all channels: the cluster is of no use to its owner any more.
    pub fn close(&mut self, now: Now, cx: &mut Cx) {
        self.channels.close_all(now, cx);
    }

    /// What the owner's requests in flight left, in order.
    pub fn own_tokens_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.channels.tokens_mut().filter_map(|t| match t {
            Token::Own(token) => Some(token),
            Token::Metadata => None,
        })
    }

    /// Whether a refresh is wished for, or under way, already.
    #[must_use]
    pub fn is_refresh_wanted(&self) -> bool {
        self.refresh.in_flight || self.refresh.all || !self.refresh.stale.is_empty()
    }

    /// The address of a broker; asks for a refresh if it is not known.
    pub fn node(&mut self, broker: BrokerId) -> Option<NodeId> {
        let node = self.view.node(broker);
        if node.is_none() {
            self.want_refresh();
        }
        node
    }

    /// Takes an input of one of its connections.
    pub fn on_input(&mut self, now: Now, input: Input, cx: &mut Cx) -> Option<ClusterEvent<T>> {
        let event = self.channels.on_input(now, input, cx)?;
        self.on_event(now, event, cx)
    }

    fn on_event(&mut self, now: Now, event: ChannelEvent<Token<T>>, cx: &mut Cx) -> Option<ClusterEvent<T>> {
        match event {
            ChannelEvent::Opened(node) => Some(ClusterEvent::Opened(node)),
            ChannelEvent::Answer { token: Token::Own(token), node, body, sent } => {
                Some(ClusterEvent::Answer { node, token, body, sent })
            }
            ChannelEvent::Answer { token: Token::Metadata, body: Body::MetadataResponse(answer), .. } => {
                Some(self.on_metadata(now, *answer, cx))
            }
            ChannelEvent::Answer { token: Token::Metadata, .. } => {
                self.refresh_failed();
                None
            }
            ChannelEvent::Lost { node, failed } => {
                // A lost broker may have lost its leaderships too (Kafka asks again on every disconnect).
                self.refresh.all = true;
                let mut own = Vec::with_capacity(failed.len());
                for token in failed {
                    match token {
                        Token::Metadata => self.refresh_failed(),
                        Token::Own(token) => own.push(token),
                    }
                }
                Some(ClusterEvent::Lost { node, failed: own })
            }
        }
    }

    fn refresh_failed(&mut self) {
        self.refresh.in_flight = false;
        self.refresh.all = true;
    }

    fn on_metadata(&mut self, now: Now, answer: MetadataResponse, cx: &mut Cx) -> ClusterEvent<T> {
        self.refresh.in_flight = false;
        let close = self.refresh.answered.is_some_and(|at| now.mono.since(at) <= Nanos(2 * self.config.backoff.max.0));
        self.refresh.streak = if close { (self.refresh.streak + 1).min(16) } else { 0 };
        self.refresh.answered = Some(now.mono);
        let wait = self.config.backoff.after(self.refresh.streak);
        self.refresh.not_before = now.mono + wait;
        let mut changed = Vec::new();
        self.view.absorb(answer, cx.guards, &mut changed);
        // An answer to an older wish (topics were changed meanwhile, so that `all` stands again) makes nothing fresh.
        self.refresh.fresh |= self.refresh.whole && !self.refresh.all;
        if self.view.brokers().is_empty() || self.misses_topics() {
            self.refresh.all = true;
        }
        ClusterEvent::Metadata { changed }
    }

    fn misses_topics(&self) -> bool {
        let wanted = self.config.topics.as_deref().unwrap_or(&[]);
        wanted.iter().any(|name| !self.view.topic(name).is_some_and(|(_, t)| t.error.is_none()))
    }

    /// Ends what timed out. Losses go to `events`.
    pub fn poll(&mut self, now: Now, cx: &mut Cx, events: &mut Vec<ClusterEvent<T>>) {
        if self.channels.next_deadline().is_some_and(|at| at <= now.mono) {
            for lost in self.channels.expire(now, cx) {
                events.extend(self.on_event(now, lost, cx));
            }
        }
    }

    /// Asks for the view again if that is due: the last thing in a run, after all that may have wished for it.
    pub fn ask(&mut self, now: Now, cx: &mut Cx) {
        if self.refresh_due().is_none_or(|at| at > now.mono) {
            return;
        }
        let Some(node) = self.any_ready(now, cx) else { return };
        let topics = self.topics_to_ask();
        if self.channels.send(now, node, MetadataRequest { topics }.into(), Token::Metadata, cx).is_ok() {
            self.refresh.in_flight = true;
            self.refresh.whole = self.refresh.all || self.refresh.stale.is_empty();
            self.refresh.all = false;
            self.refresh.stale.clear();
            self.refresh.not_before = now.mono + self.config.backoff.first;
        }
    }

    fn topics_to_ask(&self) -> Option<Vec<Arc<str>>> {
        let aged = !self.refresh.all && self.refresh.stale.is_empty();
        if self.refresh.all || aged {
            return self.config.topics.clone();
        }
        Some(self.refresh.stale.iter().map(|&t| self.view.topics()[t as usize].name.clone()).collect())
    }

    fn refresh_due(&self) -> Option<Nanos> {
        if self.refresh.in_flight {
            return None;
        }
        if self.quiet {
            return None;
        }
        if self.refresh.all || !self.refresh.stale.is_empty() {
            return Some(self.refresh.not_before);
        }
        self.refresh.answered.map(|at| at + self.config.max_age)
    }

    /// A peer that can take a request now: the least busy open channel. Without one, a connection is opened (Kafka's
    /// leastLoadedNode) and None returned.
    pub fn any_ready(&mut self, now: Now, cx: &mut Cx) -> Option<NodeId> {
        let mut best: Option<(usize, NodeId)> = None;
        let mut opening = false;
        for at in 0..self.candidates() {
            let node = self.candidate(at);
            match self.channels.status(node) {
                ChannelStatus::Ready => {
                    let load = self.channels.in_flight(node);
                    if best.is_none_or(|(least, _)| load < least) {
                        best = Some((load, node));
                    }
                }
                ChannelStatus::Opening => opening = true,
                ChannelStatus::Busy | ChannelStatus::Down(_) => {}
            }
        }
        if best.is_none() && !opening {
            self.open_one(now, cx);
        }
        best.map(|(_, node)| node)
    }

    fn open_one(&mut self, now: Now, cx: &mut Cx) {
        for at in 0..self.candidates() {
            let node = self.candidate(at);
            if matches!(self.channels.status(node), ChannelStatus::Down(until) if until <= now.mono) {
                self.refresh.rotor = self.refresh.rotor.wrapping_add(1);
                self.channels.ensure(now, node, cx);
                return;
            }
        }
    }

    fn candidates(&self) -> u32 {
        (self.view.brokers().len() + self.config.bootstrap.len()) as u32
    }

    /// The `at`-th peer to try: brokers first, starting at the rotor, then the bootstrap list.
    fn candidate(&self, at: u32) -> NodeId {
        let brokers = self.view.brokers();
        let known = brokers.len() as u32;
        if at < known {
            return brokers[(self.refresh.rotor.wrapping_add(at) % known) as usize].1;
        }
        let boot = &self.config.bootstrap;
        let turn = self.refresh.rotor.wrapping_add(at - known) as usize % boot.len();
        boot[turn]
    }

    /// Another peer comes first from now on: for a request that one broker would not take.
    pub fn turn(&mut self) {
        self.refresh.rotor = self.refresh.rotor.wrapping_add(1);
    }

    /// When [`Self::poll`] or [`Self::ask`] has something to do next.
    #[must_use]
    pub fn next_wakeup(&self, now: Now) -> Option<Nanos> {
        let due = self.refresh_due().map(|at| if at > now.mono { at } else { self.channel_wait(now) });
        earlier(due, self.channels.next_deadline())
    }

    /// When a peer may be tried again. While one is being opened no other is tried, and its own deadline stands for all: one that
    /// could be tried at once would wake the process again and again for nothing.
    #[must_use]
    pub fn channel_wait(&self, now: Now) -> Nanos {
        let mut wait = now.mono + self.config.channel.connect_timeout;
        for at in 0..self.candidates() {
            match self.channels.status(self.candidate(at)) {
                ChannelStatus::Opening => return now.mono + self.config.channel.connect_timeout,
                ChannelStatus::Down(until) => wait = wait.min(until),
                ChannelStatus::Ready | ChannelStatus::Busy => {}
            }
        }
        wait
    }
}
