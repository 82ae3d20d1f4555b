//! The async face: users' tests are async tasks that look at a world and act on it while the pump drives it.
//!
//! [`Face`] shares what is driven between the pump and the tasks; all run on one thread. While a task looks on, the pump
//! sleeps to the exact deadline of each event, so madsim's clock goes with the world's; and when an event ends a wait, the
//! pump rests until the tasks that were woken, and those that they wake or start, have nothing to do. So whoever waits for
//! something acts before the next event, in whatever order madsim polls.

use crate::pump::{pump, Drive};
use mirrorlab_model::ids::Nanos;
use std::cell::{Cell, RefCell};
use std::future::{poll_fn, Future};
use std::ops::ControlFlow;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// Rest of the pump for the tasks that it woke. Each poll of a task moves madsim's clock by 50 to 100 ns and may fire timers, so
/// this is room for 200 polls; the pump makes up for it where the world's events lie further apart.
const REST: Duration = Duration::from_micros(20);

/// What a task waits for.
struct Wait<D> {
    holds: Box<dyn Fn(&D) -> bool>,
    over: Rc<Cell<bool>>,
    waker: Waker,
}

struct Shared<D> {
    driven: RefCell<D>,
    waits: RefCell<Vec<Wait<D>>>,
}

/// A world that tasks look at and act on while it is driven. Clones share it.
pub struct Face<D>(Rc<Shared<D>>);

impl<D> Clone for Face<D> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<D: Drive> Face<D> {
    /// Shows what is driven to tasks.
    pub fn new(driven: D) -> Self {
        Self(Rc::new(Shared { driven: RefCell::new(driven), waits: RefCell::default() }))
    }

    /// Looks at it as it is now.
    pub fn look<R>(&self, look: impl FnOnce(&D) -> R) -> R {
        look(&self.0.driven.borrow())
    }

    /// Acts on it, between two of its events.
    pub fn act<R>(&self, act: impl FnOnce(&mut D) -> R) -> R {
        act(&mut self.0.driven.borrow_mut())
    }

    /// Waits until something holds: it is asked at once, and after every instant at which anything happened.
    pub async fn until(&self, holds: impl Fn(&D) -> bool + 'static) {
        let over = Rc::new(Cell::new(self.look(&holds)));
        let mut holds = Some(holds);
        poll_fn(|cx| {
            if over.get() {
                return Poll::Ready(());
            }
            match holds.take() {
                Some(holds) => {
                    let wait = Wait { holds: Box::new(holds), over: Rc::clone(&over), waker: cx.waker().clone() };
                    self.0.waits.borrow_mut().push(wait);
                }
                None => {
                    // Polled again by another waker, as when futures are joined.
                    let mut waits = self.0.waits.borrow_mut();
                    if let Some(wait) = waits.iter_mut().find(|w| Rc::ptr_eq(&w.over, &over)) {
                        wait.waker.clone_from(cx.waker());
                    }
                }
            }
            Poll::Pending
        })
        .await;
    }

    /// Wakes who waited for what holds now; false if nobody did. Waits whose task is gone are dropped.
    fn wake(&self) -> bool {
        let driven = self.0.driven.borrow();
        let mut woken = false;
        self.0.waits.borrow_mut().retain(|wait| {
            let is_awaited = Rc::strong_count(&wait.over) > 1;
            if is_awaited && !(wait.holds)(&driven) {
                return true;
            }
            if is_awaited {
                wait.over.set(true);
                wait.waker.wake_by_ref();
                woken = true;
            }
            false
        });
        woken
    }

    /// Takes all events of the next instant; false if nothing is due any more.
    fn instant(&self) -> ControlFlow<D::Break, bool> {
        let mut driven = self.0.driven.borrow_mut();
        let Some(next) = driven.next_time() else { return ControlFlow::Continue(false) };
        while driven.next_time() == Some(next) {
            driven.step()?;
        }
        ControlFlow::Continue(true)
    }

    async fn pump_exactly(&self) -> ControlFlow<D::Break> {
        let (began, from) = (crate::pump::virtual_now(), self.look(D::now));
        // Who looks on first may act before anything happens.
        let mut rest = true;
        loop {
            let Some(next) = self.look(D::next_time) else { return ControlFlow::Continue(()) };
            let due = began + Duration::from_nanos(next.since(from).0);
            sleep_exactly(due, rest).await;
            if !self.instant()? {
                return ControlFlow::Continue(());
            }
            rest = self.wake();
        }
    }

    /// Runs `body` beside the pump until what is driven breaks off: to exact deadlines until `body` has ended, in slices
    /// from then on. Gives what broke it off, and what `body` returned if it came to that.
    pub async fn run_beside<T>(&self, body: impl Future<Output = T>) -> (ControlFlow<D::Break>, Option<T>) {
        let mut done = None;
        let stopped = {
            let (mut body, mut exact) = (pin!(body), pin!(self.pump_exactly()));
            poll_fn(|cx| {
                if let Poll::Ready(value) = body.as_mut().poll(cx) {
                    done = Some(value);
                    return Poll::Ready(None);
                }
                exact.as_mut().poll(cx).map(Some)
            })
            .await
        };
        match stopped {
            Some(broke) => (broke, None),
            None => {
                let broke = pump(&mut &*self, Nanos(u64::MAX)).await;
                (broke, done)
            }
        }
    }
}

/// The rest of a run, when nobody looks on.
impl<D: Drive> Drive for &Face<D> {
    type Break = D::Break;
    fn now(&self) -> Nanos {
        self.look(D::now)
    }
    fn next_time(&self) -> Option<Nanos> {
        self.look(D::next_time)
    }
    fn step(&mut self) -> ControlFlow<D::Break> {
        self.act(D::step)
    }
}

/// Sleeps to a deadline as it is: madsim's own sleep rounds up to a millisecond. With `rest` it sleeps at least [`REST`].
async fn sleep_exactly(due: madsim::time::Instant, rest: bool) {
    let now = crate::pump::virtual_now();
    let due = if rest { due.max(now + REST) } else { due };
    if due > now {
        let mut sleep = pin!(madsim::time::sleep(Duration::ZERO));
        sleep.as_mut().reset(due);
        sleep.await;
    }
}

#[cfg(test)]
#[path = "face_tests.rs"]
mod tests;
