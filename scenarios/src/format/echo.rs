//! One slip is told once. A key with a slip is also missing; a table with a slip in its name leaves nothing that others could
//! refer to. What is only the echo of another problem is left out: it would send the reader to the wrong place.

use super::diagnostics::Problem;

/// The code of a key that no table has.
pub(super) const UNKNOWN_KEY: &str = "unknown-key";

/// What defines the things that a file refers to, in the order in which one needs the other.
const KINDS: [&str; 4] = ["clusters", "links", "topics", "mirrors"];

/// Codes of references, and the kinds without which they cannot be right.
const REFERENCES: [(&str, &[&str]); 6] = [
    ("unknown-cluster", &["clusters"]),
    ("unknown-site", &["clusters"]),
    ("missing-link", &["clusters", "links"]),
    ("unknown-link", &["links"]),
    ("unknown-topic", &["clusters", "topics", "mirrors"]),
    ("unknown-mirror", &["mirrors"]),
];

/// Whether a problem is a reference, which may be right once another problem is solved.
pub(super) fn may_be(problem: &Problem) -> bool {
    REFERENCES.iter().any(|(code, _)| *code == problem.code)
}

/// The problems that are none of another's echo.
pub(super) fn without(problems: Vec<Problem>, text: &str) -> Vec<Problem> {
    let slips: Vec<(String, String)> = problems.iter().filter_map(slip).collect();
    // Tables whose name has a slip; and kinds of which some table is wrong, so that it may not be there.
    let lost: Vec<&str> = slips.iter().filter(|(table, _)| table == "the file").map(|(_, key)| &**key).collect();
    let wrong: Vec<&str> = problems.iter().filter_map(|problem| kind_at(text, problem.offset)).collect();
    let is_echo = |problem: &Problem| {
        if is_missing(problem, &slips) {
            return true;
        }
        let Some((_, needs)) = REFERENCES.iter().find(|(code, _)| *code == problem.code) else { return false };
        let rank = |kind: &str| KINDS.iter().position(|known| *known == kind).unwrap_or(KINDS.len());
        let own = kind_at(text, problem.offset).map_or(KINDS.len(), rank);
        // Clusters with a wrong key are there all the same.
        let is_wrong = |kind: &str| kind != "clusters" && wrong.contains(&kind) && rank(kind) < own;
        needs.iter().any(|kind| lost.contains(kind) || is_wrong(kind))
    };
    let echoes: Vec<bool> = problems.iter().map(is_echo).collect();
    problems.into_iter().zip(echoes).filter(|(_, is_echo)| !is_echo).map(|(problem, _)| problem).collect()
}

/// The table and the key that were meant by a key with a slip.
fn slip(problem: &Problem) -> Option<(String, String)> {
    let table = problem.message.strip_prefix("unknown key `")?.split_once("` in ")?.1;
    let key = problem.help.as_deref()?.strip_prefix("did you mean `")?.strip_suffix("`?")?;
    (problem.code == UNKNOWN_KEY).then(|| (table.to_owned(), key.to_owned()))
}

/// Whether a problem says of a table that it lacks what stands there with a slip.
fn is_missing(problem: &Problem, slips: &[(String, String)]) -> bool {
    let help = problem.help.as_deref().unwrap_or_default();
    let is_it = |(table, key): &(String, String)| {
        let named = problem.message.contains(&format!("`{key}`")) || help.contains(&format!("`{key} = "));
        named && problem.message.contains(table.as_str())
    };
    problem.code != UNKNOWN_KEY && slips.iter().any(is_it)
}

/// In tables of which kind a place lies, by the header before it.
fn kind_at(text: &str, offset: usize) -> Option<&'static str> {
    let line_end = text.get(offset..)?.find('\n').map_or(text.len(), |n| offset + n);
    let header = text[..line_end].rfind("\n[").map_or(text, |at| &text[at + 1..]).strip_prefix('[')?;
    KINDS.into_iter().find(|kind| header.strip_prefix(kind).is_some_and(|rest| rest.starts_with(['.', ']'])))
}
