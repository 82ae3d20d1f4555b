//! The one ghost model that all checks share: what a bystander who sees everything knows of each partition.
//!
//! **Committed** means: some leader told so by moving its high watermark, *and* the rule allowed it (every member of its
//! maximal ISR really held it, and the ISR was large enough; S5 looks at each move). The other reading, "whatever lies on
//! all members of the ISR, whoever knows it", is not what Kafka promises: a follower may join the ISR at the leader's
//! watermark while the older members already hold more that nobody was told of, and losing that is no loss.
//!
//! Laid out for the hot path: one vector per cluster by partition index, members inline, everything rare in a box.

use super::excuses::Excuse;
use super::lives::{Life, Orders};
use super::member::Member;
use super::ranges::{Chain, Ranges};
use super::roster::{slot_of, Roster};
use super::sight::{LogSight, Sight};
use mirrorlab_model::coordinator::routing::STATE_TOPIC;
use mirrorlab_model::ids::{BrokerId, LeaderEpoch, Nanos, NodeId, Offset, PartitionEpoch, PartitionIx, TopicIx};
use mirrorlab_model::metadata::configs::CleanupPolicy;
use mirrorlab_model::metadata::image::MetadataImage;
use mirrorlab_model::states::{DesiredState, MirrorState};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};

/// What the present leader believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// Its slot; `u16::MAX` for none.
    pub slot: u16,
    /// Its epoch.
    pub epoch: LeaderEpoch,
    /// The ISR it knows to be committed.
    pub isr: u32,
    /// The ISR it asked for.
    pub proposed: u32,
}

/// An answer older than this is not waited for any more (`request.timeout.ms`).
const ANSWER_MAX: Nanos = Nanos::from_secs(30);

/// A lineage that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// What was committed before.
    pub from: Offset,
    /// What is left of it.
    pub to: Offset,
    /// Acknowledged records among what was cut.
    pub acked: u64,
    /// Why.
    pub excuse: Excuse,
    /// When.
    pub at: Nanos,
}

/// A replica as it was when a copy of its disk was made.
#[derive(Clone, Debug)]
pub struct Copied {
    /// The replica.
    pub member: Member,
    /// The copy holds all of that for certain, because its broker ran.
    pub whole: bool,
    /// What had rotted by then, and is in the copy.
    pub rotten: SmallVec<[Rot; 1]>,
}

/// A batch that rotted on one replica's disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rot {
    /// Whose.
    pub slot: u16,
    /// Its first offset.
    pub from: Offset,
    /// After its last offset.
    pub to: Offset,
    /// Who reads from below here may meet it.
    pub holds: Offset,
    /// Somebody refused it: a reader, a follower, a mirror, or its own broker when it loaded it.
    pub found: bool,
    /// Its log was cut below it since.
    pub gone: bool,
}

/// What a log holds of a producer: that of its newest batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newest {
    /// Its epoch.
    pub epoch: i16,
    /// Its last sequence.
    pub sequence: i32,
    /// The number of its first record among those that its producer made, −1: none has one.
    pub record: i64,
}

/// By producer id, ascending. Nearly always one: no heap then.
pub type Sequences = SmallVec<[(i64, Newest); 1]>;

/// What few partitions have.
#[derive(Clone, Debug, Default)]
pub struct More {
    /// Sums of what is committed.
    pub chain: Chain,
    /// Cuts so far.
    pub cuts: Vec<Cut>,
    /// Leaders of earlier epochs, ascending.
    pub writers: Vec<(LeaderEpoch, u16)>,
    /// Where it is mirrored from: cluster and partition, as batches tell.
    pub source: Option<(u8, PartitionIx)>,
    /// The mirror state that a leader of it told last, and which one that was: a deposed one goes by its own.
    pub mirror: (NodeId, MirrorState),
    /// Who fetched it last, in its present life.
    pub fetcher_of: NodeId,
    /// Who fetches it, and from where.
    pub fetchers: SmallVec<[(NodeId, NodeId); 2]>,
    /// The highest epoch of the source that its present mirror leader asked in, in this life of that broker.
    pub source_epoch: LeaderEpoch,
    /// Epoch of the last mirrored batch.
    pub mirrored_epoch: LeaderEpoch,
    /// Up to here S16 walked the leader's log, and what it found of producers.
    pub walked: Offset,
    /// See `walked`.
    pub sequences: Sequences,
    /// What is committed of it in `__mirror_state`.
    pub life: Option<Box<Life>>,
    /// The one before, whose mirror was deleted, or left the topic.
    pub former: Option<Box<Life>>,
    /// What was committed there was lost: nothing that is asked of committed states is asked of this partition any more.
    pub states_lost: bool,
    /// What was committed, if it is compacted.
    pub compaction: Option<Box<super::compaction::Compaction>>,
    /// What rotted: the replica's slot, the batch, and whether somebody told that it is damaged.
    pub rotten: Vec<Rot>,
    /// Acknowledged records that can be read from no replica any more, because they rotted on all of them.
    pub rotten_away: u64,
    /// The transactions of its log.
    pub txns: Option<Box<super::transactions::Fold>>,
    /// What each consumer was handed last; without those that were set elsewhere since.
    pub readers: Vec<LastRead>,
}

/// What a consumer was handed last.
#[derive(Clone, Copy, Debug)]
pub struct LastRead {
    /// Its number.
    pub consumer: u32,
    /// The first offset.
    pub base: Offset,
    /// The offset behind the last.
    pub next: Offset,
    /// The hash over it.
    pub hash: u64,
    /// When.
    pub at: Nanos,
}

/// One partition.
#[derive(Clone, Debug)]
pub struct PartitionGhost {
    /// Everything below was committed by the rule at some time in this lineage.
    pub true_hw: Offset,
    /// Nothing below has to be held any more: the leader's log start.
    pub floor: Offset,
    /// The controller's view.
    pub leader: BrokerId,
    /// The controller's view.
    pub leader_epoch: LeaderEpoch,
    /// The controller's view.
    pub partition_epoch: PartitionEpoch,
    /// The controller's ISR, a bit per member.
    pub isr: u32,
    /// The controller's ELR.
    pub elr: u32,
    /// The leader's view.
    pub lead: Lead,
    /// `min.insync.replicas`, at most the number of replicas.
    pub min_isr: u32,
    /// The epoch of an unclean election whose consequences were not drawn yet; −1 for none.
    pub unclean: LeaderEpoch,
    /// Counts lineages.
    pub lineage: u32,
    /// The last one to append as leader: epoch and slot.
    pub writer: (LeaderEpoch, u16),
    /// The topic prefers service to data.
    pub unclean_allowed: bool,
    /// An event told of it since it was swept last.
    pub touched: bool,
    /// Has to do with a mirror.
    pub mirrored: bool,
    /// Its topic was mirrored when it came into being.
    pub born_a_copy: bool,
    /// A partition of `__mirror_state`.
    pub keeps_states: bool,
    /// Its topic is compacted, or copied from one that is.
    pub compacts: bool,
    /// The step of the last cut.
    pub cut_step: u64,
    /// Members by position in the replica list.
    pub members: SmallVec<[Member; 3]>,
    /// Offsets acknowledged to producers with acks=all.
    pub acked: Ranges,
    /// Offsets that consumers were handed.
    pub read: Ranges,
    /// The rest.
    pub more: Option<Box<More>>,
}

impl Default for PartitionGhost {
    fn default() -> Self {
        Self {
            true_hw: Offset::ZERO,
            floor: Offset::ZERO,
            leader: BrokerId::NONE,
            leader_epoch: LeaderEpoch::NONE,
            partition_epoch: PartitionEpoch(-1),
            isr: 0,
            elr: 0,
            lead: Lead { slot: u16::MAX, epoch: LeaderEpoch::NONE, isr: 0, proposed: 0 },
            min_isr: 1,
            unclean: LeaderEpoch::NONE,
            lineage: 0,
            writer: (LeaderEpoch::NONE, u16::MAX),
            unclean_allowed: false,
            touched: false,
            mirrored: false,
            born_a_copy: false,
            keeps_states: false,
            compacts: false,
            cut_step: u64::MAX,
            members: SmallVec::new(),
            acked: Ranges::default(),
            read: Ranges::default(),
            more: None,
        }
    }
}

impl PartitionGhost {
    /// The member of a slot, and its position.
    #[inline]
    pub fn member(&mut self, slot: u16) -> Option<(usize, &mut Member)> {
        self.members.iter_mut().enumerate().find(|(_, m)| m.slot == slot)
    }
    /// The position of a slot.
    #[must_use]
    #[inline]
    pub fn position(&self, slot: u16) -> Option<usize> {
        self.members.iter().position(|m| m.slot == slot)
    }
    /// What is committed of it in `__mirror_state`.
    #[must_use]
    #[inline]
    pub fn life(&self) -> Option<&Life> {
        self.more.as_ref()?.life.as_deref()
    }
    /// Some replica was compacted up to here: below, logs may differ in what compaction takes.
    #[must_use]
    #[inline]
    pub fn compacted(&self) -> Offset {
        self.more.as_ref().and_then(|more| more.compaction.as_ref()).map_or(Offset::ZERO, |known| known.upto)
    }
    /// The same of one replica, which may not know yet that a lineage ended.
    #[must_use]
    pub fn compacted_at(&self, slot: u16) -> Offset {
        let known = self.more.as_ref().and_then(|more| more.compaction.as_ref());
        known.map_or(Offset::ZERO, |known| known.upto_at(slot))
    }
    /// Below this a replica may lack the newest batch of a producer that its table knows.
    #[must_use]
    pub fn loose(&self, slot: u16) -> Offset {
        let known = self.more.as_ref().and_then(|more| more.compaction.as_ref());
        known.map_or(Offset::ZERO, |known| known.loose(slot))
    }
    /// The rest, made if need be.
    pub fn more(&mut self) -> &mut More {
        self.more.get_or_insert_with(|| {
            Box::new(More { mirrored_epoch: LeaderEpoch::NONE, source_epoch: LeaderEpoch::NONE, ..More::default() })
        })
    }
    /// The slots of a mask.
    pub fn of_mask(&self, mask: u32) -> impl Iterator<Item = (usize, &Member)> + '_ {
        self.members.iter().enumerate().filter(move |(at, _)| mask & (1 << (*at as u32 & 31)) != 0)
    }
    /// The brokers of a mask, by id: `{1,3}`.
    #[must_use]
    pub fn brokers(&self, mask: u32) -> String {
        let ids: Vec<String> = self.of_mask(mask).map(|(_, m)| (m.slot + 1).to_string()).collect();
        let beyond = if mask.checked_shr(self.members.len() as u32).unwrap_or(0) == 0 { "" } else { " and others" };
        format!("{{{}}}{beyond}", ids.join(","))
    }
    /// Fault budget: members that stopped lossily and are not back.
    #[must_use]
    pub fn lossy(&self) -> u32 {
        self.members.iter().filter(|m| m.lossy()).count() as u32
    }
    /// Whether a log that ends at `end` lacks something that is committed and still has to be held.
    #[must_use]
    #[inline]
    pub fn lacks(&self, end: Offset) -> bool {
        end < self.true_hw && self.floor < self.true_hw
    }
    /// What excuses that committed records are missing now; `None`: nothing does. An election outside of ISR and ELR that
    /// nobody allowed (the last known leader, KIP-966) excuses nothing by itself: so many crashes have to have led to it.
    #[must_use]
    pub fn excuse(&self) -> Option<Excuse> {
        let least = self.min_isr.max(1);
        if self.lossy() >= least {
            if let Some(cause) = self.members.iter().filter(|m| m.lossy()).filter_map(Member::lossy_by).max() {
                return Some(cause);
            }
        }
        if self.unclean != LeaderEpoch::NONE {
            if self.unclean_allowed {
                return Some(Excuse::UncleanElection);
            }
            if self.members.iter().filter(|m| m.doubtful() || m.lossy()).count() as u32 >= least {
                return Some(Excuse::UncleanStops);
            }
        }
        (self.lossy() >= least).then_some(Excuse::LossyCrashes)
    }
    /// A new lineage begins at `to`. Returns how many acknowledged records it costs.
    pub fn cut(&mut self, to: Offset, excuse: Excuse, at: Nanos, step: u64) -> u64 {
        self.cut_step = step;
        if to >= self.true_hw {
            return 0;
        }
        let (from, acked) = (self.true_hw, self.acked.cut(to));
        self.read.cut(to);
        self.true_hw = to;
        // Whatever was gone below a log start is no excuse for the new one, which begins here.
        self.floor = self.floor.min(to);
        self.lineage += 1;
        let above = self.members.iter().filter(|m| m.end > to).map(|m| m.slot);
        let above: SmallVec<[u16; 3]> = above.collect();
        let compacts = self.compacts;
        let more = self.more();
        more.chain.cut(to);
        more.walked = Offset::ZERO;
        more.sequences.clear();
        more.txns = None;
        // Who was not told of the cut may clean what lies above it.
        if compacts {
            more.compaction.get_or_insert_default();
        }
        if let Some(compaction) = &mut more.compaction {
            compaction.cut((from, to), excuse == Excuse::OrderedCut, above);
        }
        more.cuts.push(Cut { from, to, acked, excuse, at });
        acked
    }
    /// Whether `offset` lies in what a cut took so lately that an answer from before it may still be on its way.
    #[must_use]
    pub fn was_cut(&self, offset: Offset, now: Nanos) -> bool {
        let took = |c: &Cut| c.to < offset && offset <= c.from && now.since(c.at) < ANSWER_MAX;
        self.more.as_ref().is_some_and(|m| m.cuts.iter().any(took))
    }
    /// Up to where lineages reached that ended, or those that an order ended.
    #[must_use]
    pub fn once_committed(&self, ordered_only: bool) -> Offset {
        let counts = |c: &&Cut| !ordered_only || c.excuse == Excuse::OrderedCut;
        let all = self.more.iter().flat_map(|m| m.cuts.iter().filter(counts));
        all.map(|c| c.from).max().unwrap_or_default()
    }
    /// Where a lineage ended, without anybody's order, below what somebody had read by then: the lowest of these.
    #[must_use]
    pub fn forked_below(&self, read: Offset, by: Nanos) -> Option<Offset> {
        let forks = |c: &&Cut| c.to < read && by < c.at && c.excuse != Excuse::OrderedCut;
        self.more.as_ref()?.cuts.iter().filter(forks).map(|c| c.to).min()
    }
    /// Whether a cut took something below `offset` so lately that an answer from before it may still be on its way.
    #[must_use]
    pub fn cut_lately(&self, offset: Offset, now: Nanos) -> bool {
        let lately = |c: &Cut| c.to < offset && now.since(c.at) < ANSWER_MAX;
        self.more.as_ref().is_some_and(|m| m.cuts.iter().any(lately))
    }
    /// Notes who writes in an epoch; `Err` with the one who wrote in it before.
    ///
    /// # Errors
    /// The slot that wrote in this epoch before.
    #[cold]
    pub fn note_writer(&mut self, epoch: LeaderEpoch, slot: u16) -> Result<(), u16> {
        if epoch > self.writer.0 {
            let before = std::mem::replace(&mut self.writer, (epoch, slot));
            if before.0 != LeaderEpoch::NONE {
                self.more().writers.push(before);
            }
            return Ok(());
        }
        let known = if epoch == self.writer.0 {
            Some(self.writer.1)
        } else {
            self.more.as_ref().and_then(|m| m.writers.iter().find(|w| w.0 == epoch)).map(|w| w.1)
        };
        match known {
            Some(other) if other != slot => Err(other),
            Some(_) => Ok(()),
            None => {
                let writers = &mut self.more().writers;
                let at = writers.partition_point(|w| w.0 < epoch);
                writers.insert(at, (epoch, slot));
                Ok(())
            }
        }
    }
    /// Takes replica list and settings from metadata; what is known of members that stay is kept.
    pub fn seat(&mut self, image: &MetadataImage, partition: PartitionIx) {
        let Some(found) = image.partition(partition) else { return };
        let state = &found.state;
        let same = self.members.len() == state.replicas.len()
            && self.members.iter().zip(&state.replicas).all(|(m, b)| m.slot == slot_of(*b));
        if !same {
            let old = std::mem::take(&mut self.members);
            if old.is_empty() {
                let desired = image.mirror_of(found.topic).map(|(_, desired)| desired);
                self.born_a_copy = matches!(desired, Some(DesiredState::Mirroring | DesiredState::Paused));
            }
            let of = |b: &BrokerId| {
                let slot = slot_of(*b);
                old.iter().find(|m| m.slot == slot).copied().unwrap_or(Member::new(slot))
            };
            self.members = state.replicas.iter().map(of).collect();
        }
        let config = image.topic_config(found.topic);
        self.unclean_allowed = config.unclean_leader_election_enable;
        self.min_isr = config.min_insync_replicas.min(state.replicas.len() as u32).max(1);
        if state.partition_epoch > self.partition_epoch {
            let mask = |of: &[BrokerId]| {
                state.replicas.iter().enumerate().filter(|(_, b)| of.contains(b)).fold(0, |m, (at, _)| m | 1 << at)
            };
            (self.leader, self.leader_epoch) = (state.leader, state.leader_epoch);
            (self.partition_epoch, self.isr, self.elr) = (state.partition_epoch, mask(&state.isr), mask(&state.elr));
        }
        self.compacts |= config.cleanup_policy != CleanupPolicy::Delete;
        self.mirrored |= image.mirror_of(found.topic).is_some();
        self.keeps_states = image.topic(found.topic).is_some_and(|t| &*t.name == STATE_TOPIC);
    }
}

/// How a process ended, as far as its disk is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// In order.
    Clean,
    /// The process died; the page cache lived on.
    Killed,
    /// Power loss: what was not flushed may be gone.
    Lossy,
    /// The disk failed: what was not flushed may be gone, and what an append that failed had written may be there.
    Failed,
    /// The disk was replaced by an empty one.
    Wiped,
    /// The disk was set back to an earlier copy of it.
    Restored,
}

impl Stop {
    /// In a message.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clean => "a stop in order",
            Self::Killed => "a kill",
            Self::Lossy => "a loss of power",
            Self::Failed => "a failure of its disk",
            Self::Wiped => "a replacement of its disk",
            Self::Restored => "a return to an older copy of its disk",
        }
    }
}

/// One broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BrokerGhost {
    /// Fenced, as the controller told last.
    pub fenced: bool,
    /// How its last life ended; `None` before it ended once.
    pub stop: Option<Stop>,
    /// The metadata it applied: end and hash.
    pub applied: (i64, u64),
}

/// One cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterGhost {
    /// By partition index.
    pub partitions: Vec<PartitionGhost>,
    /// Partitions that events told of since they were swept last, in order of the first of them.
    pub touched: VecDeque<PartitionIx>,
    /// By slot.
    pub brokers: Vec<BrokerGhost>,
    /// Ends and hashes of the committed metadata log, ascending.
    pub committed: Vec<(i64, u64)>,
    /// The epoch of the last record that is committed; −1: not known.
    pub committed_in: LeaderEpoch,
    /// Who led the quorum, by epoch.
    pub led: BTreeMap<LeaderEpoch, NodeId>,
    /// Votes that were given, by epoch and voter.
    pub votes: BTreeMap<(LeaderEpoch, NodeId), NodeId>,
    /// Controllers whose disk was lost since the last one was: the metadata log has nothing to be held to when a majority was.
    pub lost: std::collections::BTreeSet<NodeId>,
    /// Log ends that were durable when a broker was about to stop, by slot and partition.
    pub promised: BTreeMap<(u16, PartitionIx), Offset>,
    /// Replicas as they were when a copy of their disks was made, by slot and partition.
    pub copies: BTreeMap<(u16, PartitionIx), Copied>,
    /// What clients were told as ends, by client and partition: the lineage and the end.
    pub told_ends: BTreeMap<(u32, PartitionIx), (u32, Offset)>,
    /// How far the partitions of `__mirror_state` were read, and in which lineage. Empty: there is no such topic yet.
    pub states_read: BTreeMap<PartitionIx, (Offset, u32)>,
    /// What was ordered of mirrored topics.
    pub orders: BTreeMap<TopicIx, Orders>,
    /// Topics that were deleted.
    pub removed: std::collections::BTreeSet<TopicIx>,
    /// Where a reader of committed records ended, by consumer and partition.
    pub read_ends: BTreeMap<(u32, PartitionIx), Offset>,
}

impl ClusterGhost {
    /// A partition that an event tells of, made if need be.
    #[inline]
    pub fn partition(&mut self, ix: PartitionIx) -> &mut PartitionGhost {
        let at = ix.0 as usize;
        if at >= self.partitions.len() {
            self.grow(at);
        }
        let g = &mut self.partitions[at];
        if !g.touched {
            g.touched = true;
            self.touched.push_back(ix);
        }
        g
    }
    /// A partition was swept, which touches it and is no news.
    pub fn was_swept(&mut self, ix: PartitionIx) {
        if self.touched.back() == Some(&ix) {
            self.touched.pop_back();
            self.partitions[ix.0 as usize].touched = false;
        }
    }

    /// The next partition that was touched; it counts as swept.
    pub fn take_touched(&mut self) -> Option<PartitionIx> {
        let ix = self.touched.pop_front()?;
        self.partitions[ix.0 as usize].touched = false;
        Some(ix)
    }
    #[cold]
    fn grow(&mut self, at: usize) {
        // By an eighth: it is the largest thing that the checks hold, and must not stand half empty.
        let room = self.partitions.len() / 8;
        self.partitions.reserve_exact(at + 1 + room - self.partitions.len());
        self.partitions.resize_with(at + 1, PartitionGhost::default);
    }
    /// A broker, made if need be.
    pub fn broker(&mut self, slot: u16) -> &mut BrokerGhost {
        let at = usize::from(slot);
        if at >= self.brokers.len() {
            self.brokers.resize_with(at + 1, BrokerGhost::default);
        }
        &mut self.brokers[at]
    }
}

/// All clusters.
#[derive(Clone, Debug, Default)]
pub struct Ghost {
    /// By cluster number.
    pub clusters: Vec<ClusterGhost>,
    /// What was said of transactions.
    pub said: super::transactions::Said,
}

/// Makes sure that the members of a partition are known: from the node's own metadata, else from the controller's.
#[cold]
pub fn seat<S: Sight>(g: &mut PartitionGhost, sight: &S, cluster: u8, node: Option<NodeId>, partition: PartitionIx) {
    if let Some(image) = node.and_then(|n| sight.broker_image(n)).filter(|i| i.partition(partition).is_some()) {
        g.seat(image, partition);
    } else if let Some(image) = sight.image(cluster) {
        g.seat(image, partition);
    }
}

/// Follows the committed log as far as it goes, from whichever replica holds it.
pub fn extend_chain<S: Sight>(g: &mut PartitionGhost, sight: &S, roster: &Roster, cluster: u8, partition: PartitionIx) {
    let to = g.true_hw;
    // What was copied compacted may go further than what is committed, and be cut again.
    let compacted = g.compacted().min(to);
    if let Some(more) = g.more.as_mut() {
        more.chain.begin_above(compacted);
    }
    if to == Offset::ZERO || g.more.as_ref().is_some_and(|m| m.chain.end >= to) {
        return;
    }
    let lead = g.lead.slot;
    let first = g.position(lead);
    let order: SmallVec<[u16; 4]> = first
        .map(|at| g.members[at].slot)
        .into_iter()
        .chain(g.of_mask(g.isr).map(|(_, m)| m.slot).filter(|s| *s != lead))
        .collect();
    for slot in order {
        let Some(node) = roster.broker(cluster, slot) else { continue };
        let Some(replica) = sight.replica(node, partition).filter(|r| r.log.end() >= to) else { continue };
        g.more().chain.extend(replica.log, to);
        return;
    }
}
