//! The command line that does a run again, ready to be pasted into a shell.

use crate::plan::Overrides;
use std::borrow::Cow;
use std::path::Path;

/// The command line that runs a scenario so.
pub(crate) fn run(scenario: &str, seed: u64, overrides: &Overrides) -> String {
    let options = options(overrides);
    let space = if options.is_empty() { "" } else { " " };
    format!("mirrorlab run {} --seed {seed}{space}{options}", quoted(scenario))
}

/// The one that runs it again with a node away for each of so many decisions.
pub(crate) fn absence(scenario: &str, seed: u64, samples: u32, overrides: &Overrides) -> String {
    let options = options(overrides);
    let space = if options.is_empty() { "" } else { " " };
    format!("mirrorlab absence {} --seed {seed} --samples {samples}{space}{options}", quoted(scenario))
}

/// The one that runs it twice and compares after every event.
pub(crate) fn same_twice(scenario: &str, seed: u64) -> String {
    format!("mirrorlab same-twice {} --seed {seed}", quoted(scenario))
}

/// The options that switch over a file what these do; empty if they switch nothing.
pub(crate) fn options(overrides: &Overrides) -> String {
    let mut text = String::new();
    if let Some(profile) = &overrides.profile {
        text.push_str(&format!(" --profile {}", profile.name()));
    }
    for (option, names) in [
        ("--guard-off", &overrides.guards_off),
        ("--guard-on", &overrides.guards_on),
        ("--quirk", &overrides.quirks),
        ("--quirk-off", &overrides.quirks_off),
    ] {
        names.iter().for_each(|name| text.push_str(&format!(" {option} {}", quoted(name))));
    }
    if overrides.ignore_expect {
        text.push_str(" --ignore-expect");
    }
    text.trim_start().to_owned()
}

/// The one that replays a plan.
pub(crate) fn replay(plan: &Path) -> String {
    format!("mirrorlab replay {}", quoted(&plan.display().to_string()))
}

/// A word as a shell takes it for one: in quotes if it holds anything that means something there.
fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,+@%-".contains(c);
    // One that begins with a dash would be taken for an option.
    let word: Cow<'_, str> = if word.starts_with('-') { format!("./{word}").into() } else { word.into() };
    if !word.is_empty() && word.chars().all(plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_gets_back_what_was_named() {
        for (word, shown) in [
            ("scenarios/tour.toml", "scenarios/tour.toml"),
            ("my runs/a b.toml", "'my runs/a b.toml'"),
            ("it's.toml", r"'it'\''s.toml'"),
            ("$HOME;rm.toml", "'$HOME;rm.toml'"),
            ("-x.toml", "./-x.toml"),
            ("für.toml", "'für.toml'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), shown);
        }
        let overrides = Overrides { guards_on: vec!["all".into()], ignore_expect: true, ..Overrides::default() };
        let line = "mirrorlab run 'a b.toml' --seed 7 --guard-on all --ignore-expect";
        assert_eq!(run("a b.toml", 7, &overrides), line);
    }
}
