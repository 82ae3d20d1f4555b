//! Messages through their bytes: a check of the codec by everything that a run sends.
//!
//! A scenario may ask that the messages of half of its connections are encoded and decoded again when they are delivered. What
//! a process gets is what came back, so that the same history shows that nothing was lost; and what came back is compared
//! with what was sent, so that a difference is found at once and where it is. Such a difference is the program's own failure,
//! not the modelled system's: the run panics and names the message.

use crate::node::{Node, Process, Program};
use crate::rng::{Concern, Seed};
use bytes::Bytes;
use mirrorlab_model::ids::ConnId;
use mirrorlab_model::metadata::directory::ImageDirectory;
use mirrorlab_model::wire::codec::{decode_request, decode_response, encode, Directory, Nowhere};
use mirrorlab_model::wire::messages::Message;
use mirrorlab_model::wire::size::api;

/// Which connections' messages go through their bytes, and how many did.
#[derive(Clone, Copy, Debug)]
pub struct WireCheck {
    seed: Seed,
    passed: u64,
}

impl WireCheck {
    pub(crate) const fn new(seed: Seed) -> Self {
        Self { seed, passed: 0 }
    }

    /// How many messages came back as they were.
    #[must_use]
    pub const fn passed(&self) -> u64 {
        self.passed
    }

    /// Whether a connection is one of those.
    #[must_use]
    pub const fn takes(&self, conn: ConnId) -> bool {
        self.seed.draw(Concern::Wire, conn.0, 0) & 1 == 0
    }

    /// What comes back of a message; partitions go by the names that the serving node knows.
    ///
    /// # Panics
    /// If it is not what was sent.
    pub(crate) fn pass(&mut self, message: &Message, serving: Option<&Node>) -> Message {
        self.take_back(with_directory(serving, |dir| through(message, dir, |frame| frame)))
    }

    fn take_back(&mut self, back: Result<Message, String>) -> Message {
        self.passed += 1;
        back.unwrap_or_else(|difference| panic!("the codec is wrong: {difference}"))
    }
}

/// What the serving node calls its partitions. Any directory would do, since messages hold stale indices anyway; with this one
/// nearly all of them have names.
fn with_directory<T>(serving: Option<&Node>, use_it: impl FnOnce(&dyn Directory) -> T) -> T {
    match serving.map(|node| (&node.program, &node.process)) {
        Some((Program::Broker(config), Some(Process::Broker(broker)))) => {
            use_it(&ImageDirectory { image: &broker.image, cluster_id: &config.cluster_id })
        }
        Some((Program::Controller(config), Some(Process::Controller(controller)))) => {
            use_it(&ImageDirectory { image: controller.committed_image(), cluster_id: &config.cluster_id })
        }
        _ => use_it(&Nowhere),
    }
}

/// Encodes and decodes a message; `on_the_way` may change its bytes. The error tells the difference.
fn through(message: &Message, dir: &dyn Directory, on_the_way: impl FnOnce(Bytes) -> Bytes) -> Result<Message, String> {
    let frame = on_the_way(encode(message, dir));
    let back = if message.body.is_request() {
        decode_request(&frame, dir)
    } else {
        decode_response(&frame, api(&message.body), dir)
    };
    match back {
        Ok(back) if back == *message => Ok(back),
        Ok(back) => Err(format!("{} came back as another\nsent: {message:?}\ncame: {back:?}", message.body.name())),
        Err(error) => Err(format!("{} did not come back: {error}\nsent: {message:?}", message.body.name())),
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
