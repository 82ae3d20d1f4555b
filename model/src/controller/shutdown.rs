//! A controller ends in order. One that leads resigns first, tells the other voters (EndQuorumEpoch, KIP-595), which so need
//! not find out by a timeout, and stays for as long as its vote is needed: until another one leads, or until the others would
//! have found out by themselves. It does not stand itself meanwhile. Any other one has nothing to hand over.

use crate::controller::controller::Controller;
use crate::controller::quorum::State;
use crate::ids::{Nanos, Now};
use crate::ports::{Cx, ExitReason, Timer};

/// The signal to end, and the end of the wait for a successor.
pub const STOP: Timer = Timer(4);

impl Controller {
    /// The signal, or the end of the wait that it began.
    pub(super) fn on_stop(&mut self, now: Now, cx: &mut Cx<'_>) {
        if self.stopping.is_some() {
            return; // `settle` looks at the time
        }
        let wait = Nanos::from_millis(self.config.broker.controller_quorum_fetch_timeout_ms);
        let hands_over = !self.quorum.is_alone() && matches!(self.quorum.state(), State::Leader(_));
        let until = if hands_over { now.mono + wait } else { now.mono };
        self.stopping = Some(until);
        if hands_over {
            self.quorum.resign(now.mono, cx.entropy);
            cx.set_timer(STOP, until);
        }
    }

    /// Ends if nobody needs it any more. True if it did.
    pub(super) fn end_if_stopped(&mut self, now: Now, cx: &mut Cx<'_>) -> bool {
        let Some(until) = self.stopping else { return false };
        let succeeded = matches!(self.quorum.state(), State::Follower { .. });
        if succeeded || until <= now.mono {
            self.die(ExitReason::Shutdown, cx);
            return true;
        }
        false
    }
}
