//! Guards of the replica and broker rooms.
registry! { base 64;
    guard FetchOffsetMatches: "A fetch answer is taken only if the follower still stands at the offset it asked from.", "R16, KIP-966 model", ["S1", "S2"];
}
