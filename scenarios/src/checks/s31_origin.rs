//! S31 Origin. Every mirrored batch comes from the configured source cluster, and was below the source's watermark when it was
//! served; that watermark was true. And it was asked for in no lower epoch than its mirror leader knew of: who goes back to an
//! older epoch copies from a leader that was deposed (M06). Nor was it written in a later epoch than it was asked for in: a leader that
//! answers so does not look at what it is asked, and may be another one than is believed (M08).

use super::cx::Cx;
use super::ghost::More;
use super::roster::Part;
use super::sight::Sight;
use mirrorlab_model::ids::{LeaderEpoch, NodeId, Offset};

/// A fetcher asks in an epoch from now on, and not below it while it lives.
pub(super) fn fetches(more: &mut More, source_epoch: LeaderEpoch) {
    more.source_epoch = more.source_epoch.max(source_epoch);
}

/// Something was copied that was asked for in this epoch.
pub(super) fn asked<S: Sight>(cx: &mut Cx<'_, S>, more: &mut More, source_epoch: LeaderEpoch) {
    if source_epoch < more.source_epoch {
        let known = more.source_epoch;
        cx.broken("S31", format_args!("records asked for in epoch {known}, or a later one"), source_epoch);
    }
    if more.mirrored_epoch > source_epoch {
        let got = format_args!("one of epoch {}", more.mirrored_epoch);
        cx.broken("S31", format_args!("batches up to epoch {source_epoch}, in which they were asked for"), got);
    }
    fetches(more, source_epoch);
}

/// `base..next` was copied from `source`, which told `source_hw`. `truth`: the true watermark there and whether the source
/// partition had lineages cut.
pub(super) fn mirrored<S: Sight>(
    cx: &mut Cx<'_, S>,
    source: NodeId,
    next: Offset,
    source_hw: Offset,
    truth: Option<(Offset, bool)>,
) {
    let place = cx.roster.place(source);
    let configured = place.is_some_and(|p| {
        let link = |m: &super::roster::MirrorPlace| m.destination == cx.at.cluster && m.source == p.cluster;
        matches!(p.part, Part::Broker(_)) && cx.roster.mirrors.iter().any(link)
    });
    if !configured {
        let got = cx.roster.name(source).to_owned();
        return cx.broken("S31", "a broker of a source cluster of this cluster's mirrors", got);
    }
    if next > source_hw {
        cx.broken(
            "S31",
            format_args!("records below the source's watermark {source_hw}"),
            format_args!("up to {next}"),
        );
    }
    if let Some((true_hw, cut)) = truth {
        if source_hw > true_hw && !cut {
            let expected = format_args!("a source watermark that is true: {true_hw}");
            cx.broken("S31", expected, format_args!("{source_hw} was served"));
        }
    }
}
