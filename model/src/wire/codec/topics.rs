//! Entries by partition: the model lists them flat, the wire groups them by topic.
//!
//! Neighbours of one topic go as one topic, so that the order of entries survives whatever it is.

use crate::ids::{PartitionIx, TopicId};
use crate::wire::codec::coder::{Coder, DecodeError, Done, Wrong};
use crate::wire::codec::directory::{index_in_id, index_in_name, stand_in, Place};
use std::sync::Arc;

/// What names a topic on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Its id.
    Id,
    /// Its name.
    Name,
}

impl Coder<'_> {
    /// Two levels, topics and their partitions. `at` finds the partition in an entry; `each` passes an entry, its index within
    /// the topic and its end included. Returns how many topics there were.
    pub fn topics<T: Default>(
        &mut self,
        by: By,
        entries: &mut Vec<T>,
        at: fn(&mut T) -> &mut PartitionIx,
        each: impl FnMut(&mut Self, &mut u32, &mut T) -> Done,
    ) -> Result<u32, DecodeError> {
        if self.reads() {
            self.read_topics(by, entries, at, each)
        } else {
            self.write_topics(by, entries, at, each)
        }
    }

    /// As [`Self::topics`]; no entry at all goes as null, which asks for all partitions.
    pub fn topics_or_null<T: Default>(
        &mut self,
        by: By,
        entries: &mut Vec<T>,
        at: fn(&mut T) -> &mut PartitionIx,
        each: impl FnMut(&mut Self, &mut u32, &mut T) -> Done,
    ) -> Done {
        if self.reads() {
            let groups = self.length("Topics", None)?;
            return self.read_groups(groups.unwrap_or(0), by, entries, at, each);
        }
        if entries.is_empty() {
            return self.length("Topics", None).map(|_| ());
        }
        self.write_topics(by, entries, at, each).map(|_| ())
    }

    fn write_topics<T>(
        &mut self,
        by: By,
        entries: &mut [T],
        at: fn(&mut T) -> &mut PartitionIx,
        mut each: impl FnMut(&mut Self, &mut u32, &mut T) -> Done,
    ) -> Result<u32, DecodeError> {
        let place = |entry: &mut T| {
            let partition = *at(entry);
            self.dir.place(partition).unwrap_or_else(|| stand_in(partition))
        };
        let mut places: Vec<Place> = entries.iter_mut().map(place).collect();
        let same = |a: &Place, b: &Place| match by {
            By::Id => a.id == b.id,
            By::Name => a.name == b.name,
        };
        let groups = places.chunk_by(same).count();
        self.length("Topics", Some(groups))?;
        let mut rest = entries;
        for group in places.chunk_by_mut(same) {
            let (now, later) = rest.split_at_mut(group.len());
            rest = later;
            self.topic_key(by, &mut group[0])?;
            self.length("Partitions", Some(group.len()))?;
            for (entry, place) in now.iter_mut().zip(group) {
                each(self, &mut place.number, entry)?;
            }
            self.end()?;
        }
        Ok(groups as u32)
    }

    fn read_topics<T: Default>(
        &mut self,
        by: By,
        entries: &mut Vec<T>,
        at: fn(&mut T) -> &mut PartitionIx,
        each: impl FnMut(&mut Self, &mut u32, &mut T) -> Done,
    ) -> Result<u32, DecodeError> {
        let Some(groups) = self.length("Topics", None)? else { return Err(self.wrong("Topics", Wrong::Null)) };
        self.read_groups(groups, by, entries, at, each)?;
        Ok(groups as u32)
    }

    fn read_groups<T: Default>(
        &mut self,
        groups: usize,
        by: By,
        entries: &mut Vec<T>,
        at: fn(&mut T) -> &mut PartitionIx,
        mut each: impl FnMut(&mut Self, &mut u32, &mut T) -> Done,
    ) -> Done {
        entries.clear();
        for _ in 0..groups {
            let mut key = Place { id: TopicId::ZERO, name: Arc::default(), number: 0 };
            self.topic_key(by, &mut key)?;
            let Some(len) = self.length("Partitions", None)? else { return Err(self.wrong("Partitions", Wrong::Null)) };
            for _ in 0..len {
                let mut entry = T::default();
                each(self, &mut key.number, &mut entry)?;
                *at(&mut entry) = self.resolve(by, &key)?;
                entries.push(entry);
            }
            self.end()?;
        }
        Ok(())
    }

    fn topic_key(&mut self, by: By, key: &mut Place) -> Done {
        match by {
            By::Id => self.uuid("TopicId", &mut key.id.0),
            By::Name => self.text("Name", &mut key.name),
        }
    }

    fn resolve(&self, by: By, key: &Place) -> Result<PartitionIx, DecodeError> {
        let (known, stand_in) = match by {
            By::Id => (self.dir.by_id(key.id, key.number), index_in_id(key.id)),
            By::Name => (self.dir.by_name(&key.name, key.number), index_in_name(&key.name)),
        };
        let found = known.or_else(|| stand_in.filter(|_| key.number == 0));
        found.ok_or_else(|| self.wrong("PartitionIndex", Wrong::UnknownPartition))
    }
}
