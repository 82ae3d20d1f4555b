//! S31 Origin. Every mirrored batch comes from the configured source cluster, and was below the source's watermark when it was
//! served; that watermark was true.

use super::cx::Cx;
use super::roster::Part;
use super::sight::Sight;
use mirrorlab_model::ids::{NodeId, Offset};

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
