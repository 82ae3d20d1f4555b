//! A world in the hands of an async test: what [`crate::api::Experiment::run_async`] gives its body.
//!
//! Times are simulated. Nodes, places and conditions are written as in scenario files (`east/broker-1`,
//! `leader(east/orders, 0)`, `mirror(orders) == MIRRORING`). Whatever is done is done at the instant at which it is asked
//! for, by an event of the world: seed and body together give one history. Other madsim tasks may be spawned with
//! `madsim::task::spawn_local`; they share the handle by cloning it.

use crate::conditions::Seen;
use crate::format::action::{Action, Elect, Loses};
use crate::format::live::{Live, LiveTopic};
use crate::format::Diagnostics;
use crate::hands::{Granted, Wish};
use crate::run::Run;
use crate::setup::Setup;
use crate::units::Time;
use mirrorlab_model::client::admin::{Outcome, Verdict};
use mirrorlab_model::client::commands::Command;
use mirrorlab_model::client::mirror_orders::MirrorOrder;
use mirrorlab_model::ids::Nanos;
use mirrorlab_model::metadata::image::MetadataImage;
use mirrorlab_model::wire::errors::ErrorCode;
use mirrorlab_sim::face::Face;
use mirrorlab_sim::pump::Drive;
use mirrorlab_sim::world::World;
use std::fmt;
use std::time::Duration;

/// Any error of a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// An operator's order is answered by then: by its own deadline, or never.
const ANSWERED_WITHIN: Nanos = Nanos::from_secs(120);

/// What went wrong with something asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Trouble {
    /// A name or condition that cannot be: the test's mistake.
    Text(Box<Diagnostics>),
    /// A condition did not come to hold: its text, what its terms were in the end, and how long was waited.
    NotInTime(String, String, Duration),
    /// The cluster refused an order, or items of it.
    Refused(Box<Outcome>, ErrorCode),
    /// It is not known whether an order was carried out.
    Undecided(&'static str),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(diagnostics) => diagnostics.fmt(f),
            Self::NotInTime(condition, seen, within) => {
                write!(f, "`{condition}` did not hold within {} of simulated time; it was: {seen}", in_words(*within))
            }
            Self::Refused(outcome, error) => {
                write!(f, "{} was refused with {} after {} attempts", outcome.command, error.name(), outcome.attempts)?;
                for item in outcome.items.iter().filter(|i| !i.error.is_none()) {
                    write!(f, "; {}: {}", item.name, item.error.name())?;
                    if let Some(message) = &item.message {
                        write!(f, " ({message})")?;
                    }
                }
                Ok(())
            }
            Self::Undecided(command) => write!(f, "it is not known whether {command} was carried out"),
        }
    }
}
impl std::error::Error for Trouble {}

fn in_words(time: Duration) -> Time {
    Time(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

impl From<Diagnostics> for Trouble {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Text(Box::new(diagnostics))
    }
}

/// A fault that lasts until it is ended, or until the safety phase is over.
#[derive(Debug)]
#[must_use = "end it with `.end().await`, or name it `_cut` to let it last until the safety phase is over"]
pub struct Lasting {
    world: WorldHandle,
    wish: u32,
}

impl Lasting {
    /// Ends it now.
    pub async fn end(self) {
        self.world.grant(Wish::End(self.wish)).await;
    }
}

/// The world of a run. Clones are the same world.
#[derive(Clone)]
pub struct WorldHandle {
    face: Face<Run>,
}

impl fmt::Debug for WorldHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorldHandle").field("now", &self.now()).finish_non_exhaustive()
    }
}

impl WorldHandle {
    pub(crate) fn new(face: Face<Run>) -> Self {
        Self { face }
    }

    // --------------------------------------------------------------------------------------------------------------- time

    /// Simulated time since the start of the safety phase.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.face.look(|run| Duration::from_nanos(run.now().since(run.base()).0))
    }

    /// Lets simulated time pass; exact to the nanosecond.
    pub async fn sleep(&self, time: Duration) {
        let until = self.deadline(time);
        self.face.until(move |run| run.now() >= until).await;
    }

    /// Waits until a condition holds.
    ///
    /// # Errors
    /// [`Trouble::Text`], [`Trouble::NotInTime`].
    pub async fn wait_for(&self, condition: &str, within: Duration) -> Result<(), Trouble> {
        let read = self.read(|live| live.condition(condition))?;
        let until = self.deadline(within);
        let (awaited, asked) = (read.clone(), read.clone());
        self.face.until(move |run| run.eye().holds(&awaited) || run.now() >= until).await;
        if self.face.look(|run| run.eye().holds(&asked)) {
            return Ok(());
        }
        let seen = self.face.look(|run| {
            let told = |term| format!("{term} = {}", told(&run.eye().look(term)));
            read.terms().into_iter().map(told).collect::<Vec<_>>().join(", ")
        });
        Err(Trouble::NotInTime(condition.to_owned(), seen, within))
    }

    /// The world has an event at that time, so that somebody who waits for it wakes then.
    fn deadline(&self, time: Duration) -> Nanos {
        let time = Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.face.act(|run| {
            let until = run.now() + time;
            run.look_at_hands(until);
            until
        })
    }

    // ------------------------------------------------------------------------------------------------------------ looking

    /// Whether a condition holds now.
    ///
    /// # Errors
    /// [`Trouble::Text`].
    pub fn holds(&self, condition: &str) -> Result<bool, Trouble> {
        let condition = self.read(|live| live.condition(condition))?;
        Ok(self.face.look(|run| run.eye().holds(&condition)))
    }

    /// What a term such as `epoch(orders, 0)` or `leader(east/orders, 1)` is now: a value, or one per partition; `None` where
    /// it is not known.
    ///
    /// # Errors
    /// [`Trouble::Text`].
    pub fn see(&self, term: &str) -> Result<Vec<Option<Seen>>, Trouble> {
        let term = self.read(|live| live.term(term))?;
        Ok(self.face.look(|run| run.eye().look(&term)))
    }

    /// Records of a mirrored topic that the destination has not, over all partitions; `None` while one is not known.
    ///
    /// # Errors
    /// [`Trouble::Text`].
    pub fn lag(&self, topic: &str) -> Result<Option<i64>, Trouble> {
        let seen = self.see(&format!("lag({topic})"))?;
        Ok(seen.iter().map(|s| if let Some(Seen::Number(n)) = s { Some(*n) } else { None }).sum())
    }

    /// The records of a topic (`CLUSTER/TOPIC`) below the leaders' high watermarks; `None` while a partition has no leader.
    #[must_use]
    pub fn records(&self, topic: &str) -> Option<u64> {
        self.face.look(|run| run.eye().records(topic))
    }

    /// Looks at anything in the world, by its own types.
    pub fn look<R>(&self, look: impl FnOnce(&World, &Setup) -> R) -> R {
        self.face.look(|run| look(&run.lab().world, &run.lab().setup))
    }

    fn read<T>(&self, read: impl FnOnce(&Live<'_>) -> Result<T, Diagnostics>) -> Result<T, Trouble> {
        self.face.look(|run| {
            let (world, setup) = (&run.lab().world, &run.lab().setup);
            let mut topics = Vec::new();
            for (index, cluster) in setup.clusters.iter().enumerate() {
                if let Some(image) = setup.image(world, index as u8) {
                    topics.extend(topics_of(image, &cluster.name));
                }
            }
            Ok(read(&Live { stage: &run.plan().stage, topics })?)
        })
    }

    // ------------------------------------------------------------------------------------------------------------- acting

    /// Does what a step of a timeline does; durations in the action do not count: end what lasts by hand.
    pub async fn act(&self, action: Action) -> Lasting {
        let (wish, _) = self.grant(Wish::Act(action)).await;
        Lasting { world: self.clone(), wish }
    }

    async fn grant(&self, wish: Wish) -> (u32, Granted) {
        let number = self.face.act(|run| run.wish(wish));
        self.face.until(move |run| run.granted(number).is_some()).await;
        (number, self.face.look(|run| run.granted(number).cloned().unwrap_or_default()))
    }

    async fn on_node(
        &self,
        node: &str,
        act: impl FnOnce(crate::format::action::NodeRef) -> Action,
    ) -> Result<Lasting, Trouble> {
        let node = self.read(|live| live.node(node))?;
        Ok(self.act(act(node)).await)
    }

    /// Kills a process: the page cache stays. It stays down until [`Self::start`] or the end of the safety phase.
    ///
    /// # Errors
    /// [`Trouble::Text`].
    pub async fn kill(&self, node: &str) -> Result<(), Trouble> {
        self.on_node(node, |node| Action::Kill { node, restart_after: None, inside_task: false }).await.map(|_| ())
    }

    /// Takes a machine's power: what was not flushed is lost by the rules of its disk.
    ///
    /// # Errors
    /// [`Trouble::Text`].
    pub async fn power_loss(&self, node: &str) -> Result<(), Trouble> {
        let loses = Loses::default();
        let strike = |node| Action::PowerLoss { node, restart_after: None, inside_task: false, loses };
        self.on_node(node, strike).await.map(|_| ())
    }

    /// Asks a process to shut down in order.
    ///
    /// # Errors
    /// [`Trouble::Text`].
    pub async fn shutdown(&self, node: &str) -> Result<(), Trouble> {
        self.on_node(node, |node| Action::Shutdown { node, restart_after: None }).await.map(|_| ())
    }

    /// Ends a process and empties its disk.
    ///
    /// # Errors
    /// [`Trouble::Text`].
    pub async fn wipe(&self, node: &str) -> Result<(), Trouble> {
        self.on_node(node, |node| Action::Wipe { node, restart_after: None }).await.map(|_| ())
    }

    /// Starts a process that is down.
    ///
    /// # Errors
    /// [`Trouble::Text`].
    pub async fn start(&self, node: &str) -> Result<(), Trouble> {
        self.on_node(node, |node| Action::Start { node }).await.map(|_| ())
    }

    /// Stops a process as a signal would; ending it lets the process go on.
    ///
    /// # Errors
    /// [`Trouble::Text`].
    pub async fn pause(&self, node: &str) -> Result<Lasting, Trouble> {
        self.on_node(node, |node| Action::Pause { node, lasting: None }).await
    }

    /// Cuts two places (clusters, sites, nodes) off each other.
    ///
    /// # Errors
    /// [`Trouble::Text`].
    pub async fn partition(&self, a: &str, b: &str) -> Result<Lasting, Trouble> {
        let between = self.read(|live| Ok([live.place(a)?, live.place(b)?]))?;
        let cut = Action::Partition { between: Some(between), node: None, role: None, one_way: false, lasting: None };
        Ok(self.act(cut).await)
    }

    /// Cuts a node off from everybody.
    ///
    /// # Errors
    /// [`Trouble::Text`].
    pub async fn isolate(&self, node: &str) -> Result<Lasting, Trouble> {
        self.on_node(node, |node| Action::Partition {
            between: None,
            node: Some(node),
            role: None,
            one_way: false,
            lasting: None,
        })
        .await
    }

    /// Moves the leadership of a partition (`CLUSTER/TOPIC`) to another in-sync replica.
    ///
    /// # Errors
    /// [`Trouble::Text`].
    pub async fn elect(&self, topic: &str, partition: u32) -> Result<(), Trouble> {
        let term = self.read(|live| live.term(&format!("leader({topic}, {partition})")))?;
        if let crate::format::condition::Term::Leader(at) = term {
            let elect = Elect::Pick(0);
            let _ = self.act(Action::Elect { on: at.of, topic: at.topic, partition: Some(partition), elect }).await;
        }
        Ok(())
    }

    /// Lets a producer of the scenario write so many records now.
    ///
    /// # Errors
    /// [`Trouble::Text`].
    pub async fn produce(&self, producer: &str, records: u64) -> Result<(), Trouble> {
        let producer = self.read(|live| live.producer(producer))?;
        let _ = self.act(Action::Produce { producer, records, record: None }).await;
        Ok(())
    }

    /// The operator's client of a cluster.
    #[must_use]
    pub fn admin(&self, cluster: &str) -> AdminHandle {
        AdminHandle { world: self.clone(), cluster: cluster.to_owned() }
    }
}

fn topics_of<'a>(image: &'a MetadataImage, on: &'a str) -> impl Iterator<Item = LiveTopic> + 'a {
    image.topics().map(move |(_, topic)| {
        let first = topic.partitions.first().and_then(|p| image.partition(*p));
        LiveTopic {
            on: on.to_owned(),
            name: topic.name.to_string(),
            partitions: topic.partitions.len() as u32,
            rf: first.map_or(1, |p| p.state.replicas.len() as u32),
        }
    })
}

fn told(seen: &[Option<Seen>]) -> String {
    let words = seen.iter().map(|s| s.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string));
    words.collect::<Vec<_>>().join(" ")
}

/// An operator of one cluster. Each order is accepted or refused; whoever needs its effect waits for the state (decision 41).
#[derive(Clone, Debug)]
pub struct AdminHandle {
    world: WorldHandle,
    cluster: String,
}

impl AdminHandle {
    /// Gives any order, and waits for the answer.
    ///
    /// # Errors
    /// [`Trouble::Text`] if there is no such cluster, [`Trouble::Refused`], [`Trouble::Undecided`].
    pub async fn order(&self, command: Command) -> Result<Outcome, Trouble> {
        let cluster = self.index()?;
        let name = command.name();
        let (_, granted) = self.world.grant(Wish::Order(cluster, command)).await;
        let Some(order) = granted.orders.last().copied() else { return Err(Trouble::Undecided(name)) };
        let answered = move |run: &Run| run.lab().outcome(order).cloned();
        let until = self.world.deadline(Duration::from_nanos(ANSWERED_WITHIN.0));
        self.world.face.until(move |run| answered(run).is_some() || run.now() >= until).await;
        match self.world.face.look(answered) {
            Some(outcome) => match outcome.verdict {
                Verdict::Accepted => Ok(outcome),
                Verdict::Refused(error) => Err(Trouble::Refused(Box::new(outcome), error)),
                Verdict::Undecided => Err(Trouble::Undecided(name)),
            },
            None => Err(Trouble::Undecided(name)),
        }
    }

    /// Creates a topic.
    ///
    /// # Errors
    /// As [`Self::order`].
    pub async fn create_topic(&self, name: &str, partitions: u32, replication_factor: u16) -> Result<(), Trouble> {
        let topic = mirrorlab_model::wire::messages::NewTopic {
            name: name.into(),
            mirror_id: None,
            partitions,
            replication_factor: i16::try_from(replication_factor).unwrap_or(i16::MAX),
            assignments: Vec::new(),
            configs: Vec::new(),
        };
        self.order(Command::CreateTopics(vec![topic])).await.map(|_| ())
    }

    /// Deletes a topic.
    ///
    /// # Errors
    /// As [`Self::order`].
    pub async fn delete_topic(&self, name: &str) -> Result<(), Trouble> {
        self.order(Command::DeleteTopics(vec![name.into()])).await.map(|_| ())
    }

    /// Creates a mirror of the scenario (one with `later = true`), with the configs that the scenario gives it.
    ///
    /// # Errors
    /// As [`Self::order`].
    pub async fn create_mirror(&self, mirror: &str) -> Result<(), Trouble> {
        let source = self.source(mirror)?;
        let configs = self.world.face.look(|run| {
            let plan = run.plan().stage.mirrors.get(mirror);
            plan.into_iter().flat_map(|m| &m.config).map(|(k, v)| (k.as_str().into(), v.as_str().into())).collect()
        });
        self.order(Command::CreateClusterMirror { mirror: mirror.into(), source, configs }).await.map(|_| ())
    }

    /// Starts topics of a mirror.
    ///
    /// # Errors
    /// As [`Self::order`].
    pub async fn start_topics(&self, mirror: &str, topics: &[&str]) -> Result<(), Trouble> {
        let source = self.source(mirror)?;
        let topics = topics.iter().map(|t| (*t).into()).collect();
        let (include, exclude) = (Vec::new(), Vec::new());
        let command = Command::StartMirrorTopics { mirror: mirror.into(), source, topics, include, exclude };
        self.order(command).await.map(|_| ())
    }

    /// Orders something of a mirror, or asks about mirrors: stop, pause, resume, recover, delete, list, describe.
    ///
    /// # Errors
    /// As [`Self::order`].
    pub async fn mirror(&self, order: MirrorOrder) -> Result<Outcome, Trouble> {
        self.order(Command::Mirror(order)).await
    }

    /// The brokers of a mirror's source.
    fn source(&self, mirror: &str) -> Result<Vec<mirrorlab_model::ids::NodeId>, Trouble> {
        let name = self.world.read(|live| live.mirror(mirror))?;
        Ok(self.world.look(|_, setup| {
            let source = setup.mirrors.iter().find(|m| *m.name == *name).map(|m| usize::from(m.source));
            source.and_then(|at| setup.clusters.get(at)).map(|c| c.brokers.clone()).unwrap_or_default()
        }))
    }

    fn index(&self) -> Result<u8, Trouble> {
        let name = self.world.read(|live| live.cluster(&self.cluster))?;
        Ok(self.world.look(|_, setup| setup.cluster(&name)).unwrap_or_default())
    }
}
