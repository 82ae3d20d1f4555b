//! Who does not know yet what has become of it: deposed leaders, terms heard late, lives that are over. Each world beside one that is
//! like it but for what is really wrong.

use super::fake::{batch, node, CLIENT, P};
use super::lived::{key, names, placed, position, record, reset, Lived, OURS, THEIRS};
use super::mirrors::sight;
use super::{committed, NOTHING};
use crate::checks::sight::MirrorSight;
use bytes::Bytes;
use mirrorlab_model::ids::*;
use mirrorlab_model::metadata::records::Record;
use mirrorlab_model::mirror::records::MirrorRecord;
use mirrorlab_model::record::control::end_txn_marker;
use mirrorlab_model::states::{DesiredState, MirrorState as M, Session};
use mirrorlab_model::trace::{Origin, Trace};
use mirrorlab_model::wire::messages::ConfigResource;

/// A broker of west goes by a state of that number.
fn goes_by(lived: &mut Lived, broker: i32, state: M, number: i32) {
    lived.play.world.mirrors.insert((node(1, broker), P), MirrorSight { state_epoch: number, ..sight(state) });
}

fn fetches(lived: &mut Lived, broker: i32) -> Vec<String> {
    let (source, offset, epoch) = (node(0, 1), Offset(5), LeaderEpoch(THEIRS));
    lived.play.at(node(1, broker), Trace::MirrorFetcherAdded { partition: P, source, offset, epoch })
}

/// A leader that was deposed asked for its state, and was told what its successor wrote: it goes by that.
#[test]
fn s32_takes_what_a_deposed_leader_was_told() {
    let appends = |origin, bytes: &Bytes, (state, number)| {
        let mut lived = Lived::copying();
        lived.depose(&[]);
        lived.order(DesiredState::Stopped);
        for (number, state) in [(3, M::Stopping), (4, M::Stopped)] {
            assert!(!names(&lived.commit(1, &[record(1, state, OURS + 1, number)]), "S32"));
        }
        goes_by(&mut lived, 1, state, number);
        names(&lived.play.append(1, 1, origin, bytes), "S32")
    };
    let marker = placed(&end_txn_marker(false, ProducerId(7), ProducerEpoch(0), 0, 0), 5, OURS);
    assert!(!appends(Origin::Coordinator, &marker, (M::Stopping, 3)));
    assert!(appends(Origin::Coordinator, &marker, (M::Mirroring, 2)), "that is what it knows");
    let local = batch(5, OURS, 1);
    assert!(!appends(Origin::Client, &local, (M::Stopped, 4)));
    assert!(appends(Origin::Client, &local, (M::Stopping, 3)), "it was not told that it is over");
}

/// Its successor goes on with the stop, and notes where mirroring ended: a leader that does not know of its end copies on.
#[test]
fn s33_takes_copies_of_a_leader_that_was_deposed_before_the_end_was_noted() {
    let copies = |deposed: bool, broker: i32| {
        let mut lived = Lived::copying();
        lived.order(DesiredState::Stopped);
        assert_eq!(lived.enter(M::Stopping), NOTHING);
        if deposed {
            lived.depose(&[]);
        }
        assert_eq!(lived.commit(1, &[position(1, Some((THEIRS, 5)))]), NOTHING);
        names(&lived.play.append(1, broker, Origin::Mirror, &batch(5, THEIRS, 3)), "S33")
    };
    assert!(!copies(true, 1));
    assert!(copies(true, 2), "it noted the end");
    assert!(copies(false, 1));
}

/// The mirror left the topic, and its coordinator took the states away; the leader has not heard of that.
#[test]
fn s38_takes_a_state_of_a_life_that_is_over_from_who_has_not_heard_of_its_end() {
    let acts = |has_heard: bool, number: i32, session: Option<Session>| {
        let mut lived = Lived::copying();
        lived.ghost().more().life.as_mut().expect("a life").session = session;
        let before = lived.play.world.images[1].clone();
        let (topic, mirror, desired) = (TopicIx(0), None, DesiredState::Unknown);
        lived.play.record(1, &Record::MirrorTopicStateChange { topic, mirror, desired });
        let (resource, key_of_all) = (ConfigResource::ClusterMirror("m".into()), "source.cluster.id".into());
        lived.play.record(1, &Record::Config { resource, key: key_of_all, value: None }); // the last of its entries
        if !has_heard {
            lived.play.world.applied.insert(node(1, 1), before);
        }
        lived.commit(1, &[MirrorRecord::State(key(1), None)]);
        goes_by(&mut lived, 1, M::Mirroring, number);
        names(&fetches(&mut lived, 1), "S38")
    };
    let session = Some(Session::of(MirrorIx(0), TopicIx(0)));
    assert!(!acts(false, 2, session));
    assert!(acts(false, 1, session), "number 1 was another state");
    assert!(acts(false, 3, session), "there was none of that number");
    assert!(acts(false, 2, Some(Session::of(MirrorIx(3), TopicIx(0)))), "its mirror is another one");
    assert!(acts(true, 2, session));
    assert!(acts(true, 2, None), "a life of no session has an end as well");
}

/// A broker hears of its term when the next one has begun, and goes by what it knew.
#[test]
fn s38_takes_a_term_that_is_heard_of_late_for_what_it_is() {
    let late = |lived: &mut Lived| {
        let (epoch, partition_epoch, epoch_start) = (LeaderEpoch(OURS + 1), PartitionEpoch(0), Offset(5));
        let replica = lived.play.replica(1, 3);
        (replica.leads, replica.epoch) = (true, epoch);
        lived.play.at(node(1, 3), Trace::BecameLeader { partition: P, epoch, partition_epoch, epoch_start });
    };
    let acts = |lived: &mut Lived, broker| {
        goes_by(lived, broker, M::Mirroring, 2);
        names(&fetches(lived, broker), "S38")
    };
    let next = |failed_in: i32| {
        let mut lived = Lived::copying();
        let failed = record(1, M::Failed, failed_in, 3);
        if failed_in == OURS {
            assert_eq!(lived.commit(1, std::slice::from_ref(&failed)), NOTHING);
        }
        lived.play.change(1, 2, OURS + 2, 0b111, 0);
        assert_eq!(lived.play.lead(1, 2, OURS + 2), NOTHING);
        if failed_in != OURS {
            assert_eq!(lived.commit(1, &[failed]), NOTHING);
        }
        late(&mut lived);
        lived
    };
    assert!(!acts(&mut next(OURS + 2), 3), "what the next leader wrote");
    assert!(
        acts(&mut next(OURS), 2),
        "the next leader knows what was committed before its term, whoever hears of what"
    );
}

/// Asked for no more than its own word (acks=1), a leader that was deposed and does not know it gives that, though the next one has
/// something else committed there.
#[test]
fn s16_takes_the_word_of_a_deposed_leader_for_itself() {
    let acked = |acks, holder: Option<(i32, i32)>| {
        let mut play = committed(2);
        play.change(0, 2, 2, 0b110, 0);
        assert_eq!(play.lead(0, 2, 2), NOTHING);
        let other = placed(&batch(20, 2, 2), 8, 2);
        play.append(0, 2, Origin::Client, &other);
        if let Some((broker, epoch)) = holder {
            play.store(0, broker, &batch(8, epoch, 2));
        }
        if play.replica(0, 3).end == Offset(8) {
            play.append(0, 3, Origin::Replication, &other);
            assert_eq!(play.watermark(0, 2, 10), NOTHING);
        }
        let acked = Trace::Acked { partition: P, producer: 1, first: 8, count: 2, base: Offset(8), acks };
        names(&play.at(CLIENT, acked), "S16")
    };
    assert!(!acked(1, Some((1, 1))));
    assert!(acked(-1, Some((1, 1))), "it was asked for all");
    assert!(acked(1, None), "nobody has it");
    assert!(acked(1, Some((3, 2))), "it was written in the present term, whose leader has something else");
}

/// A leader that does not know of its end copies on, and leads again: what it copied lies behind the position that another one
/// noted. Found by seed 2029 of swarm/lifecycle.
#[test]
fn s39_takes_a_position_before_what_a_deposed_leader_copied_and_no_other() {
    let comes_back = |copied: bool| {
        let mut lived = Lived::copying();
        lived.play.change(1, 2, OURS + 1, 0b111, 0);
        lived.play.lead(1, 2, OURS + 1);
        lived.order(DesiredState::Stopped);
        assert_eq!(lived.commit(1, &[record(1, M::Stopping, OURS + 1, 3)]), NOTHING);
        assert_eq!(lived.commit(1, &[position(1, Some((THEIRS, 5)))]), NOTHING);
        if copied {
            let own = lived.play.replica(1, 1);
            (own.leads, own.epoch) = (true, LeaderEpoch(OURS));
            assert_eq!(lived.play.append(1, 1, Origin::Mirror, &batch(5, THEIRS, 3)), NOTHING);
        } else {
            lived.play.store(1, 1, &batch(5, THEIRS, 3));
        }
        lived.play.change(1, 1, OURS + 2, 0b111, 0);
        lived.play.lead(1, 1, OURS + 2);
        lived.play.append(1, 1, Origin::Coordinator, &placed(&reset(8), 8, OURS + 2))
    };
    assert_eq!(comes_back(true), NOTHING);
    assert!(comes_back(false).contains(&"S39".to_owned()));
}

/// A leader that was deposed while it slept appends what had come in before: nobody takes that from it.
#[test]
fn s32_leaves_a_deposed_leader_to_its_own_term() {
    let sleeper = |own_epoch| {
        let mut lived = Lived::copying();
        lived.play.change(1, 2, OURS + 1, 0b110, 0);
        lived.play.lead(1, 2, OURS + 1);
        lived.order(DesiredState::Stopped);
        let end = position(1, Some((THEIRS, 5)));
        lived.play.store(1, 2, &placed(&reset(5), 5, OURS + 1));
        for (number, state) in [(3, M::Stopping), (4, M::Stopped)] {
            assert_eq!(lived.commit(1, std::slice::from_ref(&end)), NOTHING);
            let from = std::mem::replace(&mut lived.state, state);
            assert_eq!(lived.commit(1, &[record(1, state, OURS + 1, number)]), NOTHING);
            lived.play.world.mirrors.insert((node(1, 2), P), MirrorSight { state_epoch: number, ..sight(state) });
            let (mirror, to) = (MirrorIx(0), state);
            lived.play.at(node(1, 2), Trace::MirrorStateChanged { partition: P, mirror, from, to, attempt: 0 });
        }
        let own = lived.play.replica(1, 1);
        (own.leads, own.epoch) = (true, LeaderEpoch(own_epoch));
        lived.play.append(1, 1, Origin::Mirror, &batch(5, THEIRS, 3))
    };
    assert_eq!(sleeper(OURS), NOTHING);
    assert!(sleeper(OURS + 1).contains(&"S32".to_owned()));
}
