use super::*;

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Nanos {
    Nanos(ms * MS)
}

fn add(acks: &mut Acks, ms: u64, base: i64, next: i64, epoch: i32) {
    acks.add(at(ms), (Offset(base), Offset(next)), LeaderEpoch(epoch), || Offset(0));
}

fn epochs(of: &[(i32, i64)]) -> Vec<EpochEntry> {
    of.iter().map(|(epoch, start)| EpochEntry { epoch: LeaderEpoch(*epoch), start: Offset(*start) }).collect()
}

fn held(epochs: &[EpochEntry], start: i64, mirrored: i64, end: i64) -> Held<'_> {
    Held { start: Offset(start), end: Offset(end), mirrored: Offset(mirrored), epochs }
}

#[test]
fn what_lies_above_the_end_of_the_copy_is_missing_and_its_first_ack_counts() {
    let mut acks = Acks::default();
    add(&mut acks, 10, 0, 10, 0);
    add(&mut acks, 20, 10, 20, 0);
    add(&mut acks, 30, 20, 25, 0);
    let table = epochs(&[(0, 0)]);
    let missing = acks.missing(at(40), held(&table, 0, 15, 15));
    assert_eq!(missing, Some(Missing { records: 10, oldest: Some(at(20)) }));
}

#[test]
fn what_was_acknowledged_later_does_not_count() {
    let mut acks = Acks::default();
    add(&mut acks, 10, 0, 10, 0);
    add(&mut acks, 50, 10, 20, 0);
    let table = epochs(&[(0, 0)]);
    assert_eq!(acks.missing(at(40), held(&table, 0, 10, 10)), Some(Missing::default()));
}

#[test]
fn the_same_offset_in_another_epoch_is_another_record() {
    let mut acks = Acks::default();
    add(&mut acks, 10, 0, 10, 0);
    add(&mut acks, 20, 10, 20, 1);
    // The copy goes on with records of its own from 12 on: in epoch 7.
    let table = epochs(&[(0, 0), (1, 10), (7, 12)]);
    let missing = acks.missing(at(40), held(&table, 0, 12, 30));
    assert_eq!(missing, Some(Missing { records: 8, oldest: Some(at(20)) }));
}

#[test]
fn what_retention_removed_at_the_copy_was_there() {
    let mut acks = Acks::default();
    add(&mut acks, 10, 0, 10, 0);
    let table = epochs(&[(0, 6)]);
    assert_eq!(acks.missing(at(40), held(&table, 6, 10, 10)), Some(Missing::default()));
}

#[test]
fn an_unknown_epoch_goes_by_offset() {
    let mut acks = Acks::default();
    add(&mut acks, 10, 0, 10, -1);
    let table = epochs(&[(3, 0)]);
    let missing = acks.missing(at(40), held(&table, 0, 8, 20));
    assert_eq!(missing, Some(Missing { records: 2, oldest: Some(at(10)) }));
}

#[test]
fn what_every_copy_has_is_forgotten_and_a_copy_that_falls_back_behind_it_is_unknown() {
    let mut acks = Acks::default();
    for n in 0..100 {
        acks.add(at(n as u64), (Offset(n), Offset(n + 1)), LeaderEpoch(0), || Offset(n - 2));
    }
    assert!(acks.pieces.len() <= 2 * LOOK_AT, "{}", acks.pieces.len());
    let table = epochs(&[(0, 0)]);
    assert_eq!(acks.missing(at(200), held(&table, 0, 98, 98)).map(|m| m.records), Some(2));
    assert_eq!(acks.missing(at(200), held(&table, 0, 10, 10)), None);
}
