//! What a log has to be when it is there again, by how its process ended; and where one begins that was cut.

use super::fake::{batch, node, Play, P};
use super::{committed, NOTHING};
use crate::checks::excuses::Excuse;
use crate::checks::ghost::Stop;
use mirrorlab_model::ids::*;
use mirrorlab_model::trace::{CutCause, Trace};

#[test]
fn s14_sees_a_short_replica_in_the_isr_after_a_lossy_stop() {
    let mut play = committed(2);
    play.change(0, 1, 1, 0b011, 0);
    play.core.on_stop(&play.world, node(0, 3), Stop::Lossy, None);
    play.shorten(0, 3, 5);
    play.at(node(0, 3), Trace::LogRecovered { partition: P, start: Offset(0), end: Offset(5), clean: false });
    assert_eq!(play.change(0, 1, 1, 0b111, 0), ["S14"]);
    // The controller lets it stay in the ISR although its stop was unclean.
    let mut play = committed(2);
    play.core.on_stop(&play.world, node(0, 3), Stop::Lossy, None);
    assert_eq!(play.at(node(0, 3), Trace::Registered { broker: BrokerId(3), epoch: 9, clean: false }), ["S14"]);
}

// 1. A leader asks for a follower in the ISR, and is cut off. 2. The follower's disk is replaced. 3. The controller hears the leader before
// it hears the follower register: the ISR has one that holds nothing, until it does.
#[test]
fn s14_takes_nobody_back_that_lacks_what_is_committed() {
    let mut play = committed(1);
    play.change(0, 1, 1, 0b011, 0);
    play.core.on_stop(&play.world, node(0, 3), Stop::Wiped, None);
    play.shorten(0, 3, 0);
    assert_eq!(play.change(0, 1, 1, 0b111, 0), NOTHING);
    let is_lossy = |play: &mut Play| play.core.ghost.clusters[0].partition(P).members[2].lossy();
    assert!(is_lossy(&mut play));
    play.change(0, 1, 1, 0b011, 0);
    play.core.ghost.clusters[0].partition(P).members[2].set_end(Offset(8));
    assert_eq!(play.change(0, 1, 1, 0b111, 0), NOTHING);
    assert!(!is_lossy(&mut play));
}

#[test]
fn s15_knows_what_each_kind_of_stop_may_take() {
    let ends = |stop, end, clean| {
        let mut play = committed(2);
        play.replica(0, 3).hw = Offset(5); // the recovery point of this fake
        play.core.before_stop(&play.world, node(0, 3));
        play.core.on_stop(&play.world, node(0, 3), stop, None);
        play.shorten(0, 3, end);
        play.at(node(0, 3), Trace::LogRecovered { partition: P, start: Offset(0), end: Offset(end), clean })
    };
    assert_eq!(ends(Stop::Killed, 8, false), NOTHING);
    assert_eq!(ends(Stop::Killed, 5, false), ["S15"]);
    assert_eq!(ends(Stop::Clean, 5, true), ["S15"]);
    assert_eq!(ends(Stop::Lossy, 5, false), NOTHING);
    assert_eq!(ends(Stop::Lossy, 0, false), ["S15"]);
    assert_eq!(ends(Stop::Lossy, 5, true), ["S15"]);
    // Killed before it had loaded what a power loss had left of it.
    let mut play = committed(2);
    play.core.on_stop(&play.world, node(0, 3), Stop::Lossy, None);
    play.core.on_stop(&play.world, node(0, 3), Stop::Killed, None);
    play.shorten(0, 3, 0);
    let back = Trace::LogRecovered { partition: P, start: Offset(0), end: Offset(0), clean: false };
    assert_eq!(play.at(node(0, 3), back), NOTHING);
}

/// A broker lost power, found its logs, never heard of their partitions, and stopped in order: its marker says so.
#[test]
fn s15_takes_the_marker_of_the_last_stop() {
    let back = |last| {
        let mut play = committed(2);
        play.core.on_stop(&play.world, node(0, 3), Stop::Lossy, None);
        play.core.on_stop(&play.world, node(0, 3), last, None);
        play.shorten(0, 3, 5);
        play.at(node(0, 3), Trace::LogRecovered { partition: P, start: Offset(0), end: Offset(5), clean: true })
    };
    assert_eq!(back(Stop::Clean), NOTHING);
    assert_eq!(back(Stop::Killed), ["S15"]);
}

/// What a disk promised goes with the disk: a broker that lost it, and then power within its first start, owes nothing.
#[test]
fn s15_asks_nothing_of_a_disk_that_was_replaced() {
    let back = |first| {
        let mut play = committed(2);
        play.core.before_stop(&play.world, node(0, 3));
        play.core.on_stop(&play.world, node(0, 3), first, None);
        play.core.on_stop(&play.world, node(0, 3), Stop::Lossy, None);
        play.shorten(0, 3, 0);
        play.at(node(0, 3), Trace::LogRecovered { partition: P, start: Offset(0), end: Offset(0), clean: false })
    };
    assert_eq!(back(Stop::Wiped), NOTHING);
    assert_eq!(back(Stop::Killed), ["S15"]);
}

/// A cut that is in the page cache is so as well after its process was killed and came back: power loss undoes it.
#[test]
fn s15_takes_a_cut_back_that_outlived_its_process() {
    let back = |cut: bool, between: Stop| {
        let mut play = committed(2);
        play.replica(0, 3).hw = Offset(5);
        let recovered = |end| Trace::LogRecovered { partition: P, start: Offset(0), end: Offset(end), clean: false };
        if cut {
            play.core.ghost.clusters[0].partition(P).cut(Offset(5), Excuse::OrderedCut, Nanos(0), 0);
            play.shorten(0, 3, 5);
            let cut = Trace::Truncated { partition: P, from: Offset(8), to: Offset(5), cause: CutCause::Divergence };
            play.at(node(0, 3), cut);
        } else {
            play.shorten(0, 3, 5);
            play.core.ghost.clusters[0].partition(P).members[2].set_end(Offset(5));
        }
        play.core.on_stop(&play.world, node(0, 3), between, None);
        play.at(node(0, 3), recovered(5));
        play.core.on_stop(&play.world, node(0, 3), Stop::Lossy, None);
        play.store(0, 3, &batch(5, 1, 3));
        play.at(node(0, 3), recovered(8)).contains(&"S15".to_owned())
    };
    assert!(!back(true, Stop::Killed));
    assert!(back(true, Stop::Lossy), "what power loss left is what the disk has");
    assert!(back(false, Stop::Killed));
}

/// A crash inside a task may leave more on the disk than was told, or less; that holds until the log is loaded, however many lives
/// end before.
#[test]
fn s15_remembers_a_crash_inside_a_task_until_the_log_is_loaded() {
    let back = |again: bool, loaded_between: bool| {
        let mut play = committed(2);
        play.core.on_stop(&play.world, node(0, 3), Stop::Killed, None);
        play.core.stopped_inside_a_task(node(0, 3));
        let recovered = |end| Trace::LogRecovered { partition: P, start: Offset(0), end: Offset(end), clean: false };
        if loaded_between {
            assert_eq!(play.at(node(0, 3), recovered(8)), NOTHING);
        }
        if again {
            play.core.on_stop(&play.world, node(0, 3), Stop::Killed, None);
        }
        play.store(0, 3, &batch(8, 1, 2));
        play.at(node(0, 3), recovered(10))
    };
    assert_eq!(back(false, false), NOTHING);
    assert_eq!(back(true, false), NOTHING);
    assert_eq!(back(true, true), ["S15"]);
    // So may a disk that failed.
    let failed = |between: &[Stop], end| {
        let mut play = committed(2);
        play.core.on_stop(&play.world, node(0, 3), Stop::Failed, None);
        for stop in between {
            play.core.on_stop(&play.world, node(0, 3), *stop, None);
        }
        if end > 8 {
            play.store(0, 3, &batch(8, 1, 2));
        }
        play.at(node(0, 3), Trace::LogRecovered { partition: P, start: Offset(0), end: Offset(end), clean: false })
    };
    assert_eq!(failed(&[], 10), NOTHING);
    assert_eq!(failed(&[Stop::Killed], 10), NOTHING);
}

/// A start that was cut before its removal of the marker was durable finds the marker again: that is so only while nothing was
/// lost, and only after such a start.
#[test]
fn s15_takes_a_marker_for_true_only_after_a_start_in_vain() {
    let back = |in_vain: bool, end: i64| {
        let mut play = committed(2);
        let recovered = |end| Trace::LogRecovered { partition: P, start: Offset(0), end: Offset(end), clean: true };
        play.core.on_stop(&play.world, node(0, 3), Stop::Clean, None);
        if !in_vain {
            assert_eq!(play.at(node(0, 3), recovered(8)), NOTHING);
        }
        play.core.on_stop(&play.world, node(0, 3), Stop::Lossy, None);
        play.shorten(0, 3, end);
        play.at(node(0, 3), recovered(end))
    };
    assert_eq!(back(true, 8), NOTHING);
    assert_eq!(back(true, 5), ["S15"]);
    assert_eq!(back(false, 8), ["S15"]);
}

/// A log that is cut below its start begins anew there, as one does that is told so by a leader that was emptied.
#[test]
fn a_log_that_was_cut_below_its_start_may_start_lower() {
    for cut in [true, false] {
        let mut play = committed(2);
        let moved = |to| Trace::LogStartMoved { partition: P, to: Offset(to) };
        assert_eq!(play.at(node(0, 3), moved(5)), NOTHING);
        if cut {
            play.core.ghost.clusters[0].partition(P).cut(Offset(0), Excuse::OrderedCut, Nanos(0), 0);
            play.shorten(0, 3, 0);
            let cut = Trace::Truncated { partition: P, from: Offset(8), to: Offset(0), cause: CutCause::Divergence };
            play.at(node(0, 3), cut);
            play.store(0, 3, &batch(0, 1, 5));
            play.core.ghost.clusters[0].partition(P).members[2].set_end(Offset(5));
            play.core.ghost.clusters[0].partition(P).true_hw = Offset(5);
        }
        assert_eq!(play.at(node(0, 3), moved(2)).contains(&"S21".to_owned()), !cut, "cut: {cut}");
    }
}
