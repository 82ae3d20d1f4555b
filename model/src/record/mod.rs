//! Record batches as Kafka writes them to disk and to the wire (message format v2, KIP-98): views over bytes, a builder,
//! control records, and the identity that a test record carries in its value.
//!
//! A batch is never turned into objects on the hot path: a leader copies a produce request once, stamps offsets and epoch
//! into the headers, and everybody after it shares those bytes.

pub mod batch;
pub mod builder;
pub mod control;
pub mod identity;
pub mod rewrite;
pub mod varint;

pub use batch::{
    split, views, BatchError, BatchView, Compression, HeaderView, Headers, RecordView, Records, Split, Views,
    HEADER_LEN,
};
pub use builder::{raw_batch, stamp, BatchBuilder, BatchMeta};
pub use control::{ControlRecord, ControlType};
pub use identity::Identity;
pub use rewrite::{rewrite, Rewrite};
