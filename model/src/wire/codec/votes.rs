//! Vote (52, KIP-595, 996), BeginQuorumEpoch (53) and EndQuorumEpoch (54), with directory ids (KIP-853).
//!
//! Errors stand at the partition; the one above it is that of a wrong cluster id.

use crate::ids::{LeaderEpoch, NodeId};
use crate::wire::codec::coder::{Coder, Done, Wire};
use crate::wire::codec::directory::PORT;
use crate::wire::codec::raft::{one, single};
use crate::wire::codec::tags::Tag;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    BeginQuorumEpochRequest, BeginQuorumEpochResponse, EndQuorumEpochRequest, EndQuorumEpochResponse, VoteRequest,
    VoteResponse,
};
use crate::wire::size::LISTENER;

fn cluster(c: &mut Coder<'_>) -> Done {
    let id = c.dir.cluster_id();
    c.always_text("ClusterId", Some(id))
}

/// Where the leader is that speaks.
fn leader_endpoint(c: &mut Coder<'_>, leader: NodeId) -> Done {
    one(c, "LeaderEndpoints")?;
    c.always_text("Name", Some(LISTENER))?;
    c.host(&mut { leader })?;
    c.always_i16("Port", PORT as i16)?;
    c.end()
}

impl Wire for VoteRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        cluster(c)?;
        c.controller("VoterId", &mut self.voter)?;
        single(c, true, |c| {
            c.always_i32("PartitionIndex", 0)?;
            c.i32("ReplicaEpoch", &mut self.epoch.0)?;
            c.controller("ReplicaId", &mut self.candidate)?;
            c.uuid("ReplicaDirectoryId", &mut self.candidate_directory)?;
            c.uuid("VoterDirectoryId", &mut self.voter_directory)?;
            c.i32("LastOffsetEpoch", &mut self.last_epoch.0)?;
            c.i64("LastOffset", &mut self.end.0)?;
            c.bool("PreVote", &mut self.pre_vote)?;
            c.end()
        })?;
        c.end()
    }
}

/// What all answers have: the partition's verdict, its leader and epoch, and where that leader is.
fn answer(
    c: &mut Coder<'_>,
    (error, leader, epoch): (&mut ErrorCode, &mut Option<NodeId>, &mut LeaderEpoch),
    more: impl FnOnce(&mut Coder<'_>) -> Done,
) -> Done {
    c.always_i16("ErrorCode", 0)?;
    single(c, true, |c| {
        c.always_i32("PartitionIndex", 0)?;
        c.code(error)?;
        c.maybe_controller("LeaderId", leader)?;
        c.i32("LeaderEpoch", &mut epoch.0)?;
        more(c)?;
        c.end()
    })?;
    let mut known: Vec<NodeId> = leader.iter().copied().collect();
    c.tags(&mut [Tag::new(0, leader.is_some(), &mut |c| {
        c.array("NodeEndpoints", &mut known, |c, node| {
            let mut id = *node;
            c.controller("NodeId", &mut id)?;
            c.host(node)?;
            c.always_i16("Port", PORT as i16)?;
            c.end()
        })
    })])
}

impl Wire for VoteResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        let granted = &mut self.granted;
        answer(c, (&mut self.error, &mut self.leader, &mut self.epoch), |c| c.bool("VoteGranted", granted))
    }
}

impl Wire for BeginQuorumEpochRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        cluster(c)?;
        c.controller("VoterId", &mut self.voter)?;
        single(c, true, |c| {
            c.always_i32("PartitionIndex", 0)?;
            c.uuid("VoterDirectoryId", &mut self.voter_directory)?;
            c.controller("LeaderId", &mut self.leader)?;
            c.i32("LeaderEpoch", &mut self.epoch.0)?;
            c.end()
        })?;
        leader_endpoint(c, self.leader)?;
        c.end()
    }
}

impl Wire for BeginQuorumEpochResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        answer(c, (&mut self.error, &mut self.leader, &mut self.epoch), |_| Ok(()))
    }
}

impl Wire for EndQuorumEpochRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        cluster(c)?;
        single(c, true, |c| {
            c.always_i32("PartitionIndex", 0)?;
            c.controller("LeaderId", &mut self.leader)?;
            c.i32("LeaderEpoch", &mut self.epoch.0)?;
            c.array("PreferredCandidates", &mut self.successors, |c, (node, directory)| {
                c.controller("CandidateId", node)?;
                c.uuid("CandidateDirectoryId", directory)?;
                c.end()
            })?;
            c.end()
        })?;
        leader_endpoint(c, self.leader)?;
        c.end()
    }
}

impl Wire for EndQuorumEpochResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        answer(c, (&mut self.error, &mut self.leader, &mut self.epoch), |_| Ok(()))
    }
}
