use super::*;
use proptest::prelude::*;

#[test]
fn a_clock_without_faults_shows_the_worlds_time() {
    let clock = Clock::default();
    let now = clock.now(Nanos(1_234_567_890));
    assert_eq!(now, Now { mono: Nanos(1_234_567_890), wall_ms: WALL_START_MS + 1_234 });
    assert_eq!(clock.world_at(Nanos(77)), Nanos(77));
}

#[test]
fn drift_is_gained_per_second_and_jumps_move_the_wall_only() {
    let mut clock = Clock::new(-50, 100_000); // 100 ppm fast
    assert_eq!(clock.mono(Nanos::from_secs(10)), Nanos(10_001_000_000));
    let before = clock.now(Nanos::from_secs(10));
    clock.jump(-3_600_000);
    let after = clock.now(Nanos::from_secs(10));
    assert_eq!((after.mono, after.wall_ms), (before.mono, before.wall_ms - 3_600_000));
    clock.set_drift(Nanos::from_secs(10), 0);
    assert_eq!(clock.mono(Nanos::from_secs(11)), Nanos(11_001_000_000));
}

#[test]
fn far_ends_do_not_overflow() {
    let mut clock = Clock::new(i64::MAX, i64::MAX);
    assert_eq!(clock.drift_ppb(), MAX_DRIFT_PPB);
    assert_eq!(clock.mono(Nanos(u64::MAX)), Nanos(u64::MAX));
    let _ = (clock.now(Nanos(u64::MAX)), clock.world_at(Nanos(u64::MAX)));
    clock.jump(i64::MIN);
    clock.set_drift(Nanos(u64::MAX), i64::MIN);
    let _ = (clock.now(Nanos(u64::MAX)), clock.world_at(Nanos(u64::MAX)));
}

fn changed() -> impl Strategy<Value = (Clock, u64)> {
    let changes = prop::collection::vec((0u64..10_000_000_000, -MAX_DRIFT_PPB..=MAX_DRIFT_PPB, -9_000i64..9_000), 0..6);
    (-100_000i64..100_000, -200_000i64..200_000, changes).prop_map(|(offset, drift, changes)| {
        let mut clock = Clock::new(offset, drift);
        let mut world = 0;
        for (later, drift, jump) in changes {
            world += later;
            clock.set_drift(Nanos(world), drift);
            clock.jump(jump);
        }
        (clock, world)
    })
}

proptest! {
    #[test]
    fn a_timer_never_fires_early_and_never_late((clock, world) in changed(), ahead in 0u64..1u64 << 50) {
        let deadline = Nanos(clock.mono(Nanos(world)).0 + ahead);
        let fires = clock.world_at(deadline);
        prop_assert!(clock.mono(fires) >= deadline);
        if ahead > 0 {
            prop_assert!(fires > Nanos(world));
            prop_assert!(clock.mono(Nanos(fires.0 - 1)) < deadline);
        }
    }

    #[test]
    fn the_monotonic_reading_never_goes_back((clock, world) in changed(), a in 0u64..1 << 40, b in 0u64..1 << 20) {
        prop_assert!(clock.mono(Nanos(world + a)) <= clock.mono(Nanos(world + a + b)));
    }

    #[test]
    fn a_change_of_drift_is_continuous((mut clock, world) in changed(), a in 0u64..1 << 40, ppb in any::<i64>()) {
        let at = Nanos(world + a);
        let before = clock.now(at);
        clock.set_drift(at, ppb);
        prop_assert_eq!(clock.now(at), before);
        clock.set_drift(at, 0);
        prop_assert_eq!(clock.now(at), before);
    }
}
