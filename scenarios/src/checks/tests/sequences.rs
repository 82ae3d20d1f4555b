//! Producers: what stands where they were told that it does, each record once, and what is known of them.

use super::fake::{batch, CLIENT, P};
use super::{committed, NOTHING};
use mirrorlab_model::ids::*;
use mirrorlab_model::record::{BatchBuilder, BatchMeta, Identity};
use mirrorlab_model::trace::{CutCause, Trace};

/// A sequence below zero makes a batch that no broker takes.
#[test]
fn s16_sees_a_batch_that_is_refused_as_malformed() {
    let nacked = |error| Trace::Nacked { partition: P, producer: 1, first: 0, count: 3, error };
    assert_eq!(committed(2).at(CLIENT, nacked(87)), ["S16"]);
    assert_eq!(committed(2).at(CLIENT, nacked(6)), NOTHING); // it asked who does not lead
    let mut play = committed(2);
    play.core.ghost.clusters[0].partition(P).compacts = true;
    assert_eq!(play.at(CLIENT, nacked(87)), NOTHING);
}

#[test]
fn s16_sees_swallowed_writes_and_repeated_sequences() {
    let mut play = committed(2);
    let ack = |first, base| Trace::Acked { partition: P, producer: 1, first, count: 3, base: Offset(base), acks: 1 };
    assert_eq!(play.at(CLIENT, ack(5, 5)), NOTHING);
    assert_eq!(play.at(CLIENT, ack(0, 5)), ["S16"]);
    // The same sequences once more, at later offsets.
    let mut play = committed(2);
    let mut again = batch(5, 1, 3).to_vec();
    mirrorlab_model::record::stamp(&mut again, Offset(8), LeaderEpoch(1));
    play.commit(0, 1, &again.into());
    assert_eq!(play.quiet(), ["S16"]);
}

/// A batch that is there already gets the sequences that come next: they are consecutive, and its records twice in the log.
#[test]
fn s16_sees_a_record_that_is_there_already_under_other_sequences() {
    let sent = |first: u64, sequence: i32, base: i64, epoch: i16| {
        let meta = BatchMeta {
            base_offset: Offset(base),
            leader_epoch: LeaderEpoch(1),
            producer: ProducerId(7),
            producer_epoch: ProducerEpoch(epoch),
            base_sequence: sequence,
            ..BatchMeta::default()
        };
        let mut builder = BatchBuilder::new(meta);
        for sequence in first..first + 3 {
            builder.push_identity(0, None, Identity { producer: 1, sequence }, 32);
        }
        builder.finish()
    };
    let then = |first: u64, sequence: i32, epoch: i16| {
        let mut play = committed(2);
        play.commit(0, 1, &sent(first, sequence, 8, epoch));
        play.quiet()
    };
    // It has 0 to 7 in two batches; the numbers between may be another partition's.
    assert_eq!(then(8, 8, 0), NOTHING);
    assert_eq!(then(20, 8, 0), NOTHING);
    assert_eq!(then(5, 8, 0), ["S16"]);
    assert_eq!(then(0, 8, 0), ["S16"]);
    // Under a new epoch a producer sends again what it does not know the fate of.
    assert_eq!(then(5, 0, 1), NOTHING);
}

/// Records were deleted up to the middle of a batch, and a copy begins there, with the whole batch: it is walked once, when all of it is
/// committed.
#[test]
fn s16_walks_a_batch_around_the_log_start_once() {
    let mut play = committed(2);
    let rest = batch(8, 1, 10);
    for broker in 1..=3 {
        play.shorten(0, broker, 0);
        (play.replica(0, broker).start, play.replica(0, broker).end) = (Offset(12), Offset(12));
        play.store(0, broker, &rest);
        play.replica(0, broker).hw = Offset(12);
    }
    let g = play.core.ghost.clusters[0].partition(P);
    (g.true_hw, g.floor) = (Offset(12), Offset(12));
    g.more().walked = Offset(12);
    g.members.iter_mut().for_each(|m| m.set_end(Offset(18)));
    assert!(!play.quiet().contains(&"S16".to_owned()));
    (1..=3).for_each(|broker| assert_eq!(play.watermark(0, broker, 18), NOTHING));
    assert!(!play.quiet().contains(&"S16".to_owned()));
    play.commit(0, 1, &batch(18, 1, 2));
    assert!(!play.quiet().contains(&"S16".to_owned()));
    play.commit(0, 1, &batch(20, 1, 2));
    play.replica(0, 1).batches.remove(2);
    let mut again = batch(18, 1, 2).to_vec();
    mirrorlab_model::record::stamp(&mut again, Offset(20), LeaderEpoch(1));
    play.replica(0, 1).batches.push(again.into());
    assert!(play.quiet().contains(&"S16".to_owned()));
}

#[test]
fn s17_sees_a_table_that_is_not_the_fold_of_the_log() {
    let mut play = committed(2);
    let newer = play.replica(0, 1).producers.clone();
    play.shorten(0, 3, 5);
    play.replica(0, 3).producers = newer;
    play.change(0, 1, 1, 0b011, 0);
    assert_eq!(play.cut(0, 3, 5, CutCause::Divergence), NOTHING); // the fake folds anew with each cut
    let newer = play.replica(0, 1).producers.clone();
    play.replica(0, 3).producers = newer;
    assert!(play.quiet().contains(&"S17".to_owned()));
}
