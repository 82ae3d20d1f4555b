//! Elections that a step asks for.

use super::operators::partitions_of;
use super::{nodes, Done};
use crate::format::action::Elect;
use crate::lab::Lab;
use mirrorlab_model::client::commands::Command;
use mirrorlab_model::ids::{BrokerId, NodeId};
use mirrorlab_sim::node::Process;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Moves leadership. Kafka has no order for "this broker": its operators reorder the replicas and ask for the preferred one;
/// here the controller is asked directly, by the same rule (an in-sync replica only).
pub(super) fn elect_leader(
    lab: &mut Lab,
    on: &str,
    topic: &str,
    partition: Option<u32>,
    elect: &Elect,
    over: &BTreeSet<String>,
    done: &mut Done,
) {
    let Some(cluster) = lab.setup.cluster(on) else { return };
    let numbers: Vec<u32> = match partition {
        Some(p) => vec![p],
        None => (0..partitions_of(lab, on, topic)).collect(),
    };
    let named = |numbers: &[u32]| numbers.iter().map(|p| (Arc::from(topic), *p)).collect();
    match elect {
        Elect::Preferred(_) => {
            let command = Command::ElectLeaders { unclean: false, partitions: named(&numbers) };
            done.orders.push(lab.order(cluster, command));
        }
        Elect::Unclean(_) => {
            let command = Command::ElectLeaders { unclean: true, partitions: named(&numbers) };
            done.orders.push(lab.order(cluster, command));
        }
        Elect::To(node) => {
            let wanted = nodes(lab, node, over).first().copied();
            move_leaders(lab, cluster, topic, &numbers, |candidates, _| {
                candidates.iter().copied().find(|(_, n)| Some(*n) == wanted)
            });
        }
        Elect::Pick(n) => {
            move_leaders(lab, cluster, topic, &numbers, |candidates, _| {
                candidates.get(*n as usize % candidates.len().max(1)).copied()
            });
        }
    }
}

type Candidates = Vec<(BrokerId, NodeId)>;

fn move_leaders(
    lab: &mut Lab,
    cluster: u8,
    topic: &str,
    numbers: &[u32],
    pick: impl Fn(&Candidates, u32) -> Option<(BrokerId, NodeId)>,
) {
    let Some(image) = lab.setup.image(&lab.world, cluster) else { return };
    let Some(partitions) = image.topic_by_name(topic).and_then(|t| image.topic(t)).map(|t| t.partitions.clone()) else {
        return;
    };
    let mut moves = Vec::new();
    for number in numbers {
        let Some(partition) = partitions.get(*number as usize) else { continue };
        let Some(state) = image.partition(*partition).map(|p| &p.state) else { continue };
        let candidates: Candidates = state
            .isr
            .iter()
            .filter(|b| **b != state.leader)
            .filter_map(|b| Some((*b, lab.setup.broker_node(cluster, *b)?)))
            .collect();
        if let Some((broker, _)) = pick(&candidates, *number) {
            moves.push((*partition, broker));
        }
    }
    let Some(controller) = lab.setup.active(&lab.world, cluster) else { return };
    lab.world.call(controller, |process, now, cx| {
        if let Process::Controller(controller) = process {
            controller.move_leaders(&moves, now, cx);
        }
    });
}
