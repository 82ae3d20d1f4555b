//! Sizes of the messages of transactions; see the parent.

use super::*;
use crate::wire::messages::WriteTxnMarkersRequest;

pub(super) fn body_size(body: &Body) -> Option<usize> {
    use Body as B;
    Some(match body {
        // Kind, keys.
        B::FindCoordinatorRequest(r) => I8 + array_of(&r.keys, |key| string(key.len())) + TAGS,
        // (Key, node, host, port, error, null message)*.
        B::FindCoordinatorResponse(r) => {
            let found = |f: &FoundCoordinator| {
                let host = string(if f.node.is_some() { HOST_LEN } else { 0 });
                string(f.key.len()) + I32 + host + I32 + ERROR + NULL + TAGS
            };
            THROTTLE + array_of(&r.coordinators, found) + TAGS
        }
        // Transactional id, id, epoch, index*.
        B::AddPartitionsToTxnRequest(r) => string(r.transactional_id.len()) + I64 + I16 + indexes(r.parts.len()) + TAGS,
        // (Index, error)*.
        B::AddPartitionsToTxnResponse(r) => THROTTLE + by_name(r.parts.len(), I32 + ERROR) + TAGS,
        // Transactional id, id, epoch, committed.
        B::EndTxnRequest(r) => string(r.transactional_id.len()) + I64 + I16 + BOOL + TAGS,
        B::EndTxnResponse(_) => THROTTLE + ERROR + I64 + I16 + TAGS,
        // (Id, epoch, committed, index*, coordinator epoch, transaction version)*.
        B::WriteTxnMarkersRequest(r) => {
            let version = if names_versions(r) { I8 } else { 0 };
            array_of(&r.markers, |m| I64 + I16 + BOOL + indexes(m.parts.len()) + I32 + version + TAGS) + TAGS
        }
        // (Id, (index, error)*)*; nobody throttles a broker.
        B::WriteTxnMarkersResponse(r) => {
            array_of(&r.markers, |m| I64 + by_name(m.parts.len(), I32 + ERROR) + TAGS) + TAGS
        }
        _ => return None,
    })
}

/// Bare indexes, one topic each, by name.
fn indexes(len: usize) -> usize {
    named_topics(len) + len * I32
}

/// Whether some marker names its transaction version, which the first version of the request has no place for.
pub(super) fn names_versions(request: &WriteTxnMarkersRequest) -> bool {
    request.markers.iter().any(|marker| marker.version != 0)
}
