//! Variable-length integers of the record format (zigzag) and of flexible messages (unsigned).
//!
//! Reading follows Kafka's `ByteUtils`: at most 5 (10) bytes, surplus high bits of the last byte are dropped.

use bytes::{BufMut, BytesMut};

/// Takes an unsigned 32-bit varint off the front; `None` if it does not end within 5 bytes or the slice.
pub fn take_unsigned(bytes: &mut &[u8]) -> Option<u32> {
    let first = *bytes.first()?;
    if first < 0x80 {
        *bytes = &bytes[1..];
        return Some(u32::from(first));
    }
    take_bits(bytes, 5).map(|v| v as u32)
}

/// Takes a zigzag 32-bit varint off the front.
pub fn take_varint(bytes: &mut &[u8]) -> Option<i32> {
    take_unsigned(bytes).map(|raw| ((raw >> 1) as i32) ^ -((raw & 1) as i32))
}

/// Takes a zigzag 64-bit varint off the front; `None` if it does not end within 10 bytes or the slice.
pub fn take_varlong(bytes: &mut &[u8]) -> Option<i64> {
    take_bits(bytes, 10).map(|raw| ((raw >> 1) as i64) ^ -((raw & 1) as i64))
}

fn take_bits(bytes: &mut &[u8], max_len: usize) -> Option<u64> {
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().take(max_len).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Some(value);
        }
    }
    None
}

/// Writes an unsigned varint.
pub fn put_unsigned(out: &mut BytesMut, value: u32) {
    put_bits(out, u64::from(value));
}

/// Writes a zigzag 32-bit varint.
pub fn put_varint(out: &mut BytesMut, value: i32) {
    put_bits(out, u64::from(zigzag32(value)));
}

/// Writes a zigzag 64-bit varint.
pub fn put_varlong(out: &mut BytesMut, value: i64) {
    put_bits(out, zigzag64(value));
}

fn put_bits(out: &mut BytesMut, mut value: u64) {
    let mut buf = [0u8; 10];
    let mut len = 0;
    while value >= 0x80 {
        buf[len] = (value as u8) | 0x80;
        value >>= 7;
        len += 1;
    }
    buf[len] = value as u8;
    out.put_slice(&buf[..=len]);
}

const fn zigzag32(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)) as u32
}

const fn zigzag64(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Bytes of an unsigned varint.
#[must_use]
pub const fn unsigned_len(value: u32) -> usize {
    bits_len(value as u64)
}

/// Bytes of a zigzag 32-bit varint.
#[must_use]
pub const fn varint_len(value: i32) -> usize {
    bits_len(zigzag32(value) as u64)
}

/// Bytes of a zigzag 64-bit varint.
#[must_use]
pub const fn varlong_len(value: i64) -> usize {
    bits_len(zigzag64(value))
}

const fn bits_len(value: u64) -> usize {
    // 1 for zero, else one byte per seven bits begun.
    (70 - (value | 1).leading_zeros() as usize) / 7
}

#[cfg(test)]
#[path = "varint_tests.rs"]
mod tests;
