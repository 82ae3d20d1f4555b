//! An independent implementation of Kafka's wire format, the crate `kafka-protocol`, agrees with the model: on record batches
//! in both directions, and on the bytes and the size of every stock message. What it does not know (the proposal's messages)
//! comes back from its bytes as it was; its golden bytes stand beside the codec.

#[path = "wire_oracle/batches.rs"]
mod batches;
#[path = "wire_oracle/codec.rs"]
mod codec;
#[path = "wire_oracle/dice.rs"]
mod dice;
#[path = "wire_oracle/directories.rs"]
mod directories;
#[path = "wire_oracle/encode.rs"]
mod encode;
#[path = "wire_oracle/sizes.rs"]
mod sizes;
