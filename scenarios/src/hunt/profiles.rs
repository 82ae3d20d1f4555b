//! Which profiles of the swarm suit a guard or a quirk, and which scenario file was written for it.

use crate::format::{Diagnostics, Fault, Problem, Scenario};
use crate::guard_page;
use mirrorlab_model::guards::{self, unseen, GuardId, Kind, Row};
use mirrorlab_reports::hunt::Target;
use std::path::{Path, PathBuf};

/// Rooms of the registry, and the profiles whose faults and orders reach them.
const BY_ROOM: [(&str, &[&str]); 9] = [
    ("log", &["disk", "default", "lifecycle"]),
    ("replication", &["elections", "default", "disk", "lifecycle"]),
    ("controller", &["elections", "default", "coordinator", "disk", "beyond_tolerance"]),
    ("client", &["default", "elections", "transactions"]),
    ("mirror", &["lifecycle", "coordinator", "wan", "default"]),
    ("transactions", &["transactions"]),
    ("prototype", &["lifecycle", "coordinator", "wan", "transactions"]),
    ("alignment", &["lifecycle", "wan", "beyond_tolerance"]),
    ("quorum", &["default", "coordinator"]),
];

/// Invariants that only producers with ids, transactions or compaction can break.
const BY_TRANSACTIONS: [&str; 8] = ["S16", "S17", "S18", "S19", "S20", "S40", "S41", "S51"];

/// What is hunted, and how.
#[derive(Clone, Debug)]
pub struct Quarry {
    /// Its bit.
    pub id: GuardId,
    /// Its name and what is expected of it.
    pub target: Target,
    /// Numbers of the profiles that suit it: seed `s` is run with the `s`-th, in turn.
    pub profiles: Vec<usize>,
    /// Files that were written for it, each with its seed; those that switch the least first.
    pub proofs: Vec<(String, u64)>,
}

impl Quarry {
    /// The profile for a seed: every target has the seeds from 0 on, each once.
    #[must_use]
    pub fn profile(&self, seed: u64) -> usize {
        self.profiles[(seed % self.profiles.len() as u64) as usize]
    }
}

/// The registry's guards and quirks, or those that are named.
///
/// # Errors
/// Names that do not exist; scenario files that cannot be read; a swarm without a profile that suits.
pub fn quarry(
    guards_named: &[String],
    quirks_named: &[String],
    files: &[PathBuf],
    scenarios: &Path,
) -> Result<Vec<Quarry>, Diagnostics> {
    for (option, names, quirks) in [("--guard", guards_named, false), ("--quirk", quirks_named, true)] {
        names.iter().try_for_each(|name| exists(option, name, quirks))?;
    }
    let all = guards_named.is_empty() && quirks_named.is_empty();
    let is_wanted = |row: &&Row| {
        let named = if row.kind == Kind::Guard { guards_named } else { quirks_named };
        all || named.iter().any(|name| name == row.name)
    };
    let proofs = guard_page::proofs(scenarios)?;
    let stem = |file: &PathBuf| file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let stems: Vec<String> = files.iter().map(stem).collect();
    let mut quarry = Vec::new();
    for row in guards::rows().filter(is_wanted) {
        let mut files = proofs.get(row.name).cloned().unwrap_or_default();
        files.sort_by_key(|(_, others)| others.len());
        let seed = |(file, _): &(String, Vec<String>)| {
            let path = scenarios.join(file);
            Ok((path.display().to_string(), Scenario::load(&path)?.seed.unwrap_or(0)))
        };
        let proofs = files.iter().map(seed).collect::<Result<_, Diagnostics>>()?;
        quarry.push(Quarry { id: row.id, target: target(row), profiles: suiting(row, &stems), proofs });
    }
    Ok(quarry)
}

fn target(row: &Row) -> Target {
    Target {
        name: row.name.to_owned(),
        kind: match row.kind {
            Kind::Guard => "guard".to_owned(),
            Kind::Quirk(versions) => format!("quirk {versions}"),
        },
        room: guards::room(row.id).to_owned(),
        expected: row.breaks.iter().map(|id| (*id).to_owned()).collect(),
        unseen: unseen::of(row.id).map_or_else(String::new, |unseen| format!("{}: {}", unseen.why.name(), unseen.says)),
    }
}

/// Those of the swarm that suit; all of it where none is known by name.
fn suiting(row: &Row, stems: &[String]) -> Vec<usize> {
    let room = guards::room(row.id);
    let by_room = BY_ROOM.iter().find(|(name, _)| *name == room).map_or(&[][..], |(_, profiles)| profiles);
    let by_breaks = row.breaks.iter().any(|id| BY_TRANSACTIONS.contains(id)).then_some("transactions");
    let names = by_room.iter().copied().chain(by_breaks.filter(|name| !by_room.contains(name)));
    let found: Vec<usize> = names.filter_map(|name| stems.iter().position(|stem| stem == name)).collect();
    if found.is_empty() {
        (0..stems.len()).collect()
    } else {
        found
    }
}

fn exists(option: &str, name: &str, quirk: bool) -> Result<(), Diagnostics> {
    let what = if quirk { "quirk" } else { "guard" };
    let is_it = |row: &Row| (row.kind != Kind::Guard) == quirk;
    if guards::by_name(name).is_some_and(is_it) {
        return Ok(());
    }
    let help = match crate::nearest::nearest(name, guards::rows().filter(|row| is_it(row)).map(|row| row.name)) {
        _ if guards::by_name(name).is_some() => {
            format!("it is a {}", if quirk { "guard: --guard" } else { "quirk: --quirk" })
        }
        Some(near) => format!("did you mean `{near}`?"),
        None => "`mirrorlab guards` lists guards and quirks".to_owned(),
    };
    let message = format!("{option}: there is no {what} `{}`", crate::units::clip(name, 60));
    Err(Diagnostics::one("command line", Problem::new(Fault::Command, "unknown-name", message).help(help)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_room_has_its_profiles_and_they_exist() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = Vec::new();
        crate::commands::check::collect(&folder.join("swarm"), &mut files);
        let stems: BTreeSet<String> =
            files.iter().map(|file| file.file_stem().unwrap().to_string_lossy().into_owned()).collect();
        for (room, profiles) in BY_ROOM {
            assert!(guards::rows().any(|row| guards::room(row.id) == room), "{room} is no room");
            profiles.iter().for_each(|name| assert!(stems.contains(*name), "there is no profile {name}"));
        }
        for row in guards::rows() {
            assert!(BY_ROOM.iter().any(|(room, _)| *room == guards::room(row.id)), "{} has no profiles", row.name);
        }
        let all = quarry(&[], &[], &files, folder).unwrap();
        assert_eq!(all.len(), guards::rows().count());
        assert!(all.iter().all(|quarry| !quarry.profiles.is_empty()));
        assert!(all.iter().filter(|quarry| !quarry.proofs.is_empty()).count() > 100);
    }

    #[test]
    fn names_are_checked_and_seeds_go_round() {
        let files = ["x/default.toml", "x/transactions.toml", "x/disk.toml"].map(PathBuf::from);
        let hunted = |guards: &[&str], quirks: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            quarry(&owned(guards), &owned(quirks), &files, Path::new("nowhere")).map_err(|bad| bad.to_string())
        };
        let one = hunted(&["ProducerSnapshotFlushed"], &[]).unwrap();
        assert_eq!((one.len(), &one[0].profiles[..], one[0].proofs.len()), (1, &[2, 0, 1][..], 0));
        assert_eq!([0, 1, 2, 3].map(|seed| one[0].profile(seed)), [2, 0, 1, 2]);
        let near = hunted(&["FetchOffsetMatch"], &[]).unwrap_err();
        assert!(near.contains("--guard: there is no guard") && near.contains("`FetchOffsetMatches`"), "{near}");
        let other = hunted(&["StopRecomputesPosition"], &[]).unwrap_err();
        assert!(other.contains("it is a quirk: --quirk"), "{other}");
    }
}
