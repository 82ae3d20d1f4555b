//! Bit rot: bits of what is durable flip. The disk remembers what stood there, so that a checker can see a log as it was written
//! and ask what became of the damage. Processes see the rotten bytes, and nothing else.
//!
//! What is remembered is tied to the content, not to the place: a file that is cut below its rot and written anew is sound, one
//! whose cut is undone by a power loss is rotten again. And it is tied to this disk: rotten bytes that somebody copies from here
//! are remembered nowhere, and look like what they are.

use super::node::{NodeDisk, LINKED};
use super::store::{Image, Store};
use crate::rng::Concern;
use bytes::Bytes;
use mirrorlab_model::ports::{DirName, FileId, FileName};
use std::collections::BTreeMap;

/// An append that rotted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spoilt {
    /// Where it begins in its file.
    start: u64,
    /// What it is now, unless it is cut.
    is: Bytes,
    /// What was written.
    was: Bytes,
}

/// What rotted on one disk, by file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rotten(BTreeMap<u32, Vec<Spoilt>>);

impl Rotten {
    pub(crate) fn forget(&mut self, file: u32) {
        self.0.remove(&file);
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(crate) fn of(&self, file: u32) -> &[Spoilt] {
        self.0.get(&file).map_or(&[], Vec::as_slice)
    }
    pub(crate) fn set(&mut self, file: u32, spoilt: Vec<Spoilt>) {
        if !spoilt.is_empty() {
            self.0.insert(file, spoilt);
        }
    }
    fn note(&mut self, file: u32, start: u64, before: &Bytes, now: &Bytes) {
        let of = self.0.entry(file).or_default();
        // What rots again was written as it was written.
        let was = of
            .iter()
            .find(|s| s.start == start && s.is.starts_with(before))
            .map_or_else(|| before.clone(), |s| s.was.clone());
        of.push(Spoilt { start, is: now.clone(), was });
    }
}

impl Store {
    /// The rotten appends of an image, ascending: which they are, and what was written.
    pub(crate) fn spoilt<'a>(&self, image: &Image, of: &'a [Spoilt]) -> Vec<(u32, &'a Bytes)> {
        let mut found: Vec<(u32, &Bytes)> = Vec::new();
        for spoilt in of.iter().filter(|s| s.start < image.len) {
            let at = self.ends_by(image, spoilt.start);
            let piece = self.piece(image, at);
            // A bit that rots twice is sound again. Who cuts behind it, and believes a length that rotted, cuts into it.
            if self.end(image, at) == spoilt.start && *piece != spoilt.was && spoilt.is.starts_with(piece) {
                found.push((at, &spoilt.was));
            }
        }
        found.sort_unstable_by_key(|(at, _)| *at);
        found.dedup_by_key(|(at, _)| *at);
        found
    }
}

/// Bytes of a record batch that its CRC does not cover: base offset and leader epoch (KIP-98), which a broker stamps anew. Rot
/// there is beyond what the format can tell from a good batch, whoever reads it.
const UNCOVERED: [std::ops::Range<u64>; 2] = [0..8, 12..16];
/// The next bytes that are covered, from an uncovered one.
const COVERED: u64 = 17;

impl NodeDisk {
    /// Flips one bit (0 to 7) of the byte at `pos`. Returns false if the file has no such byte, or it is not durable: what
    /// is in memory does not rot. No other disk is affected. `truncate` and `append` go on from the rotten content.
    pub fn rot(&mut self, store: &mut Store, file: FileId, pos: u64, bit: u8) -> bool {
        let Some(f) = self.files.get_mut(file.0).filter(|f| f.flags & LINKED != 0 && pos < f.durable) else {
            return false;
        };
        // The same place of the device also backs what a power loss may bring back.
        let undo = self.extras.get_mut(&file.0).and_then(|extra| extra.undo.as_mut());
        for image in std::iter::once(&mut f.image).chain(undo).chain(self.flushes.images_of(file.0)) {
            if pos >= image.len {
                continue;
            }
            let at = store.ends_by(image, pos);
            let (start, before) = (store.end(image, at), store.piece(image, at).clone());
            store.rewrite(image, pos, pos + 1, |bytes| bytes.iter_mut().for_each(|b| *b ^= 1 << (bit & 7)));
            self.rotten.note(file.0, start, &before, store.piece(image, at));
        }
        true
    }

    /// Flips one drawn bit of a drawn log segment, one that a checksum covers; returns where. Walks all files: meant for the rare
    /// fault.
    pub fn rot_somewhere(&mut self, store: &mut Store, dir: Option<DirName>, ordinal: u64) -> Option<(FileId, u64)> {
        let only = match dir {
            Some(name) => Some(self.tree.find(name)?),
            None => None,
        };
        let mut draw = self.seed.stream(Concern::DiskRot, u64::from(self.node.0), ordinal);
        let segment = |id: u32, dir: u32| matches!(self.tree.name_of(dir, FileId(id)), Some((_, FileName::Segment(_))));
        let mut candidates: Vec<(u32, u64)> = self
            .files
            .iter()
            .filter(|(_, f)| f.flags & LINKED != 0 && only.is_none_or(|dir| dir == f.dir))
            .map(|(id, f)| (id, f.durable))
            .collect();
        candidates.retain(|(id, durable)| *durable > 0 && self.files.get(*id).is_some_and(|f| segment(*id, f.dir)));
        let (file, durable) = *candidates.get(draw.below(candidates.len() as u64) as usize)?;
        let drawn = draw.below(durable);
        let image = self.files.get(file)?.image;
        let piece = store.ends_by(&image, drawn);
        let (start, end) = (store.end(&image, piece), store.end(&image, piece + 1).min(durable));
        let uncovered = UNCOVERED.iter().any(|range| range.contains(&(drawn - start)));
        let pos = if uncovered && drawn + COVERED < end { drawn + COVERED } else { drawn };
        let bit = draw.below(8) as u8;
        self.rot(store, FileId(file), pos, bit).then_some((FileId(file), pos))
    }
}
