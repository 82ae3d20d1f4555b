//! S42 Isolation. What is done for a mirror is done to its own topics and to nobody else's: no cut, no fetcher, no state and no
//! batch of a partition that belongs to another mirror or to none.

use super::cx::Cx;
use super::sight::Sight;
use mirrorlab_model::ids::{MirrorIx, NodeId};

/// The mirror of a partition's topic, as the broker that acts knows it; `None`: it knows no such partition.
fn mirror_of<S: Sight>(cx: &Cx<'_, S>) -> Option<Option<MirrorIx>> {
    let image = cx.at.node.and_then(|node| cx.sight.broker_image(node))?;
    let topic = image.partition(cx.partition())?.topic;
    Some(image.mirror_of(topic).map(|m| m.0))
}

/// A state of this mirror is acted on, or something is cut or fetched for it (`None`: for whichever has the topic).
pub(super) fn acts<S: Sight>(cx: &mut Cx<'_, S>, mirror: Option<MirrorIx>, what: &str) {
    let Some(own) = mirror_of(cx) else { return };
    if own.is_none() || (mirror.is_some() && mirror != own) {
        let image = cx.at.node.and_then(|node| cx.sight.broker_image(node));
        let named = |mirror| image.and_then(|image| image.mirror(mirror)).map_or("that is no more", |m| &*m.name);
        let whose = mirror.map(|mirror| format!(" for mirror {}", named(mirror))).unwrap_or_default();
        let own = own.map_or_else(|| "no mirror".to_owned(), |own| format!("mirror {}", named(own)));
        let got = format!("{what}{whose}; the topic belongs to {own}");
        cx.broken("S42", "steps of a mirror on its own topics only", got);
    }
}

/// Something comes from this broker.
pub(super) fn comes_from<S: Sight>(cx: &mut Cx<'_, S>, source: NodeId) {
    let Some(Some(mirror)) = mirror_of(cx) else { return };
    let image = cx.at.node.and_then(|node| cx.sight.broker_image(node));
    let Some(name) = image.and_then(|image| image.mirror(mirror)).map(|m| m.name.clone()) else { return };
    let (own, from) = (cx.roster.source_of(cx.at.cluster, &name), cx.roster.place(source).map(|p| p.cluster));
    if own.is_some() && from.is_some() && own != from {
        let got = cx.roster.name(source).to_owned();
        cx.broken("S42", format_args!("a broker of the source of mirror {name}"), got);
    }
}
