//! S18 Transaction atomicity. All partitions of a transaction end with the same decision, which is the one that its producer
//! was told; a record belongs to the transaction in which it was sent. Mirrors excuse the first across partitions, after a
//! failover: each partition is cut at its own offset.

use super::cx::Cx;
use super::sight::Sight;
use super::transactions::{Said, TxnName, Wrong};
use mirrorlab_model::trace::TxnOutcome;

/// A transaction ended in a partition.
pub(super) fn ended(name: TxnName, commit: bool, said: &mut Said, cluster: u8, mirrored: bool, wrong: &mut Vec<Wrong>) {
    if mirrored {
        return;
    }
    let told = said.outcome(name);
    let before = *said.logged.entry((cluster, name)).or_insert(commit);
    if before != commit || told.is_some_and(|told| contradicts(told, commit)) {
        let expected = format!("one end of the transaction of producer {} from its record {} on", name.0, name.1);
        let told = told.map_or("nothing", TxnOutcome::name);
        let got = format!("here {}, elsewhere {}; its producer was told: {told}", word(commit), word(before));
        wrong.push(Wrong::new("S18", expected, got));
    }
}

/// A producer was told how its transaction ended.
pub(super) fn told<S: Sight>(cx: &mut Cx<'_, S>, said: &Said, name: TxnName, outcome: TxnOutcome) {
    let Some(&commit) = said.logged.get(&(cx.at.cluster, name)) else { return };
    if contradicts(outcome, commit) {
        let expected = format!("a transaction that is {} in the log", word(commit));
        cx.broken("S18", expected, format_args!("{}, as its producer was told", outcome.name()));
    }
}

fn contradicts(told: TxnOutcome, commit: bool) -> bool {
    match told {
        TxnOutcome::Committed => !commit,
        TxnOutcome::Aborted => commit,
        TxnOutcome::Unknown => false,
    }
}

fn word(commit: bool) -> &'static str {
    if commit {
        "committed"
    } else {
        "aborted"
    }
}
