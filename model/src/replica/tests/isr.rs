//! BRK-17 and its neighbours: who is in sync, and what the watermark waits for.

use crate::guards::replication as guard;
use crate::ids::{BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch};
use crate::replica::testing::{batch_at, state, Rig, P0};
use crate::replica::BrokerView;
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::IsrVerdict;

fn verdict(error: ErrorCode, epoch: i32, partition_epoch: i32, isr: &[i32]) -> IsrVerdict {
    IsrVerdict {
        partition: P0,
        error,
        leader: BrokerId(0),
        leader_epoch: LeaderEpoch(epoch),
        isr: isr.iter().map(|b| BrokerId(*b)).collect(),
        partition_epoch: PartitionEpoch(partition_epoch),
    }
}

/// Leader 0 with followers 1 and 2; 2 stopped fetching after everything was replicated, then one more record came.
fn lagging(min_isr: u32) -> Rig {
    let mut rig = Rig::new(3, min_isr);
    rig.metadata(&[0, 1, 2], &state(0, 0, 0, &[0, 1, 2], &[0, 1, 2]));
    rig.settle();
    rig.produce(0, 1, 1, 1);
    rig.settle();
    rig.silence(2);
    rig.produce(0, 1, 2, 1);
    rig.wire.retain(|d| d.to != 2);
    rig.settle();
    rig
}

fn check(rig: &mut Rig) {
    let now = rig.now;
    rig.nodes[0].with(|replicas, _, cx| replicas.check_isr(now, cx));
    rig.settle_leader(0);
}

/// BRK-17: a slow follower leaves, and the watermark goes on once the change is committed.
#[test]
fn brk_17_a_lagging_follower_is_taken_out() {
    let mut rig = lagging(1);
    assert_eq!((rig.nodes[0].end(), rig.nodes[0].hw()), (2, 1));
    rig.advance(29_000);
    check(&mut rig);
    assert!(!rig.nodes[0].replicas.has_proposals());
    for _ in 0..4 {
        rig.advance(500);
    }
    check(&mut rig);
    assert!(rig.nodes[0].replicas.has_proposals());
    assert_eq!(rig.nodes[0].hw(), 1, "not before the change is committed");
    assert_eq!(rig.commit_isr(0, 1), 0b011);
    assert_eq!(rig.nodes[0].hw(), 2);
}

/// BRK-17: a follower that misses nothing stays, however silent.
#[test]
fn brk_17_silence_without_lag_is_not_lag() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0, 1], &state(0, 0, 0, &[0, 1], &[0, 1]));
    rig.settle();
    rig.parked.clear();
    rig.advance(100_000);
    check(&mut rig);
    assert!(!rig.nodes[0].replicas.has_proposals());
}

/// I06, BRK-17
#[test]
fn i06_the_watermark_stands_below_min_isr() {
    for on in [true, false] {
        let mut rig = Rig::new(3, 2);
        rig.guard(guard::WatermarkNeedsMinIsr, on);
        rig.metadata(&[0], &state(0, 0, 0, &[0, 1, 2], &[0]));
        rig.produce(0, 1, 1, 1);
        assert_eq!(rig.nodes[0].hw() == 0, on);
    }
}

/// Min ISR is checked before the append: nothing is written.
#[test]
fn a_produce_below_min_isr_is_refused_before_the_append() {
    let mut rig = Rig::new(3, 2);
    rig.metadata(&[0], &state(0, 0, 0, &[0, 1, 2], &[0]));
    let refused = rig.produce(0, 1, 1, -1);
    assert_eq!((refused.answer.error, rig.nodes[0].end()), (ErrorCode::NotEnoughReplicas, 0));
    rig.guard(guard::MinIsrBeforeAppend, false);
    assert!(rig.produce(0, 1, 1, -1).waits);
}

/// BRK-17: a follower joins past the watermark and the epoch start, in one proposal.
#[test]
fn brk_17_a_follower_joins_when_it_has_caught_up() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0], &state(0, 0, 0, &[0, 1], &[0]));
    rig.produce(0, 1, 1, 1);
    rig.metadata(&[1], &state(0, 0, 0, &[0, 1], &[0]));
    rig.step();
    assert!(!rig.nodes[0].replicas.has_proposals(), "still at 0");
    rig.settle();
    assert!(rig.nodes[0].replicas.has_proposals());
    assert_eq!(rig.commit_isr(0, 1), 0b11);
}

/// I01
#[test]
fn i01_the_watermark_waits_for_a_member_that_is_about_to_join() {
    for on in [true, false] {
        let mut rig = Rig::new(2, 1);
        rig.guard(guard::MaximalIsr, on);
        rig.metadata(&[0, 1], &state(0, 0, 0, &[0, 1], &[0]));
        rig.settle();
        assert!(rig.nodes[0].replicas.has_proposals());
        assert_eq!(rig.nodes[0].replicas.take_proposals(10).len(), 1);
        // Long after it was caught up, so that only the proposal makes the leader wait.
        rig.silence(1);
        rig.produce(0, 1, 1, 1);
        rig.advance(60_000);
        rig.produce(0, 1, 2, 1);
        assert_eq!(rig.nodes[0].hw() == 0, on);
    }
}

/// I04, KIP-841, KIP-903
#[test]
fn i04_fenced_stopping_and_stale_brokers_stay_out() {
    let broken: [fn(&mut BrokerView); 3] =
        [|b| b.fenced = true, |b| b.shutting_down = true, |b| b.epoch = BrokerEpoch(999)];
    for (at, bad) in broken.into_iter().enumerate() {
        let mut rig = Rig::new(2, 1);
        let mut views = rig.nodes[0].replicas.brokers.clone();
        bad(&mut views[1]);
        rig.nodes[0].replicas.set_brokers(views);
        rig.metadata(&[0, 1], &state(0, 0, 0, &[0, 1], &[0]));
        rig.settle();
        assert!(!rig.nodes[0].replicas.has_proposals(), "{at}");
    }
}

/// I13: one change in flight; an answer of any kind ends it or sends it again.
#[test]
fn i13_every_answer_ends_the_flight_or_repeats_it() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0, 1], &state(0, 0, 0, &[0, 1], &[0]));
    rig.settle();
    let now = rig.now;
    assert_eq!(rig.nodes[0].replicas.take_proposals(10).len(), 1);
    assert_eq!(rig.nodes[0].replicas.take_proposals(10).len(), 0);
    let on_verdict = |rig: &mut Rig, v: IsrVerdict| rig.nodes[0].with(|r, _, cx| r.on_isr_verdict(&v, now, cx));
    // A retriable error: again.
    assert!(on_verdict(&mut rig, verdict(ErrorCode::RequestTimedOut, 0, 0, &[])));
    assert_eq!(rig.nodes[0].replicas.take_proposals(10).len(), 1);
    // The request was lost as a whole: again.
    rig.nodes[0].replicas.proposals_failed(&[P0]);
    assert_eq!(rig.nodes[0].replicas.take_proposals(10).len(), 1);
    // Success that changes nothing (the same version, KAFKA-12751): the flight is over.
    on_verdict(&mut rig, verdict(ErrorCode::None, 0, 0, &[0]));
    let leader = rig.nodes[0].replicas.get(P0).unwrap().leader.unwrap();
    assert!(!leader.sent && leader.in_flight, "the follower still may join: proposed anew");
    // Ineligible: rolled back.
    rig.nodes[0].replicas.take_proposals(10);
    on_verdict(&mut rig, verdict(ErrorCode::IneligibleReplica, 0, 0, &[]));
    let leader = rig.nodes[0].replicas.get(P0).unwrap().leader.unwrap();
    assert_eq!((leader.in_flight, leader.isr, leader.proposed), (false, 1, 1));
}

/// R23
#[test]
fn r23_answers_of_other_epochs_change_nothing() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0, 1], &state(0, 3, 5, &[0, 1], &[0]));
    rig.settle();
    let now = rig.now;
    rig.nodes[0].replicas.take_proposals(10);
    for stale in [verdict(ErrorCode::None, 2, 9, &[0, 1]), verdict(ErrorCode::None, 3, 4, &[0, 1])] {
        rig.nodes[0].with(|r, _, cx| r.on_isr_verdict(&stale, now, cx));
        assert_eq!(rig.nodes[0].isr(), 1);
    }
    // Metadata settles it first, then the answer arrives: nothing new.
    rig.metadata(&[0], &state(0, 3, 6, &[0, 1], &[0, 1]));
    assert_eq!(rig.nodes[0].isr(), 0b11);
    let late = verdict(ErrorCode::None, 3, 6, &[0, 1]);
    rig.nodes[0].with(|r, _, cx| r.on_isr_verdict(&late, now, cx));
    let leader = rig.nodes[0].replicas.get(P0).unwrap().leader.unwrap();
    assert_eq!((leader.isr, leader.in_flight), (0b11, false));
}

/// The wait of acks=all ends with an error when the ISR became too small after the append, and when leadership ends.
#[test]
fn waits_end_when_leadership_does() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0, 1], &state(0, 0, 0, &[0, 1], &[0, 1]));
    assert!(rig.produce(0, 1, 1, -1).waits);
    rig.wire.clear();
    rig.metadata(&[0], &state(1, 1, 1, &[0, 1], &[0, 1]));
    rig.settle_leader(0);
    assert_eq!(rig.done.len(), 1);
    assert_eq!(rig.done[0].error, ErrorCode::NotLeaderOrFollower);
}

/// An unclean election's recovery is reported at once; nobody joins before.
#[test]
fn recovery_is_reported_before_the_isr_grows() {
    let mut rig = Rig::new(2, 1);
    let mut unclean = state(0, 4, 4, &[0, 1], &[0]);
    unclean.recovering = true;
    rig.metadata(&[0, 1], &unclean);
    let proposals = rig.nodes[0].replicas.take_proposals(10);
    assert_eq!((proposals.len(), proposals[0].recovered, proposals[0].isr.len()), (1, true, 1));
    rig.settle();
    assert!(!rig.nodes[0].replicas.has_proposals());
    let now = rig.now;
    let done = verdict(ErrorCode::None, 4, 5, &[0]);
    rig.nodes[0].with(|r, _, cx| r.on_isr_verdict(&done, now, cx));
    assert!(rig.nodes[0].replicas.has_proposals(), "now the follower may join");
}

/// Decision 31
#[test]
fn a_barrier_waits_for_positions_of_this_epoch() {
    for on in [true, false] {
        let mut rig = Rig::new(2, 1);
        rig.guard(guard::BarrierNeedsPosition, on);
        rig.metadata(&[0, 1], &state(0, 0, 0, &[0, 1], &[0, 1]));
        let now = rig.now;
        let at_once = rig.nodes[0].with(|r, _, cx| r.start_barrier(now, P0, true, cx));
        assert_eq!(at_once, !on, "nothing is known of the follower yet");
        rig.settle();
        assert_eq!(rig.nodes[0].replicas.take_converged().len(), usize::from(on));
    }
}

/// A follower that could not join while it was fenced joins when metadata lets it in.
#[test]
fn a_follower_joins_once_it_is_unfenced() {
    let mut rig = Rig::new(2, 1);
    let live = rig.nodes[0].replicas.brokers.clone();
    let mut fenced = live.clone();
    fenced[1].fenced = true;
    rig.nodes[0].replicas.set_brokers(fenced);
    rig.metadata(&[0, 1], &state(0, 0, 0, &[0, 1], &[0]));
    rig.settle();
    assert!(!rig.nodes[0].replicas.has_proposals());
    rig.nodes[0].replicas.set_brokers(live);
    rig.nodes[0].with(|r, _, cx| r.recheck_joins(cx));
    assert!(rig.nodes[0].replicas.has_proposals());
}

/// A new leader gives the ISR it inherits the whole lag to show up.
#[test]
fn a_new_leader_does_not_shrink_at_once() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0], &state(0, 0, 0, &[0, 1], &[0, 1]));
    rig.advance(20_000);
    check(&mut rig);
    assert!(!rig.nodes[0].replicas.has_proposals());
    rig.advance(11_000);
    check(&mut rig);
    assert!(rig.nodes[0].replicas.has_proposals());
}

#[test]
fn positions_are_traced() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0, 1], &state(0, 0, 0, &[0, 1], &[0, 1]));
    rig.settle();
    rig.produce(0, 2, 1, 1);
    rig.settle();
    let positions: Vec<i64> = rig.nodes[0]
        .trace
        .iter()
        .filter_map(|t| match t {
            Trace::FollowerPosition { position, .. } => Some(position.0),
            _ => None,
        })
        .collect();
    assert_eq!(positions, [0, 2]);
}

/// BRK-17: with min ISR 3 of 3 the watermark waits for a silent follower, and stays where it is when that one has left.
#[test]
fn brk_17_below_min_isr_the_watermark_waits_even_after_the_shrink() {
    let mut rig = lagging(3);
    assert_eq!((rig.nodes[0].end(), rig.nodes[0].hw()), (2, 1));
    for _ in 0..64 {
        rig.advance(500);
    }
    check(&mut rig);
    assert_eq!(rig.commit_isr(0, 1), 0b011);
    assert_eq!(rig.nodes[0].hw(), 1, "two in sync of the three that are needed");
}

/// BRK-17: what a mirror leader copies is like a write with acks=1: it waits for no ISR; the watermark does.
#[test]
fn brk_17_a_mirror_append_does_not_wait_for_the_isr() {
    let mut rig = Rig::new(3, 2);
    rig.policy(|policy| {
        policy.mirrored = true;
        policy.read_only = true;
    });
    rig.metadata(&[0], &state(0, 20, 0, &[0, 1, 2], &[0]));
    let now = rig.now;
    let batches = [batch_at(0, 2, 5, 1)];
    rig.nodes[0].with(|r, _, cx| r.append_mirrored(now, P0, &batches, cx)).unwrap();
    assert_eq!((rig.nodes[0].end(), rig.nodes[0].hw(), rig.nodes[0].epochs()), (2, 0, vec![(5, 0)]));
}
