//! Options that switch guards, quirks and expectations over what scenario files say: the same for `run`, `sweep` and others.

use crate::format::{Diagnostics, Fault, Problem, Profile};
use crate::plan::Overrides;
use clap::Args;

/// What was typed.
#[derive(Args, Clone, Debug, Default)]
pub struct Switches {
    /// Which quirks are on to begin with: corrected, prototype or prototype-july.
    #[arg(long)]
    pub profile: Option<String>,
    /// Switch a guard off.
    #[arg(long, value_name = "G")]
    pub guard_off: Vec<String>,
    /// Switch a guard on that the file switches off; `all` for all.
    #[arg(long, value_name = "G")]
    pub guard_on: Vec<String>,
    /// Switch a quirk on.
    #[arg(long, value_name = "Q")]
    pub quirk: Vec<String>,
    /// Switch a quirk off; `all` for all.
    #[arg(long, value_name = "Q")]
    pub quirk_off: Vec<String>,
    /// Show the bare verdict, whatever the file expects.
    #[arg(long)]
    pub ignore_expect: bool,
}

impl Switches {
    /// What it means. Names of guards and quirks are checked where the plan is resolved.
    ///
    /// # Errors
    /// A profile that does not exist; a name that is switched both on and off.
    pub fn overrides(&self) -> Result<Overrides, Diagnostics> {
        for ((off, offs), (on, ons)) in [
            (("--guard-off", &self.guard_off), ("--guard-on", &self.guard_on)),
            (("--quirk-off", &self.quirk_off), ("--quirk", &self.quirk)),
        ] {
            if let Some(both) = offs.iter().find(|name| ons.contains(name)) {
                let both = crate::units::clip(both, 60);
                let message = format!("`{both}` is switched by {off} and by {on}");
                let problem = Problem::new(Fault::Command, "conflict", message).help("leave one of the two out");
                return Err(Diagnostics::one("command line", problem));
            }
        }
        Ok(Overrides {
            profile: self.profile.as_deref().map(profile).transpose()?,
            guards_off: self.guard_off.clone(),
            guards_on: self.guard_on.clone(),
            quirks: self.quirk.clone(),
            quirks_off: self.quirk_off.clone(),
            ignore_expect: self.ignore_expect,
        })
    }
}

fn profile(name: &str) -> Result<Profile, Diagnostics> {
    if let Some((_, profile)) = Profile::NAMED.iter().find(|(n, _)| *n == name) {
        return Ok(*profile);
    }
    let message = format!("--profile: there is no profile `{}`", crate::units::clip(name, 60));
    let all = "corrected, prototype or prototype-july";
    let help = match crate::nearest::nearest(name, Profile::NAMED.iter().map(|(n, _)| *n)) {
        Some(near) => format!("did you mean `{near}`? There are {all}"),
        None => format!("there are {all}"),
    };
    Err(Diagnostics::one("command line", Problem::new(Fault::Command, "unknown-name", message).help(help)))
}
