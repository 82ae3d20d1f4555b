//! Primitives of the wire format, for both directions: a [`Coder`] either writes the values that it is shown or replaces them
//! by what it reads.

use crate::ids::BrokerId;
use crate::record::varint::{put_unsigned, take_unsigned};
use crate::wire::codec::directory::Directory;
use crate::wire::errors::ErrorCode;
use bytes::{BufMut, Bytes, BytesMut};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// A message, or a structure of one, that goes over the wire.
pub trait Wire: Default {
    /// Shows the coder every field in the order of the schema. Reading starts from the default value.
    ///
    /// # Errors
    /// Reading only: the bytes are not such a structure.
    fn pass(&mut self, c: &mut Coder<'_>) -> Done;
}

/// What passing a field gives.
pub type Done = Result<(), DecodeError>;

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The field, as Kafka's schema (or the proposal's) names it.
    pub field: &'static str,
    /// Where in the frame reading stopped; bytes from its start.
    pub at: usize,
    /// What is wrong there.
    pub why: Wrong,
}

/// What can be wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The bytes end within it, or its length says more than there is.
    Truncated,
    /// Its text is not UTF-8.
    NotUtf8,
    /// It is null, which it must not be.
    Null,
    /// Its value is none of those that it may have.
    Value(i64),
    /// Bytes follow after its end.
    Trailing,
    /// There is no such message, or not in this version: key and version.
    Api(i16, i16),
    /// It names a partition that the directory does not know.
    UnknownPartition,
    /// A text does not have the form that it must have: a host, a broker's id, a state.
    Form,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: ", self.field, self.at)?;
        match self.why {
            Wrong::Truncated => f.write_str("the bytes end"),
            Wrong::NotUtf8 => f.write_str("not UTF-8"),
            Wrong::Null => f.write_str("null is not allowed"),
            Wrong::Value(value) => write!(f, "{value} is not allowed"),
            Wrong::Trailing => f.write_str("more bytes than fields"),
            Wrong::Api(key, version) => write!(f, "no message has key {key} and version {version}"),
            Wrong::UnknownPartition => f.write_str("no such partition"),
            Wrong::Form => f.write_str("the text has another form"),
        }
    }
}
impl std::error::Error for DecodeError {}

/// Which way a coder works.
enum Way {
    Put(BytesMut),
    /// `at..end` is what is left to read of the innermost structure that has a length.
    Get {
        bytes: Bytes,
        at: usize,
        end: usize,
    },
}

/// Writes or reads, field by field.
pub struct Coder<'a> {
    way: Way,
    /// Translates what is local to a cluster.
    pub(super) dir: &'a dyn Directory,
    /// Whether fields of our own are written.
    pub(super) own: bool,
    /// The message's version.
    pub(super) version: i16,
}

impl<'a> Coder<'a> {
    /// A coder that writes; with `own`, the fields of our own too.
    #[must_use]
    pub fn writer(dir: &'a dyn Directory, own: bool) -> Self {
        Self { way: Way::Put(BytesMut::new()), dir, own, version: 0 }
    }
    /// A coder that reads.
    #[must_use]
    pub fn reader(bytes: &Bytes, dir: &'a dyn Directory) -> Self {
        Self { way: Way::Get { bytes: bytes.clone(), at: 0, end: bytes.len() }, dir, own: true, version: 0 }
    }
    /// What was written; nothing for a reader.
    #[must_use]
    pub fn into_bytes(self) -> BytesMut {
        match self.way {
            Way::Put(out) => out,
            Way::Get { .. } => BytesMut::new(),
        }
    }
    /// Whether it reads.
    #[must_use]
    pub const fn reads(&self) -> bool {
        matches!(self.way, Way::Get { .. })
    }
    /// Sets what a field is if it does not come: the default of a tagged field.
    pub fn preset<T>(&self, field: &mut T, default: T) {
        if self.reads() {
            *field = default;
        }
    }
    /// An error at the present position.
    #[must_use]
    pub const fn wrong(&self, field: &'static str, why: Wrong) -> DecodeError {
        let at = match &self.way {
            Way::Put(_) => 0,
            Way::Get { at, .. } => *at,
        };
        DecodeError { field, at, why }
    }
    /// Bytes left to read.
    #[must_use]
    pub const fn left(&self) -> usize {
        match &self.way {
            Way::Put(_) => 0,
            Way::Get { at, end, .. } => *end - *at,
        }
    }
    /// Demands that everything was read.
    ///
    /// # Errors
    /// Bytes are left.
    pub const fn finish(&self, field: &'static str) -> Done {
        if self.left() > 0 {
            return Err(self.wrong(field, Wrong::Trailing));
        }
        Ok(())
    }
    /// Narrows reading to the next `len` bytes while `inside` goes on, which must read them all.
    pub(super) fn within(&mut self, field: &'static str, len: usize, inside: impl FnOnce(&mut Self) -> Done) -> Done {
        let short = len > self.left();
        let Way::Get { at, end, .. } = &mut self.way else { return Ok(()) };
        let (outer, inner) = (*end, at.saturating_add(len));
        if short {
            return Err(self.wrong(field, Wrong::Truncated));
        }
        *end = inner;
        inside(self)?;
        self.finish(field)?;
        if let Way::Get { end, .. } = &mut self.way {
            *end = outer;
        }
        Ok(())
    }
    /// What `inside` writes, apart.
    pub(super) fn aside(&mut self, inside: impl FnOnce(&mut Self) -> Done) -> Result<BytesMut, DecodeError> {
        let outer = std::mem::replace(&mut self.way, Way::Put(BytesMut::new()));
        let done = inside(self);
        let Way::Put(inner) = std::mem::replace(&mut self.way, outer) else { return Ok(BytesMut::new()) };
        done.map(|()| inner)
    }

    // -------------------------------------------------------------------------------------------------------- fixed size

    fn fixed<const N: usize>(&mut self, field: &'static str, value: [u8; N]) -> Result<[u8; N], DecodeError> {
        match &mut self.way {
            Way::Put(out) => {
                out.put_slice(&value);
                Ok(value)
            }
            Way::Get { bytes, at, end } => match bytes[*at..*end].first_chunk() {
                Some(found) => {
                    *at += N;
                    Ok(*found)
                }
                None => Err(self.wrong(field, Wrong::Truncated)),
            },
        }
    }
    /// A boolean; anything but 0 is true.
    pub fn bool(&mut self, field: &'static str, value: &mut bool) -> Done {
        self.fixed(field, [u8::from(*value)]).map(|[byte]| *value = byte != 0)
    }
    /// 8 bits.
    pub fn i8(&mut self, field: &'static str, value: &mut i8) -> Done {
        self.fixed(field, value.to_be_bytes()).map(|b| *value = i8::from_be_bytes(b))
    }
    /// 16 bits.
    pub fn i16(&mut self, field: &'static str, value: &mut i16) -> Done {
        self.fixed(field, value.to_be_bytes()).map(|b| *value = i16::from_be_bytes(b))
    }
    /// 32 bits.
    pub fn i32(&mut self, field: &'static str, value: &mut i32) -> Done {
        self.fixed(field, value.to_be_bytes()).map(|b| *value = i32::from_be_bytes(b))
    }
    /// 32 bits, unsigned in the model only: a number above the largest signed one goes as a negative one.
    pub fn u32(&mut self, field: &'static str, value: &mut u32) -> Done {
        self.fixed(field, value.to_be_bytes()).map(|b| *value = u32::from_be_bytes(b))
    }
    /// 64 bits.
    pub fn i64(&mut self, field: &'static str, value: &mut i64) -> Done {
        self.fixed(field, value.to_be_bytes()).map(|b| *value = i64::from_be_bytes(b))
    }
    /// 64 bits; see [`Self::u32`].
    pub fn u64(&mut self, field: &'static str, value: &mut u64) -> Done {
        self.fixed(field, value.to_be_bytes()).map(|b| *value = u64::from_be_bytes(b))
    }
    /// 128 bits.
    pub fn uuid(&mut self, field: &'static str, value: &mut u128) -> Done {
        self.fixed(field, value.to_be_bytes()).map(|b| *value = u128::from_be_bytes(b))
    }
    /// A verdict.
    pub fn code(&mut self, value: &mut ErrorCode) -> Done {
        let mut code = *value as i16;
        self.i16("ErrorCode", &mut code)?;
        *value = ErrorCode::from_code(code).ok_or_else(|| self.wrong("ErrorCode", Wrong::Value(code.into())))?;
        Ok(())
    }

    // Fields that no message here holds: written so, skipped when read.

    /// A boolean that is always the same.
    pub fn always_bool(&mut self, field: &'static str, mut value: bool) -> Done {
        self.bool(field, &mut value)
    }
    /// 8 bits that are always the same.
    pub fn always_i8(&mut self, field: &'static str, mut value: i8) -> Done {
        self.i8(field, &mut value)
    }
    /// 16 bits that are always the same.
    pub fn always_i16(&mut self, field: &'static str, mut value: i16) -> Done {
        self.i16(field, &mut value)
    }
    /// 32 bits that are always the same.
    pub fn always_i32(&mut self, field: &'static str, mut value: i32) -> Done {
        self.i32(field, &mut value)
    }
    /// 64 bits that are always the same.
    pub fn always_i64(&mut self, field: &'static str, mut value: i64) -> Done {
        self.i64(field, &mut value)
    }
    /// A uuid that is always the same.
    pub fn always_uuid(&mut self, field: &'static str, mut value: u128) -> Done {
        self.uuid(field, &mut value)
    }
    /// A text that is always the same; null is read too.
    pub fn always_text(&mut self, field: &'static str, value: Option<&str>) -> Done {
        if self.reads() {
            return self.nullable(field, &mut None);
        }
        self.length(field, value.map(str::len))?;
        self.raw(value.unwrap_or_default().as_bytes());
        Ok(())
    }
    /// An array that is always empty or null; its elements, if there are any, are told to be too many.
    pub fn always_empty(&mut self, field: &'static str, null: bool) -> Done {
        match self.length(field, (!null).then_some(0))? {
            None | Some(0) => Ok(()),
            Some(len) => Err(self.wrong(field, Wrong::Value(len as i64))),
        }
    }
    /// `ThrottleTimeMs`: nobody is throttled.
    pub fn throttle(&mut self) -> Done {
        self.always_i32("ThrottleTimeMs", 0)
    }

    // ------------------------------------------------------------------------------------------------------ variable size

    /// An unsigned varint.
    pub fn unsigned(&mut self, field: &'static str, value: u32) -> Result<u32, DecodeError> {
        match &mut self.way {
            Way::Put(out) => {
                put_unsigned(out, value);
                Ok(value)
            }
            Way::Get { bytes, at, end } => {
                let mut rest = &bytes[*at..*end];
                let read = take_unsigned(&mut rest);
                match read {
                    Some(value) => {
                        *at = *end - rest.len();
                        Ok(value)
                    }
                    None => Err(self.wrong(field, Wrong::Truncated)),
                }
            }
        }
    }
    /// The length of a compact string or array: one more than it has, 0 for null. Every element takes a byte at least, so a
    /// length beyond what is left is refused before anything is allocated.
    pub fn length(&mut self, field: &'static str, len: Option<usize>) -> Result<Option<usize>, DecodeError> {
        let known = len.map_or(0, |len| u32::try_from(len).unwrap_or(u32::MAX).saturating_add(1));
        let found = self.unsigned(field, known)?.checked_sub(1).map(|len| len as usize);
        if self.reads() && found.is_some_and(|len| len > self.left()) {
            return Err(self.wrong(field, Wrong::Truncated));
        }
        Ok(found)
    }
    /// Writes bytes as they are.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        if let Way::Put(out) = &mut self.way {
            out.put_slice(bytes);
        }
    }
    /// The next bytes, shared.
    pub(super) fn take(&mut self, field: &'static str, len: usize) -> Result<Bytes, DecodeError> {
        let short = len > self.left();
        match &mut self.way {
            Way::Get { bytes, at, .. } if !short => {
                let found = bytes.slice(*at..*at + len);
                *at += len;
                Ok(found)
            }
            _ => Err(self.wrong(field, Wrong::Truncated)),
        }
    }
    fn read_text(&mut self, field: &'static str, len: usize) -> Result<Arc<str>, DecodeError> {
        let error = self.wrong(field, Wrong::NotUtf8);
        let bytes = self.take(field, len)?;
        std::str::from_utf8(&bytes).map(Arc::from).map_err(|_| error)
    }
    /// A compact string.
    pub fn text(&mut self, field: &'static str, text: &mut Arc<str>) -> Done {
        let Some(len) = self.length(field, Some(text.len()))? else { return Err(self.wrong(field, Wrong::Null)) };
        if self.reads() {
            *text = self.read_text(field, len)?;
        } else {
            self.raw(text.as_bytes());
        }
        Ok(())
    }
    /// A compact string or null.
    pub fn nullable(&mut self, field: &'static str, text: &mut Option<Arc<str>>) -> Done {
        let len = self.length(field, text.as_deref().map(str::len))?;
        if self.reads() {
            *text = len.map(|len| self.read_text(field, len)).transpose()?;
        } else {
            self.raw(text.as_deref().unwrap_or_default().as_bytes());
        }
        Ok(())
    }
    /// A string of the older kind: 16 bits of length, −1 for null.
    pub fn legacy_text(&mut self, field: &'static str, text: &mut Option<Arc<str>>) -> Done {
        let mut len = text.as_deref().map_or(-1, |text| i16::try_from(text.len()).unwrap_or(i16::MAX));
        self.i16(field, &mut len)?;
        if self.reads() {
            *text = match usize::try_from(len) {
                Ok(len) => Some(self.read_text(field, len)?),
                Err(_) if len == -1 => None,
                Err(_) => return Err(self.wrong(field, Wrong::Value(len.into()))),
            };
        } else {
            self.raw(&text.as_deref().unwrap_or_default().as_bytes()[..usize::try_from(len).unwrap_or(0)]);
        }
        Ok(())
    }

    // -------------------------------------------------------------------------------------------------------------- arrays

    /// An array; `each` passes one element.
    pub fn array<T: Default>(
        &mut self,
        field: &'static str,
        items: &mut Vec<T>,
        each: impl FnMut(&mut Self, &mut T) -> Done,
    ) -> Done {
        self.array_of(field, T::default, items, each)
    }
    /// An array of things without a default.
    pub fn array_of<T>(
        &mut self,
        field: &'static str,
        blank: impl Fn() -> T,
        items: &mut Vec<T>,
        mut each: impl FnMut(&mut Self, &mut T) -> Done,
    ) -> Done {
        let Some(len) = self.length(field, Some(items.len()))? else { return Err(self.wrong(field, Wrong::Null)) };
        if !self.reads() {
            return items.iter_mut().try_for_each(|item| each(self, item));
        }
        items.clear();
        for _ in 0..len {
            let mut item = blank();
            each(self, &mut item)?;
            items.push(item);
        }
        Ok(())
    }
    /// An array or null.
    pub fn array_or_null<T: Default>(
        &mut self,
        field: &'static str,
        items: &mut Option<Vec<T>>,
        mut each: impl FnMut(&mut Self, &mut T) -> Done,
    ) -> Done {
        let len = self.length(field, items.as_ref().map(Vec::len))?;
        if !self.reads() {
            return items.iter_mut().flatten().try_for_each(|item| each(self, item));
        }
        *items = len.map(|_| Vec::new());
        if let (Some(items), Some(len)) = (items, len) {
            for _ in 0..len {
                let mut item = T::default();
                each(self, &mut item)?;
                items.push(item);
            }
        }
        Ok(())
    }
    /// An array of texts.
    pub fn texts(&mut self, field: &'static str, texts: &mut Vec<Arc<str>>) -> Done {
        self.array(field, texts, |c, text| c.text(field, text))
    }
    /// An array of broker ids.
    pub fn broker_ids(&mut self, field: &'static str, ids: &mut SmallVec<[BrokerId; 4]>) -> Done {
        let mut list = ids.to_vec();
        self.array(field, &mut list, |c, id| c.i32(field, &mut id.0))?;
        if self.reads() {
            *ids = list.into();
        }
        Ok(())
    }
}
