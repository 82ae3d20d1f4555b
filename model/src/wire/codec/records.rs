//! Record sets: on the wire one run of bytes, in the model the shared pieces that it was put together from.

use crate::wire::codec::coder::{Coder, DecodeError, Done, Wrong};
use bytes::Bytes;

/// A record set on its way. Reading shares the frame's bytes.
#[derive(Debug, Default)]
pub(super) struct Records {
    lengths: Vec<u32>,
    bytes: Bytes,
}

impl Records {
    /// Passes the bytes.
    pub fn pass(c: &mut Coder<'_>, field: &'static str, pieces: &[Bytes]) -> Result<Self, DecodeError> {
        let len = pieces.iter().map(Bytes::len).sum();
        let found = c.length(field, Some(len))?;
        if c.reads() {
            return Ok(Self { lengths: Vec::new(), bytes: c.take(field, found.unwrap_or(0))? });
        }
        pieces.iter().for_each(|piece| c.raw(piece));
        Ok(Self { lengths: pieces.iter().map(|piece| piece.len() as u32).collect(), bytes: Bytes::new() })
    }

    /// Whether the lengths of the pieces must be told: a reader takes all bytes as one piece, none as no piece.
    pub fn in_pieces(&self) -> bool {
        match self.lengths[..] {
            [] => false,
            [only] => only == 0,
            _ => true,
        }
    }

    /// Passes the lengths of the pieces.
    pub fn lengths(&mut self, c: &mut Coder<'_>) -> Done {
        c.array("Pieces", &mut self.lengths, |c, len| c.u32("Pieces", len))
    }

    /// After reading: the pieces.
    pub fn cut(self, c: &Coder<'_>, into: &mut Vec<Bytes>) -> Done {
        if !c.reads() {
            return Ok(());
        }
        let mut rest = self.bytes;
        if self.lengths.is_empty() && !rest.is_empty() {
            into.push(rest);
            return Ok(());
        }
        for len in self.lengths {
            if len as usize > rest.len() {
                return Err(c.wrong("Pieces", Wrong::Value(len.into())));
            }
            into.push(rest.split_to(len as usize));
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(c.wrong("Pieces", Wrong::Trailing))
        }
    }
}
