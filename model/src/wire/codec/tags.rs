//! Sections of tagged fields (KIP-482), and the tagged fields of our own.
//!
//! Every structure of a flexible version ends with such a section. A field in it is written only when it is not the
//! default, and a reader skips the numbers that it does not know.

use crate::wire::codec::coder::{Coder, Done};

/// Numbers from here on are this project's own: what the model needs and Kafka's wire does not have. Kafka gives numbers from
/// 0 up within each structure, so that these never meet one.
pub const OWN: u32 = 10_000;
/// The slot of an entry in a fetch session (Kafka names the entry by topic id and number in answers too).
pub const SLOT: u32 = OWN;
/// Lengths of the shared pieces that a record set was put together from.
pub const PIECES: u32 = OWN + 1;
/// The address of a hinted leader, where it differs from what the list of endpoints says.
pub const NODE: u32 = OWN + 2;
/// The sender's count of topics, where it differs from the number of topics written.
pub const GROUPS: u32 = OWN + 3;
/// The index of a partition in a metadata answer, where the directory gives another one or none.
pub const INDEX: u32 = OWN + 4;
/// The incarnation that a registration's answer is for.
pub const INCARNATION: u32 = OWN + 5;
/// Whether a proposal reports a finished recovery, where it does not.
pub const REPORTS: u32 = OWN + 6;
/// A write of a mirrored partition's state takes its last position away; without this, no position in it leaves the old one.
pub const CLEARS: u32 = OWN + 7;
/// Which write of a mirrored partition's state an answer tells.
pub const STATE_EPOCH: u32 = OWN + 8;
/// How long ago a mirror's source answered, in milliseconds.
pub const SOURCE_AGE: u32 = OWN + 9;
/// The partitions that a broker recovers for another one.
pub const LED: u32 = OWN + 10;
/// A recovery in which the source's side wins.
pub const KEEP_SOURCE: u32 = OWN + 11;
/// The newest term in which a follower's log was aligned; in an answer, that the diverging epoch is such a term.
pub const ALIGNED: u32 = OWN + 12;
/// The incarnation of the mirror that a state is of.
pub const SESSION: u32 = OWN + 13;
/// A mirror lets its topics grow with its source.
pub const FOR_MIRROR: u32 = OWN + 14;

/// One tagged field.
pub struct Tag<'f> {
    number: u32,
    present: bool,
    pass: &'f mut dyn FnMut(&mut Coder<'_>) -> Done,
}

impl<'f> Tag<'f> {
    /// A field of this number, written if `present`.
    pub fn new(number: u32, present: bool, pass: &'f mut dyn FnMut(&mut Coder<'_>) -> Done) -> Self {
        Self { number, present, pass }
    }
    /// The same field once more, for a longer list.
    pub(super) fn again<'s>(this: &'s mut Tag<'_>) -> Tag<'s> {
        Tag { number: this.number, present: this.present, pass: &mut *this.pass }
    }
}

impl Coder<'_> {
    /// The end of a structure without tagged fields.
    pub fn end(&mut self) -> Done {
        self.tags(&mut [])
    }

    /// The end of a structure; `fields` in ascending order of number.
    pub fn tags(&mut self, fields: &mut [Tag<'_>]) -> Done {
        if self.reads() {
            return self.read_tags(fields);
        }
        let own = self.own;
        let wanted = |tag: &&mut Tag<'_>| tag.present && (own || tag.number < OWN);
        let count = fields.iter_mut().filter(wanted).count();
        self.unsigned("tags", count as u32)?;
        for tag in fields.iter_mut().filter(wanted) {
            let content = self.aside(|c| (tag.pass)(c))?;
            self.unsigned("tag", tag.number)?;
            self.unsigned("tag", content.len() as u32)?;
            self.raw(&content);
        }
        Ok(())
    }

    fn read_tags(&mut self, fields: &mut [Tag<'_>]) -> Done {
        for _ in 0..self.unsigned("tags", 0)? {
            let number = self.unsigned("tag", 0)?;
            let len = self.unsigned("tag", 0)? as usize;
            match fields.iter_mut().find(|tag| tag.number == number) {
                Some(tag) => self.within("tag", len, |c| (tag.pass)(c))?,
                None => {
                    self.take("tag", len)?;
                }
            }
        }
        Ok(())
    }
}
