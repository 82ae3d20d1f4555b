//! S13 and L17 of a quorum of three controllers: each damage is named, and the sound world is left alone.

use super::fake::{batch, controller, voter, FakeReplica, Play};
use super::NOTHING;
use crate::checks::ghost::Stop;
use crate::checks::roster::{Part, Place};
use mirrorlab_model::ids::*;
use mirrorlab_model::trace::Trace;

const SECOND: NodeId = NodeId(21);
const THIRD: NodeId = NodeId(22);

fn log(batches: &[(i64, i32, i64)]) -> FakeReplica {
    let end = Offset(batches.last().map_or(0, |(base, _, count)| base + count));
    let batches = batches.iter().map(|(base, epoch, count)| batch(*base, *epoch, *count)).collect();
    FakeReplica { batches, end, hw: end, ..FakeReplica::default() }
}

/// The first leads in epoch 1, and all three have what is committed up to 8.
fn quorum() -> Play {
    let mut play = Play::new(2);
    let all = [controller(0), SECOND, THIRD];
    play.core.roster.clusters[0].controllers = all.to_vec();
    for (n, node) in all.into_iter().enumerate() {
        let place = Place { cluster: 0, part: Part::Controller };
        play.core.roster.seat(node, &format!("east/controller-{}", n + 1), place);
        play.world.metadata.insert(node, log(&[(0, 1, 3), (3, 1, 5)]));
        play.world.voters.insert(node, voter(Some(controller(0))));
    }
    assert_eq!(play.at(controller(0), Trace::QuorumLed { epoch: LeaderEpoch(1) }), NOTHING);
    assert_eq!(play.at(controller(0), Trace::MetadataCommitted { end: 8, hash: 80 }), NOTHING);
    play
}

#[test]
fn s13_counts_the_voters_that_have_what_is_committed() {
    let mut play = quorum();
    play.world.metadata.insert(controller(0), log(&[(0, 1, 3), (3, 1, 5), (8, 1, 2)]));
    play.world.metadata.insert(SECOND, log(&[(0, 1, 3), (3, 1, 5), (8, 1, 2)]));
    assert_eq!(play.at(controller(0), Trace::MetadataCommitted { end: 10, hash: 100 }), NOTHING);
    // One of three is none.
    let mut play = quorum();
    play.world.metadata.insert(controller(0), log(&[(0, 1, 3), (3, 1, 5), (8, 1, 2)]));
    assert_eq!(play.at(controller(0), Trace::MetadataCommitted { end: 10, hash: 100 }), ["S13"]);
    // Nor is one who has records of another epoch there, or one whose disk is another.
    let mut play = quorum();
    play.world.metadata.insert(controller(0), log(&[(0, 1, 3), (3, 1, 5), (8, 3, 2)]));
    play.world.metadata.insert(SECOND, log(&[(0, 1, 3), (3, 1, 5), (8, 2, 2)]));
    assert_eq!(play.at(controller(0), Trace::MetadataCommitted { end: 10, hash: 100 }), ["S13"]);
    play.world.metadata.insert(SECOND, log(&[(0, 1, 3), (3, 1, 5), (8, 3, 2)]));
    play.world.voters.get_mut(&SECOND).unwrap().is_observer = true;
    assert_eq!(play.at(controller(0), Trace::MetadataCommitted { end: 10, hash: 100 }), ["S13"]);
    // Who is down may have it.
    play.world.down.insert(SECOND);
    assert_eq!(play.at(controller(0), Trace::MetadataCommitted { end: 10, hash: 100 }), NOTHING);
}

#[test]
fn s13_demands_of_a_leader_what_was_committed_and_an_epoch_of_its_own() {
    let mut play = quorum();
    assert_eq!(play.at(SECOND, Trace::QuorumLed { epoch: LeaderEpoch(2) }), NOTHING);
    assert_eq!(play.at(THIRD, Trace::QuorumLed { epoch: LeaderEpoch(2) }), ["S13"]);
    // Again, after a restart, is another term too (Q07).
    assert_eq!(play.at(THIRD, Trace::QuorumLed { epoch: LeaderEpoch(2) }), ["S13"]);
    let mut play = quorum();
    play.world.metadata.insert(SECOND, log(&[(0, 1, 3)]));
    assert_eq!(play.at(SECOND, Trace::QuorumLed { epoch: LeaderEpoch(2) }), ["S13"]);
    // As long as what was committed, and something else.
    let mut play = quorum();
    play.world.metadata.insert(SECOND, log(&[(0, 1, 3), (3, 2, 5)]));
    assert!(play.at(SECOND, Trace::QuorumLed { epoch: LeaderEpoch(3) }).contains(&"S13".to_owned()));
}

#[test]
fn s13_knows_what_was_committed_when_nobody_who_has_it_is_up() {
    let leads = |epoch: i32| {
        let mut play = quorum();
        play.world.down.extend([controller(0), THIRD]);
        play.world.metadata.insert(SECOND, log(&[(0, 1, 3), (3, epoch, 5), (8, 2, 1)]));
        play.at(SECOND, Trace::QuorumLed { epoch: LeaderEpoch(3) })
    };
    assert_eq!(leads(1), NOTHING);
    assert_eq!(leads(2), ["S13"]);
}

#[test]
fn s13_holds_voters_to_what_was_committed() {
    let mut play = quorum();
    assert_eq!(play.at(SECOND, Trace::MetadataReplicated { end: 8, hash: 80 }), NOTHING);
    assert_eq!(play.at(SECOND, Trace::MetadataReplicated { end: 8, hash: 81 }), ["S13"]);
    assert_eq!(play.at(SECOND, Trace::MetadataReplicated { end: 9, hash: 90 }), ["S13"]);
    assert_eq!(play.at(SECOND, Trace::MetadataTruncated { to: 8, committed: 8 }), NOTHING);
    assert_eq!(play.at(SECOND, Trace::MetadataTruncated { to: 7, committed: 8 }), ["S13"]);
    // Nothing that was committed is written again, whoever knows of it.
    assert_eq!(play.at(controller(0), Trace::MetadataCommitted { end: 8, hash: 82 }), ["S13"]);
}

#[test]
fn s13_lets_a_leader_finish_what_its_majority_had() {
    let mut play = quorum();
    for node in [SECOND, THIRD] {
        play.world.metadata.insert(node, log(&[(0, 1, 3), (3, 1, 5), (8, 1, 2), (10, 2, 1)]));
        play.world.voters.get_mut(&node).unwrap().committed = 11;
    }
    assert_eq!(play.at(SECOND, Trace::QuorumLed { epoch: LeaderEpoch(2) }), NOTHING);
    assert_eq!(play.at(SECOND, Trace::MetadataCommitted { end: 11, hash: 110 }), NOTHING);
    // The first one was asleep, and hears only now that the second one had all of it.
    play.world.metadata.insert(controller(0), log(&[(0, 1, 3), (3, 1, 5), (8, 1, 2)]));
    assert_eq!(play.at(controller(0), Trace::MetadataCommitted { end: 10, hash: 100 }), NOTHING);
    // But not what it alone has.
    play.world.metadata.insert(controller(0), log(&[(0, 1, 3), (3, 1, 5), (8, 1, 1), (9, 1, 1)]));
    assert_eq!(play.at(controller(0), Trace::MetadataCommitted { end: 10, hash: 100 })[..1], ["S13"]);
}

#[test]
fn s13_counts_votes() {
    let mut play = quorum();
    let (epoch, vote) = (LeaderEpoch(4), |epoch, candidate| Trace::VoteGranted { epoch, candidate });
    assert_eq!(play.at(THIRD, vote(epoch, SECOND)), NOTHING);
    assert_eq!(play.at(THIRD, vote(epoch, SECOND)), NOTHING, "the same word again");
    assert_eq!(play.at(THIRD, vote(LeaderEpoch(5), controller(0))), NOTHING);
    assert_eq!(play.at(THIRD, vote(epoch, controller(0))), ["S13"]);
}

#[test]
fn s13_forgets_only_when_a_majority_of_disks_is_gone() {
    let mut play = quorum();
    play.core.on_stop(&play.world, SECOND, Stop::Wiped, None);
    assert_eq!(play.core.ghost.clusters[0].committed.len(), 1);
    play.core.on_stop(&play.world, THIRD, Stop::Wiped, None);
    assert_eq!(play.core.ghost.clusters[0].committed.len(), 0);
}

#[test]
fn l17_waits_for_one_leader_whom_all_follow() {
    let mut play = quorum();
    assert_eq!(play.left(), NOTHING);
    let second = play.world.voters.get_mut(&SECOND).unwrap();
    (second.follows, second.state) = (None, "prospective");
    assert_eq!(play.left(), ["L17"]);
    let second = play.world.voters.get_mut(&SECOND).unwrap();
    (second.follows, second.committed) = (Some(controller(0)), 7);
    assert_eq!(play.left(), ["L17"]);
    let second = play.world.voters.get_mut(&SECOND).unwrap();
    (second.committed, second.epoch) = (8, LeaderEpoch(2));
    assert_eq!(play.left(), ["L17"]);
    // It cannot know of a leader that it does not reach.
    play.world.cut.insert(SECOND);
    assert_eq!(play.left(), NOTHING);
    play.world.cut.clear();
    // Down is no harm as long as a majority goes on, nor is its absence for good.
    play.world.down.insert(SECOND);
    assert_eq!(play.left(), NOTHING);
    play.world.voters.get_mut(&controller(0)).unwrap().follows = None;
    assert_eq!(play.left(), ["L17"]);
    play.world.down.insert(THIRD);
    assert_eq!(play.left(), NOTHING);
}

#[test]
fn s52_sees_an_election_that_nobody_needed() {
    let led = |stood: Option<u64>, attached: [Option<u64>; 2]| {
        let mut play = quorum();
        for (node, attached) in [controller(0), SECOND].into_iter().zip(attached) {
            play.world.voters.get_mut(&node).unwrap().attached = attached.map(Nanos::from_secs);
        }
        play.world.voters.get_mut(&THIRD).unwrap().stood = stood.map(Nanos::from_secs);
        play.at(THIRD, Trace::QuorumLed { epoch: LeaderEpoch(2) })
    };
    assert_eq!(led(Some(3), [Some(60), Some(30)]), ["S52"]);
    // Nobody stood; one had no leader; one had it again since, or not long before.
    assert_eq!(led(None, [Some(60), Some(30)]), NOTHING);
    assert_eq!(led(Some(3), [Some(60), None]), NOTHING);
    assert_eq!(led(Some(50), [Some(60), Some(30)]), NOTHING);
    assert_eq!(led(Some(3), [Some(60), Some(10)]), NOTHING);
    // Whoever wins, the one that raised the epoch is to blame; one without a vote counts for nothing.
    let mut play = quorum();
    for node in [controller(0), SECOND] {
        play.world.voters.get_mut(&node).unwrap().attached = Some(Nanos::from_secs(60));
    }
    play.world.voters.get_mut(&THIRD).unwrap().stood = Some(Nanos::from_secs(3));
    assert_eq!(play.at(controller(0), Trace::QuorumLed { epoch: LeaderEpoch(2) }), ["S52"]);
    play.world.voters.get_mut(&SECOND).unwrap().is_observer = true;
    assert_eq!(play.at(controller(0), Trace::QuorumLed { epoch: LeaderEpoch(3) }), NOTHING);
}
