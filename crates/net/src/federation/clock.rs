//! Time, and how the thread that drives the rounds waits: it blocks nowhere else. The fault schedules put a clock in its
//! place that moves when they move it, and carry out the requests of clients while the thread would wait.

use crate::federation::phase::Inner;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The coordinator's clock.
pub(crate) trait Clock: Send + Sync {
    /// The time.
    fn now(&self) -> Instant;

    /// Releases the lock, and takes it again when somebody notifies or this much time has passed; perhaps earlier.
    fn wait<'a>(
        &self,
        lock: &'a Mutex<Inner>,
        inner: MutexGuard<'a, Inner>,
        most: Duration,
    ) -> MutexGuard<'a, Inner>;

    /// Wakes the thread that waits.
    fn notify(&self);
}

/// The clock of the system.
#[derive(Debug, Default)]
pub(crate) struct SystemClock {
    notified: Condvar,
}

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wait<'a>(
        &self,
        _: &'a Mutex<Inner>,
        inner: MutexGuard<'a, Inner>,
        most: Duration,
    ) -> MutexGuard<'a, Inner> {
        self.notified.wait_timeout(inner, most).unwrap_or_else(PoisonError::into_inner).0
    }

    fn notify(&self) {
        self.notified.notify_all();
    }
}
