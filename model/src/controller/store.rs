//! What a controller keeps on its disk: the metadata log, snapshots of the image, and what it promised as a voter. The way back from
//! a crash is here: newest whole snapshot, then the log after it.

use crate::controller::config::ControllerConfig;
use crate::controller::quorum::{Elected, LogEnd};
use crate::guards::Guards;
use crate::ids::{controller_id, controller_node, LeaderEpoch, MetadataOffset, Now, Offset};
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
/// Tag of the file that becomes a snapshot that another controller wrote.
const TEMP_DOWNLOAD: u8 = 202;
/// A snapshot is appended in pieces of this size, so that it can be read in pieces.
const SNAPSHOT_PIECE: usize = 64 * 1024;

/// Flushes of the metadata log.
pub const LOG_FLUSH: FlushToken = FlushToken(1);
/// Flush of the file that becomes `quorum-state`, then of its name.
pub const QUORUM_FLUSH: FlushToken = FlushToken(2);
/// Flush of the file that becomes a fetched snapshot, then of its name.
pub const DOWNLOAD_FLUSH: FlushToken = FlushToken(4);
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
    /// The flush under way is the last one.
    named: bool,
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
    /// What `quorum-state` says for sure, and what it is about to say.
    elected: Option<Elected>,
    quorum: Option<(Replacing, Elected)>,
    /// Whether the directory's own name is durable, as far as promises to others need it.
    home: bool,
    download: Option<(Replacing, SnapshotId)>,
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
    /// What `quorum-state` says; nothing if there was none.
    pub elected: Elected,
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
        settle_point(&mut log);
        let elected = read_quorum(disk, dir)?;
        let (quorum, download, snapshot, flush) = (None, None, None, None);
        // Alone it promises nothing to anybody: its log's first flush covers the name.
        let home = config.voters.len() < 2;
        let store = Self { root, dir, log, policy, flush, elected, quorum, home, download, snapshot, snapshots };
        Ok(Opened { store, image, elected: elected.unwrap_or_default() })
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

    // -- what a leader sends

    /// The end of the log, as votes and fetches tell it.
    #[must_use]
    pub fn end(&self) -> LogEnd {
        let end = MetadataOffset(self.log.end().0);
        let at_snapshot = self.snapshots.iter().rfind(|(at, _)| *at == end).map(|(_, epoch)| *epoch);
        let in_log = self.log.latest_epoch();
        LogEnd { epoch: at_snapshot.filter(|_| self.log.is_empty()).unwrap_or(in_log), end }
    }

    /// Appends a leader's batches; none of a later epoch than `bound`.
    ///
    /// # Errors
    /// See [`AppendError`].
    pub fn append_fetched(
        &mut self,
        disk: &mut dyn Disk,
        guards: &mut Guards,
        batches: &[Bytes],
        bound: LeaderEpoch,
        now: Now,
    ) -> Result<(), AppendError> {
        self.log.append_as_follower(disk, guards, &self.policy, batches, bound, now).map(|_| ())
    }

    /// Where the log has to be cut if the leader's epoch `epoch` ends at `end`, and ours knows more of it or another one.
    #[must_use]
    pub fn cut_for(&self, epoch: LeaderEpoch, end: Offset) -> Offset {
        let ours = self.log.end_offset_for(epoch);
        let shared = if ours.epoch == epoch { ours.end.min(end) } else { ours.end };
        shared.max(self.log.start())
    }

    /// Cuts the log.
    ///
    /// # Errors
    /// The disk's; the log is offline then.
    pub fn cut(&mut self, disk: &mut dyn Disk, guards: &mut Guards, to: Offset) -> Result<(), DiskError> {
        self.log.truncate_to(disk, guards, to)?;
        settle_point(&mut self.log);
        Ok(())
    }

    // -- quorum state

    /// Whether `quorum-state` says this, for good.
    #[must_use]
    pub fn remembers(&self, elected: Elected) -> bool {
        self.elected == Some(elected) && self.quorum.is_none() && self.home
    }

    /// Whether `quorum-state` was ever written here.
    #[must_use]
    pub fn has_promised(&self) -> bool {
        self.elected.is_some()
    }

    /// Whether this disk is not the one that the voter began with. That is noted, for later starts.
    ///
    /// # Errors
    /// The disk's.
    pub fn is_replaced(&self, disk: &mut dyn Disk, replaced: bool) -> Result<bool, DiskError> {
        let noted = disk.list(self.dir).contains(&FileName::MetaProperties);
        if replaced && !noted {
            disk.create(self.dir, FileName::MetaProperties)?;
        }
        Ok(replaced || noted)
    }

    /// Writes beside `quorum-state`, unless that is under way; [`on_quorum_flushed`](Self::on_quorum_flushed) follows twice, the first time in a life three times.
    ///
    /// # Errors
    /// The disk's.
    pub fn write_quorum(
        &mut self,
        disk: &mut dyn Disk,
        elected: Elected,
        effects: &mut Vec<Effect>,
    ) -> Result<(), DiskError> {
        if self.quorum.is_some() {
            return Ok(());
        }
        let id = |node: Option<crate::ids::NodeId>| node.map_or(-1, controller_id);
        let mut bytes = Vec::with_capacity(16);
        for part in [elected.epoch.0, id(elected.leader), id(elected.voted)] {
            bytes.extend_from_slice(&part.to_be_bytes());
        }
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_be_bytes());
        let file = fresh(disk, self.dir, FileName::Temp(TEMP_QUORUM))?;
        disk.append(file, bytes.into())?;
        self.quorum = Some((Replacing { file, to: FileName::QuorumState, renamed: false, named: false }, elected));
        effects.push(Effect::Flush { file, token: QUORUM_FLUSH });
        Ok(())
    }

    /// A flush for `quorum-state` ended: first its bytes, then its name.
    ///
    /// # Errors
    /// The disk's.
    pub fn on_quorum_flushed(&mut self, disk: &mut dyn Disk, effects: &mut Vec<Effect>) -> Result<(), DiskError> {
        let Some((mut replacing, elected)) = self.quorum.take() else { return Ok(()) };
        if replacing.named {
            (self.elected, self.home) = (Some(elected), true);
            return Ok(());
        }
        let dir = if replacing.renamed {
            // 1. A voter promises its vote, in a directory whose own name is not durable. 2. Power loss takes all of it.
            replacing.named = true;
            self.root
        } else {
            disk.rename(self.dir, replacing.file, replacing.to)?;
            replacing.renamed = true;
            replacing.named = self.home;
            self.dir
        };
        self.quorum = Some((replacing, elected));
        effects.push(Effect::FlushDir { dir, token: QUORUM_FLUSH });
        Ok(())
    }

    // -- a snapshot of the leader's

    /// Which snapshot is fetched, and how much of it is here.
    #[must_use]
    pub fn wanted(&self, disk: &dyn Disk) -> Option<(SnapshotId, u64)> {
        self.download.map(|(replacing, id)| (id, disk.len(replacing.file)))
    }

    /// A snapshot is to be fetched.
    ///
    /// # Errors
    /// The disk's.
    pub fn start_download(&mut self, disk: &mut dyn Disk, id: SnapshotId) -> Result<(), DiskError> {
        let file = fresh(disk, self.dir, FileName::Temp(TEMP_DOWNLOAD))?;
        let to = FileName::MetadataSnapshot(id.0 .0);
        self.download = Some((Replacing { file, to, renamed: false, named: false }, id));
        Ok(())
    }

    /// The fetch of a snapshot is given up.
    pub fn end_download(&mut self) {
        self.download = None;
    }

    /// A piece of it came. True when it is whole.
    ///
    /// # Errors
    /// The disk's.
    pub fn add_piece(&mut self, disk: &mut dyn Disk, pieces: &[Bytes], size: u64) -> Result<bool, DiskError> {
        let Some((replacing, _)) = self.download else { return Ok(false) };
        for piece in pieces {
            disk.append(replacing.file, piece.clone())?;
        }
        Ok(disk.len(replacing.file) >= size)
    }

    /// All of it is here: it is made durable, bytes first.
    pub fn keep_download(&mut self, effects: &mut Vec<Effect>) {
        if let Some((replacing, _)) = self.download {
            effects.push(Effect::Flush { file: replacing.file, token: DOWNLOAD_FLUSH });
        }
    }

    /// A flush for a fetched snapshot ended: first its bytes, then its name. True when all is durable.
    ///
    /// # Errors
    /// The disk's.
    pub fn on_download_flushed(&mut self, disk: &mut dyn Disk, effects: &mut Vec<Effect>) -> Result<bool, DiskError> {
        let Some((replacing, _)) = &mut self.download else { return Ok(false) };
        if replacing.renamed {
            return Ok(true);
        }
        disk.rename(self.dir, replacing.file, replacing.to)?;
        replacing.renamed = true;
        effects.push(Effect::FlushDir { dir: self.dir, token: DOWNLOAD_FLUSH });
        Ok(false)
    }

    /// The log gives way to the fetched snapshot. Its image, or `None` if it is not whole.
    ///
    /// # Errors
    /// The disk's.
    pub fn install(&mut self, disk: &mut dyn Disk, guards: &mut Guards) -> Result<Option<MetadataImage>, DiskError> {
        let Some((replacing, id)) = self.download.take() else { return Ok(None) };
        let mut pieces = Vec::new();
        disk.read(replacing.file, 0, disk.len(replacing.file), &mut pieces)?;
        let Ok((image, _)) = MetadataImage::load_snapshot(&pieces.concat(), id.0 .0) else { return Ok(None) };
        if !replacing.renamed {
            // Only with the guard off.
            disk.rename(self.dir, replacing.file, replacing.to)?;
        }
        self.log.truncate_fully_and_start_at(disk, guards, Offset(id.0 .0))?;
        settle_point(&mut self.log);
        self.snapshots.retain(|(end, _)| *end < id.0);
        self.snapshots.push(id);
        Ok(Some(image))
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
        self.snapshot = Some((Replacing { file, to, renamed: false, named: false }, (image.end(), image.epoch())));
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
        if self.snapshots.last().is_none_or(|(newest, _)| *newest < id.0) {
            self.snapshots.push(id);
        }
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

fn read_quorum(disk: &mut dyn Disk, dir: DirId) -> Result<Option<Elected>, DiskError> {
    let bytes = match read_all(disk, dir, FileName::QuorumState) {
        Ok(bytes) => bytes,
        Err(DiskError::NotFound) => return Ok(None),
        Err(error) => return Err(error),
    };
    // A file that is not whole tells nothing; the log's own epoch is the lower bound then.
    let whole = bytes.split_last_chunk::<4>().filter(|(body, crc)| crc32c::crc32c(body) == u32::from_be_bytes(**crc));
    let Some((body, _)) = whole.filter(|(body, _)| body.len() == 12) else { return Ok(Some(Elected::default())) };
    let part = |at: usize| body[at..].first_chunk::<4>().map_or(-1, |four| i32::from_be_bytes(*four));
    let (leader, voted) = (controller_node(part(4)), controller_node(part(8)));
    Ok(Some(Elected { epoch: LeaderEpoch(part(0)), leader, voted }))
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

/// The metadata log's recovery point stands in no checkpoint, it is the newest snapshot's end: a cut below it is known at once.
fn settle_point(log: &mut Log) {
    if let Some(generation) = log.lowered() {
        log.on_point_durable(generation);
    }
}
