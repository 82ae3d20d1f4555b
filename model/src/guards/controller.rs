//! Guards of the controller room.
registry! { base 128;
    guard UncleanRegistrationLeavesIsr: "A broker that registers without proof of a clean stop leaves every ISR and ELR.", "I08, KAFKA-18635, KIP-966", ["S14", "S4"];
}
