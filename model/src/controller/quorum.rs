//! The voter: what it promised, whom it follows, and what it waits for (KIP-595, pre-vote after KIP-996).
//!
//! A state machine without disk and wire. Inputs are messages of other voters, a deadline that passed, progress of a fetch;
//! what it wants to say to whom is asked of it ([`Quorum::wants`]). Nothing that it decided may be acted upon before
//! [`Quorum::elected`] is durable: the controller sees to that.

use crate::controller::config::ControllerConfig;
use crate::controller::term::Term;
pub use crate::controller::voter::{Ask, Ballot, Elected, LogEnd, State};
use crate::guards::{quorum as guard, Guards};
use crate::ids::{LeaderEpoch, Nanos, NodeId};
use crate::ports::Entropy;
use crate::wire::codec::voter_directory;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    BeginQuorumEpochRequest, BeginQuorumEpochResponse, EndQuorumEpochRequest, EndQuorumEpochResponse, VoteRequest,
    VoteResponse,
};
use std::collections::BTreeSet;

/// Concern of the draws for election timeouts.
const ELECTION_DRAWS: u64 = 0x656c_6563_7469_6f6e;

/// The directory id of a controller that was never replaced.
#[must_use]
pub fn directory_of(node: NodeId) -> u128 {
    voter_directory(crate::ids::controller_id(node))
}

/// One voter.
#[derive(Clone, Debug)]
pub struct Quorum {
    me: NodeId,
    directory: u128,
    voters: Vec<NodeId>,
    elected: Elected,
    state: State,
    /// When the state is not waited in any longer.
    deadline: Nanos,
    election_timeout: Nanos,
    fetch_timeout: Nanos,
    draws: u64,
    /// Which voter an observer that knows no leader asks next.
    seek: usize,
    /// Since when it hears its leader, or leads. It stays when only somebody else's epoch takes it from there.
    attached: Option<Nanos>,
    /// When it first raised the epoch since it last heard a leader, or led.
    stood: Option<Nanos>,
}

// ------------------------------------------------------------------------------------------------------------- what it is

impl Quorum {
    /// Starts from what the disk remembers.
    #[must_use]
    pub fn boot(
        config: &ControllerConfig,
        directory: u128,
        elected: Elected,
        guards: &mut Guards,
        now: Nanos,
        entropy: Entropy,
    ) -> Self {
        let me = config.node;
        let mut quorum = Self {
            me,
            directory,
            voters: config.voters.clone(),
            elected,
            state: State::Unattached,
            deadline: now,
            election_timeout: Nanos::from_millis(config.broker.controller_quorum_election_timeout_ms),
            fetch_timeout: Nanos::from_millis(config.broker.controller_quorum_fetch_timeout_ms),
            draws: 0,
            seek: usize::from(me.0),
            attached: None,
            stood: None,
        };
        quorum.deadline = quorum.election_deadline(now, entropy);
        let own_disk = directory == directory_of(me);
        if !guards.admits(guard::VoterHasItsDisk, own_disk) || !quorum.voters.contains(&me) {
            quorum.state = State::Observer;
        } else if quorum.is_alone() {
            // Nobody else has to be asked.
            quorum.state = State::Prospective(Ballot::default());
            quorum.stand(now, entropy);
            quorum.count(now);
        } else if elected.leader == Some(me) {
            // Off: role and epoch as before.
            quorum.state = if guards.admits(guard::LeaderRestartsResigned, false) {
                State::Leader(Term::new(&quorum.others(), now, quorum.fetch_timeout))
            } else {
                State::Resigned { told: BTreeSet::new(), successors: quorum.others() }
            };
        } else if elected.leader.is_some() {
            quorum.state = State::Follower { heard: false };
            quorum.deadline = now + quorum.fetch_timeout;
        }
        quorum
    }

    /// What has to be durable before anything that follows from it.
    #[must_use]
    pub fn elected(&self) -> Elected {
        self.elected
    }
    /// The epoch.
    #[must_use]
    pub fn epoch(&self) -> LeaderEpoch {
        self.elected.epoch
    }
    /// Who leads, as far as it knows. One that resigned is none, nor is one that it lost.
    #[must_use]
    pub fn leader(&self) -> Option<NodeId> {
        let follows = matches!(self.state, State::Follower { .. } | State::Leader(_) | State::Observer);
        self.elected.leader.filter(|_| follows)
    }
    /// Who leads, as it can bear witness: a follower that has not heard its leader sends nobody there.
    fn witnessed(&self) -> Option<NodeId> {
        let heard = matches!(self.state, State::Follower { heard: true } | State::Leader(_));
        self.elected.leader.filter(|_| heard)
    }
    /// Since when it hears its leader, or leads, if somebody else's epoch at most took it from there.
    #[must_use]
    pub fn attached(&self) -> Option<Nanos> {
        self.attached
    }
    /// When it first raised the epoch since it last heard a leader, or led.
    #[must_use]
    pub fn stood(&self) -> Option<Nanos> {
        self.stood
    }
    /// What it waits for.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }
    /// Its term, if it leads.
    #[must_use]
    pub fn term(&self) -> Option<&Term> {
        if let State::Leader(term) = &self.state {
            Some(term)
        } else {
            None
        }
    }
    /// Its term, if it leads.
    pub fn term_mut(&mut self) -> Option<&mut Term> {
        if let State::Leader(term) = &mut self.state {
            Some(term)
        } else {
            None
        }
    }
    /// Whom one that resigned proposes, best first.
    #[must_use]
    pub fn successors(&self) -> &[NodeId] {
        if let State::Resigned { successors, .. } = &self.state {
            successors
        } else {
            &[]
        }
    }
    /// Its directory.
    #[must_use]
    pub fn directory(&self) -> u128 {
        self.directory
    }
    /// Whether it is the only voter.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.voters.len() == 1 && self.voters.contains(&self.me)
    }
    /// Whether this is a voter with the disk that it voted with.
    #[must_use]
    pub fn is_voter(&self, node: NodeId, directory: u128, guards: &mut Guards) -> bool {
        self.voters.contains(&node) && guards.admits(guard::VoterHasItsDisk, directory == directory_of(node))
    }
    /// The other voters.
    #[must_use]
    pub fn others(&self) -> Vec<NodeId> {
        self.voters.iter().copied().filter(|node| *node != self.me).collect()
    }
    fn majority(&self) -> usize {
        self.voters.len() / 2 + 1
    }
    fn election_deadline(&mut self, now: Nanos, entropy: Entropy) -> Nanos {
        self.draws += 1;
        // The count begins anew with every life; the clock does not.
        let ordinal = self.draws ^ now.0.rotate_left(20);
        now + self.election_timeout + Nanos(entropy.below(ELECTION_DRAWS, ordinal, self.election_timeout.0))
    }
    fn enter(&mut self, state: State) {
        debug_assert!(state.can_follow(&self.state), "{} after {}", state.name(), self.state.name());
        self.state = state;
    }
}

// ------------------------------------------------------------------------------------------------------------ transitions

impl Quorum {
    fn detach(&mut self, epoch: LeaderEpoch, now: Nanos, entropy: Entropy) {
        if epoch > self.elected.epoch {
            self.elected = Elected { epoch, leader: None, voted: None };
        }
        if self.state != State::Observer {
            self.enter(State::Unattached);
        }
        self.deadline = self.election_deadline(now, entropy);
    }

    fn follow(&mut self, leader: NodeId, epoch: LeaderEpoch, now: Nanos) {
        if epoch > self.elected.epoch {
            self.elected = Elected { epoch, leader: Some(leader), voted: None };
        } else {
            self.elected.leader = Some(leader);
        }
        self.attached = None;
        if self.state != State::Observer {
            self.enter(State::Follower { heard: false });
        }
        self.deadline = now + self.fetch_timeout;
    }

    fn look_for_votes(&mut self, now: Nanos, guards: &mut Guards, entropy: Entropy) {
        let mine = Ballot { granted: [self.me].into(), refused: BTreeSet::new() };
        self.attached = None;
        self.enter(State::Prospective(mine));
        self.deadline = self.election_deadline(now, entropy);
        // Off: it stands at once, whoever leads.
        if guards.admits(guard::PreVoteFirst, false) {
            self.stand(now, entropy);
        }
    }

    /// Raises the epoch and votes for itself.
    fn stand(&mut self, now: Nanos, entropy: Entropy) {
        let epoch = LeaderEpoch(self.elected.epoch.0.saturating_add(1));
        self.elected = Elected { epoch, leader: None, voted: Some(self.me) };
        self.stood.get_or_insert(now);
        self.enter(State::Candidate(Ballot { granted: [self.me].into(), refused: BTreeSet::new() }));
        self.deadline = self.election_deadline(now, entropy);
    }

    /// A candidate with a majority leads.
    fn count(&mut self, now: Nanos) {
        let State::Candidate(ballot) = &self.state else { return };
        if ballot.granted.len() >= self.majority() {
            self.elected.leader = Some(self.me);
            let term = Term::new(&self.others(), now, self.fetch_timeout);
            self.attached = Some(now);
            self.enter(State::Leader(term));
        }
    }

    /// Somebody named the leader of an epoch, or only the epoch.
    pub fn learn(
        &mut self,
        leader: Option<NodeId>,
        epoch: LeaderEpoch,
        now: Nanos,
        guards: &mut Guards,
        entropy: Entropy,
    ) {
        let leader = leader.filter(|node| *node != self.me);
        if epoch > self.elected.epoch {
            match leader {
                Some(leader) => self.follow(leader, epoch, now),
                None => self.detach(epoch, now, entropy),
            }
            return;
        }
        let Some(leader) = leader.filter(|_| epoch == self.elected.epoch) else { return };
        let open = match &self.state {
            State::Unattached | State::Candidate(_) => true,
            // Off: it goes on looking for votes that it cannot get.
            State::Prospective(_) => !guards.admits(guard::ProspectiveLearnsLeader, false),
            State::Observer => self.elected.leader != Some(leader),
            State::Follower { .. } | State::Resigned { .. } | State::Leader(_) => false,
        };
        if open {
            self.follow(leader, epoch, now);
        }
    }

    /// The deadline passed.
    pub fn on_deadline(&mut self, now: Nanos, guards: &mut Guards, entropy: Entropy) {
        if now < self.deadline() {
            return;
        }
        match &mut self.state {
            State::Unattached | State::Prospective(_) | State::Candidate(_) | State::Follower { .. } => {
                self.look_for_votes(now, guards, entropy);
            }
            State::Resigned { .. } => {
                // A leader of this epoch is not elected again in it.
                self.detach(LeaderEpoch(self.elected.epoch.0.saturating_add(1)), now, entropy);
            }
            State::Leader(term) => {
                if guards.admits(guard::ResignWithoutMajority, false) {
                    term.hold_on(now);
                } else {
                    self.resign(now, entropy);
                }
            }
            State::Observer => {
                self.elected.leader = None;
                self.seek += 1;
                self.deadline = now + self.fetch_timeout;
            }
        }
    }

    /// It leads no longer.
    pub fn resign(&mut self, now: Nanos, entropy: Entropy) {
        if let State::Leader(term) = &self.state {
            let successors = term.successors();
            (self.attached, self.stood) = (None, None);
            self.enter(State::Resigned { told: BTreeSet::new(), successors });
            self.deadline = self.election_deadline(now, entropy);
        }
    }

    /// When [`Self::on_deadline`] is to be called.
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        match &self.state {
            State::Leader(_) if self.is_alone() => Nanos(u64::MAX),
            State::Leader(term) => term.check_at(),
            _ => self.deadline,
        }
    }

    /// The leader answered a fetch.
    pub fn on_fetched(&mut self, now: Nanos) {
        if let State::Follower { heard: heard @ false } = &mut self.state {
            *heard = true;
            (self.attached, self.stood) = (Some(now), None);
        }
        self.deadline = now + self.fetch_timeout;
    }
}

// --------------------------------------------------------------------------------------------------------------- messages

impl Quorum {
    /// A voter asks for a vote.
    pub fn on_vote_request(
        &mut self,
        request: &VoteRequest,
        own: LogEnd,
        now: Nanos,
        guards: &mut Guards,
        entropy: Entropy,
    ) -> VoteResponse {
        let granted = self.judge_vote(request, own, now, guards, entropy);
        let (error, granted) = granted.map_or_else(|error| (error, false), |granted| (ErrorCode::None, granted));
        VoteResponse { error, leader: self.witnessed(), epoch: self.elected.epoch, granted }
    }

    fn judge_vote(
        &mut self,
        request: &VoteRequest,
        own: LogEnd,
        now: Nanos,
        guards: &mut Guards,
        entropy: Entropy,
    ) -> Result<bool, ErrorCode> {
        let for_me = request.voter == self.me && request.voter_directory == self.directory;
        if self.state == State::Observer || !guards.admits(guard::VoterHasItsDisk, for_me) {
            return Err(ErrorCode::InvalidVoterKey);
        }
        if !self.is_voter(request.candidate, request.candidate_directory, guards) {
            return Err(ErrorCode::InvalidVoterKey);
        }
        if request.epoch < self.elected.epoch {
            return Err(ErrorCode::FencedLeaderEpoch);
        }
        self.learn(None, request.epoch, now, guards, entropy);
        let log = LogEnd { epoch: request.last_epoch, end: request.end };
        if !guards.admits(guard::VoteLogUpToDate, log >= own) {
            return Ok(false);
        }
        if request.pre_vote {
            return Ok(match self.state {
                State::Leader(_) => false,
                State::Follower { heard } => guards.admits(guard::PreVoteRefusedWhileLeaderHeard, !heard),
                _ => true,
            });
        }
        let free = match (self.elected.voted, self.elected.leader) {
            (Some(voted), _) => voted == request.candidate,
            (None, leader) => leader.is_none(),
        };
        if !guards.admits(guard::VoteOncePerEpoch, free) {
            return Ok(false);
        }
        self.elected.voted = Some(request.candidate);
        if matches!(self.state, State::Unattached | State::Prospective(_)) {
            self.detach(self.elected.epoch, now, entropy);
        }
        Ok(true)
    }

    /// Another voter answered a request for its vote that was sent in `epoch`.
    pub fn on_vote(
        &mut self,
        from: NodeId,
        (asked_in, pre_vote): (LeaderEpoch, bool),
        answer: &VoteResponse,
        now: Nanos,
        guards: &mut Guards,
        entropy: Entropy,
    ) {
        self.learn(answer.leader, answer.epoch, now, guards, entropy);
        if asked_in != self.elected.epoch {
            return;
        }
        let majority = self.majority();
        match &mut self.state {
            State::Prospective(ballot) if pre_vote => {
                ballot.note(from, answer.granted);
                if ballot.granted.len() >= majority {
                    self.stand(now, entropy);
                }
            }
            State::Candidate(ballot) if !pre_vote => {
                ballot.note(from, answer.granted);
                self.count(now);
            }
            _ => {}
        }
    }

    /// Somebody says that it leads.
    pub fn on_begin(
        &mut self,
        request: &BeginQuorumEpochRequest,
        now: Nanos,
        guards: &mut Guards,
        entropy: Entropy,
    ) -> BeginQuorumEpochResponse {
        let for_me = request.voter == self.me && request.voter_directory == self.directory;
        let error = if !guards.admits(guard::VoterHasItsDisk, for_me) {
            ErrorCode::InvalidVoterKey
        } else if !guards.admits(guard::StaleEpochFenced, request.epoch >= self.elected.epoch) {
            ErrorCode::FencedLeaderEpoch
        } else {
            if request.epoch < self.elected.epoch {
                // Only with the guard off.
                self.elected = Elected { epoch: request.epoch, leader: None, voted: None };
                self.follow(request.leader, request.epoch, now);
            }
            self.learn(Some(request.leader), request.epoch, now, guards, entropy);
            ErrorCode::None
        };
        BeginQuorumEpochResponse { error, leader: self.leader(), epoch: self.elected.epoch }
    }

    /// A leader resigns.
    pub fn on_end(
        &mut self,
        request: &EndQuorumEpochRequest,
        now: Nanos,
        guards: &mut Guards,
        entropy: Entropy,
    ) -> EndQuorumEpochResponse {
        let error = if request.epoch < self.elected.epoch {
            ErrorCode::FencedLeaderEpoch
        } else {
            self.learn(None, request.epoch, now, guards, entropy);
            self.leader_is_gone(request, now, entropy);
            ErrorCode::None
        };
        EndQuorumEpochResponse { error, leader: self.leader(), epoch: self.elected.epoch }
    }

    /// The first of the successors looks for votes at once, the others a while later, one after another.
    fn leader_is_gone(&mut self, request: &EndQuorumEpochRequest, now: Nanos, entropy: Entropy) {
        if !matches!(self.state, State::Follower { .. } | State::Unattached) {
            return;
        }
        if let State::Follower { heard } = &mut self.state {
            *heard = false;
        }
        self.attached = None;
        let place = request.successors.iter().position(|(node, _)| *node == self.me);
        self.deadline = match place {
            Some(0) => now,
            Some(place) => {
                let step = self.election_deadline(now, entropy).since(now);
                now + Nanos(step.0.saturating_mul(place as u64))
            }
            None => self.election_deadline(now, entropy),
        };
    }

    /// Another voter answered that a term begins or ends.
    pub fn on_told(
        &mut self,
        from: NodeId,
        asked_in: LeaderEpoch,
        (leader, epoch): (Option<NodeId>, LeaderEpoch),
        now: Nanos,
        guards: &mut Guards,
        entropy: Entropy,
    ) {
        if let State::Resigned { told, .. } = &mut self.state {
            if asked_in == self.elected.epoch {
                told.insert(from);
            }
        }
        self.learn(leader, epoch, now, guards, entropy);
    }

    /// What it wants to say to another voter now.
    #[must_use]
    pub fn wants(&self, node: NodeId, now: Nanos) -> Option<Ask> {
        match &self.state {
            State::Unattached => None,
            State::Prospective(ballot) => ballot.misses(node).then_some(Ask::Vote { pre_vote: true }),
            State::Candidate(ballot) => ballot.misses(node).then_some(Ask::Vote { pre_vote: false }),
            State::Follower { .. } => (self.elected.leader == Some(node)).then_some(Ask::Fetch),
            State::Resigned { told, .. } => (!told.contains(&node)).then_some(Ask::End),
            State::Leader(term) => term.is_to_be_told(node, now).then_some(Ask::Begin),
            State::Observer => {
                let others = self.others();
                let ask = self.elected.leader.or_else(|| others.get(self.seek % others.len().max(1)).copied());
                (ask == Some(node)).then_some(Ask::Fetch)
            }
        }
    }
}

#[cfg(test)]
#[path = "quorum_tests.rs"]
mod tests;
