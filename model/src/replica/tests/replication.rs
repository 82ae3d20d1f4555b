//! Leader and followers exchange requests: data, watermarks and epochs end the same everywhere.

use crate::guards::replication as guard;
use crate::replica::testing::{batch_at, epochs_of, state, Rig, P0};
use crate::wire::errors::ErrorCode;

fn three(min_isr: u32) -> Rig {
    let mut rig = Rig::new(3, min_isr);
    rig.metadata(&[0, 1, 2], &state(0, 0, 0, &[0, 1, 2], &[0, 1, 2]));
    rig.settle();
    rig
}

fn same_logs(rig: &Rig, nodes: &[usize]) {
    for &at in nodes {
        assert_eq!(rig.nodes[at].bytes(), rig.nodes[nodes[0]].bytes(), "log of {at}");
        assert_eq!(rig.nodes[at].epochs(), rig.nodes[nodes[0]].epochs(), "epochs of {at}");
    }
}

#[test]
fn acks_all_is_answered_when_both_followers_have_it() {
    let mut rig = three(2);
    let produced = rig.produce(0, 3, 1, -1);
    assert!(produced.waits && rig.done.is_empty());
    assert_eq!((rig.nodes[0].end(), rig.nodes[0].hw()), (3, 0));
    rig.settle();
    assert_eq!(rig.done.len(), 1);
    assert_eq!(rig.done[0].error, ErrorCode::None);
    assert_eq!(rig.nodes[0].hw(), 3);
    // Followers hear of the watermark with their next answer, at the latest when the fetch's wait ends.
    assert_eq!(rig.nodes[1].end(), 3);
    rig.advance(500);
    assert_eq!((rig.nodes[1].hw(), rig.nodes[2].hw()), (3, 3));
    same_logs(&rig, &[0, 1, 2]);
}

/// REP-14
#[test]
fn rep_14_one_simple_fetch() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0], &state(0, 0, 0, &[0, 1], &[0]));
    rig.produce(0, 1, 1, 1);
    rig.produce(0, 1, 2, 1);
    assert_eq!(rig.nodes[0].hw(), 2);
    rig.metadata(&[1], &state(0, 0, 0, &[0, 1], &[0]));
    assert!(rig.step(), "request");
    assert!(rig.step(), "answer");
    assert_eq!((rig.nodes[1].end(), rig.nodes[1].hw()), (2, 2));
}

/// LEAD-09
#[test]
fn lead_09_a_tail_that_was_never_replicated_is_cut_when_the_old_leader_returns() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0, 1], &state(0, 0, 0, &[0, 1], &[0, 1]));
    rig.settle();
    for tag in 0..10 {
        rig.produce(0, 1, tag, 1);
        rig.settle();
    }
    rig.wire.clear();
    for tag in 20..25 {
        rig.produce(0, 1, tag, 1);
    }
    rig.wire.clear();
    rig.parked.clear();
    rig.metadata(&[1], &state(1, 1, 1, &[0, 1], &[1]));
    for tag in 30..39 {
        rig.produce(1, 1, tag, 1);
    }
    rig.metadata(&[0], &state(1, 1, 1, &[0, 1], &[1]));
    rig.settle();
    assert_eq!((rig.nodes[0].end(), rig.nodes[1].end()), (19, 19));
    assert_eq!(rig.nodes[0].cuts(), [(15, 10)]);
    same_logs(&rig, &[0, 1]);
}

/// LEAD-11
#[test]
fn lead_11_five_rounds_of_write_and_bounce() {
    let mut rig = Rig::new(2, 1);
    for round in 0..5 {
        let leader = round % 2;
        rig.metadata(&[0, 1], &state(leader, round, round, &[0, 1], &[0, 1]));
        rig.settle();
        rig.produce(leader as usize, 1, round as u8, 1);
        rig.settle();
    }
    assert_eq!((rig.nodes[0].end(), rig.nodes[1].end()), (5, 5));
    same_logs(&rig, &[0, 1]);
}

/// LEAD-05's idle source, seen from inside: whoever led and wrote nothing follows on without help.
#[test]
fn an_epoch_that_wrote_nothing_is_forgotten_under_the_next_leader() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0, 1], &state(0, 0, 0, &[0, 1], &[0, 1]));
    rig.settle();
    rig.produce(0, 1, 1, 1);
    rig.settle();
    for epoch in 1..5 {
        rig.metadata(&[0, 1], &state(epoch % 2, epoch, epoch, &[0, 1], &[0, 1]));
        rig.settle();
    }
    rig.produce(0, 1, 2, -1);
    rig.settle();
    assert_eq!((rig.nodes[0].end(), rig.nodes[1].end(), rig.nodes[0].hw()), (2, 2, 2));
    assert_eq!(rig.nodes[1].epochs(), [(0, 0), (4, 1)]);
    same_logs(&rig, &[0, 1]);
}

/// LEAD-19
#[test]
fn lead_19_epochs_that_the_other_side_never_had_are_reconciled() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0, 1], &state(-1, 0, 0, &[0, 1], &[0, 1]));
    rig.plant(1, &[batch_at(0, 1, 0, 1), batch_at(1, 1, 2, 2), batch_at(2, 1, 4, 3)]);
    rig.plant(0, &[batch_at(0, 1, 1, 4), batch_at(1, 1, 3, 5), batch_at(2, 1, 5, 6)]);
    rig.metadata(&[0, 1], &state(0, 5, 1, &[0, 1], &[0]));
    rig.settle();
    assert_eq!(rig.nodes[1].end(), 3);
    same_logs(&rig, &[0, 1]);
    assert_eq!(epochs_of(&rig.nodes[1].bytes()), [1, 3, 5]);
}

/// LEAD-19, second part
#[test]
fn lead_19_a_longer_tail_of_an_older_epoch() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0, 1], &state(-1, 0, 0, &[0, 1], &[0, 1]));
    rig.plant(1, &[batch_at(0, 1, 0, 1), batch_at(1, 1, 2, 2), batch_at(2, 2, 4, 3)]);
    rig.plant(0, &[batch_at(0, 1, 0, 1), batch_at(1, 1, 2, 2), batch_at(2, 1, 5, 6)]);
    rig.metadata(&[0], &state(0, 5, 1, &[0, 1], &[0]));
    rig.metadata(&[1], &state(0, 5, 1, &[0, 1], &[0]));
    rig.step();
    rig.step();
    assert_eq!(rig.nodes[1].slot().last_fetched_epoch.0, 2, "after the cut");
    rig.settle();
    assert_eq!(rig.nodes[1].slot().last_fetched_epoch.0, 5);
    same_logs(&rig, &[0, 1]);
}

/// REP-29
#[test]
fn rep_29_a_follower_notes_an_epoch_only_with_data() {
    let mut rig = Rig::new(2, 1);
    for epoch in 0..3 {
        rig.metadata(&[0, 1], &state(0, epoch, epoch, &[0, 1], &[0, 1]));
        rig.settle();
        assert_eq!(rig.nodes[0].epochs().len() as i32, epoch + 1);
        assert_eq!(rig.nodes[1].epochs().len() as i32, epoch);
        rig.produce(0, 1, 1, 1);
        rig.settle();
    }
    assert_eq!(rig.nodes[0].epochs(), [(0, 0), (1, 1), (2, 2)]);
    assert_eq!(rig.nodes[1].epochs(), [(0, 0), (1, 1), (2, 2)]);
}

/// R09: the epoch that wrote nothing draws the line all the same.
#[test]
fn r09_a_leader_that_writes_nothing_still_ends_the_epochs_before() {
    for on in [true, false] {
        let mut rig = Rig::new(2, 1);
        rig.guard(guard::EpochStartAssigned, on);
        rig.metadata(&[0, 1], &state(-1, 0, 0, &[0, 1], &[0, 1]));
        rig.plant(0, &[batch_at(0, 1, 3, 1), batch_at(1, 1, 3, 3), batch_at(2, 1, 3, 4)]);
        rig.plant(1, &[batch_at(0, 1, 3, 1), batch_at(1, 1, 4, 2)]);
        rig.metadata(&[0, 1], &state(0, 5, 1, &[0, 1], &[0]));
        rig.settle();
        assert_eq!(rig.nodes[1].bytes() == rig.nodes[0].bytes(), on);
    }
}

/// R01
#[test]
fn r01_a_follower_keeps_what_the_leader_has_above_its_own_watermark() {
    for on in [true, false] {
        let mut rig = Rig::new(2, 1);
        rig.guard(guard::ReconcileByEpoch, on);
        rig.metadata(&[0, 1], &state(0, 0, 0, &[0, 1], &[0, 1]));
        rig.settle();
        rig.produce(0, 1, 1, 1);
        // The follower has it; it has not heard that it is committed.
        for _ in 0..3 {
            rig.step();
        }
        assert_eq!((rig.nodes[1].end(), rig.nodes[1].hw()), (1, 0));
        rig.metadata(&[1], &state(0, 1, 1, &[0, 1], &[0, 1]));
        assert_eq!(rig.nodes[1].end() == 1, on);
        assert!(rig.nodes[1].guards.was_hit(guard::ReconcileByEpoch));
    }
}

/// LEAD-20
#[test]
fn lead_20_no_needless_cut() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0, 1], &state(0, 0, 0, &[0, 1], &[0, 1]));
    rig.produce(0, 3, 1, 1);
    rig.settle();
    // The same epoch again, then a new epoch of the same leader.
    rig.metadata(&[1], &state(0, 0, 0, &[0, 1], &[0, 1]));
    rig.metadata(&[0, 1], &state(0, 1, 1, &[0, 1], &[0, 1]));
    rig.settle();
    assert!(rig.nodes[1].cuts().is_empty());
    assert_eq!(rig.nodes[1].end(), 3);
}

/// A follower below the leader's log start begins anew there; one that is ahead is cut (spec 4.6, R26).
#[test]
fn out_of_range_is_healed_from_both_sides() {
    let mut rig = Rig::new(2, 1);
    rig.metadata(&[0], &state(0, 0, 0, &[0, 1], &[0]));
    for tag in 0..5 {
        rig.produce(0, 1, tag, 1);
    }
    rig.nodes[0].with(|replicas, _, cx| replicas.delete_records(P0, crate::ids::Offset(3), cx));
    rig.metadata(&[1], &state(0, 0, 0, &[0, 1], &[0]));
    rig.settle();
    assert_eq!(rig.nodes[1].log().start().0, 3);
    assert_eq!((rig.nodes[1].end(), rig.nodes[1].hw()), (5, 5));
}

/// A log that begins anew behind a gap has a recovery point before its start. Where every record is flushed, the follower does
/// not count as having what it has until that is: somebody has to ask for the flush, and no append may come that would.
#[test]
fn a_log_that_begins_anew_behind_a_gap_asks_for_its_flush() {
    let mut rig = Rig::new(2, 1);
    rig.policy(|policy| policy.log.flush_messages = 1);
    rig.metadata(&[0], &state(0, 0, 0, &[0, 1], &[0]));
    rig.produce(0, 5, 1, 1);
    rig.flush(0);
    rig.nodes[0].with(|replicas, _, cx| replicas.delete_records(P0, crate::ids::Offset(5), cx));
    rig.metadata(&[1], &state(0, 0, 0, &[0, 1], &[0]));
    rig.settle();
    assert_eq!((rig.nodes[1].log().start().0, rig.nodes[1].log().recovery_point().0), (5, 0));
    assert_eq!(rig.nodes[1].replicas.take_flush_due(), [P0]);
}
