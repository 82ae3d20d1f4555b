//! S1 Valid log. For all clusters, partitions and replicas: batches are contiguous, or gap only where the source log had the
//! gap (compaction, a mirror of a compacted log); base <= last < next base; no offset twice; log end = last + 1; CRC valid.
//!
//! Each append is looked at as it happens; bytes are looked at in sweeps, what was looked at before is not looked at again.

use super::cx::Cx;
use super::member::Member;
use super::sight::Sight;
use mirrorlab_model::ids::Offset;
use mirrorlab_model::record::BatchView;
use mirrorlab_model::trace::Origin;

/// A replica appended `base..next`.
#[inline]
pub(super) fn appended<S: Sight>(cx: &mut Cx<'_, S>, m: Member, origin: Origin, base: Offset, next: Offset) {
    let fits = match origin {
        Origin::Client | Origin::Coordinator => base == m.end,
        // A copied log has the gaps of its original. One that begins at a log start which lies inside a batch begins with that
        // whole batch (KAFKA-6975).
        Origin::Replication | Origin::Mirror => base >= m.end || (m.end == m.start && next > m.end),
    };
    if (!fits || next <= base) && m.known() {
        cx.broken("S1", format_args!("a batch that continues the log at {}", m.end), format_args!("{base}..{next}"));
    }
}

/// The bytes of a log from an offset on, batch by batch; see [`super::walk`].
pub(super) struct Bytes {
    end: Offset,
    wrong: Option<(String, String)>,
}

impl Bytes {
    pub(super) fn from(start: Offset) -> Self {
        Self { end: start, wrong: None }
    }

    /// The next batch. The first one may begin below the offset asked for.
    pub(super) fn see(&mut self, batch: &BatchView<'_>) {
        if self.wrong.is_some() {
            return;
        }
        let (base, end) = (batch.base_offset(), self.end);
        if (base < end && batch.last_offset() < end) || batch.last_offset() < base {
            let got = format!("{base}..{} after {end}", batch.next_offset());
            self.wrong = Some(("a batch above the one before".to_owned(), got));
        } else if !batch.crc_valid() {
            let expected = format!("CRC {:08x} at {base}", batch.computed_crc());
            self.wrong = Some((expected, format!("{:08x}", batch.crc())));
        }
        self.end = batch.next_offset();
    }

    /// The log ends here.
    pub(super) fn finish<S: Sight>(self, cx: &mut Cx<'_, S>, slot: u16, log_end: Offset) {
        let short = || (format!("batches up to the log end {log_end}"), format!("batches up to {}", self.end));
        if let Some((expected, got)) = self.wrong.or_else(|| (self.end != log_end).then(short)) {
            cx.broken_at("S1", slot, expected, got);
        }
    }
}
