//! S1 Valid log. For all clusters, partitions and replicas: batches are contiguous, or gap only where the source log had the
//! gap (compaction, a mirror of a compacted log); base <= last < next base; no offset twice; log end = last + 1; CRC valid.
//!
//! Each append is looked at as it happens; bytes are looked at in sweeps, what was looked at before is not looked at again.

use super::cx::Cx;
use super::ghost::Member;
use super::logs;
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::Offset;
use mirrorlab_model::trace::Origin;

/// A replica appended `base..next`.
#[inline]
pub(super) fn appended<S: Sight>(cx: &mut Cx<'_, S>, m: Member, origin: Origin, base: Offset, next: Offset) {
    let fits = match origin {
        Origin::Client | Origin::Coordinator => base == m.end,
        // A copied log has the gaps of its original.
        Origin::Replication | Origin::Mirror => base >= m.end,
    };
    if (!fits || next <= base) && m.known() {
        cx.broken("S1", format_args!("a batch that continues the log at {}", m.end), format_args!("{base}..{next}"));
    }
}

/// The bytes of a log from an offset on.
pub(super) fn bytes<S: Sight>(cx: &mut Cx<'_, S>, slot: u16, from: Offset) {
    let Some(replica) = cx.replica(slot) else { return };
    let mut end = from.max(replica.log.start());
    let mut wrong = None;
    logs::for_each(replica.log, end, replica.log.end(), |batch| {
        let base = batch.base_offset();
        // The first one may begin below the offset asked for.
        if (base < end && batch.last_offset() < end) || batch.last_offset() < base {
            wrong = Some((
                "a batch above the one before".to_owned(),
                format!("{base}..{} after {end}", batch.next_offset()),
            ));
        } else if !batch.crc_valid() {
            wrong = Some((format!("CRC {:08x} at {base}", batch.computed_crc()), format!("{:08x}", batch.crc())));
        }
        end = batch.next_offset();
        wrong.is_none()
    });
    if wrong.is_none() && end != replica.log.end() {
        wrong = Some((format!("batches up to the log end {}", replica.log.end()), format!("batches up to {end}")));
    }
    if let Some((expected, got)) = wrong {
        cx.broken_at("S1", slot, expected, got);
    }
}
