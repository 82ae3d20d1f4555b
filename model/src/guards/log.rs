//! Guards of the log room.
registry! { base 0;
    guard ProducerSnapshotFlushed: "A producer snapshot is durable before the log below it counts as recovered.", "D03, KAFKA-9892", ["S17", "S16"];
}
