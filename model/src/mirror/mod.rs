//! Cluster mirroring (KIP-1279): the destination copies partitions of a source cluster, offsets and leader epochs byte for
//! byte.

pub mod epochs;
pub mod retry;
pub mod seam;
