//! From which states operators may order what (spec 2.10 under decisions 1, 2, 17 and 28): pure tables.
//!
//! What this broker cannot judge, the controller does: topics that it does not know, that belong to no mirror or to another one
//! have a code of their own there (spec 8.15). What is wished already is a success without effect, whatever the states.

use crate::guards::{mirror as guard, Guards};
use crate::ids::MetadataOffset;
use crate::states::{DesiredState, MirrorState};
use crate::wire::errors::ErrorCode;
use crate::wire::messages::{
    Body, DeleteClusterMirrorResponse, NamedResult, PauseMirrorTopicsResponse, ResumeMirrorTopicsResponse,
    StartMirrorTopicsResponse, StopMirrorTopicsResponse,
};
use std::sync::Arc;

/// The kind of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Start,
    Stop,
    Pause,
    Resume,
    Delete,
}

/// What the desired state of a topic says of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// It is a change: the states of the partitions decide.
    Change,
    /// It is none: no state is needed.
    Already,
    /// It does not follow.
    Refused,
}

impl Order {
    /// The kind of a request; `None` if it is no order that states are read for.
    pub fn of(request: &Body) -> Option<Self> {
        Some(match request {
            Body::StartMirrorTopicsRequest(_) => Self::Start,
            Body::StopMirrorTopicsRequest(_) => Self::Stop,
            Body::PauseMirrorTopicsRequest(_) => Self::Pause,
            Body::ResumeMirrorTopicsRequest(_) => Self::Resume,
            Body::DeleteClusterMirrorRequest(_) => Self::Delete,
            _ => return None,
        })
    }

    /// What the desired state says.
    pub fn wish(self, desired: DesiredState, guards: &mut Guards) -> Wish {
        use DesiredState as D;
        let wish = match (self, desired) {
            (Self::Start, D::Mirroring)
            | (Self::Stop, D::Stopped)
            | (Self::Pause, D::Paused)
            | (Self::Resume, D::Mirroring)
            | (Self::Delete, D::Unknown) => Wish::Already,
            (Self::Start, D::Paused)
            | (Self::Pause | Self::Resume, D::Stopped | D::Unknown)
            | (Self::Delete, D::Mirroring | D::Paused) => Wish::Refused,
            _ => Wish::Change,
        };
        if wish == Wish::Already && guards.quirk(guard::OrderNeedsExactState) {
            return Wish::Refused;
        }
        wish
    }

    /// Whether the states of the partitions have a say. A stop is admitted from every state (decision 1), also from one that
    /// nobody can tell now: it says what is wished, and whoever leads a partition acts on its state once it knows it. Were it
    /// refused, a coordinator without a leader would hold up a failover.
    pub fn needs_states(self, guards: &mut Guards) -> bool {
        self != Self::Stop || guards.quirk(guard::OrderNeedsExactState)
    }

    /// Whether a partition in that state stands in no order's way.
    pub fn fits(self, state: MirrorState, guards: &mut Guards) -> bool {
        use MirrorState as S;
        let exact = match self {
            Self::Start => matches!(state, S::Stopped | S::Unknown),
            Self::Stop => matches!(state, S::Mirroring | S::Paused),
            Self::Pause => state == S::Mirroring,
            Self::Resume => state == S::Paused,
            Self::Delete => state == S::Stopped,
        };
        let corrected = match self {
            Self::Start | Self::Delete => exact,
            Self::Stop => true,
            // A pause waits for MIRRORING (decision 28), and may be taken back meanwhile. FAILED needs a recovery first (C-7):
            // neither would come about.
            Self::Pause | Self::Resume => !matches!(state, S::Failed | S::Stopping),
        };
        if exact == corrected || !guards.quirk(guard::OrderNeedsExactState) {
            corrected
        } else {
            exact
        }
    }
}

/// The topics that a request names, in order.
pub(crate) fn named(request: &Body) -> Vec<Arc<str>> {
    match request {
        Body::StartMirrorTopicsRequest(r) => r.topics.iter().map(|(_, name, _)| name.clone()).collect(),
        Body::StopMirrorTopicsRequest(r) => r.topics.clone(),
        Body::PauseMirrorTopicsRequest(r) => r.topics.clone(),
        Body::ResumeMirrorTopicsRequest(r) => r.topics.clone(),
        Body::RecoverMirrorTopicsRequest(r) => r.topics.clone(),
        _ => Vec::new(),
    }
}

/// The mirror that a request is about.
pub(crate) fn mirror(request: &Body) -> Arc<str> {
    match request {
        Body::StartMirrorTopicsRequest(r) => r.mirror.clone(),
        Body::StopMirrorTopicsRequest(r) => r.mirror.clone(),
        Body::PauseMirrorTopicsRequest(r) => r.mirror.clone(),
        Body::ResumeMirrorTopicsRequest(r) => r.mirror.clone(),
        Body::DeleteClusterMirrorRequest(r) => r.mirror.clone(),
        Body::RecoverMirrorTopicsRequest(r) => r.mirror.clone(),
        _ => "".into(),
    }
}

/// The request for the controller: without the topics that are refused here, built on the states of that offset. `None` if
/// nothing is left to order.
pub(crate) fn forwarded(mut request: Body, refused: &[bool], offset: MetadataOffset) -> Option<Body> {
    let mut at = 0;
    let mut keep = || {
        at += 1;
        !refused.get(at - 1).copied().unwrap_or(false)
    };
    let some = match &mut request {
        Body::StartMirrorTopicsRequest(r) => {
            r.topics.retain(|_| keep());
            r.state_offset = offset;
            !r.topics.is_empty() || !r.include.is_empty() || !r.exclude.is_empty()
        }
        Body::StopMirrorTopicsRequest(r) => {
            r.topics.retain(|_| keep());
            r.state_offset = offset;
            !r.topics.is_empty() || !r.patterns.is_empty()
        }
        Body::PauseMirrorTopicsRequest(r) => {
            r.topics.retain(|_| keep());
            r.state_offset = offset;
            !r.topics.is_empty()
        }
        Body::ResumeMirrorTopicsRequest(r) => {
            r.topics.retain(|_| keep());
            r.state_offset = offset;
            !r.topics.is_empty()
        }
        Body::DeleteClusterMirrorRequest(r) => {
            r.state_offset = offset;
            true
        }
        _ => true,
    };
    // A request that names nothing at all has its answer from the controller too.
    (some || refused.is_empty()).then_some(request)
}

/// The answer to an order: a verdict on the whole, and one on each topic.
pub(crate) fn answer(order: Order, error: ErrorCode, message: Option<Arc<str>>, topics: Vec<NamedResult>) -> Body {
    match order {
        Order::Start => StartMirrorTopicsResponse { error, topics }.into(),
        Order::Stop => StopMirrorTopicsResponse { error, topics }.into(),
        Order::Pause => PauseMirrorTopicsResponse { error, topics }.into(),
        Order::Resume => ResumeMirrorTopicsResponse { error, topics }.into(),
        Order::Delete => DeleteClusterMirrorResponse { error, message }.into(),
    }
}

/// What the controller answered to an order.
pub(crate) fn decided(body: Body) -> Option<(ErrorCode, Option<Arc<str>>, Vec<NamedResult>)> {
    Some(match body {
        Body::StartMirrorTopicsResponse(a) => (a.error, None, a.topics),
        Body::StopMirrorTopicsResponse(a) => (a.error, None, a.topics),
        Body::PauseMirrorTopicsResponse(a) => (a.error, None, a.topics),
        Body::ResumeMirrorTopicsResponse(a) => (a.error, None, a.topics),
        Body::DeleteClusterMirrorResponse(a) => (a.error, a.message, Vec::new()),
        _ => return None,
    })
}

#[cfg(test)]
#[path = "order_rules_tests.rs"]
mod tests;
