//! S9 Epochs in the log. Along a log epochs never fall; the epoch table equals the one computed from the log (plus at most
//! one entry at the log end, for a leader of a plain topic; none for a mirror leader); it rises strictly in epoch and does not
//! fall in offset.

use super::cx::Cx;
use super::ghost::PartitionGhost;
use super::logs;
use super::member::Member;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::LeaderEpoch;
use mirrorlab_model::log::EpochEntry;

fn say(entry: &EpochEntry) -> String {
    format!("epoch {} from offset {} on", entry.epoch, entry.start)
}

/// A replica appended batches of this epoch.
#[inline]
pub(super) fn appended<S: Sight>(cx: &mut Cx<'_, S>, m: Member, epoch: LeaderEpoch) {
    if epoch < m.epoch {
        cx.broken("S9", format_args!("no epoch below {}, the last batch's", m.epoch), epoch);
    }
}

/// The table of a replica, against its batches. Costs the table, not the log: between two entries epochs can only rise
/// (looked at with every append), so it is enough that the batch at each entry begins its epoch, and the one before it has
/// the entry's before.
pub(super) fn table<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost, slot: u16) {
    // Below, an epoch may begin with records that are compacted away, or have none left.
    let compacted = g.compacted_at(slot);
    let Some(replica) = cx.replica(slot).filter(|r| !r.offline) else { return };
    let log = replica.log;
    let entries = log.epochs();
    let mut wrong = None;
    let mut before = LeaderEpoch::NONE;
    for (at, entry) in entries.iter().enumerate() {
        let rises = at == 0 || (entry.epoch > before && entry.start >= entries[at - 1].start);
        if !rises {
            wrong = Some(("entries that rise".to_owned(), format!("{} after epoch {before}", say(entry))));
            break;
        }
        let previous = logs::epoch_before(log, entry.start);
        let gone = entry.start < compacted && previous < before;
        if previous != LeaderEpoch::NONE && previous != before && entry.start > log.start() && !gone {
            let none = before == LeaderEpoch::NONE;
            let expected = if none { "no batches".to_owned() } else { format!("batches of epoch {before}") };
            wrong = Some((format!("{expected} before {}", entry.start), format!("epoch {previous}")));
            break;
        }
        before = entry.epoch;
        if entry.start >= log.end() {
            let last = at + 1 == entries.len() && entry.start == log.end();
            if !last {
                wrong = Some((format!("entries within the log, which ends at {}", log.end()), say(entry)));
                break;
            }
            continue;
        }
        let found = logs::batch_at(&log, entry.start)
            .and_then(|b| mirrorlab_model::record::HeaderView::parse(b).ok().map(|h| h.leader_epoch()));
        let gone = entry.start < compacted && found.is_some_and(|found| found > entry.epoch);
        if found != Some(entry.epoch) && !gone {
            let got = found.map_or_else(|| "no batch there".to_owned(), |found| format!("a batch of epoch {found}"));
            wrong = Some((format!("{}, as the table says", say(entry)), got));
            break;
        }
    }
    if wrong.is_none() {
        let last = logs::epoch_before(log, log.end());
        let known = entries.iter().rev().find(|e| e.start < log.end()).map_or(LeaderEpoch::NONE, |e| e.epoch);
        if last != known && log.end() > log.start() {
            wrong = Some((format!("a table that ends with epoch {last}, the last batch's"), format!("epoch {known}")));
        }
    }
    if let Some((expected, got)) = wrong {
        cx.broken_at("S9", slot, expected, got);
    }
}
