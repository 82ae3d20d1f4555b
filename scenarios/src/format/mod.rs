//! Scenario files: TOML with explicit units in which every table is closed.
//!
//! Read in this order: `types.rs`, `action.rs`, `places.rs`, `condition.rs`, `chaos.rs` (what a file can say), `vocabulary.rs` (names that
//! belong to other parts), `table.rs` and `refs.rs` (how it is read), `topology.rs`, `workload.rs`, `timeline*.rs`,
//! `outcome.rs` (one section each), `live.rs` (the same in the middle of a run), `load.rs` and `limits.rs` (bounds),
//! `matrix.rs`, `draws.rs`, `diagnostics.rs`, `schema.rs`.
//!
//! Decisions of the format: a topic table with `count = n` is a family `NAME-0` to `NAME-(n-1)`; nodes are
//! `CLUSTER/broker-N` counted from 1; a topic is `TOPIC`, or `CLUSTER/TOPIC` where two clusters have it; a mirrored topic is
//! `TOPIC`, or `MIRROR/TOPIC`; instants count from the start of the safety phase.

pub mod action;
pub mod chaos;
pub mod condition;
mod condition_resolve;
mod condition_syntax;
mod diagnostics;
mod draws;
mod echo;
pub mod limits;
pub(crate) mod live;
mod load;
mod matrix;
mod outcome;
mod places;
mod reach;
mod refs;
mod schema;
mod table;
mod timeline;
mod timeline_actions;
mod topology;
pub mod types;
mod vocabulary;
mod workload;

pub use diagnostics::{Diagnostics, Excerpt, Fault, Problem, PROBLEMS_SHOWN};
pub(crate) use load::read as read_text;
pub use matrix::Axis;
pub use schema::schema;
pub use types::{Profile, Stage, Tier};
pub use vocabulary::{ConfigKey, ConfigOf, Name, ValueKind, Vocabulary};

use chaos::Chaos;
use diagnostics::Problems;
use refs::Build;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use table::{Cx, Table};
use toml::de::DeTable;

/// Where a plan came from; the `[plan]` table of a `plan.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Provenance {
    /// The scenario's name: its path without folder and ending.
    pub scenario: String,
    /// The row of the matrix; empty without a matrix.
    pub row: String,
    /// What the seed drew; empty without `[draw]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drawn: Vec<String>,
}

/// What a seed draws for a key, as an editor sees it.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used; `draws.rs` reads the table")]
enum DrawEntry {
    /// One of these.
    OneOf(Vec<serde_json::Value>),
    /// A duration between two.
    Between {
        /// The shortest.
        from: crate::units::Time,
        /// The longest.
        to: crate::units::Time,
    },
    /// The table, or key, or named step is there with this chance.
    Keep {
        /// The chance.
        keep: crate::units::Chance,
    },
}

/// A scenario file, read and checked.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Scenario {
    /// What happens, in one line.
    pub title: String,
    /// What it is there to show.
    pub why: Option<String>,
    /// Who runs it. Default `fast`.
    pub tier: Tier,
    /// The seed without `--seed`. Default 0.
    pub seed: Option<u64>,
    /// The peer case that it carries.
    pub origin: Option<String>,
    /// Which quirks are on to begin with. Default `corrected`.
    pub profile: Profile,
    /// The world and what happens in it.
    #[serde(flatten)]
    pub stage: Stage,
    /// Faults and operator actions by weight.
    pub chaos: Option<Chaos>,
    /// Keys that vary, and their values: one run for each combination.
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    pub matrix: Vec<Axis>,
    /// Keys that each seed draws for itself: from a list, between two durations, or whether a table is there at all.
    #[schemars(with = "BTreeMap<String, DrawEntry>")]
    pub draw: Vec<Axis>,
    /// Only in a plan: where it came from.
    pub plan: Option<Provenance>,
    /// The file's name as it was given.
    #[schemars(skip)]
    pub file: String,
    #[schemars(skip)]
    text: Arc<str>,
    #[schemars(skip)]
    vocabulary: Arc<Vocabulary>,
}

/// Two scenarios are equal if they say the same, wherever they were read from.
impl PartialEq for Scenario {
    fn eq(&self, other: &Self) -> bool {
        self.title == other.title
            && self.why == other.why
            && self.tier == other.tier
            && self.seed == other.seed
            && self.origin == other.origin
            && self.profile == other.profile
            && self.stage == other.stage
            && self.chaos == other.chaos
            && self.matrix == other.matrix
            && self.draw == other.draw
            && self.plan == other.plan
    }
}

impl Scenario {
    /// Reads a file with the standard vocabulary.
    ///
    /// # Errors
    /// Everything that is wrong with the file, up to [`PROBLEMS_SHOWN`] in full.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Diagnostics> {
        Self::load_with(path, &Arc::new(Vocabulary::standard()))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn load_with(path: impl AsRef<Path>, vocabulary: &Arc<Vocabulary>) -> Result<Self, Diagnostics> {
        let path = path.as_ref();
        let text = load::read(path)?;
        Self::parse_with(&path.display().to_string(), &text, vocabulary)
    }

    /// Reads a text with the standard vocabulary; `name` stands for the file in messages.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse(name: &str, text: &str) -> Result<Self, Diagnostics> {
        Self::parse_with(name, text, &Arc::new(Vocabulary::standard()))
    }

    /// Reads a text.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse_with(name: &str, text: &str, vocabulary: &Arc<Vocabulary>) -> Result<Self, Diagnostics> {
        let mut rows = read_rows(name, text, vocabulary, Rows::Base)?;
        Ok(rows.remove(0).1)
    }

    /// The scenario as `seed` draws it, one for each row of the matrix with its label (`links.wan.latency=50 ms`); without a
    /// matrix one with an empty label.
    ///
    /// # Errors
    /// Values that are right alone but wrong together.
    pub fn rows(&self, seed: u64) -> Result<Vec<(String, Self)>, Diagnostics> {
        if self.matrix.is_empty() && self.draw.is_empty() {
            return Ok(vec![(String::new(), self.clone())]);
        }
        read_rows(&self.file, &self.text, &self.vocabulary, Rows::All { seed })
    }

    /// What the file is called: its folder and its name without ending.
    #[must_use]
    pub fn name(&self) -> String {
        crate::folder::name_of(Path::new(&self.file))
    }

    /// The names that it was read with.
    #[must_use]
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// The file as it stands; values of a matrix, and draws, are checked one by one.
    Base,
    /// Every combination, with what this seed draws.
    All {
        /// The seed.
        seed: u64,
    },
}

fn read_rows(
    name: &str,
    text: &str,
    vocabulary: &Arc<Vocabulary>,
    rows: Rows,
) -> Result<Vec<(String, Scenario)>, Diagnostics> {
    let mut problems = Problems::new(name, text);
    let text = Arc::clone(&problems.source.text);
    let tree =
        load::measure(&mut problems).and_then(|tokens| Some((tokens, load::parse(&text, tokens, &mut problems)?)));
    let Some((tokens, tree)) = tree else { return Err(refused(problems)) };
    let mut cx = Cx { problems, vocabulary };
    let mut root = Table::new("the file", 0..0, tree.get_ref());
    let axes = matrix::axes(&mut cx, &mut root, tokens);
    let lots = draws::lots(&mut cx, &mut root);
    let one = |cx: Cx<'_>, map: &DeTable<'_>| {
        let (cx, mut scenario) = read_tree(cx, map);
        scenario.file = name.to_owned();
        scenario.text = Arc::clone(&text);
        scenario.vocabulary = Arc::clone(vocabulary);
        (cx.problems, scenario)
    };
    let check = |row: Result<DeTable<'_>, matrix::Misplaced>| {
        let mut problems = Problems::sharing(name, &text);
        match row {
            Err(misplaced) => {
                let (span, problem) = *misplaced;
                problems.add(&span, problem);
                Err(refused(problems))
            }
            Ok(map) => {
                let (problems, scenario) = one(Cx { problems, vocabulary }, &map);
                problems.finish().map(|()| scenario)
            }
        }
    };
    // What is put in is copied with the rest each time: not with all that could be put in.
    let mut bare = tree.get_ref().clone();
    ["matrix", "draw"].into_iter().for_each(|key| drop(bare.remove(key)));
    let Rows::All { seed } = rows else {
        let (problems, mut scenario) = one(cx, tree.get_ref());
        problems.finish()?;
        scenario.matrix = axes.iter().map(|axis| axis.axis.clone()).collect();
        scenario.draw = lots.iter().map(draws::Lot::axis).collect();
        for axis in &axes {
            for value in axis.values() {
                let mut map = bare.clone();
                check(matrix::put(&mut map, axis, value).map(|()| map))?;
            }
        }
        draws::alone(&bare, &lots, |lot, what, map| {
            check(map).map(|_| ()).map_err(|problems| lot.blamed(problems, what, &text))
        })?;
        return Ok(vec![(String::new(), scenario)]);
    };
    let mut drawn_tree = bare;
    let drawn = match draws::apply(&mut drawn_tree, &lots, seed) {
        Ok(drawn) => drawn,
        Err(misplaced) => return check(Err(misplaced)).map(|_| Vec::new()),
    };
    let count: usize = axes.iter().map(|axis| axis.values().len()).product();
    let mut all = Vec::with_capacity(count);
    for row in 0..count {
        let mut map = drawn_tree.clone();
        let label = matrix::apply(&mut map, &axes, row);
        let (label, map) = match label {
            Ok(label) => (label, Ok(map)),
            Err(error) => (String::new(), Err(error)),
        };
        let mut scenario = check(map).map_err(|problems| problems.drawn_by(seed, &drawn))?;
        if !drawn.is_empty() {
            scenario.plan = Some(Provenance { scenario: scenario.name(), row: String::new(), drawn: drawn.clone() });
        }
        all.push((label, scenario));
    }
    Ok(all)
}

/// The diagnostics of a file that cannot be read on.
fn refused(problems: Problems) -> Diagnostics {
    let name = problems.source.name.to_string();
    problems
        .finish()
        .err()
        .unwrap_or_else(|| Diagnostics::one(&name, Problem::new(Fault::File, "unreadable", "the file cannot be read")))
}

/// Reads a tree. The scenario is worth something only if no problem was found.
fn read_tree<'v>(cx: Cx<'v>, map: &DeTable<'_>) -> (Cx<'v>, Scenario) {
    let mut root = Table::new("the file", 0..0, map);
    let mut b = Build {
        cx,
        stage: Stage::default(),
        topics: BTreeMap::new(),
        steps: BTreeSet::new(),
        deleted: BTreeSet::new(),
        driven: BTreeSet::new(),
        operators: 1,
    };
    root.allow("matrix");
    root.allow("draw");
    let title = prose(&mut b.cx, &mut root, "title");
    if !root.has("title") {
        root.missing(&mut b.cx, "title", "\"what happens, in one line\"");
    }
    let why = prose(&mut b.cx, &mut root, "why");
    let origin = prose(&mut b.cx, &mut root, "origin");
    let tiers = &[("fast", Tier::Fast), ("slow", Tier::Slow), ("full", Tier::Full)];
    let tier = root.one_of(&mut b.cx, "tier", tiers).unwrap_or_default();
    let profile = root.one_of(&mut b.cx, "profile", Profile::NAMED).unwrap_or_default();
    let seed = outcome::seed(&mut b.cx, &mut root, "seed");
    b.clusters(&mut root);
    b.links(&mut root);
    b.topics(&mut root);
    b.foresee(&mut root);
    b.mirrors(&mut root);
    b.check_mirrored_names(&mut root);
    b.check_replicas(&mut root);
    b.clients(&mut root);
    b.phases(&mut root);
    b.check_load(&mut root);
    b.timeline(&mut root);
    let chaos = b.chaos(&mut root);
    b.expect(&mut root);
    registry(&mut b, &mut root);
    b.stage.wire = root.boolean(&mut b.cx, "wire").unwrap_or(false);
    let plan = provenance(&mut b.cx, &mut root);
    root.finish(&mut b.cx);
    let scenario = Scenario {
        title: title.unwrap_or_default(),
        why,
        tier,
        seed,
        origin,
        profile,
        stage: b.stage,
        chaos,
        matrix: Vec::new(),
        draw: Vec::new(),
        plan,
        file: String::new(),
        text: "".into(),
        vocabulary: Arc::default(),
    };
    (b.cx, scenario)
}

/// Guards and quirks by name.
fn registry(b: &mut Build<'_>, root: &mut Table<'_, '_>) {
    let vocabulary = b.cx.vocabulary;
    let guards = || vocabulary.guards.iter().map(|g| &**g).collect();
    let quirks = || vocabulary.quirks.iter().map(|q| &**q).collect();
    b.stage.guards_off = root.names(&mut b.cx, "guards_off", ("guard", "guards"), guards);
    b.stage.quirks = root.names(&mut b.cx, "quirks", ("quirk", "quirks"), quirks);
    let points = || vocabulary.points.iter().map(|p| &**p).collect();
    b.stage.perturb = root.names(&mut b.cx, "perturb", ("point", "points of perturbation"), points);
    b.stage.perturb_always = root.names(&mut b.cx, "perturb_always", ("point", "points of perturbation"), points);
    b.stage.quirks_off = root.names(&mut b.cx, "quirks_off", ("quirk", "quirks"), quirks);
    if let Some(both) = b.stage.quirks.iter().find(|q| b.stage.quirks_off.contains(q)) {
        let message = format!("quirk `{both}` is both on and off");
        let span = root.key_span("quirks_off");
        b.cx.error(&span, "conflict", message, "remove it from `quirks` or from `quirks_off`".to_owned());
    }
}

fn provenance(cx: &mut Cx<'_>, root: &mut Table<'_, '_>) -> Option<Provenance> {
    let mut t = root.table(cx, "plan", "[plan]".to_owned())?;
    let scenario = prose(cx, &mut t, "scenario").unwrap_or_default();
    let row = prose(cx, &mut t, "row").unwrap_or_default();
    let drawn = t.texts(cx, "drawn").unwrap_or_default().into_iter().map(|at| at.value).collect();
    t.finish(cx);
    Some(Provenance { scenario, row, drawn })
}

/// A text for people.
fn prose(cx: &mut Cx<'_>, t: &mut Table<'_, '_>, key: &'static str) -> Option<String> {
    let at = t.text(cx, key)?;
    if at.value.len() > limits::PROSE_BYTES {
        let message = format!("`{key}` is too long: {} bytes", at.value.len());
        cx.error(&at.span, "too-long", message, format!("the limit is {} KiB", limits::PROSE_BYTES >> 10));
        return None;
    }
    Some(at.value)
}

#[cfg(test)]
#[path = "slips_tests.rs"]
mod slips;
#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
