//! Produce (13) and Fetch (19, spec 8.12).

use crate::ids::{BrokerEpoch, BrokerId, LeaderEpoch, NodeId, Offset};
use crate::wire::codec::coder::{Coder, Done, Wire, Wrong};
use crate::wire::codec::directory::PORT;
use crate::wire::codec::records::Records;
use crate::wire::codec::tags::{self, Tag};
use crate::wire::codec::topics::By;
use crate::wire::messages::{
    AbortedTransaction, EpochEnd, FetchPart, FetchPartAnswer, FetchRequest, FetchResponse, Isolation, LeaderHint,
    ProducePartAnswer, ProduceRequest, ProduceResponse,
};
use bytes::Bytes;
use std::collections::BTreeMap;

// ------------------------------------------------------------------------------------------------------------ what they share

/// `IsolationLevel`.
pub(super) fn isolation(c: &mut Coder<'_>, isolation: &mut Isolation) -> Done {
    let mut level = i8::from(*isolation == Isolation::ReadCommitted);
    c.i8("IsolationLevel", &mut level)?;
    *isolation = match level {
        0 => Isolation::ReadUncommitted,
        1 => Isolation::ReadCommitted,
        other => return Err(c.wrong("IsolationLevel", Wrong::Value(other.into()))),
    };
    Ok(())
}

/// The end of a message that counts its topics: our count, if it is not the number of topics on the wire.
fn groups_tag(c: &mut Coder<'_>, found: u32, groups: &mut u32, rest: &mut [Tag<'_>]) -> Done {
    c.preset(groups, found);
    let differs = *groups != found;
    let mut pass = |c: &mut Coder<'_>| c.u32("TopicGroups", groups);
    let mut all: Vec<Tag<'_>> = rest.iter_mut().map(Tag::again).collect();
    all.push(Tag::new(tags::GROUPS, differs, &mut pass));
    c.tags(&mut all)
}

/// Leaders that an answer hints at: ids and epochs stand in the entries, addresses once per leader at the end.
#[derive(Default)]
struct Hints {
    endpoints: Vec<(BrokerId, NodeId)>,
    /// Reading: which entries say themselves where their leader is, or that it is not known.
    told: Vec<bool>,
}

impl Hints {
    /// Writing: the endpoints, in the order of mention.
    fn of(hints: impl Iterator<Item = Option<LeaderHint>>) -> Self {
        let mut endpoints: Vec<(BrokerId, NodeId)> = Vec::new();
        for hint in hints.flatten() {
            if let Some(node) = hint.node.filter(|_| endpoints.iter().all(|(id, _)| *id != hint.leader)) {
                endpoints.push((hint.leader, node));
            }
        }
        Self { endpoints, told: Vec::new() }
    }

    fn find(&self, leader: BrokerId) -> Option<NodeId> {
        self.endpoints.iter().find(|(id, _)| *id == leader).map(|(_, node)| *node)
    }

    /// Whether a hint is written: without our own fields, one that says nothing is not.
    fn present(c: &Coder<'_>, hint: Option<LeaderHint>) -> bool {
        hint.is_some_and(|hint| c.own || hint.leader != BrokerId::NONE || hint.epoch != LeaderEpoch::NONE)
    }

    /// `CurrentLeader`, a tagged field.
    fn pass(&mut self, c: &mut Coder<'_>, hint: &mut Option<LeaderHint>) -> Done {
        let mut known = hint.unwrap_or(LeaderHint { leader: BrokerId::NONE, epoch: LeaderEpoch::NONE, node: None });
        c.i32("LeaderId", &mut known.leader.0)?;
        c.i32("LeaderEpoch", &mut known.epoch.0)?;
        let (differs, mut told) = (self.find(known.leader) != known.node, false);
        let mut node = known.node.map_or(-1, |node| i32::from(node.0));
        c.tags(&mut [Tag::new(tags::NODE, differs, &mut |c| {
            told = true;
            c.i32("Node", &mut node)
        })])?;
        if c.reads() {
            known.node = u16::try_from(node).ok().map(NodeId);
            if let Some(last) = self.told.last_mut() {
                *last = told;
            }
        }
        *hint = Some(known);
        Ok(())
    }

    /// `NodeEndpoints`, a tagged field.
    fn pass_endpoints(&mut self, c: &mut Coder<'_>) -> Done {
        endpoints(c, &mut self.endpoints)
    }

    /// Reading: addresses come after the entries.
    fn settle<'h>(&self, hints: impl Iterator<Item = &'h mut Option<LeaderHint>>) {
        // By leader, so that a peer's long lists cost no more than their lengths; of two addresses the first counts.
        let nodes: BTreeMap<BrokerId, NodeId> = self.endpoints.iter().rev().copied().collect();
        for (hint, told) in hints.zip(&self.told) {
            if let (Some(hint), false) = (hint, told) {
                hint.node = nodes.get(&hint.leader).copied();
            }
        }
    }
}

/// Ids and addresses.
pub(super) fn endpoints(c: &mut Coder<'_>, endpoints: &mut Vec<(BrokerId, NodeId)>) -> Done {
    c.array("NodeEndpoints", endpoints, |c, (id, node)| {
        c.i32("NodeId", &mut id.0)?;
        c.host(node)?;
        c.always_i32("Port", PORT.into())?;
        c.always_text("Rack", None)?;
        c.end()
    })
}

const UNDEFINED: EpochEnd = EpochEnd { epoch: LeaderEpoch::NONE, end: Offset::UNKNOWN };

/// Whether `DivergingEpoch` is written: without our own fields, an undefined one is not.
pub(super) fn diverges(c: &Coder<'_>, diverging: Option<EpochEnd>) -> bool {
    diverging.is_some_and(|end| c.own || end != UNDEFINED)
}

/// `DivergingEpoch`, a tagged field.
pub(super) fn diverging(c: &mut Coder<'_>, diverging: &mut Option<EpochEnd>) -> Done {
    let end = diverging.get_or_insert(UNDEFINED);
    c.i32("Epoch", &mut end.epoch.0)?;
    c.i64("EndOffset", &mut end.end.0)?;
    c.end()
}

// ------------------------------------------------------------------------------------------------------------------ produce

impl Wire for ProduceRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.nullable("TransactionalId", &mut self.transactional_id)?;
        c.i16("Acks", &mut self.acks)?;
        c.u32("TimeoutMs", &mut self.timeout_ms)?;
        let found = c.topics(
            By::Id,
            &mut self.parts,
            |part| &mut part.partition,
            |c, index, part| {
                c.u32("Index", index)?;
                let records = Records::pass(c, "Records", std::slice::from_ref(&part.batches))?;
                let mut pieces = Vec::new();
                records.cut(c, &mut pieces)?;
                c.preset(&mut part.batches, pieces.pop().unwrap_or_default());
                c.end()
            },
        )?;
        groups_tag(c, found, &mut self.topic_groups, &mut [])
    }
}

impl Wire for ProduceResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        let mut hints = Hints::of(self.parts.iter().map(|part| part.current_leader));
        let found = c.topics(
            By::Id,
            &mut self.parts,
            |part| &mut part.partition,
            |c, index, part| {
                hints.told.push(false);
                produced(c, &mut hints, index, part)
            },
        )?;
        c.throttle()?;
        let any = !hints.endpoints.is_empty();
        groups_tag(c, found, &mut self.topic_groups, &mut [Tag::new(0, any, &mut |c| hints.pass_endpoints(c))])?;
        if c.reads() {
            hints.settle(self.parts.iter_mut().map(|part| &mut part.current_leader));
        }
        Ok(())
    }
}

fn produced(c: &mut Coder<'_>, hints: &mut Hints, index: &mut u32, part: &mut ProducePartAnswer) -> Done {
    c.u32("Index", index)?;
    c.code(&mut part.error)?;
    c.i64("BaseOffset", &mut part.base.0)?;
    c.always_i64("LogAppendTimeMs", -1)?;
    c.i64("LogStartOffset", &mut part.log_start.0)?;
    c.always_empty("RecordErrors", false)?;
    c.always_text("ErrorMessage", None)?;
    let hinted = Hints::present(c, part.current_leader);
    c.tags(&mut [Tag::new(0, hinted, &mut |c| hints.pass(c, &mut part.current_leader))])
}

// -------------------------------------------------------------------------------------------------------------------- fetch

impl Wire for FetchRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.preset(&mut self.replica, BrokerId::NONE);
        c.preset(&mut self.broker_epoch, BrokerEpoch(-1));
        let (replica, broker_epoch) = (&mut self.replica, &mut self.broker_epoch);
        c.u32("MaxWaitMs", &mut self.max_wait_ms)?;
        c.u32("MinBytes", &mut self.min_bytes)?;
        c.u32("MaxBytes", &mut self.max_bytes)?;
        isolation(c, &mut self.isolation)?;
        c.u32("SessionId", &mut self.session_id)?;
        c.i32("SessionEpoch", &mut self.session_epoch)?;
        let found = c.topics(By::Id, &mut self.parts, |part| &mut part.partition, fetch_part)?;
        c.array("ForgottenTopicsData", &mut self.forgotten, Coder::forgotten)?;
        c.always_text("RackId", Some(""))?;
        let follower = *replica != BrokerId::NONE || broker_epoch.0 != -1;
        let state = &mut |c: &mut Coder<'_>| {
            c.i32("ReplicaId", &mut replica.0)?;
            c.i64("ReplicaEpoch", &mut broker_epoch.0)?;
            c.end()
        };
        groups_tag(c, found, &mut self.topic_groups, &mut [Tag::new(1, follower, state)])
    }
}

fn fetch_part(c: &mut Coder<'_>, index: &mut u32, part: &mut FetchPart) -> Done {
    c.u32("Partition", index)?;
    c.i32("CurrentLeaderEpoch", &mut part.current_leader_epoch.0)?;
    c.i64("FetchOffset", &mut part.fetch_offset.0)?;
    c.i32("LastFetchedEpoch", &mut part.last_fetched_epoch.0)?;
    c.i64("LogStartOffset", &mut part.log_start.0)?;
    c.u32("PartitionMaxBytes", &mut part.max_bytes)?;
    c.preset(&mut part.mirror_leader_epoch, LeaderEpoch::NONE);
    let mirrors = part.mirror_leader_epoch != LeaderEpoch::NONE;
    c.preset(&mut part.aligned, LeaderEpoch::NONE);
    let aligned = part.aligned != LeaderEpoch::NONE;
    c.tags(&mut [
        Tag::new(2, mirrors, &mut |c| c.i32("MirrorLeaderEpoch", &mut part.mirror_leader_epoch.0)),
        Tag::new(tags::SLOT, true, &mut |c| c.u32("Slot", &mut part.slot)),
        Tag::new(tags::ALIGNED, aligned, &mut |c| c.i32("Aligned", &mut part.aligned.0)),
    ])
}

impl Wire for FetchResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.code(&mut self.error)?;
        c.u32("SessionId", &mut self.session_id)?;
        let mut hints = Hints::of(self.parts.iter().map(|part| part.current_leader));
        let batches = &mut self.batches;
        let found = c.topics(
            By::Id,
            &mut self.parts,
            |part| &mut part.partition,
            |c, index, part| {
                hints.told.push(false);
                fetched(c, &mut hints, batches, index, part)
            },
        )?;
        let any = !hints.endpoints.is_empty();
        groups_tag(c, found, &mut self.topic_groups, &mut [Tag::new(0, any, &mut |c| hints.pass_endpoints(c))])?;
        if c.reads() {
            hints.settle(self.parts.iter_mut().map(|part| &mut part.current_leader));
        }
        Ok(())
    }
}

fn fetched(
    c: &mut Coder<'_>,
    hints: &mut Hints,
    batches: &mut Vec<Bytes>,
    index: &mut u32,
    part: &mut FetchPartAnswer,
) -> Done {
    c.u32("PartitionIndex", index)?;
    c.code(&mut part.error)?;
    c.i64("HighWatermark", &mut part.high_watermark.0)?;
    c.i64("LastStableOffset", &mut part.last_stable.0)?;
    c.i64("LogStartOffset", &mut part.log_start.0)?;
    aborted(c, &mut part.aborted)?;
    c.always_i32("PreferredReadReplica", -1)?;
    // A range outside of the batches counts as none, as in the size.
    let first = part.first_batch as usize;
    let own = batches.get(first..first.saturating_add(part.batch_count as usize)).unwrap_or_default();
    let mut records = Records::pass(c, "Records", own)?;
    c.preset(&mut part.mirror_leader_epoch, LeaderEpoch::NONE);
    let mirrors = part.mirror_leader_epoch != LeaderEpoch::NONE;
    c.preset(&mut part.misaligned, false);
    let misaligned = part.misaligned;
    let (diverges, hinted, pieces) =
        (diverges(c, part.diverging), Hints::present(c, part.current_leader), records.in_pieces());
    c.tags(&mut [
        Tag::new(0, diverges, &mut |c| diverging(c, &mut part.diverging)),
        Tag::new(1, hinted, &mut |c| hints.pass(c, &mut part.current_leader)),
        Tag::new(3, mirrors, &mut |c| c.i32("MirrorLeaderEpoch", &mut part.mirror_leader_epoch.0)),
        Tag::new(tags::SLOT, true, &mut |c| c.u32("Slot", &mut part.slot)),
        Tag::new(tags::PIECES, pieces, &mut |c| records.lengths(c)),
        Tag::new(tags::ALIGNED, misaligned, &mut |_| {
            part.misaligned = true;
            Ok(())
        }),
    ])?;
    if c.reads() {
        let before = batches.len();
        records.cut(c, batches)?;
        part.first_batch = before as u32;
        part.batch_count = (batches.len() - before) as u32;
    }
    Ok(())
}

/// `AbortedTransactions`.
#[allow(clippy::box_collection, reason = "the message's own type: most entries have none")]
fn aborted(c: &mut Coder<'_>, aborted: &mut Option<Box<Vec<AbortedTransaction>>>) -> Done {
    let mut list = aborted.take().map(|list| *list);
    c.array_or_null("AbortedTransactions", &mut list, |c, transaction: &mut AbortedTransaction| {
        c.i64("ProducerId", &mut transaction.producer.0)?;
        c.i64("FirstOffset", &mut transaction.first.0)?;
        c.end()
    })?;
    *aborted = list.map(Box::new);
    Ok(())
}
