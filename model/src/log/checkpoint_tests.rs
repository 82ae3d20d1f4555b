use super::*;
use crate::ports::DirName;
use crate::testing::MemDisk;

fn key(n: u32) -> PartitionKey {
    (TopicLife { id: TopicId(u128::from(n) << 70), ix: TopicIx(n) }, n)
}

fn root() -> (MemDisk, DirId) {
    let mut disk = MemDisk::new();
    let dir = disk.open_dir(DirName::Root, true).unwrap();
    (disk, dir)
}

fn load(disk: &mut MemDisk, dir: DirId) -> (Checkpoint, Vec<(PartitionKey, i64)>) {
    let (checkpoint, map) = Checkpoint::load(disk, dir, FileName::HighWatermarks).unwrap();
    (checkpoint, map.into_iter().map(|(key, offset)| (key, offset.0)).collect())
}

#[test]
fn the_last_word_on_a_partition_wins_and_a_torn_block_ends_the_file() {
    let (mut disk, dir) = root();
    let (mut checkpoint, none) = load(&mut disk, dir);
    assert!(none.is_empty() && checkpoint.wants_rewrite(2));
    let file = checkpoint.update(&mut disk, [(key(1), Offset(10)), (key(2), Offset(20))]).unwrap();
    assert!(!checkpoint.wants_rewrite(2));
    disk.flush(file);
    disk.flush_dir(dir);
    checkpoint.update(&mut disk, [(key(1), Offset(11))]).unwrap();
    assert_eq!(load(&mut disk, dir).1, [(key(1), 11), (key(2), 20)]);
    let whole = disk.len(file);
    disk.truncate(file, whole - 1).unwrap();
    let (torn, offsets) = load(&mut disk, dir);
    assert_eq!(offsets, [(key(1), 10), (key(2), 20)]);
    assert!(torn.wants_rewrite(2));
}

#[test]
fn a_rewrite_replaces_the_file_and_is_asked_for_when_old_words_pile_up() {
    let (mut disk, dir) = root();
    let (mut checkpoint, _) = load(&mut disk, dir);
    for round in 0..1200 {
        checkpoint.update(&mut disk, [(key(1), Offset(round))]).unwrap();
    }
    assert!(checkpoint.wants_rewrite(1));
    checkpoint.rewrite(&mut disk, [(key(1), Offset(7))]).unwrap();
    assert!(!checkpoint.wants_rewrite(1));
    assert_eq!(load(&mut disk, dir).1, [(key(1), 7)]);
    assert_eq!(disk.list(dir), [FileName::HighWatermarks]);
}

#[test]
fn small_files_round_trip_and_tell_when_they_are_torn() {
    let (mut disk, dir) = root();
    assert_eq!(read_small(&mut disk, dir, FileName::CleanShutdown), Ok(None));
    let file = write_small(&mut disk, dir, FileName::CleanShutdown, encode_clean_shutdown(BrokerEpoch(42))).unwrap();
    let read = read_small(&mut disk, dir, FileName::CleanShutdown).unwrap().unwrap();
    assert_eq!(decode_clean_shutdown(&read), Some(BrokerEpoch(42)));
    disk.rot(file, 9);
    let read = read_small(&mut disk, dir, FileName::CleanShutdown).unwrap().unwrap();
    assert_eq!(decode_clean_shutdown(&read), None);
    assert_eq!(decode_clean_shutdown(&[]), None);
}
