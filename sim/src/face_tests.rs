use super::*;
use crate::pump::on_fresh_runtime;

/// Ticks at each of these instants; records what happened when.
struct Ticks {
    now: Nanos,
    due: Vec<u64>,
    told: Vec<(u64, &'static str)>,
}

impl Ticks {
    fn new(due: &[u64]) -> Self {
        Self { now: Nanos::ZERO, due: due.to_vec(), told: Vec::new() }
    }
}

impl Drive for Ticks {
    type Break = &'static str;
    fn now(&self) -> Nanos {
        self.now
    }
    fn next_time(&self) -> Option<Nanos> {
        self.due.first().copied().map(Nanos)
    }
    fn step(&mut self) -> ControlFlow<&'static str> {
        self.now = Nanos(self.due.remove(0));
        self.told.push((self.now.0, "tick"));
        if self.now.0 == 999 {
            return ControlFlow::Break("broke");
        }
        ControlFlow::Continue(())
    }
}

fn told(seed: u64) -> Vec<(u64, &'static str)> {
    on_fresh_runtime(seed, async || {
        let face = Face::new(Ticks::new(&[10, 20, 20, 21, 50_000_000]));
        let body = async {
            face.until(|t: &Ticks| t.now.0 >= 20).await;
            face.act(|t| t.told.push((t.now.0, "seen")));
            let (deeper, other) = (face.clone(), face.clone());
            let task = madsim::task::spawn_local(async move {
                deeper.act(|t| t.told.push((t.now.0, "task")));
            });
            other.until(|t: &Ticks| t.now.0 >= 21).await;
            assert!(task.await.is_ok());
        };
        let (broke, done) = face.run_beside(body).await;
        assert_eq!((broke, done), (ControlFlow::Continue(()), Some(())));
        face.look(|t| t.told.clone())
    })
}

#[test]
fn who_is_woken_acts_before_the_next_event_and_so_do_the_tasks_that_it_starts() {
    for seed in 0..20 {
        let expected =
            [(10, "tick"), (20, "tick"), (20, "tick"), (20, "seen"), (20, "task"), (21, "tick"), (50_000_000, "tick")];
        assert_eq!(told(seed), expected);
    }
}

#[test]
fn what_breaks_off_ends_the_body() {
    on_fresh_runtime(1, async || {
        let face = Face::new(Ticks::new(&[5, 999, 1_000]));
        let (broke, done) = face.run_beside(std::future::pending::<()>()).await;
        assert_eq!((broke, done), (ControlFlow::Break("broke"), None));
    });
}

#[test]
fn a_dropped_wait_is_forgotten() {
    on_fresh_runtime(1, async || {
        let face = Face::new(Ticks::new(&[5, 6, 7]));
        let body = async {
            {
                let mut wait = pin!(face.until(|_: &Ticks| false));
                poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx).is_pending())).await;
            }
            face.until(|t: &Ticks| t.now.0 >= 6).await;
            face.0.waits.borrow().len()
        };
        assert_eq!(face.run_beside(body).await.1, Some(0));
    });
}
