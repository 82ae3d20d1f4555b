//! S15 Recovery. After a restart a log is a prefix of the log before it, cut at a batch border, at least up to what was
//! durable; nothing invented, no hole. A process that only died loses nothing; a clean-shutdown marker implies that nothing
//! was lost. A log of which bits flipped on the disk may end where they did (excuse: bit rot); one that was set back to an older
//! copy is what was copied.

use super::cx::Cx;
use super::excuses::Excuse;
use super::ghost::Stop;
use super::member::Member;
use super::report::place_name;
use super::sight::Sight;
use mirrorlab_model::ids::Offset;

fn say(stop: Option<Stop>) -> &'static str {
    stop.map_or("no stop", Stop::name)
}

/// A log was loaded at boot.
pub(super) fn recovered<S: Sight>(
    cx: &mut Cx<'_, S>,
    before: Member,
    (stop, marked, inside): (Option<Stop>, bool, bool),
    promised: Option<Offset>,
    (end, rotten): (Offset, bool),
    clean: bool,
) {
    if !before.known() {
        return;
    }
    let was = before.end;
    // A start that ended before its removal of the marker was durable wrote nothing yet: what the next one finds is still so.
    let started_in_vain = before.at_rest() && end == was;
    // An older copy may have been made while its broker was down in order.
    let set_back = before.lossy_by() == Some(Excuse::OlderCopy);
    if clean && !marked && !started_in_vain && !set_back {
        cx.broken("S15", format_args!("no clean-shutdown marker after {}", say(stop)), "it is there");
    }
    // A cut may not have reached the disk; an append that failed may have, and one that a crash fell into.
    let back = inside || before.was_cut() && matches!(stop, Some(Stop::Lossy | Stop::Failed));
    if end > was && !back {
        cx.broken("S15", format_args!("a prefix of the log, which ended at {was}"), format_args!("it ends at {end}"));
    }
    if rotten && end < was {
        // It ends right before a batch of which the disk flipped bits.
        let text = format!("a log of {was} ends at {end}: {}", place_name(cx.sight, cx.roster, cx.at));
        return cx.report.excuse("S15", Excuse::BitRot, text);
    }
    match stop {
        Some(Stop::Clean | Stop::Killed) if end < was && !inside => {
            cx.broken(
                "S15",
                format_args!("a log that still ends at {was} after {}", say(stop)),
                format_args!("it ends at {end}"),
            );
        }
        Some(Stop::Lossy | Stop::Failed) => {
            if let Some(least) = promised.filter(|p| end < *p) {
                cx.broken("S15", format_args!("what was durable, up to {least}"), format_args!("it ends at {end}"));
            }
        }
        _ => {}
    }
}
