//! Faults while a node runs: full disk, failing calls, failed flushes, stalls; and the time that calls take.

use super::{partition, pieces, World};
use bytes::Bytes;
use mirrorlab_model::ids::Nanos;
use mirrorlab_model::ports::{Disk, DiskError, FileName, FlushToken};
use mirrorlab_sim::disk::{CrashRules, ErrorRule, FlushEnd, Ops};
use std::collections::BTreeSet;

#[test]
fn a_full_disk_refuses_and_may_keep_a_front_of_the_bytes() {
    let mut left = BTreeSet::new();
    for seed in 0..40 {
        let mut world = World::new(1, seed);
        let file = world.segment(0);
        world.disks[0].set_capacity(15);
        world.append(0, file, &Bytes::from_static(b"0123456789"));
        let refused = world.on(0, |d| d.append(file, Bytes::from_static(b"abcdefghij")));
        assert_eq!(refused, Err(DiskError::Full));
        let content = world.content(0, file);
        assert!(b"0123456789abcde".starts_with(&content[..]) && content.len() >= 10);
        left.insert(content.len());
        assert_eq!(world.disks[0].used(), content.len() as u64);
        // Cutting makes room.
        world.on(0, |d| d.truncate(file, 5)).unwrap();
        world.append(0, file, &Bytes::from_static(b"0123456789"));
        let dir = world.on(0, |d| d.open_dir(partition(0), false)).unwrap();
        assert_eq!(world.on(0, |d| d.create(dir, FileName::Segment(7))), Err(DiskError::Full));
        assert_eq!(world.on(0, |d| d.open_dir(partition(1), true)), Err(DiskError::Full));
        world.check();
    }
    assert_eq!(left, (10..=15).collect());
}

#[test]
fn calls_fail_by_kind_by_file_and_by_count() {
    let mut world = World::new(1, 1);
    let file = world.settled(0, &pieces(1));
    let other = world.file(0, partition(0), FileName::Segment(9));
    let read = |world: &mut World, file| world.on(0, |d| d.read(file, 0, 1, &mut Vec::new()));
    world.disks[0].add_error(ErrorRule::next(Ops::READ, 2));
    assert_eq!(read(&mut world, file), Err(DiskError::Io));
    world.append(0, file, &pieces(2)[1]);
    assert_eq!(read(&mut world, file), Err(DiskError::Io));
    assert!(read(&mut world, file).is_ok());
    let rule = world.disks[0].add_error(ErrorRule::on_file(Ops::WRITE.and(Ops::READ), file));
    assert_eq!(read(&mut world, file), Err(DiskError::Io));
    assert_eq!(world.on(0, |d| d.truncate(file, 0)), Err(DiskError::Io));
    world.append(0, other, &pieces(1)[0]);
    assert_eq!(world.disks[0].lift_error(rule), 2);
    assert!(read(&mut world, file).is_ok());
    world.disks[0].add_error(ErrorRule::sometimes(Ops::ALL, 0.25));
    let failed = (0..1_000).filter(|_| read(&mut world, file).is_err()).count();
    assert!((200..300).contains(&failed), "{failed}");
    world.disks[0].lift_errors();
    assert!(read(&mut world, file).is_ok());
    world.disks[0].add_error(ErrorRule::next(Ops::NAMES, 1));
    assert_eq!(world.on(0, |d| d.open_dir(partition(0), true)), Err(DiskError::Io));
    assert!(world.on(0, |d| d.open_dir(partition(0), true)).is_ok());
    world.check();
}

#[test]
fn after_a_failed_flush_bytes_may_never_become_durable() {
    let pieces = pieces(6);
    let mut outcomes = BTreeSet::new();
    for seed in 0..60 {
        let mut world = World::new(1, seed);
        let file = world.settled(0, &pieces[..2]);
        pieces[2..5].iter().for_each(|p| world.append(0, file, p));
        world.disks[0].add_error(ErrorRule::next(Ops::FLUSH, 1));
        assert_eq!(world.flush(0, file), Err(DiskError::Io));
        world.append(0, file, &pieces[5]);
        // The next flush says that all is well.
        assert_eq!(world.flush(0, file), Ok(()));
        assert_eq!(world.content(0, file), pieces.concat());
        world.disks[0].write_back(&mut world.store);
        world.check();
        world.disks[0].power_loss(&mut world.store, &CrashRules::strict());
        let (left, all, sure) = (world.content(0, file), pieces.concat(), pieces[..2].concat().len());
        let flushed = pieces[..5].concat().len();
        assert_eq!((left.len(), &left[..sure], &left[flushed..]), (all.len(), &all[..sure], &all[flushed..]));
        let lost_from = (sure..flushed).find(|i| left[*i..flushed].iter().all(|b| *b == 0)).unwrap_or(flushed);
        assert_eq!(left[..lost_from], all[..lost_from]);
        outcomes.insert(if lost_from == sure {
            0
        } else if lost_from == flushed {
            1
        } else {
            2
        });
        world.check();
    }
    assert_eq!(outcomes.len(), 3);
}

#[test]
fn what_a_failed_flush_lost_stays_lost_when_a_truncation_is_undone() {
    let (pieces, mut holes) = (pieces(4), 0);
    for seed in 0..20 {
        let mut world = World::new(1, seed);
        let file = world.settled(0, &pieces[..2]);
        pieces[2..].iter().for_each(|p| world.append(0, file, p));
        world.disks[0].add_error(ErrorRule::next(Ops::FLUSH, 1));
        assert_eq!(world.flush(0, file), Err(DiskError::Io));
        let lost = world.disks[0].look(&world.store).lost(file).to_vec();
        world.on(0, |d| d.truncate(file, 5)).unwrap();
        world.disks[0].power_loss(&mut world.store, &CrashRules::strict());
        let mut left = pieces.concat();
        lost.iter().for_each(|(from, to)| left[*from as usize..*to as usize].fill(0));
        assert_eq!(world.content(0, file), left);
        holes += lost.len();
        world.check();
    }
    assert!(holes > 0);
}

#[test]
fn a_stalled_device_ends_no_flush_until_it_is_released() {
    let mut world = World::new(1, 1);
    let file = world.settled(0, &pieces(1));
    let World { store, disks } = &mut world;
    let early = disks[0].begin_flush(store, file, FlushToken(1), Nanos(10));
    disks[0].stall();
    let late = disks[0].begin_flush(store, file, FlushToken(2), Nanos(20));
    assert!(early.at.is_some() && late.at.is_none() && disks[0].stalled());
    assert_eq!(disks[0].complete_flush(store, early.ticket), FlushEnd::Parked);
    let freed = disks[0].release(Nanos::from_secs(5));
    assert_eq!(freed.iter().map(|f| f.0).collect::<Vec<_>>(), [early.ticket, late.ticket]);
    assert!(freed.iter().all(|f| f.1 > Nanos::from_secs(5)));
    for (ticket, token) in [(early.ticket, 1), (late.ticket, 2)] {
        let end = disks[0].complete_flush(store, ticket);
        assert_eq!(end, FlushEnd::Done { token: FlushToken(token), result: Ok(()) });
    }
    assert_eq!(disks[0].complete_flush(store, early.ticket), FlushEnd::Unknown);
    world.check();
}

#[test]
fn calls_and_flushes_take_time_by_size() {
    let mut world = World::new(1, 1);
    let file = world.segment(0);
    let big = Bytes::from(vec![1; 8_000_000]);
    let World { store, disks } = &mut world;
    let mut view = disks[0].view(store);
    view.append(file, big).unwrap();
    let written = view.spent();
    assert!((Nanos(1_000_000)..Nanos(1_100_000)).contains(&written), "{written:?}"); // 8 MB at 8 GB/s
    view.read(file, 0, u64::MAX, &mut Vec::new()).unwrap();
    assert!(view.spent() >= Nanos(2 * written.0));
    let first = disks[0].begin_flush(store, file, FlushToken(1), Nanos::ZERO).at.unwrap();
    assert!((Nanos(4_100_000)..=Nanos(24_000_000)).contains(&first), "{first:?}"); // 8 MB at 2 GB/s, and the latency
                                                                                   // The device does one after the other.
    let second = disks[0].begin_flush(store, file, FlushToken(2), Nanos::ZERO).at.unwrap();
    assert!(second >= Nanos(8_100_000), "{second:?}");
}
