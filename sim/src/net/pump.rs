//! From a send to the wire: windows, turns on the link, and the wait for a retransmission to come through.

use super::connection::EndState;
use super::flow::{rto, Acks, Item, Parcel, Sent, NEVER};
use super::lifecycle::Host;
use super::link::{Link, Waiting};
use super::{NetEvent, NetOut, Network, What};
use mirrorlab_model::ids::Nanos;

impl Network {
    /// Sends what may be sent in this direction.
    pub(super) fn pump(&mut self, now: Nanos, slot: u32, direction: usize, out: &mut NetOut) {
        let conn = &mut self.slab.conns[slot as usize];
        let [ahead, behind] = [conn.flows[direction].link as usize, conn.flows[1 - direction].link as usize];
        let back = self.links[behind].spec.latency;
        let stamp = conn.stamp;
        let flow = &mut conn.flows[direction];
        if flow.retry > 0 || flow.waiting || flow.gated || flow.silent || !flow.has_unsent() {
            return;
        }
        let link = &mut self.links[ahead];
        let timeout = rto(&self.laws.tcp, link.spec.latency + back);
        flow.reclaim(now);
        flow.decay(now, timeout, &self.laws.tcp);
        if flow.acks == Acks::Lost {
            let overdue = timeout.since(link.spec.latency + back);
            if flow.flight.front().is_some_and(|flight| flight.ack_due + overdue <= now) {
                return self.stall(now, slot, direction, out);
            }
        }
        if link.open(now) {
            let sent = flow.transmit(now, link.turn, link, back, &self.laws);
            self.after_turn(now, slot, direction, sent, out);
        } else {
            flow.waiting = true;
            link.waiting.push_back(Waiting { slot, stamp, direction: direction as u8 });
            arm_turn(now, ahead, link, out);
        }
    }

    /// Arms what follows from a turn.
    fn after_turn(&mut self, now: Nanos, slot: u32, direction: usize, sent: Sent, out: &mut NetOut) {
        let conn = &mut self.slab.conns[slot as usize];
        let [ahead, behind] = [conn.flows[direction].link as usize, conn.flows[1 - direction].link as usize];
        let stamp = conn.stamp;
        let flow = &mut conn.flows[direction];
        if flow.launched > 0 && flow.deliver_at == NEVER {
            if let Some(head) = flow.queue.front() {
                flow.deliver_at = head.due.max(now);
                let what = What::Deliver(direction as u8);
                out.events.push((flow.deliver_at, NetEvent { slot, stamp, what }));
            }
        }
        match sent {
            Sent::Everything => {}
            Sent::TurnOver => {
                flow.waiting = true;
                let link = &mut self.links[ahead];
                link.waiting.push_back(Waiting { slot, stamp, direction: direction as u8 });
                arm_turn(now, ahead, link, out);
            }
            Sent::WindowFull => {
                let Some(oldest) = flow.flight.front() else { return };
                let at = match flow.acks {
                    Acks::Flow => oldest.ack_due,
                    Acks::WindowShut => return, // the resumed process opens it
                    Acks::Lost => {
                        let trip = self.links[ahead].spec.latency + self.links[behind].spec.latency;
                        oldest.ack_due + rto(&self.laws.tcp, trip).since(trip)
                    }
                };
                self.arm_pump(at.max(now), slot, direction, out);
            }
        }
    }

    pub(super) fn arm_pump(&mut self, at: Nanos, slot: u32, direction: usize, out: &mut NetOut) {
        let conn = &mut self.slab.conns[slot as usize];
        let flow = &mut conn.flows[direction];
        if at < flow.pump_at {
            flow.pump_at = at;
            out.events.push((at, NetEvent { slot, stamp: conn.stamp, what: What::Pump(direction as u8) }));
        }
    }

    /// A link has less than a turn of work left.
    pub(super) fn give_turns(&mut self, now: Nanos, at: u32, out: &mut NetOut) {
        let Some(link) = self.links.get_mut(at as usize) else { return };
        link.armed = false;
        loop {
            let link = &mut self.links[at as usize];
            if !link.has_room(now) {
                break;
            }
            let Some(next) = link.waiting.pop_front() else { return };
            let Some(conn) = self.slab.conns.get_mut(next.slot as usize) else { continue };
            if !conn.live || conn.stamp != next.stamp {
                continue;
            }
            let direction = usize::from(next.direction);
            let back = conn.flows[1 - direction].link as usize;
            let flow = &mut conn.flows[direction];
            flow.waiting = false;
            if flow.retry > 0 || flow.silent || !flow.has_unsent() {
                continue;
            }
            let back = self.links[back].spec.latency;
            let link = &mut self.links[at as usize];
            flow.reclaim(now);
            let sent = flow.transmit(now, link.turn, link, back, &self.laws);
            self.after_turn(now, next.slot, direction, sent, out);
        }
        let link = &mut self.links[at as usize];
        if !link.waiting.is_empty() {
            arm_turn(now, at as usize, link, out);
        }
    }

    /// Packets of this direction vanish: go back, and wait for the next retransmission.
    pub(super) fn stall(&mut self, now: Nanos, slot: u32, direction: usize, out: &mut NetOut) {
        let conn = &mut self.slab.conns[slot as usize];
        let [ahead, behind] = [conn.flows[direction].link as usize, conn.flows[1 - direction].link as usize];
        let trip = self.links[ahead].spec.latency + self.links[behind].spec.latency;
        let handshake = conn.ends[0].state == EndState::Opening;
        let (stamp, deadline) = (conn.stamp, conn.began + self.laws.tcp.connect_timeout);
        let flow = &mut conn.flows[direction];
        if flow.gone {
            self.links[ahead].counters.drops += u64::from(flow.launched);
            return flow.clear(&mut self.links[ahead]);
        }
        flow.go_back(&mut self.links[ahead]);
        flow.retry = 1;
        flow.stalled_since = now;
        let mut wait = if handshake { self.laws.tcp.syn_rto.max(trip) } else { rto(&self.laws.tcp, trip) };
        let sent = now.since(self.links[ahead].spec.latency);
        let mut at = sent + wait;
        while at <= now {
            wait = Nanos(wait.0 * 2);
            at = at + wait;
            flow.retry += 1;
        }
        flow.pump_at = NEVER;
        self.arm_pump(at, slot, direction, out);
        if handshake {
            out.events.push((deadline.max(now), NetEvent { slot, stamp, what: What::Syn }));
        }
    }

    /// A pump event: a window may have opened, or a retransmission goes out.
    pub(super) fn go_on(&mut self, now: Nanos, slot: u32, direction: usize, out: &mut NetOut) {
        let conn = &mut self.slab.conns[slot as usize];
        let flow = &conn.flows[direction];
        if flow.silent {
            return; // the thawed host goes on
        }
        if flow.retry == 0 {
            return self.pump(now, slot, direction, out);
        }
        let receiver = conn.ends[1 - direction].node;
        let reachable = !flow.cut && !conn.flows[1 - direction].cut;
        let awake = self.node(receiver).is_some_and(|node| !matches!(node.host, Host::Dark | Host::Frozen));
        let conn = &mut self.slab.conns[slot as usize];
        let flow = &mut conn.flows[direction];
        if reachable && awake {
            flow.retry = 0;
            return self.pump(now, slot, direction, out);
        }
        let stalled = now.since(flow.stalled_since);
        let known = conn.ends[direction].state.is_known();
        let limit = if known { self.laws.tcp.user_timeout } else { Some(self.laws.tcp.orphan_timeout) };
        if limit.is_some_and(|limit| stalled >= limit) {
            return self.give_up(now, slot, direction, out);
        }
        flow.retry = flow.retry.saturating_add(1);
        let [ahead, behind] = [flow.link as usize, conn.flows[1 - direction].link as usize];
        let trip = self.links[ahead].spec.latency + self.links[behind].spec.latency;
        let first =
            if conn.ends[0].state == EndState::Opening { self.laws.tcp.syn_rto } else { rto(&self.laws.tcp, trip) };
        let doublings = u32::from(conn.flows[direction].retry - 1).min(16);
        let mut wait = Nanos((first.0 << doublings).min(self.laws.tcp.rto_max.0.max(first.0)));
        if let Some(limit) = limit {
            wait = wait.min(limit.since(stalled)).max(Nanos(1));
        }
        self.arm_pump(now + wait, slot, direction, out);
    }

    /// The sending kernel gives up; its process, if it still knows the connection, is told of a reset.
    fn give_up(&mut self, now: Nanos, slot: u32, direction: usize, out: &mut NetOut) {
        let conn = &mut self.slab.conns[slot as usize];
        let flow = &mut conn.flows[direction];
        flow.clear(&mut self.links[flow.link as usize]);
        flow.ended = true;
        if conn.ends[direction].state.is_known() {
            self.tell_locally(now, slot, 1 - direction, Parcel::TimedOut, out);
        } else if !conn.ends[1 - direction].state.is_known() {
            self.release(slot);
        }
    }

    /// The receiving end's own kernel speaks: what was on its way in `direction` is void.
    pub(super) fn tell_locally(&mut self, now: Nanos, slot: u32, direction: usize, parcel: Parcel, out: &mut NetOut) {
        let flow = &mut self.slab.conns[slot as usize].flows[direction];
        flow.clear(&mut self.links[flow.link as usize]);
        flow.ended = true;
        flow.queue.push_back(Item { parcel, due: now, bytes: 0 });
        flow.launched = 1;
        self.deliver(now, slot, direction, out);
    }
}

fn arm_turn(now: Nanos, at: usize, link: &mut Link, out: &mut NetOut) {
    if !link.armed {
        link.armed = true;
        out.events.push((link.next_turn(now), NetEvent { slot: at as u32, stamp: 0, what: What::Turn }));
    }
}
