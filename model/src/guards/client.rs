//! Guards of the client room.
registry! { base 192;
    guard ConsumerValidatesEpoch: "A consumer checks its position against the leader's epochs after a leader change.", "G03, KIP-320", ["S8"];
}
