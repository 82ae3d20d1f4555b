//! A vector that never moves what it holds: long-lived state per replica grows to 100,000 entries, and a vector that doubles
//! copies all of them, needs both copies while it does, and then stands a third empty.

use std::ops::{Index, IndexMut};

/// Entries of a full chunk: a few tens of kilobytes of what is kept per replica.
const CHUNK: usize = 256;

/// A growing sequence in chunks. The first chunk grows like a vector, so that small worlds stay small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunked<T> {
    chunks: Vec<Vec<T>>,
}

impl<T> Default for Chunked<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Chunked<T> {
    /// An empty one.
    #[must_use]
    pub const fn new() -> Self {
        Self { chunks: Vec::new() }
    }

    /// How many entries there are.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        // All but the last chunk are full.
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    /// No entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Adds an entry at the end; returns its place.
    pub fn push(&mut self, entry: T) -> usize {
        if self.chunks.last().is_none_or(|last| last.len() == CHUNK) {
            // The second and later chunks will be filled.
            let room = if self.chunks.is_empty() { 0 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(room));
        }
        if let Some(last) = self.chunks.last_mut() {
            last.push(entry);
        }
        self.len() - 1
    }

    /// An entry, if there is one at that place.
    #[must_use]
    #[inline]
    pub fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / CHUNK)?.get(at % CHUNK)
    }

    /// An entry, if there is one at that place.
    #[must_use]
    #[inline]
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.chunks.get_mut(at / CHUNK)?.get_mut(at % CHUNK)
    }

    /// All entries in order of place.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

impl<T> Index<usize> for Chunked<T> {
    type Output = T;
    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.chunks[at / CHUNK][at % CHUNK]
    }
}

impl<T> IndexMut<usize> for Chunked<T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.chunks[at / CHUNK][at % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_at_their_place_across_chunks() {
        let mut held = Chunked::new();
        assert!(held.is_empty() && held.get(0).is_none());
        for n in 0..CHUNK * 2 + 3 {
            assert_eq!(held.push(n), n);
        }
        held[CHUNK] = 7;
        assert_eq!((held.len(), held[CHUNK - 1], held[CHUNK], held.get(CHUNK * 2 + 3)), (515, 255, 7, None));
        assert_eq!(held.iter().count(), held.len());
        *held.get_mut(514).expect("the last one") = 9;
        assert_eq!(held.iter().last(), Some(&9));
    }
}
