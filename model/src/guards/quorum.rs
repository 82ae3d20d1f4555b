//! Guards of the metadata quorum: who leads, what is committed, what a voter may forget.
//!
//! `SnapshotBeforeLog` has no run that breaks without it: a majority of disks would have to be lost as well. A test of three controllers
//! holds it. The two of the pre-vote keep a quorum undisturbed, not right: that is an invariant of its own (S52).
registry! { base 512;
    guard VoteOncePerEpoch: "A voter gives one vote per epoch, and none where it knows the leader.", "KIP-595", ["S13"];
    guard VoteIsDurable: "A vote, and the epoch that it is for, are on the voter's disk before the answer leaves.", "KIP-595", ["S13"];
    guard VoteLogUpToDate: "A voter votes only for a log that ends in a later epoch than its own, or in the same one and not before it.", "KIP-595", ["S13", "S3"];
    guard VoterHasItsDisk: "A voter whose disk was replaced is no voter any more: what it promised is forgotten.", "Q10, KIP-853, KAFKA-17426", ["S13", "S10"];
    guard LeaderRestartsResigned: "A leader that starts again does not lead on in its epoch: what it had not flushed would be written twice.", "Q07, KAFKA-10527", ["S13", "S2", "S10"];
    guard PreVoteFirst: "A voter that lost its leader raises the epoch only after a majority said that it would vote for it.", "KIP-996", ["S52"];
    guard PreVoteRefusedWhileLeaderHeard: "A follower that fetches from its leader refuses pre-votes.", "KIP-996", ["S52"];
    guard ProspectiveLearnsLeader: "A voter that looks for votes follows the leader that refusals and announcements name.", "Q06, KIP-996", ["L17"];
    guard ResignWithoutMajority: "A leader from which no majority fetches resigns.", "Q02, KAFKA-15489", ["L17", "L14", "L4"];
    guard StaleEpochFenced: "Who speaks for an older epoch is refused and told the present one.", "KIP-595", ["S13"];
    guard CommitOwnEpochOnly: "A leader commits what earlier terms left only together with a record of its own epoch.", "KIP-595, Raft 5.4.2", ["S13"];
    guard HighWatermarkByMajority: "The high watermark is what a majority of the voters has, the leader's own durable end included.", "KIP-595", ["S13"];
    guard FetchedIsDurable: "A voter asks for the next record only when all before it is on its disk.", "KIP-595", ["S13"];
    guard DivergenceNamed: "A leader tells a fetcher where their logs part, rather than serve on from there.", "KIP-595", ["S13"];
    guard SnapshotForOlderEpochs: "A fetcher whose last record is of an epoch before a leader's log begins takes a snapshot: where the logs part cannot be told.", "KIP-630", ["S13"];
    guard LostTermRolledBack: "A controller that leads no more forgets what was not committed.", "KIP-595, KIP-631", ["S13"];
    guard SnapshotBeforeLog: "A voter's log gives way to a fetched snapshot only when that is durable under its name.", "KIP-630", ["S13"];
    guard ObserverAppliesCommitted: "A broker applies what is committed, and nothing above.", "KIP-595, KIP-631", ["S13", "S3"];
}
