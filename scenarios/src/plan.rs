//! A plan: a scenario with every choice made about topology, faults and operators, for one seed and one row of the matrix.
//!
//! Its file, `plan.toml`, is itself a scenario file without draws, chaos, matrix and repetitions: it replays alone, is checked like
//! any other, and can be edited by hand or by the shrinker. Traffic stays generator parameters and the seed.
//!
//! Choices are drawn by hash(seed, concern, ordinal) only (`draw.rs`): a strike that is taken away leaves all others alone.

mod chaos;
pub mod draw;
mod nodes;

pub use nodes::{ClientKind, NodeKind, PlanClient, PlanNode};

use crate::format::action::{Step, Trigger};
use crate::format::types::Expect;
use crate::format::{read_text, Diagnostics, Fault, Problem, Profile, Provenance, Scenario, Stage, Tier, Vocabulary};
use crate::nearest::nearest;
use crate::units::Time;
use mirrorlab_model::guards::{self, Guards, Kind};
use serde::{Deserialize, Serialize, Serializer};
use std::path::Path;
use std::sync::Arc;

/// What the command line says over the file.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Overrides {
    /// `--profile`.
    pub profile: Option<Profile>,
    /// `--guard-off`.
    pub guards_off: Vec<String>,
    /// `--guard-on`; `all` for all.
    pub guards_on: Vec<String>,
    /// `--quirk`.
    pub quirks: Vec<String>,
    /// `--quirk-off`; `all` for all.
    pub quirks_off: Vec<String>,
    /// `--ignore-expect`.
    pub ignore_expect: bool,
}

impl Overrides {
    /// Refuses names that do not exist.
    ///
    /// # Errors
    /// One problem per name.
    pub fn check(&self, vocabulary: &Vocabulary) -> Result<(), Diagnostics> {
        let mut problems = Vec::new();
        let guards: Vec<&str> = vocabulary.guards.iter().map(|g| &**g).collect();
        let quirks: Vec<&str> = vocabulary.quirks.iter().map(|q| &**q).collect();
        let options = [
            ("--guard-off", "guard", &self.guards_off, &guards, false),
            ("--guard-on", "guard", &self.guards_on, &guards, true),
            ("--quirk", "quirk", &self.quirks, &quirks, false),
            ("--quirk-off", "quirk", &self.quirks_off, &quirks, true),
        ];
        for (option, what, names, valid, all) in options {
            for name in names.iter().filter(|name| !(valid.contains(&&***name) || all && *name == "all")) {
                let help = match nearest(name, valid.iter().copied()) {
                    _ if mirrorlab_model::guards::by_name(name).is_some() => {
                        if what == "guard" {
                            "it is a quirk: switch it with --quirk or --quirk-off".to_owned()
                        } else {
                            "it is a guard: switch it with --guard-off or --guard-on".to_owned()
                        }
                    }
                    Some(nearest) => format!("did you mean `{nearest}`?"),
                    None => "`mirrorlab guards` lists guards and quirks".to_owned(),
                };
                let message = format!("{option}: there is no {what} `{}`", crate::units::clip(name, 60));
                problems.push(Problem::new(Fault::Command, "unknown-name", message).help(help));
            }
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(Diagnostics { file: "command line".to_owned(), problems, more: 0 })
    }
}

/// A resolved run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The scenario's title.
    pub title: String,
    /// The scenario's reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The scenario's tier.
    pub tier: Tier,
    /// The peer case that the scenario carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The seed of all draws.
    #[serde(serialize_with = "seed_as_toml")]
    pub seed: u64,
    /// Which quirks are on to begin with.
    pub profile: Profile,
    /// Where it came from.
    pub plan: Provenance,
    /// The world and what happens in it; steps with times in order, those with conditions before them.
    #[serde(flatten)]
    pub stage: Stage,
}

/// The first line of a plan's text.
pub(crate) const BEGIN: &str =
    "# A plan of mirrorlab, which replays alone. It is whole if its last line is `# end of the plan`.";
/// The last one.
const END: &str = "# end of the plan";

/// TOML's whole numbers end at 2^63 - 1; seeds above are hexadecimal digits in quotes.
#[allow(clippy::trivially_copy_pass_by_ref)] // the signature is serde's
fn seed_as_toml<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    match i64::try_from(*seed) {
        Ok(seed) => serializer.serialize_i64(seed),
        Err(_) => serializer.serialize_str(&format!("{seed:#x}")),
    }
}

impl Plan {
    /// Makes every choice for one scenario without regard to its matrix (see [`Plan::resolve_all`]). Names in `overrides`
    /// must have passed [`Overrides::check`].
    #[must_use]
    pub fn resolve(scenario: &Scenario, seed: u64, overrides: &Overrides) -> Self {
        let mut stage = scenario.stage.clone();
        let safety = stage.phases.safety;
        let mut timeline: Vec<Step> = stage.timeline.iter().flat_map(|step| repeat(step, safety)).collect();
        if let Some(chaos) = &scenario.chaos {
            timeline.extend(chaos::strikes(chaos, &stage, scenario.vocabulary(), seed));
            if chaos.perturb {
                arm(&mut stage.perturb, scenario.vocabulary(), seed);
            }
        }
        timeline.sort_by_key(|step| match step.trigger {
            Trigger::When { .. } => None,
            Trigger::At { at, .. } => Some(at),
        });
        stage.timeline = timeline;
        override_registry(&mut stage, overrides, scenario.vocabulary());
        if overrides.ignore_expect {
            stage.expect = Expect::nothing();
            for step in &mut stage.timeline {
                step.ignore_answers();
            }
        }
        let own = || Provenance { scenario: scenario.name(), row: String::new(), drawn: Vec::new() };
        let plan = scenario.plan.clone().unwrap_or_else(own);
        Self {
            title: scenario.title.clone(),
            why: scenario.why.clone(),
            tier: scenario.tier,
            origin: scenario.origin.clone(),
            seed,
            profile: overrides.profile.unwrap_or(scenario.profile),
            plan,
            stage,
        }
    }

    /// One plan for each row of the matrix, with its label; without `seed` the file's, else 0.
    ///
    /// # Errors
    /// Unknown names in `overrides`; rows of the matrix that are wrong together.
    pub fn resolve_all(
        scenario: &Scenario,
        seed: Option<u64>,
        overrides: &Overrides,
    ) -> Result<Vec<(String, Self)>, Diagnostics> {
        overrides.check(scenario.vocabulary())?;
        if let (Some(seed), true) = (seed, scenario.matrix.iter().any(|axis| axis.path == "seed")) {
            let message =
                format!("seed {seed} is asked for, and `seed` is a key of this file's matrix, which would set others");
            let problem = Problem::new(Fault::Command, "conflict", message);
            let help = "run it without a seed, or take `seed` out of the matrix and sweep the file";
            return Err(Diagnostics::one(&scenario.file, problem.help(help)));
        }
        let rows = scenario.rows(seed.or(scenario.seed).unwrap_or(0))?;
        let plans = rows.into_iter().map(|(label, row)| {
            let mut plan = Self::resolve(&row, seed.or(row.seed).unwrap_or(0), overrides);
            plan.plan.row.clone_from(&label);
            (label, plan)
        });
        Ok(plans.collect())
    }

    /// The text of its `plan.toml`.
    ///
    /// # Errors
    /// None that is known: every value of a plan has a form in TOML.
    pub fn to_toml(&self) -> Result<String, Diagnostics> {
        let text = toml::to_string(self).map_err(|error| {
            let message = format!("the plan cannot be written: {error}");
            Diagnostics::one(&self.plan.scenario, Problem::new(Fault::Version, "unwritable", message))
        })?;
        Ok(format!("{BEGIN}\n{text}\n{END}\n"))
    }

    /// Reads a `plan.toml`.
    ///
    /// # Errors
    /// What [`Scenario::load`] refuses; chaos, a matrix or repetitions; no seed.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Diagnostics> {
        let name = path.as_ref().display().to_string();
        Self::parse(&name, &read_text(path.as_ref())?, &Arc::new(Vocabulary::standard()))
    }

    /// Reads the text of a `plan.toml`; `name` stands for the file in messages.
    ///
    /// # Errors
    /// As [`Plan::load`].
    pub fn parse(name: &str, text: &str, vocabulary: &Arc<Vocabulary>) -> Result<Self, Diagnostics> {
        // Cut at the end of a line it is often a plan still, of another run.
        if text.starts_with(BEGIN) && !text.trim_end().ends_with(END) {
            let message = format!("this plan is cut off: its last line is not `{END}`");
            let help = "what wrote it was killed, or its disk is full: run the scenario again with its seed";
            return Err(Diagnostics::one(name, Problem::new(Fault::Machine, "cut-off", message).help(help)));
        }
        Self::of_file(&Scenario::parse_with(name, text, vocabulary)?)
    }

    fn of_file(file: &Scenario) -> Result<Self, Diagnostics> {
        let repeats = |step: &Step| matches!(step.trigger, Trigger::At { every: Some(_), .. });
        let open = if file.chaos.is_some() {
            "it has [chaos]"
        } else if !file.matrix.is_empty() {
            "it has a matrix"
        } else if !file.draw.is_empty() {
            "it has [draw]"
        } else if file.stage.timeline.iter().any(repeats) {
            "it has steps that repeat"
        } else if file.plan.is_none() {
            "it has no [plan] table"
        } else if file.seed.is_none() {
            "it has no seed"
        } else {
            return Ok(Self::resolve(file, file.seed.unwrap_or(0), &Overrides::default()));
        };
        let message = format!("this is not a plan: {open}");
        let help = "name a plan.toml of a run folder, or use `mirrorlab run` for a scenario";
        Err(Diagnostics::one(&file.file, Problem::new(Fault::Command, "not-a-plan", message).help(help)))
    }

    /// The guards and quirks of its nodes: those of the profile, then those that the file or the command line switched.
    #[must_use]
    pub fn guards(&self) -> Guards {
        let mut guards = Guards::default();
        let shows = match self.profile {
            Profile::Corrected => None,
            Profile::Prototype => Some('L'),
            Profile::PrototypeJuly => Some('J'),
        };
        for row in guards::rows() {
            let listed = |names: &[String]| names.iter().any(|name| name == row.name);
            let on = match row.kind {
                Kind::Guard => !listed(&self.stage.guards_off),
                Kind::Quirk(versions) => {
                    let profile = shows.is_some_and(|version| versions.contains(version));
                    (profile || listed(&self.stage.quirks)) && !listed(&self.stage.quirks_off)
                }
            };
            guards.set(row.id, on);
        }
        guards
    }
}

/// Arms each point of perturbation one time in four, beside those that the file names.
fn arm(perturb: &mut Vec<String>, vocabulary: &Vocabulary, seed: u64) {
    for point in &vocabulary.points {
        let drawn = draw::below(seed, &format!("perturb.{point}"), 0, 4) == 0;
        if drawn && !perturb.iter().any(|named| named == point) {
            perturb.push(point.to_string());
        }
    }
}

/// The occurrences of a step that repeats; the first keeps its name.
fn repeat(step: &Step, safety: Time) -> Vec<Step> {
    let Trigger::At { at, every: Some(every), .. } = step.trigger else { return vec![step.clone()] };
    let times = step.trigger.times(safety);
    (0..times)
        .map(|n| Step {
            name: step.name.clone().filter(|_| n == 0),
            trigger: Trigger::At { at: Time(at.0.saturating_add(every.0.saturating_mul(n))), every: None, times: None },
            ..step.clone()
        })
        .collect()
}

/// The command line beats the file.
fn override_registry(stage: &mut Stage, overrides: &Overrides, vocabulary: &Vocabulary) {
    let all = |names: &[String]| names.iter().any(|name| name == "all");
    let add = |list: &mut Vec<String>, names: &[String]| {
        for name in names.iter().filter(|name| *name != "all") {
            if !list.contains(name) {
                list.push(name.clone());
            }
        }
    };
    stage.guards_off.retain(|name| !all(&overrides.guards_on) && !overrides.guards_on.contains(name));
    add(&mut stage.guards_off, &overrides.guards_off);
    stage.quirks.retain(|name| !all(&overrides.quirks_off) && !overrides.quirks_off.contains(name));
    if all(&overrides.quirks_off) {
        let quirks = vocabulary.quirks.iter().map(|name| name.to_string());
        stage.quirks_off = quirks.collect();
    }
    add(&mut stage.quirks_off, &overrides.quirks_off);
    stage.quirks_off.retain(|name| !overrides.quirks.contains(name));
    add(&mut stage.quirks, &overrides.quirks);
}

#[cfg(test)]
#[path = "plan/plan_tests.rs"]
mod tests;
