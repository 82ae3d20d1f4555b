//! What is left of lineages that ended, and of what is gone below: each world beside one that is like it but for what is really wrong.

use super::fake::{batch, node, Play, P};
use super::lived::names;
use super::{committed, NOTHING};
use crate::checks::excuses::Excuse;
use crate::checks::ghost::PartitionGhost;
use mirrorlab_model::ids::*;
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

/// A copy learns with its first records that its source is compacted, further than what is committed of it here.
#[test]
fn what_is_compacted_above_what_is_committed_is_asked_of_no_leader() {
    let leads = |compacted: i64, is_committed: bool, end: i64, other: bool| {
        let mut play = Play::new(2);
        play.commit(0, 1, &batch(0, 1, 5));
        if is_committed {
            play.commit(0, 1, &batch(5, 1, 3));
        } else {
            play.append(0, 1, Origin::Client, &batch(5, 1, 3));
        }
        ghost(&mut play).more().compaction.get_or_insert_default().upto = Offset(compacted);
        play.quiet();
        if other {
            let mut bytes = batch(5, 1, 3).to_vec();
            bytes[30] ^= 1;
            play.replica(0, 2).batches[1] = bytes.into();
        }
        short(&mut play, end)
    };
    assert!(!leads(8, false, 5, false));
    assert!(leads(8, false, 0, false), "what is committed is below");
    assert!(!leads(5, true, 8, false));
    assert!(leads(5, true, 8, true), "what it has above is another one's");
}
