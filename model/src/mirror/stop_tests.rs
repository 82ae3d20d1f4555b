//! STOPPED under a new leader.

use crate::guards::mirror as guard;
use crate::ids::{LeaderEpoch, MirrorIx, Offset, PartitionIx, TopicIx};
use crate::metadata::records::Record;
use crate::mirror::fetcher::FailCause;
use crate::mirror::stop::StopStep;
use crate::mirror::testing::Rig;
use crate::record::{BatchView, ControlType};
use crate::replica::testing::batch_at;
use crate::states::{DesiredState, LastPosition, MirrorState};
use crate::trace::CutCause;

/// A partition that copied `0..1` in the source's epoch 0, and is STOPPED in its own epoch 1, with the reset at 1.
fn stopped() -> Rig {
    let mut rig = Rig::new();
    rig.fetching(0, "orders", 0);
    rig.fetched(1, &[batch_at(0, 1, 0, 1)]);
    let (topic, mirror) = (TopicIx(0), Some(MirrorIx(0)));
    rig.metadata(&[Record::MirrorTopicStateChange { topic, mirror, desired: DesiredState::Stopped }]);
    rig.new_term(0, 1);
    assert_eq!((rig.state(0).0, rig.end()), (MirrorState::Stopped, 2));
    rig
}

/// What the last batch of the log is: a control batch, and of which epoch.
fn last(rig: &Rig) -> (Option<ControlType>, LeaderEpoch) {
    let log = rig.replicas.log(PartitionIx(0)).expect("a log");
    let bytes = log.batch_at(&rig.disk, Offset(log.end().0 - 1)).expect("a log that can be read").expect("a batch");
    let batch = BatchView::parse(&bytes).expect("a batch");
    (batch.control_type(), batch.leader_epoch())
}

fn lose(rig: &mut Rig, to: i64) {
    rig.with(|_, task, cx, now| {
        let (partition, cause) = (PartitionIx(0), CutCause::Divergence);
        task.replicas.truncate_mirror_leader(now, partition, Offset(to), cause, cx).expect("a disk");
    });
}

/// The log of the next leader ends where mirroring ended, or even before: markers and reset are gone.
#[test]
fn a_reset_that_was_lost_is_repeated_by_the_next_leader() {
    for (to, on) in [(1, true), (0, true), (1, false)] {
        let mut rig = stopped();
        rig.guards.set(guard::LostResetIsRepeated, on);
        lose(&mut rig, to);
        rig.new_term(0, 3);
        assert_eq!(rig.state(0).0, MirrorState::Stopped);
        assert_eq!(rig.end(), to + i64::from(on), "guard {on}");
        if on {
            assert_eq!(last(&rig), (Some(ControlType::MirrorPidReset), LeaderEpoch(3)));
            // It lies below the position then: once more is not needed.
            rig.new_term(0, 5);
            assert_eq!(rig.end(), to + 1);
        }
    }
}

/// What is there is not repeated, whatever clients wrote behind it.
#[test]
fn a_reset_that_is_there_is_not_repeated() {
    let mut rig = stopped();
    rig.new_term(0, 3);
    assert_eq!(rig.end(), 2);
    rig.produce(0, 3);
    rig.new_term(0, 5);
    assert_eq!(rig.end(), 5);
}

/// The position is committed, its answer was overtaken by that of FAILED: the retry notes it again, which changes nothing.
#[test]
fn a_stop_that_failed_begins_with_its_position_again() {
    for on in [true, false] {
        let mut rig = Rig::new();
        rig.guards.set(guard::FailedStopBeginsAnew, on);
        rig.fetching(0, "orders", 0);
        rig.fetched(1, &[batch_at(0, 1, 0, 1)]);
        let (topic, mirror) = (TopicIx(0), Some(MirrorIx(0)));
        rig.metadata(&[Record::MirrorTopicStateChange { topic, mirror, desired: DesiredState::Stopped }]);
        assert_eq!(rig.state(0).0, MirrorState::Stopping, "its bump is awaited");
        rig.with(|manager, task, cx, now| {
            let part = manager.part_mut(PartitionIx(0)).expect("a mirrored partition");
            part.stop = StopStep::Position;
            part.record.as_mut().expect("a record").position = None;
            manager.fail(now, PartitionIx(0), FailCause::StopTimedOut, task, cx);
        });
        assert_eq!(rig.state(0).0, MirrorState::Failed);
        rig.pass(60);
        assert_eq!(rig.state(0).0, MirrorState::Stopping);
        let known = rig.manager.part(PartitionIx(0)).and_then(|part| part.record.as_ref()?.position);
        assert_eq!(known, on.then_some(LastPosition { epoch: LeaderEpoch(0), offset: Offset(1) }));
    }
}

/// Its time is over while STOPPED is being written: the write is committed, and nothing has failed.
#[test]
fn a_stop_that_came_about_late_has_not_failed() {
    for on in [true, false] {
        let mut rig = Rig::new();
        rig.guards.set(guard::StopOutlivesItsTimer, on);
        rig.fetching(0, "orders", 0);
        rig.fetched(1, &[batch_at(0, 1, 0, 1)]);
        let (topic, mirror) = (TopicIx(0), Some(MirrorIx(0)));
        rig.metadata(&[Record::MirrorTopicStateChange { topic, mirror, desired: DesiredState::Stopped }]);
        assert_eq!(rig.state(0).0, MirrorState::Stopping);
        rig.with(|manager, task, cx, now| {
            manager.enter(now, PartitionIx(0), MirrorState::Stopped, task, cx);
            manager.fail(now, PartitionIx(0), FailCause::StopTimedOut, task, cx);
        });
        assert_eq!(rig.state(0).0, if on { MirrorState::Stopped } else { MirrorState::Failed });
    }
}
