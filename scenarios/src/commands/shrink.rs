//! `mirrorlab shrink`: a failing run, made as small as it can be made.

use crate::commands::named::plan_file;
use crate::folder;
use crate::format::{Diagnostics, Fault, Problem};
use crate::plan::Plan;
use crate::shrink::memory::OnDisk;
use crate::shrink::{found, shrink_with, Budget, Measure, Refused, Shrunk};
use crate::tell::tell;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mirrorlab_reports::record::Verdict;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// A run folder or a plan.
    pub path: &'a Path,
    /// Where the result goes; default: the folder `shrunk` beside the plan.
    pub out: Option<&'a Path>,
    /// Candidates at most.
    pub tries: u64,
    /// Print JSON and nothing else.
    pub json: bool,
}

/// Makes the plan smaller, writes what came of it, and prints how small it is.
///
/// # Errors
/// The plan cannot be read, or breaks nothing; the folder cannot be written.
pub fn shrink(options: &Options<'_>) -> Result<u8, Diagnostics> {
    let file = plan_file(options.path)?;
    let plan = Plan::load(&file)?;
    let beside = || file.parent().unwrap_or(Path::new("")).join(folder::SHRUNK);
    let out = options.out.map_or_else(beside, Path::to_path_buf);
    let bar = ProgressBar::new(options.tries).with_style(
        ProgressStyle::with_template("{pos} of at most {len} tries, {elapsed}: {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    if options.json {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let _held = folder::Held::take(&out)?;
    let mut memory = OnDisk::open(&out, &plan.to_toml()?, Some(bar.clone()))?;
    let known = memory.known();
    if known > 0 && !options.json {
        let _ = writeln!(std::io::stderr(), "goes on: {known} candidates were run before");
    }
    let done = shrink_with(&plan, Budget { tries: options.tries, ..Budget::default() }, &mut memory);
    bar.finish_and_clear();
    let shrunk = match done {
        Ok(shrunk) => shrunk,
        Err(Refused::Diverged(one, two)) => {
            let _ = writeln!(std::io::stderr(), "{}", Refused::Diverged(one, two));
            return Ok(Verdict::Diverged.exit_code());
        }
        Err(refused) => {
            let problem = Problem::new(Fault::Command, "nothing-breaks", refused.to_string());
            let help = "name the folder of a run that ended with a violation or a stall";
            return Err(Diagnostics::one(&file.display().to_string(), problem.help(help)));
        }
    };
    let written = write(&out, &shrunk, &file)?;
    let told = if options.json { json(&shrunk, &written) } else { text(&shrunk, &written) };
    tell!("{}", told.trim_end());
    Ok(0)
}

/// What stands in the folder.
struct Written {
    plan: PathBuf,
    scenario: PathBuf,
}

fn write(out: &Path, shrunk: &Shrunk, from: &Path) -> Result<Written, Diagnostics> {
    folder::write_plan(out, &shrunk.plan)?;
    let name = format!("{} seed {}", shrunk.plan.plan.scenario, shrunk.plan.seed);
    let text = found::scenario(shrunk, &name)?;
    let written = Written { plan: out.join("plan.toml"), scenario: out.join("found.toml") };
    let report = out.join("shrunk.json");
    for (path, text) in [(&written.scenario, text), (&report, json(shrunk, &written))] {
        std::fs::write(path, text).map_err(|e| {
            let message = format!("{} cannot be written: {e}", path.display());
            Diagnostics::one(&from.display().to_string(), Problem::new(Fault::Command, "unwritable", message))
        })?;
    }
    Ok(written)
}

fn json(shrunk: &Shrunk, written: &Written) -> String {
    let outcome = &shrunk.outcome;
    let value = serde_json::json!({
        "signature": outcome.signature,
        "invariant": outcome.id,
        "at": outcome.at,
        "expected": outcome.expected,
        "got": outcome.got,
        "trace_hash": outcome.hash,
        "before": shrunk.before,
        "after": shrunk.after,
        "finding": shrunk.finding,
        "tries": shrunk.tries,
        "spent": shrunk.spent,
        "plan": written.plan,
        "scenario": written.scenario,
    });
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

fn text(shrunk: &Shrunk, written: &Written) -> String {
    let outcome = &shrunk.outcome;
    let mut out = format!("breaks      {} in {}\n", outcome.id, outcome.at);
    out.push_str(&format!("expected    {}\ngot         {}\n", outcome.expected, outcome.got));
    if shrunk.finding {
        out.push_str("finding     it breaks in the same way with all guards on and all quirks off: what was switched has no part in it,\n");
        out.push_str("            and the smallest plan switches nothing\n");
    }
    out.push('\n');
    out.push_str(&format!("{:<12}{:>12} {:>12}\n", "", "before", "after"));
    type Column = (&'static str, fn(&Measure) -> String);
    let columns: [Column; 7] = [
        ("steps", |m| m.steps.to_string()),
        ("nodes", |m| m.nodes.to_string()),
        ("clients", |m| m.clients.to_string()),
        ("partitions", |m| m.partitions.to_string()),
        ("records", |m| m.records.to_string()),
        ("simulated s", |m| format!("{:.3}", m.simulated_s)),
        ("events", |m| m.events.to_string()),
    ];
    for (name, value) in columns {
        out.push_str(&format!("{name:<12}{:>12} {:>12}\n", value(&shrunk.before), value(&shrunk.after)));
    }
    let spent = if shrunk.spent { "; the budget was spent: more may be possible" } else { "" };
    out.push_str(&format!("\ntries       {}{spent}\n", shrunk.tries));
    out.push_str(&format!("trace hash  {}, twice\n", outcome.hash));
    out.push_str(&format!("plan        {}\n", written.plan.display()));
    out.push_str(&format!(
        "scenario    {} (for scenarios/found/: its story is to be written)\n",
        written.scenario.display()
    ));
    out.push_str(&format!("again       {}", crate::again::replay(&written.plan)));
    out
}
