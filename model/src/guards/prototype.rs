//! Quirks: what the public prototype of cluster mirroring does where this project does something else (decisions), each with
//! the version that shows it: J the July tree, L the latest files, JL both. Off in the corrected profile.
registry! { base 384;
    quirk "JL" FailedOutranksStop: "A FAILED partition does not follow the order to stop.", "D-1, spec 2.3 rule 1, decision 1", ["L10"];
    quirk "JL" StoppedTopicsFailToo: "A deleted source topic and a changed source cluster fail topics that were stopped long ago.", "D-2, decision 4", ["S49", "S32"];
    quirk "JL" StoppedTopicsAreSynced: "What is stopped grows with its source and has its epochs raised.", "D-3, decision 5", ["S49"];
    quirk "JL" StopRecomputesPosition: "A stop that begins again takes the last position from the log as it is then, with its bump and its markers.", "D-4, decision 7", ["S39", "S35"];
    quirk "J" StopCountsOwnEpoch: "The last position names the epoch that this leader registered, though nothing was written in it.", "D-4b, decision 7", ["S39"];
    quirk "J" ResignationForgetsStates: "Whoever loses a partition of the state topic forgets all states, and does not read them again; what is not known is read-only.", "D-5, decision 9", ["L10", "S32", "S49"];
    quirk "J" NotLoadedReadsAsNone: "A coordinator that has not loaded a state tells that there is none.", "D-6, decision 6", ["S35", "S6", "S49"];
    quirk "J" ErrorReadsAsAlignment: "An error in an answer about states is taken for LOG_ALIGNMENT of partition 0.", "D-7, decision 32", ["S35", "S38"];
    quirk "J" StatesAreNotChecked: "A coordinator writes whatever it is sent: no leader epoch, no state epoch, no table.", "spec 2.4 (J), decisions 10 and 11", ["S37", "S38"];
    quirk "L" IllegalTransitionPasses: "A transition that the table does not have is answered as if it were committed.", "D-8, decision 10", ["S38", "S37"];
    quirk "JL" SilenceIsNone: "A position that could not be looked up counts as none: the log is cut to its start.", "D-11, decision 6", ["S35", "S6"];
    quirk "JL" MarkerErrorsIgnored: "Abort markers that could not be written are passed over.", "D-13, decision 13", ["S41", "S20"];
    quirk "J" MarkersMeetTheGate: "A marker for a partition that became read-only is refused for good, and its transaction never ends.", "D-17, decision 9", ["L1", "L7"];
    quirk "L" RefusedRequestStaysPending: "A transition that is not legal is remembered as under way, and the same one is not made when it is legal.", "D-15, decision 10", ["L10", "L9", "L8"];
    quirk "JL" DeposedLeaderStopsOn: "A leader that waits for a bump and is deposed goes on with its stop, and commits STOPPED.", "D-22, K9, K22, decisions 11 and 33", ["S41", "S40", "S37"];
    quirk "L" StopDoesNotAwaitPosition: "A stop goes on before its last position is committed.", "D-24, decision 7", ["S39"];
    quirk "J" LostWriteIsForgotten: "A state write whose coordinator was lost is never answered, and never made again.", "D-25, decisions 12 and 32", ["L9", "L10"];
    quirk "JL" RetryTimerSurvives: "The retry of a failure strikes though the partition has left FAILED.", "D-26, decision 21", ["S49", "L10"];
    quirk "JL" BarrierHasNoEnd: "The wait for replicas after a cut has no timer.", "D-30, decision 12", ["L9"];
    quirk "JL" BarrierSurvivesLeadership: "What a leader waited for when it was deposed comes true when it leads again.", "D-31, decision 33", ["S35", "S36"];
    quirk "J" ForGoodIsRetried: "A failure for good becomes an ordinary one with the next leader.", "D-36, decision 4", ["S48", "S37"];
    quirk "J" FailedStopIsOnlyLogged: "A step of a stop that fails is only logged.", "D-41, decision 12", ["L9", "L10"];
    quirk "J" BumpWaitsForCompany: "A bump is over when all bumps of its request are, and that a topic among them was deleted is not noticed.", "D-42, decision 12", ["L9", "L10"];
    quirk "J" EpochAnswerNeedsOldEpoch: "A look-up of epochs that the source refuses for its leader epoch is made again at once, for ever.", "D-47", ["L8", "L19"];
    quirk "J" FetcherDiesWithoutLeader: "A fetcher that compares epochs while the states are forgotten dies, and what it holds with it.", "D-48", ["L8"];
    quirk "J" StartWithOtherIdStopsController: "A start that names a topic of another id makes the controller stop.", "C-1, decision 17", ["L4"];
    quirk "J" LagBeginsAtZero: "Before the source's first answer the lag is told as 0.", "E-1, decision 19", ["S50"];
    quirk "L" UncommittedStateIsTold: "A state is told before it is committed, and not taken back when it never is.", "K7, decision 32", ["S38"];
    quirk "JL" WriteNamesImageEpoch: "A state is written under the leader epoch in the image at that time, not the one under which its change began.", "K9, decision 32", ["S37"];
    quirk "JL" BarrierCountsUnknown: "A follower of which nothing is known counts as converged.", "K12, decision 31", ["S36"];
    quirk "JL" RetryIgnoresDesired: "A retry goes back to MIRRORING whatever is wanted.", "K23, C-7, decision 33", ["S49", "L10"];
    quirk "J" FailbackByOffsetOnly: "At failback the log is cut at an offset, whatever the epochs below it.", "spec 3.6, worked example C.3", ["S35", "S30"];
}
