//! A cluster's image as the directory that the codec asks.

use crate::ids::{PartitionIx, TopicId};
use crate::metadata::image::MetadataImage;
use crate::wire::codec::{Directory, Place};

/// Partitions as an image knows them, and the cluster's id, which no image holds.
#[derive(Clone, Copy, Debug)]
pub struct ImageDirectory<'a> {
    /// The image of the serving cluster.
    pub image: &'a MetadataImage,
    /// Its id.
    pub cluster_id: &'a str,
}

impl Directory for ImageDirectory<'_> {
    fn place(&self, partition: PartitionIx) -> Option<Place> {
        let found = self.image.partition(partition)?;
        let topic = self.image.topic(found.topic)?;
        Some(Place { id: topic.id, name: topic.name.clone(), number: found.number })
    }
    fn by_id(&self, topic: TopicId, number: u32) -> Option<PartitionIx> {
        self.image.partition_of(self.image.topic_of(topic)?, number)
    }
    fn by_name(&self, topic: &str, number: u32) -> Option<PartitionIx> {
        self.image.partition_of(self.image.topic_by_name(topic)?, number)
    }
    fn cluster_id(&self) -> &str {
        self.cluster_id
    }
}
