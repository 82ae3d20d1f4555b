use super::*;

fn value(state: TxnState, epoch: i16) -> TxnValue {
    TxnValue {
        producer: ProducerId(7),
        previous: ProducerId::NONE,
        next: ProducerId::NONE,
        epoch: ProducerEpoch(epoch),
        last_epoch: NO_EPOCH,
        timeout_ms: 1_000,
        state,
        members: if state == TxnState::Empty { Vec::new() } else { vec![("t".into(), 0)] },
        updated: 10,
        started: 10,
        version: 0,
    }
}

fn init(now: Option<&TxnValue>, expected: Option<(i64, i16)>, fresh: Option<i64>) -> Result<Init, ErrorCode> {
    let expected = expected.map(|(id, epoch)| (ProducerId(id), ProducerEpoch(epoch)));
    plan_init(now, 1_000, expected, fresh.map(ProducerId), 2, 100, &mut Guards::default())
}

fn granted(result: Result<Init, ErrorCode>) -> (i64, i16, i16) {
    let Ok(Init::Granted(value)) = result else { panic!("{result:?}") };
    assert_eq!((value.state, value.members.len()), (TxnState::Empty, 0));
    (value.producer.0, value.epoch.0, value.last_epoch.0)
}

const OF: (ProducerId, ProducerEpoch) = (ProducerId(7), ProducerEpoch(3));

#[test]
fn a_new_transactional_id_gets_a_new_producer_id_and_a_known_one_the_next_epoch() {
    assert_eq!(init(None, None, None), Ok(Init::NeedsId));
    assert_eq!(granted(init(None, None, Some(9))), (9, 0, -1));
    for state in [TxnState::Empty, TxnState::CompleteCommit, TxnState::CompleteAbort] {
        assert_eq!(granted(init(Some(&value(state, 3)), None, None)), (7, 4, -1));
    }
}

#[test]
fn an_open_transaction_is_aborted_first_under_a_higher_epoch() {
    let Ok(Init::Abort(fenced)) = init(Some(&value(TxnState::Ongoing, 3)), None, None) else { panic!() };
    assert_eq!((fenced.state, fenced.epoch.0, fenced.members.len()), (TxnState::PrepareAbort, 4, 1));
    for state in [TxnState::PrepareCommit, TxnState::PrepareAbort] {
        assert_eq!(init(Some(&value(state, 3)), None, None), Err(ErrorCode::ConcurrentTransactions));
    }
}

#[test]
fn a_producer_that_goes_on_is_known_by_its_epoch_and_its_retry_by_the_epoch_before() {
    let now = value(TxnState::CompleteAbort, 3);
    assert_eq!(granted(init(Some(&now), Some((7, 3)), None)), (7, 4, 3));
    assert_eq!(init(Some(&now), Some((7, 2)), None), Err(ErrorCode::ProducerFenced));
    assert_eq!(init(Some(&now), Some((6, 3)), None), Err(ErrorCode::ProducerFenced));
    let bumped = TxnValue { epoch: ProducerEpoch(4), last_epoch: ProducerEpoch(3), ..value(TxnState::Empty, 4) };
    assert_eq!(init(Some(&bumped), Some((7, 3)), None), Ok(Init::Again(ProducerId(7), ProducerEpoch(4))));
}

#[test]
fn the_last_epochs_lead_to_a_new_producer_id() {
    let worn = value(TxnState::CompleteCommit, i16::MAX - 1);
    assert_eq!(init(Some(&worn), None, None), Ok(Init::NeedsId));
    assert_eq!(granted(init(Some(&worn), None, Some(9))), (9, 0, -1));
    let Ok(Init::Abort(fenced)) = init(Some(&value(TxnState::Ongoing, i16::MAX - 1)), None, None) else { panic!() };
    assert_eq!(fenced.epoch.0, i16::MAX);
}

#[test]
fn partitions_join_the_open_transaction_or_begin_one() {
    let guards = &mut Guards::default();
    let two: [Member; 1] = [("t".into(), 2)];
    let begun = plan_add(Some(&value(TxnState::CompleteCommit, 3)), OF, &two, 100, guards).unwrap().unwrap();
    assert_eq!((begun.state, begun.started, begun.members.len()), (TxnState::Ongoing, 100, 1));
    let grown = plan_add(Some(&value(TxnState::Ongoing, 3)), OF, &two, 100, guards).unwrap().unwrap();
    assert_eq!((grown.started, grown.members), (10, vec![("t".into(), 0), ("t".into(), 2)]));
    let known: [Member; 1] = [("t".into(), 0)];
    assert_eq!(plan_add(Some(&value(TxnState::Ongoing, 3)), OF, &known, 100, guards), Ok(None));
    for (now, error) in [
        (None, ErrorCode::InvalidProducerIdMapping),
        (Some(TxnValue { producer: ProducerId(8), ..value(TxnState::Empty, 3) }), ErrorCode::InvalidProducerIdMapping),
        (Some(value(TxnState::Empty, 4)), ErrorCode::ProducerFenced),
        (Some(value(TxnState::PrepareCommit, 3)), ErrorCode::ConcurrentTransactions),
    ] {
        assert_eq!(plan_add(now.as_ref(), OF, &two, 100, guards), Err(error));
    }
}

#[test]
fn in_version_1_an_end_is_decided_once_under_the_epoch_of_its_producer() {
    use ErrorCode as E;
    use TxnState as S;
    let end = |state, commit| plan_end(Some(&value(state, 3)), OF, commit, None, 1, 100, &mut Guards::default());
    for (commit, state) in [(true, S::PrepareCommit), (false, S::PrepareAbort)] {
        let Ok(End::Decided(decided)) = end(S::Ongoing, commit) else { panic!() };
        assert_eq!((decided.state, decided.epoch.0, decided.version), (state, 3, 1));
        assert_eq!(goes_on_with(&decided), (ProducerId::NONE, NO_EPOCH), "the producer keeps what it has");
    }
    let again = Ok(End::Again(ProducerId::NONE, NO_EPOCH));
    assert_eq!((end(S::CompleteCommit, true), end(S::CompleteAbort, false)), (again.clone(), again));
    assert_eq!(end(S::PrepareCommit, true), Err(E::ConcurrentTransactions));
    for (state, commit) in
        [(S::Empty, true), (S::CompleteAbort, true), (S::CompleteCommit, false), (S::PrepareAbort, true)]
    {
        assert_eq!(end(state, commit), Err(E::InvalidTxnState));
    }
}

/// An end in version 2 of a transactional id at epoch 3: what it comes to, epochs only.
fn end_2(state: TxnState, epoch: i16, commit: bool) -> Result<(Option<TxnState>, i16), ErrorCode> {
    let (now, of) = (value(state, 3), (ProducerId(7), ProducerEpoch(epoch)));
    match plan_end(Some(&now), of, commit, None, 2, 100, &mut Guards::default())? {
        End::Decided(value) => Ok((Some(value.state), goes_on_with(&value).1 .0)),
        End::Again(_, epoch) => Ok((None, epoch.0)),
        End::NeedsId => panic!("epoch 3 is not the last"),
    }
}

/// KIP-890, and the table in Kafka's TransactionCoordinator: request under the present epoch (3), the one before, and others.
#[test]
fn in_version_2_an_end_raises_the_epoch_and_a_repeated_one_is_known_by_the_epoch_before() {
    use ErrorCode as E;
    use TxnState as S;
    let (aborts, commits) = (Ok((Some(S::PrepareAbort), 4)), Ok((Some(S::PrepareCommit), 4)));
    let again = Ok((None, 3));
    for (state, commit, present, repeated) in [
        (S::Empty, false, aborts, Err(E::ProducerFenced)),
        (S::Empty, true, Err(E::InvalidTxnState), Err(E::ProducerFenced)),
        (S::Ongoing, false, aborts, Err(E::ProducerFenced)),
        (S::Ongoing, true, commits, Err(E::ProducerFenced)),
        (S::CompleteAbort, false, aborts, again),
        (S::CompleteAbort, true, Err(E::InvalidTxnState), Err(E::ProducerFenced)),
        (S::CompleteCommit, false, aborts, Err(E::InvalidTxnState)),
        (S::CompleteCommit, true, Err(E::InvalidTxnState), again),
        (S::PrepareAbort, false, Err(E::ProducerFenced), Err(E::ConcurrentTransactions)),
        (S::PrepareAbort, true, Err(E::ProducerFenced), Err(E::InvalidTxnState)),
        (S::PrepareCommit, false, Err(E::ProducerFenced), Err(E::InvalidTxnState)),
        (S::PrepareCommit, true, Err(E::ProducerFenced), Err(E::ConcurrentTransactions)),
    ] {
        assert_eq!(end_2(state, 3, commit), present, "{state:?}, commit {commit}, present epoch");
        assert_eq!(end_2(state, 2, commit), repeated, "{state:?}, commit {commit}, the epoch before");
        for other in [1, 4] {
            assert_eq!(
                end_2(state, other, commit),
                Err(E::ProducerFenced),
                "{state:?}, commit {commit}, epoch {other}"
            );
        }
    }
    let of = (ProducerId(8), ProducerEpoch(3));
    let end = |now: Option<&TxnValue>| plan_end(now, of, true, None, 2, 100, &mut Guards::default());
    assert_eq!(end(Some(&value(S::Ongoing, 3))), Err(E::InvalidProducerIdMapping));
    assert_eq!(end(None), Err(E::InvalidProducerIdMapping));
}

/// The finding that version 2 is the answer to: an end that was on its way for so long that its transaction is over.
#[test]
fn a_late_end_ends_the_next_transaction_in_version_1_and_is_fenced_in_version_2() {
    let late = |version, guards: &mut Guards| {
        let first = plan_end(Some(&value(TxnState::Ongoing, 3)), OF, true, None, version, 100, guards);
        let Ok(End::Decided(decided)) = first else { panic!("{first:?}") };
        let over = plan_complete(Some(&decided), (OF.0, decided.epoch), true, 101, guards).unwrap();
        let next =
            plan_add(Some(&over), (over.producer, over.epoch), &[("t".into(), 0)], 102, guards).unwrap().unwrap();
        plan_end(Some(&next), OF, true, None, version, 103, guards)
    };
    assert!(matches!(late(1, &mut Guards::default()), Ok(End::Decided(_))));
    assert_eq!(late(2, &mut Guards::default()), Err(ErrorCode::ProducerFenced));
    let mut mutant = Guards::default();
    mutant.set(guard::EndRaisesEpoch, false);
    assert!(matches!(late(2, &mut mutant), Ok(End::Decided(_))));
}

/// KAFKA-20785: the coordinator aborted what the producer asks to be committed.
#[test]
fn a_repeated_end_is_answered_by_what_was_decided() {
    let mut mutant = Guards::default();
    mutant.set(guard::RepeatedEndSameDecision, false);
    let of = (ProducerId(7), ProducerEpoch(2));
    let told = plan_end(Some(&value(TxnState::CompleteAbort, 3)), of, true, None, 2, 100, &mut mutant);
    assert_eq!(told, Ok(End::Again(ProducerId(7), ProducerEpoch(3))), "committed, as the producer is told");
}

#[test]
fn the_end_under_the_last_epoch_changes_the_producer_id() {
    const LAST: i16 = i16::MAX - 1;
    let guards = &mut Guards::default();
    let of = (ProducerId(7), ProducerEpoch(LAST));
    let worn = value(TxnState::Ongoing, LAST);
    assert_eq!(plan_end(Some(&worn), of, true, None, 2, 100, guards), Ok(End::NeedsId));
    let Ok(End::Decided(decided)) = plan_end(Some(&worn), of, true, Some(ProducerId(9)), 2, 100, guards) else {
        panic!()
    };
    assert_eq!(
        (decided.producer.0, decided.epoch.0, decided.next.0),
        (7, i16::MAX, 9),
        "its markers are of the old one"
    );
    assert_eq!(goes_on_with(&decided), (ProducerId(9), ProducerEpoch(0)));
    assert_eq!(plan_end(Some(&decided), of, true, None, 2, 100, guards), Err(ErrorCode::ConcurrentTransactions));
    let over = plan_complete(Some(&decided), (ProducerId(7), ProducerEpoch(i16::MAX)), true, 101, guards).unwrap();
    assert_eq!((over.producer.0, over.epoch.0, over.previous.0, over.next), (9, 0, 7, ProducerId::NONE));
    // The answer was lost: the old producer id asks again, as an end and as a beginning.
    let again = plan_end(Some(&over), of, true, None, 2, 102, guards);
    assert_eq!(again, Ok(End::Again(ProducerId(9), ProducerEpoch(0))));
    assert_eq!(init(Some(&over), Some((7, LAST)), None), Ok(Init::Again(ProducerId(9), ProducerEpoch(0))));
    assert_eq!(init(Some(&over), Some((7, LAST - 1)), None), Err(ErrorCode::ProducerFenced));
    // With the next transaction it is over.
    let next =
        plan_add(Some(&over), (ProducerId(9), ProducerEpoch(0)), &[("t".into(), 0)], 103, guards).unwrap().unwrap();
    assert_eq!(plan_end(Some(&next), of, true, None, 2, 104, guards), Err(ErrorCode::InvalidProducerIdMapping));
}

/// The last epoch fences a producer that has the one before; nobody is ever given it.
#[test]
fn the_epoch_that_only_fences_is_not_given_away() {
    const LAST: i16 = i16::MAX - 1;
    let guards = &mut Guards::default();
    let late = plan_timeout(&value(TxnState::Ongoing, LAST), 2, 2_000, guards).unwrap();
    assert_eq!((late.epoch.0, late.last_epoch.0, late.next), (i16::MAX, LAST, ProducerId::NONE));
    let over = plan_complete(Some(&late), (late.producer, late.epoch), false, 2_001, guards).unwrap();
    let end = plan_end(Some(&over), (ProducerId(7), ProducerEpoch(LAST)), false, None, 2, 2_002, guards);
    assert_eq!(end, Err(ErrorCode::ProducerFenced));
    assert_eq!(init(Some(&over), Some((7, LAST)), None), Ok(Init::NeedsId));
    assert_eq!(granted(init(Some(&over), Some((7, LAST)), Some(9))), (9, 0, LAST));
}

#[test]
fn only_an_overdue_transaction_is_aborted_and_it_loses_its_epoch() {
    let mut guards = Guards::default();
    assert_eq!(plan_timeout(&value(TxnState::Ongoing, 3), 2, 1_010, &mut guards), None);
    let fenced = plan_timeout(&value(TxnState::Ongoing, 3), 2, 1_011, &mut guards).unwrap();
    assert_eq!((fenced.state, fenced.epoch.0), (TxnState::PrepareAbort, 4));
    assert_eq!(plan_timeout(&value(TxnState::CompleteCommit, 3), 2, 9_999, &mut guards), None);
    guards.set(guard::TransactionsTimeOut, false);
    assert_eq!(plan_timeout(&value(TxnState::Ongoing, 3), 2, 1_011, &mut guards), None);
}

/// T04: what two last answers say twice ends one transaction once, and not the next.
#[test]
fn a_completion_is_of_the_transaction_that_its_markers_were_of() {
    let complete = |now: &TxnValue| plan_complete(Some(now), OF, true, 100, &mut Guards::default());
    let over = complete(&value(TxnState::PrepareCommit, 3)).unwrap();
    assert_eq!((over.state, over.members.len()), (TxnState::CompleteCommit, 0));
    assert_eq!(complete(&over), None);
    assert_eq!(complete(&value(TxnState::Ongoing, 3)), None);
    assert_eq!(complete(&value(TxnState::PrepareCommit, 4)), None);
}

#[test]
fn the_table_of_states_is_kafkas() {
    use TxnState as S;
    let all = [S::Empty, S::Ongoing, S::PrepareCommit, S::PrepareAbort, S::CompleteCommit, S::CompleteAbort];
    let count = all.iter().flat_map(|a| all.iter().map(move |b| a.can_become(*b))).filter(|can| *can).count();
    assert_eq!(count, 14);
    assert!(all.iter().all(|s| S::from_code(*s as i8) == Some(*s)));
}
