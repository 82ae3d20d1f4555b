//! From the wire to a process: the handshake, arrivals, and what a host does with a packet that nobody waits for.

use super::connection::EndState;
use super::flow::{Item, Parcel};
use super::lifecycle::Host;
use super::{NetEvent, NetOut, Network, What};
use crate::rng::Concern;
use mirrorlab_model::ids::Nanos;
use mirrorlab_model::ports::{CloseReason, Input};

impl Network {
    /// Sends a packet that asks for a connection.
    pub(super) fn attempt(&mut self, now: Nanos, slot: u32, out: &mut NetOut) {
        let conn = &self.slab.conns[slot as usize];
        let flow = &conn.flows[0];
        let spec = &self.links[flow.link as usize].spec;
        let bits = self.laws.seed.draw(Concern::NetConnect, flow.key, u64::from(conn.attempts) << 1);
        let at = now + spec.latency + Nanos(spec.jitter.delay(bits));
        out.events.push((at, NetEvent { slot, stamp: conn.stamp, what: What::Syn }));
    }

    /// Such a packet arrives, or the attempt has lasted too long.
    pub(super) fn syn(&mut self, now: Nanos, slot: u32, out: &mut NetOut) {
        let conn = &mut self.slab.conns[slot as usize];
        if conn.ends[0].state != EndState::Opening {
            return;
        }
        let deadline = conn.began + self.laws.tcp.connect_timeout;
        if now >= deadline {
            return self.tell_locally(now, slot, 1, Parcel::ConnectTimeout, out);
        }
        if conn.ends[1].state != EndState::Idle || !conn.flows[1].queue.is_empty() {
            return; // answered already; the answer is on its way
        }
        let flow = &conn.flows[0];
        let bits = self.laws.seed.draw(Concern::NetConnect, flow.key, (u64::from(conn.attempts) << 1) | 1);
        let lost = self.links[flow.link as usize].spec.loss.hits(bits);
        let host = self.nodes.get(usize::from(conn.ends[1].node.0)).and_then(Option::as_ref).map(|node| node.host);
        let answer = match host {
            _ if lost || flow.cut || flow.silent => None,
            Some(Host::Up) => Some(Parcel::Opened),
            Some(Host::Paused) if self.laws.tcp.accept_while_paused => Some(Parcel::Opened),
            Some(Host::Vacant) => Some(Parcel::Refused),
            _ => None,
        };
        let Some(parcel) = answer else {
            if lost || flow.cut {
                let link = flow.link as usize;
                self.links[link].counters.drops += 1;
            }
            conn.attempts = conn.attempts.saturating_add(1);
            // The retransmission leaves after 1, 3, 7 … seconds and takes as long as this one did.
            let wait = self.laws.tcp.syn_rto.0.saturating_mul(1 << (conn.attempts - 1).min(16));
            let at = (now + Nanos(wait)).min(deadline);
            out.events.push((at, NetEvent { slot, stamp: conn.stamp, what: What::Syn }));
            return;
        };
        if matches!(parcel, Parcel::Opened) {
            conn.ends[1].state = EndState::SynReceived;
        }
        let back = &mut conn.flows[1];
        back.ended = matches!(parcel, Parcel::Refused);
        back.push(Item { parcel, due: Nanos::ZERO, bytes: 0 }, &mut self.links[back.link as usize]);
        self.pump(now, slot, 1, out);
    }

    /// The first message of this direction may be due: hands over all that are.
    pub(super) fn deliver(&mut self, now: Nanos, slot: u32, direction: usize, out: &mut NetOut) {
        let conn = &mut self.slab.conns[slot as usize];
        let receiver = conn.ends[1 - direction];
        let flow = &mut conn.flows[direction];
        let Some(head) = flow.queue.front() else { return };
        if flow.launched == 0 {
            return;
        }
        let local = head.parcel.is_local();
        if flow.cut && !local {
            return self.stall(now, slot, direction, out);
        }
        let host = self.nodes.get(usize::from(receiver.node.0)).and_then(Option::as_ref).map(|node| node.host);
        match host {
            Some(Host::Up) => {}
            Some(Host::Paused) if receiver.state == EndState::Closed => {}
            Some(Host::Paused) => return, // the kernel keeps it; the resumed process is told
            Some(Host::Vacant) => {}
            _ if local => return,
            _ => return self.stall(now, slot, direction, out),
        }
        if receiver.state == EndState::Closed {
            return self.answer_with_reset(now, slot, direction, out);
        }
        self.hand_over(now, slot, direction, out);
    }

    fn hand_over(&mut self, now: Nanos, slot: u32, direction: usize, out: &mut NetOut) {
        let conn = &mut self.slab.conns[slot as usize];
        let (id, stamp) = (conn.id, conn.stamp);
        let node = conn.ends[1 - direction].node;
        loop {
            let conn = &mut self.slab.conns[slot as usize];
            let flow = &mut conn.flows[direction];
            let Some(head) = flow.queue.front() else { return };
            if flow.launched == 0 {
                return;
            }
            if head.due > now {
                flow.deliver_at = head.due;
                let what = What::Deliver(direction as u8);
                return out.events.push((head.due, NetEvent { slot, stamp, what }));
            }
            let Some(item) = flow.queue.pop_front() else { return };
            flow.launched -= 1;
            let why = match item.parcel {
                Parcel::Message(message) => {
                    out.inputs.push((node, Input::Message { conn: id, message }));
                    continue;
                }
                Parcel::Opened => {
                    self.opened(now, slot, direction, out);
                    continue;
                }
                Parcel::Fin => CloseReason::Closed,
                Parcel::Refused => CloseReason::Refused,
                Parcel::ConnectTimeout => CloseReason::ConnectTimeout,
                Parcel::Reset | Parcel::TimedOut => CloseReason::Reset,
            };
            return self.ended(slot, direction, why, out);
        }
    }

    /// The receiving end of `direction` learns that the connection stands.
    fn opened(&mut self, now: Nanos, slot: u32, direction: usize, out: &mut NetOut) {
        let conn = &mut self.slab.conns[slot as usize];
        let (node, peer) = (conn.ends[1 - direction].node, conn.ends[direction].node);
        conn.ends[1 - direction].state = EndState::Open;
        out.inputs.push((node, Input::Opened { conn: conn.id, peer, inbound: direction == 0 }));
        if direction == 1 {
            conn.flows[0].gated = false;
            self.pump(now, slot, 0, out);
        }
    }

    /// The receiving end of `direction` learns that the connection is over.
    fn ended(&mut self, slot: u32, direction: usize, why: CloseReason, out: &mut NetOut) {
        let conn = &mut self.slab.conns[slot as usize];
        let end = &mut conn.ends[1 - direction];
        if end.state.is_known() {
            out.inputs.push((end.node, Input::Closed { conn: conn.id, why }));
        }
        end.state = EndState::Closed;
        let other = conn.ends[direction].state;
        if !other.is_known() {
            return self.release(slot);
        }
        // Only after a time-out of one side: the other is half-open until it speaks. What waits here has no sender any more.
        for flow in &mut conn.flows {
            flow.clear(&mut self.links[flow.link as usize]);
        }
        conn.flows[direction].ended = false;
        conn.flows[1 - direction].ended = true;
    }

    /// A packet for a connection that its end does not know any more.
    fn answer_with_reset(&mut self, now: Nanos, slot: u32, direction: usize, out: &mut NetOut) {
        let conn = &mut self.slab.conns[slot as usize];
        let flow = &mut conn.flows[direction];
        flow.clear(&mut self.links[flow.link as usize]);
        if !conn.ends[direction].state.is_known() {
            // Neither process knows it: nobody needs the answer.
            return self.release(slot);
        }
        let back = &mut conn.flows[1 - direction];
        if back.queue.back().is_some_and(|item| item.parcel.is_end()) {
            return; // an end is on its way already
        }
        let link = &mut self.links[back.link as usize];
        back.drop_unsent(link);
        (back.ended, back.gated, back.gone) = (true, false, false);
        back.push(Item { parcel: Parcel::Reset, due: Nanos::ZERO, bytes: 0 }, link);
        self.pump(now, slot, 1 - direction, out);
    }
}
