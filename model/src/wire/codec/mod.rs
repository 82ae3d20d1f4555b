//! The wire: every message as the bytes that Kafka's protocol gives it, and back.
//!
//! A message is described once, in one function for both directions ([`Wire::pass`] over a [`Coder`]), so that encoding and
//! decoding cannot disagree. The versions are those of [`crate::wire::size::api`], all flexible (KIP-482).
//!
//! **What the messages do not hold.** They name partitions by index within the serving cluster, the wire by topic id or name
//! and by number: a [`Directory`] translates. Fields of Kafka's schemas that nothing here uses (throttle time, rack, member
//! id) are written with a fixed value and skipped when read.
//!
//! **What Kafka's wire does not hold.** A few fields exist for the sake of the model only: slots of fetch sessions, where one
//! shared piece of a record set ends and the next begins, the incarnation in a registration's answer. [`encode`] adds them
//! as tagged fields of our own (numbers from [`tags::OWN`] up), which any other reader skips; [`encode_stock`] leaves them
//! out: those are the bytes that links are charged for and that other implementations write.
//!
//! Bytes come from peers: whatever they are, they decode to a message or to a [`DecodeError`]; lengths are believed only as
//! far as there are bytes.
//!
//! Read in this order: `coder` (primitives), `tags`, `directory`, `topics` (entries grouped by topic), `frame` (headers and the
//! table of all messages), then the families.

mod admin;
mod brokers;
mod coder;
mod directory;
mod frame;
mod groups;
mod metadata;
mod mirror_orders;
mod mirror_states;
mod offsets;
mod produce_fetch;
mod raft;
mod records;
pub mod tags;
mod topics;
mod transactions;
mod votes;

pub use coder::{Coder, DecodeError, Done, Wire, Wrong};
pub use directory::{host, stand_in, Directory, Nowhere, Place, PORT};
pub use frame::{decode_request, decode_response, encode, encode_stock, CLIENT_ID};
pub use groups::UNSAID_GROUP;
pub use offsets::TIMEOUT_MS;
pub use raft::{voter_directory, METADATA_TOPIC_ID};

#[cfg(test)]
#[path = "golden_tests.rs"]
mod golden;
#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
