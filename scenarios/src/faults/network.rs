//! Strikes at the network.

use super::{nodes, Done, Striker, Undo};
use crate::format::action::{Action, Answers, NodeRef, Place, Role};
use crate::format::types::Stage;
use crate::lab::{chance, Lab};
use crate::units::Time;
use mirrorlab_model::ids::Nanos;
use mirrorlab_sim::foreign;
use mirrorlab_sim::net::{self, Cut, Degrade, Fault, FaultId, Jitter, Only, Perturb, SiteIx, Who};
use std::collections::BTreeSet;

impl Striker {
    /// True if it was one.
    pub(super) fn strike_network(
        &mut self,
        lab: &mut Lab,
        stage: &Stage,
        action: &Action,
        over: &BTreeSet<String>,
        done: &mut Done,
    ) -> bool {
        match action {
            Action::Partition { between, node, role, one_way, .. } => {
                let cuts = self.cuts(lab, between.as_ref(), node.as_ref(), *role, *one_way, over);
                cuts.into_iter().for_each(|cut| done.undo.push(self.net(lab, Fault::Cut(cut))));
            }
            // Partitions that a step ends are lifted by the runner, which knows which step struck them.
            Action::Heal { .. } => {}
            Action::Latency { link, latency, jitter, toward, .. } => {
                self.degrade(lab, stage, link, toward.as_deref(), done, |d, base| {
                    d.extra_latency = latency.nanos().since(base);
                    d.jitter = jitter.map(|max| Jitter::Uniform { max: max.nanos() });
                })
            }
            Action::Loss { link, loss, toward, .. } => {
                self.degrade(lab, stage, link, toward.as_deref(), done, |d, _| d.loss = chance(*loss));
            }
            Action::Bandwidth { link, bandwidth, toward, .. } => {
                self.degrade(lab, stage, link, toward.as_deref(), done, |d, _| {
                    d.bits_per_second = Some(bandwidth.0);
                })
            }
            Action::ResetConnections { link, node, silent } => {
                let ends = link.as_ref().and_then(|link| stage.links.get(link)).and_then(|link| {
                    let site = |n: usize| lab.sites.get(&link.between[n]).copied().map(Who::Site);
                    Some((site(0)?, site(1)?))
                });
                let of_nodes = node.iter().flat_map(|node| nodes(lab, node, over)).map(|n| (Who::Node(n), Who::Anyone));
                let pairs: Vec<(Who, Who)> = ends.into_iter().chain(of_nodes).collect();
                let many: usize = pairs.into_iter().map(|(a, b)| lab.world.reset_connections(a, b, *silent)).sum();
                done.text = format!("{} ({many} of them{})", done.text, if *silent { ", silently" } else { "" });
            }
            Action::Duplicate { kind, from, to, probability, extra, .. } => {
                let rule = rule(kind, *probability, *extra, true);
                self.perturb(lab, rule, from.as_ref(), to.as_ref(), over, done);
            }
            Action::DelayMessages { kind, from, to, probability, extra, .. } => {
                let rule = rule(kind, *probability, *extra, false);
                self.perturb(lab, rule, from.as_ref(), to.as_ref(), over, done);
            }
            Action::Foreign { on, answers, probability, .. } => {
                if let Some(cluster) = lab.setup.cluster(on) {
                    let answers = match answers {
                        Answers::Epochs => foreign::Answers::Epochs,
                        Answers::Leaders => foreign::Answers::Leaders,
                        Answers::Metadata => foreign::Answers::Metadata,
                        Answers::Batches => foreign::Answers::Batches,
                    };
                    let rule = foreign::Rule { cluster, answers, chance: f64::from(probability.0) / 1e9 };
                    done.undo.push(Undo::Foreign(lab.world.foreign_mut().add(rule)));
                }
            }
            _ => return false,
        }
        true
    }

    fn net(&mut self, lab: &mut Lab, fault: Fault) -> Undo {
        self.net_faults += 1;
        let id = FaultId(self.net_faults);
        let now = lab.world.now();
        lab.world.net_mut().set_fault(now, id, fault);
        Undo::Net(id)
    }

    /// One rule for each pair of ends that the places name.
    fn perturb(
        &mut self,
        lab: &mut Lab,
        rule: Perturb,
        from: Option<&Place>,
        to: Option<&Place>,
        over: &BTreeSet<String>,
        done: &mut Done,
    ) {
        let ends = |place: Option<&Place>| place.map_or_else(|| vec![Who::Anyone], |place| who(lab, place, over));
        let (senders, receivers) = (ends(from), ends(to));
        for from in senders {
            for to in &receivers {
                let rule = Perturb { from, to: *to, ..rule.clone() };
                done.undo.push(self.net(lab, Fault::Perturb(rule)));
            }
        }
    }

    fn cuts(
        &mut self,
        lab: &Lab,
        between: Option<&[Place; 2]>,
        node: Option<&NodeRef>,
        role: Option<Role>,
        one_way: bool,
        over: &BTreeSet<String>,
    ) -> Vec<Cut> {
        let only = match role {
            None => Only::Everything,
            Some(Role::Controller) => Only::Controllers,
            Some(Role::Replication) => Only::InterBroker,
            Some(Role::Mirror) => Only::InterCluster,
            Some(Role::Client) => Only::Clients,
        };
        let one_sided = |from: Who, to: Who| Cut { from, to, both_ways: !one_way, only };
        match (between, node) {
            (Some([a, b]), _) => {
                let pairs = |place: &Place| who(lab, place, over);
                pairs(a)
                    .into_iter()
                    .flat_map(|x| pairs(b).into_iter().map(move |y| (x, y)))
                    .map(|(x, y)| one_sided(x, y))
                    .collect()
            }
            // One way, a node hears nothing but is heard.
            (None, Some(node)) => {
                nodes(lab, node, over).into_iter().map(|n| one_sided(Who::Anyone, Who::Node(n))).collect()
            }
            (None, None) => vec![one_sided(Who::Anyone, Who::Anyone)],
        }
    }

    fn degrade(
        &mut self,
        lab: &mut Lab,
        stage: &Stage,
        link: &str,
        toward: Option<&str>,
        done: &mut Done,
        how: impl Fn(&mut Degrade, Nanos),
    ) {
        let Some(plan) = stage.links.get(link) else { return };
        for from in 0..2 {
            if toward.is_some_and(|to| to != plan.between[1 - from]) {
                continue;
            }
            let (Some(a), Some(b)) = (lab.sites.get(&plan.between[from]), lab.sites.get(&plan.between[1 - from]))
            else {
                continue;
            };
            let mut degrade = Degrade {
                from: *a,
                to: *b,
                extra_latency: Nanos::ZERO,
                jitter: None,
                loss: net::Chance::NEVER,
                bits_per_second: None,
            };
            how(&mut degrade, plan.direction(from).latency.nanos());
            done.undo.push(self.net(lab, Fault::Degrade(degrade)));
        }
    }
}

fn who(lab: &Lab, place: &Place, over: &BTreeSet<String>) -> Vec<Who> {
    match place {
        Place::Cluster(name) => lab.setup.cluster(name).map(|c| Who::Cluster(u16::from(c))).into_iter().collect(),
        Place::Site(name) => vec![Who::Site(lab.sites.get(name).copied().unwrap_or(SiteIx(u16::MAX)))],
        Place::Node(node) => nodes(lab, node, over).into_iter().map(Who::Node).collect(),
    }
}

fn rule(kind: &str, probability: crate::units::Chance, extra: Time, duplicate: bool) -> Perturb {
    let body = (kind != "any").then(|| kind.into());
    let (chance, extra) = (chance(probability), extra.nanos());
    Perturb { from: Who::Anyone, to: Who::Anyone, body, chance, extra, duplicate }
}
