//! What a run of metadata records changed, so that who applies them walks only that.

use crate::ids::{BrokerId, MirrorIx, PartitionIx, TopicIx};
use crate::metadata::image::TopicImage;
use std::ops::Deref;
use std::sync::Arc;

/// An index that counts from zero without holes.
pub trait Dense: Copy {
    /// The index as a number.
    fn dense(self) -> usize;
}
macro_rules! dense {
    ($($t:ty),*) => { $( impl Dense for $t { fn dense(self) -> usize { self.0 as usize } } )* };
}
dense!(PartitionIx, TopicIx, MirrorIx);

/// A list of things touched, each once, in the order of their first touch. One bit per thing marks it.
#[derive(Clone, Debug)]
pub struct Touched<I> {
    list: Vec<I>,
    marks: Vec<u64>,
}

impl<I> Default for Touched<I> {
    fn default() -> Self {
        Self { list: Vec::new(), marks: Vec::new() }
    }
}

impl<I: Dense> Touched<I> {
    /// Adds a thing unless it is there.
    #[inline]
    pub fn touch(&mut self, ix: I) {
        let at = ix.dense();
        if self.marks.len() <= at / 64 {
            self.marks.resize(at / 64 + 1, 0);
        }
        let word = &mut self.marks[at / 64];
        if *word & (1 << (at % 64)) == 0 {
            *word |= 1 << (at % 64);
            self.list.push(ix);
        }
    }
    /// Whether a thing was touched.
    #[must_use]
    pub fn contains(&self, ix: I) -> bool {
        self.marks.get(ix.dense() / 64).is_some_and(|word| word & (1 << (ix.dense() % 64)) != 0)
    }
    /// Empties the list; costs its length.
    pub fn clear(&mut self) {
        for ix in self.list.drain(..) {
            self.marks[ix.dense() / 64] = 0;
        }
    }
}

impl<I> Deref for Touched<I> {
    type Target = [I];
    fn deref(&self) -> &[I] {
        &self.list
    }
}

/// What changed between two states of an image. Keep one and [`clear`](Self::clear) it: clearing costs what it holds.
#[derive(Clone, Debug, Default)]
pub struct MetadataDelta {
    /// Partitions created or changed; those of removed topics are in `topics_removed`.
    pub partitions: Touched<PartitionIx>,
    /// Topics created (also those removed again since).
    pub topics_created: Touched<TopicIx>,
    /// Topics removed, as they were.
    pub topics_removed: Vec<(TopicIx, Arc<TopicImage>)>,
    /// Topics whose effective config may differ.
    pub topic_configs: Touched<TopicIx>,
    /// Brokers registered, fenced, let in, shutting down: each once.
    pub brokers: Vec<BrokerId>,
    /// Some broker config changed.
    pub broker_configs: bool,
    /// Mirrors created, removed, or with a changed config.
    pub mirrors: Touched<MirrorIx>,
    /// Topics whose mirror or desired state changed.
    pub mirror_topics: Touched<TopicIx>,
}

impl MetadataDelta {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.partitions.clear();
        self.topics_created.clear();
        self.topics_removed.clear();
        self.topic_configs.clear();
        self.brokers.clear();
        self.broker_configs = false;
        self.mirrors.clear();
        self.mirror_topics.clear();
    }
    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
            && self.topics_created.is_empty()
            && self.topics_removed.is_empty()
            && self.topic_configs.is_empty()
            && self.brokers.is_empty()
            && !self.broker_configs
            && self.mirrors.is_empty()
            && self.mirror_topics.is_empty()
    }
    /// Notes a broker.
    pub fn touch_broker(&mut self, broker: BrokerId) {
        if !self.brokers.contains(&broker) {
            self.brokers.push(broker);
        }
    }
}
