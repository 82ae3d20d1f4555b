use super::*;

#[test]
fn states_and_kinds_stand_at_their_places() {
    for (n, state) in MirrorState::ALL.into_iter().enumerate() {
        assert_eq!(place(state), n);
    }
    for (n, (kind, _)) in KINDS.into_iter().enumerate() {
        assert_eq!(kind as usize, n);
    }
    for (n, step) in Step::ALL.into_iter().enumerate() {
        assert_eq!(step as usize, n);
    }
}

#[test]
fn every_order_is_an_action() {
    for name in Action::ORDERS.iter().chain(DOINGS) {
        assert!(Action::NAMES.contains(name), "{name}");
    }
}

#[test]
fn keys_are_known_once_and_all_that_a_full_census_tells_is_known() {
    let keys = known();
    let set: BTreeSet<&String> = keys.iter().collect();
    assert_eq!(set.len(), keys.len());
    let mut full = Census { struck: [1; Action::NAMES.len()], elections: [1; 4], quorum: [1; 2], ..Census::default() };
    full.events.iter_mut().for_each(|row| row.fill(1));
    for key in full.told(&[], &Guards::default(), &[]).keys() {
        let outside = key == "runs" || key.starts_with("event.UNKNOWN.");
        assert!(outside || set.contains(key), "{key}");
    }
}

#[test]
fn answers_stand_under_their_orders() {
    let told = |answer: &str| OrderTold { order: "stop-mirror".into(), answer: answer.into(), ..OrderTold::default() };
    let orders = [told("NONE"), told("INVALID_CLUSTER_MIRROR_STATES"), told("no answer")];
    let out = Census::default().told(&orders, &Guards::default(), &[]);
    let expected = [
        ("order.stop-mirror.accepted", 1),
        ("order.stop-mirror.refused", 1),
        ("order.stop-mirror.refused.INVALID_CLUSTER_MIRROR_STATES", 1),
        ("order.stop-mirror.unanswered", 1),
        ("runs", 1),
    ];
    assert_eq!(out.into_iter().collect::<Vec<_>>(), expected.map(|(key, n)| (key.to_owned(), n)));
}
