//! A clock that moves when an operation moves it. While the thread that drives the rounds would wait, operations are
//! carried out on the same thread, so that a whole federation is one deterministic program.

use crate::fault_schedules::world::operate;
use crate::federation::clock::Clock;
use crate::federation::phase::Inner;
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

thread_local! {
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static NOTIFIED: Cell<bool> = const { Cell::new(false) };
}

/// The clock of a schedule.
pub(super) struct SimulatedClock {
    start: Instant,
}

impl SimulatedClock {
    /// A clock that shows the schedule's time.
    pub(super) fn new() -> Self {
        Self { start: Instant::now() }
    }
}

/// Time since the start of the schedule.
pub(super) fn now() -> Duration {
    NOW.get()
}

/// Moves the clock.
pub(super) fn set(now: Duration) {
    NOW.set(now);
}

impl Clock for SimulatedClock {
    fn now(&self) -> Instant {
        self.start + now()
    }

    fn wait<'a>(
        &self,
        lock: &'a Mutex<Inner>,
        inner: MutexGuard<'a, Inner>,
        most: Duration,
    ) -> MutexGuard<'a, Inner> {
        drop(inner);
        // As with a condition variable, who is not notified does not look.
        NOTIFIED.set(false);
        let limit = now().saturating_add(most);
        while !NOTIFIED.get() && now() < limit {
            operate(Some(limit));
        }
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self) {
        NOTIFIED.set(true);
    }
}
