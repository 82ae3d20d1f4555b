//! Partitions of topics that left a mirror, before they join a transaction: the wish that metadata has is not the deed. Until
//! STOPPED is committed a partition still has the markers and the reset of its stop before it, so that its last committed
//! state is read too, from whoever coordinates it; what is not known now may be asked again (decision 9).
//!
//! A second line: the leader of the partition refuses records and markers by itself until then. Who is refused here is spared
//! a transaction that it could only abort. Nobody leaves STOPPED unless metadata wishes so first, which is why a state that
//! was read is remembered until then.

use crate::broker::broker::Broker;
use crate::broker::lanes::TRANSACTIONS;
use crate::broker::on_transactions::Joins;
use crate::broker::orders::{Pending, Work};
use crate::ids::{BrokerId, ConnId, Now, PartitionIx};
use crate::metadata::delta::MetadataDelta;
use crate::ports::Cx;
use crate::states::{DesiredState, MirrorState};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{AddPartitionsToTxnRequest, Body, ReadMirrorStatesRequest};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A request whose states are being read.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    request: AddPartitionsToTxnRequest,
    /// Each partition with what was told of it; at first that nothing was.
    told: BTreeMap<PartitionIx, Result<MirrorState, ErrorCode>>,
}

impl Join {
    /// Takes what a coordinator answered.
    pub fn hear(&mut self, answer: Option<Body>) {
        let Some(Body::ReadMirrorStatesResponse(answer)) = answer else { return };
        for (partition, error, record) in answer.parts {
            if let Some(told) = self.told.get_mut(&partition) {
                *told = if error.is_none() { Ok(record.state) } else { Err(error) };
            }
        }
    }
}

/// Whether a partition in this state may join.
fn verdict(told: Result<MirrorState, ErrorCode>) -> Result<(), ErrorCode> {
    match told {
        Ok(MirrorState::Stopped) => Ok(()),
        // Nothing is committed yet, or nobody could say.
        Ok(MirrorState::Unknown) | Err(_) => Err(ErrorCode::CoordinatorLoadInProgress),
        Ok(_) => Err(ErrorCode::ReadOnlyTopic),
    }
}

impl Broker {
    /// The partitions whose states are to be read first; none if some partition is refused anyway.
    pub(crate) fn states_to_read(&self, judged: &[Joins]) -> Vec<PartitionIx> {
        if judged.iter().any(|(_, member)| member.is_err()) {
            return Vec::new();
        }
        let leaves = |partition: &PartitionIx| {
            let topic = self.image.partition(*partition).map(|found| found.topic);
            topic.and_then(|topic| self.image.mirror_of(topic)).is_some_and(|(_, d)| d == DesiredState::Stopped)
        };
        let known = &self.txn_door.left;
        judged.iter().map(|(partition, _)| *partition).filter(|p| !known.contains(p) && leaves(p)).collect()
    }

    /// Reads the states of partitions that are to join a transaction.
    pub(crate) fn read_before_join(
        &mut self,
        conn: ConnId,
        correlation: u32,
        request: &AddPartitionsToTxnRequest,
        unknown: Vec<PartitionIx>,
        now: Now,
        cx: &mut Cx,
    ) {
        let mut told = BTreeMap::new();
        let mut questions: BTreeMap<(BrokerId, Arc<str>), Vec<PartitionIx>> = BTreeMap::new();
        for partition in unknown {
            let state = match self.place_of(partition) {
                Ok((leader, key)) if leader == self.config.broker => self.own_state(&key),
                Ok((leader, key)) => {
                    questions.entry((leader, key.mirror)).or_default().push(partition);
                    Err(ErrorCode::CoordinatorNotAvailable)
                }
                Err(error) => Err(error),
            };
            told.insert(partition, state);
        }
        let work = Work::Join(Join { request: request.clone(), told });
        let id = self.orders.add(Pending { conn, correlation, open: 0, work });
        for ((leader, mirror), parts) in questions {
            self.ask_peer(leader, id, ReadMirrorStatesRequest { mirror, parts }.into());
        }
        self.go_on(id, now, cx);
    }

    /// All states are told, or will not be: the coordinator's lane goes on with it.
    pub(crate) fn end_join(&mut self, id: u32, cx: &mut Cx) {
        let Some(Pending { conn, correlation, work: Work::Join(join), .. }) = self.orders.pending.remove(&id) else {
            return;
        };
        self.txn_door.joins.push_back((conn, correlation, join));
        cx.wake(TRANSACTIONS);
    }

    /// Judges a request whose states are told.
    pub(crate) fn conclude_join(&mut self, conn: ConnId, correlation: u32, join: Join, now: Now, cx: &mut Cx) {
        let Join { request, told } = join;
        // What metadata wished for may have changed meanwhile.
        let mut judged = self.judge_joins(&request, cx);
        for partition in self.states_to_read(&judged) {
            let state = told.get(&partition).copied().unwrap_or(Err(ErrorCode::CoordinatorNotAvailable));
            match verdict(state) {
                Ok(()) => {
                    self.txn_door.left.insert(partition);
                }
                Err(error) => {
                    judged.iter_mut().filter(|(p, _)| *p == partition).for_each(|(_, member)| *member = Err(error));
                }
            }
        }
        self.join(conn, correlation, &request, judged, now, cx);
    }

    /// Topics that are wished for otherwise now may leave STOPPED.
    pub(crate) fn forget_left(&mut self, delta: &MetadataDelta) {
        for topic in delta.mirror_topics.iter() {
            for partition in self.image.topic(*topic).map_or(&[][..], |image| &image.partitions) {
                self.txn_door.left.remove(partition);
            }
        }
        for (_, image) in &delta.topics_removed {
            for partition in &image.partitions {
                self.txn_door.left.remove(partition);
            }
        }
    }
}
