//! Logs that compaction made lack something: what checks may not hold against them, and what they still do.

use super::compaction::{compacted, keyed as plain, without};
use super::fake::{node, Play, P};
use super::lived::Lived;
use super::mirrors::{copied, mirroring};
use super::transactions::{begin, data, decide, history, marker, read, told, PRODUCER};
use super::NOTHING;
use crate::checks::excuses::Excuse;
use bytes::Bytes;
use mirrorlab_model::ids::*;
use mirrorlab_model::record::{BatchView, Identity};
use mirrorlab_model::states::{DesiredState, MirrorState as M};
use mirrorlab_model::trace::{CutCause, Origin, Trace, TxnOutcome};

fn excused(play: &Play, id: &str) -> bool {
    let start = format!("{id}: {}", Excuse::AwayTooLong.name());
    play.core.excuses().iter().any(|line| line.starts_with(&start))
}

fn cleaned(play: &mut Play, broker: i32, to: i64, at_ms: i64) {
    let begun = Trace::CleaningBegun { partition: P, to: Offset(to), at_ms };
    assert_eq!(play.at(node(0, broker), begun), NOTHING);
    let done = Trace::Cleaned { partition: P, from: Offset(0), to: Offset(to), at_ms };
    assert_eq!(play.at(node(0, broker), done), NOTHING);
}

/// Records 0 to 2 committed at 0..3 with their marker at 3, records 3 to 4 aborted at 4..6 with theirs at 6, record 5 committed at 7
/// with its marker at 8. A quiet point lies before the marker at 6; then compaction takes the aborted records and that marker.
fn compacted_history() -> Play {
    let mut play = Play::new(2);
    compacted(&mut play, 0);
    play.core.roster.read_committed.insert(1);
    for (base, first, count, commit) in [(0, 0, 3, true), (4, 3, 2, false), (7, 5, 1, true)] {
        begin(&mut play, first);
        play.commit(0, 1, &data(base, first, count as u64));
        for quiet in [Some(Offset(base)), None] {
            (1..=3).for_each(|broker| play.replica(0, broker).stable = quiet);
            assert!(quiet.is_none() || play.quiet().is_empty());
        }
        decide(&mut play, commit);
        play.commit(0, 1, &marker(base + count, commit));
    }
    for broker in 1..=3 {
        cleaned(&mut play, broker, 7, 500);
        play.replica(0, broker).batches = vec![data(0, 0, 3), marker(3, true), data(7, 5, 1), marker(8, true)];
        cleaned(&mut play, broker, 7, 2_000);
    }
    play
}

#[test]
fn transactions_are_followed_before_their_ends_are_compacted_away() {
    let mut play = compacted_history();
    assert_eq!(play.quiet(), NOTHING);
    for (first, next, outcome) in [(0, 3, TxnOutcome::Committed), (3, 5, TxnOutcome::Aborted)] {
        assert_eq!(told(&mut play, first, next, outcome), NOTHING);
    }
    assert_eq!(told(&mut play, 3, 5, TxnOutcome::Committed), ["S18"]);
    // What is gone from the logs is known all the same: here the marker went, and its records did not.
    for broker in 1..=3 {
        play.replica(0, broker).batches.insert(2, data(4, 3, 2));
    }
    assert_eq!(read(&mut play, &[data(4, 3, 2)], 4, 6), ["S19"]);
}

#[test]
fn a_replica_that_was_away_for_too_long_ends_a_transaction_with_the_next_one() {
    let away = |at_ms| {
        let mut play = history();
        compacted(&mut play, 0);
        play.shorten(0, 3, 6);
        let g = play.core.ghost.clusters[0].partition(P);
        g.members[2].set_end(Offset(6));
        g.isr = 0b011;
        for broker in 1..=2 {
            cleaned(&mut play, broker, 7, 500);
            play.replica(0, broker).batches = vec![data(0, 0, 3), marker(3, true)];
            cleaned(&mut play, broker, 7, at_ms);
        }
        begin(&mut play, 5);
        play.append(0, 1, Origin::Client, &data(7, 5, 1));
        play.append(0, 2, Origin::Replication, &data(7, 5, 1));
        assert_eq!(play.append(0, 3, Origin::Replication, &data(7, 5, 1)), NOTHING);
        play.core.ghost.clusters[0].partition(P).isr = 0b111;
        play.change(0, 3, 2, 0b111, 0);
        play.lead(0, 3, 2);
        let broken = read(&mut play, &[data(4, 3, 2)], 4, 6);
        (broken, excused(&play, "S19"))
    };
    assert_eq!(away(2_000), (vec![], true));
    assert_eq!(away(1_000), (vec!["S19".to_owned()], false), "the marker went before its time");
}

#[test]
fn s20_excuses_a_mirror_that_was_away_while_its_source_compacted_a_marker_away() {
    let away = |at_ms| {
        let (broken, play) = a_mirror_was_away(at_ms);
        (broken, excused(&play, "S20"))
    };
    assert_eq!(away(2_000), (vec![], true));
    assert_eq!(away(1_000), (vec!["S20".to_owned()], false), "the marker went before its time");
}

/// A mirror has the beginning of a transaction, is away while its source compacts the rest away, the marker at this time, and comes
/// back: what that breaks.
pub(super) fn a_mirror_was_away(at_ms: i64) -> (Vec<String>, Play) {
    let mut play = mirroring();
    compacted(&mut play, 0);
    (1..=3).for_each(|broker| play.replica(0, broker).start = Offset(8));
    begin(&mut play, 3);
    play.commit(0, 1, &data(8, 3, 2));
    decide(&mut play, false);
    play.commit(0, 1, &marker(10, false));
    begin(&mut play, 5);
    play.commit(0, 1, &data(11, 5, 1));
    cleaned(&mut play, 1, 11, 500);
    play.replica(0, 1).batches.retain(|b| !(8..=10).contains(&BatchView::parse(b).unwrap().base_offset().0));
    cleaned(&mut play, 1, 11, at_ms);
    // West had the beginning, and gets what the source has now.
    let g = play.core.ghost.clusters[1].partition(P);
    g.members.iter_mut().for_each(|m| m.set_end(Offset(8)));
    let mut broken = Vec::new();
    for bytes in [data(8, 3, 2), data(11, 5, 1)] {
        let view = BatchView::parse(&bytes).unwrap();
        let (base, next) = (view.base_offset().0, view.next_offset().0);
        assert_eq!(play.append(1, 1, Origin::Mirror, &bytes), NOTHING);
        play.core.ghost.clusters[1].partition(P).compacts = true;
        let from = copied(node(0, 1), base, next, 12);
        play.core.ghost.clusters[1].partition(P).more().source = Some((0, P));
        if base == 11 {
            broken.extend(play.at(node(1, 1), from));
        }
        for broker in 2..=3 {
            play.append(1, broker, Origin::Replication, &bytes);
        }
        broken.extend(play.watermark(1, 1, next));
    }
    (broken, play)
}

#[test]
fn s17_knows_that_a_cut_may_uncover_a_producer_whose_batch_was_compacted_away() {
    // The table knows a batch at 5 from a snapshot that the log does not have.
    let uncovered = |cleans: bool, cut: i64| {
        let mut play = super::committed(2);
        compacted(&mut play, 0);
        let table = play.replica(0, 3).producers.clone();
        play.append(0, 3, Origin::Client, &super::fake::batch(8, 1, 2));
        if cleans {
            let begun = Trace::CleaningBegun { partition: P, to: Offset(8), at_ms: 500 };
            play.at(node(0, 3), begun);
        }
        play.cut(0, 3, cut, CutCause::Divergence);
        play.replica(0, 3).batches.truncate(1);
        play.replica(0, 3).producers = table;
        play.core.ghost.clusters[0].partition(P).isr = 0b011;
        play.quiet().contains(&"S17".to_owned())
    };
    assert!(!uncovered(true, 8));
    assert!(uncovered(false, 8), "nothing of it was compacted");
    assert!(uncovered(true, 7), "the table knows what was cut");
}

#[test]
fn what_a_lost_marker_had_ended_is_open_again() {
    assert_eq!(ended_again(true), 1, "committed");
    assert_eq!(ended_again(false), 0, "compaction may have taken it when it was aborted");
}

/// Keys that have to have a value when the marker that aborted the records of a key is cut, by order or not, and the transaction
/// committed after all.
fn ended_again(ordered: bool) -> usize {
    let mut play = Play::new(2);
    compacted(&mut play, 0);
    begin(&mut play, 0);
    for n in 0..2 {
        play.commit(0, 1, &keyed(n));
    }
    decide(&mut play, false);
    play.commit(0, 1, &marker(2, false));
    assert_eq!(known(&mut play), 0, "aborted");
    passed(&mut play, 2);
    lose(&mut play, 2, ordered, &marker(2, true));
    known(&mut play)
}

#[test]
fn what_a_lost_marker_had_committed_may_have_taken_older_records_away() {
    // A record of a key at 0, committed, and one at 2, whose marker at 3 is lost: its transaction is aborted after all.
    let left = |cleaned: i64, ordered: bool| {
        let mut play = Play::new(2);
        compacted(&mut play, 0);
        for (first, at) in [(0, 0), (1, 2)] {
            begin(&mut play, first);
            play.commit(0, 1, &keyed(at));
            decide(&mut play, true);
            play.commit(0, 1, &marker(at as i64 + 1, true));
        }
        passed(&mut play, cleaned);
        assert_eq!(known(&mut play), 1);
        lose(&mut play, 3, ordered, &marker(3, false));
        known(&mut play)
    };
    assert_eq!(left(3, false), 0, "compaction may have taken the one at 0 for the one at 2");
    assert_eq!(left(2, false), 1, "it had not come so far");
    assert_eq!(left(3, true), 1, "an order cuts no marker of what stays");
}

/// A transaction's record of the one key.
fn keyed(at: u64) -> Bytes {
    let mut bytes = mirrorlab_model::record::BatchBuilder::new(mirrorlab_model::record::BatchMeta {
        base_offset: Offset(at as i64),
        leader_epoch: LeaderEpoch(1),
        producer: PRODUCER,
        producer_epoch: ProducerEpoch(0),
        base_sequence: at as i32,
        transactional: true,
        ..Default::default()
    });
    bytes.push_identity(0, Some(b"k"), Identity { producer: 1, sequence: at }, 32);
    bytes.finish()
}

fn compaction(play: &mut Play) -> &mut crate::checks::compaction::Compaction {
    play.core.ghost.clusters[0].partition(P).more().compaction.as_mut().expect("it is compacted")
}

/// Keys that have to have a record.
fn known(play: &mut Play) -> usize {
    compaction(play).last_below(Offset(9)).len()
}

/// Compaction came so far, somewhere.
fn passed(play: &mut Play, to: i64) {
    compaction(play).cleaned(1, Offset(to), 500);
}

/// The log is cut, and goes on with another marker.
fn lose(play: &mut Play, to: i64, ordered: bool, marker: &Bytes) {
    compaction(play).cut((Offset(9), Offset(to)), ordered, []);
    play.core.ghost.clusters[0].partition(P).true_hw = Offset(to);
    for broker in 1..=3 {
        play.shorten(0, broker, to);
        play.store(0, broker, marker);
        play.core.ghost.clusters[0].partition(P).members[broker as usize - 1].set_end(Offset(to + 1));
        play.watermark(0, broker, to + 1);
    }
}

/// West copied a batch, lost it, and copied what its source had left of it then; broker 3 kept what it had.
#[test]
fn s51_knows_what_a_follower_kept_that_its_source_compacted_away() {
    let kept = |bytes: &[(&str, Option<&str>)], ordered: bool| {
        let mut play = mirroring();
        (0..2).for_each(|cluster| compacted(&mut play, cluster));
        let whole = plain(0, &[("a", Some("1")), ("b", Some("1"))]);
        let (rest, newer) = (without(&whole, &[0]), plain(2, &[("a", Some("2"))]));
        play.replica(0, 1).batches = vec![whole.clone(), newer.clone()];
        (1..=3).for_each(|broker| {
            assert_eq!(
                play.append(1, broker, if broker == 1 { Origin::Mirror } else { Origin::Replication }, &whole),
                NOTHING
            );
        });
        assert_eq!(play.at(node(1, 1), copied(node(0, 1), 0, 2, 8)), NOTHING);
        let g = play.core.ghost.clusters[1].partition(P);
        g.more().compaction.get_or_insert_default().cut((Offset(9), Offset(0)), ordered, []);
        for broker in [1, 2] {
            play.replica(1, broker).batches = vec![rest.clone(), newer.clone()];
            play.replica(1, broker).end = Offset(3);
        }
        play.replica(1, 3).batches = vec![plain(0, bytes), newer.clone()];
        play.replica(1, 3).end = Offset(3);
        let g = play.core.ghost.clusters[1].partition(P);
        g.members.iter_mut().for_each(|m| m.set_end(Offset(3)));
        (1..=3).for_each(|broker| {
            play.watermark(1, broker, 3);
        });
        let known = play.core.ghost.clusters[1].partition(P).more().compaction.get_or_insert_default();
        known.upto = Offset(2);
        play.quiet().contains(&"S51".to_owned())
    };
    let whole = [("a", Some("1")), ("b", Some("1"))];
    assert!(!kept(&whole, false));
    assert!(kept(&[("a", Some("another")), ("b", Some("1"))], false), "its source never had that");
    assert!(kept(&whole, true), "an order cut it, and whoever kept it kept too much");
}

#[test]
fn s35_lets_a_compacted_log_be_copied_anew_when_it_has_records_of_its_own() {
    let anew = |compacts: bool, records: bool| {
        let mut lived = Lived::stopped();
        if compacts {
            compacted(&mut lived.play, 1);
        }
        if !records {
            (1..=3).for_each(|broker| lived.play.shorten(1, broker, 6)); // the reset is left
        }
        lived.order(DesiredState::Mirroring);
        assert_eq!(lived.enter(M::LogAlignment), NOTHING);
        lived.cut(0, CutCause::Alignment);
        lived.enter(M::Mirroring)
    };
    assert_eq!(anew(true, true), NOTHING);
    assert_eq!(anew(false, true), ["S35"]);
    assert_eq!(anew(true, false), ["S35"], "a reset takes nothing away");
}
