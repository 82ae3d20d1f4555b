use super::*;

/// A sum, and the number of records as something derived.
#[derive(Clone, Debug, Default, PartialEq)]
struct Sum {
    total: i64,
    seen: usize,
}

impl Machine for Sum {
    type Record = i64;
    type Stable = i64;
    fn replay(&mut self, _: i64, record: &i64) {
        self.total += record;
        self.seen += 1;
    }
    fn stable(&self) -> &i64 {
        &self.total
    }
    fn replay_stable(stable: &mut i64, _: i64, record: &i64) {
        *stable += record;
    }
    fn restore(&mut self, stable: &i64) {
        *self = Self { total: *stable, seen: 0 };
    }
}

fn engine() -> Engine<Sum, &'static str> {
    Engine::new(Sum::default(), 0)
}
fn commit(engine: &mut Engine<Sum, &'static str>, end: i64) -> (Vec<(i64, i64)>, Vec<&'static str>) {
    let (mut seen, mut released) = (Vec::new(), Vec::new());
    engine.on_committed(end, |_, offset, record| seen.push((offset, *record)), |answer| released.push(answer));
    (seen, released)
}

#[test]
fn an_answer_waits_for_what_its_operation_saw() {
    let mut e = engine();
    assert_eq!(e.wait("read of nothing"), Some("read of nothing"));
    e.appended(vec![1, 2]);
    assert_eq!(e.wait("a"), None);
    assert_eq!(e.wait("a read that saw uncommitted state"), None);
    e.appended(vec![4]);
    assert_eq!(e.wait("b"), None);
    assert_eq!((e.latest().total, *e.committed()), (7, 0));
    assert_eq!(commit(&mut e, 2), (vec![(0, 1), (1, 2)], vec!["a", "a read that saw uncommitted state"]));
    assert_eq!((*e.committed(), e.committed_end()), (3, 2));
    assert_eq!(commit(&mut e, 3), (vec![(2, 4)], vec!["b"]));
    assert_eq!((*e.committed(), e.latest().total), (7, 7));
}

#[test]
fn a_commit_may_end_within_an_append() {
    let mut e = engine();
    e.appended(vec![1, 2, 4]);
    assert_eq!(e.wait("a"), None);
    assert_eq!(commit(&mut e, 1), (vec![(0, 1)], vec![]));
    assert_eq!(*e.committed(), 1);
    assert_eq!(commit(&mut e, 1), (vec![], vec![]));
    assert_eq!(commit(&mut e, 9), (vec![(1, 2), (2, 4)], vec!["a"]));
    assert_eq!(e.committed_end(), 3);
}

#[test]
fn a_failure_rolls_back_to_the_committed_state_and_refuses_who_waits() {
    let mut e = engine();
    e.appended(vec![1]);
    let _ = commit(&mut e, 1);
    e.appended(vec![10]);
    assert_eq!(e.wait("lost"), None);
    let mut refused = Vec::new();
    e.on_failed(|answer| refused.push(answer));
    assert_eq!((refused, e.latest().total, e.end()), (vec!["lost"], 1, 1));
    e.appended(vec![5]);
    assert_eq!(commit(&mut e, 2), (vec![(1, 5)], vec![]));
    assert_eq!(*e.committed(), 6);
}

#[test]
fn what_recovery_found_commits_with_the_first_commit() {
    let mut e = Engine::<Sum, &str>::new(Sum { total: 100, seen: 0 }, 50);
    e.recovered(50, &1);
    e.recovered(51, &2);
    assert_eq!((e.latest().total, *e.committed(), e.end()), (103, 100, 52));
    e.appended(vec![7]);
    let mut seen = Vec::new();
    e.on_committed(53, |_, offset, record| seen.push((offset, *record)), |_| {});
    assert_eq!((seen, *e.committed()), (vec![(52, 7)], 110));
}

/// Compaction may leave an empty batch at a log's end: the next record comes behind it all the same.
#[test]
fn a_compacted_log_may_end_behind_its_last_record() {
    let mut e = engine();
    e.recovered(3, &5);
    e.recovered_up_to(9);
    assert_eq!((e.end(), commit(&mut e, 9)), (9, (vec![], vec![])));
    e.appended(vec![2]);
    assert_eq!(e.wait("written"), None);
    assert_eq!(commit(&mut e, 10), (vec![(9, 2)], vec!["written"]));
}

#[test]
fn appends_that_commit_together_are_seen_one_after_another() {
    let mut e = engine();
    e.appended(vec![1, 2]);
    e.appended(vec![4]);
    let mut seen = Vec::new();
    e.on_committed(3, |state, offset, _| seen.push((offset, *state)), |_| {});
    assert_eq!(seen, [(0, 3), (1, 3), (2, 7)]);
    assert_eq!((*e.committed(), e.latest().total), (7, 7));
}
