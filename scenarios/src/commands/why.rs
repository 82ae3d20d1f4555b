//! `mirrorlab why`: the causal past of what broke.

use crate::commands::named::plan_file;
use crate::format::{Diagnostics, Fault, Problem};
use crate::plan::Plan;
use crate::tell::tell;
use std::path::Path;

/// Prints why a run broke; with `reseeds` runs at each instant, when that was decided.
///
/// # Errors
/// The plan cannot be read, or breaks nothing.
pub fn why(path: &Path, reseeds: u32) -> Result<u8, Diagnostics> {
    let file = plan_file(path)?;
    let plan = Plan::load(&file)?;
    let name = file.display().to_string();
    let found = crate::why::why(&plan, reseeds)
        .map_err(|bad| Diagnostics::one(&name, Problem::new(Fault::File, "bad-config", bad.0)))?;
    let Some(why) = found else {
        let problem = Problem::new(Fault::Command, "nothing-breaks", "nothing breaks in this run");
        return Err(Diagnostics::one(
            &name,
            problem.help("name the folder of a run that ended with a violation or a stall"),
        ));
    };
    tell!("{}", why.text().trim_end());
    Ok(0)
}
