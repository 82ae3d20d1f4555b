//! The steps of a timeline: when, and what. Sentences on each action are what the JSON schema tells an editor.

use super::condition::Condition;
use super::types::Config;
use crate::units::{Bandwidth, Chance, Drift, SignedTime, Size, Time};
use schemars::JsonSchema;
use serde::Serialize;

pub use super::places::{After, NodeRef, Place};

/// Which traffic a partition stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Brokers with their controllers.
    Controller,
    /// Fetches between brokers of one cluster.
    Replication,
    /// Mirror fetchers and coordinators with the source cluster.
    Mirror,
    /// Producers, consumers and operators.
    Client,
}

impl Role {
    /// All, by name.
    pub const NAMED: &'static [(&'static str, Self)] = &[
        ("controller", Self::Controller),
        ("replication", Self::Replication),
        ("mirror", Self::Mirror),
        ("client", Self::Client),
    ];
}

/// Which disk calls fail or wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Default)]
#[serde(rename_all = "kebab-case")]
pub enum DiskCall {
    /// All.
    #[default]
    Any,
    /// Reads.
    Read,
    /// Appends, creations, renames, truncations.
    Write,
    /// Flushes of files and directories.
    Flush,
}

impl DiskCall {
    /// All, by name.
    pub const NAMED: &'static [(&'static str, Self)] =
        &[("any", Self::Any), ("read", Self::Read), ("write", Self::Write), ("flush", Self::Flush)];
}

/// What a power loss takes of what was not flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Loses {
    /// Each file and directory draws on its own.
    #[default]
    Drawn,
    /// All of it: bytes, names, truncations.
    Unflushed,
    /// Files end within an append, or with noise.
    Tails,
    /// Files are as long as they were, and end with noise.
    Spoilt,
    /// Names are as before; what files hold is there.
    Names,
}

impl Loses {
    /// All, by name.
    pub const NAMED: &'static [(&'static str, Self)] = &[
        ("drawn", Self::Drawn),
        ("unflushed", Self::Unflushed),
        ("tails", Self::Tails),
        ("spoilt", Self::Spoilt),
        ("names", Self::Names),
    ];

    #[allow(clippy::trivially_copy_pass_by_ref)] // as serde wants it
    fn is_drawn(&self) -> bool {
        *self == Self::Drawn
    }
}

/// What the answers of a foreign cluster are wrong about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answers {
    /// Ends of epochs: as they were when it was first asked.
    Epochs,
    /// Who leads: the broker itself that was wrongly asked.
    Leaders,
    /// Topics, partitions and leaders: as they were when it was first asked.
    Metadata,
    /// Batches: the first one of a partition again, behind the last.
    Batches,
}

impl Answers {
    /// All, by name.
    pub const NAMED: &'static [(&'static str, Self)] = &[
        ("epochs", Self::Epochs),
        ("leaders", Self::Leaders),
        ("metadata", Self::Metadata),
        ("batches", Self::Batches),
    ];
}

/// Who becomes leader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Elect {
    /// This broker, if it is in sync.
    To(NodeRef),
    /// The preferred replica.
    Preferred(bool),
    /// Any live replica, in sync or not.
    Unclean(bool),
    /// The n-th in-sync replica that does not lead, counted round.
    Pick(u32),
}

/// Whose log wins when a diverged mirror is recovered (decision 39).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// The source's: what differs here is cut.
    Source,
    /// The destination's: the mirror stays stopped.
    Destination,
}

impl Keep {
    /// All, by name.
    pub const NAMED: &'static [(&'static str, Self)] = &[("source", Self::Source), ("destination", Self::Destination)];
}

/// Whose config is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfigTarget {
    /// A topic of `on`.
    Topic(String),
    /// One broker of a cluster, or all of them.
    Node(NodeRef),
    /// A mirror.
    Mirror(String),
}

/// When a step is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Trigger {
    /// By time, once or repeatedly.
    At {
        /// Since the start of the safety phase.
        at: Time,
        /// Again this often.
        #[serde(skip_serializing_if = "Option::is_none")]
        every: Option<Time>,
        /// So many times in all. Default with `every`: until the end of the safety phase.
        #[serde(skip_serializing_if = "Option::is_none")]
        times: Option<u32>,
    },
    /// Once, when a condition first holds.
    When {
        /// The condition.
        when: Condition,
        /// Not at once but so much later.
        #[serde(skip_serializing_if = "Option::is_none")]
        after: Option<After>,
        /// The condition must hold by then, counted from the start of the safety phase, else the run is unmet. Default:
        /// the end of the safety phase.
        #[serde(skip_serializing_if = "Option::is_none")]
        within: Option<Time>,
    },
}

impl Trigger {
    /// How often it comes true in a safety phase of that length.
    #[must_use]
    pub fn times(&self, safety: Time) -> u64 {
        match self {
            Self::At { at, every: Some(every), times } => {
                let fits = safety.0.saturating_sub(at.0) / every.0.max(1) + 1;
                times.map_or(fits, u64::from)
            }
            _ => 1,
        }
    }
}

/// One step of a timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Step {
    /// A name, for `done(NAME)` in conditions and for reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When.
    #[serde(flatten)]
    pub trigger: Trigger,
    /// True: the heal phase leaves this fault in place.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub permanent: bool,
    /// True: it strikes only if the replicas of all that is there could make good what it may take; else it is left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub within_tolerance: bool,
    /// The order is given once, and this is how it must be answered, by the name of the error (`NONE`: accepted, `ANY`: whatever
    /// comes); else the run is unmet. Default: an order is repeated until it is accepted or its time is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_error: Option<String>,
    /// Which of its cluster's operators gives the order: each gives one after the other, and they do so side by side. Default 1.
    #[serde(skip_serializing_if = "is_first")]
    pub operator: u32,
    /// What.
    #[serde(flatten)]
    pub action: Action,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde wants it
fn is_first(operator: &u32) -> bool {
    *operator == 1
}

/// `expect_error`: any answer will do.
pub const ANY_ANSWER: &str = "ANY";

impl Step {
    /// An order that was to be given once is given once, and what is answered or printed does not matter.
    pub fn ignore_answers(&mut self) {
        if let Some(expected) = &mut self.expect_error {
            ANY_ANSWER.clone_into(expected);
        }
        if let Action::Cli { expect_exit, expect_output, expect_stderr, .. } = &mut self.action {
            (*expect_exit, *expect_output, *expect_stderr) = (None, None, None);
        }
    }
}

/// What is done. Names and fields are those of scenario files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "do", rename_all = "kebab-case")]
#[allow(missing_docs)] // the fields are named after what they are; each variant says what is done
pub enum Action {
    // -- processes
    /// The machine loses power: unflushed data is lost by the rules of the disk, or as `loses` says.
    /// `inside_task`: not now, but in the middle of the next task that writes to the disk.
    PowerLoss {
        node: NodeRef,
        #[serde(skip_serializing_if = "Option::is_none")]
        restart_after: Option<Time>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        inside_task: bool,
        #[serde(skip_serializing_if = "Loses::is_drawn")]
        loses: Loses,
    },
    /// The process is killed: the page cache stays. `inside_task`: not now, but in the middle of the next task that writes
    /// to the disk, after a drawn one of its disk calls and effects.
    Kill {
        node: NodeRef,
        #[serde(skip_serializing_if = "Option::is_none")]
        restart_after: Option<Time>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        inside_task: bool,
    },
    /// The process is killed (`power`: its machine loses power), starts at once, and goes down again while it starts: after a
    /// drawn one of its disk calls and effects.
    CrashAtStart {
        node: NodeRef,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        power: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        restart_after: Option<Time>,
    },
    /// Controlled shutdown.
    Shutdown {
        node: NodeRef,
        #[serde(skip_serializing_if = "Option::is_none")]
        restart_after: Option<Time>,
    },
    /// The disk is emptied; the process is killed first.
    Wipe {
        node: NodeRef,
        #[serde(skip_serializing_if = "Option::is_none")]
        restart_after: Option<Time>,
    },
    /// A process that is down starts.
    Start { node: NodeRef },
    /// Controlled shutdown and start again.
    Restart { node: NodeRef },
    /// The process stands still; connections stay open.
    Pause {
        node: NodeRef,
        #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
        lasting: Option<Time>,
    },
    /// A paused process goes on.
    Resume { node: NodeRef },
    // -- network
    /// Traffic stops: between two places, or between a node and everybody, or of one role.
    Partition {
        #[serde(skip_serializing_if = "Option::is_none")]
        between: Option<[Place; 2]>,
        #[serde(skip_serializing_if = "Option::is_none")]
        node: Option<NodeRef>,
        #[serde(skip_serializing_if = "Option::is_none")]
        role: Option<Role>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        one_way: bool,
        #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
        lasting: Option<Time>,
    },
    /// Partitions end: that of the named step, or all.
    Heal {
        #[serde(skip_serializing_if = "Option::is_none")]
        step: Option<String>,
    },
    /// A link has another latency (and jitter).
    Latency {
        link: String,
        latency: Time,
        #[serde(skip_serializing_if = "Option::is_none")]
        jitter: Option<Time>,
        #[serde(skip_serializing_if = "Option::is_none")]
        toward: Option<String>,
        #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
        lasting: Option<Time>,
    },
    /// A link loses packets.
    Loss {
        link: String,
        loss: Chance,
        #[serde(skip_serializing_if = "Option::is_none")]
        toward: Option<String>,
        #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
        lasting: Option<Time>,
    },
    /// A link has another bandwidth.
    Bandwidth {
        link: String,
        bandwidth: Bandwidth,
        #[serde(skip_serializing_if = "Option::is_none")]
        toward: Option<String>,
        #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
        lasting: Option<Time>,
    },
    /// Connections over a link, or of a node, are reset at both ends; `silent`: nothing passes any more, and neither end is
    /// told.
    ResetConnections {
        #[serde(skip_serializing_if = "Option::is_none")]
        link: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        node: Option<NodeRef>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        silent: bool,
    },
    /// Messages of a kind (`any`: all), `from` a place `to` a place if these are named, arrive `extra` late and twice: the
    /// copy right behind the first, on the same connection.
    Duplicate {
        kind: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<Place>,
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<Place>,
        probability: Chance,
        extra: Time,
        #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
        lasting: Option<Time>,
    },
    /// Messages of a kind (`any`: all), `from` a place `to` a place if these are named, arrive `extra` late, and what follows
    /// on the same connection behind them.
    DelayMessages {
        kind: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<Place>,
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<Place>,
        probability: Chance,
        extra: Time,
        #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
        lasting: Option<Time>,
    },
    // -- disks
    /// No space is left.
    DiskFull {
        node: NodeRef,
        #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
        lasting: Option<Time>,
    },
    /// Calls fail.
    DiskError {
        node: NodeRef,
        call: DiskCall,
        probability: Chance,
        #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
        lasting: Option<Time>,
    },
    /// Flushes do not end.
    DiskStall {
        node: NodeRef,
        call: DiskCall,
        #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
        lasting: Option<Time>,
    },
    /// Calls of a kind take `by` longer.
    DiskSlow {
        node: NodeRef,
        call: DiskCall,
        by: Time,
        #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
        lasting: Option<Time>,
    },
    /// Bits flip in a replica's log.
    BitRot { node: NodeRef, topic: String, partition: u32, bits: u32 },
    // -- clocks and lanes
    /// The wall clock jumps.
    ClockJump { node: NodeRef, by: SignedTime },
    /// The clock runs fast or slow.
    ClockDrift {
        node: NodeRef,
        rate: Drift,
        #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
        lasting: Option<Time>,
    },
    /// Metadata reaches a broker late.
    DelayMetadata {
        node: NodeRef,
        by: Time,
        #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
        lasting: Option<Time>,
    },
    /// Tasks of one lane wait longer.
    SlowLane {
        node: NodeRef,
        lane: String,
        by: Time,
        #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
        lasting: Option<Time>,
    },
    // -- operators of a cluster
    /// Another leader.
    Elect {
        on: String,
        topic: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        partition: Option<u32>,
        #[serde(flatten)]
        elect: Elect,
    },
    /// A topic is created; with `id_of` it gets the id of the topic of the same name on that cluster, as a mirror needs it.
    CreateTopic {
        on: String,
        topic: String,
        partitions: u32,
        rf: u32,
        config: Config,
        #[serde(skip_serializing_if = "Option::is_none")]
        id_of: Option<String>,
    },
    /// A topic is deleted.
    DeleteTopic { on: String, topic: String },
    /// A topic grows to so many partitions.
    AddPartitions { on: String, topic: String, partitions: u32 },
    /// Config entries are set, others removed.
    SetConfig {
        on: String,
        #[serde(flatten)]
        target: ConfigTarget,
        config: Config,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        remove: Vec<String>,
    },
    /// Records below an offset are deleted.
    DeleteRecords {
        on: String,
        topic: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        partition: Option<u32>,
        before: u64,
    },
    /// The leader epoch rises above `min`.
    BumpEpoch {
        on: String,
        topic: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        partition: Option<u32>,
        min: u32,
    },
    /// The cluster's processes say another cluster id from now on, and after restarts: its address leads to another cluster. With
    /// a `node` only that one does: its disk was formatted for another cluster.
    SetClusterId {
        on: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        node: Option<NodeRef>,
        id: String,
    },
    /// A copy is kept of what the disks of the cluster's brokers hold.
    SnapshotCluster { on: String },
    /// The cluster's brokers are set back to the last copy of their disks: killed, and started again on it.
    RestoreCluster { on: String },
    /// What the cluster answers the brokers of others is now and then what it answered before, or what it could have: as another
    /// implementation might.
    Foreign {
        on: String,
        answers: Answers,
        probability: Chance,
        #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
        lasting: Option<Time>,
    },
    // -- operators of a mirror
    /// A mirror that was declared `later` is created.
    CreateMirror { mirror: String },
    /// Topics are started; default: those of the mirror.
    StartMirror {
        mirror: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        topics: Vec<String>,
    },
    /// Topics are stopped; default: all of the mirror.
    StopMirror {
        mirror: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        topics: Vec<String>,
    },
    /// Topics are paused; default: all of the mirror.
    PauseMirror {
        mirror: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        topics: Vec<String>,
    },
    /// Topics are resumed; default: all of the mirror.
    ResumeMirror {
        mirror: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        topics: Vec<String>,
    },
    /// Failed topics are recovered; default: all of the mirror.
    RecoverMirror {
        mirror: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        topics: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        keep: Option<Keep>,
    },
    /// The mirror is deleted.
    DeleteMirror { mirror: String },
    /// An operator of the cluster calls the tool `kafka-cluster-mirrors` with these arguments, split at spaces; where it goes is
    /// filled in (`--bootstrap-server`). What it prints is part of the record.
    Cli {
        on: String,
        args: String,
        /// Files that the arguments name, as text: settings for `--mirror-config`. In `bootstrap.servers` the name of a cluster
        /// stands for its brokers.
        #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
        files: std::collections::BTreeMap<String, String>,
        /// How it must end, else the run is unmet: 0 or 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        expect_exit: Option<u32>,
        /// What it must print on standard output, else the run is unmet.
        #[serde(skip_serializing_if = "Option::is_none")]
        expect_output: Option<String>,
        /// What it must print on standard error, else the run is unmet.
        #[serde(skip_serializing_if = "Option::is_none")]
        expect_stderr: Option<String>,
    },
    // -- clients
    /// A client begins.
    StartClient { client: String },
    /// A client ends in order.
    StopClient { client: String },
    /// A producer sends so many records at once, beside its rate.
    Produce {
        producer: String,
        records: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        record: Option<Size>,
    },
}

impl Action {
    /// The name after `do =`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::PowerLoss { .. } => "power-loss",
            Self::Kill { .. } => "kill",
            Self::CrashAtStart { .. } => "crash-at-start",
            Self::Shutdown { .. } => "shutdown",
            Self::Wipe { .. } => "wipe",
            Self::Start { .. } => "start",
            Self::Restart { .. } => "restart",
            Self::Pause { .. } => "pause",
            Self::Resume { .. } => "resume",
            Self::Partition { .. } => "partition",
            Self::Heal { .. } => "heal",
            Self::Latency { .. } => "latency",
            Self::Loss { .. } => "loss",
            Self::Bandwidth { .. } => "bandwidth",
            Self::ResetConnections { .. } => "reset-connections",
            Self::Duplicate { .. } => "duplicate",
            Self::DelayMessages { .. } => "delay-messages",
            Self::DiskFull { .. } => "disk-full",
            Self::DiskError { .. } => "disk-error",
            Self::DiskStall { .. } => "disk-stall",
            Self::DiskSlow { .. } => "disk-slow",
            Self::BitRot { .. } => "bit-rot",
            Self::ClockJump { .. } => "clock-jump",
            Self::ClockDrift { .. } => "clock-drift",
            Self::DelayMetadata { .. } => "delay-metadata",
            Self::SlowLane { .. } => "slow-lane",
            Self::Elect { .. } => "elect",
            Self::CreateTopic { .. } => "create-topic",
            Self::DeleteTopic { .. } => "delete-topic",
            Self::AddPartitions { .. } => "add-partitions",
            Self::SetConfig { .. } => "set-config",
            Self::DeleteRecords { .. } => "delete-records",
            Self::BumpEpoch { .. } => "bump-epoch",
            Self::SetClusterId { .. } => "set-cluster-id",
            Self::SnapshotCluster { .. } => "snapshot-cluster",
            Self::RestoreCluster { .. } => "restore-cluster",
            Self::Foreign { .. } => "foreign",
            Self::CreateMirror { .. } => "create-mirror",
            Self::StartMirror { .. } => "start-mirror",
            Self::StopMirror { .. } => "stop-mirror",
            Self::PauseMirror { .. } => "pause-mirror",
            Self::ResumeMirror { .. } => "resume-mirror",
            Self::RecoverMirror { .. } => "recover-mirror",
            Self::DeleteMirror { .. } => "delete-mirror",
            Self::Cli { .. } => "cli",
            Self::StartClient { .. } => "start-client",
            Self::StopClient { .. } => "stop-client",
            Self::Produce { .. } => "produce",
        }
    }

    /// Whether it is a fault with a duration, which the heal phase ends unless it is permanent.
    #[must_use]
    pub const fn can_last(&self) -> bool {
        matches!(
            self,
            Self::PowerLoss { .. }
                | Self::Kill { .. }
                | Self::CrashAtStart { .. }
                | Self::Shutdown { .. }
                | Self::Wipe { .. }
                | Self::Pause { .. }
                | Self::Partition { .. }
                | Self::Latency { .. }
                | Self::Loss { .. }
                | Self::Bandwidth { .. }
                | Self::Duplicate { .. }
                | Self::DelayMessages { .. }
                | Self::DiskFull { .. }
                | Self::DiskError { .. }
                | Self::DiskStall { .. }
                | Self::DiskSlow { .. }
                | Self::ClockDrift { .. }
                | Self::DelayMetadata { .. }
                | Self::SlowLane { .. }
                | Self::Foreign { .. }
        )
    }

    /// How long it lasts, if it says.
    #[must_use]
    pub const fn lasting(&self) -> Option<Time> {
        match self {
            Self::PowerLoss { restart_after: lasting, .. }
            | Self::Kill { restart_after: lasting, .. }
            | Self::CrashAtStart { restart_after: lasting, .. }
            | Self::Shutdown { restart_after: lasting, .. }
            | Self::Wipe { restart_after: lasting, .. }
            | Self::Pause { lasting, .. }
            | Self::Partition { lasting, .. }
            | Self::Latency { lasting, .. }
            | Self::Loss { lasting, .. }
            | Self::Bandwidth { lasting, .. }
            | Self::Duplicate { lasting, .. }
            | Self::DelayMessages { lasting, .. }
            | Self::DiskFull { lasting, .. }
            | Self::DiskError { lasting, .. }
            | Self::DiskStall { lasting, .. }
            | Self::DiskSlow { lasting, .. }
            | Self::ClockDrift { lasting, .. }
            | Self::DelayMetadata { lasting, .. }
            | Self::SlowLane { lasting, .. }
            | Self::Foreign { lasting, .. } => *lasting,
            _ => None,
        }
    }

    /// Whether it may take what a broker was told to keep, or leave a doubt about it: an unclean stop, or a disk that fails.
    #[must_use]
    pub const fn may_lose(&self) -> bool {
        matches!(
            self,
            Self::PowerLoss { .. }
                | Self::Kill { .. }
                | Self::CrashAtStart { .. }
                | Self::Wipe { .. }
                | Self::DiskFull { .. }
                | Self::DiskError { .. }
        )
    }

    /// Whether it is done within what replicas can stand only if others are sound just then: it may lose something, or it goes in
    /// order and leaves what it had to them.
    #[must_use]
    pub const fn leans_on_others(&self) -> bool {
        self.may_lose() || matches!(self, Self::Shutdown { .. })
    }

    /// The node that it is about, if it names one.
    #[must_use]
    pub const fn node(&self) -> Option<&NodeRef> {
        match self {
            Self::PowerLoss { node, .. }
            | Self::Kill { node, .. }
            | Self::CrashAtStart { node, .. }
            | Self::Shutdown { node, .. }
            | Self::Wipe { node, .. }
            | Self::Start { node }
            | Self::Restart { node }
            | Self::Pause { node, .. }
            | Self::Resume { node }
            | Self::Partition { node: Some(node), .. }
            | Self::ResetConnections { node: Some(node), .. }
            | Self::DiskFull { node, .. }
            | Self::DiskError { node, .. }
            | Self::DiskStall { node, .. }
            | Self::DiskSlow { node, .. }
            | Self::BitRot { node, .. }
            | Self::ClockJump { node, .. }
            | Self::ClockDrift { node, .. }
            | Self::DelayMetadata { node, .. }
            | Self::SlowLane { node, .. } => Some(node),
            _ => None,
        }
    }

    /// The node whose service it harms, if it is one.
    #[must_use]
    pub const fn struck(&self) -> Option<&NodeRef> {
        match self {
            Self::Partition { between: Some([Place::Node(node), _]), node: None, .. } => Some(node),
            // It is helped, hardly hurt, or found out later.
            Self::Start { .. }
            | Self::Restart { .. }
            | Self::Resume { .. }
            | Self::ResetConnections { .. }
            | Self::DiskSlow { .. }
            | Self::BitRot { .. }
            | Self::ClockDrift { .. } => None,
            _ => self.node(),
        }
    }

    /// Whether a run can do it: a step that would silently do nothing is refused instead.
    #[must_use]
    pub const fn is_carried_out(&self) -> bool {
        !matches!(self, Self::Produce { record: Some(_), .. } | Self::Produce { records: 10_000_001.., .. })
    }

    /// Whether an operator's client of a cluster sends it: elections go straight to the controller.
    #[must_use]
    pub fn is_operators(&self) -> bool {
        self.is_order() && !matches!(self, Self::Elect { .. }) || matches!(self, Self::Cli { .. })
    }

    /// Whether it orders something of a cluster that can be refused.
    #[must_use]
    pub fn is_order(&self) -> bool {
        Self::ORDERS.contains(&self.name())
    }

    /// The names of those that order something of a cluster that can be refused.
    pub const ORDERS: &'static [&'static str] = &[
        "elect",
        "create-topic",
        "delete-topic",
        "add-partitions",
        "set-config",
        "delete-records",
        "bump-epoch",
        "create-mirror",
        "start-mirror",
        "stop-mirror",
        "pause-mirror",
        "resume-mirror",
        "recover-mirror",
        "delete-mirror",
    ];

    /// All names, in the order of this file.
    pub const NAMES: &'static [&'static str] = &[
        "power-loss",
        "kill",
        "crash-at-start",
        "shutdown",
        "wipe",
        "start",
        "restart",
        "pause",
        "resume",
        "partition",
        "heal",
        "latency",
        "loss",
        "bandwidth",
        "reset-connections",
        "duplicate",
        "delay-messages",
        "disk-full",
        "disk-error",
        "disk-stall",
        "disk-slow",
        "bit-rot",
        "clock-jump",
        "clock-drift",
        "delay-metadata",
        "slow-lane",
        "elect",
        "create-topic",
        "delete-topic",
        "add-partitions",
        "set-config",
        "delete-records",
        "bump-epoch",
        "set-cluster-id",
        "snapshot-cluster",
        "restore-cluster",
        "foreign",
        "create-mirror",
        "start-mirror",
        "stop-mirror",
        "pause-mirror",
        "resume-mirror",
        "recover-mirror",
        "delete-mirror",
        "cli",
        "start-client",
        "stop-client",
        "produce",
    ];
}
