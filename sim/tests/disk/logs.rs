//! A replica's log on the simulated disk: a crash inside an append, and a power loss right after a flush.

use super::{partition, World};
use bytes::{Bytes, BytesMut};
use mirrorlab_model::guards::Guards;
use mirrorlab_model::ids::{LeaderEpoch, Nanos, Now, Offset, ProducerEpoch, ProducerId};
use mirrorlab_model::log::{FlushUpto, FlushWant, LoadFrom, Log, LogPolicy};
use mirrorlab_model::ports::{DirName, FlushToken};
use mirrorlab_model::record::{BatchBuilder, BatchMeta};
use mirrorlab_model::trace::Origin;
use mirrorlab_sim::disk::CrashRules;

const NOW: Now = Now { mono: Nanos(1), wall_ms: 1 };

/// Every batch but the first of a segment closes it.
fn tiny() -> LogPolicy {
    LogPolicy { segment_bytes: 100, ..LogPolicy::default() }
}

fn batch(sequence: i32) -> Bytes {
    let meta = BatchMeta {
        producer: ProducerId(7),
        producer_epoch: ProducerEpoch(0),
        base_sequence: sequence,
        ..BatchMeta::default()
    };
    let mut batch = BatchBuilder::new(meta);
    batch.push(0, None, Some(&[1; 20]));
    batch.finish()
}

fn create(world: &mut World) -> Log {
    world.on(0, |disk| {
        let dir = disk.open_dir(partition(0), true).unwrap();
        Log::create(disk, dir, Offset::ZERO).unwrap()
    })
}

fn append(world: &mut World, log: &mut Log, sequence: i32, epoch: i32) {
    let guards = &mut Guards::default();
    world.on(0, |disk| {
        let batch = batch(sequence);
        let (arena, epoch) = (&mut BytesMut::new(), LeaderEpoch(epoch));
        log.append_as_leader(disk, guards, &tiny(), &batch, arena, epoch, Origin::Client, NOW).unwrap()
    });
}

fn load(world: &mut World, recovery_point: Offset) -> Log {
    let guards = &mut Guards::default();
    world.on(0, |disk| {
        let dir = disk.open_dir(partition(0), false).unwrap();
        let from = LoadFrom { recovery_point, ..LoadFrom::default() };
        Log::load(disk, dir, from, guards, &tiny()).unwrap().0
    })
}

/// An append that rolls: a producer snapshot is written under a temporary name and renamed, a segment is created, and only
/// then comes the batch. A crash after any of these calls leaves a log that holds all or nothing of the batch, and goes on.
#[test]
fn a_crash_after_any_call_of_an_append_that_rolls_leaves_a_log_that_goes_on() {
    let mut before = World::new(1, 1);
    let mut log = create(&mut before);
    for sequence in 0..3 {
        append(&mut before, &mut log, sequence, sequence);
    }
    let mut counted = before.clone();
    counted.disks[0].begin_journal();
    append(&mut counted, &mut log.clone(), 3, 3);
    let calls = counted.disks[0].journaled();
    assert!(calls >= 4, "snapshot, its name, segment, batch; {calls} calls");
    for power in [false, true] {
        for kept in 0..=calls {
            let mut world = before.clone();
            world.disks[0].begin_journal();
            append(&mut world, &mut log.clone(), 3, 3);
            let World { store, disks } = &mut world;
            disks[0].end_journal(store, kept);
            if power {
                // What the crash leaves of it is drawn; here all of it is.
                disks[0].write_back(store);
                disks[0].power_loss(store, &CrashRules::default());
            } else {
                disks[0].kill(store);
            }
            let mut after = load(&mut world, Offset::ZERO);
            assert_eq!(after.end(), Offset(if kept == calls { 4 } else { 3 }), "{kept} of {calls}, power {power}");
            let next = after.end().0 as i32;
            append(&mut world, &mut after, next, next);
            assert_eq!((after.end(), after.latest_epoch()), (Offset(i64::from(next) + 1), LeaderEpoch(next)));
            world.check();
        }
    }
}

/// A partition comes to a broker: its directory is made; its log is written, flushed and called durable; then power is lost.
/// The directory's name is an entry of the root, and has to be flushed there: else all of the log is gone.
#[test]
fn a_flushed_log_has_a_directory_that_a_power_loss_does_not_take() {
    let mut world = World::new(1, 1);
    let mut log = create(&mut world);
    append(&mut world, &mut log, 0, 0);
    let (guards, mut wants) = (&mut Guards::default(), Vec::new());
    let target = world.on(0, |disk| log.plan_flush(disk, guards, FlushUpto::End, &mut wants)).unwrap().unwrap();
    assert!(wants.contains(&FlushWant::Root));
    let root = world.on(0, |disk| disk.open_dir(DirName::Root, false)).unwrap();
    for want in &wants {
        let World { store, disks } = &mut world;
        let start = match *want {
            FlushWant::File(file) => disks[0].begin_flush(store, file, FlushToken(1), Nanos::ZERO),
            FlushWant::Dir(dir) => disks[0].begin_flush_dir(dir, FlushToken(1), Nanos::ZERO),
            FlushWant::Root => disks[0].begin_flush_dir(root, FlushToken(1), Nanos::ZERO),
        };
        disks[0].complete_flush(store, start.ticket);
    }
    assert!(log.on_flushed(guards, target));
    let World { store, disks } = &mut world;
    disks[0].power_loss(store, &CrashRules::strict());
    assert_eq!(load(&mut world, Offset(1)).end(), Offset(1));
    // A later flush of the same log asks for what is new, not for the root again.
    append(&mut world, &mut log, 1, 0);
    wants.clear();
    world.on(0, |disk| log.plan_flush(disk, guards, FlushUpto::End, &mut wants)).unwrap();
    assert!(!wants.contains(&FlushWant::Root));
}
