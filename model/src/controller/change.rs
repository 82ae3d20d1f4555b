//! One partition's next registration: who leads, who is in sync, who may be elected without loss.
//!
//! All changes of ISR, ELR and leader go through [`Change::build`]: fencing, registration, ISR proposals, elections.
//! Sources: KIP-631 (fencing), KIP-497 (a shrink of the ISR does not raise the leader epoch), KIP-966 (ELR), spec 3.4
//! (the new leader epoch is explicit in the record).

use crate::guards::{controller as guard, Guards};
use crate::ids::{BrokerId, LeaderEpoch, PartitionIx};
use crate::metadata::records::{Brokers, PartitionState, Record};
use crate::trace::ElectionKind;

/// Which leader is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Election {
    /// The present one if it may stay, else any that loses nothing.
    Online,
    /// The preferred one if it loses nothing, else the present one.
    Preferred,
    /// As `Online`, and if there is none, any live replica.
    Unclean,
}

/// What is wanted of a partition, on top of what is.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    /// Which.
    pub partition: PartitionIx,
    /// Its present registration.
    pub old: &'a PartitionState,
    /// The wanted ISR.
    pub isr: Brokers,
    /// Which leader is looked for.
    pub election: Election,
    /// `min.insync.replicas` of the topic.
    pub min_isr: u32,
    /// Whether eligible leader replicas are kept (KIP-966).
    pub elr_enabled: bool,
    /// This replica stopped without proof that its disk is whole: it may be in neither set.
    pub unclean: Option<BrokerId>,
    /// The leader reports that recovery after an unclean election is over.
    pub recovered: bool,
    /// The leader epoch rises even if the leader stays.
    pub raise_epoch: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Elected {
    leader: BrokerId,
    kind: ElectionKind,
}

impl<'a> Change<'a> {
    /// Nothing wanted yet.
    #[must_use]
    pub fn of(partition: PartitionIx, old: &'a PartitionState, min_isr: u32, elr_enabled: bool) -> Self {
        Self {
            partition,
            old,
            isr: old.isr.clone(),
            election: Election::Online,
            min_isr,
            elr_enabled,
            unclean: None,
            recovered: false,
            raise_epoch: false,
        }
    }

    /// The record of the change, `None` if nothing changes. `active` tells who may lead.
    #[must_use]
    pub fn build(
        mut self,
        guards: &mut Guards,
        active: impl Fn(BrokerId) -> bool,
    ) -> Option<(Record, Option<ElectionKind>)> {
        let old = self.old;
        let mut elr = self.next_elr();
        let elected = self.elect(guards, &elr, &active);
        let leader = elected.map_or(BrokerId::NONE, |e| e.leader);
        let moved = leader != old.leader;
        let mut recovering = old.recovering && !self.recovered;
        match elected.map(|e| e.kind) {
            Some(ElectionKind::Unclean) => {
                // The one who is chosen regardless is the only one whose log can be trusted to be its own.
                self.isr = [leader].into_iter().collect();
                elr.clear();
                recovering = true;
            }
            Some(ElectionKind::Eligible) => {
                self.isr = [leader].into_iter().collect();
                elr.retain(|b| *b != leader);
                if self.enough_in_sync() {
                    elr.clear();
                }
            }
            // Only reached with a guard off: whoever leads counts as in sync.
            Some(_) if !self.isr.contains(&leader) => self.isr.push(leader),
            _ => {}
        }
        // Without ELR an ISR never runs empty: its last member stays, for it alone has everything.
        let isr = if self.isr.is_empty() && !self.elr_enabled { old.isr.clone() } else { self.isr.clone() };
        let last_known = self.next_last_known(&isr, leader);
        let raise = self.raise_epoch || !guards.admits(guard::LeaderChangeRaisesEpoch, !moved);
        let record = Record::PartitionChange {
            partition: self.partition,
            leader: moved.then_some(leader),
            leader_epoch: raise
                .then(|| LeaderEpoch(old.leader_epoch.0.saturating_add(1)))
                .or(moved.then_some(old.leader_epoch)),
            isr: (isr != old.isr).then_some(isr),
            elr: (elr != old.elr).then_some(elr),
            last_known_elr: (last_known != old.last_known_elr).then_some(last_known),
            recovering: (recovering != old.recovering).then_some(recovering),
            replicas: None,
        };
        let kind = if moved { elected.map(|e| e.kind) } else { None };
        (!is_no_op(&record)).then_some((record, kind))
    }

    fn enough_in_sync(&self) -> bool {
        self.isr.len() >= (self.min_isr as usize).min(self.old.replicas.len())
    }

    /// Who is not in sync but complete: whoever was in the ISR or ELR, as long as the ISR is below the minimum, because the
    /// high watermark stands still then (KIP-966).
    fn next_elr(&self) -> Brokers {
        if !self.elr_enabled || self.enough_in_sync() {
            return Brokers::new();
        }
        let mut elr = Brokers::new();
        for broker in self.old.elr.iter().chain(&self.old.isr) {
            if !self.isr.contains(broker) && self.unclean != Some(*broker) && !elr.contains(broker) {
                elr.push(*broker);
            }
        }
        elr
    }

    /// The last leader, remembered from the moment when nobody is in sync (KIP-966, balanced recovery).
    fn next_last_known(&self, isr: &Brokers, leader: BrokerId) -> Brokers {
        if !self.elr_enabled || self.enough_in_sync() && leader != BrokerId::NONE {
            return Brokers::new();
        }
        if isr.is_empty() && self.old.leader != BrokerId::NONE {
            return [self.old.leader].into_iter().collect();
        }
        self.old.last_known_elr.clone()
    }

    fn elect(&self, guards: &mut Guards, elr: &Brokers, active: &impl Fn(BrokerId) -> bool) -> Option<Elected> {
        let old = self.old;
        let preferred = old.replicas.first().copied();
        let clean = |broker: BrokerId| self.isr.contains(&broker) && active(broker);
        let elected = |leader, kind| Some(Elected { leader, kind });
        if self.election == Election::Preferred {
            if let Some(leader) = preferred.filter(|p| active(*p)) {
                if guards.admits(guard::ElectionFromIsrOnly, self.isr.contains(&leader)) {
                    return elected(leader, ElectionKind::Preferred);
                }
            }
        }
        if clean(old.leader) {
            return elected(old.leader, ElectionKind::Clean);
        }
        for &replica in old.replicas.iter().filter(|r| active(**r)) {
            let complete = self.isr.contains(&replica) || elr.contains(&replica);
            if guards.admits(guard::ElectionFromIsrOnly, complete) && !elr.contains(&replica) {
                return elected(replica, ElectionKind::Clean);
            }
        }
        if let Some(&leader) = old.replicas.iter().find(|r| elr.contains(r) && active(**r)) {
            return elected(leader, ElectionKind::Eligible);
        }
        if let Some(leader) = self.last_known_leader(guards, elr, active) {
            return elected(leader, ElectionKind::Unclean);
        }
        if self.election == Election::Unclean {
            if let Some(&leader) = old.replicas.iter().find(|r| active(**r)) {
                return elected(leader, ElectionKind::Unclean);
            }
        }
        None
    }

    /// With ISR and ELR empty, the last leader takes over as soon as it is back: of all replicas it may have the most
    /// (KIP-966). Not before: a fenced leader serves nobody (I11, KAFKA-19522).
    fn last_known_leader(
        &self,
        guards: &mut Guards,
        elr: &Brokers,
        active: &impl Fn(BrokerId) -> bool,
    ) -> Option<BrokerId> {
        if !self.elr_enabled || !self.isr.is_empty() || !elr.is_empty() {
            return None;
        }
        let [leader] = self.old.last_known_elr.as_slice() else { return None };
        guards.admits(guard::LastKnownLeaderUnfenced, active(*leader)).then_some(*leader)
    }
}

fn is_no_op(record: &Record) -> bool {
    matches!(
        record,
        Record::PartitionChange {
            leader: None,
            leader_epoch: None,
            isr: None,
            elr: None,
            last_known_elr: None,
            recovering: None,
            replicas: None,
            ..
        }
    )
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
