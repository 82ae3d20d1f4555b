//! Recoveries that operators order (spec 8.14): any broker takes the order, each partition is recovered by the broker that leads
//! it, as a transition of its own (`mirror/recover.rs`). Topics that have nothing failed are a success without effect.

use crate::broker::broker::Broker;
use crate::broker::orders::{Pending, Refusal, Work};
use crate::guards::mirror as guard;
use crate::ids::{BrokerId, ConnId, Nanos, Now, PartitionIx};
use crate::mirror::recover::Recovery;
use crate::ports::Cx;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{Body, NamedResult, RecoverMirrorTopicsRequest, RecoverMirrorTopicsResponse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A recovery under way.
#[derive(Clone, Debug)]
pub(crate) struct Recover {
    names: Vec<Arc<str>>,
    refusals: Vec<Option<Refusal>>,
    /// Partitions that this broker recovers, and the topic named that they belong to.
    own: BTreeMap<PartitionIx, usize>,
    /// Until when.
    deadline: Nanos,
}

impl Recover {
    /// Whether no partition of this broker's is waited for.
    pub fn is_over(&self) -> bool {
        self.own.is_empty()
    }

    fn refuse(&mut self, at: usize, error: ErrorCode, why: &str) {
        if let Some(slot @ None) = self.refusals.get_mut(at) {
            *slot = Some((error, why.into()));
        }
    }

    /// Takes what another broker said of the partitions that it leads.
    pub fn hear(&mut self, asked: &RecoverMirrorTopicsRequest, answer: Option<Body>) {
        let (silence, topics) = match answer {
            Some(Body::RecoverMirrorTopicsResponse(answer)) if answer.error.is_none() => {
                (ErrorCode::UnknownServerError, answer.topics)
            }
            Some(Body::RecoverMirrorTopicsResponse(answer)) => (answer.error, Vec::new()),
            _ => (ErrorCode::RequestTimedOut, Vec::new()),
        };
        for name in &asked.topics {
            let Some(at) = self.names.iter().position(|n| n == name) else { continue };
            match topics.iter().find(|t| t.name == *name) {
                Some(told) if told.error.is_none() => {}
                Some(told) => self.refuse(at, told.error, told.message.as_deref().unwrap_or_default()),
                None => self.refuse(at, silence, "the broker that leads a partition did not answer"),
            }
        }
    }
}

impl Broker {
    /// Takes up a recovery, from an operator or from a broker that one asked.
    pub(crate) fn on_recover(
        &mut self,
        conn: ConnId,
        correlation: u32,
        mut request: RecoverMirrorTopicsRequest,
        now: Now,
        cx: &mut Cx,
    ) {
        let Some(mirror) = self.image.mirror_by_name(&request.mirror).and_then(|ix| self.image.mirror(ix)) else {
            let answer = RecoverMirrorTopicsResponse { error: ErrorCode::UnknownClusterMirror, topics: Vec::new() };
            return self.respond(conn, correlation, answer.into(), cx);
        };
        if request.topics.is_empty() {
            let all = mirror.topics.iter().filter_map(|topic| self.image.topic(*topic));
            request.topics = all.map(|topic| topic.name.clone()).collect();
        }
        let timeout = Nanos::from_millis(self.config.configs.mirror_coordinator_write_timeout_ms);
        let mut recover = Recover {
            refusals: vec![None; request.topics.len()],
            names: request.topics.clone(),
            own: BTreeMap::new(),
            deadline: now.mono + timeout,
        };
        let others = self.share_out(&request, &mut recover);
        if request.keep_source {
            recover.own.keys().for_each(|partition| self.mirror.let_source_win(*partition));
        }
        let id = self.orders.add(Pending { conn, correlation, open: 0, work: Work::Recover(recover) });
        for (leader, parts) in others {
            let named: BTreeSet<&Arc<str>> = parts.iter().filter_map(|p| request.topics.get(p.1)).collect();
            let question = RecoverMirrorTopicsRequest {
                mirror: request.mirror.clone(),
                topics: named.into_iter().cloned().collect(),
                parts: parts.iter().map(|p| p.0).collect(),
                keep_source: request.keep_source,
            };
            self.ask_peer(leader, id, question.into());
        }
        self.look_at_recovery(id, now, cx);
    }

    /// Which partitions this broker recovers, and which others do, by who leads them.
    fn share_out(
        &mut self,
        request: &RecoverMirrorTopicsRequest,
        recover: &mut Recover,
    ) -> BTreeMap<BrokerId, Vec<(PartitionIx, usize)>> {
        let mut others: BTreeMap<BrokerId, Vec<(PartitionIx, usize)>> = BTreeMap::new();
        let asked: BTreeSet<PartitionIx> = request.parts.iter().copied().collect();
        for at in 0..recover.names.len() {
            let topic = match self.member(&request.mirror, &recover.names[at]) {
                Ok(topic) => topic,
                Err((error, why)) => {
                    recover.refuse(at, error, why);
                    continue;
                }
            };
            let Some(image) = self.image.topic(topic).cloned() else { continue };
            for partition in &image.partitions {
                if !asked.is_empty() {
                    // Only what this broker was thought to lead; the manager says if it does not.
                    if asked.contains(partition) {
                        recover.own.insert(*partition, at);
                    }
                    continue;
                }
                match self.image.partition(*partition).map(|p| p.state.leader) {
                    Some(leader) if leader == self.config.broker => {
                        recover.own.insert(*partition, at);
                    }
                    Some(leader) if leader != BrokerId::NONE => {
                        others.entry(leader).or_default().push((*partition, at));
                    }
                    _ => recover.refuse(at, ErrorCode::LeaderNotAvailable, "a partition has no leader now"),
                }
            }
        }
        others
    }

    fn member(&self, mirror: &str, name: &str) -> Result<crate::ids::TopicIx, (ErrorCode, &'static str)> {
        let unknown = (ErrorCode::UnknownTopicOrPartition, "there is no such topic");
        let topic = self.image.topic_by_name(name).ok_or(unknown)?;
        match self.image.mirror_of(topic) {
            None => Err((ErrorCode::UnknownClusterMirror, "the topic belongs to no mirror")),
            Some((of, _)) if self.image.mirror_by_name(mirror) != Some(of) => {
                Err((ErrorCode::TopicNotInClusterMirror, "the topic belongs to another mirror"))
            }
            Some(_) => Ok(topic),
        }
    }

    /// Looks how far this broker's partitions of a recovery have come; stays on the list until they are over.
    pub(crate) fn look_at_recovery(&mut self, id: u32, now: Now, cx: &mut Cx) {
        let Some(mut pending) = self.orders.pending.remove(&id) else { return };
        let Work::Recover(recover) = &mut pending.work else { return };
        let (mirror, mut task) = self.mirror_room();
        let own: Vec<(PartitionIx, usize)> = recover.own.iter().map(|(p, at)| (*p, *at)).collect();
        for (partition, at) in own {
            let done = match mirror.recover(now, partition, &mut task, cx) {
                // An answer before the commit would be about a state that may never be (decision 11).
                Recovery::Waits if cx.guards.admits(guard::RecoveryIsCommitted, false) => true,
                Recovery::Waits if now.mono >= recover.deadline => {
                    recover.refuse(at, ErrorCode::RequestTimedOut, "a partition's coordinator did not answer in time");
                    true
                }
                Recovery::Waits => false,
                Recovery::Done => true,
                Recovery::Refused(error) => {
                    recover.refuse(at, error, "a partition's leader changed");
                    true
                }
            };
            if done {
                recover.own.remove(&partition);
            }
        }
        let waits = !recover.own.is_empty();
        self.orders.pending.insert(id, pending);
        if waits {
            self.orders.recovering.push(id);
        } else {
            self.go_on(id, now, cx);
        }
    }

    /// Every partition of a recovery has its end.
    pub(crate) fn end_recovery(&mut self, id: u32, cx: &mut Cx) {
        let Some(Pending { conn, correlation, work: Work::Recover(recover), .. }) = self.orders.pending.remove(&id)
        else {
            return;
        };
        let verdict = |(name, refusal): (Arc<str>, Option<Refusal>)| match refusal {
            Some((error, why)) => NamedResult { name, error, message: Some(why) },
            None => NamedResult { name, error: ErrorCode::None, message: None },
        };
        let topics = recover.names.into_iter().zip(recover.refusals).map(verdict).collect();
        self.respond(conn, correlation, RecoverMirrorTopicsResponse { error: ErrorCode::None, topics }.into(), cx);
    }
}
