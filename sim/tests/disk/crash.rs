//! What a crash leaves: nothing lost by a kill; by a power loss what was not flushed, or part of it, bytes and names apart.

use super::{partition, pieces, World};
use bytes::Bytes;
use mirrorlab_model::ids::Nanos;
use mirrorlab_model::ports::{DirName, Disk, FileName, FlushToken};
use mirrorlab_sim::disk::{CrashRules, FlushEnd};
use std::collections::BTreeSet;

fn only(change: impl FnOnce(&mut CrashRules)) -> CrashRules {
    let mut rules = CrashRules { lost: 0, kept: 0, names: [0, 1, 0], ..CrashRules::strict() };
    change(&mut rules);
    rules
}

#[test]
fn a_kill_loses_nothing() {
    let mut world = World::new(1, 1);
    let file = world.segment(0);
    world.append(0, file, &pieces(1)[0]);
    let start = world.disks[0].begin_flush(&mut world.store, file, FlushToken(1), Nanos::ZERO);
    world.disks[0].kill(&mut world.store);
    assert_eq!(world.content(0, file), pieces(1)[0]);
    assert_eq!(world.disks[0].complete_flush(&mut world.store, start.ticket), FlushEnd::Unknown);
    assert_eq!(world.disks[0].look(&world.store).durable(file), 0);
    world.check();
}

#[test]
fn a_flush_covers_what_was_there_when_it_was_asked_for() {
    let mut world = World::new(1, 1);
    let pieces = pieces(3);
    let file = world.settled(0, &pieces[..1]);
    world.append(0, file, &pieces[1]);
    let start = world.disks[0].begin_flush(&mut world.store, file, FlushToken(1), Nanos(5));
    assert!(start.at.unwrap() >= Nanos(5) + world.disks[0].model().flush_latency);
    world.append(0, file, &pieces[2]);
    assert_eq!(world.disks[0].look(&world.store).durable(file), pieces[0].len() as u64);
    world.disks[0].complete_flush(&mut world.store, start.ticket);
    world.disks[0].power_loss(&mut world.store, &CrashRules::strict());
    assert_eq!(world.content(0, file), pieces[..2].concat());
    world.check();
}

#[test]
fn unflushed_bytes_are_lost_as_the_rules_say() {
    let pieces = pieces(6);
    let border = |n: usize| pieces[..n].concat().len();
    let after = |seed: u64, rules: &CrashRules| {
        let mut world = World::new(1, seed);
        let file = world.settled(0, &pieces[..2]);
        pieces[2..].iter().for_each(|p| world.append(0, file, p));
        world.disks[0].power_loss(&mut world.store, rules);
        world.check();
        let left = world.content(0, file);
        assert_eq!(left[..border(2)], pieces.concat()[..border(2)]);
        assert_eq!(world.disks[0].used(), left.len() as u64);
        assert_eq!(world.disks[0].look(&world.store).durable(file), left.len() as u64);
        left
    };
    let all = pieces.concat();
    let seen = |rules: &CrashRules| (0..60).map(|seed| after(seed, rules)).collect::<BTreeSet<_>>();
    assert_eq!(seen(&only(|r| r.lost = 1)), BTreeSet::from([all[..border(2)].to_vec()]));
    assert_eq!(seen(&only(|r| r.kept = 1)), BTreeSet::from([all.clone()]));
    let borders: BTreeSet<Vec<u8>> = (2..=6).map(|n| all[..border(n)].to_vec()).collect();
    assert_eq!(seen(&only(|r| r.border = 1)), borders);
    let torn = seen(&only(|r| r.torn = 1));
    assert!(torn.iter().all(|left| all.starts_with(left)));
    assert!(torn.iter().any(|left| !borders.contains(left)));
    let garbage = seen(&only(|r| r.garbage = 1));
    assert!(garbage.iter().all(|left| left.len() <= all.len()));
    assert!(garbage.iter().any(|left| !all.starts_with(left)));
    let spoilt = seen(&only(|r| r.spoilt = 1));
    assert!(spoilt.iter().all(|left| left.len() == all.len() && left[..border(5)] == all[..border(5)]));
    assert!(spoilt.iter().any(|left| *left != all));
    let holes = seen(&only(|r| r.hole = 1));
    assert!(holes.iter().all(|left| left.len() == all.len() && *left != all));
    assert_eq!(holes.len(), 4);
    // One seed, one history.
    let rules = CrashRules::default();
    assert_eq!(after(3, &rules), after(3, &rules));
    assert!(seen(&rules).len() > 8);
}

#[test]
fn a_truncation_that_was_not_flushed_may_be_undone() {
    let pieces = pieces(6);
    let mut left = BTreeSet::new();
    for seed in 0..30 {
        let mut world = World::new(1, seed);
        let file = world.settled(0, &pieces[..4]);
        let cut = pieces[..2].concat().len() as u64;
        world.on(0, |d| d.truncate(file, cut)).unwrap();
        world.append(0, file, &pieces[5]);
        world.check();
        world.disks[0].power_loss(&mut world.store, &CrashRules { kept: 1, lost: 0, ..CrashRules::default() });
        left.insert(world.content(0, file).len());
        world.check();
        // Flushed, it holds.
        let mut world = World::new(1, seed);
        let file = world.settled(0, &pieces[..4]);
        world.on(0, |d| d.truncate(file, cut)).unwrap();
        world.append(0, file, &pieces[5]);
        world.flush(0, file).unwrap();
        world.disks[0].power_loss(&mut world.store, &CrashRules::default());
        assert_eq!(world.content(0, file), [&pieces[..2].concat()[..], &pieces[5]].concat());
        world.check();
    }
    assert!(left.contains(&pieces[..4].concat().len()));
    assert!(left.contains(&(pieces[..2].concat().len() + pieces[5].len())));
}

#[test]
fn a_flush_overtaken_by_a_truncation_brings_back_what_it_covered() {
    let pieces = pieces(4);
    let mut world = World::new(1, 1);
    let file = world.settled(0, &pieces[..1]);
    world.append(0, file, &pieces[1]);
    let start = world.disks[0].begin_flush(&mut world.store, file, FlushToken(1), Nanos::ZERO);
    world.on(0, |d| d.truncate(file, 12)).unwrap();
    world.append(0, file, &pieces[2]);
    world.disks[0].complete_flush(&mut world.store, start.ticket);
    assert_eq!(world.disks[0].look(&world.store).durable(file), 12);
    world.check();
    world.disks[0].power_loss(&mut world.store, &CrashRules::strict());
    assert_eq!(world.content(0, file), pieces[..2].concat());
    world.check();
    // An earlier flush that ends after a later one adds nothing.
    let first = world.disks[0].begin_flush(&mut world.store, file, FlushToken(1), Nanos::ZERO);
    world.on(0, |d| d.truncate(file, 3)).unwrap();
    let second = world.disks[0].begin_flush(&mut world.store, file, FlushToken(2), Nanos::ZERO);
    world.disks[0].complete_flush(&mut world.store, second.ticket);
    world.disks[0].complete_flush(&mut world.store, first.ticket);
    world.disks[0].power_loss(&mut world.store, &CrashRules::strict());
    assert_eq!(world.content(0, file), pieces[0][..3]);
    world.check();
}

#[test]
fn a_new_name_is_durable_only_after_a_flush_of_its_directory() {
    let piece = &pieces(1)[0];
    let mut world = World::new(1, 1);
    let file = world.settled(0, &pieces(1));
    let rolled = world.file(0, partition(0), FileName::Segment(50));
    world.append(0, rolled, piece);
    world.flush(0, rolled).unwrap();
    // Flushed bytes under a name that was not: the whole segment is missing.
    let mut copy = world.clone();
    copy.disks[0].power_loss(&mut copy.store, &CrashRules::strict());
    copy.on(0, |d| {
        let dir = d.open_dir(partition(0), false).unwrap();
        assert_eq!(d.list(dir), [FileName::Segment(0)]);
        assert_eq!((d.len(rolled), d.len(file)), (0, piece.len() as u64));
    });
    copy.check();
    world.flush_dir(0, partition(0));
    world.disks[0].power_loss(&mut world.store, &CrashRules::strict());
    assert_eq!(world.content(0, rolled), piece[..]);
    world.check();
}

#[test]
fn a_rename_and_a_removal_come_back() {
    let mut world = World::new(1, 1);
    let write = |world: &mut World, text: &'static str| {
        world.on(0, |d: &mut dyn Disk| {
            let root = d.open_dir(DirName::Root, false).unwrap();
            let file = d.create(root, FileName::Temp(1)).unwrap();
            d.append(file, Bytes::from_static(text.as_bytes())).unwrap();
            d.rename(root, file, FileName::HighWatermarks).unwrap();
            file
        })
    };
    let read = |world: &mut World| {
        world.on(0, |d: &mut dyn Disk| {
            let root = d.open_dir(DirName::Root, false).unwrap();
            let files = d.list(root);
            let file = d.open(root, FileName::HighWatermarks).ok();
            (files, file.map(|f| super::read_all(d, f)))
        })
    };
    let old = write(&mut world, "old");
    world.flush(0, old).unwrap();
    world.flush_dir(0, DirName::Root);
    let new = write(&mut world, "new");
    world.flush(0, new).unwrap();
    let mut copy = world.clone();
    copy.disks[0].power_loss(&mut copy.store, &CrashRules::strict());
    assert_eq!(read(&mut copy), (vec![FileName::HighWatermarks], Some(b"old".to_vec())));
    copy.check();
    // A rename that was durable before its bytes were: an empty file where the old one was. It has no other cause.
    let mut copy = world.clone();
    let torn = write(&mut copy, "torn");
    copy.flush_dir(0, DirName::Root);
    copy.disks[0].power_loss(&mut copy.store, &CrashRules::strict());
    assert_eq!(read(&mut copy), (vec![FileName::HighWatermarks], Some(Vec::new())));
    assert_eq!(copy.disks[0].look(&copy.store).len(torn), 0);
    copy.check();
    // Removed without a flush: back. Removed with one: gone.
    world.flush_dir(0, DirName::Root);
    let remove = |d: &mut dyn Disk| {
        let root = d.open_dir(DirName::Root, false).unwrap();
        d.remove(root, FileName::HighWatermarks).unwrap();
    };
    world.on(0, remove);
    assert_eq!(world.disks[0].used(), 0);
    world.disks[0].power_loss(&mut world.store, &CrashRules::strict());
    assert_eq!(read(&mut world), (vec![FileName::HighWatermarks], Some(b"new".to_vec())));
    assert_eq!(world.disks[0].used(), 3);
    world.on(0, remove);
    world.flush_dir(0, DirName::Root);
    world.disks[0].power_loss(&mut world.store, &CrashRules::strict());
    assert_eq!(read(&mut world), (vec![], None));
    world.check();
}

#[test]
fn a_crash_keeps_a_prefix_of_a_directorys_changes() {
    let mut seen = BTreeSet::new();
    for seed in 0..80 {
        let mut world = World::new(1, seed);
        world.settled(0, &pieces(1));
        for n in 1..5 {
            world.file(0, partition(0), FileName::Segment(n));
        }
        world.disks[0].power_loss(&mut world.store, &CrashRules::default());
        let names = world.on(0, |d| {
            let dir = d.open_dir(partition(0), false).unwrap();
            d.list(dir)
        });
        assert_eq!(names, (0..names.len() as i64).map(FileName::Segment).collect::<Vec<_>>());
        seen.insert(names.len());
        world.check();
    }
    assert_eq!(seen, BTreeSet::from([1, 2, 3, 4, 5]));
}

#[test]
fn directories_are_names_in_the_root() {
    let mut world = World::new(1, 1);
    let file = world.segment(0);
    world.append(0, file, &pieces(1)[0]);
    world.flush(0, file).unwrap();
    world.flush_dir(0, partition(0));
    let mut copy = world.clone();
    let loss = copy.disks[0].power_loss(&mut copy.store, &CrashRules::strict());
    assert_eq!((loss.dirs, copy.disks[0].used(), copy.store.lineages()), (1, 0, 0));
    assert_eq!(copy.on(0, |d| d.list_dirs()), [DirName::Root]);
    copy.check();
    world.flush_dir(0, DirName::Root);
    // Removed and made again, both unflushed: the old one returns, with what was in it.
    world.on(0, |d| {
        let dir = d.open_dir(partition(0), false).unwrap();
        d.remove_dir(dir).unwrap();
    });
    world.segment(0);
    world.disks[0].power_loss(&mut world.store, &CrashRules::strict());
    assert_eq!(world.content(0, file), pieces(1)[0]);
    let listed = world.on(0, |d| {
        let dir = d.open_dir(partition(0), false).unwrap();
        d.open(dir, FileName::Segment(0))
    });
    assert_eq!(listed, Ok(file));
    world.check();
    // Flushed, it is gone and everything of it.
    world.on(0, |d| {
        let dir = d.open_dir(partition(0), false).unwrap();
        d.remove_dir(dir).unwrap();
    });
    world.flush_dir(0, DirName::Root);
    assert_eq!(world.store.lineages(), 0);
    world.disks[0].power_loss(&mut world.store, &CrashRules::default());
    assert_eq!(world.on(0, |d| d.list_dirs()), [DirName::Root]);
    world.check();
}

#[test]
fn write_back_makes_durable_what_the_kernel_would_have_written() {
    let mut world = World::new(1, 1);
    let file = world.segment(0);
    pieces(5).iter().for_each(|p| world.append(0, file, p));
    world.on(0, |d| d.truncate(file, 12)).unwrap();
    world.disks[0].write_back(&mut world.store);
    assert_eq!(world.disks[0].look(&world.store).durable(file), 12);
    let loss = world.disks[0].power_loss(&mut world.store, &CrashRules::strict());
    assert_eq!(loss, Default::default());
    assert_eq!(world.content(0, file), pieces(5).concat()[..12]);
    world.check();
}

#[test]
fn one_file_more_moves_no_draw_of_another() {
    let left = |extra: bool| {
        let mut world = World::new(1, 9);
        if extra {
            let more = world.file(0, partition(3), FileName::Segment(0));
            world.append(0, more, &pieces(4)[3]);
        }
        let file = world.settled(0, &pieces(1));
        pieces(40)[1..].iter().for_each(|p| world.append(0, file, p));
        world.disks[0].power_loss(&mut world.store, &CrashRules::default());
        world.content(0, file)
    };
    assert_eq!(left(false), left(true));
}

#[test]
fn a_checkpoint_replaced_for_ever_costs_no_more_each_time() {
    let mut world = World::new(1, 1);
    let replace = |world: &mut World, n: u64| {
        world.on(0, |d: &mut dyn Disk| {
            let root = d.open_dir(DirName::Root, false).unwrap();
            let file = d.create(root, FileName::Temp(1)).unwrap();
            d.append(file, Bytes::from(n.to_string())).unwrap();
            d.rename(root, file, FileName::HighWatermarks).unwrap();
        });
    };
    (0..1_000).for_each(|n| replace(&mut world, n));
    let early = world.disks[0].heap_bytes() + world.store.heap_bytes();
    (1_000..10_000).for_each(|n| replace(&mut world, n));
    let late = world.disks[0].heap_bytes() + world.store.heap_bytes();
    assert!(late < early + 100_000, "{early} {late}"); // ids are never reused: four bytes each, until write-back
    world.check();
    // Nothing was flushed, but what is old is durable: the kernel writes back in the end.
    world.disks[0].power_loss(&mut world.store, &CrashRules::strict());
    let there = world.on(0, |d| {
        let root = d.open_dir(DirName::Root, false).unwrap();
        d.open(root, FileName::HighWatermarks)
    });
    assert!(there.is_ok());
    world.check();
}

#[test]
fn a_new_directorys_files_come_in_the_order_they_were_created() {
    let created = [9, 1, 5, 3];
    let mut seen = BTreeSet::new();
    for seed in 0..80 {
        let mut world = World::new(1, seed);
        created.iter().for_each(|n| assert!(world.file(0, partition(0), FileName::Segment(*n)).0 < 9));
        world.flush_dir(0, DirName::Root);
        world.disks[0].power_loss(&mut world.store, &CrashRules::default());
        let names = world.on(0, |d| {
            let dir = d.open_dir(partition(0), false).unwrap();
            d.list(dir)
        });
        let mut first = created[..names.len()].to_vec();
        first.sort_unstable();
        assert_eq!(names, first.into_iter().map(FileName::Segment).collect::<Vec<_>>());
        seen.insert(names.len());
        world.check();
    }
    assert_eq!(seen, (0..=4).collect());
}

#[test]
fn a_directory_made_and_removed_between_flushes_never_was() {
    let mut world = World::new(1, 1);
    world.segment(0);
    world.on(0, |d| {
        let dir = d.open_dir(partition(0), false).unwrap();
        d.remove_dir(dir).unwrap();
    });
    world.disks[0].power_loss(&mut world.store, &CrashRules::strict());
    assert_eq!(world.on(0, |d| d.list_dirs()), [DirName::Root]);
    world.check();
}
