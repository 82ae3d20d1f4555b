use super::*;

fn value(state: TxnState, epoch: i16) -> TxnValue {
    TxnValue {
        producer: ProducerId(7),
        epoch: ProducerEpoch(epoch),
        last_epoch: NO_EPOCH,
        timeout_ms: 1_000,
        state,
        members: if state == TxnState::Empty { Vec::new() } else { vec![("t".into(), 0)] },
        updated: 10,
        started: 10,
    }
}

fn init(now: Option<&TxnValue>, expected: Option<(i64, i16)>, fresh: Option<i64>) -> Result<Init, ErrorCode> {
    let expected = expected.map(|(id, epoch)| (ProducerId(id), ProducerEpoch(epoch)));
    plan_init(now, 1_000, expected, fresh.map(ProducerId), 100, &mut Guards::default())
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
fn an_end_is_decided_once() {
    use ErrorCode as E;
    use TxnState as S;
    let end = |state, commit| {
        plan_end(Some(&value(state, 3)), OF, commit, 100, &mut Guards::default()).map(|v| v.map(|v| v.state))
    };
    assert_eq!(end(S::Ongoing, true), Ok(Some(S::PrepareCommit)));
    assert_eq!(end(S::Ongoing, false), Ok(Some(S::PrepareAbort)));
    assert_eq!((end(S::CompleteCommit, true), end(S::CompleteAbort, false)), (Ok(None), Ok(None)));
    assert_eq!(end(S::PrepareCommit, true), Err(E::ConcurrentTransactions));
    for (state, commit) in
        [(S::Empty, true), (S::CompleteAbort, true), (S::CompleteCommit, false), (S::PrepareAbort, true)]
    {
        assert_eq!(end(state, commit), Err(E::InvalidTxnState));
    }
}

#[test]
fn only_an_overdue_transaction_is_aborted_and_it_loses_its_epoch() {
    let mut guards = Guards::default();
    assert_eq!(plan_timeout(&value(TxnState::Ongoing, 3), 1_010, &mut guards), None);
    let fenced = plan_timeout(&value(TxnState::Ongoing, 3), 1_011, &mut guards).unwrap();
    assert_eq!((fenced.state, fenced.epoch.0), (TxnState::PrepareAbort, 4));
    assert_eq!(plan_timeout(&value(TxnState::CompleteCommit, 3), 9_999, &mut guards), None);
    guards.set(guard::TransactionsTimeOut, false);
    assert_eq!(plan_timeout(&value(TxnState::Ongoing, 3), 1_011, &mut guards), None);
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
    assert_eq!(count, 11);
    assert!(all.iter().all(|s| S::from_code(*s as i8) == Some(*s)));
}
