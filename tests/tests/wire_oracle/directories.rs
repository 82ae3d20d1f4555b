//! Directories of the tests: who stands where, by rule.

use mirrorlab_model::ids::{PartitionIx, TopicId};
use mirrorlab_model::wire::codec::{Directory, Place};
use mirrorlab_model::wire::messages::{Body, Message};

/// The first `known` partitions are dealt to topics: `per_topic` each, the first `larger` topics one more.
#[derive(Clone, Copy, Debug)]
pub struct Dealt {
    pub known: u32,
    pub per_topic: u32,
    pub larger: u32,
}

/// As long as sizes assume.
const CLUSTER: &str = "a-cluster-id-as-usual-";

impl Dealt {
    fn topic(&self, ix: u32) -> (u32, u32) {
        let big = self.per_topic + 1;
        if ix < self.larger * big {
            return (ix / big, ix % big);
        }
        let rest = ix - self.larger * big;
        (self.larger + rest / self.per_topic, rest % self.per_topic)
    }
    fn index(&self, topic: u32, number: u32) -> Option<PartitionIx> {
        let (count, first) = if topic < self.larger {
            (self.per_topic + 1, u64::from(topic) * u64::from(self.per_topic + 1))
        } else {
            let small = u64::from(topic - self.larger);
            (self.per_topic, u64::from(self.larger) + (u64::from(self.larger) + small) * u64::from(self.per_topic))
        };
        let ix = first + u64::from(number);
        (number < count && ix < u64::from(self.known)).then_some(PartitionIx(ix as u32))
    }
}

/// Topic 7 has id 7 with a mark and the name `topic-0000000007`.
const ID: u128 = 0xabcd << 100;

impl Directory for Dealt {
    fn place(&self, partition: PartitionIx) -> Option<Place> {
        let (topic, number) = (partition.0 < self.known).then(|| self.topic(partition.0))?;
        Some(Place { id: TopicId(ID | u128::from(topic)), name: format!("topic-{topic:010}").into(), number })
    }
    fn by_id(&self, topic: TopicId, number: u32) -> Option<PartitionIx> {
        self.index(u32::try_from(topic.0 ^ ID).ok()?, number)
    }
    fn by_name(&self, topic: &str, number: u32) -> Option<PartitionIx> {
        self.index(topic.strip_prefix("topic-")?.parse().ok()?, number)
    }
    fn cluster_id(&self) -> &str {
        CLUSTER
    }
}

/// Numbers the message's partitions so that a directory can say of it what sizes assume: entries spread evenly over the
/// counted topics in produce and fetch, and one topic per entry elsewhere.
pub fn as_sizes_assume(message: &mut Message) -> Dealt {
    let mut next = 0;
    let mut number = |partition: &mut PartitionIx| {
        *partition = PartitionIx(next);
        next += 1;
    };
    let groups = match &mut message.body {
        Body::ProduceRequest(r) => {
            r.parts.iter_mut().for_each(|part| number(&mut part.partition));
            r.topic_groups
        }
        Body::ProduceResponse(r) => {
            r.parts.iter_mut().for_each(|part| number(&mut part.partition));
            r.topic_groups
        }
        Body::FetchRequest(r) => {
            r.parts.iter_mut().for_each(|part| number(&mut part.partition));
            r.topic_groups
        }
        Body::FetchResponse(r) => {
            r.parts.iter_mut().for_each(|part| number(&mut part.partition));
            r.topic_groups
        }
        other => {
            number_all(other, &mut number);
            next.max(1)
        }
    };
    let groups = groups.max(1);
    Dealt { known: next, per_topic: (next / groups).max(1), larger: next % groups }
}

fn number_all(body: &mut Body, number: &mut impl FnMut(&mut PartitionIx)) {
    match body {
        Body::ListOffsetsRequest(r) => r.parts.iter_mut().for_each(|p| number(&mut p.partition)),
        Body::ListOffsetsResponse(r) => r.parts.iter_mut().for_each(|p| number(&mut p.partition)),
        Body::OffsetForLeaderEpochRequest(r) => r.parts.iter_mut().for_each(|p| number(&mut p.partition)),
        Body::OffsetForLeaderEpochResponse(r) => r.parts.iter_mut().for_each(|p| number(&mut p.partition)),
        Body::DeleteRecordsRequest(r) => r.parts.iter_mut().for_each(|p| number(&mut p.0)),
        Body::DeleteRecordsResponse(r) => r.parts.iter_mut().for_each(|p| number(&mut p.0)),
        Body::AlterPartitionRequest(r) => r.parts.iter_mut().for_each(|p| number(&mut p.partition)),
        Body::AlterPartitionResponse(r) => r.parts.iter_mut().for_each(|p| number(&mut p.partition)),
        Body::ElectLeadersRequest(r) => r.parts.iter_mut().for_each(number),
        Body::ElectLeadersResponse(r) => r.parts.iter_mut().for_each(|p| number(&mut p.0)),
        Body::OffsetCommitRequest(r) => r.parts.iter_mut().for_each(|p| number(&mut p.0)),
        Body::OffsetCommitResponse(r) => r.parts.iter_mut().for_each(|p| number(&mut p.0)),
        Body::OffsetFetchRequest(r) => r.parts.iter_mut().for_each(number),
        Body::OffsetFetchResponse(r) => r.parts.iter_mut().for_each(|p| number(&mut p.0)),
        Body::AddPartitionsToTxnRequest(r) => r.parts.iter_mut().for_each(number),
        Body::AddPartitionsToTxnResponse(r) => r.parts.iter_mut().for_each(|p| number(&mut p.0)),
        Body::WriteTxnMarkersRequest(r) => r.markers.iter_mut().flat_map(|m| &mut m.parts).for_each(number),
        Body::WriteTxnMarkersResponse(r) => {
            r.markers.iter_mut().flat_map(|m| &mut m.parts).for_each(|p| number(&mut p.0));
        }
        Body::ReadMirrorOffsetsRequest(r) => r.parts.iter_mut().for_each(number),
        Body::ReadMirrorOffsetsResponse(r) => r.parts.iter_mut().for_each(|p| number(&mut p.0)),
        Body::ReadMirrorStatesRequest(r) => r.parts.iter_mut().for_each(number),
        Body::ReadMirrorStatesResponse(r) => r.parts.iter_mut().for_each(|p| number(&mut p.0)),
        Body::WriteMirrorStatesRequest(r) => r.parts.iter_mut().for_each(|p| number(&mut p.partition)),
        Body::WriteMirrorStatesResponse(r) => r.parts.iter_mut().for_each(|p| number(&mut p.0)),
        Body::BumpLeaderEpochsRequest(r) => r.parts.iter_mut().for_each(|p| number(&mut p.0)),
        Body::BumpLeaderEpochsResponse(r) => r.parts.iter_mut().for_each(|p| number(&mut p.0)),
        // Here the entries name topics themselves; neighbours of one topic share a structure that sizes count for each.
        Body::DescribeClusterMirrorsResponse(r) => {
            for (at, part) in r.mirrors.iter_mut().flat_map(|m| &mut m.parts).enumerate() {
                part.topic = format!("{}{at}", part.topic).into();
            }
            for (at, found) in r.positions.iter_mut().enumerate() {
                found.topic = TopicId(at as u128);
            }
        }
        _ => {}
    }
}
