//! Sizes of the messages of the metadata quorum; see the parent.

use super::*;

pub(super) fn body_size(body: &Body) -> Option<usize> {
    use Body as B;
    const PART: usize = I32 + TAGS;
    Some(match body {
        B::RaftFetchRequest(r) => RAFT_FETCH_REQUEST + tagged_if(r.directory != 0, UUID),
        B::RaftFetchResponse(r) => raft_fetch_response(r),
        B::FetchSnapshotRequest(_) => FETCH_SNAPSHOT_REQUEST,
        B::FetchSnapshotResponse(r) => fetch_snapshot_response(r),
        // Voter; epoch, candidate, both directories, last epoch, end, pre-vote.
        B::VoteRequest(_) => REQUEST + I32 + PART + (I32 + I32 + UUID + UUID + I32 + I64 + BOOL),
        B::VoteResponse(r) => response(r.leader) + PART + BOOL,
        // Voter; its directory, leader, epoch; where the leader is.
        B::BeginQuorumEpochRequest(_) => REQUEST + I32 + PART + (UUID + I32 + I32) + ENDPOINT,
        B::BeginQuorumEpochResponse(r) => response(r.leader) + PART,
        B::EndQuorumEpochRequest(r) => {
            let successors = array_of(&r.successors, |_| I32 + UUID + TAGS);
            REQUEST + PART + (I32 + I32) + successors + ENDPOINT
        }
        B::EndQuorumEpochResponse(r) => response(r.leader) + PART,
        _ => return None,
    })
}

/// The metadata topic with one partition.
const TOPIC: usize = single(string(METADATA_TOPIC.len()));
/// Cluster id, topic.
const REQUEST: usize = string(CLUSTER_ID_LEN) + TOPIC + TAGS;
/// Listener's name, host, port.
const ENDPOINT: usize = array(1) + string(LISTENER.len()) + string(HOST_LEN) + U16 + TAGS;

/// Errors, topic, leader and epoch; where the leader is, if it is known.
fn response(leader: Option<crate::ids::NodeId>) -> usize {
    let endpoint = array(1) + I32 + string(HOST_LEN) + U16 + TAGS;
    ERROR + TOPIC + TAGS + (ERROR + I32 + I32) + tagged_if(leader.is_some(), endpoint)
}

/// A fetch without session of the metadata partition, with the tagged fields of a quorum member: cluster id, replica state,
/// high watermark; without the replica directory id.
const RAFT_FETCH_REQUEST: usize = I32
    + I32
    + I32
    + I8
    + I32
    + I32
    + NULL
    + TAGS
    + tagged(string(CLUSTER_ID_LEN))
    + tagged(REPLICA_STATE)
    + single(UUID)
    + FETCH_PART
    + tagged(I64)
    + NULL;

fn raft_fetch_response(r: &RaftFetchResponse) -> usize {
    let known = r.leader.is_some();
    let fields = r.diverging.map_or(0, |end| diverging(end.epoch, end.end))
        + tagged_if(known || r.epoch != LeaderEpoch::NONE, I32 + I32 + TAGS)
        + tagged_if(r.snapshot.is_some(), SNAPSHOT_ID);
    let part = FETCH_ANSWER + string(bytes_in(&r.batches)) + NULL + fields;
    THROTTLE + ERROR + I32 + single(UUID) + part + TAGS + endpoints_field(usize::from(known))
}

/// Cluster id (tagged), replica, max bytes; partition, leader epoch, snapshot id, position, directory id (tagged).
const FETCH_SNAPSHOT_REQUEST: usize = tagged(string(CLUSTER_ID_LEN))
    + I32
    + I32
    + single(string(METADATA_TOPIC.len()))
    + (I32 + I32 + SNAPSHOT_ID + I64 + TAGS + tagged(UUID))
    + TAGS;

fn fetch_snapshot_response(r: &FetchSnapshotResponse) -> usize {
    // Index, error, snapshot id, size, position, bytes; leader and epoch as a tagged field.
    let part = I32 + ERROR + SNAPSHOT_ID + I64 + I64 + string(bytes_in(&r.bytes)) + TAGS + tagged(I32 + I32 + TAGS);
    THROTTLE + ERROR + single(string(METADATA_TOPIC.len())) + part + TAGS
}
