//! Guards and quirks of the mirror room.
registry! { base 256;
    guard EpochBumpBeforeAppend: "A batch with an epoch above the local leader epoch is not appended before the epoch was raised.", "M02, spec 3.3", ["S34", "L13"];
}
