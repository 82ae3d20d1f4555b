//! A consumer's side of an incremental fetch session (KIP-227): which partitions the broker knows, which of them it has to
//! be told about, and the session's epoch. Requests grow with what changed, not with what is read.

/// Session epoch 0: a full fetch that opens a session.
const FULL: i32 = 0;

/// Place of a partition in no session.
pub const NO_PLACE: u32 = u32::MAX;

/// A session with one broker. Its members' places are small and dense; a place is given again only after the broker was
/// told that its old partition left.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    id: u32,
    epoch: i32,
    /// By place: the owner's slot, [`NO_PLACE`] if free.
    members: Vec<u32>,
    free: Vec<u32>,
    live: u32,
    /// Places to be told of with the next request; may hold places that left since.
    changed: Vec<u32>,
    /// By place: stands in `changed`.
    told: Vec<bool>,
    forgotten: Vec<u32>,
}

/// What the next fetch says.
#[derive(Clone, Debug, PartialEq)]
pub struct NextFetch {
    /// The session, 0 for none yet.
    pub id: u32,
    /// Its epoch.
    pub epoch: i32,
    /// Places and owner's slots to tell of.
    pub parts: Vec<(u32, u32)>,
    /// Places that left.
    pub forgotten: Vec<u32>,
}

impl Session {
    /// Adds a slot; returns its place.
    pub fn add(&mut self, slot: u32) -> u32 {
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.members.push(NO_PLACE);
                self.told.push(false);
                self.members.len() as u32 - 1
            }
        };
        self.members[place as usize] = slot;
        self.live += 1;
        self.touch(place);
        place
    }

    /// A member has another position: the broker is to be told.
    pub fn touch(&mut self, place: u32) {
        let told = &mut self.told[place as usize];
        if !*told {
            *told = true;
            self.changed.push(place);
        }
    }

    /// Takes a member out.
    pub fn remove(&mut self, place: u32) {
        let member = &mut self.members[place as usize];
        if *member != NO_PLACE {
            *member = NO_PLACE;
            self.live -= 1;
            self.forgotten.push(place);
        }
    }

    /// The slot at a place, if there is one.
    #[must_use]
    pub fn slot(&self, place: u32) -> Option<u32> {
        self.members.get(place as usize).copied().filter(|&s| s != NO_PLACE)
    }

    /// How many members.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.live
    }
    /// Whether there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// The next request.
    pub fn next_fetch(&mut self) -> NextFetch {
        if self.epoch == FULL {
            // A full fetch lists every member, and the broker starts from nothing: there is nobody to forget.
            for place in 0..self.members.len() as u32 {
                if self.members[place as usize] != NO_PLACE {
                    self.touch(place);
                }
            }
        }
        let mut parts = Vec::with_capacity(self.changed.len());
        for place in self.changed.drain(..) {
            self.told[place as usize] = false;
            let slot = self.members[place as usize];
            if slot != NO_PLACE {
                parts.push((place, slot));
            }
        }
        let mut forgotten = std::mem::take(&mut self.forgotten);
        self.free.extend(&forgotten);
        if self.epoch == FULL {
            forgotten.clear();
        }
        NextFetch { id: self.id, epoch: self.epoch, parts, forgotten }
    }

    /// The broker answered without an error on the session; 0 as id: it keeps none for us.
    pub fn answered(&mut self, id: u32) {
        if id == 0 {
            (self.id, self.epoch) = (0, FULL);
        } else if self.epoch == FULL {
            (self.id, self.epoch) = (id, 1);
        } else {
            self.epoch = if self.epoch == i32::MAX { 1 } else { self.epoch + 1 };
        }
    }

    /// The broker does not know the session: the next fetch is full and opens another.
    pub fn unknown(&mut self) {
        (self.id, self.epoch) = (0, FULL);
    }

    /// The session is out of step, or an answer was lost: the next fetch is full, closes it and opens another.
    pub fn restart(&mut self) {
        self.epoch = FULL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_told_and_a_place_is_not_given_twice_in_one_request() {
        let mut s = Session::default();
        let (a, b) = (s.add(10), s.add(11));
        assert_eq!(s.next_fetch(), NextFetch { id: 0, epoch: 0, parts: vec![(a, 10), (b, 11)], forgotten: vec![] });
        s.answered(7);
        assert_eq!(s.next_fetch(), NextFetch { id: 7, epoch: 1, parts: vec![], forgotten: vec![] });
        s.answered(7);
        s.touch(b);
        s.touch(b);
        s.remove(a);
        let c = s.add(12);
        assert_ne!(c, a);
        assert_eq!(s.next_fetch(), NextFetch { id: 7, epoch: 2, parts: vec![(b, 11), (c, 12)], forgotten: vec![a] });
        assert_eq!(s.add(13), a);
        assert_eq!((s.slot(a), s.len()), (Some(13), 3));
    }

    #[test]
    fn after_an_error_everything_is_told_again() {
        let mut s = Session::default();
        s.add(1);
        s.add(2);
        s.next_fetch();
        s.answered(5);
        s.unknown();
        assert_eq!(s.next_fetch(), NextFetch { id: 0, epoch: 0, parts: vec![(0, 1), (1, 2)], forgotten: vec![] });
        s.answered(6);
        s.restart();
        let next = s.next_fetch();
        assert_eq!((next.id, next.epoch, next.parts.len()), (6, 0, 2));
    }

    #[test]
    fn the_epoch_wraps_to_1() {
        let mut s = Session { id: 3, epoch: i32::MAX, ..Session::default() };
        s.answered(3);
        assert_eq!(s.epoch, 1);
    }
}
