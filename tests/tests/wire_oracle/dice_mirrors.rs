//! As the parent, for the messages that only the proposal has.

use super::Dice;
use mirrorlab_model::ids::*;
use mirrorlab_model::states::{LastPosition, MirrorState, Session, StateRecord};
use mirrorlab_model::wire::messages::*;

/// How many kinds [`mirror_body`] knows.
pub const MIRRORS: u64 = 26;

impl Dice {
    fn state(&mut self) -> MirrorState {
        MirrorState::ALL[self.below(10) as usize]
    }
    fn position(&mut self) -> Option<LastPosition> {
        let offset = Offset(self.below(1 << 40) as i64);
        self.coin().then(|| LastPosition { epoch: self.epoch(), offset })
    }
    fn offset(&mut self) -> MetadataOffset {
        MetadataOffset(self.i64())
    }
    fn record(&mut self) -> StateRecord {
        StateRecord {
            session: self.coin().then(|| Session(self.below(1 << 20) as u32)),
            state: self.state(),
            leader_epoch: self.epoch(),
            state_epoch: self.i32(),
            previous: self.state(),
            attempt: self.small() as i16,
            message: self.maybe_text(),
            position: self.position(),
        }
    }
    fn listed(&mut self) -> ListedMirror {
        let mirroring = self.below(9) as u32;
        ListedMirror {
            name: self.text(),
            bootstrap: self.text(),
            source: self.text(),
            mirroring,
            topics: self.list(Self::text),
        }
    }
    fn described(&mut self) -> DescribedMirror {
        let part = |d: &mut Self| DescribedPart {
            topic: d.text(),
            number: d.below(300) as u32,
            state: d.state(),
            attempt: d.small() as i16,
            message: d.maybe_text(),
            position: d.position(),
            source_offset: Offset(d.i64()),
            destination_offset: Offset(d.i64()),
            state_epoch: d.i32(),
            source_age_ms: d.coin().then(|| d.below(1 << 20) as u32),
        };
        DescribedMirror {
            name: self.text(),
            error: self.error(),
            bootstrap: self.text(),
            source: self.text(),
            parts: self.list(part),
        }
    }
    fn found(&mut self) -> FoundPosition {
        FoundPosition {
            topic: TopicId(u128::from(self.below(3))),
            number: self.below(300) as u32,
            error: self.error(),
            state: self.state(),
            position: self.position(),
            state_epoch: self.i32(),
        }
    }
    fn write(&mut self) -> StateWrite {
        StateWrite {
            partition: self.partition(),
            state: self.state(),
            leader_epoch: self.epoch(),
            state_epoch: self.i32(),
            position: if self.below(4) == 0 { Some(LastPosition::CLEAR) } else { self.position() },
            message: self.maybe_text(),
            attempt: self.small(),
            for_good: self.coin(),
        }
    }
}

/// A random message of the mirrors'.
#[allow(clippy::too_many_lines)] // one arm per kind
pub fn mirror_body(kind: u64, d: &mut Dice) -> Body {
    match kind {
        0 => CreateClusterMirrorRequest { mirror: d.text(), configs: d.list(Dice::pair) }.into(),
        1 => CreateClusterMirrorResponse { error: d.error(), message: d.maybe_text() }.into(),
        2 => StartMirrorTopicsRequest {
            mirror: d.text(),
            topics: d.list(|d| (d.id(), d.text(), d.below(300) as u32)),
            include: d.list(Dice::text),
            exclude: d.list(Dice::text),
            state_offset: d.offset(),
        }
        .into(),
        3 => StartMirrorTopicsResponse { error: d.error(), topics: d.list(Dice::named) }.into(),
        4 => StopMirrorTopicsRequest {
            mirror: d.text(),
            topics: d.list(Dice::text),
            patterns: d.list(Dice::text),
            state_offset: d.offset(),
        }
        .into(),
        5 => StopMirrorTopicsResponse { error: d.error(), topics: d.list(Dice::named) }.into(),
        6 => PauseMirrorTopicsRequest { mirror: d.text(), topics: d.list(Dice::text), state_offset: d.offset() }.into(),
        7 => PauseMirrorTopicsResponse { error: d.error(), topics: d.list(Dice::named) }.into(),
        8 => {
            ResumeMirrorTopicsRequest { mirror: d.text(), topics: d.list(Dice::text), state_offset: d.offset() }.into()
        }
        9 => ResumeMirrorTopicsResponse { error: d.error(), topics: d.list(Dice::named) }.into(),
        10 => DeleteClusterMirrorRequest { mirror: d.text(), state_offset: d.offset() }.into(),
        11 => DeleteClusterMirrorResponse { error: d.error(), message: d.maybe_text() }.into(),
        12 => RecoverMirrorTopicsRequest {
            mirror: d.text(),
            topics: d.list(Dice::text),
            parts: d.list(Dice::partition),
            keep_source: d.coin(),
        }
        .into(),
        13 => RecoverMirrorTopicsResponse { error: d.error(), topics: d.list(Dice::named) }.into(),
        14 => ListClusterMirrorsRequest {}.into(),
        15 => ListClusterMirrorsResponse { error: d.error(), mirrors: d.list(Dice::listed) }.into(),
        16 => DescribeClusterMirrorsRequest {
            mirrors: d.coin().then(|| d.list(Dice::text)),
            states: d.coin(),
            offsets: d.coin(),
            cluster: d.maybe_text(),
            lookups: d.list(|d| (d.id(), d.list(|d| d.below(300) as u32))),
        }
        .into(),
        17 => DescribeClusterMirrorsResponse {
            error: d.error(),
            mirrors: d.list(Dice::described),
            positions: d.list(Dice::found),
        }
        .into(),
        18 => ReadMirrorOffsetsRequest { mirror: d.text(), parts: d.list(Dice::partition) }.into(),
        19 => ReadMirrorOffsetsResponse {
            error: d.error(),
            parts: d.list(|d| (d.partition(), Offset(d.i64()), Offset(d.i64()), d.error())),
        }
        .into(),
        20 => ReadMirrorStatesRequest { mirror: d.text(), parts: d.list(Dice::partition) }.into(),
        21 => ReadMirrorStatesResponse { error: d.error(), parts: d.list(|d| (d.partition(), d.error(), d.record())) }
            .into(),
        22 => WriteMirrorStatesRequest { mirror: d.text(), parts: d.list(Dice::write) }.into(),
        23 => WriteMirrorStatesResponse { error: d.error(), parts: d.list(|d| (d.partition(), d.error(), d.i32())) }
            .into(),
        24 => BumpLeaderEpochsRequest { parts: d.list(|d| (d.partition(), d.epoch())) }.into(),
        _ => BumpLeaderEpochsResponse { error: d.error(), parts: d.list(|d| (d.partition(), d.error())) }.into(),
    }
}
