//! Produce requests and transaction markers that wait for replicas, and one timer for all of them.

use crate::broker::markers::JobId;
use crate::coordinator::txn_records::Member;
use crate::ids::{ConnId, Nanos, Offset, ProducerId};
use crate::replica::waits::Ticket;
use crate::wire::errors::ErrorCode;
use crate::wire::messages::ProduceResponse;
use std::collections::BTreeSet;

/// What waits, and how it is answered for.
#[derive(Clone, Debug)]
pub(crate) enum Goal {
    /// A producer's batches.
    Produce,
    /// A coordinator's markers: how many parts each has.
    Markers(Vec<(ProducerId, u32)>),
    /// A marker of this broker's own coordinator.
    Own(JobId, Member),
}

/// A request with parts that wait.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub generation: u32,
    pub conn: ConnId,
    pub correlation: u32,
    pub left: u32,
    pub deadline: Nanos,
    /// Which parts still wait.
    pub waiting: Vec<bool>,
    pub answer: ProduceResponse,
    pub goal: Goal,
}

/// All of them, by place.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingProduces {
    list: Vec<Option<Pending>>,
    free: Vec<u32>,
    generation: u32,
    deadlines: BTreeSet<(Nanos, u32)>,
    pub timer_at: Option<Nanos>,
}

impl PendingProduces {
    /// The ticket of the next request's first part; valid until [`Self::add`] or the next call.
    pub fn ticket(&self) -> Ticket {
        let request = self.free.last().copied().unwrap_or(self.list.len() as u32);
        Ticket { request, generation: self.generation.wrapping_add(1), part: 0 }
    }

    /// Keeps a request under the ticket that was given.
    #[allow(clippy::too_many_arguments)] // all that a request is
    pub fn add(
        &mut self,
        conn: ConnId,
        correlation: u32,
        deadline: Nanos,
        waiting: Vec<bool>,
        answer: ProduceResponse,
        goal: Goal,
    ) {
        self.generation = self.generation.wrapping_add(1);
        let left = waiting.iter().filter(|w| **w).count() as u32;
        let pending = Pending { generation: self.generation, conn, correlation, left, deadline, waiting, answer, goal };
        let at = if let Some(at) = self.free.pop() {
            self.list[at as usize] = Some(pending);
            at
        } else {
            self.list.push(Some(pending));
            (self.list.len() - 1) as u32
        };
        self.deadlines.insert((deadline, at));
    }

    /// The request of a ticket, if it still waits.
    pub fn get_mut(&mut self, ticket: &Ticket) -> Option<&mut Pending> {
        self.list.get_mut(ticket.request as usize)?.as_mut().filter(|p| p.generation == ticket.generation)
    }

    /// Takes a request out.
    pub fn take(&mut self, at: u32) -> Option<Pending> {
        let pending = self.list.get_mut(at as usize)?.take()?;
        self.free.push(at);
        self.deadlines.remove(&(pending.deadline, at));
        Some(pending)
    }

    /// The next deadline.
    pub fn next_deadline(&self) -> Option<(Nanos, u32)> {
        self.deadlines.first().copied()
    }

    /// What still waits in a request timed out.
    pub fn expire(&mut self, at: u32) {
        let Some(Some(pending)) = self.list.get_mut(at as usize) else { return };
        for (part, waits) in pending.answer.parts.iter_mut().zip(&pending.waiting) {
            if *waits {
                part.error = ErrorCode::RequestTimedOut;
                part.base = Offset::UNKNOWN;
            }
        }
    }

    /// Drops what waits for a connection that ended.
    pub fn closed(&mut self, conn: ConnId) {
        for at in 0..self.list.len() as u32 {
            if self.list[at as usize].as_ref().is_some_and(|p| p.conn == conn) {
                self.take(at);
            }
        }
    }
}
