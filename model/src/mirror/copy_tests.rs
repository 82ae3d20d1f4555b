//! What a fetcher makes of answers of the source.

use crate::guards::mirror as guard;
use crate::ids::{LeaderEpoch, MirrorIx, Offset, PartitionIx, TopicIx};
use crate::metadata::records::Record;
use crate::mirror::fetcher::FailCause;
use crate::mirror::testing::{Rig, SOURCE};
use crate::ports::{CloseReason, DiskError, Input};
use crate::replica::testing::batch_at;
use crate::states::{DesiredState, MirrorState};
use crate::testing::DiskCall;
use crate::trace::Trace;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    Body, EpochAnswer, EpochEnd, FetchPartAnswer, FetchResponse, ListOffsetsResponse, OffsetAnswer,
    OffsetForLeaderEpochResponse,
};

const P: PartitionIx = PartitionIx(0);

/// LEAD-07. An old source raises the leader epoch when a follower dies, and goes on answering fetches in the old epoch with
/// batches of the new one. The batch is refused, the source is looked at again, and the next fetch names the new epoch.
#[test]
fn lead_07_a_batch_newer_than_the_source_metadata_is_refused_once() {
    let mut rig = Rig::new();
    rig.fetching(0, "t", 20);
    rig.fetched(1, &[batch_at(0, 1, 0, 1)]);
    assert_eq!((rig.state(0), rig.end()), ((MirrorState::Mirroring, 0), 1));
    rig.fetched(2, &[batch_at(1, 1, 1, 2)]);
    assert_eq!((rig.state(0), rig.end()), ((MirrorState::Failed, 1), 1));
    assert_eq!(rig.manager.part(P).unwrap().cause, Some(FailCause::SourceMetadataStale));
    // The refusal asked for a look at once; it tells the new epoch, and the retry fetches with it.
    rig.source_epoch = 1;
    assert_eq!(*rig.answer(&[(0, "t")]), ["t".into()]);
    rig.pass(3);
    assert_eq!(rig.state(0), (MirrorState::Mirroring, 1));
    let (conn, _) = *rig.connects.last().unwrap();
    rig.opened(conn);
    let Body::OffsetForLeaderEpochRequest(asked) = &rig.last().1.body else { panic!("{:?}", rig.last()) };
    assert_eq!(asked.parts[0].current_leader_epoch, LeaderEpoch(1));
    let (conn, message) = rig.sent.pop().unwrap();
    rig.reply(conn, message.correlation, epoch_ends(&[(P, 0, 1)]).into());
    rig.fetched(2, &[batch_at(1, 1, 1, 2)]);
    assert_eq!((rig.state(0), rig.end()), ((MirrorState::Mirroring, 0), 2));
    let failures = |t: &&Trace| matches!(t, Trace::MirrorStateChanged { to: MirrorState::Failed, .. });
    assert_eq!(rig.trace.iter().filter(failures).count(), 1, "refused once, not again and again");
}

fn epoch_ends(ends: &[(PartitionIx, i32, i64)]) -> OffsetForLeaderEpochResponse {
    let part = |&(partition, epoch, end): &(PartitionIx, i32, i64)| EpochAnswer {
        partition,
        error: ErrorCode::None,
        end: EpochEnd { epoch: LeaderEpoch(epoch), end: Offset(end) },
    };
    OffsetForLeaderEpochResponse { parts: ends.iter().map(part).collect() }
}

/// A partition that asks where its epochs end at the source: it copied one batch of epoch 0 and starts anew.
fn asking() -> Rig {
    let mut rig = Rig::new();
    rig.fetching(0, "t", 20);
    rig.fetched(2, &[batch_at(0, 1, 0, 1), batch_at(1, 1, 0, 2)]);
    let (conn, _) = *rig.connects.last().unwrap();
    let lost = Input::Closed { conn, why: CloseReason::Reset };
    rig.with(|manager, _, cx, now| manager.on_input(now, lost, cx));
    assert_eq!(rig.state(0), (MirrorState::Failed, 1));
    rig.pass(3);
    rig.opened(rig.connects.last().unwrap().0);
    assert!(matches!(rig.last().1.body, Body::OffsetForLeaderEpochRequest(_)), "{:?}", rig.last());
    rig
}

/// REP-22
#[test]
fn rep_22_an_answer_about_a_partition_that_was_not_asked_for_changes_nothing() {
    for ends in [&[(P, 0, 1), (PartitionIx(1), 0, 0)][..], &[(PartitionIx(1), 0, 1)][..], &[][..]] {
        let mut rig = asking();
        let (conn, message) = rig.sent.pop().unwrap();
        rig.reply(conn, message.correlation, epoch_ends(ends).into());
        assert_eq!((rig.state(0).0, rig.end()), (MirrorState::Failed, 2), "{ends:?}");
        assert_eq!(rig.manager.part(P).unwrap().cause, Some(FailCause::SourceMetadataStale));
        assert!(!rig.trace.iter().any(|t| matches!(t, Trace::Truncated { .. })), "{ends:?}");
    }
    // The answer to the question is taken: nothing to cut, so that the fetch follows.
    let mut rig = asking();
    let (conn, message) = rig.sent.pop().unwrap();
    rig.reply(conn, message.correlation, epoch_ends(&[(P, 0, 2)]).into());
    assert_eq!((rig.state(0).0, rig.end()), (MirrorState::Mirroring, 2));
    assert!(matches!(rig.last().1.body, Body::FetchRequest(_)));
}

/// REP-23: the lag is known from an answer without data, and gone with the partition.
#[test]
fn rep_23_lag_of_an_answer_without_records() {
    let mut rig = Rig::new();
    rig.fetching(0, "t", 20);
    let lag = |rig: &Rig| rig.manager.part(P).map(|part| rig.manager.lag(part, &rig.replicas));
    assert_eq!(lag(&rig), Some(None), "unknown before the first answer (decision 19)");
    rig.fetched(7, &[]);
    assert_eq!((lag(&rig), rig.end()), (Some(Some(7)), 0));
    rig.fetched(7, &[batch_at(0, 3, 0, 1)]);
    assert_eq!((lag(&rig), rig.manager.busy_fetchers()), (Some(Some(4)), 1));
    let (topic, mirror) = (TopicIx(0), Some(MirrorIx(0)));
    rig.metadata(&[Record::MirrorTopicStateChange { topic, mirror, desired: DesiredState::Stopped }]);
    assert_eq!((lag(&rig), rig.manager.source_high_watermark(P)), (Some(None), None));
    assert_eq!((rig.state(0).0, rig.manager.busy_fetchers()), (MirrorState::Stopped, 0));
}

fn is_fetch(body: &Body) -> bool {
    matches!(body, Body::FetchRequest(_))
}
fn is_epochs(body: &Body) -> bool {
    matches!(body, Body::OffsetForLeaderEpochRequest(_))
}
fn is_offsets(body: &Body) -> bool {
    matches!(body, Body::ListOffsetsRequest(_))
}

/// The source does not know our last epoch, nor anything above it.
fn undefined() -> OffsetForLeaderEpochResponse {
    epoch_ends(&[(P, -1, -1)])
}

/// A topic that this broker led, and wrote to or not, before it is mirrored, and of which the source knows of no mirror: the
/// two logs have nothing in common that is known. What is local goes, an epoch in which nothing was written too: a fetch that
/// names it would be refused as out of range, for ever.
#[test]
fn what_was_local_before_the_first_session_goes() {
    for records in [0, 3] {
        let mut rig = Rig::new();
        rig.plain_topic(0, "orders");
        if records > 0 {
            rig.produce(0, records);
        }
        assert_eq!(rig.replicas.log(P).unwrap().latest_epoch(), LeaderEpoch(0));
        rig.start(0);
        rig.opened(rig.connects[0].0);
        rig.answer(&[(0, "orders")]);
        if records > 0 {
            rig.new_term(0, 1);
        }
        rig.opened(rig.connects.iter().rfind(|(_, to)| *to == SOURCE).unwrap().0);
        assert_eq!((rig.replicas.log(P).unwrap().latest_epoch(), rig.end()), (LeaderEpoch::NONE, 0));
        let Some(Body::FetchRequest(fetch)) = rig.sent.last().map(|(_, m)| &m.body) else { panic!("{:?}", rig.sent) };
        let part = &fetch.parts[0];
        assert_eq!((part.fetch_offset, part.last_fetched_epoch), (Offset(0), LeaderEpoch::NONE));
    }
}

/// Records were copied in an epoch that the source does not know any more: its log is another one from the first of them on
/// (decision 39).
#[test]
fn records_in_an_epoch_that_the_source_never_had_contradict_it() {
    let mut rig = asking();
    rig.answer_to(is_epochs, undefined());
    let part = rig.manager.part(P).unwrap();
    assert_eq!((part.state, part.cause), (MirrorState::Failed, Some(FailCause::Diverged)));
    assert_eq!((part.attempt, part.diverged_at), (-1, Some(Offset(0))));
}

fn out_of_range() -> FetchPartAnswer {
    FetchPartAnswer {
        slot: 0,
        partition: P,
        error: ErrorCode::OffsetOutOfRange,
        high_watermark: Offset::UNKNOWN,
        last_stable: Offset::UNKNOWN,
        log_start: Offset::UNKNOWN,
        diverging: None,
        current_leader: None,
        mirror_leader_epoch: LeaderEpoch::NONE,
        misaligned: false,
        first_batch: 0,
        batch_count: 0,
        aborted: None,
    }
}

/// Out of range, but the offset is in range: it was refused for its epoch, so that is what is asked about.
#[test]
fn a_fetch_refused_for_its_epoch_asks_about_the_epoch() {
    let mut rig = asking();
    rig.answer_to(is_epochs, epoch_ends(&[(P, 0, 2)]));
    let Body::FetchRequest(fetch) = &rig.last().1.body else { panic!("{:?}", rig.last()) };
    let parts = vec![FetchPartAnswer { slot: fetch.parts[0].slot, ..out_of_range() }];
    rig.answer_to(is_fetch, FetchResponse { parts, ..Default::default() });
    let at = |offset| OffsetAnswer {
        partition: P,
        error: ErrorCode::None,
        timestamp: -1,
        offset: Offset(offset),
        leader_epoch: LeaderEpoch(0),
    };
    rig.answer_to(is_offsets, ListOffsetsResponse { parts: vec![at(0), at(2)] });
    assert!(rig.sent.last().is_some_and(|(_, m)| is_epochs(&m.body)), "{:?}", rig.sent);
}

/// The source may have no room for a session: then every request is a full one and names all partitions, not only those that
/// moved.
#[test]
fn without_a_session_every_request_names_all_partitions() {
    let mut rig = Rig::new();
    rig.mirrored_topic(0, "orders");
    rig.mirrored_topic(1, "bills");
    rig.opened(rig.connects[0].0);
    rig.answer(&[(0, "orders"), (1, "bills")]);
    for (conn, _) in rig.connects.clone().into_iter().skip(1) {
        rig.opened(conn);
    }
    for session_id in [0, 0, 7, 7] {
        let Body::FetchRequest(fetch) = rig.answer_to(is_fetch, FetchResponse { session_id, ..Default::default() })
        else {
            unreachable!("looked at")
        };
        assert_eq!((fetch.session_id, fetch.parts.len()), if fetch.session_epoch == 0 { (0, 2) } else { (7, 0) });
    }
}

/// BAD-17. An answer with offset 5 while the log ends at 7: that partition fails, the other one goes on, and the retry asks from
/// the log's end.
#[test]
fn bad_17_an_answer_that_does_not_continue_the_log_fails_its_partition_alone() {
    let mut rig = Rig::new();
    rig.fetching(0, "t", 20);
    rig.fetched(7, &[batch_at(0, 7, 0, 1)]);
    rig.mirrored_topic_in(1, "u", 20);
    if rig.sent.iter().any(|(_, m)| matches!(m.body, Body::MetadataRequest(_))) {
        rig.answer(&[(0, "t"), (1, "u")]);
    }
    assert_eq!((rig.state(0), rig.state(1).0, rig.end()), ((MirrorState::Mirroring, 0), MirrorState::Mirroring, 7));
    while !is_fetch(&rig.last().1.body) {
        rig.sent.pop();
    }
    rig.fetched(9, &[batch_at(5, 2, 0, 2)]);
    assert_eq!((rig.state(0), rig.state(1).0, rig.end()), ((MirrorState::Failed, 1), MirrorState::Mirroring, 7));
    rig.pass(3);
    assert_eq!(rig.state(0), (MirrorState::Mirroring, 1));
    // The other partition's fetch is under way: the fetcher asks one thing at a time.
    rig.answer_to(is_fetch, FetchResponse::default());
    rig.answer_to(is_epochs, epoch_ends(&[(P, 0, 7)]));
    let asked = rig.sent.iter().rev().find_map(|(_, m)| match &m.body {
        Body::FetchRequest(fetch) => fetch.parts.iter().find(|part| part.partition == P).map(|part| part.fetch_offset),
        _ => None,
    });
    assert_eq!(asked, Some(Offset(7)), "the log's end");
}

/// M08's mutant: what is newer than what is known of the source is appended under the epoch that the source had before.
#[test]
fn m08_without_its_guard_a_batch_newer_than_the_source_metadata_is_appended() {
    let mut rig = Rig::new();
    rig.guards.set(guard::BatchEpochWithinSourceEpoch, false);
    rig.fetching(0, "t", 20);
    rig.fetched(2, &[batch_at(0, 1, 0, 1), batch_at(1, 1, 1, 2)]);
    assert_eq!((rig.state(0), rig.end()), ((MirrorState::Mirroring, 0), 2));
}

/// M21. A batch that the disk refuses makes the partition FAILED; its mutant has it MIRRORING, and asks no more.
#[test]
fn m21_an_append_that_the_disk_refuses_is_told() {
    for (told, state) in [(true, MirrorState::Failed), (false, MirrorState::Mirroring)] {
        let mut rig = Rig::new();
        rig.guards.set(guard::StorageErrorsFail, told);
        rig.fetching(0, "t", 20);
        rig.disk.fail(DiskCall::Append, 1, DiskError::Io);
        rig.fetched(1, &[batch_at(0, 1, 0, 1)]);
        assert_eq!((rig.state(0).0, rig.end()), (state, 0));
        let asks = rig.sent.iter().filter(|(_, m)| is_fetch(&m.body)).count();
        assert_eq!(asks, 0, "nothing is fetched while it is so");
    }
}
