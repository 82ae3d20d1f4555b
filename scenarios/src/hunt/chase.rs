//! One target, seed after seed, until something breaks that holds with everything on.

use super::profiles::Quarry;
use super::reached::reached;
use crate::plan::Overrides;
use crate::sweep::pool::{Client, Ended};
use crate::sweep::run_turn;
use crate::sweep::worker::Task;
use mirrorlab_model::guards::GuardSet;
use mirrorlab_reports::hunt::{is_clean, Base, By, Line, Row, Tried, Try};
use mirrorlab_reports::record::Verdict;
use mirrorlab_reports::sweep::Finished;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// What threads tell the one that writes.
#[derive(Debug)]
pub enum Told {
    /// A line for the file.
    Line(Line),
    /// A file or the machine refuses.
    Refused(String),
}

/// What all chases of a hunt have in common.
#[derive(Debug)]
pub struct Ground {
    /// Profiles, by number.
    pub files: Vec<String>,
    /// What each of them is known by: see [`Task::hash`].
    pub hashes: BTreeMap<String, String>,
    /// Seeds for each target.
    pub seeds: u64,
    /// Events after which a run is given up.
    pub events_max: u64,
    /// Tries that making what was found smaller may take; 0: it is left as it is.
    pub shrink: u64,
    /// Where smallest plans go, a folder for each target.
    pub folder: PathBuf,
    /// Runs of the baseline that are known.
    pub known: Mutex<BTreeMap<(usize, u64), Known>>,
}

/// What a run of the baseline showed.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Whether nothing broke in it.
    pub clean: bool,
    /// What it reached.
    pub reached: GuardSet,
}

/// How a chase ends early: told already, or because everything ends.
struct Over;

/// What a seed showed.
enum Attempt {
    Found(Box<Row>),
    Nothing {
        wall_s: f64,
    },
    /// The baseline does not reach the target: the same run, to the last event.
    Same,
}

impl Ground {
    fn task(&self, file: &str, seed: u64, overrides: Overrides) -> Task {
        Task {
            file: file.to_owned(),
            hash: self.hashes.get(file).cloned(),
            seed,
            overrides,
            events_max: self.events_max,
            folder: None,
            absence: 0,
            shrink: 0,
        }
    }

    /// Runs one seed of the baseline.
    pub fn base(&self, client: &mut Client<'_>, (file, seed): (usize, u64), twice: bool, tell: &dyn Fn(Told)) {
        let task = self.task(&self.files[file], seed, Overrides::default());
        let _ = finished(run_turn(client, &task, twice), tell).map(|run| self.note(file, run, tell));
    }

    fn note(&self, file: usize, run: Finished, tell: &dyn Fn(Told)) -> Known {
        let known = Known { clean: is_clean(run.verdict), reached: reached(&run) };
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert((file, run.seed), known);
        tell(Told::Line(Line::Base(Box::new(Base { reached: known.reached.hex(), run }))));
        known
    }

    /// What happens with everything on; what is not known is run now.
    fn baseline(&self, client: &mut Client<'_>, at: (usize, u64), tell: &dyn Fn(Told)) -> Result<Known, Over> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&at).copied();
        if let Some(known) = known {
            return Ok(known);
        }
        let task = self.task(&self.files[at.0], at.1, Overrides::default());
        finished(run(client, &task), tell).map(|run| self.note(at.0, run, tell))
    }

    /// Tries seeds from where it was left until one finds the target; then the file that was written for it.
    pub fn chase(&self, client: &mut Client<'_>, quarry: &Quarry, mut tried: Tried, tell: &dyn Fn(Told)) {
        while tried.seeds < self.seeds && !client.is_closed() {
            match self.attempt(client, quarry, tried, tell) {
                Ok(Attempt::Found(row)) => {
                    tell(Told::Line(Line::Row(row.clone())));
                    return self.shrink(client, quarry, *row, tell);
                }
                Ok(Attempt::Nothing { wall_s }) => tried = tried.and(wall_s),
                Ok(Attempt::Same) => tried = tried.same(),
                Err(Over) => return,
            }
        }
        if client.is_closed() {
            return;
        }
        if let Ok(row) = self.prove(client, quarry, tried, tell) {
            tell(Told::Line(Line::Row(Box::new(row))));
        }
    }

    /// Makes what the swarm found smaller.
    pub fn shrink(&self, client: &mut Client<'_>, quarry: &Quarry, mut row: Row, tell: &dyn Fn(Told)) {
        if self.shrink == 0 {
            return;
        }
        let folder = Some(self.folder.join(&row.target));
        let task = Task { shrink: self.shrink, folder, ..self.task(&row.scenario, row.seed, switched(quarry)) };
        if let Ended::Shrunk(Some((steps, shrunk))) = client.run(&task) {
            (row.steps, row.shrunk_steps) = (Some(steps), Some(shrunk));
            tell(Told::Line(Line::Row(Box::new(row))));
        }
    }

    fn attempt(
        &self,
        client: &mut Client<'_>,
        quarry: &Quarry,
        tried: Tried,
        tell: &dyn Fn(Told),
    ) -> Result<Attempt, Over> {
        let seed = tried.seeds;
        let file = quarry.profile(seed);
        let base = self.baseline(client, (file, seed), tell)?;
        if !base.reached.has(quarry.id) {
            return Ok(Attempt::Same);
        }
        let target = quarry.target.name.clone();
        let mut nothing = Try { target, seed, verdict: Verdict::Unknown, wall_s: 0.0, tainted: !base.clean };
        if base.clean {
            let run = finished(run(client, &self.task(&self.files[file], seed, switched(quarry))), tell)?;
            if matches!(run.verdict, Verdict::Violation | Verdict::Stall) {
                let tried = tried.and(run.wall_s);
                return Ok(Attempt::Found(Box::new(Row::found(&quarry.target, tried, By::Swarm, &run))));
            }
            (nothing.verdict, nothing.wall_s) = (run.verdict, run.wall_s);
        }
        let wall_s = nothing.wall_s;
        tell(Told::Line(Line::Try(nothing)));
        Ok(Attempt::Nothing { wall_s })
    }

    /// The files that were written for it.
    fn prove(&self, client: &mut Client<'_>, quarry: &Quarry, tried: Tried, tell: &dyn Fn(Told)) -> Result<Row, Over> {
        for proof in &quarry.proofs {
            if let Some(run) = self.is_proved(client, quarry, proof, tell)? {
                return Ok(Row::found(&quarry.target, tried, By::Scenario, &run));
            }
        }
        Ok(Row::of(&quarry.target, tried))
    }

    /// Whether a file, without what it expects, breaks as it is, and holds as soon as the target alone is as it should be: what
    /// else it switches is what would have masked it, and no cause of its own.
    fn is_proved(
        &self,
        client: &mut Client<'_>,
        quarry: &Quarry,
        (file, seed): &(String, u64),
        tell: &dyn Fn(Told),
    ) -> Result<Option<Finished>, Over> {
        let bare = Overrides { ignore_expect: true, ..Overrides::default() };
        let name = vec![quarry.target.name.clone()];
        let mended = if quarry.target.is_guard() {
            Overrides { guards_on: name, ..bare.clone() }
        } else {
            Overrides { quirks_off: name, ..bare.clone() }
        };
        let broken = finished(run(client, &self.task(file, *seed, bare)), tell)?;
        if !matches!(broken.verdict, Verdict::Violation | Verdict::Stall) {
            return Ok(None);
        }
        let held = finished(run(client, &self.task(file, *seed, mended)), tell)?;
        Ok(is_clean(held.verdict).then_some(broken))
    }
}

/// The target, and nothing else.
fn switched(quarry: &Quarry) -> Overrides {
    let name = vec![quarry.target.name.clone()];
    if quarry.target.is_guard() {
        Overrides { guards_off: name, ..Overrides::default() }
    } else {
        Overrides { quirks: name, ..Overrides::default() }
    }
}

/// Runs a task, and once more if its process was killed from outside: that says nothing about the target.
fn run(client: &mut Client<'_>, task: &Task) -> Ended {
    match client.run(task) {
        Ended::Run(run) if run.killed => client.run(task),
        ended => ended,
    }
}

fn finished(ended: Ended, tell: &dyn Fn(Told)) -> Result<Finished, Over> {
    match ended {
        // Twice: it is left for the hunt that goes on.
        Ended::Run(run) if run.killed => Err(Over),
        Ended::Run(run) => Ok(*run),
        Ended::Refused(text) => {
            tell(Told::Refused(text));
            Err(Over)
        }
        Ended::Shrunk(_) | Ended::Stopped => Err(Over),
    }
}
