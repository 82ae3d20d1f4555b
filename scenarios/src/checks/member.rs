//! One replica of a partition as events tell of it: where its log ends, and what of its past still counts.

use super::excuses::Excuse;
use mirrorlab_model::ids::{LeaderEpoch, Offset};

/// One replica as events tell of it: 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its log end.
    pub end: Offset,
    /// Its high watermark.
    pub hw: Offset,
    /// Its log start.
    pub start: Offset,
    /// Epoch of its last batch; −1 if it has none.
    pub epoch: LeaderEpoch,
    /// Its broker's slot.
    pub slot: u16,
    flags: u16,
}

impl Member {
    /// Its log end is known.
    const KNOWN: u16 = 1;
    /// Its last stop took what was not flushed, and it was not taken back into the ISR since.
    const LOSSY: u16 = 2;
    /// Its last stop but for clean ones took what was not flushed, and its log was not loaded since.
    const TORN: u16 = 4;
    /// See [`Member::doubtful`].
    const DOUBTFUL: u16 = 8;
    /// See [`Member::was_cut`].
    const CUT: u16 = 16;
    /// See [`Member::cut_inside`].
    const INSIDE: u16 = 32;
    /// See [`Member::lossy_by`].
    const RESTORED: u16 = 64;
    /// See [`Member::lossy_by`].
    const ROTTEN: u16 = 128;
    /// See [`Member::at_rest`].
    const AT_REST: u16 = 256;
    /// See [`Member::aligned_early`].
    const EARLY: u16 = 512;

    /// See [`Member::cut_short`].
    const SHORT: u16 = 1024;

    /// Nothing is known of it yet.
    #[must_use]
    pub fn new(slot: u16) -> Self {
        let zero = Offset::ZERO;
        Self { end: zero, hw: zero, start: zero, epoch: LeaderEpoch::NONE, slot, flags: 0 }
    }
    #[inline]
    fn put(&mut self, flag: u16, on: bool) {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
    }
    /// Whether its log end is known.
    #[must_use]
    #[inline]
    pub fn known(&self) -> bool {
        self.flags & Self::KNOWN != 0
    }
    /// Whether it stopped lossily and did not come back into the ISR since.
    #[must_use]
    #[inline]
    pub fn lossy(&self) -> bool {
        self.flags & Self::LOSSY != 0
    }
    /// Its log ends here now.
    #[inline]
    pub fn set_end(&mut self, end: Offset) {
        self.end = end;
        self.flags |= Self::KNOWN;
    }
    /// It stopped uncleanly, and was not taken back into the ISR since: what a controller has to doubt (KIP-966).
    #[must_use]
    pub fn doubtful(&self) -> bool {
        self.flags & Self::DOUBTFUL != 0
    }
    /// Its last stop was no orderly one.
    pub fn set_doubtful(&mut self) {
        self.flags |= Self::DOUBTFUL;
    }
    /// It holds what is committed again: its last stop does not count any more.
    pub fn absolve(&mut self) {
        self.flags &= !(Self::DOUBTFUL | Self::LOSSY | Self::RESTORED | Self::ROTTEN);
    }
    /// Its log was cut in this life: a power loss may bring back what was cut, because a cut is no more durable than a write.
    #[must_use]
    pub fn was_cut(&self) -> bool {
        self.flags & Self::CUT != 0
    }
    /// See [`Member::was_cut`].
    pub fn set_cut(&mut self, on: bool) {
        self.put(Self::CUT, on);
    }
    /// A lossy stop whose consequences were not seen yet: a later, milder stop does not undo it.
    #[must_use]
    pub fn torn(&self) -> bool {
        self.flags & Self::TORN != 0
    }
    /// A life of its broker ended inside a task, whose trace is of a part of what it did to the disk, and its log was not loaded
    /// since, whatever further lives came to an end.
    #[must_use]
    pub fn cut_inside(&self) -> bool {
        self.flags & Self::INSIDE != 0
    }
    /// See [`Member::cut_inside`].
    pub fn set_cut_inside(&mut self, on: bool) {
        self.put(Self::INSIDE, on);
    }
    /// That task may have cut even what was committed, of which a part may be gone: an alignment was under way, or all of the log
    /// lay below where its leader's begins.
    #[must_use]
    pub fn cut_short(&self) -> bool {
        self.flags & (Self::INSIDE | Self::SHORT) == Self::INSIDE | Self::SHORT
    }
    /// See [`Member::cut_short`].
    pub fn set_cut_short(&mut self, on: bool) {
        self.put(Self::SHORT, on);
    }
    /// Its broker stopped in order, and its log was not taken up since, whatever further lives came to an end.
    #[must_use]
    pub fn at_rest(&self) -> bool {
        self.flags & Self::AT_REST != 0
    }
    /// See [`Member::at_rest`].
    pub fn set_at_rest(&mut self, on: bool) {
        self.put(Self::AT_REST, on);
    }
    /// A leader that did not know of its end carried out an alignment: the present leader owes the same cut.
    #[must_use]
    pub fn aligned_early(&self) -> bool {
        self.flags & Self::EARLY != 0
    }
    /// See [`Member::aligned_early`].
    #[inline]
    pub fn set_aligned_early(&mut self, on: bool) {
        self.put(Self::EARLY, on);
    }
    /// See [`Member::torn`].
    pub fn set_torn(&mut self, on: bool) {
        self.put(Self::TORN, on);
    }
    /// What made it lossy, if it was neither power nor a whole disk.
    #[must_use]
    pub fn lossy_by(&self) -> Option<Excuse> {
        match self.flags & (Self::RESTORED | Self::ROTTEN) {
            0 => None,
            Self::ROTTEN => Some(Excuse::BitRot),
            _ => Some(Excuse::OlderCopy),
        }
    }
    /// Its log had to be cut where bits of it had flipped.
    pub fn set_rotten(&mut self) {
        self.flags |= Self::ROTTEN | Self::LOSSY;
    }
    /// Its disk was set back to what it held when it was like this.
    #[must_use]
    pub fn set_back(copy: Self) -> Self {
        Self { flags: copy.flags & (Self::KNOWN | Self::CUT) | Self::RESTORED | Self::LOSSY | Self::TORN, ..copy }
    }
    /// It lost power, or its disk.
    pub fn set_lossy(&mut self, on: bool) {
        self.put(Self::LOSSY, on);
    }
    /// A replica of which nothing is left, or nothing was there yet: a log that begins at zero.
    #[must_use]
    pub fn wiped(slot: u16) -> Self {
        let mut member = Self::new(slot);
        member.set_end(Offset::ZERO);
        member.set_lossy(true);
        member
    }
}
