//! An independent implementation of Kafka's wire format, the crate `kafka-protocol`, agrees with the model: on record batches
//! in both directions, and on the size of every stock message.

#[path = "wire_oracle/batches.rs"]
mod batches;
#[path = "wire_oracle/dice.rs"]
mod dice;
#[path = "wire_oracle/encode.rs"]
mod encode;
#[path = "wire_oracle/sizes.rs"]
mod sizes;
