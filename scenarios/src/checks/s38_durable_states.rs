//! S38 State is durable before effect. What a broker does for a state (starts a fetcher, opens the partition for writes, tells that
//! it is in that state) it does after the state was committed in `__mirror_state`; a coordinator serves what the committed log
//! comes to, whoever coordinated before.

use super::cx::Cx;
use super::ghost::{ClusterGhost, PartitionGhost};
use super::lives::{self, Committed, Life};
use super::sight::{LogSight, Sight};
use mirrorlab_model::ids::{LeaderEpoch, Offset, PartitionIx};
use mirrorlab_model::states::{LastPosition, MirrorState, StateRecord};

/// A broker acts on the state in which it has a partition. `only`: the one state that allows this.
pub(super) fn acts<S: Sight>(cx: &mut Cx<'_, S>, g: &PartitionGhost, only: Option<MirrorState>) {
    let Some(told) = cx.at.node.and_then(|node| cx.sight.mirror(node, cx.partition())) else { return };
    if let Some(only) = only.filter(|only| *only != told.state) {
        cx.broken("S38", format_args!("this in {} only", only.name()), told.state.name());
    }
    let epoch = cx.replica(cx.slot).map(|replica| replica.leader_epoch);
    let floor = g.life().filter(|life| Some(life.term.0) == epoch).map_or(0, |life| life.term.1);
    if only.is_some() && told.state_epoch < floor {
        let expected = format!("state number {floor}, which was committed before its term, or a later one");
        cx.broken("S38", expected, told.state_epoch);
    }
    if lives::is_of_the_former(cx, g, told.state, told.state_epoch) {
        return;
    }
    let newest = g.life().map(Life::last).unwrap_or(Committed {
        state: MirrorState::Unknown,
        leader_epoch: LeaderEpoch::NONE,
        state_epoch: 0,
    });
    let known = g.life().and_then(|life| life.numbered(told.state_epoch));
    match known {
        Some(committed) if committed.state != told.state => {
            let expected =
                format_args!("state {} as number {}, as committed", committed.state.name(), told.state_epoch);
            cx.broken("S38", expected.to_string(), told.state.name());
        }
        None if told.state_epoch > newest.state_epoch || told.state_epoch < 0 => {
            let got = format_args!("{} as number {}", told.state.name(), told.state_epoch);
            let expected = format_args!("a committed state, up to number {}", newest.state_epoch);
            cx.broken("S38", expected.to_string(), got.to_string());
        }
        _ => {}
    }
}

/// A coordinator read a partition of `__mirror_state` and serves from now on.
pub(super) fn loaded<S: Sight>(cx: &mut Cx<'_, S>, c: &ClusterGhost, end: Offset) {
    let home = cx.partition();
    let log_end = cx.replica(cx.slot).map(|r| r.log.end());
    let read = c.states_read.get(&home).map_or(Offset::ZERO, |read| read.0);
    // What is committed beyond it cannot be told apart from here.
    if read != end || log_end != Some(end) {
        return;
    }
    let Some(served) = cx.at.node.and_then(|node| cx.sight.states(node, home)) else { return };
    let mut found: Vec<PartitionIx> = Vec::new();
    for (key, record) in &served {
        let Some(partition) = lives::partition_of(cx, key) else { continue };
        let life = c.partitions.get(partition.0 as usize).and_then(PartitionGhost::life);
        let Some(life) = life.filter(|life| life.mirror == key.mirror) else { continue };
        found.push(partition);
        if !agrees(life, record) {
            let last = life.last();
            let expected =
                say((last.state, last.state_epoch, last.leader_epoch), (life.previous, life.attempt), life.position);
            let got = say(
                (record.state, record.state_epoch, record.leader_epoch),
                (record.previous, record.attempt),
                record.position,
            );
            cx.at.partition = Some(partition);
            cx.broken("S38", expected, got);
            cx.at.partition = Some(home);
        }
    }
    found.sort_unstable();
    for (ix, g) in c.partitions.iter().enumerate() {
        let ix = PartitionIx(ix as u32);
        // The states of a topic that is deleted are swept away (decision 18).
        if cx.sight.image(cx.at.cluster).is_some_and(|image| image.partition(ix).is_none()) {
            continue;
        }
        if g.life().is_some_and(|life| life.home == home) && found.binary_search(&ix).is_err() {
            cx.at.partition = Some(ix);
            cx.broken("S38", "its committed state, served by its coordinator", "none");
            cx.at.partition = Some(home);
        }
    }
}

fn say(
    (state, number, epoch): (MirrorState, i32, LeaderEpoch),
    (previous, attempt): (MirrorState, i16),
    position: Option<LastPosition>,
) -> String {
    let failed = match state {
        MirrorState::Failed => format!(", attempt {attempt}, after {}", previous.name()),
        _ => String::new(),
    };
    let position = position.map_or_else(|| "none".to_owned(), |position| position.to_string());
    format!("{} as number {number} of leader epoch {epoch}{failed}; last mirrored position: {position}", state.name())
}

fn agrees(life: &Life, record: &StateRecord) -> bool {
    let last = life.last();
    (last.state, last.state_epoch, last.leader_epoch) == (record.state, record.state_epoch, record.leader_epoch)
        && (life.previous, life.attempt, life.position) == (record.previous, record.attempt, record.position)
}
