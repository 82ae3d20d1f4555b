//! What this broker tells of mirrors: which there are, the committed states of the partitions that it coordinates, and the
//! offsets of those that it leads (spec 8.7, 8.8, 8.13; decisions 6, 19, 23, 34). Whoever asks about all asks every broker.

use crate::broker::broker::Broker;
use crate::ids::{MirrorIx, Nanos, Now, Offset, PartitionIx};
use crate::metadata::image::MirrorImage;
use crate::mirror::records::StateKey;
use crate::ports::Cx;
use crate::states::{DesiredState, StateRecord};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    Body, DescribeClusterMirrorsRequest, DescribeClusterMirrorsResponse, DescribedMirror, DescribedPart, FoundPosition,
    ListClusterMirrorsResponse, ListedMirror, ReadMirrorOffsetsRequest, ReadMirrorOffsetsResponse,
};
use std::sync::Arc;

/// A source that has not answered for so much longer than a fetch may wait there is silent: its watermark is not known
/// (decision 19).
const SILENCE: Nanos = Nanos::from_secs(5);

impl Broker {
    /// Takes up a request of an operator, or of another cluster about our mirrors; gives back any other.
    pub(crate) fn on_operator(
        &mut self,
        conn: crate::ids::ConnId,
        correlation: u32,
        body: Body,
        now: Now,
        cx: &mut Cx,
    ) -> Option<Body> {
        let unknown = !self.config.release.has_mirrors();
        let answer: Body = match body {
            Body::ListClusterMirrorsRequest(_) if unknown => {
                ListClusterMirrorsResponse { error: ErrorCode::UnsupportedVersion, ..Default::default() }.into()
            }
            Body::DescribeClusterMirrorsRequest(_) if unknown => {
                DescribeClusterMirrorsResponse { error: ErrorCode::UnsupportedVersion, ..Default::default() }.into()
            }
            Body::StartMirrorTopicsRequest(_)
            | Body::StopMirrorTopicsRequest(_)
            | Body::PauseMirrorTopicsRequest(_)
            | Body::ResumeMirrorTopicsRequest(_)
            | Body::DeleteClusterMirrorRequest(_) => {
                self.on_order(conn, correlation, body, now, cx);
                return None;
            }
            Body::RecoverMirrorTopicsRequest(request) => {
                self.on_recover(conn, correlation, *request, now, cx);
                return None;
            }
            Body::ListClusterMirrorsRequest(_) => self.list_mirrors().into(),
            Body::DescribeClusterMirrorsRequest(request) => self.describe_mirrors(&request, now).into(),
            Body::ReadMirrorOffsetsRequest(request) => self.mirror_offsets(&request, now).into(),
            other => return Some(other),
        };
        self.respond(conn, correlation, answer, cx);
        None
    }

    fn list_mirrors(&self) -> ListClusterMirrorsResponse {
        let mirrors = self.image.mirrors().map(|(_, mirror)| self.listed(mirror)).collect();
        ListClusterMirrorsResponse { error: ErrorCode::None, mirrors }
    }

    fn listed(&self, mirror: &MirrorImage) -> ListedMirror {
        let members = mirror.topics.iter().filter_map(|topic| self.image.topic(*topic));
        let active = members.filter_map(|topic| match topic.mirror {
            Some((_, desired @ (DesiredState::Mirroring | DesiredState::Paused))) => {
                Some((topic.name.clone(), desired))
            }
            _ => None,
        });
        let active: Vec<(Arc<str>, DesiredState)> = active.collect();
        ListedMirror {
            name: mirror.name.clone(),
            bootstrap: nodes_text(mirror),
            source: mirror.config.source_cluster_id.clone(),
            mirroring: active.iter().filter(|(_, desired)| *desired == DesiredState::Mirroring).count() as u32,
            topics: active.into_iter().map(|(name, _)| name).collect(),
        }
    }

    // ----------------------------------------------------------------------------------------------------------- describe

    fn describe_mirrors(&self, request: &DescribeClusterMirrorsRequest, now: Now) -> DescribeClusterMirrorsResponse {
        let mirrors = match &request.mirrors {
            None => self.image.mirrors().map(|(ix, mirror)| self.describe_mirror(ix, mirror, request, now)).collect(),
            Some(names) => {
                let one = |name: &Arc<str>| match self.image.mirror_by_name(name) {
                    Some(ix) => self.image.mirror(ix).map(|mirror| self.describe_mirror(ix, mirror, request, now)),
                    None => None,
                };
                let unknown = |name: &Arc<str>| DescribedMirror {
                    name: name.clone(),
                    error: ErrorCode::UnknownClusterMirror,
                    ..DescribedMirror::default()
                };
                names.iter().map(|name| one(name).unwrap_or_else(|| unknown(name))).collect()
            }
        };
        DescribeClusterMirrorsResponse { error: ErrorCode::None, mirrors, positions: self.look_up(request) }
    }

    /// One mirror: nothing of its configuration but where its source is (decision 23).
    fn describe_mirror(
        &self,
        ix: MirrorIx,
        mirror: &MirrorImage,
        request: &DescribeClusterMirrorsRequest,
        now: Now,
    ) -> DescribedMirror {
        let mut parts = Vec::new();
        let mut topics: Vec<_> = mirror.topics.iter().filter_map(|topic| self.image.topic(*topic)).collect();
        topics.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for topic in topics.into_iter().filter(|_| request.states || request.offsets) {
            for (number, &partition) in topic.partitions.iter().enumerate() {
                let key = StateKey { mirror: mirror.name.clone(), topic: topic.id, number: number as u32 };
                let committed = self.mirror.coordinator.read(&key, &self.image).ok();
                let led = self.mirror.part(partition).filter(|part| part.mirror == ix);
                if committed.is_none() && led.is_none() {
                    continue;
                }
                // The coordinator's word comes first; a leader tells what it was told.
                let record = match committed {
                    Some(record) => record,
                    None => led.and_then(|part| part.record.clone()),
                };
                let mut part = described(topic.name.clone(), number as u32, record.unwrap_or_default());
                if !request.states {
                    (part.state, part.attempt, part.message) = Default::default();
                }
                if request.offsets && led.is_some() {
                    (part.source_offset, part.destination_offset, part.source_age_ms) =
                        self.offsets_of(partition, &mirror.config, now);
                }
                parts.push(part);
            }
        }
        DescribedMirror {
            name: mirror.name.clone(),
            error: ErrorCode::None,
            bootstrap: nodes_text(mirror),
            source: mirror.config.source_cluster_id.clone(),
            parts,
        }
    }

    /// Source offset, destination offset, and how old the first is; only while the partition is copied (spec 8.8).
    fn offsets_of(
        &self,
        partition: PartitionIx,
        config: &crate::metadata::configs::MirrorConfig,
        now: Now,
    ) -> (Offset, Offset, Option<u32>) {
        if !self.mirror.is_fetching(partition) {
            return (Offset::UNKNOWN, Offset::UNKNOWN, None);
        }
        let here = self.replicas.log(partition).map_or(Offset::UNKNOWN, |log| log.high_watermark());
        let Some((source, at)) = self.mirror.source_high_watermark(partition) else {
            let guess = self.mirror.lag_begins_at_zero; // only with its quirk
            return if guess { (here, here, Some(0)) } else { (Offset::UNKNOWN, here, None) };
        };
        let age = now.mono.since(at);
        let silent = age > SILENCE + Nanos::from_millis(u64::from(config.fetch_wait_max_ms));
        let age_ms = u32::try_from(age.as_millis()).unwrap_or(u32::MAX);
        (if silent { Offset::UNKNOWN } else { source }, here, Some(age_ms))
    }

    /// The last mirrored positions that another cluster asks for, of the mirrors asked about that have it as their source: those
    /// that this broker coordinates, and nothing of the others (decisions 6 and 34).
    fn look_up(&self, request: &DescribeClusterMirrorsRequest) -> Vec<FoundPosition> {
        let Some(cluster) = &request.cluster else { return Vec::new() };
        let mut found = Vec::new();
        let meant = |mirror: &MirrorImage| {
            mirror.config.source_cluster_id == *cluster
                && request.mirrors.as_ref().is_none_or(|names| names.contains(&mirror.name))
        };
        for (_, mirror) in self.image.mirrors().filter(|(_, mirror)| meant(mirror)) {
            for (topic, numbers) in &request.lookups {
                for &number in numbers {
                    let key = StateKey { mirror: mirror.name.clone(), topic: *topic, number };
                    let (error, record) = match self.mirror.coordinator.read(&key, &self.image) {
                        Ok(record) => (ErrorCode::None, record.unwrap_or_default()),
                        Err(ErrorCode::NotCoordinator) => continue,
                        Err(error) => (error, StateRecord::default()),
                    };
                    let StateRecord { state, position, state_epoch, .. } = record;
                    found.push(FoundPosition { topic: *topic, number, error, state, position, state_epoch });
                }
            }
        }
        found
    }

    fn mirror_offsets(&self, request: &ReadMirrorOffsetsRequest, now: Now) -> ReadMirrorOffsetsResponse {
        let Some(mirror) = self.image.mirror_by_name(&request.mirror) else {
            return ReadMirrorOffsetsResponse { error: ErrorCode::UnknownClusterMirror, parts: Vec::new() };
        };
        let config = self.image.mirror(mirror).map(|m| m.config.clone()).unwrap_or_default();
        let read = |&partition: &PartitionIx| match self.mirror.part(partition) {
            Some(part) if part.mirror == mirror => {
                let (source, here, _) = self.offsets_of(partition, &config, now);
                (partition, source, here, ErrorCode::None)
            }
            Some(_) => (partition, Offset::UNKNOWN, Offset::UNKNOWN, ErrorCode::TopicNotInClusterMirror),
            None => (partition, Offset::UNKNOWN, Offset::UNKNOWN, ErrorCode::NotLeaderOrFollower),
        };
        ReadMirrorOffsetsResponse { error: ErrorCode::None, parts: request.parts.iter().map(read).collect() }
    }
}

fn described(topic: Arc<str>, number: u32, record: StateRecord) -> DescribedPart {
    DescribedPart {
        topic,
        number,
        state: record.state,
        attempt: record.attempt,
        message: record.message,
        position: record.position,
        source_offset: Offset::UNKNOWN,
        destination_offset: Offset::UNKNOWN,
        state_epoch: record.state_epoch,
        source_age_ms: None,
    }
}

fn nodes_text(mirror: &MirrorImage) -> Arc<str> {
    let list: Vec<String> = mirror.source_nodes.iter().map(ToString::to_string).collect();
    list.join(",").into()
}
