//! How long to wait before the next attempt: longer each time, up to a limit, and never in step with others.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// The first wait, at most.
const FIRST: Duration = Duration::from_millis(200);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(30);

/// Attempts that failed one after the other.
#[derive(Clone, Debug, Default)]
pub struct Backoff {
    failed: u32,
}

impl Backoff {
    /// The next wait: between half and all of a time that doubles up to a limit. It goes on for ever.
    pub fn wait(&mut self) -> Duration {
        let longest = FIRST.saturating_mul(1 << self.failed.min(16)).min(LONGEST);
        self.failed = self.failed.saturating_add(1);
        // Chance that no result depends on: the standard library's own, so that sites do not come back in step.
        let chance = RandomState::new().hash_one(self.failed) as f64 / u64::MAX as f64;
        longest.mul_f64(0.5 + 0.5 * chance)
    }

    /// An attempt succeeded.
    pub fn reset(&mut self) {
        self.failed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_stay_there_and_differ() {
        let mut backoff = Backoff::default();
        let waits: Vec<Duration> = (0..100).map(|_| backoff.wait()).collect();
        assert!(waits[0] <= FIRST && waits.iter().all(|wait| *wait <= LONGEST));
        assert!(waits[50..].iter().all(|wait| *wait >= LONGEST / 2));
        assert!(waits[50..].windows(2).any(|pair| pair[0] != pair[1]));
        backoff.reset();
        assert!(backoff.wait() <= FIRST);
    }
}
