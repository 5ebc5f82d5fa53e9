//! Exponential backoff with jitter between attempts to connect.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

/// Upper bound of the first delay.
const FIRST: Duration = Duration::from_millis(200);
/// Upper bound of any delay: a server that was away for long has all its clients back within 30 s.
const LONGEST: Duration = Duration::from_secs(20);

/// The number of consecutive failures, and when they began.
#[derive(Clone, Debug, Default)]
pub struct Backoff {
    failed: u32,
    since: Option<Instant>,
}

impl Backoff {
    /// The next delay: between half and all of a time that doubles up to a limit.
    pub fn delay(&mut self) -> Duration {
        let longest = FIRST.saturating_mul(1 << self.failed.min(16)).min(LONGEST);
        self.failed = self.failed.saturating_add(1);
        self.since.get_or_insert_with(Instant::now);
        // Jitter from the standard library's own randomness, on which no result depends: sites must not reconnect in step.
        let jitter = RandomState::new().hash_one(self.failed) as f64 / u64::MAX as f64;
        longest.mul_f64(0.5 + 0.5 * jitter)
    }

    /// Starts again after a success.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// The server answers, but nothing has succeeded yet: delays go on growing.
    pub(crate) fn connected(&mut self) {
        self.since = None;
    }

    /// Whether all attempts failed for at least this long.
    pub(crate) fn gives_up(&self, after: Option<Duration>) -> bool {
        after.zip(self.since).is_some_and(|(after, since)| since.elapsed() >= after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_a_limit_stay_there_and_differ() {
        let mut backoff = Backoff::default();
        let delays: Vec<Duration> = (0..100).map(|_| backoff.delay()).collect();
        assert!(delays[0] <= FIRST && delays.iter().all(|delay| *delay <= LONGEST));
        assert!(delays[50..].iter().all(|delay| *delay >= LONGEST / 2));
        assert!(delays[50..].windows(2).any(|pair| pair[0] != pair[1]));
        backoff.reset();
        assert!(!backoff.gives_up(Some(Duration::ZERO)), "nothing failed since");
        assert!(backoff.delay() <= FIRST);
        assert!(backoff.gives_up(Some(Duration::ZERO)) && !backoff.gives_up(None));
        assert!(!backoff.gives_up(Some(Duration::from_secs(3600))));
        let failed = backoff.failed;
        backoff.connected();
        assert!(!backoff.gives_up(Some(Duration::ZERO)) && backoff.failed == failed);
    }
}
