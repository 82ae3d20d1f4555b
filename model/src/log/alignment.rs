//! The terms in which a replica was aligned with the source of a mirror, and where its log ended then.
//!
//! Leader epochs tell two histories of *one* cluster apart. An alignment ends a history that no epoch ends: local records are cut,
//! and the source's, which may bear the very epochs of those that were cut (the two clusters count for themselves), take their
//! offsets. A replica that was away then still has the old ones, and no look at epochs shows it. So every replica notes in which
//! terms of its own cluster it was aligned, as its leader notes it; one that missed a term cuts to where the leader's log ended
//! in it. The table is an epoch cache, and works like one: `(term, end)` rises in both columns.
//!
//! A mirror's fetch carries no mark, and that is a known limit: of a chain A, B, C, where B is stopped, written to, and started
//! again from A while C is away, C may hold local records of B's in epochs that A's records in their place bear too, and no look at
//! epochs shows it. That C's fetches named the last of B's terms that it knows would not be enough. What C knows has to last as long
//! as its log does, for every replica of it that may lead, so it belongs into its record in `__mirror_state`, committed after the cut
//! and the replicas' word and before MIRRORING; the cut needs a mark of C's own, in a term above its last, or its followers fall
//! into the same gap; and it is a divergence (decision 39), with a word of its own for when it may cut. And the terms of a source
//! do not say what a *reverse* session left: at failback B's last mark lies below what C had mirrored rightly, so that the last
//! position that B tells must say as of which of its terms it holds. All four or none: with the first alone a failback
//! copies anew what is there, and an election at C forgets what was cut.

use crate::ids::{LeaderEpoch, Offset};
use crate::log::epoch_cache::EpochEntry;
use crate::log::log::Log;
use crate::log::snapshot::{decode_epochs, encode_epochs, read_file, replace_file};
use crate::ports::{Disk, DiskError, FileName};

/// `.tmp` tag of the alignment checkpoint.
const TEMP_ALIGNMENTS: u8 = 3;

impl Log {
    /// The newest term in which it was aligned, −1 for none.
    #[must_use]
    pub fn aligned(&self) -> LeaderEpoch {
        self.alignments.as_ref().map_or(LeaderEpoch::NONE, |table| table.latest())
    }

    /// All of them, oldest first.
    #[must_use]
    pub fn alignments(&self) -> &[EpochEntry] {
        self.alignments.as_ref().map_or(&[], |table| table.entries())
    }

    /// The first alignment that a replica missed which was aligned last in `term`. It is also the lowest: what lies above its
    /// end belongs to a history that was cut.
    #[must_use]
    pub fn alignment_after(&self, term: LeaderEpoch) -> Option<EpochEntry> {
        let entries = self.alignments();
        entries.get(entries.partition_point(|entry| entry.epoch <= term)).copied()
    }

    /// Notes an alignment, and writes the file. The caller has the log flushed before, if it was cut, and the file afterwards.
    ///
    /// # Errors
    /// The disk's; the log is offline then.
    pub fn note_alignment(&mut self, disk: &mut dyn Disk, term: LeaderEpoch, end: Offset) -> Result<(), DiskError> {
        let start = self.start;
        let table = self.alignments.get_or_insert_default();
        table.assign(term, end);
        table.truncate_from_start(start);
        self.write_alignments(disk)
    }

    /// Forgets the alignments after `term`, which the leader does not know, and says from where on this log cannot be of the
    /// leader's history: its own end in the first of them.
    ///
    /// # Errors
    /// The disk's; the log is offline then.
    pub fn forget_alignments_after(&mut self, disk: &mut dyn Disk, term: LeaderEpoch) -> Result<Offset, DiskError> {
        let Some(first) = self.alignment_after(term) else { return Ok(self.end) };
        if let Some(table) = &mut self.alignments {
            table.truncate_from_end(first.start);
        }
        self.write_alignments(disk)?;
        Ok(first.start)
    }

    fn write_alignments(&mut self, disk: &mut dyn Disk) -> Result<(), DiskError> {
        let Some(table) = &self.alignments else { return Ok(()) };
        let written = replace_file(disk, self.dir, FileName::Alignments, TEMP_ALIGNMENTS, encode_epochs(table));
        let file = written.inspect_err(|_| self.set_offline())?;
        self.unflushed.get_or_insert_default().push(file);
        self.flags.names = true;
        Ok(())
    }

    /// Reads the file. A torn one tells nothing: the leader says again what was missed.
    pub(super) fn load_alignments(&mut self, disk: &mut dyn Disk, files: &[FileName]) -> Result<(), DiskError> {
        if !files.contains(&FileName::Alignments) {
            return Ok(());
        }
        let file = disk.open(self.dir, FileName::Alignments)?;
        let stored = decode_epochs(&read_file(disk, file)?).filter(|stored| stored.intact);
        self.alignments = stored.map(|stored| Box::new(stored.contents));
        Ok(())
    }
}
