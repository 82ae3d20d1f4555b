//! State, input, expected state and answer: one voter of three, without disk and wire.

use super::*;
use crate::ids::{MetadataOffset, Now};

const A: NodeId = NodeId(10);
const B: NodeId = NodeId(11);
const C: NodeId = NodeId(12);

struct Rig {
    quorum: Quorum,
    guards: Guards,
    now: Now,
}

fn log(epoch: i32, end: i64) -> LogEnd {
    LogEnd { epoch: LeaderEpoch(epoch), end: MetadataOffset(end) }
}

fn elected(epoch: i32, leader: Option<NodeId>, voted: Option<NodeId>) -> Elected {
    Elected { epoch: LeaderEpoch(epoch), leader, voted }
}

fn config() -> ControllerConfig {
    let mut config = ControllerConfig::alone("east", A);
    config.voters = vec![A, B, C];
    config
}

fn booted(from: Elected) -> Rig {
    with_guards(from, Guards::default())
}

fn with_guards(from: Elected, mut guards: Guards) -> Rig {
    let now = Now::default();
    let quorum = Quorum::boot(&config(), directory_of(A), from, &mut guards, now.mono, Entropy(7));
    Rig { quorum, guards, now }
}

fn without(id: crate::guards::GuardId) -> Guards {
    let mut guards = Guards::default();
    guards.set(id, false);
    guards
}

impl Rig {
    fn asked(&mut self, candidate: NodeId, epoch: i32, end: LogEnd, pre_vote: bool) -> VoteResponse {
        let request = VoteRequest {
            voter: A,
            voter_directory: directory_of(A),
            candidate,
            candidate_directory: directory_of(candidate),
            epoch: LeaderEpoch(epoch),
            last_epoch: end.epoch,
            end: end.end,
            pre_vote,
        };
        self.quorum.on_vote_request(&request, log(2, 20), self.now.mono, &mut self.guards, Entropy(7))
    }
    fn gets(&mut self, from: NodeId, asked_in: i32, pre_vote: bool, granted: bool) {
        let epoch = self.quorum.epoch();
        let answer = VoteResponse { error: ErrorCode::None, leader: None, epoch, granted };
        let asked = (LeaderEpoch(asked_in), pre_vote);
        self.quorum.on_vote(from, asked, &answer, self.now.mono, &mut self.guards, Entropy(7));
    }
    fn told(&mut self, leader: NodeId, epoch: i32) -> BeginQuorumEpochResponse {
        let request =
            BeginQuorumEpochRequest { voter: A, voter_directory: directory_of(A), leader, epoch: LeaderEpoch(epoch) };
        self.quorum.on_begin(&request, self.now.mono, &mut self.guards, Entropy(7))
    }
    fn expire(&mut self) {
        self.now.mono = self.quorum.deadline().max(self.now.mono);
        self.quorum.on_deadline(self.now.mono, &mut self.guards, Entropy(7));
    }
    fn state(&self) -> (&'static str, Elected) {
        (self.quorum.state().name(), self.quorum.elected())
    }
    /// Leads in epoch `epoch + 1`.
    fn leading(from: Elected) -> Self {
        let mut rig = booted(from);
        rig.expire();
        rig.gets(B, from.epoch.0, true, true);
        rig.gets(B, from.epoch.0 + 1, false, true);
        rig
    }
}

#[test]
fn a_voter_starts_as_what_it_promised() {
    let cases = [
        (elected(0, None, None), "unattached"),
        (elected(3, Some(B), None), "follower"),
        (elected(3, None, Some(B)), "unattached"),
        (elected(3, None, Some(A)), "unattached"),
        // Q07: what it had not flushed is gone, and may stand elsewhere under the same epoch.
        (elected(3, Some(A), Some(A)), "resigned"),
    ];
    for (from, state) in cases {
        assert_eq!(booted(from).state(), (state, from));
    }
    let off = with_guards(elected(3, Some(A), Some(A)), without(guard::LeaderRestartsResigned));
    assert_eq!(off.state().0, "leader");
}

#[test]
fn an_election_asks_first_then_raises_the_epoch() {
    let mut rig = booted(elected(2, None, None));
    rig.expire();
    assert_eq!(rig.state(), ("prospective", elected(2, None, None)));
    assert_eq!(rig.quorum.wants(B, rig.now.mono), Some(Ask::Vote { pre_vote: true }));
    rig.gets(B, 2, true, true);
    assert_eq!(rig.state(), ("candidate", elected(3, None, Some(A))));
    assert_eq!(rig.quorum.wants(C, rig.now.mono), Some(Ask::Vote { pre_vote: false }));
    // An answer of the round before does not count, nor does a word that promised nothing.
    rig.gets(B, 2, true, true);
    rig.gets(B, 3, true, true);
    assert_eq!(rig.state().0, "candidate");
    rig.gets(C, 3, false, true);
    assert_eq!(rig.state(), ("leader", elected(3, Some(A), Some(A))));
    assert_eq!(rig.quorum.wants(B, rig.now.mono), Some(Ask::Begin));
}

#[test]
fn a_refused_round_raises_nothing() {
    let mut rig = booted(elected(2, None, None));
    for _ in 0..3 {
        rig.expire();
        rig.gets(B, 2, true, false);
        rig.gets(C, 2, true, false);
        assert_eq!(rig.state(), ("prospective", elected(2, None, None)));
        assert_eq!(rig.quorum.wants(B, rig.now.mono), None);
    }
    let mut off = with_guards(elected(2, None, None), without(guard::PreVoteFirst));
    off.expire();
    assert_eq!(off.state(), ("candidate", elected(3, None, Some(A))));
}

#[test]
fn one_vote_per_epoch() {
    let mut rig = booted(elected(2, None, None));
    assert!(rig.asked(B, 3, log(2, 20), false).granted);
    assert_eq!(rig.state(), ("unattached", elected(3, None, Some(B))));
    assert!(!rig.asked(C, 3, log(2, 20), false).granted);
    assert!(rig.asked(B, 3, log(2, 20), false).granted, "the same word again");
    assert!(rig.asked(C, 4, log(2, 20), false).granted);
    // A pre-vote promises nothing and takes nothing away.
    assert!(rig.asked(B, 4, log(2, 20), true).granted);
    assert_eq!(rig.state(), ("unattached", elected(4, None, Some(C))));

    let mut off = with_guards(elected(2, None, None), without(guard::VoteOncePerEpoch));
    assert!(off.asked(B, 3, log(2, 20), false).granted && off.asked(C, 3, log(2, 20), false).granted);
}

#[test]
fn no_vote_for_a_log_that_ends_before_ours_or_in_an_earlier_epoch() {
    for (end, granted) in
        [(log(2, 20), true), (log(3, 1), true), (log(2, 21), true), (log(2, 19), false), (log(1, 99), false)]
    {
        for pre_vote in [false, true] {
            let mut rig = booted(elected(3, None, None));
            assert_eq!(rig.asked(B, 4, end, pre_vote).granted, granted, "{end:?}");
        }
    }
    let mut off = with_guards(elected(3, None, None), without(guard::VoteLogUpToDate));
    assert!(off.asked(B, 4, log(1, 0), false).granted);
}

#[test]
fn no_vote_where_the_leader_is_known_nor_in_an_old_epoch() {
    let mut rig = booted(elected(3, Some(C), None));
    rig.quorum.on_fetched(rig.now.mono);
    assert!(!rig.asked(B, 3, log(3, 30), false).granted);
    let answer = rig.asked(B, 2, log(3, 30), false);
    let fenced =
        VoteResponse { error: ErrorCode::FencedLeaderEpoch, leader: Some(C), epoch: LeaderEpoch(3), granted: false };
    assert_eq!(answer, fenced);
    // A later epoch ends the term of whoever leads.
    let mut leads = Rig::leading(elected(2, None, None));
    assert!(leads.asked(B, 4, log(3, 30), false).granted);
    assert_eq!(leads.state(), ("unattached", elected(4, None, Some(B))));
}

#[test]
fn a_follower_that_hears_its_leader_refuses_pre_votes() {
    let mut rig = booted(elected(3, Some(C), None));
    assert!(rig.asked(B, 3, log(2, 20), true).granted, "it has not heard it in this life");
    rig.quorum.on_fetched(rig.now.mono);
    assert!(!rig.asked(B, 3, log(2, 20), true).granted);
    rig.guards.set(guard::PreVoteRefusedWhileLeaderHeard, false);
    assert!(rig.asked(B, 3, log(2, 20), true).granted);
    rig.guards.set(guard::PreVoteRefusedWhileLeaderHeard, true);
    rig.expire();
    assert_eq!(rig.state(), ("prospective", elected(3, Some(C), None)));
    assert!(rig.asked(B, 3, log(2, 20), true).granted);
}

#[test]
fn nobody_is_sent_to_a_leader_that_the_voter_does_not_hear() {
    // 1. The leader dies. 2. One voter misses it, and asks the other one, which does so a moment later. 3. Told who led, it would
    // follow the dead one for another two seconds, and the other one then too, in turn.
    let mut rig = booted(elected(3, Some(C), None));
    assert_eq!(rig.asked(B, 3, log(2, 20), true).leader, None);
    rig.quorum.on_fetched(rig.now.mono);
    assert_eq!(rig.asked(B, 3, log(2, 20), true).leader, Some(C));
    rig.expire();
    let answer = rig.asked(B, 3, log(2, 20), true);
    assert_eq!((answer.leader, answer.granted), (None, true));
}

#[test]
fn a_prospective_voter_follows_the_leader_that_a_refusal_names() {
    for on in [true, false] {
        let mut rig = booted(elected(3, Some(C), None));
        rig.guards.set(guard::ProspectiveLearnsLeader, on);
        rig.expire();
        let refusal = VoteResponse { error: ErrorCode::None, leader: Some(C), epoch: LeaderEpoch(3), granted: false };
        rig.quorum.on_vote(B, (LeaderEpoch(3), true), &refusal, rig.now.mono, &mut rig.guards, Entropy(7));
        rig.told(C, 3);
        assert_eq!(rig.state().0, if on { "follower" } else { "prospective" });
    }
}

#[test]
fn who_speaks_for_an_older_epoch_is_told_the_present_one() {
    let mut rig = booted(elected(3, Some(C), None));
    let answer = rig.told(B, 2);
    assert_eq!((answer.error, answer.leader, answer.epoch), (ErrorCode::FencedLeaderEpoch, Some(C), LeaderEpoch(3)));
    assert_eq!(rig.state(), ("follower", elected(3, Some(C), None)));
    rig.guards.set(guard::StaleEpochFenced, false);
    rig.told(B, 2);
    assert_eq!(rig.state(), ("follower", elected(2, Some(B), None)));
}

#[test]
fn a_leader_without_a_majority_that_fetches_resigns_and_comes_back_in_another_epoch() {
    let mut rig = Rig::leading(elected(2, None, None));
    let check = rig.quorum.deadline();
    rig.now.mono = check;
    rig.quorum.term_mut().unwrap().on_fetch(C, 5, check);
    rig.quorum.on_deadline(check, &mut rig.guards, Entropy(7));
    assert_eq!(rig.state().0, "leader", "C and itself are two of three");
    rig.guards.set(guard::ResignWithoutMajority, false);
    rig.expire();
    assert_eq!(rig.state().0, "leader");
    rig.guards.set(guard::ResignWithoutMajority, true);
    rig.expire();
    assert_eq!(rig.state(), ("resigned", elected(3, Some(A), Some(A))));
    assert_eq!(rig.quorum.leader(), None);
    assert_eq!(rig.quorum.wants(B, rig.now.mono), Some(Ask::End));
    assert_eq!(rig.quorum.successors(), [C, B], "C fetched");
    rig.quorum.on_told(B, LeaderEpoch(3), (None, LeaderEpoch(3)), rig.now.mono, &mut rig.guards, Entropy(7));
    assert_eq!(rig.quorum.wants(B, rig.now.mono), None);
    assert!(!rig.asked(B, 3, log(2, 20), false).granted, "it voted for itself");
    rig.expire();
    assert_eq!(rig.state(), ("unattached", elected(4, None, None)));
}

#[test]
fn successors_look_for_votes_one_after_another() {
    for (place, first) in [(vec![(A, 0), (B, 0)], true), (vec![(B, 0), (A, 0)], false)] {
        let mut rig = booted(elected(3, Some(C), None));
        rig.quorum.on_fetched(rig.now.mono);
        let request = EndQuorumEpochRequest { leader: C, epoch: LeaderEpoch(3), successors: place };
        rig.quorum.on_end(&request, rig.now.mono, &mut rig.guards, Entropy(7));
        assert_eq!(rig.quorum.deadline() == rig.now.mono, first);
        assert!(rig.asked(B, 3, log(2, 20), true).granted, "its leader is not there any more");
    }
}

#[test]
fn a_voter_with_another_disk_has_no_vote() {
    for on in [true, false] {
        let mut guards = Guards::default();
        guards.set(guard::VoterHasItsDisk, on);
        let now = Now::default();
        let quorum = Quorum::boot(&config(), 99, Elected::default(), &mut guards, now.mono, Entropy(7));
        let mut rig = Rig { quorum, guards, now };
        assert_eq!(rig.state().0, if on { "observer" } else { "unattached" });
        let answer = rig.asked(B, 3, log(2, 20), false);
        assert_eq!(answer.granted, !on);
        assert_eq!(rig.quorum.wants(B, rig.now.mono).is_some() || rig.quorum.wants(C, rig.now.mono).is_some(), on);
    }
    // Nor does it get one.
    let mut rig = booted(elected(2, None, None));
    let request = VoteRequest {
        voter: A,
        voter_directory: directory_of(A),
        candidate: B,
        candidate_directory: 99,
        epoch: LeaderEpoch(3),
        last_epoch: LeaderEpoch(3),
        end: MetadataOffset(99),
        pre_vote: false,
    };
    let answer = rig.quorum.on_vote_request(&request, log(2, 20), rig.now.mono, &mut rig.guards, Entropy(7));
    assert_eq!((answer.error, answer.granted), (ErrorCode::InvalidVoterKey, false));
    assert_eq!(rig.state(), ("unattached", elected(2, None, None)));
}

mod term {
    use super::*;

    fn term(others: usize) -> Term {
        let nodes = [A, B, C, NodeId(13)];
        let mut term = Term::new(&nodes[..others], Nanos::ZERO, Nanos::from_secs(2));
        term.begin_at(100);
        term
    }

    #[test]
    fn what_a_majority_has_is_committed_the_leader_included() {
        let mut guards = Guards::default();
        let mut of_three = term(2);
        assert_eq!(of_three.committed(110, &mut guards), None);
        of_three.on_fetch(A, 105, Nanos::ZERO);
        assert_eq!(of_three.committed(110, &mut guards), Some(105));
        of_three.on_fetch(B, 120, Nanos::ZERO);
        assert_eq!(of_three.committed(110, &mut guards), Some(110));
        assert_eq!(of_three.committed(101, &mut guards), Some(105), "its own flush may be the slow one");
        let mut of_five = term(4);
        of_five.on_fetch(A, 108, Nanos::ZERO);
        assert_eq!(of_five.committed(110, &mut guards), None);
        of_five.on_fetch(B, 107, Nanos::ZERO);
        assert_eq!(of_five.committed(110, &mut guards), Some(107));
        assert_eq!(term(0).committed(110, &mut guards), Some(110), "alone");
        guards.set(guard::HighWatermarkByMajority, false);
        assert_eq!(term(2).committed(110, &mut guards), Some(110));
    }

    #[test]
    fn earlier_terms_are_committed_only_with_a_record_of_the_own_one() {
        let mut guards = Guards::default();
        let mut term = term(2);
        term.on_fetch(A, 100, Nanos::ZERO);
        assert_eq!(term.committed(101, &mut guards), None);
        guards.set(guard::CommitOwnEpochOnly, false);
        assert_eq!(term.committed(101, &mut guards), Some(100));
        guards.set(guard::CommitOwnEpochOnly, true);
        term.on_fetch(A, 101, Nanos::ZERO);
        assert_eq!(term.committed(101, &mut guards), Some(101));
    }

    #[test]
    fn those_who_do_not_fetch_are_told_again_and_those_who_have_most_come_first() {
        let (second, mut term) = (Nanos::from_secs(1), term(2));
        assert!(term.is_to_be_told(A, Nanos::ZERO) && term.is_to_be_told(B, Nanos::ZERO));
        term.told(A, Nanos::ZERO);
        term.on_fetch(B, 105, Nanos::from_millis(500));
        assert!(!term.is_to_be_told(A, Nanos::from_millis(999)) && term.is_to_be_told(A, second));
        assert!(!term.is_to_be_told(B, second));
        assert_eq!(term.tell_at(), Some(second));
        assert_eq!(term.successors(), [B, A]);
    }
}
