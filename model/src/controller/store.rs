//! What a controller keeps on its disk: the metadata log, snapshots of the image, and the quorum's epoch. The way back from
//! a crash is here: newest whole snapshot, then the log after it.

use crate::controller::config::ControllerConfig;
use crate::guards::Guards;
use crate::ids::{LeaderEpoch, MetadataOffset, NodeId, Now, Offset};
use crate::log::{AppendError, FlushTarget, FlushUpto, FlushWant, LoadFrom, Log, LogPolicy};
use crate::metadata::batches::{for_each_record, ReplayError};
use crate::metadata::image::MetadataImage;
use crate::ports::{DirId, DirName, Disk, DiskError, Effect, FileId, FileName, FlushToken};
use crate::trace::Origin;
use bytes::{Bytes, BytesMut};

/// Tag of the file that becomes `quorum-state`.
const TEMP_QUORUM: u8 = 200;
/// Tag of the file that becomes a snapshot.
const TEMP_SNAPSHOT: u8 = 201;
/// A snapshot is appended in pieces of this size, so that it can be read in pieces.
const SNAPSHOT_PIECE: usize = 64 * 1024;

/// Flushes of the metadata log.
pub const LOG_FLUSH: FlushToken = FlushToken(1);
/// Flush of the file that becomes `quorum-state`, then of its name.
pub const QUORUM_FLUSH: FlushToken = FlushToken(2);
/// Flush of the file that becomes a snapshot, then of its name.
pub const SNAPSHOT_FLUSH: FlushToken = FlushToken(3);

/// A snapshot's name: where it ends, and the epoch of the last record before.
pub type SnapshotId = (MetadataOffset, LeaderEpoch);

/// A file that is written beside its name, flushed, renamed, and whose name is flushed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Replacing {
    file: FileId,
    to: FileName,
    renamed: bool,
}

/// The disk's side of a controller.
#[derive(Clone, Debug)]
pub struct Store {
    root: DirId,
    dir: DirId,
    log: Log,
    policy: LogPolicy,
    /// The log's flush under way, and how many of its parts are out.
    flush: Option<(FlushTarget, u32)>,
    quorum: Option<Replacing>,
    snapshot: Option<(Replacing, SnapshotId)>,
    /// Snapshots on disk, oldest first.
    snapshots: Vec<SnapshotId>,
}

/// What a start found.
#[derive(Debug)]
pub struct Opened {
    /// The disk's side.
    pub store: Store,
    /// The newest whole snapshot, or an empty image.
    pub image: MetadataImage,
    /// The quorum epoch found in `quorum-state`, 0 if there was none.
    pub epoch: LeaderEpoch,
}

impl Store {
    /// Opens what the disk has; creates what it has not.
    ///
    /// # Errors
    /// The disk's: a controller cannot start then.
    pub fn open(disk: &mut dyn Disk, guards: &mut Guards, config: &ControllerConfig) -> Result<Opened, DiskError> {
        let root = disk.open_dir(DirName::Root, true)?;
        let dir = disk.open_dir(DirName::Metadata, true)?;
        let (image, snapshots) = load_newest_snapshot(disk, dir)?;
        // Two snapshots are kept; the log begins where the older one ends.
        let start = if snapshots.len() > 1 { Offset(snapshots[0].0 .0) } else { Offset::ZERO };
        let end = Offset(image.end().0);
        // A snapshot is of committed state: the log was durable up to its end.
        let from = LoadFrom { clean: false, recovery_point: end, start, hw: end, cleaned: None };
        let policy = LogPolicy {
            segment_bytes: config.log_segment_bytes,
            segment_ms: i64::MAX,
            retention_ms: -1,
            retention_bytes: -1,
            max_message_bytes: u32::MAX,
            ..LogPolicy::default()
        };
        let (mut log, _) = Log::load(disk, dir, from, guards, &policy)?;
        if log.end() < end {
            // The snapshot is durable, the log behind it was lost with unflushed bytes: it goes on where the snapshot ends.
            log.truncate_fully_and_start_at(disk, guards, end)?;
        }
        // Its recovery point stands in no checkpoint: it is the newest snapshot's end.
        if let Some(generation) = log.lowered() {
            log.on_point_durable(generation);
        }
        let epoch = read_quorum(disk, dir)?;
        let store = Self { root, dir, log, policy, flush: None, quorum: None, snapshot: None, snapshots };
        Ok(Opened { store, image, epoch })
    }

    /// The metadata log.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }
    /// Snapshots that can be fetched, oldest first.
    #[must_use]
    pub fn snapshots(&self) -> &[SnapshotId] {
        &self.snapshots
    }

    /// Calls `each` with every record of the log from `from` on.
    ///
    /// # Errors
    /// A record that cannot be read.
    pub fn replay(
        &self,
        disk: &dyn Disk,
        from: i64,
        mut each: impl FnMut(i64, &[u8]) -> Result<(), ReplayError>,
    ) -> Result<(), ReplayError> {
        let mut result = Ok(());
        let walked = self.log.for_each_batch(disk, Offset(from), |batch| {
            if result.is_ok() {
                result =
                    for_each_record(batch, |offset, bytes| if offset < from { Ok(()) } else { each(offset, bytes) });
            }
        });
        result.and(walked.map_err(|_| ReplayError::Gap))
    }

    /// Appends packed records.
    ///
    /// # Errors
    /// The log's; nothing was appended.
    pub fn append(
        &mut self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        batches: &Bytes,
        epoch: LeaderEpoch,
        now: Now,
    ) -> Result<(), AppendError> {
        let (policy, arena) = (&self.policy, &mut BytesMut::new());
        self.log.append_as_leader(disk, guards, policy, batches, arena, epoch, Origin::Coordinator, now).map(|_| ())
    }

    /// Asks for a flush of the log unless one is under way or there is nothing to flush.
    ///
    /// # Errors
    /// The disk's; the log is offline then.
    pub fn want_flush(
        &mut self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        effects: &mut Vec<Effect>,
    ) -> Result<(), DiskError> {
        if self.flush.is_some() {
            return Ok(());
        }
        let mut wants = Vec::new();
        let Some(target) = self.log.plan_flush(disk, guards, FlushUpto::End, &mut wants)? else { return Ok(()) };
        self.flush = Some((target, wants.len() as u32));
        let root = self.root;
        effects.extend(wants.into_iter().map(|want| match want {
            FlushWant::File(file) => Effect::Flush { file, token: LOG_FLUSH },
            FlushWant::Dir(dir) => Effect::FlushDir { dir, token: LOG_FLUSH },
            FlushWant::Root => Effect::FlushDir { dir: root, token: LOG_FLUSH },
        }));
        Ok(())
    }

    /// One part of the log's flush ended. Gives the offset that is durable now when the last one did.
    pub fn on_log_flushed(&mut self, guards: &mut Guards) -> Option<i64> {
        let (target, left) = self.flush.as_mut()?;
        *left = left.saturating_sub(1);
        if *left > 0 {
            return None;
        }
        let target = *target;
        self.flush = None;
        self.log.on_flushed(guards, target).then_some(target.offset.0)
    }

    /// The quorum agreed on this offset.
    pub fn set_high_watermark(&mut self, guards: &mut Guards, to: i64) {
        let _ = self.log.set_high_watermark(guards, Offset(to));
    }

    // -- quorum state

    /// Writes epoch and leader beside `quorum-state`; [`on_quorum_flushed`](Self::on_quorum_flushed) follows twice.
    ///
    /// # Errors
    /// The disk's.
    pub fn write_quorum(
        &mut self,
        disk: &mut dyn Disk,
        epoch: LeaderEpoch,
        leader: NodeId,
        effects: &mut Vec<Effect>,
    ) -> Result<(), DiskError> {
        let mut bytes = Vec::with_capacity(10);
        bytes.extend_from_slice(&epoch.0.to_be_bytes());
        bytes.extend_from_slice(&leader.0.to_be_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_be_bytes());
        let file = fresh(disk, self.dir, FileName::Temp(TEMP_QUORUM))?;
        disk.append(file, bytes.into())?;
        self.quorum = Some(Replacing { file, to: FileName::QuorumState, renamed: false });
        effects.push(Effect::Flush { file, token: QUORUM_FLUSH });
        Ok(())
    }

    /// A flush for `quorum-state` ended: first its bytes, then its name. True when all is durable.
    ///
    /// # Errors
    /// The disk's.
    pub fn on_quorum_flushed(&mut self, disk: &mut dyn Disk, effects: &mut Vec<Effect>) -> Result<bool, DiskError> {
        let Some(mut replacing) = self.quorum.take() else { return Ok(false) };
        if replacing.renamed {
            return Ok(true);
        }
        disk.rename(self.dir, replacing.file, replacing.to)?;
        replacing.renamed = true;
        self.quorum = Some(replacing);
        effects.push(Effect::FlushDir { dir: self.dir, token: QUORUM_FLUSH });
        Ok(false)
    }

    // -- snapshots

    /// Whether a snapshot is being written.
    #[must_use]
    pub fn is_writing_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Starts to write a snapshot of a committed image.
    ///
    /// # Errors
    /// The disk's; there is no snapshot then, and no harm.
    pub fn start_snapshot(
        &mut self,
        disk: &mut dyn Disk,
        image: &MetadataImage,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<(), DiskError> {
        let bytes = image.to_snapshot(now.wall_ms);
        let file = fresh(disk, self.dir, FileName::Temp(TEMP_SNAPSHOT))?;
        for at in (0..bytes.len()).step_by(SNAPSHOT_PIECE) {
            disk.append(file, bytes.slice(at..bytes.len().min(at + SNAPSHOT_PIECE)))?;
        }
        let to = FileName::MetadataSnapshot(image.end().0);
        self.snapshot = Some((Replacing { file, to, renamed: false }, (image.end(), image.epoch())));
        effects.push(Effect::Flush { file, token: SNAPSHOT_FLUSH });
        Ok(())
    }

    /// A flush for a snapshot ended: first its bytes, then its name. When all is durable, snapshots before the last two go,
    /// and the log before them.
    ///
    /// # Errors
    /// The disk's; the snapshot is given up.
    pub fn on_snapshot_flushed(
        &mut self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<(), DiskError> {
        let Some((mut replacing, id)) = self.snapshot.take() else { return Ok(()) };
        if !replacing.renamed {
            disk.rename(self.dir, replacing.file, replacing.to)?;
            replacing.renamed = true;
            self.snapshot = Some((replacing, id));
            effects.push(Effect::FlushDir { dir: self.dir, token: SNAPSHOT_FLUSH });
            return Ok(());
        }
        self.snapshots.push(id);
        while self.snapshots.len() > 2 {
            let (old, _) = self.snapshots.remove(0);
            disk.remove(self.dir, FileName::MetadataSnapshot(old.0))?;
        }
        if self.snapshots.len() > 1 {
            let _ = self.log.maybe_raise_log_start(guards, Offset(self.snapshots[0].0 .0));
            let _ = self.log.apply_retention(disk, guards, &self.policy, now)?;
        }
        Ok(())
    }

    /// The snapshot under way is given up.
    pub fn abandon_snapshot(&mut self) {
        self.snapshot = None;
    }

    /// A piece of a snapshot: its total size and bytes. `None` if there is no such snapshot.
    ///
    /// # Errors
    /// The disk's.
    pub fn read_snapshot(
        &self,
        disk: &mut dyn Disk,
        id: SnapshotId,
        position: u64,
        max: u64,
    ) -> Result<Option<(u64, Vec<Bytes>)>, DiskError> {
        if !self.snapshots.contains(&id) {
            return Ok(None);
        }
        let file = disk.open(self.dir, FileName::MetadataSnapshot(id.0 .0))?;
        let mut pieces = Vec::new();
        disk.read(file, position, max, &mut pieces)?;
        Ok(Some((disk.len(file), pieces)))
    }
}

/// A new empty file of this name; one that an earlier life left is removed.
fn fresh(disk: &mut dyn Disk, dir: DirId, name: FileName) -> Result<FileId, DiskError> {
    match disk.remove(dir, name) {
        Ok(()) | Err(DiskError::NotFound) => disk.create(dir, name),
        Err(error) => Err(error),
    }
}

fn read_all(disk: &mut dyn Disk, dir: DirId, name: FileName) -> Result<Vec<u8>, DiskError> {
    let file = disk.open(dir, name)?;
    let mut pieces = Vec::new();
    disk.read(file, 0, disk.len(file), &mut pieces)?;
    Ok(pieces.concat())
}

fn read_quorum(disk: &mut dyn Disk, dir: DirId) -> Result<LeaderEpoch, DiskError> {
    let bytes = match read_all(disk, dir, FileName::QuorumState) {
        Ok(bytes) => bytes,
        Err(DiskError::NotFound) => return Ok(LeaderEpoch(0)),
        Err(error) => return Err(error),
    };
    // A file that is not whole tells nothing; the log's own epoch is the lower bound then.
    let whole = bytes.split_last_chunk::<4>().filter(|(body, crc)| crc32c::crc32c(body) == u32::from_be_bytes(**crc));
    let epoch = whole.and_then(|(body, _)| body.first_chunk::<4>());
    Ok(LeaderEpoch(epoch.map_or(0, |four| i32::from_be_bytes(*four))))
}

/// The newest snapshot that is whole, and all that are, oldest first. Others are removed: they cannot be served.
fn load_newest_snapshot(disk: &mut dyn Disk, dir: DirId) -> Result<(MetadataImage, Vec<SnapshotId>), DiskError> {
    let names: Vec<FileName> = disk.list(dir);
    let (mut newest, mut found) = (MetadataImage::default(), Vec::new());
    for name in names {
        let FileName::MetadataSnapshot(end) = name else { continue };
        let bytes = read_all(disk, dir, name)?;
        match MetadataImage::load_snapshot(&bytes, end) {
            Ok((image, epoch)) => {
                found.push((MetadataOffset(end), epoch));
                newest = image;
            }
            Err(_) => disk.remove(dir, name)?,
        }
    }
    Ok((newest, found))
}
