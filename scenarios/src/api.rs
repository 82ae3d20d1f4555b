//! Scenarios in Rust: what a test writes instead of a command line.
//!
//! ```
//! use mirrorlab_reports::record::Verdict;
//! use mirrorlab_scenarios::format::Scenario;
//!
//! let record = Scenario::load("replication/short.toml")?.seed(7).run()?;
//! assert_eq!(record.verdict, Verdict::Pass, "{}", record.reason);
//! # Ok::<(), mirrorlab_scenarios::format::Diagnostics>(())
//! ```
//! [`Experiment::run_async`] lets an async task look on and act; see [`crate::face`].

use crate::cli;
use crate::face::{BoxError, WorldHandle};
use crate::format::{Diagnostics, Fault, Problem, Profile, Scenario};
use crate::hands::HELD_AT_MOST;
use crate::plan::{Overrides, Plan};
use crate::run::{End, Job, Run};
use mirrorlab_reports::record::Record;
use mirrorlab_sim::face::Face;
use mirrorlab_sim::pump::on_fresh_runtime;
use std::future::Future;
use std::ops::ControlFlow;

/// A scenario with what is to be varied: seed, profile, guards and quirks, as on the command line.
#[derive(Clone, Debug)]
pub struct Experiment {
    scenario: Scenario,
    seed: Option<u64>,
    overrides: Overrides,
}

impl Scenario {
    /// The scenario as it stands, to be varied and run.
    #[must_use]
    pub fn experiment(self) -> Experiment {
        Experiment { scenario: self, seed: None, overrides: Overrides::default() }
    }

    /// To be run with this seed instead of its own.
    #[must_use]
    pub fn seed(self, seed: u64) -> Experiment {
        self.experiment().seed(seed)
    }

    /// Runs it with its own seed.
    ///
    /// # Errors
    /// As [`Experiment::run`].
    pub fn run(self) -> Result<Record, Diagnostics> {
        self.experiment().run()
    }
}

impl Experiment {
    /// Runs with this seed instead of the file's.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Begins with the quirks of this profile.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.overrides.profile = Some(profile);
        self
    }

    /// Switches a guard off.
    #[must_use]
    pub fn guard_off(mut self, name: &str) -> Self {
        self.overrides.guards_off.push(name.to_owned());
        self
    }

    /// Switches a guard on that the file switches off; `all` for all.
    #[must_use]
    pub fn guard_on(mut self, name: &str) -> Self {
        self.overrides.guards_on.push(name.to_owned());
        self
    }

    /// Switches a quirk on.
    #[must_use]
    pub fn quirk(mut self, name: &str) -> Self {
        self.overrides.quirks.push(name.to_owned());
        self
    }

    /// Switches a quirk off; `all` for all.
    #[must_use]
    pub fn quirk_off(mut self, name: &str) -> Self {
        self.overrides.quirks_off.push(name.to_owned());
        self
    }

    /// Asks for the bare verdict, whatever the file expects.
    #[must_use]
    pub fn ignore_expect(mut self) -> Self {
        self.overrides.ignore_expect = true;
        self
    }

    /// Every choice made: one plan for each row of the matrix.
    ///
    /// # Errors
    /// Names that do not exist; rows of the matrix that are wrong together.
    pub fn plans(&self) -> Result<Vec<(String, Plan)>, Diagnostics> {
        Plan::resolve_all(&self.scenario, self.seed, &self.overrides)
    }

    /// The one plan of a scenario without a matrix.
    ///
    /// # Errors
    /// As [`Self::plans`]; a matrix.
    pub fn plan(&self) -> Result<Plan, Diagnostics> {
        let mut plans = self.plans()?;
        match (plans.pop(), plans.is_empty()) {
            (Some((_, plan)), true) => Ok(plan),
            _ => {
                let problem = Problem::new(
                    Fault::Command,
                    "matrix",
                    "the scenario has a matrix: one run is asked for, not several",
                )
                .help("choose among `plans()`");
                Err(Diagnostics::one(&self.scenario.file, problem))
            }
        }
    }

    /// Runs it, each row of a matrix, and gives the record.
    ///
    /// # Errors
    /// As [`Self::plans`]; a config entry that the model does not take.
    pub fn run(&self) -> Result<Record, Diagnostics> {
        let mut rows = Vec::new();
        for (label, plan) in self.plans()? {
            let mut record = cli::one(&self.scenario.file, &plan)?;
            record.repro = self.repro(record.seed);
            rows.push((label, record));
        }
        let repro = rows.first().map(|(_, record)| record.repro.clone()).unwrap_or_default();
        Ok(if rows.len() == 1 { rows.remove(0).1 } else { cli::matrix(rows, &repro) })
    }

    /// Runs it with a task that looks on and acts, from the start of the safety phase. The phase ends when its time is over
    /// and `body` has returned; then faults end, and everything is checked as in any run.
    ///
    /// ```no_run
    /// # use mirrorlab_scenarios::format::Scenario;
    /// # use std::time::Duration;
    /// let record = Scenario::load("scenarios/tour.toml")?.seed(7).run_async(|world| async move {
    ///     world.admin("west").create_topic("audit", 4, 3).await?;
    ///     world.kill("leader(east/orders, 0)").await?;
    ///     world.wait_for("mirror(orders) == MIRRORING and lag(orders) == 0", Duration::from_secs(60)).await?;
    ///     Ok(())
    /// })?;
    /// # Ok::<(), mirrorlab_scenarios::face::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::plan`]; what `body` returns; a body that does not end.
    ///
    /// # Panics
    /// When `body` does.
    pub fn run_async<B, F>(&self, body: B) -> Result<Record, BoxError>
    where
        B: FnOnce(WorldHandle) -> F + Send + 'static,
        F: Future<Output = Result<(), BoxError>> + 'static,
    {
        let plan = self.plan()?;
        let seed = plan.seed;
        let job = Job { path: self.scenario.file.clone(), plan };
        let mut record = on_fresh_runtime(seed, async move || watched(job, body).await)?;
        record.repro = format!("{} with the body of the test", self.repro(seed));
        Ok(record)
    }

    /// The command line that runs the same.
    #[must_use]
    pub fn repro(&self, seed: u64) -> String {
        crate::again::run(&self.scenario.file, seed, &self.overrides)
    }
}

async fn watched<B, F>(job: Job, body: B) -> Result<Record, BoxError>
where
    B: FnOnce(WorldHandle) -> F,
    F: Future<Output = Result<(), BoxError>>,
{
    let file = job.path.clone();
    let mut run = Run::new(job)
        .map_err(|bad| Box::new(Diagnostics::one(&file, Problem::new(Fault::File, "bad-config", bad.0))) as BoxError)?;
    run.hold(true);
    let face = Face::new(run);
    let (broke, done) = face
        .run_beside(async {
            face.until(Run::is_in_safety).await;
            let done = body(WorldHandle::new(face.clone())).await;
            face.act(|run| run.hold(false));
            done
        })
        .await;
    let end = match broke {
        ControlFlow::Break(end) => end,
        ControlFlow::Continue(()) => End::default(),
    };
    let is_broken = end.is_violation();
    let record = face.act(|run| run.record(end));
    match done {
        Some(Err(error)) => Err(error),
        None if !is_broken => {
            Err(format!("the body had not ended {} s after the safety phase", HELD_AT_MOST.0 / 1_000_000_000).into())
        }
        // A violation is the record's to tell, whatever the body waited for.
        _ => Ok(record),
    }
}
