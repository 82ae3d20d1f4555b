use super::*;

fn only(bytes: &Bytes) -> BatchView<'_> {
    let batch = BatchView::parse(bytes).unwrap();
    assert_eq!((batch.size(), batch.record_count()), (bytes.len(), 1));
    assert!(batch.is_control() && batch.crc_valid());
    batch
}

#[test]
fn a_marker_names_its_producer_and_has_no_sequence() {
    for commit in [true, false] {
        let bytes = end_txn_marker(commit, ProducerId(7), ProducerEpoch(3), 12, 99);
        let batch = only(&bytes);
        assert_eq!(batch.control_type(), Some(if commit { ControlType::Commit } else { ControlType::Abort }));
        assert_eq!(
            (batch.producer(), batch.producer_epoch(), batch.base_sequence()),
            (ProducerId(7), ProducerEpoch(3), -1)
        );
        assert!(batch.is_transactional());
        assert_eq!(ControlRecord::parse(&batch), Ok(ControlRecord::EndTxn { commit, coordinator_epoch: 12 }));
        let record = batch.records().next().unwrap().unwrap();
        assert_eq!(record.key, Some(&[0, 0, 0, u8::from(commit)][..]));
        assert_eq!(record.value, Some(&[0, 0, 0, 0, 0, 12][..]));
    }
}

#[test]
fn a_pid_reset_may_leave_its_cluster_out_which_is_not_an_empty_name() {
    for source_cluster_id in [None, Some(""), Some("source-1")] {
        let bytes = mirror_pid_reset(source_cluster_id, 99);
        let batch = only(&bytes);
        assert_eq!(batch.control_type(), Some(ControlType::MirrorPidReset));
        assert_eq!(
            (batch.producer(), batch.is_transactional(), batch.leader_epoch()),
            (ProducerId::NONE, false, LeaderEpoch(0))
        );
        assert_eq!(ControlRecord::parse(&batch), Ok(ControlRecord::MirrorPidReset { source_cluster_id }));
    }
    let bytes = mirror_pid_reset(Some("ab"), 0);
    let record = only(&bytes).records().next().unwrap().unwrap();
    assert_eq!(record.key, Some(&[0, 0, 0, 7][..]));
    assert_eq!(record.value, Some(&[0, 0, 3, b'a', b'b', 0][..]));
}

#[test]
fn a_leader_change_lists_voters() {
    let bytes = leader_change(Offset(40), LeaderEpoch(6), 2, &[1, 2, 3], &[2, 3], 99);
    let batch = only(&bytes);
    assert_eq!((batch.base_offset(), batch.leader_epoch()), (Offset(40), LeaderEpoch(6)));
    assert_eq!(ControlRecord::parse(&batch), Ok(ControlRecord::LeaderChange { leader: 2 }));
    let record = batch.records().next().unwrap().unwrap();
    #[rustfmt::skip]
    assert_eq!(record.value, Some(&[
        0, 0, 0, 0, 0, 2,
        4, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3, 0,
        3, 0, 0, 0, 2, 0, 0, 0, 0, 3, 0,
        0,
    ][..]));
}

#[test]
fn later_types_are_unknown_and_broken_ones_are_errors() {
    let batch = |key: Option<&[u8]>, value: Option<&[u8]>| {
        let mut batch = BatchBuilder::new(BatchMeta { control: true, ..BatchMeta::default() });
        batch.push(0, key, value);
        batch.finish()
    };
    let later = batch(Some(&[0, 1, 0, 99, 5]), Some(b"whatever"));
    assert_eq!(ControlRecord::parse(&only(&later)), Ok(ControlRecord::Other(ControlType::Unknown)));
    type KeyAndValue<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);
    let broken: [KeyAndValue; 6] = [
        (None, Some(&[0; 6])),
        (Some(&[0, 0, 0]), Some(&[0; 6])),
        (Some(&[0xff, 0xff, 0, 0]), Some(&[0; 6])),
        (Some(&[0, 0, 0, 1]), Some(&[0; 5])),
        (Some(&[0, 0, 0, 7]), Some(&[0, 0, 9, b'a'])),
        (Some(&[0, 0, 0, 7]), None),
    ];
    for (key, value) in broken {
        let bytes = batch(key, value);
        assert_eq!(ControlRecord::parse(&only(&bytes)), Err(BatchError::Record), "{key:?} {value:?}");
    }
    let mut data = BatchBuilder::new(BatchMeta::default());
    data.push(0, None, None);
    let data = data.finish();
    assert_eq!(ControlRecord::parse(&BatchView::parse(&data).unwrap()), Err(BatchError::Record));
}
