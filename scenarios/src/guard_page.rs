//! The registry of guards and quirks as a page, `model/GUARDS.md`: what each one says, where it comes from, what breaks without
//! it, and the scenario file that proves so. Generated, so that it cannot say anything else than registry and files do.

use crate::commands::check::collect;
use crate::format::{Diagnostics, Scenario};
use mirrorlab_model::guards::{self, unseen, Kind, Row};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Folders of scenario files that pass only if something breaks.
const PROOFS: [&str; 2] = ["must_fail", "prototype"];

/// The command that makes the page.
pub const COMMAND: &str = "cargo run --release -- guards --markdown > model/GUARDS.md";

const KINDS: &str = "A **guard** is a load-bearing condition of the protocol: on by default; a scenario file switches it off with \
`guards_off`, the command line with `--guard-off`. A **quirk** is a behaviour of the public prototype that this project corrects: off by \
default; switched on with `quirks`, `--quirk` or a profile. J: the July tree of the prototype has it; L: the latest one; JL: both.";
const COLUMNS: &str = "*Breaks* names the invariants that are expected to break, likeliest first (`mirrorlab checks ID` explains one). \
*Proved by* names the scenario files that pass only if such an invariant breaks, with what else has to be switched; or why no world can show it; \
none: no file does so yet.";

/// A proof: its file below the scenarios, and what else it switches.
pub(crate) type Proofs = BTreeMap<String, Vec<(String, Vec<String>)>>;

/// The page. `scenarios` is the folder of the scenario files.
///
/// # Errors
/// A scenario file that cannot be read.
pub fn page(scenarios: &Path) -> Result<String, Diagnostics> {
    let proofs = proofs(scenarios)?;
    let mut out = String::from("# Guards and quirks\n\n");
    let _ = writeln!(
        out,
        "Generated from the registry in `model/src/guards/`; to renew it: `{COMMAND}`.\n\n{KINDS}\n\n{COLUMNS}\n"
    );
    let (mut guards, mut quirks, mut proved) = (0, 0, [0, 0]);
    let mut room = None;
    let mut tables = String::new();
    for row in guards::rows() {
        let place = guards::room(row.id);
        if room.replace(place) != Some(place) {
            let _ = writeln!(
                tables,
                "\n## {place}\n\n| name | kind | says | source | breaks | proved by |\n|---|---|---|---|---|---|"
            );
        }
        let by = proofs.get(row.name);
        let quirk = usize::from(row.kind != Kind::Guard);
        *[&mut guards, &mut quirks][quirk] += 1;
        proved[quirk] += usize::from(by.is_some());
        line(&mut tables, row, by);
    }
    let _ =
        writeln!(out, "{guards} guards, {} of them proved; {quirks} quirks, {} of them proved.", proved[0], proved[1]);
    Ok(out + &tables)
}

fn line(out: &mut String, row: &Row, by: Option<&Vec<(String, Vec<String>)>>) {
    let kind = match row.kind {
        Kind::Guard => "guard".to_owned(),
        Kind::Quirk(versions) => format!("quirk {versions}"),
    };
    let file = |(file, others): &(String, Vec<String>)| {
        let with = if others.is_empty() { String::new() } else { format!(" with {}", others.join(", ")) };
        format!("[{}](../scenarios/{file}){with}", file.trim_end_matches(".toml"))
    };
    let none = || unseen::of(row.id).map_or_else(|| "none".to_owned(), |un| format!("{}: {}", un.why.name(), un.says));
    let by = by.map_or_else(none, |by| by.iter().map(file).collect::<Vec<_>>().join("; "));
    let cells =
        [row.name, &kind, row.says, row.source, &row.breaks.join(", "), &by].map(|cell| cell.replace('|', "\\|"));
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

/// Which files prove what.
pub(crate) fn proofs(scenarios: &Path) -> Result<Proofs, Diagnostics> {
    let mut files = Vec::new();
    for folder in PROOFS {
        let folder = scenarios.join(folder);
        if folder.is_dir() {
            collect(&folder, &mut files);
        }
    }
    let mut proofs = Proofs::new();
    for path in files {
        let stage = Scenario::load(&path)?.stage;
        if stage.expect.violation.is_empty() {
            continue;
        }
        let inside = path.strip_prefix(scenarios).unwrap_or(&path);
        let name = inside.components().map(|c| c.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
        let switched: Vec<String> = stage.guards_off.into_iter().chain(stage.quirks).collect();
        for own in &switched {
            let others = switched.iter().filter(|other| *other != own).cloned().collect();
            proofs.entry(own.clone()).or_default().push((name.clone(), others));
        }
    }
    Ok(proofs)
}
