//! What becomes of bumps that the controller was asked for.

use crate::guards::mirror as guard;
use crate::ids::{LeaderEpoch, MirrorIx, PartitionIx};
use crate::mirror::fetcher::{FailCause, Outcome};
use crate::mirror::testing::Rig;
use crate::replica::channel::{Outcome as ChannelOutcome, Purpose};
use crate::states::{MirrorState, StateRecord};
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{Body, BumpLeaderEpochsResponse};

const P: PartitionIx = PartitionIx(0);

/// A partition at work; then something that asks for a bump.
fn after(outcome: Outcome) -> Rig {
    let mut rig = Rig::new();
    rig.mirrored_topic(0, "orders");
    rig.opened(rig.connects[0].0);
    rig.answer(&[(0, "orders")]);
    rig.with(|manager, task, cx, now| {
        manager.apply_outcome(now, outcome, task, cx);
        manager.after(now, task, cx);
    });
    assert!(rig.manager.part(P).unwrap().bump_min.is_some());
    rig
}

fn told(rig: &mut Rig, result: Result<BumpLeaderEpochsResponse, Body>) {
    let outcome = ChannelOutcome { purpose: Purpose::Mirror(rig.manager.requests), result: result.map(Into::into) };
    rig.with(|manager, task, cx, now| manager.on_outcome(now, outcome, task, cx));
}

fn answer(error: ErrorCode, parts: &[(PartitionIx, ErrorCode)]) -> BumpLeaderEpochsResponse {
    BumpLeaderEpochsResponse { error, parts: parts.to_vec() }
}

/// Decision 32: an error, no word of the partition, or no word at all.
fn refusals() -> [BumpLeaderEpochsResponse; 3] {
    [
        answer(ErrorCode::None, &[(P, ErrorCode::UnknownTopicOrPartition)]),
        answer(ErrorCode::ClusterAuthorizationFailed, &[(P, ErrorCode::None)]),
        answer(ErrorCode::None, &[]),
    ]
}

#[test]
fn a_refused_bump_may_be_asked_for_again() {
    for refusal in refusals() {
        // The first bump of a young mirror was asked for with its metadata.
        let mut rig = after(Outcome::Bump(P, LeaderEpoch(7)));
        told(&mut rig, Ok(refusal));
        let part = rig.manager.part(P).unwrap();
        assert_eq!((part.bump_min, part.state), (None, MirrorState::Mirroring));
    }
}

#[test]
fn a_partition_that_waits_for_a_refused_bump_fails_at_once_and_is_retried() {
    for refusal in refusals() {
        let mut rig = after(Outcome::Fence(P, LeaderEpoch(7)));
        assert_eq!(rig.state(0), (MirrorState::EpochFencing, 0));
        told(&mut rig, Ok(refusal));
        let part = rig.manager.part(P).unwrap();
        assert_eq!((part.state, part.cause), (MirrorState::Failed, Some(FailCause::BumpRefused)));
        assert_eq!((part.bump_min, part.attempt), (None, 1));
    }
}

#[test]
fn a_granted_bump_is_waited_for_until_the_image_has_it() {
    for (ahead, min) in [(7, 17), (27, 37)] {
        let mut rig = after(Outcome::Fence(P, LeaderEpoch(ahead)));
        told(&mut rig, Ok(answer(ErrorCode::None, &[(P, ErrorCode::None)])));
        let part = rig.manager.part(P).unwrap();
        assert_eq!((part.state, part.bump_min), (MirrorState::EpochFencing, Some(LeaderEpoch(min))));
    }
}

/// LEAD-04: one bump of a partition is under way, however often the source is looked at; a wish for more is another one. It is over
/// when the image has the epoch, and not when the controller says so.
#[test]
fn lead_04_one_bump_is_under_way_per_partition() {
    let mut rig = after(Outcome::Bump(P, LeaderEpoch(0)));
    let asked = |rig: &Rig| rig.trace.iter().filter(|t| matches!(t, Trace::BumpRequested { .. })).count();
    let look = |rig: &mut Rig, times| {
        for _ in 0..times {
            rig.with(|manager, task, cx, now| {
                manager.periodic_bump(task.image, MirrorIx(0), cx);
                manager.after(now, task, cx);
            });
        }
    };
    assert_eq!(asked(&rig), 1, "0 is above 0 less three");
    look(&mut rig, 3);
    assert_eq!(asked(&rig), 1);
    told(&mut rig, Ok(answer(ErrorCode::None, &[(P, ErrorCode::None)])));
    look(&mut rig, 3);
    assert_eq!(asked(&rig), 1, "granted, and not in the image");
    rig.with(|manager, _, cx, _| manager.want_bump(P, LeaderEpoch(1), cx));
    assert_eq!(asked(&rig), 2, "a higher one is another one");
    rig.new_term(0, 12);
    assert_eq!(rig.manager.part(P).unwrap().bump_min, None);
    look(&mut rig, 3);
    assert_eq!(asked(&rig), 2, "0 is far below 12");
}

/// C11. Two partitions want a bump in one task: both are asked for. The mutant has room for one, and never asks again for the
/// other, for it believes that it did.
#[test]
fn c11_every_bump_is_asked_for() {
    for (every, asked) in [(true, 2), (false, 1)] {
        let mut rig = Rig::bare();
        rig.guards.set(guard::EveryBumpRemembered, every);
        rig.mirrored_topic(0, "orders");
        rig.mirrored_topic(1, "bills");
        rig.with(|manager, _, cx, _| {
            manager.bumps.clear();
            for n in [0, 1] {
                manager.want_bump(PartitionIx(n), LeaderEpoch(7), cx);
                manager.want_bump(PartitionIx(n), LeaderEpoch(7), cx);
            }
            assert_eq!(manager.bumps.len(), asked);
        });
    }
}

/// C05. A term that follows on one's own begins with what is known; one behind others' terms asks again.
#[test]
fn c05_after_terms_that_others_may_have_had_the_state_is_asked_for_again() {
    for (epoch, known) in [(1, true), (2, false), (11, true), (12, false)] {
        let mut rig = Rig::bare();
        rig.mirrored_topic(0, "orders");
        rig.with(|manager, task, cx, now| {
            let part = manager.part_mut(P).unwrap();
            part.take(StateRecord { state: MirrorState::Paused, state_epoch: 5, ..StateRecord::default() });
            part.bump_min = Some(LeaderEpoch(10));
            manager.on_new_term(now, P, LeaderEpoch(epoch), task, cx);
            assert_eq!(manager.part(P).unwrap().record.is_some(), known, "epoch {epoch}");
        });
    }
}
