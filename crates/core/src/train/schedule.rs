//! Schedules of the learning rate over rounds, as PyTorch's schedulers would step once per round:
//!
//! ```text
//! round r < warmup:  lr (r + 1) / (warmup + 1)          LinearLR(1 / (warmup + 1), 1, warmup), then with q = r - warmup
//! constant:          lr
//! exponential:       lr factor^q                         ExponentialLR(factor)
//! step:              lr factor^⌊q / every⌋               StepLR(every, factor)
//! cosine:            lr (floor + (1 - floor) (1 + cos(π q / (rounds - warmup))) / 2)
//!                                                        CosineAnnealingLR(rounds - warmup, floor lr)
//! ```
//!
//! No schedule depends on the number of rounds of a run, so a longer run begins with the rounds of a shorter one.

use std::f64::consts::PI;

/// The learning rate over rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Rounds of linear warm-up. The decay begins after them.
    pub warmup: u32,
    /// What follows the warm-up.
    pub decay: Decay,
}

/// How the learning rate falls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decay {
    /// Not at all.
    Constant,
    /// By a factor after every round.
    Exponential {
        /// The factor.
        factor: f64,
    },
    /// By a factor after every few rounds.
    Step {
        /// Number of rounds with the same learning rate, at least 1.
        every: u32,
        /// The factor.
        factor: f64,
    },
    /// Along half a period of a cosine.
    Cosine {
        /// Number of rounds over which it falls, those of warm-up included, and more than these; the round after them would have the floor.
        rounds: u32,
        /// What it falls towards, as a fraction of the first learning rate.
        floor: f64,
    },
}

impl Schedule {
    /// A factor after every round, without warm-up; 1 is a constant learning rate.
    pub fn exponential(factor: f64) -> Self {
        Self { warmup: 0, decay: Decay::Exponential { factor } }
    }

    /// The learning rate in a round of a run whose learning rate is `lr`.
    pub fn lr(&self, lr: f64, round: u32) -> f64 {
        let Some(q) = round.checked_sub(self.warmup) else {
            return lr * (f64::from(round) + 1.0) / (f64::from(self.warmup) + 1.0);
        };
        match self.decay {
            Decay::Constant => lr,
            Decay::Exponential { factor } => lr * factor.powi(q as i32),
            Decay::Step { every, factor } => lr * factor.powi((q / every) as i32),
            Decay::Cosine { rounds, floor } => {
                let turn = PI * f64::from(q) / f64::from(rounds - self.warmup);
                lr * (floor + (1.0 - floor) * (1.0 + turn.cos()) / 2.0)
            }
        }
    }

    /// The factor of an exponential decay, 1 for all others. Jobs state it, although their learning rate is that of the round.
    pub(crate) fn factor(&self) -> f64 {
        match self.decay {
            Decay::Exponential { factor } => factor,
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lrs(warmup: u32, decay: Decay, rounds: u32) -> Vec<f64> {
        (0..rounds).map(|round| Schedule { warmup, decay }.lr(8.0, round)).collect()
    }

    #[test]
    fn each_decay_has_the_learning_rates_of_its_formula() {
        assert_eq!(lrs(0, Decay::Constant, 3), [8.0, 8.0, 8.0]);
        assert_eq!(lrs(0, Decay::Exponential { factor: 0.5 }, 4), [8.0, 4.0, 2.0, 1.0]);
        assert_eq!(lrs(0, Decay::Step { every: 2, factor: 0.5 }, 5), [8.0, 8.0, 4.0, 4.0, 2.0]);
        let cosine = lrs(0, Decay::Cosine { rounds: 4, floor: 0.25 }, 5);
        // Half of the way from 8 to 2 at half of the rounds, and the floor at the last one.
        for (lr, expected) in
            cosine.into_iter().zip([8.0, 5.0 + 3.0 * 0.5f64.sqrt(), 5.0, 5.0 - 3.0 * 0.5f64.sqrt(), 2.0])
        {
            assert!((lr - expected).abs() < 1e-14, "{lr} {expected}");
        }
    }

    #[test]
    fn every_decay_begins_after_the_warm_up() {
        assert_eq!(lrs(3, Decay::Constant, 5), [2.0, 4.0, 6.0, 8.0, 8.0]);
        assert_eq!(lrs(1, Decay::Exponential { factor: 0.5 }, 4), [4.0, 8.0, 4.0, 2.0]);
        assert_eq!(lrs(1, Decay::Step { every: 2, factor: 0.5 }, 5), [4.0, 8.0, 8.0, 4.0, 4.0]);
        let cosine = lrs(1, Decay::Cosine { rounds: 3, floor: 0.0 }, 4);
        for (lr, expected) in cosine.into_iter().zip([4.0, 8.0, 4.0, 0.0]) {
            assert!((lr - expected).abs() < 1e-14, "{lr} {expected}");
        }
    }
}
