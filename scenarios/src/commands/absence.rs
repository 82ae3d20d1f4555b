//! `mirrorlab absence`: the same run with a node away when a decision commits (L18).

use crate::absence::{judge, Absence, Came, Tried};
use crate::folder;
use crate::format::{Diagnostics, Fault, Problem, Scenario};
use crate::plan::{Overrides, Plan};
use crate::run::Job;
use crate::tell::tell;
use mirrorlab_reports::record::Verdict;
use mirrorlab_reports::worst;
use std::path::{Path, PathBuf};

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// The scenario file, or a plan.
    pub scenario: &'a Path,
    /// The seed.
    pub seed: Option<u64>,
    /// Decisions.
    pub samples: u32,
    /// What the command line says over the file.
    pub overrides: Overrides,
    /// Where plans of absences that harm go.
    pub out: Option<&'a Path>,
    /// Print JSON and nothing else.
    pub json: bool,
}

/// Runs it, and prints a line for each absence. A plan is written for each one that harms.
///
/// # Errors
/// The file cannot be read; names that do not exist; a config that the model does not take; a plan cannot be written.
pub fn absence(options: &Options<'_>) -> Result<u8, Diagnostics> {
    let scenario = Scenario::load(options.scenario)?;
    let path = options.scenario.display().to_string();
    let mut verdicts = Vec::new();
    for (label, plan) in Plan::resolve_all(&scenario, options.seed, &options.overrides)? {
        let job = Job { path: path.clone(), plan };
        let absence = judge(&job, options.samples, u64::MAX)
            .map_err(|bad| Diagnostics::one(&path, Problem::new(Fault::File, "bad-config", bad.0)))?;
        let plan = &job.plan;
        let plans = write(options, plan, &absence)?;
        verdicts.push(verdict(&absence));
        let told = match options.json {
            true => json(&absence, &plans, options.samples),
            false => text(&path, &label, plan, &absence, &plans, options.samples),
        };
        tell!("{}", told.trim_end());
    }
    Ok(worst(verdicts).exit_code())
}

fn verdict(absence: &Absence) -> Verdict {
    match absence.record.verdict {
        Verdict::Pass if !absence.violations().is_empty() => Verdict::Stall,
        // No pair of runs was compared.
        Verdict::Pass if absence.tried.iter().all(|tried| matches!(tried.came, Came::Apart(_))) => Verdict::Vacuous,
        verdict => verdict,
    }
}

const fn harms(tried: &Tried) -> bool {
    matches!(tried.came, Came::Differs(_) | Came::Broke(_))
}

/// The plan of each absence that harms, by its number.
fn write(options: &Options<'_>, plan: &Plan, absence: &Absence) -> Result<Vec<Option<PathBuf>>, Diagnostics> {
    let below = options.out.map_or_else(|| folder::home_of(options.scenario, plan), Path::to_path_buf);
    let mut plans = Vec::new();
    for (n, tried) in absence.tried.iter().enumerate() {
        if !harms(tried) {
            plans.push(None);
            continue;
        }
        let folder = below.join(format!("absence-{n}"));
        folder::write_plan(&folder, &tried.plan)?;
        plans.push(Some(folder.join("plan.toml")));
    }
    Ok(plans)
}

fn words(came: &Came) -> (&'static str, String) {
    match came {
        Came::Same => ("same", String::new()),
        Came::Apart(why) => ("apart", why.clone()),
        Came::Broke(what) => ("broke", what.clone()),
        Came::Differs(facts) => {
            let told = facts.iter().map(|(expected, got)| format!("expected {expected}, got {got}"));
            ("differs", told.collect::<Vec<_>>().join("; "))
        }
    }
}

fn text(path: &str, label: &str, plan: &Plan, absence: &Absence, plans: &[Option<PathBuf>], wanted: u32) -> String {
    let row = if label.is_empty() { String::new() } else { format!(" [{label}]") };
    let mut out = format!("absence     {path}{row} seed {}: {} decisions\n", plan.seed, absence.decisions);
    if absence.record.verdict != Verdict::Pass {
        let (verdict, reason) = (absence.record.verdict.name(), &absence.record.reason);
        return format!("{out}verdict     {verdict} without any absence: {reason}\n");
    }
    for (tried, plan) in absence.tried.iter().zip(plans) {
        let (word, more) = words(&tried.came);
        let at = tried.decision.at.as_secs_f64();
        let away = tried.lasting.0 as f64 / 1e9;
        let what = format!("{} at {at:.6} s, {} away for {away:.3} s", tried.decision.what, tried.node);
        out.push_str(&format!("{word:<12}{what}\n"));
        if !more.is_empty() {
            out.push_str(&format!("            {more}\n"));
        }
        if let Some(plan) = plan {
            out.push_str(&format!("            {}\n", crate::again::replay(plan)));
        }
    }
    let harmed = absence.tried.iter().filter(|tried| harms(tried)).count();
    let apart = absence.tried.iter().filter(|tried| matches!(tried.came, Came::Apart(_))).count();
    let tried = absence.tried.len();
    let verdict = match harmed {
        0 if tried == 0 => {
            "vacuous: nobody may be absent at any decision: every node is needed, or a fault is under way".to_owned()
        }
        0 if tried == apart => "vacuous: no pair of runs could be compared".to_owned(),
        0 => format!("pass: {} absences changed nothing", tried - apart),
        n => format!("stall: L18, {n} of {tried} absences did harm"),
    };
    if tried < wanted as usize {
        let why = "at the others nobody may be absent: every node is needed, or a fault is under way";
        out.push_str(&format!("fewer       {tried} of {wanted} samples were tried; {why}\n"));
    }
    out.push_str(&format!("verdict     {verdict}\n"));
    out
}

fn json(absence: &Absence, plans: &[Option<PathBuf>], wanted: u32) -> String {
    let rows: Vec<serde_json::Value> = absence
        .tried
        .iter()
        .zip(plans)
        .map(|(tried, plan)| {
            let (came, more) = words(&tried.came);
            serde_json::json!({
                "decision": tried.decision.what,
                "time_ns": tried.decision.at.0,
                "node": tried.node,
                "from_ns": tried.from_ns,
                "lasting_ns": tried.lasting.0,
                "came": came,
                "more": more,
                "plan": plan,
            })
        })
        .collect();
    let value = serde_json::json!({
        "verdict": verdict(absence).name(),
        "without": absence.record.verdict.name(),
        "decisions": absence.decisions,
        "samples": wanted,
        "tried": absence.tried.len(),
        "violations": absence.violations(),
        "rows": rows,
    });
    serde_json::to_string_pretty(&value).unwrap_or_default()
}
