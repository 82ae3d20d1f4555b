//! Cluster mirroring (KIP-1279). For now only the seam to the broker: it knows no mirrors beyond what metadata says, and
//! keeps clients from writing to mirrored topics.

use crate::ids::{BrokerId, ConnId, Now, PartitionIx};
use crate::metadata::delta::MetadataDelta;
use crate::metadata::image::MetadataImage;
use crate::ports::{Cx, Input, Lane};
use crate::replica::channel::{ControllerChannel, Outcome};
use crate::replica::Replicas;
use crate::states::DesiredState;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::Body;

/// Whether clients may write to a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// They may.
    Open,
    /// The topic is a mirror: READ_ONLY_TOPIC.
    ReadOnly,
    /// Not known yet: this retriable error (decision 9).
    Retry(ErrorCode),
}

/// What a task of the mirror room works on.
pub struct MirrorTask<'a> {
    /// The metadata as far as applied.
    pub image: &'a MetadataImage,
    /// This broker's replicas.
    pub replicas: &'a mut Replicas,
    /// The way to the active controller; answers come back through [`MirrorManager::on_outcome`].
    pub controller: &'a mut ControllerChannel,
}

/// A broker's part in mirroring.
#[derive(Clone, Debug)]
pub struct MirrorManager {
    _broker: BrokerId,
    answers: Vec<(ConnId, u32, Body)>,
}

impl MirrorManager {
    /// Nothing is mirrored yet.
    #[must_use]
    pub fn new(broker: BrokerId) -> Self {
        Self { _broker: broker, answers: Vec::new() }
    }

    /// After the replicas took over a new image, in the same task; the image is the one handed in, not a later one.
    pub fn on_metadata(&mut self, _now: Now, _delta: &MetadataDelta, _task: &mut MirrorTask<'_>, _cx: &mut Cx) {}

    /// An input that is none of the broker's: connections that this room opened, and its timers.
    pub fn on_input(&mut self, _now: Now, _input: Input, _cx: &mut Cx) {}

    /// Runs one task of a lane of this room (256 to 1023).
    pub fn run(&mut self, _now: Now, _lane: Lane, _task: &mut MirrorTask<'_>, _cx: &mut Cx) {}

    /// At the end of every task of the broker: watched watermarks that moved, barriers that were reached.
    pub fn after(&mut self, _now: Now, _task: &mut MirrorTask<'_>, _cx: &mut Cx) {}

    /// The controller answered a request that was sent with [`crate::replica::channel::Purpose::Mirror`].
    pub fn on_outcome(&mut self, _now: Now, _outcome: Outcome, _task: &mut MirrorTask<'_>, _cx: &mut Cx) {}

    /// A request of a kind that this room answers: true if it was taken; the answer is left for [`Self::take_answers`].
    pub fn on_request(
        &mut self,
        _now: Now,
        _conn: ConnId,
        _correlation: u32,
        _body: &Body,
        _task: &mut MirrorTask<'_>,
        _cx: &mut Cx,
    ) -> bool {
        false
    }

    /// Answers for requests that were taken.
    pub fn take_answers(&mut self) -> Vec<(ConnId, u32, Body)> {
        std::mem::take(&mut self.answers)
    }

    /// Whether clients may write. Asked only for partitions of topics that belong to a mirror.
    #[must_use]
    pub fn gate(&self, partition: PartitionIx, image: &MetadataImage) -> Gate {
        let topic = image.partition(partition).map(|p| p.topic);
        match topic.and_then(|topic| image.mirror_of(topic)) {
            None | Some((_, DesiredState::Stopped)) => Gate::Open,
            Some(_) => Gate::ReadOnly,
        }
    }
}
