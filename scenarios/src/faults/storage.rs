//! Strikes at disks, and copies of them.

use super::{nodes, Done, Striker, Undo};
use crate::format::action::{Action, DiskCall};
use crate::lab::Lab;
use mirrorlab_model::ids::NodeId;
use mirrorlab_model::ports::DirName;
use mirrorlab_sim::disk::{ErrorRule, Ops};
use std::collections::BTreeSet;

impl Striker {
    /// True if it was one.
    pub(super) fn strike_disk(
        &mut self,
        lab: &mut Lab,
        action: &Action,
        over: &BTreeSet<String>,
        done: &mut Done,
    ) -> bool {
        match action {
            Action::DiskFull { node, .. } => {
                for n in nodes(lab, node, over) {
                    lab.world.node_mut(n).disk.set_capacity(0);
                    done.undo.push(Undo::Room(n));
                }
            }
            Action::DiskError { node, call, probability, .. } => {
                for n in nodes(lab, node, over) {
                    let rule =
                        ErrorRule { ops: ops(*call), file: None, chance: f64::from(probability.0) / 1e9, count: None };
                    lab.world.node_mut(n).disk.add_error(rule);
                    done.undo.push(Undo::Errors(n));
                }
            }
            Action::DiskStall { node, .. } => {
                for n in nodes(lab, node, over) {
                    lab.world.node_mut(n).disk.stall();
                    done.undo.push(Undo::Flushes(n));
                }
            }
            Action::DiskSlow { node, call, by, .. } => {
                for n in nodes(lab, node, over) {
                    let disk = &mut lab.world.node_mut(n).disk;
                    let mut model = *disk.model();
                    // Reads and writes have one price.
                    if *call != DiskCall::Flush {
                        model.call = model.call + by.nanos();
                    }
                    if matches!(call, DiskCall::Any | DiskCall::Flush) {
                        model.flush_latency = model.flush_latency + by.nanos();
                        model.flush_latency_max = model.flush_latency_max + by.nanos();
                    }
                    disk.set_model(model);
                    done.undo.push(Undo::Speed(n));
                }
            }
            Action::BitRot { node, topic, partition, bits } => {
                for n in nodes(lab, node, over) {
                    let Some(dir) = dir_of(lab, n, topic, *partition) else { continue };
                    let mut rotten = 0;
                    for _ in 0..*bits {
                        rotten += u32::from(lab.world.rot(n, dir, self.rots));
                        self.rots += 1; // each is a draw of its own
                    }
                    done.text = format!("{} {topic}-{partition} ({rotten} bits)", done.text);
                }
            }
            Action::SnapshotCluster { on } => {
                for n in brokers(lab, on) {
                    let copy = lab.world.copy_disk(n);
                    self.copies.insert(n, copy);
                }
            }
            Action::RestoreCluster { on } => {
                for n in brokers(lab, on) {
                    let Some(copy) = self.copies.get(&n) else { continue };
                    lab.world.restore_disk(n, copy);
                    lab.world.start(n);
                }
            }
            _ => return false,
        }
        true
    }
}

fn brokers(lab: &Lab, on: &str) -> Vec<NodeId> {
    let cluster = lab.setup.cluster(on).and_then(|c| lab.setup.clusters.get(usize::from(c)));
    cluster.map_or_else(Vec::new, |c| c.brokers.clone())
}

/// The directory of a partition's replica at a node.
fn dir_of(lab: &Lab, node: NodeId, topic: &str, partition: u32) -> Option<DirName> {
    let image = lab.setup.image(&lab.world, lab.world.node(node).cluster?)?;
    Some(DirName::Partition { topic: image.life(image.topic_by_name(topic)?)?, partition })
}

fn ops(call: DiskCall) -> Ops {
    match call {
        DiskCall::Any => Ops::ALL,
        DiskCall::Read => Ops::READ,
        DiskCall::Write => Ops::WRITE,
        DiskCall::Flush => Ops::FLUSH,
    }
}
