//! One seed, one history: runs a plan twice side by side and compares after every event.

use crate::run::{Job, Run};
use mirrorlab_model::ids::Nanos;
use mirrorlab_model::trace::TraceEvent;

/// Where two runs of one plan parted.
#[derive(Clone, Debug, PartialEq)]
pub struct Parting {
    /// Number of the event.
    pub step: u64,
    /// Simulated time of it in both runs.
    pub at: [Nanos; 2],
    /// What it traced in both runs.
    pub traced: [Vec<TraceEvent>; 2],
}

/// Runs a plan twice, event by event, until both end or they part.
///
/// # Errors
/// The first event after which the hashes differ.
///
/// # Panics
/// Never, unless the model takes a config entry once and not twice.
pub fn same_twice(job: &Job) -> Result<u64, Box<Parting>> {
    let mut runs = [1, 2].map(|_| Run::new(job.clone()));
    let [Ok(one), Ok(two)] = &mut runs else { return Ok(0) };
    loop {
        let on = [one.single_step(), two.single_step()];
        let hashes = [one.trace_hash(), two.trace_hash()];
        if hashes[0] != hashes[1] || on[0] != on[1] {
            let worlds = [&one.lab().world, &two.lab().world];
            return Err(Box::new(Parting {
                step: worlds[0].counts().events,
                at: worlds.map(|w| w.now()),
                traced: worlds.map(|w| w.trace().to_vec()),
            }));
        }
        if !on[0] {
            return Ok(hashes[0]);
        }
    }
}
