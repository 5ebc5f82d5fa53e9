//! Limits the number of concurrent uploads: two fast ones, and a number of slow ones.
//!
//! Uploads over fast connections are read two at a time: more would not finish sooner, and each costs memory. An upload
//! that takes longer than a few seconds gives its fast permit to the next one and continues, so that nobody waits for
//! it.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

/// Maximum number of concurrent fast uploads.
const FAST: usize = 2;
/// Time after which an upload counts as slow.
const SLOW_AFTER: Duration = Duration::from_secs(3);

/// Permits for uploads.
pub(crate) struct UploadLimit {
    all: Arc<Semaphore>,
    fast: Arc<Semaphore>,
    slow_after: Duration,
}

/// Permission to upload, until it is dropped.
pub(crate) struct UploadPermit {
    _permit: OwnedSemaphorePermit,
    /// The task that holds the fast permit until the upload counts as slow.
    fast: JoinHandle<()>,
}

impl Drop for UploadPermit {
    fn drop(&mut self) {
        self.fast.abort();
    }
}

impl UploadLimit {
    /// At most this many concurrent uploads, fast and slow together.
    pub(crate) fn new(uploads: usize) -> Self {
        Self::slow_after(SLOW_AFTER, uploads)
    }

    fn slow_after(slow_after: Duration, uploads: usize) -> Self {
        let all = Semaphore::new(uploads.clamp(1, Semaphore::MAX_PERMITS));
        Self { all: Arc::new(all), fast: Arc::new(Semaphore::new(FAST)), slow_after }
    }

    /// Waits for a permit.
    pub(crate) async fn acquire(&self) -> Option<UploadPermit> {
        let permit = Arc::clone(&self.all).acquire_owned().await.ok()?;
        let fast = Arc::clone(&self.fast).acquire_owned().await.ok()?;
        let slow_after = self.slow_after;
        let fast = tokio::spawn(async move {
            tokio::time::sleep(slow_after).await;
            drop(fast);
        });
        Some(UploadPermit { _permit: permit, fast })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    /// Whether there is a permit right now.
    fn free(limit: &UploadLimit) -> bool {
        pin!(limit.acquire()).as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[tokio::test]
    async fn two_uploads_are_read_at_a_time_and_a_third_when_one_is_done() {
        let limit = UploadLimit::slow_after(Duration::from_secs(3600), 32);
        let (one, _two) = (limit.acquire().await, limit.acquire().await);
        assert!(!free(&limit));
        drop(one);
        let _three = limit.acquire().await;
        assert!(!free(&limit));
    }

    #[tokio::test]
    async fn slow_uploads_delay_nobody_until_there_are_too_many() {
        let limit = UploadLimit::slow_after(Duration::ZERO, 5);
        let mut permits = Vec::new();
        for _ in 0..5 {
            permits.push(limit.acquire().await);
        }
        assert!(!free(&limit));
        permits.pop();
        limit.acquire().await;
    }
}
