//! Sizes of the messages of cluster mirroring (spec 8), all of version 0 and flexible.

use super::{
    array, array_of, by_name, config_pairs, named_result, nullable, numbers, string, tagged_if, BOOL, ERROR, I16, I32,
    I64, I8, NULL, TAGS, THROTTLE, UUID,
};
use crate::wire::messages::{
    Body, DescribeClusterMirrorsRequest, DescribeClusterMirrorsResponse, DescribedMirror, DescribedPart, NamedResult,
    StartMirrorTopicsRequest, StateWrite,
};
use std::sync::Arc;

/// The body of a message of this family; every other one has a size of its own in `super::body_size`.
pub(super) fn body_size(body: &Body) -> usize {
    use Body as B;
    match body {
        // Name, entries (8.2).
        B::CreateClusterMirrorRequest(r) => string(r.mirror.len()) + config_pairs(&r.configs) + TAGS,
        B::CreateClusterMirrorResponse(r) => THROTTLE + ERROR + nullable(r.message.as_deref()) + TAGS,
        B::StartMirrorTopicsRequest(r) => start(r),
        B::StartMirrorTopicsResponse(r) => results(&r.topics),
        // Name, names, offset; patterns are a tagged field (8.4).
        B::StopMirrorTopicsRequest(r) => named(&r.mirror, &r.topics) + I64 + TAGS + patterns(&r.patterns),
        B::StopMirrorTopicsResponse(r) => results(&r.topics),
        B::PauseMirrorTopicsRequest(r) => named(&r.mirror, &r.topics) + I64 + TAGS,
        B::PauseMirrorTopicsResponse(r) => results(&r.topics),
        B::ResumeMirrorTopicsRequest(r) => named(&r.mirror, &r.topics) + I64 + TAGS,
        B::ResumeMirrorTopicsResponse(r) => results(&r.topics),
        B::RecoverMirrorTopicsRequest(r) => named(&r.mirror, &r.topics) + TAGS,
        B::RecoverMirrorTopicsResponse(r) => results(&r.topics),
        B::DeleteClusterMirrorRequest(r) => string(r.mirror.len()) + I64 + TAGS,
        B::DeleteClusterMirrorResponse(r) => THROTTLE + ERROR + nullable(r.message.as_deref()) + TAGS,
        // Topic names are always told.
        B::ListClusterMirrorsRequest(_) => TAGS,
        B::ListClusterMirrorsResponse(r) => {
            let mirror = |m: &crate::wire::messages::ListedMirror| {
                string(m.name.len())
                    + string(m.bootstrap.len())
                    + string(m.source.len())
                    + I32
                    + names(&m.topics)
                    + TAGS
            };
            THROTTLE + ERROR + NULL + array_of(&r.mirrors, mirror) + TAGS
        }
        B::DescribeClusterMirrorsRequest(r) => describe(r),
        B::DescribeClusterMirrorsResponse(r) => described(r),
        // (Index, source offset, destination offset, error)*.
        B::ReadMirrorOffsetsRequest(r) => string(r.mirror.len()) + by_name(r.parts.len(), I32) + TAGS,
        B::ReadMirrorOffsetsResponse(r) => {
            THROTTLE + ERROR + NULL + by_name(r.parts.len(), I32 + I64 + I64 + ERROR) + TAGS
        }
        B::ReadMirrorStatesRequest(r) => string(r.mirror.len()) + by_name(r.parts.len(), I32) + TAGS,
        // (Index, state, leader epoch, state epoch, last epoch, last offset, error, message, attempt, previous)*.
        B::ReadMirrorStatesResponse(r) => {
            let fixed = I32 + I8 + I32 + I32 + I32 + I64 + ERROR + I16 + I8;
            let messages: usize = r.parts.iter().map(|(_, _, record)| nullable(record.message.as_deref())).sum();
            THROTTLE + ERROR + NULL + by_name(r.parts.len(), fixed) + messages + TAGS
        }
        B::WriteMirrorStatesRequest(r) => {
            // (Index, state, leader epoch, state epoch, last epoch, last offset, message, attempt, for good)*.
            let fixed = I32 + I8 + I32 + I32 + I32 + I64 + I32 + BOOL;
            let messages: usize = r.parts.iter().map(|w: &StateWrite| nullable(w.message.as_deref())).sum();
            string(r.mirror.len()) + by_name(r.parts.len(), fixed) + messages + TAGS
        }
        // (Index, error, null message, state epoch)*.
        B::WriteMirrorStatesResponse(r) => {
            THROTTLE + ERROR + NULL + by_name(r.parts.len(), I32 + ERROR + NULL + I32) + TAGS
        }
        // (Index, minimum)*, topics by name in the later schema (8.11).
        B::BumpLeaderEpochsRequest(r) => by_name(r.parts.len(), I32 + I32) + TAGS,
        B::BumpLeaderEpochsResponse(r) => THROTTLE + ERROR + NULL + by_name(r.parts.len(), I32 + ERROR + NULL) + TAGS,
        _ => 0,
    }
}

fn names(list: &[Arc<str>]) -> usize {
    array_of(list, |name| string(name.len()))
}

/// A mirror's name, and topics, each a structure.
fn named(mirror: &str, topics: &[Arc<str>]) -> usize {
    string(mirror.len()) + array_of(topics, |name| string(name.len()) + TAGS)
}

/// A tagged list of patterns, without the section's own byte.
fn patterns(list: &[Arc<str>]) -> usize {
    tagged_if(!list.is_empty(), names(list))
}

/// Error, null message, results (8.3).
fn results(topics: &[NamedResult]) -> usize {
    THROTTLE + ERROR + NULL + array_of(topics, named_result) + TAGS
}

fn start(r: &StartMirrorTopicsRequest) -> usize {
    // Source id, name, partitions (8.3); patterns are tagged fields.
    let topics = array_of(&r.topics, |(_, name, _)| UUID + string(name.len()) + I32 + TAGS);
    string(r.mirror.len()) + topics + I64 + TAGS + patterns(&r.include) + patterns(&r.exclude)
}

fn describe(r: &DescribeClusterMirrorsRequest) -> usize {
    // Names or null, authorised operations, states, offsets; cluster and look-ups are tagged.
    let mirrors = r.mirrors.as_deref().map_or(NULL, names);
    let cluster = r.cluster.as_deref().map_or(0, |id| tagged_if(true, string(id.len())));
    let lookups = array_of(&r.lookups, |(_, numbers_of)| UUID + numbers(numbers_of.len()) + TAGS);
    mirrors + BOOL + BOOL + BOOL + TAGS + cluster + tagged_if(!r.lookups.is_empty(), lookups)
}

fn described(r: &DescribeClusterMirrorsResponse) -> usize {
    // Error, name, null message, bootstrap, source, operations, topics.
    let mirror = |m: &DescribedMirror| {
        let parts: usize = m.parts.iter().map(described_part).sum();
        let texts = string(m.name.len()) + string(m.bootstrap.len()) + string(m.source.len());
        ERROR + texts + NULL + I32 + array(m.parts.len()) + parts + TAGS
    };
    // (Topic id, (number, error, state, last epoch, last offset)*)*.
    let position = UUID + array(1) + I32 + ERROR + I8 + I32 + I64 + TAGS + TAGS;
    let positions = array(r.positions.len()) + r.positions.len() * position;
    let found = tagged_if(!r.positions.is_empty(), positions);
    THROTTLE + ERROR + NULL + array_of(&r.mirrors, mirror) + TAGS + found
}

/// One topic per entry: name, and one partition with state, attempt, message, last epoch and offset, both offsets.
fn described_part(p: &DescribedPart) -> usize {
    let texts = string(p.topic.len()) + string(p.state.name().len()) + nullable(p.message.as_deref());
    texts + array(1) + I32 + I16 + I32 + I64 + I64 + I64 + TAGS + TAGS
}
