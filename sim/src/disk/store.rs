//! Content of all disks of a world, each piece of it once.
//!
//! A *lineage* is a sequence of appends. A file's content is an `Image`: the first so many appends of a lineage. Appending
//! what the lineage already holds at that place moves the file's end and costs nothing else: a follower that writes what its
//! leader wrote, the mirrored cluster included, shares the leader's lineage. Appending anything else forks the lineage there.
//! Forks are registered by (lineage, place, content), so that a thousand replicas cut at one place and continued alike make
//! one fork. Lineages are kept in chunks of 256 appends behind `Arc`: forking one, or cloning the world, copies at most
//! a chunk.
//!
//! Sharing never decides what a file holds, only how often it is stored: every append is compared with what is there.

use super::lineage::{Chunks, Lineage};
use super::push_tight;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use xxhash_rust::xxh3::xxh3_128;

/// No content at all; as a parent: no parent.
const EMPTY: u32 = u32::MAX;
/// Marks an image whose `base` is a slot of [`Store::small`].
const SMALL: u32 = 1 << 31;

/// A sum of 128-bit hashes of appended pieces, modulo 2^128. Equal sums over equally many appends mean equal content.
pub type Sum = u128;

/// Names a lineage; never given to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineageId {
    slot: u32,
    generation: u32,
}

/// Content of a file: the first `appends` appends of a lineage, or one small piece. Holds a reference in the store: made,
/// changed and ended by the store's functions only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    base: u32,
    pub(crate) appends: u32,
    pub(crate) len: u64,
}

impl Image {
    pub(crate) const NONE: Self = Self { base: EMPTY, appends: 0, len: 0 };
}

/// Hashes pointers by multiplication: the registry of roots is looked up, never walked, so their order is nobody's business.
#[derive(Clone, Copy, Debug, Default)]
struct PointerHasher(u64);

impl Hasher for PointerHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(32) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
}

type Roots = HashMap<(usize, usize), u32, BuildHasherDefault<PointerHasher>>;

#[derive(Clone, Debug)]
struct Small {
    bytes: Bytes,
    refs: u32,
}

/// The content of all disks of one world.
#[derive(Clone, Debug, Default)]
pub struct Store {
    lineages: Vec<Lineage>,
    free: Vec<u32>,
    /// Lineages by address and length of their first append. The lineage keeps those bytes alive, so the address means them.
    roots: Roots,
    /// Forks by parent, place and hash of the first append that differs.
    forks: BTreeMap<(u32, u32, Sum), u32>,
    small: Vec<Small>,
    small_free: Vec<u32>,
    generations: u32,
}

fn same(a: &Bytes, b: &Bytes) -> bool {
    a.len() == b.len() && (std::ptr::eq(a.as_ptr(), b.as_ptr()) || a == b)
}

impl Store {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many lineages there are.
    #[must_use]
    pub fn lineages(&self) -> usize {
        self.lineages.len() - self.free.len()
    }

    /// Appends to an image. With `paged`, content goes into lineages from the first append on; otherwise a first append
    /// stays by itself.
    #[inline]
    pub(crate) fn extend(&mut self, image: &mut Image, bytes: Bytes, paged: bool) {
        if bytes.is_empty() {
            return;
        }
        if image.base < SMALL {
            let lineage = &mut self.lineages[image.base as usize];
            let len = bytes.len() as u64;
            if image.appends == lineage.len {
                let hash = xxh3_128(&bytes);
                lineage.push(bytes, hash);
            } else if !same(&lineage.piece(image.appends).bytes, &bytes) {
                return self.fork(image, bytes);
            }
            image.appends += 1;
            image.len += len;
        } else if image.base == EMPTY {
            if paged {
                self.begin(image, bytes);
            } else {
                *image = self.keep_small(bytes);
            }
        } else {
            // A second append to a small file: it becomes a lineage after all.
            let first = self.small[(image.base & !SMALL) as usize].bytes.clone();
            self.release(image);
            self.begin(image, first);
            self.extend(image, bytes, true);
        }
    }

    /// The first append of a file that is kept in a lineage.
    fn begin(&mut self, image: &mut Image, bytes: Bytes) {
        let len = bytes.len() as u64;
        let key = (bytes.as_ptr() as usize, bytes.len());
        let slot = match self.roots.get(&key) {
            Some(slot) => *slot,
            None => {
                let slot = self.new_lineage(Chunks::new(), 0, EMPTY);
                let hash = xxh3_128(&bytes);
                self.lineages[slot as usize].push(bytes, hash);
                self.roots.insert(key, slot);
                slot
            }
        };
        self.lineages[slot as usize].refs += 1;
        *image = Image { base: slot, appends: 1, len };
    }

    /// Appends to an image what its lineage does not hold at that place: the image moves to another lineage.
    #[cold]
    fn fork(&mut self, image: &mut Image, bytes: Bytes) {
        let (parent, at) = (image.base, image.appends);
        let (hash, len) = (xxh3_128(&bytes), bytes.len() as u64);
        let registered = self.forks.get(&(parent, at, hash)).copied();
        let child = match registered {
            Some(child) if same(&self.lineages[child as usize].piece(at).bytes, &bytes) => child,
            _ => {
                let chunks = self.lineages[parent as usize].first_chunks(at);
                let child = self.new_lineage(chunks, at, parent);
                self.lineages[child as usize].push(bytes, hash);
                self.lineages[parent as usize].refs += 1;
                if registered.is_none() {
                    self.forks.insert((parent, at, hash), child);
                }
                child
            }
        };
        self.lineages[child as usize].refs += 1;
        let moved = Image { base: child, appends: at + 1, len: image.len + len };
        self.release(image);
        *image = moved;
    }

    fn new_lineage(&mut self, chunks: Chunks, len: u32, parent: u32) -> u32 {
        self.generations += 1;
        let lineage = Lineage { chunks, len, refs: 0, generation: self.generations, parent, fork_at: len };
        match self.free.pop() {
            Some(slot) => {
                self.lineages[slot as usize] = lineage;
                slot
            }
            None => {
                push_tight(&mut self.lineages, lineage);
                self.lineages.len() as u32 - 1
            }
        }
    }

    fn keep_small(&mut self, bytes: Bytes) -> Image {
        let len = bytes.len() as u64;
        let small = Small { bytes, refs: 1 };
        let slot = match self.small_free.pop() {
            Some(slot) => {
                self.small[slot as usize] = small;
                slot
            }
            None => {
                push_tight(&mut self.small, small);
                self.small.len() as u32 - 1
            }
        };
        Image { base: slot | SMALL, appends: 1, len }
    }

    /// A second image of the same content.
    pub(crate) fn dup(&mut self, image: Image) -> Image {
        if image.base < SMALL {
            self.lineages[image.base as usize].refs += 1;
        } else if image.base != EMPTY {
            self.small[(image.base & !SMALL) as usize].refs += 1;
        }
        image
    }

    /// Ends an image; what nobody holds any more is forgotten.
    pub(crate) fn release(&mut self, image: &mut Image) {
        let image = std::mem::replace(image, Image::NONE);
        if image.base == EMPTY {
            return;
        }
        if image.base >= SMALL {
            let slot = image.base & !SMALL;
            let small = &mut self.small[slot as usize];
            small.refs -= 1;
            if small.refs == 0 {
                small.bytes = Bytes::new();
                self.small_free.push(slot);
            }
            return;
        }
        let mut slot = image.base;
        loop {
            let lineage = &mut self.lineages[slot as usize];
            lineage.refs -= 1;
            if lineage.refs > 0 {
                return;
            }
            let parent = lineage.parent;
            self.forget(slot);
            if parent == EMPTY {
                return;
            }
            slot = parent;
        }
    }

    fn forget(&mut self, slot: u32) {
        let lineage = &mut self.lineages[slot as usize];
        let (parent, at) = (lineage.parent, lineage.fork_at);
        if parent == EMPTY {
            let first = &lineage.piece(0).bytes;
            let key = (first.as_ptr() as usize, first.len());
            self.roots.remove(&key);
        } else {
            let key = (parent, at, lineage.sum(at + 1).wrapping_sub(lineage.sum(at)));
            if self.forks.get(&key) == Some(&slot) {
                self.forks.remove(&key);
            }
        }
        lineage.chunks = Chunks::new();
        lineage.len = 0;
        self.free.push(slot);
    }

    /// Cuts an image to its first `len` bytes. A cut inside an append leaves the front of that append as a piece of its own.
    pub(crate) fn cut(&mut self, image: &mut Image, len: u64) {
        if len >= image.len {
            return;
        }
        if len == 0 {
            return self.release(image);
        }
        if image.base >= SMALL {
            let front = self.small[(image.base & !SMALL) as usize].bytes.slice(..len as usize);
            self.release(image);
            *image = self.keep_small(front);
            return;
        }
        let lineage = &self.lineages[image.base as usize];
        let whole = lineage.ends_by(len, image.appends);
        let end = lineage.end(whole);
        let torn = (len > end).then(|| lineage.piece(whole).bytes.slice(..(len - end) as usize));
        if whole == 0 {
            self.release(image);
        } else {
            image.appends = whole;
            image.len = end;
        }
        if let Some(torn) = torn {
            self.extend(image, torn, true);
        }
    }

    /// Changes bytes `from..to` in place. Borders of appends stay; no other image sees it.
    pub(crate) fn rewrite(&mut self, image: &mut Image, from: u64, to: u64, mut change: impl FnMut(&mut [u8])) {
        let to = to.min(image.len);
        if from >= to {
            return;
        }
        let first = self.ends_by(image, from);
        let mut end = self.end(image, first);
        let tail: Vec<Bytes> = (first..image.appends).map(|i| self.piece(image, i).clone()).collect();
        let paged = image.base < SMALL;
        self.cut(image, end);
        for piece in tail {
            let start = end;
            end += piece.len() as u64;
            if start >= to {
                self.extend(image, piece, paged);
                continue;
            }
            let mut bytes = piece.to_vec();
            change(&mut bytes[from.saturating_sub(start) as usize..(to.min(end) - start) as usize]);
            self.extend(image, bytes.into(), paged);
        }
    }

    /// The bytes of the `i`-th append; empty if there is none.
    pub(crate) fn piece(&self, image: &Image, i: u32) -> &Bytes {
        static NOTHING: Bytes = Bytes::new();
        if i >= image.appends {
            &NOTHING
        } else if image.base >= SMALL {
            &self.small[(image.base & !SMALL) as usize].bytes
        } else {
            &self.lineages[image.base as usize].piece(i).bytes
        }
    }

    /// Reads as `Disk::read` says.
    pub(crate) fn read(&self, image: &Image, pos: u64, max: u64, out: &mut Vec<Bytes>) -> u64 {
        if pos >= image.len {
            return 0;
        }
        if image.base >= SMALL {
            out.push(self.piece(image, 0).slice(pos as usize..));
            return image.len - pos;
        }
        let lineage = &self.lineages[image.base as usize];
        let mut at = lineage.ends_by(pos, image.appends);
        let first = lineage.piece(at);
        let skip = (pos - first.start()) as usize;
        out.push(if skip == 0 { first.bytes.clone() } else { first.bytes.slice(skip..) });
        let mut total = first.end - pos;
        at += 1;
        while at < image.appends {
            let piece = lineage.piece(at);
            if piece.end - pos > max {
                break;
            }
            out.push(piece.bytes.clone());
            total = piece.end - pos;
            at += 1;
        }
        total
    }

    /// Where the first `appends` appends of an image end.
    pub(crate) fn end(&self, image: &Image, appends: u32) -> u64 {
        let appends = appends.min(image.appends);
        if image.base >= SMALL {
            u64::from(appends) * image.len
        } else {
            self.lineages[image.base as usize].end(appends)
        }
    }

    /// The sum over the first `appends` appends.
    pub(crate) fn sum(&self, image: &Image, appends: u32) -> Sum {
        let appends = appends.min(image.appends);
        if appends == 0 {
            0
        } else if image.base >= SMALL {
            xxh3_128(self.piece(image, 0))
        } else {
            self.lineages[image.base as usize].sum(appends)
        }
    }

    /// How many appends end at or before `pos`: the index of the append that holds it, if it is within the content.
    pub(crate) fn ends_by(&self, image: &Image, pos: u64) -> u32 {
        if pos >= image.len {
            image.appends
        } else if image.base >= SMALL {
            0
        } else {
            self.lineages[image.base as usize].ends_by(pos, image.appends)
        }
    }

    /// The lineage that an image rests on, if on one.
    pub(crate) fn lineage_of(&self, image: &Image) -> Option<LineageId> {
        (image.base < SMALL)
            .then(|| LineageId { slot: image.base, generation: self.lineages[image.base as usize].generation })
    }

    /// How many first appends of two images are the same stored pieces.
    pub(crate) fn shared(&self, a: &Image, b: &Image) -> u32 {
        let common = a.appends.min(b.appends);
        if a.base == b.base || common == 0 {
            return common;
        }
        if a.base >= SMALL || b.base >= SMALL {
            return u32::from(std::ptr::eq(self.piece(a, 0).as_ptr(), self.piece(b, 0).as_ptr()) && a.len == b.len);
        }
        let (left, right) = (&self.lineages[a.base as usize], &self.lineages[b.base as usize]);
        let mut shared = left.shared_chunks(right).min(common);
        while shared < common {
            let (x, y) = (&left.piece(shared).bytes, &right.piece(shared).bytes);
            if x.len() != y.len() || !std::ptr::eq(x.as_ptr(), y.as_ptr()) {
                break;
            }
            shared += 1;
        }
        shared
    }

    /// Counts the references of every image given against those kept, and the sums and ends against the bytes.
    pub(crate) fn audit(&self, images: &[Image]) -> Result<(), String> {
        let mut refs = vec![0u32; self.lineages.len()];
        let mut small = vec![0u32; self.small.len()];
        for image in images {
            match image.base {
                EMPTY => {}
                base if base >= SMALL => small[(base & !SMALL) as usize] += 1,
                base => {
                    refs[base as usize] += 1;
                    if self.lineages[base as usize].end(image.appends) != image.len {
                        return Err(format!("{image:?} does not end where its appends end"));
                    }
                }
            }
        }
        for lineage in &self.lineages {
            if lineage.len > 0 && lineage.parent != EMPTY {
                refs[lineage.parent as usize] += 1;
            }
        }
        for (slot, lineage) in self.lineages.iter().enumerate() {
            if refs[slot] != if lineage.len == 0 { 0 } else { lineage.refs } {
                return Err(format!("lineage {slot}: {} references counted, {} kept", refs[slot], lineage.refs));
            }
            let (mut end, mut sum) = (0, 0 as Sum);
            for i in 0..lineage.len {
                let piece = lineage.piece(i);
                end += piece.bytes.len() as u64;
                sum = sum.wrapping_add(xxh3_128(&piece.bytes));
                if (piece.end, piece.sum()) != (end, sum) {
                    return Err(format!("lineage {slot}: append {i} is not what its sum says"));
                }
            }
        }
        for (slot, kept) in self.small.iter().enumerate() {
            if small[slot] != kept.refs {
                return Err(format!("small {slot}: {} references counted, {} kept", small[slot], kept.refs));
            }
        }
        Ok(())
    }

    /// Bytes of memory that the bookkeeping takes, without the batches themselves and the allocator's own.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let lineages: usize = self.lineages.iter().map(Lineage::heap_bytes).sum();
        lineages
            + self.lineages.capacity() * size_of::<Lineage>()
            + self.roots.capacity() * 8 / 7 * (size_of::<((usize, usize), u32)>() + 1)
            + self.forks.len() * 48
            + self.small.capacity() * size_of::<Small>()
            + (self.free.capacity() + self.small_free.capacity()) * 4
    }
}
