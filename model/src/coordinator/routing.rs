//! Which partition of an internal topic something belongs to: Kafka's rule, a Java string hash modulo a count. Brokers of
//! another implementation must find the same one, so that every detail counts: UTF-16, overflow, the one integer without an
//! absolute value.

use crate::ids::TopicId;
use std::fmt::{self, Write};

pub use crate::metadata::image::STATE_TOPIC;

/// The topic that holds the states of transactional ids (KIP-98).
pub const TRANSACTION_TOPIC: &str = "__transaction_state";

/// Java's `String.hashCode` over UTF-16 units.
#[must_use]
pub fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0, hashed)
}

fn hashed(hash: i32, unit: u16) -> i32 {
    hash.wrapping_mul(31).wrapping_add(i32::from(unit))
}

/// Kafka's `Utils.abs`: the smallest integer counts as 0.
#[must_use]
pub const fn abs(number: i32) -> u32 {
    if number == i32::MIN {
        0
    } else {
        number.unsigned_abs()
    }
}

/// The partition of `__mirror_state` that a key belongs to (spec 7.2): a mirror's name for what concerns the mirror as a whole,
/// a [`PartitionKey`] for a mirrored partition. `partitions` is what the config says.
#[must_use]
pub fn state_partition(key: &str, partitions: u32) -> u32 {
    abs(java_hash(key)) % partitions.max(1)
}

/// The partition of `__mirror_state` that a mirrored partition's [`PartitionKey`] belongs to. Who looks at a mirror looks at all
/// its partitions: their keys are hashed without being made.
#[must_use]
pub fn state_partition_of(key: &PartitionKey<'_>, partitions: u32) -> u32 {
    let colon = |hash| hashed(hash, u16::from(b':'));
    let hash = colon(java_hash(key.mirror));
    let hash = colon(uuid_text(key.topic).fold(hash, |hash, c| hashed(hash, u16::from(c))));
    let digits = key.number.checked_ilog10().unwrap_or(0);
    let digit = |at: u32| u16::from(b'0') + (key.number / 10_u32.pow(at) % 10) as u16;
    let hash = (0..=digits).rev().fold(hash, |hash, at| hashed(hash, digit(at)));
    abs(hash) % partitions.max(1)
}

/// What a mirrored partition is routed by (spec 7.2).
#[derive(Clone, Copy, Debug)]
pub struct PartitionKey<'a> {
    /// The mirror's name.
    pub mirror: &'a str,
    /// The topic.
    pub topic: TopicId,
    /// The partition of the topic.
    pub number: u32,
}

impl fmt::Display for PartitionKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mirror)?;
        f.write_char(':')?;
        uuid_text(self.topic).try_for_each(|c| f.write_char(c.into()))?;
        write!(f, ":{}", self.number)
    }
}

/// A topic id as Kafka prints it: base 64 with the URL-safe alphabet (RFC 4648, section 5), without padding.
pub fn uuid_text(id: TopicId) -> impl Iterator<Item = u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    // 128 bits are 21 sextets and two bits, which stand at the top of the last one.
    let sextet = move |at: u32| {
        let shift = 122 - 6 * i64::from(at);
        let bits = if shift >= 0 { id.0 >> shift } else { id.0 << -shift };
        ALPHABET[(bits & 63) as usize]
    };
    (0..22).map(sextet)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `"…".hashCode()` known from Java's documentation of the formula and its common examples.
    #[test]
    fn java_string_hash_known_values() {
        assert_eq!(java_hash(""), 0);
        assert_eq!(java_hash("a"), 97);
        assert_eq!(java_hash("abc"), 96_354);
        assert_eq!(java_hash("hello"), 99_162_322);
        assert_eq!(java_hash("Hello World"), -862_545_276);
        assert_eq!(java_hash("polygenelubricants"), i32::MIN);
        // Two UTF-16 units, U+D83D and U+DE00.
        assert_eq!(java_hash("😀"), 0xD83D * 31 + 0xDE00);
    }

    #[test]
    fn the_smallest_hash_belongs_to_partition_0() {
        assert_eq!((abs(i32::MIN), abs(i32::MIN + 1), abs(-3), abs(3)), (0, i32::MAX as u32, 3, 3));
        assert_eq!(state_partition("polygenelubricants", 50), 0);
        assert_eq!(state_partition("abc", 50), 4);
        assert_eq!(state_partition("Hello World", 50), 26);
        assert_eq!(state_partition("abc", 0), 0);
    }

    #[test]
    fn ids_in_base_64() {
        let text = |id| uuid_text(id).map(char::from).collect::<String>();
        assert_eq!(text(TopicId(0)), "AAAAAAAAAAAAAAAAAAAAAA");
        // Kafka's reserved ids.
        assert_eq!(text(TopicId(1)), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(text(TopicId(u128::MAX)), "_____________________w");
        // RFC 4648's test vector "foobar", and its two halves.
        let foobar = u128::from(u64::from_be_bytes(*b"\0\0foobar")) << 80;
        assert!(text(TopicId(foobar)).starts_with("Zm9vYmFy"));
        assert_eq!(text(TopicId(0xfb << 120)), "-wAAAAAAAAAAAAAAAAAAAA");
    }

    #[test]
    fn a_mirrored_partition_is_routed_by_mirror_topic_id_and_number() {
        let key = PartitionKey { mirror: "m1", topic: TopicId(1), number: 12 };
        assert_eq!(key.to_string(), "m1:AAAAAAAAAAAAAAAAAAAAAQ:12");
        for number in [0, 1, 9, 10, 12, 99, 100, 4_294_967_295] {
            for mirror in ["m1", "", "😀-to-west"] {
                let key = PartitionKey { mirror, topic: TopicId(0x0123_4567 << 90), number };
                assert_eq!(state_partition_of(&key, 1000), state_partition(&key.to_string(), 1000), "{key}");
            }
        }
    }
}
