//! Who was heard of when. Not replicated: a new leader starts all sessions anew. Expiry asks an ordered set, so it costs the
//! brokers that expire.

use crate::ids::{BrokerId, Nanos};
use crate::metadata::image::MetadataImage;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Session {
    contact: Nanos,
    /// Not fenced: its end means fencing.
    in_service: bool,
    /// How far the broker applied the metadata log (exclusive).
    metadata_end: i64,
    /// Controlled shutdown: the offset that others must have applied before it may stop.
    shutdown_from: Option<i64>,
}

/// Sessions of the registered brokers.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    timeout: Nanos,
    brokers: BTreeMap<BrokerId, Session>,
    /// Brokers in service by last contact.
    by_contact: BTreeSet<(Nanos, BrokerId)>,
}

impl Sessions {
    /// A leader starts: every registered broker has a full session before it.
    #[must_use]
    pub fn start(image: &MetadataImage, timeout: Nanos, now: Nanos) -> Self {
        let mut sessions = Self { timeout, ..Self::default() };
        for (broker, known) in image.brokers() {
            sessions.touch(broker, now, !known.fenced, -1, None);
        }
        sessions
    }

    /// A sign of life. `shutdown_from` is kept from the first time on.
    pub fn touch(
        &mut self,
        broker: BrokerId,
        now: Nanos,
        in_service: bool,
        metadata_end: i64,
        shutdown_from: Option<i64>,
    ) {
        let session = Session { contact: now, in_service, metadata_end, shutdown_from };
        let old = self.brokers.insert(broker, session);
        if let Some(old) = old {
            self.by_contact.remove(&(old.contact, broker));
            if let (Some(from), Some(session)) = (shutdown_from.and(old.shutdown_from), self.brokers.get_mut(&broker)) {
                session.shutdown_from = Some(from);
            }
        }
        if in_service {
            self.by_contact.insert((now, broker));
        }
    }

    /// Whether a broker was heard of within the timeout.
    #[must_use]
    pub fn is_alive(&self, broker: BrokerId, now: Nanos) -> bool {
        self.brokers.get(&broker).is_some_and(|s| now.since(s.contact) < self.timeout)
    }

    /// A broker in service whose session is over; the oldest first.
    #[must_use]
    pub fn expired(&self, now: Nanos) -> Option<BrokerId> {
        let (contact, broker) = self.by_contact.first()?;
        (now.since(*contact) >= self.timeout).then_some(*broker)
    }

    /// The broker is out of service from now on.
    pub fn fenced(&mut self, broker: BrokerId) {
        if let Some(session) = self.brokers.get_mut(&broker) {
            session.in_service = false;
            self.by_contact.remove(&(session.contact, broker));
        }
    }

    /// When the next session ends, if nobody is heard of.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Nanos> {
        self.by_contact.first().map(|(contact, _)| *contact + self.timeout)
    }

    /// Whether every broker that goes on has applied the metadata log up to where this one's shutdown was decided.
    #[must_use]
    pub fn shutdown_is_known(&self, broker: BrokerId, image: &MetadataImage) -> bool {
        let Some(from) = self.brokers.get(&broker).and_then(|s| s.shutdown_from) else { return false };
        self.brokers.iter().all(|(other, s)| !image.is_active(*other) || s.metadata_end >= from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_contact_expires_first_and_only_in_service() {
        let mut sessions = Sessions { timeout: Nanos(100), ..Sessions::default() };
        sessions.touch(BrokerId(1), Nanos(0), true, 0, None);
        sessions.touch(BrokerId(2), Nanos(10), true, 0, None);
        sessions.touch(BrokerId(3), Nanos(0), false, 0, None);
        sessions.touch(BrokerId(1), Nanos(50), true, 0, None);
        assert_eq!(sessions.next_expiry(), Some(Nanos(110)));
        assert_eq!((sessions.expired(Nanos(109)), sessions.expired(Nanos(110))), (None, Some(BrokerId(2))));
        sessions.fenced(BrokerId(2));
        assert_eq!(sessions.expired(Nanos(120)), None);
        assert!(sessions.is_alive(BrokerId(1), Nanos(149)) && !sessions.is_alive(BrokerId(1), Nanos(150)));
    }

    #[test]
    fn where_a_shutdown_began_is_remembered_from_the_first_time() {
        let mut sessions = Sessions { timeout: Nanos(100), ..Sessions::default() };
        sessions.touch(BrokerId(1), Nanos(0), true, 5, Some(7));
        sessions.touch(BrokerId(1), Nanos(1), true, 9, Some(12));
        assert_eq!(sessions.brokers[&BrokerId(1)].shutdown_from, Some(7));
        assert!(sessions.shutdown_is_known(BrokerId(1), &MetadataImage::default()));
        sessions.touch(BrokerId(1), Nanos(2), true, 9, None);
        assert!(!sessions.shutdown_is_known(BrokerId(1), &MetadataImage::default()));
    }
}
