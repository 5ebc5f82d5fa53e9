//! How many uploads are read at a time: two that are quick, and slow ones beside them.
//!
//! Uploads over a fast line come one after the other, two at a time: more would not come sooner, and each costs memory.
//! One over a slow line leaves the quick lane after a moment and goes on beside it, so that nobody waits for it.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

/// Uploads that are read at a time unless some are slow.
const QUICK: usize = 2;
/// How long an upload counts as quick.
const MOMENT: Duration = Duration::from_secs(3);

pub(crate) struct Lanes {
    all: Arc<Semaphore>,
    quick: Arc<Semaphore>,
    /// How long an upload counts as quick.
    moment: Duration,
}

/// A place in the lanes, until it is dropped.
pub(crate) struct Turn {
    _place: OwnedSemaphorePermit,
    /// Holds the quick place, for a moment.
    quick: JoinHandle<()>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.quick.abort();
    }
}

impl Lanes {
    /// Lanes for so many uploads, quick and slow.
    pub(crate) fn new(uploads: usize) -> Self {
        Self::slow_after(MOMENT, uploads)
    }

    fn slow_after(moment: Duration, uploads: usize) -> Self {
        let all = Semaphore::new(uploads.clamp(1, Semaphore::MAX_PERMITS));
        Self { all: Arc::new(all), quick: Arc::new(Semaphore::new(QUICK)), moment }
    }

    /// Waits for a place.
    pub(crate) async fn enter(&self) -> Option<Turn> {
        let place = Arc::clone(&self.all).acquire_owned().await.ok()?;
        let quick = Arc::clone(&self.quick).acquire_owned().await.ok()?;
        let moment = self.moment;
        let quick = tokio::spawn(async move {
            tokio::time::sleep(moment).await;
            drop(quick);
        });
        Some(Turn { _place: place, quick })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    /// Whether there is a place right now.
    fn free(lanes: &Lanes) -> bool {
        pin!(lanes.enter()).as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[tokio::test]
    async fn two_are_read_at_a_time_and_a_third_when_one_is_done() {
        let lanes = Lanes::slow_after(Duration::from_secs(3600), 32);
        let (one, _two) = (lanes.enter().await, lanes.enter().await);
        assert!(!free(&lanes));
        drop(one);
        let _three = lanes.enter().await;
        assert!(!free(&lanes));
    }

    #[tokio::test]
    async fn slow_ones_hold_up_nobody_until_there_are_too_many() {
        let lanes = Lanes::slow_after(Duration::ZERO, 5);
        let mut turns = Vec::new();
        for _ in 0..5 {
            turns.push(lanes.enter().await);
        }
        assert!(!free(&lanes));
        turns.pop();
        lanes.enter().await;
    }
}
