//! S8 Repeatable read. What a consumer was handed at an offset has the same bytes on the current leader, and on every leader
//! after it; two consumers never get different bytes for one offset. Excused by unclean elections, and then only above the
//! fork. Who had read above the fork does not read on from there as if nothing had happened: it learns of it, and its position is
//! set anew (KIP-320).
//!
//! A read is compared with the log when it happens. From then on its range is a part of what is committed, whose sums S3
//! compares at every election: so a later comparison costs nothing here.

use super::cx::Cx;
use super::ghost::{LastRead, PartitionGhost};
use super::logs;
use super::roster::slot_of;
use super::s04_candidate_completeness;
use super::sight::{LogSight, Sight};
use mirrorlab_model::client::read_hash::ReadHash;
use mirrorlab_model::ids::Offset;

/// A consumer was handed `base..next`.
pub(super) fn read<S: Sight>(
    cx: &mut Cx<'_, S>,
    g: &mut PartitionGhost,
    consumer: u32,
    (base, next): (Offset, Offset),
    hash: u64,
) {
    let comes_back = s04_candidate_completeness::comes_back(g, g.lead.slot);
    if next > g.true_hw.max(comes_back) && !g.was_cut(next, cx.at.now) {
        cx.broken(
            "S8",
            format_args!("records below {} only: that is committed", g.true_hw),
            format_args!("{base}..{next}"),
        );
        return;
    }
    if base < g.compacted() {
        return; // what stood there may be gone since: S51's
    }
    let leader = slot_of(g.leader);
    let others = g.members.iter().map(|m| m.slot).filter(|s| *s != leader);
    let mut looked = false;
    let mut same = false;
    for slot in std::iter::once(leader).chain(others) {
        match hash_of(cx, slot, base, next) {
            Some(found) if found == hash => {
                same = true;
                break;
            }
            Some(_) => looked = true,
            None => {}
        }
        if looked && slot == leader {
            break;
        }
    }
    if g.unclean_allowed {
        reads_on(cx, g, LastRead { consumer, base, next, hash, at: cx.at.now });
    }
    if same {
        g.read.add(base, next.min(g.true_hw));
    } else if looked && !g.cut_lately(next, cx.at.now) {
        let got = format_args!("bytes that no replica has there (hash {hash:016x})");
        cx.broken("S8", format_args!("the bytes that the leader has at {base}..{next}"), got);
    }
}

/// A consumer that reads on notices what became of what it had read. Only of topics that prefer service to data is that kept.
fn reads_on<S: Sight>(cx: &mut Cx<'_, S>, g: &mut PartitionGhost, now: LastRead) {
    let readers = &mut g.more().readers;
    let before = match readers.iter_mut().find(|r| r.consumer == now.consumer) {
        Some(known) => Some(std::mem::replace(known, now)),
        None => {
            readers.push(now);
            None
        }
    };
    let Some(before) = before.filter(|before| now.base >= before.next) else { return };
    let Some(fork) = g.forked_below(before.next, before.at) else { return };
    // It was handed what the new lineage has; and what it had read is not back there, as when a mirror copies it again.
    let leader = slot_of(g.leader);
    let of_it = hash_of(cx, leader, now.base, now.next) == Some(now.hash);
    if of_it && hash_of(cx, leader, before.base, before.next).is_some_and(|found| found != before.hash) {
        let (read, base, next) = (before.next, now.base, now.next);
        let expected = format_args!("a reader that had read up to {read} set back to {fork}, where that lineage ended");
        cx.broken("S8", expected, format_args!("it reads on, {base}..{next}"));
    }
}

/// A consumer's position was set, by whatever it learnt.
pub(super) fn reset(g: &mut PartitionGhost, consumer: u32) {
    if let Some(more) = &mut g.more {
        more.readers.retain(|r| r.consumer != consumer);
    }
}

/// The hash over the same range of a replica's log; `None` if it does not have all of it.
fn hash_of<S: Sight>(cx: &Cx<'_, S>, slot: u16, base: Offset, next: Offset) -> Option<u64> {
    let log = cx.replica(slot)?.log;
    if log.start() > base || log.end() < next {
        return None;
    }
    let mut hash = ReadHash::default();
    logs::for_each(log, base, next, |batch| {
        hash.batch(batch);
        true
    });
    Some(hash.finish())
}
