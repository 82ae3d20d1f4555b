//! Tables that clone in constant time and copy on write, a chunk at a time: an image is kept while the next one grows.

use std::sync::Arc;

/// Entries of one chunk. A write after a clone copies one chunk and the list of chunks: an entry costs several times what its
/// place in the list does.
const CHUNK: usize = 64;
/// The largest dense index that is accepted: far above every limit of the project, so that a record that lies about its
/// index cannot claim the memory of the machine.
pub const MAX_INDEX: u32 = 1 << 24;

/// A table by dense index; entries may be missing.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkVec<T> {
    chunks: Arc<Vec<Arc<Vec<Option<T>>>>>,
}

impl<T> Default for ChunkVec<T> {
    fn default() -> Self {
        Self { chunks: Arc::default() }
    }
}

impl<T: Clone> ChunkVec<T> {
    /// The entry at an index.
    #[must_use]
    #[inline]
    pub fn get(&self, ix: u32) -> Option<&T> {
        let ix = ix as usize;
        self.chunks.get(ix / CHUNK)?.get(ix % CHUNK)?.as_ref()
    }

    /// The entry at an index, to change it.
    #[inline]
    pub fn get_mut(&mut self, ix: u32) -> Option<&mut T> {
        self.get(ix)?;
        let ix = ix as usize;
        let chunk = Arc::make_mut(&mut self.chunks).get_mut(ix / CHUNK)?;
        Arc::make_mut(chunk).get_mut(ix % CHUNK)?.as_mut()
    }

    /// Sets an entry. False if the index is beyond [`MAX_INDEX`].
    pub fn set(&mut self, ix: u32, value: T) -> bool {
        if ix >= MAX_INDEX {
            return false;
        }
        let ix = ix as usize;
        let chunks = Arc::make_mut(&mut self.chunks);
        if chunks.len() <= ix / CHUNK {
            chunks.resize_with(ix / CHUNK + 1, Arc::default);
        }
        let chunk = Arc::make_mut(&mut chunks[ix / CHUNK]);
        if chunk.len() <= ix % CHUNK {
            chunk.resize_with(ix % CHUNK + 1, || None);
        }
        chunk[ix % CHUNK] = Some(value);
        true
    }

    /// Takes an entry out.
    pub fn remove(&mut self, ix: u32) -> Option<T> {
        self.get(ix)?;
        let ix = ix as usize;
        let chunk = Arc::make_mut(&mut self.chunks).get_mut(ix / CHUNK)?;
        Arc::make_mut(chunk).get_mut(ix % CHUNK)?.take()
    }

    /// All entries in order of index.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.chunks.iter().enumerate().flat_map(|(c, chunk)| {
            chunk.iter().enumerate().filter_map(move |(i, t)| Some(((c * CHUNK + i) as u32, t.as_ref()?)))
        })
    }
}

impl<T: Clone + PartialEq> ChunkVec<T> {
    /// Drops own chunks that are equal to another table's, and shares those instead.
    pub fn share_with(&mut self, other: &Self) {
        if Arc::ptr_eq(&self.chunks, &other.chunks) {
            return;
        }
        if self.chunks == other.chunks {
            self.chunks = other.chunks.clone();
            return;
        }
        for (mine, theirs) in Arc::make_mut(&mut self.chunks).iter_mut().zip(other.chunks.iter()) {
            if !Arc::ptr_eq(mine, theirs) && mine == theirs {
                *mine = theirs.clone();
            }
        }
    }
}

/// A chunk of an ordered table.
type Run<K, V> = Arc<Vec<(K, V)>>;

/// An ordered table.
#[derive(Clone, Debug)]
pub struct ChunkMap<K, V> {
    runs: Arc<Vec<Run<K, V>>>,
}

impl<K, V> Default for ChunkMap<K, V> {
    fn default() -> Self {
        Self { runs: Arc::default() }
    }
}

impl<K: Ord + Clone, V: Clone> ChunkMap<K, V> {
    /// The run that holds a key, or would.
    fn run_of<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: std::borrow::Borrow<Q>,
    {
        self.runs.partition_point(|run| run[0].0.borrow() <= key).saturating_sub(1)
    }

    /// The value of a key.
    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: std::borrow::Borrow<Q>,
    {
        let run = self.runs.get(self.run_of(key))?;
        let at = run.binary_search_by(|(k, _)| k.borrow().cmp(key)).ok()?;
        Some(&run[at].1)
    }

    /// Sets a key's value.
    pub fn insert(&mut self, key: K, value: V) {
        let run_ix = self.run_of(&key);
        let runs = Arc::make_mut(&mut self.runs);
        let last = run_ix + 1 == runs.len();
        let Some(run) = runs.get_mut(run_ix) else {
            runs.push(Arc::new(vec![(key, value)]));
            return;
        };
        let run = Arc::make_mut(run);
        match run.binary_search_by(|(k, _)| k.cmp(&key)) {
            Ok(at) => run[at].1 = value,
            Err(at) => run.insert(at, (key, value)),
        }
        if run.len() > 2 * CHUNK {
            // Names often arrive in order: the tail goes on growing, the head stays full.
            let tail = run.split_off(if last { 2 * CHUNK } else { CHUNK });
            runs.insert(run_ix + 1, Arc::new(tail));
        }
    }

    /// Takes a key out.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.get(key)?;
        let run_ix = self.run_of(key);
        let runs = Arc::make_mut(&mut self.runs);
        let run = Arc::make_mut(runs.get_mut(run_ix)?);
        let at = run.binary_search_by(|(k, _)| k.borrow().cmp(key)).ok()?;
        let (_, value) = run.remove(at);
        if run.is_empty() {
            runs.remove(run_ix);
        }
        Some(value)
    }

    /// All entries in order of key.
    pub fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.runs.iter().flat_map(|run| run.iter())
    }
}

impl<K: Ord + Clone + PartialEq, V: Clone + PartialEq> PartialEq for ChunkMap<K, V> {
    /// By content: where runs end is a matter of history.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.runs, &other.runs) || self.iter().eq(other.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_clone_keeps_what_it_saw() {
        let mut table = ChunkVec::default();
        for ix in 0..1000 {
            assert!(table.set(ix, ix * 2));
        }
        let before = table.clone();
        *table.get_mut(700).unwrap() = 1;
        assert_eq!(table.remove(5), Some(10));
        assert_eq!((before.get(700), before.get(5)), (Some(&1400), Some(&10)));
        assert_eq!((table.get(700), table.get(5), table.get(1000)), (Some(&1), None, None));
        assert_eq!(table.iter().count(), 999);
        assert!(!table.set(MAX_INDEX, 1));
    }

    #[test]
    fn equal_chunks_can_be_shared_again() {
        let (mut a, mut b) = (ChunkVec::default(), ChunkVec::default());
        for ix in 0..300 {
            a.set(ix, ix);
            b.set(ix, ix);
        }
        b.set(299, 0);
        b.share_with(&a);
        assert!(
            Arc::ptr_eq(&a.chunks[0], &b.chunks[0]) && !Arc::ptr_eq(&a.chunks[299 / CHUNK], &b.chunks[299 / CHUNK])
        );
        assert_eq!(b.get(299), Some(&0));
    }

    #[test]
    fn the_ordered_table_agrees_with_a_tree() {
        let (mut table, mut tree) = (ChunkMap::default(), BTreeMap::new());
        let mut x = 1u64;
        for _ in 0..20_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = (x >> 40) % 3000;
            if x & 0x100_0000 == 0 {
                assert_eq!(table.remove(&key), tree.remove(&key));
            } else {
                table.insert(key, x);
                tree.insert(key, x);
            }
            assert_eq!(table.get(&key), tree.get(&key));
        }
        assert!(table.iter().map(|(k, v)| (k, v)).eq(tree.iter()));
    }
}
