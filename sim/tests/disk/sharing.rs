//! Equal content is stored once, and a world's clone costs and disturbs nothing.

use super::{partition, pieces, World};
use bytes::Bytes;
use mirrorlab_model::ports::FileName;
use mirrorlab_sim::disk::{equal_prefix, shared_prefix, CrashRules};

#[test]
fn replicas_share_one_lineage_and_forks_are_registered() {
    let mut world = World::new(6, 1);
    let pieces = pieces(700);
    let files: Vec<_> = (0..6).map(|n| world.segment(n)).collect();
    for piece in &pieces {
        (0..6).for_each(|n| world.append(n, files[n], piece));
    }
    assert_eq!(world.store.lineages(), 1);
    // All are cut at one place, inside a chunk, and go on alike: one fork more.
    let cut = world.disks[0].look(&world.store).end(files[0], 650);
    let other = Bytes::from_static(b"after the election");
    for (n, file) in files[..5].iter().enumerate() {
        world.on(n, |d| d.truncate(*file, cut)).unwrap();
        world.append(n, *file, &other);
        world.append(n, *file, &pieces[0]);
    }
    assert_eq!(world.store.lineages(), 2);
    let look = |n: usize| world.disks[n].look(&world.store);
    assert_eq!(shared_prefix(look(0), files[0], look(1), files[1]), 652);
    assert_eq!(shared_prefix(look(0), files[0], look(5), files[5]), 650);
    assert_eq!(equal_prefix(look(0), files[0], look(5), files[5]), 650);
    assert_eq!(look(0).sum(files[0], 650), look(5).sum(files[5], 650));
    assert_ne!(look(0).sum(files[0], 651), look(5).sum(files[5], 651));
    let range = |n: usize, a, b| look(n).sum(files[n], b).wrapping_sub(look(n).sum(files[n], a));
    assert_eq!(range(0, 100, 650), range(5, 100, 650));
    assert_eq!(look(2).append(files[2], 650), other);
    assert_eq!(look(2).append_at(files[2], cut), Some(650));
    assert_eq!(look(2).append_at(files[2], cut - 1), Some(649));
    assert_eq!(look(2).append_at(files[2], look(2).len(files[2])), None);
    world.check();
    // The last user of the first lineage leaves: its fork still holds it. Then all leave.
    world.disks[5].wipe(&mut world.store);
    world.check();
    (0..5).for_each(|n| world.disks[n].wipe(&mut world.store));
    assert_eq!(world.store.lineages(), 0);
    world.check();
}

#[test]
fn equal_bytes_elsewhere_in_memory_share_what_follows_the_first() {
    let mut world = World::new(2, 1);
    let (a, b) = (world.segment(0), world.segment(1));
    let first = Bytes::from_static(b"first");
    for (node, file) in [(0, a), (1, b)] {
        world.append(node, file, &first);
        world.append(node, file, &Bytes::copy_from_slice(b"copied"));
        world.append(node, file, &first);
    }
    assert_eq!(world.store.lineages(), 1);
    // With equal first bytes elsewhere the lineages differ, and the sums tell that the content does not.
    let other = world.file(0, partition(4), FileName::Segment(0));
    for bytes in ["first", "copied", "other"] {
        world.append(0, other, &Bytes::copy_from_slice(bytes.as_bytes()));
    }
    let look = |n: usize| world.disks[n].look(&world.store);
    assert_eq!(shared_prefix(look(0), other, look(1), b), 0);
    assert_eq!(equal_prefix(look(0), other, look(1), b), 2);
    world.check();
}

#[test]
fn checkpoints_cost_no_lineage() {
    let mut world = World::new(1, 1);
    for n in 0..50 {
        let file = world.file(0, partition(n), FileName::EpochCheckpoint);
        world.append(0, file, &Bytes::from(format!("epoch {n}")));
        assert_eq!(world.disks[0].look(&world.store).appends(file), 1);
        assert_eq!(world.disks[0].look(&world.store).lineage(file), None);
    }
    assert_eq!(world.store.lineages(), 0);
    world.check();
}

#[test]
fn bit_rot_stays_on_one_disk() {
    let mut world = World::new(2, 1);
    let pieces = pieces(400);
    let (a, b) = (world.settled(0, &pieces), world.settled(1, &pieces));
    let good = world.content(0, a);
    assert!(world.disks[0].rot(&mut world.store, a, 1_000, 3));
    let mut rotten = good.clone();
    rotten[1_000] ^= 8;
    assert_eq!(world.content(0, a), rotten);
    assert_eq!(world.content(1, b), good);
    let look = |n: usize| world.disks[n].look(&world.store);
    assert_eq!(look(0).appends(a), 400);
    let hit = look(0).append_at(a, 1_000).unwrap();
    assert_eq!(shared_prefix(look(0), a, look(1), b), hit);
    assert_eq!(
        look(0).sum(a, 400).wrapping_sub(look(0).sum(a, hit + 1)),
        look(1).sum(b, 400).wrapping_sub(look(1).sum(b, hit + 1))
    );
    world.check();
    // What is not durable does not rot; a drawn place is durable.
    world.append(0, a, &pieces[0]);
    assert!(!world.disks[0].rot(&mut world.store, a, good.len() as u64, 0));
    let (file, pos) = world.disks[1].rot_somewhere(&mut world.store, None, 0).unwrap();
    assert!(file == b && pos < good.len() as u64);
    assert_ne!(world.content(1, b), good);
    world.check();
}

/// A checker sees what was written, as long as the rot stands there: until the file is cut below it, and again when a power loss
/// undoes that. What is copied from the rotten file is what it is.
#[test]
fn what_rotted_is_remembered_by_its_own_disk() {
    let mut world = World::new(2, 1);
    let pieces = pieces(40);
    let (a, b) = (world.settled(0, &pieces), world.settled(1, &pieces));
    let look = |world: &World, n: usize, file| {
        let look = world.disks[n].look(&world.store);
        let rotten: Vec<u32> = look.rotten(file).iter().map(|(at, _)| *at).collect();
        (rotten, look.sound_sum(file, 40), look.sound_bytes(file, 30).to_vec())
    };
    let whole = world.disks[0].look(&world.store).sum(a, 40);
    let pos = world.disks[0].look(&world.store).end(a, 30);
    assert!(world.disks[0].rot(&mut world.store, a, pos, 1));
    assert_eq!(look(&world, 0, a), (vec![30], whole, pieces[30].to_vec()));
    assert_ne!(world.disks[0].look(&world.store).sum(a, 40), whole);
    assert_eq!(look(&world, 1, b).0, Vec::<u32>::new());
    // The same bit once more; then another one of the same piece.
    assert!(world.disks[0].rot(&mut world.store, a, pos, 1));
    assert_eq!(look(&world, 0, a).0, Vec::<u32>::new());
    assert!(world.disks[0].rot(&mut world.store, a, pos, 2));
    // Rotten bytes that are written elsewhere are no rot there.
    let copy = world.disks[0].look(&world.store).append(a, 30);
    world.append(1, b, &copy);
    assert_eq!(world.disks[1].look(&world.store).sound_bytes(b, 40), &copy[..]);
    // Cut off, and back.
    world.on(0, |d| d.truncate(a, pos)).unwrap();
    assert_eq!(look(&world, 0, a).0, Vec::<u32>::new());
    world.disks[0].power_loss(&mut world.store, &CrashRules::strict());
    assert_eq!(look(&world, 0, a), (vec![30], whole, pieces[30].to_vec()));
    // Cut in its middle, by who believes a length that rotted.
    world.on(0, |d| d.truncate(a, pos + pieces[30].len() as u64 - 1)).unwrap();
    assert_eq!(world.disks[0].look(&world.store).rotten(a).len(), 1);
    assert_eq!(look(&world, 0, a).2, pieces[30]);
    world.check();
}

#[test]
fn a_clone_goes_its_own_way() {
    let mut world = World::new(2, 1);
    let pieces = pieces(300);
    let (a, b) = (world.segment(0), world.segment(1));
    for piece in &pieces[..290] {
        world.append(0, a, piece);
        world.append(1, b, piece);
    }
    let before = world.content(0, a);
    let mut copy = world.clone();
    for piece in &pieces[290..] {
        copy.append(0, a, piece);
    }
    copy.on(1, |d| d.truncate(b, 15)).unwrap();
    assert_eq!((world.content(0, a), world.content(1, b)), (before.clone(), before));
    assert_eq!(copy.content(0, a), pieces.concat());
    world.check();
    copy.check();
}
