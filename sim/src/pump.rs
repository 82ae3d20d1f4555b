//! Drives a world under madsim: one task, and its virtual clock follows the world's.
//!
//! madsim gives the ban on threads, seeded entropy behind libc, and a runtime for the async tests that users write. Its
//! scheduler decides nothing about the world: while no async task looks on, the pump takes the world's events in slices of a
//! millisecond and sleeps in between (measured: a sleep to every deadline costs 40 %); for a task that looks on it sleeps
//! to every deadline exactly (see [`crate::face`]).

use crate::world::World;
use mirrorlab_model::ids::Nanos;
use std::ops::ControlFlow;
use std::time::Duration;

/// Events of so much simulated time are taken per wake of the pump.
const SLICE: Nanos = Nanos::from_millis(1);

/// Runs `job` on a fresh thread inside a madsim runtime of that seed, and returns what it returns.
///
/// A fresh thread per seed: a runtime made on a thread that made a hash map before would not be reproducible.
///
/// # Panics
/// When the job panics: its panic is passed on.
pub fn on_fresh_runtime<T: Send + 'static>(seed: u64, job: impl AsyncFnOnce() -> T + Send + 'static) -> T {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one thread that holds the whole simulation; it is joined at once"
    )]
    let thread = std::thread::spawn(move || {
        let runtime = madsim::runtime::Runtime::with_seed_and_config(seed, madsim::Config::default());
        runtime.block_on(async move { job().await })
    });
    match thread.join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// madsim's virtual clock, which stands in for the system's.
#[expect(clippy::disallowed_methods, reason = "inside the runtime this is virtual time")]
pub(crate) fn virtual_now() -> madsim::time::Instant {
    madsim::time::Instant::now()
}

/// What the pump drives: a world, or a world with whoever looks on.
pub trait Drive {
    /// Why it broke off.
    type Break;
    /// The present simulated time.
    fn now(&self) -> Nanos;
    /// When the next event is due.
    fn next_time(&self) -> Option<Nanos>;
    /// Takes the next event.
    fn step(&mut self) -> ControlFlow<Self::Break>;
}

impl Drive for World {
    type Break = std::convert::Infallible;
    fn now(&self) -> Nanos {
        World::now(self)
    }
    fn next_time(&self) -> Option<Nanos> {
        World::next_time(self)
    }
    fn step(&mut self) -> ControlFlow<Self::Break> {
        let _ = World::step(self);
        ControlFlow::Continue(())
    }
}

/// Takes events up to and including `until`, or until the driven breaks off.
pub async fn pump<D: Drive>(driven: &mut D, until: Nanos) -> ControlFlow<D::Break> {
    let (began, from) = (virtual_now(), driven.now());
    loop {
        let Some(next) = driven.next_time().filter(|t| *t <= until) else { return ControlFlow::Continue(()) };
        let slice = (next + SLICE).min(until);
        while driven.next_time().is_some_and(|t| t <= slice) {
            driven.step()?;
        }
        let behind = Duration::from_nanos(driven.now().since(from).0).saturating_sub(began.elapsed());
        madsim::time::sleep(behind).await;
    }
}
