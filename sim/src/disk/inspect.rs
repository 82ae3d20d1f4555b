//! A disk as a checker sees it: read only, no cost, no faults.
//!
//! Logs are compared by subtraction: every file has, after each append, the sum of the hashes of its appends so far. Appends
//! of segment files are whole record batches, so two logs agree on a range exactly when the sums over it are equal.

use super::node::{File, NodeDisk, LINKED};
use super::store::{Image, LineageId, Store, Sum};
use super::tree::Key;
use bytes::Bytes;
use mirrorlab_model::ports::{DirId, DirName, FileId, FileName};
use std::fmt;
use xxhash_rust::xxh3::xxh3_128;

/// A file that is not what its bookkeeping says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch(String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Mismatch {}

/// One node's disk, read only.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    node: &'a NodeDisk,
    store: &'a Store,
}

impl NodeDisk {
    /// The disk as a checker sees it.
    #[must_use]
    pub fn look<'a>(&'a self, store: &'a Store) -> Look<'a> {
        Look { node: self, store }
    }
}

impl<'a> Look<'a> {
    /// A directory by name.
    #[must_use]
    pub fn dir(&self, name: DirName) -> Option<DirId> {
        self.node.tree.find(name).map(DirId)
    }

    /// Names of all directories, in order.
    #[must_use]
    pub fn dirs(&self) -> Vec<DirName> {
        self.node.tree.list()
    }

    /// A file by name.
    #[must_use]
    pub fn file(&self, dir: DirId, name: FileName) -> Option<FileId> {
        self.node.tree.get(dir)?.entries.get(Key::of(name)).map(FileId)
    }

    /// The files of a directory, in order of name.
    pub fn files(&self, dir: DirId) -> impl Iterator<Item = (FileName, FileId)> + 'a {
        let entries = self.node.tree.get(dir).map(|d| d.entries.iter());
        entries.into_iter().flatten().map(|e| (e.key.name(), FileId(e.file)))
    }

    /// Directory and name of a file.
    #[must_use]
    pub fn name(&self, file: FileId) -> Option<(DirName, FileName)> {
        self.node.tree.name_of(self.get(file)?.dir, file)
    }

    fn get(&self, file: FileId) -> Option<&'a File> {
        self.node.files.get(file.0).filter(|f| f.flags & LINKED != 0)
    }

    fn image(&self, file: FileId) -> Image {
        self.get(file).map_or(Image::NONE, |f| f.image)
    }

    /// Length in bytes; 0 if there is no such file.
    #[must_use]
    pub fn len(&self, file: FileId) -> u64 {
        self.image(file).len
    }

    /// True if there is no byte.
    #[must_use]
    pub fn is_empty(&self, file: FileId) -> bool {
        self.len(file) == 0
    }

    /// The first so many bytes survive a power loss (unless a failed flush lost some: [`Look::lost`]).
    #[must_use]
    pub fn durable(&self, file: FileId) -> u64 {
        self.get(file).map_or(0, |f| f.durable)
    }

    /// Ranges below [`Look::durable`] that a failed flush left in the page cache only.
    #[must_use]
    pub fn lost(&self, file: FileId) -> &'a [(u64, u64)] {
        self.node.extras.get(&file.0).map_or(&[], |e| e.lost.as_slice())
    }

    /// How many appends make up the content. Each is what one call appended, or what a cut left of it.
    #[must_use]
    pub fn appends(&self, file: FileId) -> u32 {
        self.image(file).appends
    }

    /// The lineage; `None` for files that are empty or kept by themselves.
    #[must_use]
    pub fn lineage(&self, file: FileId) -> Option<LineageId> {
        self.store.lineage_of(&self.image(file))
    }

    /// Where the first `appends` appends end: the position of the next one.
    #[must_use]
    pub fn end(&self, file: FileId, appends: u32) -> u64 {
        self.store.end(&self.image(file), appends)
    }

    /// The sum over the first `appends` appends; at most all there are.
    #[must_use]
    pub fn sum(&self, file: FileId, appends: u32) -> Sum {
        self.store.sum(&self.image(file), appends)
    }

    /// The bytes of an append, as [`Look::append`] gives them, where a look is enough.
    #[must_use]
    pub fn bytes(&self, file: FileId, index: u32) -> &'a [u8] {
        self.store.piece(&self.image(file), index)
    }

    /// The bytes of an append, counted from 0; empty if there is none.
    #[must_use]
    pub fn append(&self, file: FileId, index: u32) -> Bytes {
        self.store.piece(&self.image(file), index).clone()
    }

    /// The appends of a file that rotted, ascending: which they are, and what was written there.
    #[must_use]
    pub fn rotten(&self, file: FileId) -> Vec<(u32, &'a Bytes)> {
        match self.node.rotten.of(file.0) {
            [] => Vec::new(),
            of => self.store.spoilt(&self.image(file), of),
        }
    }

    /// Nothing of this disk ever rotted.
    #[must_use]
    pub fn never_rotted(&self) -> bool {
        self.node.rotten.is_empty()
    }

    /// Nothing of a file ever rotted.
    #[must_use]
    pub fn is_sound(&self, file: FileId) -> bool {
        self.node.rotten.of(file.0).is_empty()
    }

    /// [`Look::bytes`] as they were written, whatever rotted since.
    #[must_use]
    pub fn sound_bytes(&self, file: FileId, index: u32) -> &'a [u8] {
        let spoilt = self.rotten(file).into_iter().find(|(at, _)| *at == index);
        spoilt.map_or_else(|| self.bytes(file, index), |(_, was)| was)
    }

    /// [`Look::sum`] of what was written, whatever rotted since.
    #[must_use]
    pub fn sound_sum(&self, file: FileId, appends: u32) -> Sum {
        let mut sum = self.sum(file, appends);
        for (at, was) in self.rotten(file).into_iter().filter(|(at, _)| *at < appends) {
            let is = self.sum(file, at + 1).wrapping_sub(self.sum(file, at));
            sum = sum.wrapping_sub(is).wrapping_add(xxh3_128(was));
        }
        sum
    }

    /// The append that holds the byte at `pos`.
    #[must_use]
    pub fn append_at(&self, file: FileId, pos: u64) -> Option<u32> {
        let image = self.image(file);
        (pos < image.len).then(|| self.store.ends_by(&image, pos))
    }

    /// All bytes of a file.
    #[must_use]
    pub fn content(&self, file: FileId) -> Vec<u8> {
        let image = self.image(file);
        (0..image.appends).flat_map(|i| self.store.piece(&image, i).iter().copied()).collect()
    }

    /// Recomputes every end and every sum of every file from its bytes: what checks by sharing rest on. Costs a pass over all
    /// bytes.
    ///
    /// # Errors
    /// The first file that differs.
    pub fn rehash(&self) -> Result<(), Mismatch> {
        for (id, f) in self.node.files.iter() {
            let (mut end, mut sum) = (0, 0 as Sum);
            for i in 0..f.image.appends {
                let bytes = self.store.piece(&f.image, i);
                end += bytes.len() as u64;
                sum = sum.wrapping_add(xxh3_128(bytes));
                let kept = (self.store.end(&f.image, i + 1), self.store.sum(&f.image, i + 1));
                if kept != (end, sum) {
                    let name = self.name(FileId(id));
                    return Err(Mismatch(format!("{name:?}: append {i} gives {:?}, kept is {kept:?}", (end, sum))));
                }
            }
            if (f.image.len, f.durable.max(end)) != (end, end) {
                return Err(Mismatch(format!("{:?}: {f:?} does not end at {end}", self.name(FileId(id)))));
            }
        }
        Ok(())
    }
}

/// How many first appends of two files are known to be equal because they are stored once. Further ones may be equal too.
#[must_use]
pub fn shared_prefix(a: Look<'_>, file_a: FileId, b: Look<'_>, file_b: FileId) -> u32 {
    a.store.shared(&a.image(file_a), &b.image(file_b))
}

/// How many first appends of two files are equal, by sharing or by their sums (128 bits, so by all odds).
#[must_use]
pub fn equal_prefix(a: Look<'_>, file_a: FileId, b: Look<'_>, file_b: FileId) -> u32 {
    let (left, right) = (a.image(file_a), b.image(file_b));
    let (mut low, mut high) = (a.store.shared(&left, &right), left.appends.min(right.appends));
    while low < high {
        let middle = high - (high - low) / 2;
        if a.store.sum(&left, middle) == b.store.sum(&right, middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

impl Store {
    /// Checks the store against all disks of the world: every reference counted, every sum recomputed. For tests.
    ///
    /// # Errors
    /// The first difference.
    pub fn check(&self, disks: &[&NodeDisk]) -> Result<(), Mismatch> {
        let images: Vec<Image> = disks
            .iter()
            .flat_map(|disk| {
                let undos = disk.extras.values().filter_map(|e| e.undo);
                disk.files.iter().map(|(_, f)| f.image).chain(undos).chain(disk.flushes.images())
            })
            .collect();
        self.audit(&images).map_err(Mismatch)?;
        disks.iter().try_for_each(|disk| disk.look(self).rehash())
    }
}
