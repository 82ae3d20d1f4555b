//! What was acknowledged at a source and may not have been copied yet.
//!
//! Kept as pieces of offsets with the instant of their acknowledgement and the leader epoch in which they stand. A copy keeps
//! offsets and epochs, so offset and epoch together say whether a copy holds a record, whatever else stands at that offset in
//! another history. What a copy has committed is forgotten: a long run keeps what is under way, not all that ever was.

use mirrorlab_model::ids::{LeaderEpoch, Nanos, Offset};
use mirrorlab_model::log::EpochEntry;

/// Pieces that are kept without a look whether some can go.
const LOOK_AT: usize = 8;
/// Pieces kept at most; beyond, neighbours are merged and count as acknowledged when the older one was.
const PIECES_MAX: usize = 1 << 16;

/// Offsets acknowledged at one instant, all of one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    at: Nanos,
    base: i64,
    next: i64,
    epoch: LeaderEpoch,
}

/// The acknowledgements of one partition.
#[derive(Clone, Debug, Default)]
pub struct Acks {
    pieces: Vec<Piece>,
    /// Everything below was committed at every copy once.
    forgotten_to: i64,
    look_at: usize,
}

/// The log of a copy, as far as this question goes.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// Its log start: what lies below was there and was removed, or is a gap that is told elsewhere.
    pub start: Offset,
    /// Its log end.
    pub end: Offset,
    /// The end of what was mirrored.
    pub mirrored: Offset,
    /// Its table of epochs.
    pub epochs: &'a [EpochEntry],
}

/// What a copy does not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Acknowledged records.
    pub records: u64,
    /// When the first of them was acknowledged.
    pub oldest: Option<Nanos>,
}

impl Held<'_> {
    /// How many of a piece's offsets are accounted for.
    fn holds(&self, piece: &Piece) -> i64 {
        let overlap = |from: i64, to: i64| (piece.next.min(to) - piece.base.max(from)).max(0);
        let below = overlap(i64::MIN, self.start.0);
        if piece.epoch == LeaderEpoch::NONE {
            // Its leader was gone before anybody could look: the offset has to do.
            return below + overlap(self.start.0, self.mirrored.0.min(self.end.0));
        }
        let Some(at) = self.epochs.iter().position(|e| e.epoch == piece.epoch) else { return below };
        let to = self.epochs.get(at + 1).map_or(self.end, |next| next.start);
        below + overlap(self.epochs[at].start.max(self.start).0, to.min(self.end).0)
    }
}

impl Acks {
    /// `base..next` were acknowledged. `copied` tells up to where every copy has committed what it copied; asked now and then.
    pub fn add(
        &mut self,
        at: Nanos,
        (base, next): (Offset, Offset),
        epoch: LeaderEpoch,
        copied: impl FnOnce() -> Offset,
    ) {
        if let Some(last) = self.pieces.last_mut().filter(|l| (l.at, l.next, l.epoch) == (at, base.0, epoch)) {
            last.next = next.0;
            return;
        }
        if self.pieces.len() >= self.look_at.max(LOOK_AT) {
            self.forget(copied());
        }
        self.pieces.push(Piece { at, base: base.0, next: next.0, epoch });
    }

    fn forget(&mut self, to: Offset) {
        self.pieces.retain(|p| p.next > to.0);
        self.forgotten_to = self.forgotten_to.max(to.0);
        if self.pieces.len() >= PIECES_MAX {
            self.pieces.dedup_by(|later, kept| {
                let joins = kept.next == later.base && kept.epoch == later.epoch && later.next - kept.base < 1 << 20;
                if joins {
                    kept.next = later.next;
                }
                joins
            });
        }
        self.look_at = self.pieces.len() * 2;
    }

    /// What of all that was acknowledged up to `until` a copy does not hold; `None` if that cannot be told any more: the copy
    /// fell back behind what it once had committed, and what that was is forgotten.
    #[must_use]
    pub fn missing(&self, until: Nanos, held: Held<'_>) -> Option<Missing> {
        if held.mirrored.0 < self.forgotten_to {
            return None;
        }
        let mut missing = Missing::default();
        for piece in self.pieces.iter().filter(|p| p.at <= until) {
            let lacks = (piece.next - piece.base - held.holds(piece)).max(0) as u64;
            if lacks > 0 {
                missing.records += lacks;
                missing.oldest = Some(missing.oldest.map_or(piece.at, |o| o.min(piece.at)));
            }
        }
        Some(missing)
    }
}

#[cfg(test)]
#[path = "acks_tests.rs"]
mod tests;
