//! The scenario file that comes of a shrunk plan: ready for `scenarios/found/`, its story to be written.

use super::search::is_mutant;
use super::Shrunk;
use crate::format::{Diagnostics, Scenario};
use toml::{Table, Value};

/// The order in which a reader expects what a file says.
const ORDER: [&str; 19] = [
    "title",
    "why",
    "tier",
    "origin",
    "seed",
    "profile",
    "guards_off",
    "quirks",
    "quirks_off",
    "perturb",
    "perturb_always",
    "wire",
    "clusters",
    "links",
    "topics",
    "mirrors",
    "producers",
    "consumers",
    "phases",
];

/// The text of the file. It says what the plan says, in as few words as it takes; with a mutant or a quirk it expects what
/// breaks, without any it is to pass once the bug is mended.
///
/// # Errors
/// What the reader of scenario files says against it, which would be a fault of the shrinker.
pub fn scenario(shrunk: &Shrunk, from: &str) -> Result<String, Diagnostics> {
    let mut case = shrunk.case.clone();
    case.remove("plan");
    let outcome = &shrunk.outcome;
    case.insert("title".to_owned(), Value::String(format!("{} breaks in {}", outcome.id, outcome.at)));
    case.insert("why".to_owned(), Value::String(String::new()));
    if shrunk.plan.profile.name() == "corrected" {
        case.remove("profile");
    }
    case.remove("tier");
    if is_mutant(&shrunk.plan) {
        let mut expect = Table::new();
        expect.insert("violation".to_owned(), Value::Array(vec![Value::String(outcome.id.clone())]));
        case.insert("expect".to_owned(), Value::Table(expect));
    }
    let mut text = String::new();
    let rest: Vec<String> = case.keys().filter(|key| !ORDER.contains(&key.as_str())).cloned().collect();
    for key in ORDER.iter().map(|key| (*key).to_owned()).chain(rest) {
        let Some(value) = case.remove(&key) else { continue };
        if key == "why" {
            text.push_str(&why(shrunk, from));
            continue;
        }
        if value.is_table() || matches!(&value, Value::Array(items) if items.iter().any(Value::is_table)) {
            text.push('\n');
        }
        let alone = Table::from_iter([(key, value)]);
        text.push_str(&toml::to_string(&alone).unwrap_or_default());
    }
    Scenario::parse("found.toml", &text)?;
    Ok(text)
}

/// What is known; what it means is for whoever finds out.
fn why(shrunk: &Shrunk, from: &str) -> String {
    let outcome = &shrunk.outcome;
    let text = format!(
        "TO BE FILLED: how it comes to this. Expected: {}. Got: {}. From {from}, made smaller from {} steps to {}.",
        outcome.expected, outcome.got, shrunk.before.steps, shrunk.after.steps
    );
    // A literal string holds anything but its own end.
    format!("why = '''\n{}'''\n", wrapped(&text.replace("'''", "\"")))
}

/// Lines of a width that is read with ease.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut width = 0;
    for word in text.split_whitespace() {
        if width > 0 && width + word.len() > 120 {
            out.push('\n');
            width = 0;
        } else if width > 0 {
            out.push(' ');
        }
        out.push_str(word);
        width += word.len() + 1;
    }
    out
}
