//! `[chaos]`: faults and operator actions by weight, within budgets. The planner draws the strikes; see `plan::chaos`.

use crate::units::{Chance, Time};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

macro_rules! kinds {
    ($( $name:ident $key:literal $says:literal; )*) => {
        /// What chaos can do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum ChaosKind { $( #[doc = $says] $name ),* }
        impl ChaosKind {
            /// All, by key.
            pub const NAMED: &'static [(&'static str, Self)] = &[ $( ($key, Self::$name) ),* ];
        }
    };
}

// New kinds come last: the order is that of the weights from which strikes are drawn.
kinds! {
    Crash "crash" "A broker's process is killed; the page cache stays.";
    PowerLoss "power_loss" "A broker loses power; unflushed data is lost by the rules of the disk.";
    Shutdown "shutdown" "A broker shuts down in order.";
    Pause "pause" "A broker stands still.";
    Partition "partition" "A broker is cut off from everybody.";
    OneWay "one_way" "A broker hears nothing, but is heard.";
    LinkDown "link_down" "A link between two sites is down.";
    LatencySpike "latency_spike" "A link is slower by up to a second.";
    Loss "loss" "A link loses up to a tenth of its packets.";
    Reset "reset" "All connections over a link are reset.";
    Election "election" "Another in-sync replica is made leader.";
    DiskStall "disk_stall" "A broker's disk answers nothing.";
    DiskFull "disk_full" "A broker's disk is full.";
    ClockJump "clock_jump" "A broker's wall clock jumps by up to a minute, either way.";
    SlowLane "slow_lane" "One lane of a broker is slow.";
    DelayMetadata "delay_metadata" "A broker gets metadata late.";
    ClientPause "client_pause" "A client stands still.";
    MirrorPause "mirror_pause" "A mirror's topics are paused, then resumed.";
    MirrorStop "mirror_stop" "A mirror's topics are stopped, then started.";
    ControllerCrash "controller_crash" "A controller of a quorum is killed; the page cache stays.";
    ControllerPowerLoss "controller_power_loss" "A controller of a quorum loses power.";
    ControllerPause "controller_pause" "A controller of a quorum stands still.";
    ControllerPartition "controller_partition" "A controller of a quorum is cut off from everybody.";
    Wipe "wipe" "A broker loses its disk and starts with an empty one.";
    QuickRestart "quick_restart" "A broker is killed, or loses power, and is back before its session is over.";
    DoubleBounce "double_bounce" "A broker goes down twice in a row, the second time soon after it is back.";
    CrashAtStart "crash_at_start" "A broker goes down, and once more while it starts.";
    RollingRestart "rolling_restart" "The brokers of a cluster are restarted in order, one after the other.";
    TornTail "torn_tail" "A broker loses power in the middle of its writes: files end inside an append.";
    LostUnflushed "lost_unflushed" "A broker loses power, and with it everything that was not flushed.";
    LostNames "lost_names" "A broker loses power: new, removed and renamed files are as before; what files hold is there.";
    PowerLossOfAll "power_loss_of_all" "All brokers of a cluster lose power at once. Beyond tolerance.";
    AbaLeadership "aba_leadership" "The leadership of a partition goes to another broker and back, twice.";
    ElectionBurst "election_burst" "The leaders of all partitions of a topic move several times in a row; of one without traffic, if there is one.";
    EpochBump "epoch_bump" "The leader epoch of a partition rises; the leader stays.";
    UncleanElection "unclean_election" "A broker falls behind, the others lose power, and it is made leader. Beyond tolerance.";
    ControllerCut "controller_cut" "A broker and the controllers do not hear each other.";
    CoordinatorCut "coordinator_cut" "A mirror's coordinator and the other brokers of its cluster do not hear each other.";
    MirrorCut "mirror_cut" "Two clusters' brokers do not hear each other; their clients do. One time in two it is one way only.";
    Flapping "flapping" "A broker, or the traffic between two clusters, is cut off again and again.";
    BandwidthCollapse "bandwidth_collapse" "A link has a hundredth of the bandwidth, or less.";
    LateMessages "late_messages" "Answers of one kind arrive late, beyond what they were about.";
    DuplicateMessages "duplicate_messages" "Answers of one kind arrive twice.";
    Reordering "reordering" "Messages arrive late by chance, so that connections overtake each other.";
    DiskError "disk_error" "A broker's disk reports errors.";
    DiskSlow "disk_slow" "A broker's disk is slow.";
    BitRot "bit_rot" "Bits flip in a replica's log. Beyond tolerance.";
    ClockOffset "clock_offset" "A broker's wall clock is off by up to a minute, either way, for a while.";
    ClockDrift "clock_drift" "A broker's clock runs fast or slow by up to a twentieth.";
    SlowLoad "slow_load" "A mirror's states get another coordinator, which is slow to load them.";
    FailingLoad "failing_load" "A mirror's states get another coordinator, whose disk fails to read.";
    MirrorDelete "mirror_delete" "A mirror is stopped, deleted, and created again.";
    MirrorRecover "mirror_recover" "What failed of a mirror is recovered, whether something did or not.";
    WrongDirection "wrong_direction" "A mirror that was declared `later` and runs against one that stands is created, started, stopped and deleted.";
    PromoteAll "promote_all" "All mirrors are stopped at once, so that all sides may be written to; then started.";
    RepeatedOrders "repeated_orders" "A mirror's topics are started or resumed several times in a row, whatever they do.";
    ScriptRerun "script_rerun" "An operator's script ends in the middle, and is run again from its start.";
    TopicRecreated "topic_recreated" "A topic is deleted where a mirror copies it from, and created again.";
    CopyDeleted "copy_deleted" "A mirrored topic is stopped, its copy is deleted, and it is started again.";
    PartitionGrowth "partition_growth" "A topic gets more partitions.";
    TopicConfig "topic_config" "A setting of a topic is edited, then as before.";
    MirrorConfig "mirror_config" "A setting of a mirror is edited, then as before.";
    Retention "retention" "A topic keeps its records for a second, then as before.";
    DeleteRecords "delete_records" "The first records of a partition are deleted.";
    SourceReplaced "source_replaced" "The address of a mirror's source leads to another cluster, then back.";
    ForeignEpochs "foreign_epochs" "A mirror's source tells old ends of epochs.";
    ForeignLeaders "foreign_leaders" "A mirror's source names wrong leaders.";
    ForeignMetadata "foreign_metadata" "A mirror's source shows an old view of its topics.";
    SourceRestored "source_restored" "The brokers of a mirror's source are set back to what their disks held before. Beyond tolerance.";
}

impl ChaosKind {
    /// Whether it hits a controller; no more than a minority of a quorum is out of service at once.
    #[must_use]
    pub const fn hits_controller(self) -> bool {
        matches!(
            self,
            Self::ControllerCrash | Self::ControllerPowerLoss | Self::ControllerPause | Self::ControllerPartition
        )
    }

    /// Whether it takes a broker out of service, so that `max_down` counts it.
    #[must_use]
    pub const fn takes_down(self) -> bool {
        matches!(
            self,
            Self::Crash
                | Self::PowerLoss
                | Self::Shutdown
                | Self::Pause
                | Self::Partition
                | Self::OneWay
                | Self::DiskStall
                | Self::DiskFull
                | Self::Wipe
                | Self::QuickRestart
                | Self::DoubleBounce
                | Self::CrashAtStart
                | Self::RollingRestart
                | Self::TornTail
                | Self::LostUnflushed
                | Self::LostNames
                | Self::PowerLossOfAll
                | Self::UncleanElection
                | Self::ControllerCut
                | Self::CoordinatorCut
                | Self::DiskError
                | Self::FailingLoad
        ) || self.hits_controller()
    }

    /// Whether it can take what was acknowledged, however careful the protocol is: only where `mode` says so.
    #[must_use]
    pub const fn is_beyond_tolerance(self) -> bool {
        matches!(
            self,
            Self::ForeignEpochs | Self::PowerLossOfAll | Self::UncleanElection | Self::BitRot | Self::SourceRestored
        )
    }

    /// The shortest and the longest that it lasts, unless the file says otherwise.
    #[must_use]
    pub const fn default_length(self) -> (Time, Time) {
        match self {
            // Sessions have to end before anybody else is elected.
            Self::UncleanElection => (Time::secs(30), Time::secs(45)),
            // Several orders, each of which waits for a state.
            Self::MirrorDelete
            | Self::CopyDeleted
            | Self::ScriptRerun
            | Self::SourceRestored
            | Self::RollingRestart => (Time::secs(3), Time::secs(15)),
            _ => (Time::millis(100), Time::secs(5)),
        }
    }

    /// Whether it ends processes at once, so that a crash can fall inside a task.
    #[must_use]
    pub const fn can_fall_inside_a_task(self) -> bool {
        matches!(self, Self::Crash | Self::PowerLoss | Self::QuickRestart | Self::DoubleBounce)
    }
}

/// What chaos may do to acknowledged records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Nothing: a strike that replicas could not make good is left out, so every loss is the system's fault.
    WithinTolerance,
    /// Anything: then damage has to be noticed and told, not survived.
    BeyondTolerance,
}

impl Mode {
    /// Both, by name.
    pub const NAMED: &'static [(&'static str, Self)] =
        &[("within_tolerance", Self::WithinTolerance), ("beyond_tolerance", Self::BeyondTolerance)];
}

/// How often, how long, how many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Strike {
    /// Its share among all weights; 0: never. Default 1.
    pub weight: u32,
    /// Shortest. Default 100 ms; for what takes several orders more.
    pub min: Time,
    /// Longest. Default 5 s; for what takes several orders more.
    pub max: Time,
    /// Most strikes of this kind in a run. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Kinds that end a process at once: how many of them fall into the middle of the next task that writes to the disk. Default 0.
    #[serde(skip_serializing_if = "is_never")]
    pub inside_task: Chance,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde wants it
fn is_never(chance: &Chance) -> bool {
    chance.0 == 0
}

/// The weights and budgets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Chaos {
    /// Mean time from one strike to the next. Default 5 s.
    pub every: Time,
    /// First instant. Default 5 s.
    pub start: Time,
    /// Last instant. Default: the end of the safety phase.
    pub stop: Time,
    /// Most brokers of one cluster that are out of service at once. Default 1.
    pub max_down: u32,
    /// Most strikes under way at once, over all. Default 4.
    pub max_at_once: u32,
    /// What it may do to acknowledged records. Default: whatever the budgets allow; a loss that its faults account for is excused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Whether each point of perturbation is armed with a chance of one in four (see `perturb` of the file). Default false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub perturb: bool,
    /// Only these clusters. Default: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<String>,
    /// By kind.
    #[serde(flatten)]
    pub strikes: BTreeMap<ChaosKind, Strike>,
}
