//! What a broker finds on its disk when it starts. Directories are named by topic id, so a log can never come back under
//! another topic (I18); metadata says later whose they are.

use crate::broker::broker::Broker;
use crate::broker::upkeep::Job;
use crate::guards::replication as guard;
use crate::ids::{BrokerEpoch, Now, Offset};
use crate::log::checkpoint::{decode_clean_shutdown, read_small, Checkpoint, PartitionKey};
use crate::log::{FlushWant, LoadFrom, Log, LogPolicy};
use crate::ports::{Cx, DirId, DirName, DiskError, Effect, ExitReason, FileName, FlushToken};
use std::collections::BTreeMap;

type Offsets = BTreeMap<PartitionKey, Offset>;

impl Broker {
    /// Loads everything; a disk that fails here stops the process.
    pub(crate) fn load(&mut self, _now: Now, cx: &mut Cx) {
        if self.try_load(cx).is_err() {
            cx.effect(Effect::Exit(ExitReason::DiskFailed));
        }
    }

    fn try_load(&mut self, cx: &mut Cx) -> Result<(), DiskError> {
        let root = cx.disk.open_dir(DirName::Root, true)?;
        self.flushes.root = Some(root);
        let clean = self.read_marker(root, cx)?;
        let (watermarks, hw) = Checkpoint::load(cx.disk, root, FileName::HighWatermarks)?;
        let (recovery_points, recovery) = Checkpoint::load(cx.disk, root, FileName::RecoveryPoints)?;
        let (log_starts, starts) = Checkpoint::load(cx.disk, root, FileName::LogStarts)?;
        self.flushes.watermarks = Some(watermarks);
        self.flushes.recovery_points = Some(recovery_points);
        self.flushes.log_starts = Some(log_starts);
        let (clean_points, cleaned) = Checkpoint::load(cx.disk, root, FileName::CleanerOffsets)?;
        self.flushes.clean_points = Some(clean_points);
        self.clean = clean;
        for name in cx.disk.list_dirs() {
            if let DirName::Partition { topic, partition } = name {
                let cleaned = cleaned.get(&(topic, partition)).copied();
                let from = LoadFrom { cleaned, ..load_from((topic, partition), clean, &hw, &recovery, &starts) };
                let dir = cx.disk.open_dir(name, false)?;
                // Topic configs are metadata, which is not on this disk: loading needs none of them.
                let (log, recovered) = Log::load(cx.disk, dir, from, cx.guards, &LogPolicy::default())?;
                if recovered.damaged {
                    self.damaged.insert((topic, partition), log.end());
                    // 1. A broker stops in order. 2. Its disk damages a batch; the log ends there when it is loaded. 3. By the
                    // marker nothing is missing: it stays in the ISR, leads, and what lies behind the damage is lost on all replicas.
                    if !cx.guards.admits(guard::DamageUnsaysCleanStop, !clean) {
                        self.life.previous_epoch = BrokerEpoch(-1);
                    }
                }
                self.found.insert((topic, partition), log);
            }
        }
        // Killed between a cut and its checkpoint: the checkpoint still vouches for what is gone.
        let of = |(key, log): (&PartitionKey, &Log)| Some((*key, log.points()?));
        self.write_cuts(self.found.iter().filter_map(of).collect(), cx);
        Ok(())
    }

    /// Reads the clean-shutdown marker, and removes it before anything is loaded: a crash while loading must not look clean
    /// at the next start (D02).
    ///
    /// A broker stops in order, and starts again: the marker is removed. It serves, and writes, on a disk that is slow. Power
    /// loss, before the removal was on the disk: the marker is back, and vouches for logs that were written since. So nobody
    /// hears of this broker before.
    fn read_marker(&mut self, root: DirId, cx: &mut Cx) -> Result<bool, DiskError> {
        let Some(bytes) = read_small(cx.disk, root, FileName::CleanShutdown)? else { return Ok(false) };
        let epoch = decode_clean_shutdown(&bytes);
        if let Some(epoch) = epoch {
            self.life.previous_epoch = epoch;
        }
        cx.disk.remove(root, FileName::CleanShutdown)?;
        if cx.guards.admits(guard::MarkerRemovedFirst, false) {
            cx.effect(Effect::FlushDir { dir: root, token: FlushToken(0) });
        } else {
            self.flushes.start(Job::MarkerGone, &[FlushWant::Root], cx);
        }
        Ok(epoch.is_some())
    }
}

fn load_from(key: PartitionKey, clean: bool, hw: &Offsets, recovery: &Offsets, starts: &Offsets) -> LoadFrom {
    let of = |offsets: &Offsets| offsets.get(&key).copied().unwrap_or(Offset::ZERO);
    LoadFrom { clean, recovery_point: of(recovery), start: of(starts), hw: of(hw), cleaned: None }
}
