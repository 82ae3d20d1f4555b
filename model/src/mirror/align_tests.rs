//! LOG_ALIGNMENT: what the source says of its mirrors, and what is cut.

use crate::ids::{BrokerId, ConnId, LeaderEpoch, MirrorIx, NodeId, Offset, PartitionIx, TopicId, TopicIx};
use crate::metadata::records::Record;
use crate::mirror::align::AlignStep;
use crate::mirror::fetcher::FailCause;
use crate::mirror::testing::{Rig, SOURCE};
use crate::replica::testing::batch_at;
use crate::states::{DesiredState, LastPosition, MirrorState};
use crate::trace::{CutCause, Trace};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    Body, EpochAnswer, EpochEnd, FetchResponse, FoundPosition, ListedMirror, OffsetForLeaderEpochResponse,
};

const P: PartitionIx = PartitionIx(0);

/// A topic that this cluster had alone, three records of epoch 0, and that is now mirrored from the cluster that mirrored it.
fn comes_back(prepare: impl FnOnce(&mut Rig)) -> Rig {
    let mut rig = Rig::new();
    rig.plain_topic(0, "orders");
    for _ in 0..3 {
        rig.produce(0, 1);
    }
    prepare(&mut rig);
    rig.start(0);
    rig.opened(rig.connects[0].0);
    rig.answer(&[(0, "orders")]);
    rig
}

/// The same when the leader epoch was raised above that of the local records, which is awaited before they are cut.
fn comes_back_anew(prepare: impl FnOnce(&mut Rig)) -> Rig {
    let mut rig = comes_back(prepare);
    let part = rig.manager.part(P).unwrap();
    assert_eq!(
        (part.state, part.align, part.bump_min),
        (MirrorState::LogAlignment, AlignStep::Term, Some(LeaderEpoch(0)))
    );
    assert_eq!(rig.end(), 3, "nothing is cut in the old epoch");
    rig.new_term(0, 1);
    rig
}

/// A mirror at the source that copies from here, and now copies these topics.
fn listed(topics: &[&str]) -> ListedMirror {
    ListedMirror {
        name: "theirs".into(),
        bootstrap: "1".into(),
        source: "destination".into(),
        mirroring: topics.len() as u32,
        topics: topics.iter().map(|t| (*t).into()).collect(),
    }
}

fn found(error: ErrorCode, state: MirrorState, position: Option<(i32, i64)>) -> FoundPosition {
    let position = position.map(|(epoch, offset)| LastPosition { epoch: LeaderEpoch(epoch), offset: Offset(offset) });
    FoundPosition { topic: TopicId(0), number: 0, error, state, position, state_epoch: 1 }
}

fn epochs_end(epoch: i32, end: i64) -> OffsetForLeaderEpochResponse {
    let end = EpochEnd { epoch: LeaderEpoch(epoch), end: Offset(end) };
    OffsetForLeaderEpochResponse { parts: vec![EpochAnswer { partition: P, error: ErrorCode::None, end }] }
}

fn is_epochs(body: &Body) -> bool {
    matches!(body, Body::OffsetForLeaderEpochRequest(_))
}

fn cuts(rig: &Rig) -> Vec<(Offset, CutCause)> {
    let cut = |t: &Trace| if let Trace::Truncated { to, cause, .. } = t { Some((*to, *cause)) } else { None };
    rig.trace.iter().filter_map(cut).collect()
}

/// Worked example C.1: the position's epoch goes on here after the position, so that only the offset cuts; then the source's
/// epochs are compared, then the replicas awaited, and what is left is common.
#[test]
fn c_1_what_was_written_after_the_cut_goes_before_mirroring_begins() {
    let mut rig = comes_back_anew(|rig| {
        rig.source.listed = vec![listed(&[])];
        rig.source.positions = vec![found(ErrorCode::None, MirrorState::Stopped, Some((0, 2)))];
    });
    assert_eq!((rig.state(0).0, rig.end(), cuts(&rig).len()), (MirrorState::LogAlignment, 2, 1));
    rig.opened(rig.connects.iter().rfind(|(_, to)| *to == SOURCE).unwrap().0);
    rig.answer_to(is_epochs, epochs_end(0, 2));
    assert_eq!((rig.state(0).0, rig.end()), (MirrorState::Mirroring, 2));
    assert_eq!(cuts(&rig), [(Offset(2), CutCause::Alignment)]);
}

/// Worked example C.3: below the position's offset the logs may differ, and only the source's epochs tell. It is asked again
/// until nothing more is to be cut, in LOG_ALIGNMENT.
#[test]
fn c_3_the_source_is_asked_until_nothing_more_is_to_be_cut() {
    let mut rig = comes_back(|rig| {
        rig.source.listed = vec![listed(&[])];
        rig.source.positions = vec![found(ErrorCode::None, MirrorState::Stopped, Some((0, 3)))];
    });
    assert_eq!((rig.state(0).0, rig.end()), (MirrorState::LogAlignment, 3));
    rig.opened(rig.connects[1].0);
    rig.answer_to(is_epochs, epochs_end(0, 1));
    assert_eq!((rig.state(0).0, rig.end()), (MirrorState::LogAlignment, 1));
    rig.answer_to(is_epochs, epochs_end(0, 1));
    assert_eq!((rig.state(0).0, rig.end()), (MirrorState::Mirroring, 1));
    assert_eq!(cuts(&rig), [(Offset(1), CutCause::Alignment)]);
}

/// Decision 6: a position that nobody tells is not *none*. Nothing is cut, and it is asked again until it is told.
#[test]
fn silence_cuts_nothing_and_is_asked_again() {
    for silence in [vec![], vec![found(ErrorCode::CoordinatorLoadInProgress, MirrorState::Unknown, None)]] {
        let mut rig = comes_back(|rig| {
            rig.source.listed = vec![listed(&[])];
            rig.source.positions = silence;
        });
        for _ in 0..3 {
            assert_eq!((rig.state(0), rig.end()), ((MirrorState::LogAlignment, 0), 3));
            rig.pass(1);
        }
        assert_eq!(rig.source.asked, 4, "once a second");
        rig.source.positions = vec![found(ErrorCode::None, MirrorState::Stopped, Some((0, 3)))];
        rig.pass(1);
        let source = |(_, to): &&(ConnId, NodeId)| *to == SOURCE;
        assert_eq!(rig.connects.iter().filter(source).count(), 2, "a fetcher asks for the epochs now");
        assert!(cuts(&rig).is_empty());
    }
}

/// A source whose brokers know of nobody yet leaves nobody to ask: that is no round of questions without an answer, and the
/// brokers that it lists later are asked.
#[test]
fn a_source_that_lists_no_brokers_is_asked_again() {
    let mut rig = comes_back(|rig| rig.source.listed = vec![listed(&[])]);
    let asked = rig.source.asked;
    let lists = |rig: &mut Rig, brokers| rig.manager.sources.get_mut(&MirrorIx(0)).unwrap().cluster.live = brokers;
    lists(&mut rig, vec![]);
    rig.pass(1);
    rig.pass(1);
    assert_eq!(rig.source.asked, asked);
    lists(&mut rig, vec![(BrokerId(9), SOURCE)]);
    rig.pass(1);
    rig.pass(1);
    assert!(rig.source.asked > asked, "nobody was asked");
}

/// Decision 12: the wait for a position has an end, FAILED with a retry.
#[test]
fn the_wait_for_a_position_ends_in_failed() {
    let mut rig = comes_back(|rig| rig.source.listed = vec![listed(&[])]);
    rig.pass(31);
    let part = rig.manager.part(P).unwrap();
    assert_eq!((part.state, part.attempt), (MirrorState::Failed, 1));
    assert_eq!((part.cause, rig.end()), (Some(FailCause::PositionUnavailable), 3));
}

/// Decision 34: the mirror in the other direction must have stopped, each partition of it.
#[test]
fn fbk_08_a_reverse_mirror_that_is_not_stopped_is_waited_for() {
    let rig = comes_back(|rig| {
        rig.source.listed = vec![listed(&[])];
        rig.source.positions = vec![found(ErrorCode::None, MirrorState::Stopping, Some((0, 2)))];
    });
    let part = rig.manager.part(P).unwrap();
    assert_eq!((part.state, part.attempt, part.cause), (MirrorState::Failed, 1, Some(FailCause::ReverseNotStopped)));
    assert_eq!(rig.end(), 3);
}

/// BAD-09, decision 26: the source mirrors the topic from here: for good, until an operator recovers it.
#[test]
fn bad_09_a_loop_is_refused_for_good() {
    let rig = comes_back(|rig| rig.source.listed = vec![listed(&["orders"])]);
    let part = rig.manager.part(P).unwrap();
    assert_eq!((part.state, part.attempt, part.cause), (MirrorState::Failed, -1, Some(FailCause::LoopFound)));
    assert_eq!((rig.end(), rig.source.asked), (3, 1));
    // A mirror of theirs from another cluster is none of ours.
    let other = ListedMirror { source: "elsewhere".into(), ..listed(&["orders"]) };
    let rig = comes_back_anew(|rig| rig.source.listed = vec![other]);
    assert_eq!((rig.state(0).0, rig.end(), rig.source.asked), (MirrorState::Mirroring, 0, 0));
}

/// CMP-06, FBK-11, decision 26: a source without these requests is refused with a reason, unless one-way mirroring is allowed.
#[test]
fn cmp_06_a_source_that_does_not_tell_is_refused_unless_one_way_is_allowed() {
    let rig = comes_back(|rig| rig.source.error = ErrorCode::UnsupportedVersion);
    let part = rig.manager.part(P).unwrap();
    assert_eq!((part.state, part.attempt, part.cause), (MirrorState::Failed, 1, Some(FailCause::SourceRefuses)));
    assert_eq!(rig.end(), 3);
    let rig = comes_back_anew(|rig| {
        rig.source.error = ErrorCode::UnsupportedVersion;
        rig.config("allow.one.way", "true");
    });
    assert_eq!((rig.state(0).0, rig.end()), (MirrorState::Mirroring, 0));
}

/// Two brokers claim to coordinate the partition: the later state counts, whoever answers first.
#[test]
fn of_two_words_on_a_partition_the_later_state_counts() {
    let at = |state_epoch, offset| FoundPosition {
        state_epoch,
        ..found(ErrorCode::None, MirrorState::Stopped, Some((0, offset)))
    };
    for positions in [vec![at(4, 1), at(7, 2)], vec![at(7, 2), at(4, 1)]] {
        let rig = comes_back_anew(|rig| {
            rig.source.listed = vec![listed(&[])];
            rig.source.positions = positions;
        });
        assert_eq!((rig.state(0).0, rig.end()), (MirrorState::LogAlignment, 2));
    }
}

/// FBK-10: of several former mirrors the one with the latest position counts.
#[test]
fn fbk_10_the_latest_of_several_positions_counts() {
    let rig = comes_back_anew(|rig| {
        rig.source.listed = ["first", "second"].map(|name| ListedMirror { name: name.into(), ..listed(&[]) }).to_vec();
        let at = |offset| found(ErrorCode::None, MirrorState::Stopped, Some((0, offset)));
        rig.source.positions_of = vec![("first".into(), vec![at(2)]), ("second".into(), vec![at(1)])];
    });
    assert_eq!((rig.state(0).0, rig.end(), rig.source.asked), (MirrorState::LogAlignment, 2, 4));
}

/// Decision 8: what was written here after the last session in this direction goes, and nothing else; the source must still
/// have the rest (decision 39).
#[test]
fn a_restart_in_the_same_direction_keeps_what_was_mirrored() {
    for (theirs, state, end) in [(2, MirrorState::Mirroring, 2), (1, MirrorState::Failed, 2)] {
        let mut rig = Rig::new();
        rig.fetching(0, "orders", 20);
        rig.fetched(2, &[batch_at(0, 1, 0, 1), batch_at(1, 1, 0, 2)]);
        let desired =
            |desired| Record::MirrorTopicStateChange { topic: TopicIx(0), mirror: Some(MirrorIx(0)), desired };
        rig.metadata(&[desired(DesiredState::Stopped)]);
        assert_eq!((rig.state(0).0, rig.end()), (MirrorState::Stopped, 3), "two records and the reset");
        rig.metadata(&[desired(DesiredState::Mirroring)]);
        assert_eq!((rig.state(0).0, rig.end()), (MirrorState::LogAlignment, 3));
        rig.new_term(0, 21);
        assert_eq!((rig.state(0).0, rig.end()), (MirrorState::LogAlignment, 2));
        // The fetch that was under way when the copying ended.
        rig.answer_to(|body| matches!(body, Body::FetchRequest(_)), FetchResponse::default());
        rig.answer_to(is_epochs, epochs_end(0, theirs));
        assert_eq!((rig.state(0).0, rig.end()), (state, end), "{theirs}");
    }
}

/// FBK-14. The position is epoch and offset: stopped at (0, 120), while epoch 0 ends here at 100, 120, 130. The log ends at the
/// smaller of the two; what it lacks is fetched again.
#[test]
fn fbk_14_the_smaller_of_epoch_end_and_offset_counts() {
    for (ends_here, cut) in [(100, 100), (120, 120), (130, 120)] {
        let mut rig = Rig::new();
        rig.plain_topic(0, "orders");
        rig.produce(0, 100);
        for _ in 100..ends_here {
            rig.produce(0, 1);
        }
        let change = Record::PartitionChange {
            partition: P,
            leader: None,
            leader_epoch: Some(LeaderEpoch(1)),
            isr: None,
            elr: None,
            last_known_elr: None,
            recovering: None,
            replicas: None,
        };
        rig.metadata(&[change]);
        rig.produce(0, 40);
        assert_eq!(rig.end(), ends_here + 40);
        rig.source.listed = vec![listed(&[])];
        rig.source.positions = vec![found(ErrorCode::None, MirrorState::Stopped, Some((0, 120)))];
        rig.start(0);
        rig.opened(rig.connects[0].0);
        rig.answer(&[(0, "orders")]);
        // The epoch is raised before local records of it go.
        let raised = Record::PartitionChange {
            partition: P,
            leader: None,
            leader_epoch: Some(LeaderEpoch(2)),
            isr: None,
            elr: None,
            last_known_elr: None,
            recovering: None,
            replicas: None,
        };
        assert_eq!((rig.end(), cuts(&rig).len()), (ends_here + 40, 0));
        rig.metadata(&[raised]);
        assert_eq!((rig.state(0).0, rig.end()), (MirrorState::LogAlignment, cut), "{ends_here}");
    }
}
