//! What is left of lineages that ended, and of what is gone below: each world beside one that is like it but for what is really wrong.

use super::fake::{batch, node, Play, CLIENT, P};
use super::lived::{names, Lived};
use super::mirrors::sight;
use super::{committed, NOTHING};
use crate::checks::excuses::Excuse;
use crate::checks::ghost::PartitionGhost;
use crate::checks::sight::MirrorSight;
use mirrorlab_model::ids::*;
use mirrorlab_model::states::MirrorState;
use mirrorlab_model::trace::{Origin, Trace};

/// Broker 2 of east leads next, which ends here.
fn short(play: &mut Play, end: i64) -> bool {
    play.shorten(0, 2, end);
    ghost(play).members[1].end = Offset(end);
    leads(play)
}

fn leads(play: &mut Play) -> bool {
    play.change(0, 2, 2, 0b010, 0);
    names(&play.lead(0, 2, 2), "S3")
}

/// The source's retention was faster than its mirror: who is short of a gap lacks nothing.
#[test]
fn s03_asks_for_nothing_that_is_gone_below_the_log_start() {
    let up_to = |start: i64| {
        let mut play = committed(2);
        assert_eq!(play.quiet(), NOTHING);
        play.replica(0, 1).start = Offset(start);
        assert_eq!(play.at(node(0, 1), Trace::LogStartMoved { partition: P, to: Offset(start) }), NOTHING);
        short(&mut play, 5)
    };
    assert!(!up_to(8));
    assert!(up_to(5), "what lies behind it is lost");
}

/// An order cuts a log below its start, and it begins anew: what is committed from then on has to be there.
#[test]
fn s03_asks_for_what_a_new_lineage_committed_below_a_former_log_start() {
    let mut play = committed(2);
    play.replica(0, 1).start = Offset(8);
    assert_eq!(play.at(node(0, 1), Trace::LogStartMoved { partition: P, to: Offset(8) }), NOTHING);
    ghost(&mut play).cut(Offset(0), Excuse::OrderedCut, Nanos(0), 0);
    for broker in 1..=3 {
        play.shorten(0, broker, 0);
        play.replica(0, broker).start = Offset(0);
        ghost(&mut play).members[broker as usize - 1].end = Offset(0);
        ghost(&mut play).members[broker as usize - 1].start = Offset(0);
    }
    play.commit(0, 1, &batch(0, 1, 5));
    assert!(short(&mut play, 0));
}

/// A client is told the end of a gap that a mirror leader passed, and then an end before it: the next leader has not passed that gap yet. Found by seed 3118 of swarm/disk.
#[test]
fn s22_takes_an_end_before_a_gap_after_the_end_of_one() {
    let falls = |start: i64, ends: [i64; 2]| {
        let mut play = committed(2);
        let moved = Trace::LogStartMoved { partition: P, to: Offset(start) };
        play.replica(0, 1).start = Offset(start);
        play.at(node(0, 1), moved);
        let told = |end| Trace::ToldEnd { partition: P, client: 1, end: Offset(end) };
        names(&ends.map(|end| play.at(CLIENT, told(end))).concat(), "S22")
    };
    assert!(!falls(12, [12, 8]));
    assert!(falls(12, [13, 8]), "there was something behind it");
    assert!(falls(5, [8, 5]));
}

/// It says nothing of the end of its log, and that is not where it was.
#[test]
fn s03_looks_at_the_log_itself() {
    let mut play = committed(2);
    assert_eq!(play.quiet(), NOTHING);
    play.shorten(0, 2, 5);
    assert!(leads(&mut play));
}

fn ghost(play: &mut Play) -> &mut PartitionGhost {
    play.core.ghost.clusters[0].partition(P)
}

/// A lineage ended, and who comes to lead still has all of it, as have all in-sync replicas.
#[test]
fn s11_takes_an_acknowledgement_of_a_lineage_that_came_back() {
    let acked = |damage: fn(&mut Play), base: i64, count: u32| {
        let mut play = committed(1);
        ghost(&mut play).cut(Offset(5), Excuse::UncleanElection, Nanos(0), 0);
        play.world.step += 40_000_000;
        play.change(0, 1, 3, 0b101, 0);
        assert_eq!(play.lead(0, 1, 3), NOTHING);
        damage(&mut play);
        names(&play.acked(base, count), "S11")
    };
    assert!(!acked(|_| {}, 5, 3));
    assert!(acked(|play| ghost(play).members[2].end = Offset(5), 5, 3), "an in-sync replica does not have it");
    assert!(acked(|play| ghost(play).members[0].hw = Offset(5), 5, 3), "its leader does not take it for committed");
    let more = |play: &mut Play| {
        for (broker, origin) in [(1, Origin::Client), (3, Origin::Replication)] {
            play.append(0, broker, origin, &batch(8, 3, 2));
        }
        ghost(play).members[0].hw = Offset(10);
    };
    assert!(acked(more, 8, 2), "that was in no lineage");
}

/// A copy learns with its first records that its source is compacted, further than what is committed of it here; and those are cut again.
#[test]
fn s06_asks_for_what_is_committed_where_more_was_compacted() {
    let ends = |is_committed: bool, damage: fn(&mut Play)| {
        let mut play = Play::new(2);
        play.commit(0, 1, &batch(0, 1, 5));
        assert_eq!(play.acked(0, 5), NOTHING);
        assert_eq!(play.quiet(), NOTHING);
        if is_committed {
            play.commit(0, 1, &batch(5, 1, 3));
            assert_eq!(play.acked(5, 3), NOTHING);
        } else {
            play.append(0, 1, Origin::Client, &batch(5, 1, 3));
        }
        ghost(&mut play).more().compaction.get_or_insert_default().upto = Offset(if is_committed { 5 } else { 8 });
        play.quiet();
        damage(&mut play);
        names(&play.end(), "S6")
    };
    fn all_end_at(play: &mut Play, end: i64) {
        (1..=3).for_each(|broker| play.shorten(0, broker, end));
    }
    assert!(!ends(false, |play| all_end_at(play, 5)));
    assert!(ends(false, |play| all_end_at(play, 0)));
    assert!(!ends(true, |_| {}));
    // What is compacted is asked of no log in its old form; what lies above is.
    fn other(play: &mut Play, base: i64) {
        let mut bytes = batch(base, 1, if base == 0 { 5 } else { 3 }).to_vec();
        bytes[30] ^= 1;
        (1..=3).for_each(|broker| play.replica(0, broker).batches[usize::from(base > 0)] = bytes.clone().into());
    }
    assert!(!ends(true, |play| other(play, 0)));
    assert!(ends(true, |play| other(play, 5)));
}

/// A source's leader kept what it had compacted when an alignment cut the others, who copied it again. Found by seed 2052 of
/// swarm/lifecycle.
#[test]
fn s50_compares_with_a_leader_that_was_compacted_before_a_cut() {
    let told = |lag: i64, compacted: i64| {
        let mut lived = Lived::copying();
        let known = lived.play.core.ghost.clusters[0].partition(P).more().compaction.get_or_insert_default();
        known.cut((Offset(8), Offset(0)), true, [0]);
        known.cleaned_behind(0, Offset(compacted));
        let mut rewritten = batch(0, 1, 5).to_vec();
        rewritten[30] ^= 1;
        lived.play.replica(0, 1).batches[0] = rewritten.into();
        let told =
            MirrorSight { lag: Some(lag), source_hw: Offset(8), state_epoch: 2, ..sight(MirrorState::Mirroring) };
        lived.play.world.mirrors.insert((node(1, 1), P), told);
        names(&lived.play.quiet(), "S50")
    };
    assert!(!told(3, 5));
    assert!(told(2, 5));
    assert!(told(3, 0), "it is another log");
}
