use super::*;
use crate::wire::messages::{DeleteClusterMirrorRequest, StopMirrorTopicsRequest};

const ORDERS: [Order; 5] = [Order::Start, Order::Stop, Order::Pause, Order::Resume, Order::Delete];

/// The states that let an order through, by the first letters of their names.
fn admitted(order: Order, guards: &mut Guards) -> Vec<&'static str> {
    MirrorState::ALL.into_iter().filter(|s| order.fits(*s, guards)).map(MirrorState::name).collect()
}

#[test]
fn a_stop_is_admitted_from_every_state_and_failed_is_neither_paused_nor_resumed() {
    let mut guards = Guards::default();
    assert_eq!(admitted(Order::Start, &mut guards), ["STOPPED", "UNKNOWN"]);
    assert_eq!(admitted(Order::Stop, &mut guards).len(), MirrorState::ALL.len());
    let running =
        ["LOG_ALIGNMENT", "EPOCH_FENCING", "ULE_RECOVERY", "MIRRORING", "PAUSING", "PAUSED", "STOPPED", "UNKNOWN"];
    assert_eq!(admitted(Order::Pause, &mut guards), running);
    assert_eq!(admitted(Order::Resume, &mut guards), running);
    assert_eq!(admitted(Order::Delete, &mut guards), ["STOPPED"]);
}

#[test]
fn the_prototype_s_gate_is_the_exact_table_of_spec_2_10() {
    let mut guards = Guards::default();
    guards.set(guard::OrderNeedsExactState, true);
    assert_eq!(admitted(Order::Start, &mut guards), ["STOPPED", "UNKNOWN"]);
    assert_eq!(admitted(Order::Stop, &mut guards), ["MIRRORING", "PAUSED"]);
    assert_eq!(admitted(Order::Pause, &mut guards), ["MIRRORING"]);
    assert_eq!(admitted(Order::Resume, &mut guards), ["PAUSED"]);
}

#[test]
fn pau_03_wishes_through_a_broker() {
    use {DesiredState as D, Order as O, Wish as W};
    // Repeated orders are successes (decision 2), what does not follow is 145; the prototype refuses both.
    let table = [
        (O::Pause, D::Stopped, W::Refused, W::Refused),
        (O::Pause, D::Paused, W::Already, W::Refused),
        (O::Resume, D::Mirroring, W::Already, W::Refused),
        (O::Resume, D::Stopped, W::Refused, W::Refused),
        (O::Start, D::Paused, W::Refused, W::Refused),
        (O::Start, D::Stopped, W::Change, W::Change),
        (O::Stop, D::Paused, W::Change, W::Change),
        (O::Delete, D::Mirroring, W::Refused, W::Refused),
        (O::Delete, D::Paused, W::Refused, W::Refused),
    ];
    for (order, desired, corrected, prototype) in table {
        let mut guards = Guards::default();
        assert_eq!(order.wish(desired, &mut guards), corrected, "{order:?} of {desired:?}");
        guards.set(guard::OrderNeedsExactState, true);
        assert_eq!(order.wish(desired, &mut guards), prototype, "{order:?} of {desired:?} in the prototype");
    }
    let mut guards = Guards::default();
    assert!(!Order::Resume.fits(MirrorState::Failed, &mut guards), "resume FAILED");
}

#[test]
fn what_is_refused_here_is_not_forwarded_and_the_rest_carries_the_offset() {
    let request = |patterns: &[&str]| {
        Body::from(StopMirrorTopicsRequest {
            mirror: "m".into(),
            topics: vec!["a".into(), "b".into()],
            patterns: patterns.iter().map(|p| Arc::from(*p)).collect(),
            state_offset: MetadataOffset(-1),
        })
    };
    let Some(Body::StopMirrorTopicsRequest(left)) = forwarded(request(&[]), &[true, false], MetadataOffset(7)) else {
        panic!("nothing is left");
    };
    assert_eq!((left.topics.as_slice(), left.state_offset), (&["b".into()][..], MetadataOffset(7)));
    assert_eq!(forwarded(request(&[]), &[true, true], MetadataOffset(7)), None);
    assert!(forwarded(request(&["c"]), &[true, true], MetadataOffset(7)).is_some(), "the patterns count");
}

#[test]
fn every_order_has_an_answer_that_says_what_was_decided() {
    for order in ORDERS {
        let body = answer(order, ErrorCode::InvalidClusterMirrorStates, Some("why".into()), Vec::new());
        assert_eq!(decided(body).map(|d| d.0), Some(ErrorCode::InvalidClusterMirrorStates), "{order:?}");
    }
    let delete: Body = DeleteClusterMirrorRequest { mirror: "m".into(), state_offset: MetadataOffset(-1) }.into();
    assert_eq!((Order::of(&delete), &*mirror(&delete)), (Some(Order::Delete), "m"));
}
