//! What operators ask of mirrors (spec 8.2 to 8.8, 8.14): APIs 94 to 99, 102 to 104 and 107, version 0.

use crate::states::MirrorState;
use crate::wire::codec::admin::{config_pairs, named_results};
use crate::wire::codec::coder::{Coder, DecodeError, Done, Wire, Wrong};
use crate::wire::codec::metadata::NO_OPERATIONS;
use crate::wire::codec::mirror_states::{position, state};
use crate::wire::codec::tags::{self, Tag};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    CreateClusterMirrorRequest, CreateClusterMirrorResponse, DeleteClusterMirrorRequest, DeleteClusterMirrorResponse,
    DescribeClusterMirrorsRequest, DescribeClusterMirrorsResponse, DescribedMirror, DescribedPart, FoundPosition,
    ListClusterMirrorsRequest, ListClusterMirrorsResponse, ListedMirror, NamedResult, PauseMirrorTopicsRequest,
    PauseMirrorTopicsResponse, RecoverMirrorTopicsRequest, RecoverMirrorTopicsResponse, ResumeMirrorTopicsRequest,
    ResumeMirrorTopicsResponse, StartMirrorTopicsRequest, StartMirrorTopicsResponse, StopMirrorTopicsRequest,
    StopMirrorTopicsResponse,
};
use std::sync::Arc;

/// Throttle time, verdict, message.
fn verdict(c: &mut Coder<'_>, error: &mut ErrorCode, message: &mut Option<Arc<str>>) -> Done {
    c.throttle()?;
    c.code(error)?;
    c.nullable("ErrorMessage", message)
}

/// A verdict that has no message here.
pub(super) fn bare_verdict(c: &mut Coder<'_>, error: &mut ErrorCode) -> Done {
    verdict(c, error, &mut None)
}

/// Topics by name, each a structure.
fn names(c: &mut Coder<'_>, topics: &mut Vec<Arc<str>>) -> Done {
    c.array("Topics", topics, |c, name| {
        c.text("TopicName", name)?;
        c.end()
    })
}

/// A verdict on the request and one per topic.
fn topic_verdicts(c: &mut Coder<'_>, error: &mut ErrorCode, topics: &mut Vec<NamedResult>) -> Done {
    bare_verdict(c, error)?;
    named_results(c, "Topics", topics)?;
    c.end()
}

impl Wire for CreateClusterMirrorRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.text("MirrorName", &mut self.mirror)?;
        config_pairs(c, "Config", &mut self.configs)?;
        c.end()
    }
}

impl Wire for CreateClusterMirrorResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        verdict(c, &mut self.error, &mut self.message)?;
        c.end()
    }
}

impl Wire for StartMirrorTopicsRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.text("MirrorName", &mut self.mirror)?;
        c.array("Topics", &mut self.topics, |c, (id, name, partitions)| {
            c.uuid("TopicId", &mut id.0)?;
            c.text("TopicName", name)?;
            c.u32("NumPartitions", partitions)?;
            c.end()
        })?;
        c.i64("StateValidationOffset", &mut self.state_offset.0)?;
        c.tags(&mut [
            Tag::new(0, !self.include.is_empty(), &mut |c| c.texts("IncludePatterns", &mut self.include)),
            Tag::new(1, !self.exclude.is_empty(), &mut |c| c.texts("ExcludePatterns", &mut self.exclude)),
        ])
    }
}

impl Wire for StartMirrorTopicsResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        topic_verdicts(c, &mut self.error, &mut self.topics)
    }
}

impl Wire for StopMirrorTopicsRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.text("MirrorName", &mut self.mirror)?;
        names(c, &mut self.topics)?;
        c.i64("StateValidationOffset", &mut self.state_offset.0)?;
        c.tags(&mut [Tag::new(0, !self.patterns.is_empty(), &mut |c| c.texts("Patterns", &mut self.patterns))])
    }
}

impl Wire for StopMirrorTopicsResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        topic_verdicts(c, &mut self.error, &mut self.topics)
    }
}

impl Wire for PauseMirrorTopicsRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.text("MirrorName", &mut self.mirror)?;
        names(c, &mut self.topics)?;
        c.i64("StateValidationOffset", &mut self.state_offset.0)?;
        c.end()
    }
}

impl Wire for PauseMirrorTopicsResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        topic_verdicts(c, &mut self.error, &mut self.topics)
    }
}

impl Wire for ResumeMirrorTopicsRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.text("MirrorName", &mut self.mirror)?;
        names(c, &mut self.topics)?;
        c.i64("StateValidationOffset", &mut self.state_offset.0)?;
        c.end()
    }
}

impl Wire for ResumeMirrorTopicsResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        topic_verdicts(c, &mut self.error, &mut self.topics)
    }
}

impl Wire for RecoverMirrorTopicsRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.text("MirrorName", &mut self.mirror)?;
        names(c, &mut self.topics)?;
        let (led, keep) = (!self.parts.is_empty(), self.keep_source);
        c.tags(&mut [
            Tag::new(tags::LED, led, &mut |c| c.array("Led", &mut self.parts, |c, part| c.u32("Led", &mut part.0))),
            Tag::new(tags::KEEP_SOURCE, keep, &mut |c| c.bool("KeepSource", &mut self.keep_source)),
        ])
    }
}

impl Wire for RecoverMirrorTopicsResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        topic_verdicts(c, &mut self.error, &mut self.topics)
    }
}

impl Wire for DeleteClusterMirrorRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.text("MirrorName", &mut self.mirror)?;
        c.i64("StateValidationOffset", &mut self.state_offset.0)?;
        c.end()
    }
}

impl Wire for DeleteClusterMirrorResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        verdict(c, &mut self.error, &mut self.message)?;
        c.end()
    }
}

impl Wire for ListClusterMirrorsRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.end()
    }
}

impl Wire for ListClusterMirrorsResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        bare_verdict(c, &mut self.error)?;
        c.array("Mirrors", &mut self.mirrors, |c, mirror: &mut ListedMirror| {
            c.text("MirrorName", &mut mirror.name)?;
            c.text("SourceBootstrap", &mut mirror.bootstrap)?;
            c.text("SourceClusterId", &mut mirror.source)?;
            c.u32("TopicCount", &mut mirror.mirroring)?;
            c.texts("TopicNames", &mut mirror.topics)?;
            c.end()
        })?;
        c.end()
    }
}

// ---------------------------------------------------------------------------------------------------------------- describe

impl Wire for DescribeClusterMirrorsRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.array_or_null("MirrorNames", &mut self.mirrors, |c, name| c.text("MirrorNames", name))?;
        c.always_bool("IncludeAuthorizedOperations", false)?;
        c.bool("IncludeStates", &mut self.states)?;
        c.bool("IncludeOffsets", &mut self.offsets)?;
        let (cluster, lookups) = (self.cluster.is_some(), !self.lookups.is_empty());
        c.tags(&mut [
            Tag::new(0, cluster, &mut |c| c.nullable("ClusterId", &mut self.cluster)),
            Tag::new(1, lookups, &mut |c| {
                c.array("LastMirrorEpochLookups", &mut self.lookups, |c, (topic, numbers)| {
                    c.uuid("TopicId", &mut topic.0)?;
                    c.array("Partitions", numbers, |c, number| c.u32("Partitions", number))?;
                    c.end()
                })
            }),
        ])
    }
}

impl Wire for DescribeClusterMirrorsResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        bare_verdict(c, &mut self.error)?;
        c.array("Mirrors", &mut self.mirrors, described)?;
        let found = !self.positions.is_empty();
        c.tags(&mut [Tag::new(0, found, &mut |c| positions(c, &mut self.positions))])
    }
}

fn described(c: &mut Coder<'_>, mirror: &mut DescribedMirror) -> Done {
    c.code(&mut mirror.error)?;
    c.text("MirrorName", &mut mirror.name)?;
    c.always_text("ErrorMessage", None)?;
    c.text("SourceBootstrap", &mut mirror.bootstrap)?;
    c.text("SourceClusterId", &mut mirror.source)?;
    c.always_i32("AuthorizedOperations", NO_OPERATIONS)?;
    c.runs(
        &mut mirror.parts,
        |part| part.topic.clone(),
        |c, topic| c.text("TopicName", topic),
        |c, topic, part| {
            part.topic = topic.clone();
            described_part(c, part)
        },
    )?;
    c.end()
}

fn described_part(c: &mut Coder<'_>, part: &mut DescribedPart) -> Done {
    c.u32("PartitionIndex", &mut part.number)?;
    c.i64("SourceOffset", &mut part.source_offset.0)?;
    c.i64("DestinationOffset", &mut part.destination_offset.0)?;
    let mut name = Arc::from(part.state.name());
    c.text("StateValue", &mut name)?;
    part.state = MirrorState::from_name(&name).ok_or_else(|| c.wrong("StateValue", Wrong::Form))?;
    c.i16("RetryAttempt", &mut part.attempt)?;
    c.nullable("ErrorMessage", &mut part.message)?;
    position(c, &mut part.position)?;
    let (written, heard) = (part.state_epoch != 0, part.source_age_ms.is_some());
    c.tags(&mut [
        Tag::new(tags::STATE_EPOCH, written, &mut |c| c.i32("StateEpoch", &mut part.state_epoch)),
        Tag::new(tags::SOURCE_AGE, heard, &mut |c| {
            let mut age = part.source_age_ms.unwrap_or_default();
            c.u32("SourceAge", &mut age)?;
            part.source_age_ms = Some(age);
            Ok(())
        }),
    ])
}

/// `LookupResults`, a tagged field.
fn positions(c: &mut Coder<'_>, found: &mut Vec<FoundPosition>) -> Done {
    c.runs(
        found,
        |found| found.topic,
        |c, topic| c.uuid("TopicId", &mut topic.0),
        |c, topic, found| {
            found.topic = *topic;
            c.u32("PartitionIndex", &mut found.number)?;
            c.code(&mut found.error)?;
            state(c, "State", &mut found.state)?;
            position(c, &mut found.position)?;
            let written = found.state_epoch != 0;
            c.tags(&mut [Tag::new(tags::STATE_EPOCH, written, &mut |c| c.i32("StateEpoch", &mut found.state_epoch))])
        },
    )
}

impl Coder<'_> {
    /// Topics and partitions where the entries themselves name the topic: neighbours of one topic go together.
    fn runs<T: Default, K: Default + PartialEq>(
        &mut self,
        entries: &mut Vec<T>,
        key: fn(&T) -> K,
        mut pass_key: impl FnMut(&mut Self, &mut K) -> Done,
        mut each: impl FnMut(&mut Self, &K, &mut T) -> Done,
    ) -> Done {
        if !self.reads() {
            let same = |a: &T, b: &T| key(a) == key(b);
            self.length("Topics", Some(entries.chunk_by(same).count()))?;
            for run in entries.chunk_by_mut(same) {
                let mut topic = key(&run[0]);
                pass_key(self, &mut topic)?;
                self.length("Partitions", Some(run.len()))?;
                run.iter_mut().try_for_each(|entry| each(self, &topic, entry))?;
                self.end()?;
            }
            return Ok(());
        }
        entries.clear();
        for _ in 0..self.some_length("Topics")? {
            let mut topic = K::default();
            pass_key(self, &mut topic)?;
            for _ in 0..self.some_length("Partitions")? {
                let mut entry = T::default();
                each(self, &topic, &mut entry)?;
                entries.push(entry);
            }
            self.end()?;
        }
        Ok(())
    }

    fn some_length(&mut self, field: &'static str) -> Result<usize, DecodeError> {
        self.length(field, None)?.ok_or_else(|| self.wrong(field, Wrong::Null))
    }
}
