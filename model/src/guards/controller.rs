//! Guards of the controller room.
registry! { base 128;
    guard UncleanRegistrationLeavesIsr: "A broker that registers without proof of a clean stop leaves every ISR and ELR.", "I08, KAFKA-18635, KIP-966", ["S14", "S4"];
    guard UncleanRegistrationBumpsEpoch: "Where such a broker leaves an ISR or ELR, the leader epoch rises, even if the leader stays.", "I09, KAFKA-18106", ["S14", "S5", "S10"];
    guard DuplicateRegistrationRefused: "A broker id whose session lives is not given to another process start.", "KIP-631", ["S14", "S10"];
    guard RegistrationClusterIdMatches: "A broker formatted for another cluster is refused.", "KIP-631, KIP-78", ["S12"];
    guard StaleBrokerEpochRefused: "Requests of a broker carry its present broker epoch, or are refused.", "KIP-631, KIP-841", ["S14", "S12"];
    guard UnfenceNeedsCatchUp: "A broker is let in only after it applied the metadata log up to its own registration.", "KIP-631", ["S12"];
    guard FencedLeavesIsr: "A fenced broker leaves every ISR, unless it is the last member and there is no ELR.", "KIP-631, KIP-841", ["S12", "L4", "L2"];
    guard AlterPartitionEligibility: "A fenced, shutting-down or re-registered replica does not enter the ISR.", "I04, KIP-841, KIP-903", ["S12", "S14", "L4"];
    guard AlterPartitionFromLeader: "Only the leader proposes an ISR.", "KIP-497", ["S14", "S5", "S12"];
    guard AlterPartitionEpochMatches: "An ISR proposal builds on the partition's present partition epoch.", "KIP-497", ["S14", "S5", "S4"];
    guard AlterPartitionLeaderEpochMatches: "An ISR proposal is made in the partition's present leader epoch.", "KIP-497, KAFKA-12677", ["S14", "S5", "S4"];
    guard NoIsrGrowthInRecovery: "The ISR does not grow while recovery after an unclean election is open.", "KIP-704", ["S12", "S4"];
    guard ElectionFromIsrOnly: "Without permission for loss, a leader comes from the ISR, or from the ELR if the ISR is empty.", "KIP-631, KIP-966, LEAD-30", ["S3", "S12", "S4", "S6"];
    guard LastKnownLeaderUnfenced: "The last known leader is elected only when it is let in again.", "I11, KAFKA-19522", ["S12", "L4"];
    guard LeaderChangeRaisesEpoch: "Every change of leader carries, explicit in its record, a higher leader epoch.", "KIP-101, C28, spec 3.4", ["S10", "S1", "S2"];
    guard ElrClearedOnMinIsrChange: "A change of min.insync.replicas empties the ELR of the partitions it governs that have in-sync replicas.", "I10, KAFKA-16540, KAFKA-18649", ["S3", "S4", "S12"];
    guard BumpAboveMinimum: "A bump is needed while the leader epoch is not above the minimum; an equal one does not do.", "C12, decision 29", ["S34", "S39", "S35", "L9"];
    guard StartNeedsFreshStates: "An order built on states that changed since they were checked is refused.", "spec 1.4", ["S49"];
    guard StartTopicIdMatches: "A topic starts mirroring only if its id is the source topic's, and no other topic has that id.", "C-1, C-2, decision 17", ["S46", "S2"];
    guard MirroredTopicStays: "A topic that is copied or held is not deleted here: it has to be stopped first.", "BAD-14, spec 1.9", ["S49"];
    quirk "J" StopOfPausedRefused: "A stop of a paused topic is answered MIRROR_TOPIC_ALREADY_PAUSED, and nothing stops.", "E-17, decision 2", ["L10"];
    quirk "J" ExcludedStoppedAgain: "What a start's or stop's patterns exclude is ordered to stop even if it is stopped: later orders are refused as outdated.", "C-6", ["S49"];
    guard CommittedBeforeAnswered: "An answer leaves only when everything it saw is durable at the quorum.", "KIP-595", ["S13", "S3", "S14", "L5"];
}
