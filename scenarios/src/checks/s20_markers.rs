//! S20 Markers. Each transactional batch is followed in its partition by exactly one marker of its transaction before the
//! next transaction of that producer starts; no transactional batch follows its own marker; a marker is caused by a decision
//! on that same transaction.

use super::transactions::{Open, Said, TxnName, Wrong};
use mirrorlab_model::record::BatchView;

/// A marker stands in a log.
pub(super) fn marker(
    batch: &BatchView<'_>,
    commit: bool,
    said: &Said,
    cluster: u8,
    mirrored: bool,
    wrong: &mut Vec<Wrong>,
) {
    let (producer, epoch) = (batch.producer(), batch.producer_epoch());
    // A mirrored marker is of the source's coordinator; a stopping mirror aborts what is open by itself (spec 5.2).
    let caused = said.was_decided(cluster, producer, epoch, commit)
        || (mirrored && (!commit || said.was_decided_anywhere(producer, epoch, commit)));
    if !caused {
        let what = if commit { "commit" } else { "abort" };
        let expected = format!("a decision to {what} the transaction of producer id {producer}, epoch {epoch}");
        wrong.push(Wrong::new("S20", expected, format!("its marker at {} without one", batch.base_offset())));
    }
}

/// A transactional batch stands in a log. `open` is what its producer has open there, `newest` its transaction that ended
/// there last.
pub(super) fn batch(
    batch: &BatchView<'_>,
    name: Option<TxnName>,
    open: Option<&Open>,
    newest: Option<u64>,
    wrong: &mut Vec<Wrong>,
) {
    let Some(name) = name else { return };
    let base = batch.base_offset();
    let other = open.and_then(|open| Some((open.first, open.name?))).filter(|(_, other)| *other != name);
    if let Some((first, other)) = other {
        let expected = format!(
            "a marker between the transactions of producer {} from its records {} and {} on",
            name.0, other.1, name.1
        );
        let endless = Some((batch.producer(), first));
        wrong.push(Wrong { id: "S20", expected, got: format!("none before offset {base}"), endless });
    } else if newest.is_some_and(|newest| newest >= name.1) {
        let expected = format!(
            "nothing of the transaction of producer {} from its record {} on behind its marker",
            name.0, name.1
        );
        wrong.push(Wrong::new("S20", expected, format!("a batch at offset {base}")));
    }
}
