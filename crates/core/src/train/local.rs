//! Local training as configured by the server: its passes, and bounds on how far they can reach.

use crate::model::Params;
use crate::settings::Range;
use crate::stream::Key;
use crate::train::{Optimizer, Pass, Passes, Pull, Reach, Schedule, Sgd, TrainFailure, Trainer};

/// How clients train, the same for all of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Local {
    /// Epochs per round.
    pub epochs: u32,
    /// Samples per step.
    pub batch: usize,
    /// The optimiser; its lr is that of round 0, epoch 0.
    pub optimizer: Optimizer,
    /// Greatest norm of a gradient: see [`Pass::clip`].
    pub clip: Option<f64>,
    /// Label smoothing: see [`Pass::smoothing`].
    pub smoothing: f64,
    /// The learning rate from round to round.
    pub schedule: Schedule,
    /// Factor on the learning rate from epoch to epoch inside a round.
    pub epoch_decay: f64,
}

impl Default for Local {
    /// The paper's: four epochs of SGD, batches of 32, lr 0.01, momentum 0.9.
    fn default() -> Self {
        let sgd = Sgd { lr: 0.01, momentum: 0.9, nesterov: false, weight_decay: 0.0 };
        Self {
            epochs: 4,
            batch: 32,
            optimizer: sgd.into(),
            clip: None,
            smoothing: 0.0,
            schedule: Schedule::exponential(1.0),
            epoch_decay: 1.0,
        }
    }
}

impl Local {
    /// Range of a factor on the learning rate from one round or epoch to the next.
    pub const DECAY: Range = Range::above(0.0, 2.0);

    /// The settings for a round, with that round's learning rate.
    pub fn in_round(&self, round: u32) -> Self {
        let lr = self.schedule.lr(self.optimizer.lr(), round);
        let schedule = Schedule::exponential(self.schedule.factor());
        Self { optimizer: self.optimizer.with_lr(lr), schedule, ..*self }
    }

    /// Whether training needs more than SGD on plain cross-entropy, which older clients do not know.
    pub fn has_options(&self) -> bool {
        !matches!(self.optimizer, Optimizer::Sgd(_)) || self.clip.is_some() || self.smoothing != 0.0
    }

    /// The plain pass: all epochs, nothing added to the gradient.
    pub fn pass<'a>(
        &self,
        key: Key,
        offsets: Option<&'a [f32]>,
        class_weights: Option<&'a [f32]>,
    ) -> Pass<'a> {
        Pass {
            epochs: self.epochs,
            clip: self.clip,
            smoothing: self.smoothing,
            offsets,
            class_weights,
            ..Pass::new(self.optimizer, self.batch, key)
        }
    }

    /// The same settings with another learning rate.
    pub(crate) fn with_lr(&self, lr: f64) -> Self {
        Self { optimizer: self.optimizer.with_lr(lr), ..*self }
    }

    /// Maximum number of steps of a client of this size in a round.
    pub fn most_steps(&self, size: u64) -> u64 {
        u64::from(self.epochs) * size.div_ceil(self.batch as u64)
    }

    /// Samples that a client of this size trains on in this number of steps; in all epochs if it is unknown.
    pub fn samples(&self, size: u64, steps: Option<u64>) -> u64 {
        let (batch, epoch) = (self.batch as u64, size.div_ceil(self.batch as u64).max(1));
        let steps = steps.unwrap_or(u64::from(self.epochs) * epoch);
        // The last batch of an epoch may be smaller than the others.
        size * (steps / epoch) + (batch * (steps % epoch)).min(size)
    }

    /// The smallest and the largest reach over all possible numbers of steps.
    ///
    /// A proximal term with lr mu >= 2 leads back to the start or beyond; an update cannot be normalised by a reach of
    /// zero or less, so such steps are left out.
    ///
    /// However many samples are claimed, only about `STEPPED` steps of SGD are computed: once the momentum has settled, no
    /// step is more extreme than the last two, and the rest is one leap to the end. Without a proximal term every step
    /// leads away from the start, settled or not. With one, a momentum that settles late has `SLOWLY_STEPPED` steps, and
    /// what may follow is bounded. Adam's steps all go the same way, so the extremes are the first step and all of them.
    pub fn reaches(&self, mu: f64, size: u64) -> [f64; 2] {
        self.reaches_in_steps(mu, size).0
    }

    /// The reaches, and how many steps were computed one by one to find them.
    fn reaches_in_steps(&self, mu: f64, size: u64) -> ([f64; 2], u64) {
        let steps = size.div_ceil(self.batch as u64);
        // Epochs with the same learning rate are computed as one.
        let alike = self.epoch_decay == 1.0;
        let (epochs, steps) = if alike { (1, u64::from(self.epochs) * steps) } else { (self.epochs, steps) };
        let slow = |sgd: &Sgd| sgd.momentum > SETTLING_MOMENTUM && mu > 0.0;
        let mut left = match self.optimizer {
            Optimizer::Sgd(sgd) if slow(&sgd) => SLOWLY_STEPPED,
            _ => STEPPED,
        };
        let mut reach = Reach::default();
        let mut computed = 0;
        let mut range = [f64::INFINITY, 0.0];
        for epoch in 0..epochs {
            let optimizer = self.in_epoch(epoch);
            let Optimizer::Sgd(sgd) = optimizer else {
                for steps in [steps.min(1), steps.saturating_sub(1)] {
                    reach.advance(&optimizer, mu, true, steps);
                    range = widened(range, reach.distance());
                }
                continue;
            };
            let stepped = steps.min(left.max(SETTLED));
            left = left.saturating_sub(stepped);
            computed += stepped;
            for _ in 0..stepped {
                reach.advance(&optimizer, mu, true, 1);
                range = widened(range, reach.distance());
            }
            if let Some(leap) = (steps - stepped).checked_sub(1) {
                if slow(&sgd) {
                    range[1] = range[1].max(farthest(reach, &sgd, mu, leap));
                }
                reach.leap(&sgd, mu, leap);
                range = widened(range, reach.distance());
                // If every step reverses direction, the last two are the extremes.
                reach.advance(&optimizer, mu, true, 1);
                range = widened(range, reach.distance());
            }
        }
        (range, computed)
    }

    /// The optimiser of an epoch of a round, counted from 0.
    pub(crate) fn in_epoch(&self, epoch: u32) -> Optimizer {
        self.optimizer.with_lr(self.optimizer.lr() * self.epoch_decay.powi(epoch as i32))
    }
}

/// Steps of a round that are computed one by one to find its reaches: those of two million samples in the paper's
/// settings, in about a millisecond.
const STEPPED: u64 = 1 << 18;
/// Steps of an epoch that are always computed one by one, since a new learning rate unsettles the momentum.
const SETTLED: u64 = 1 << 12;
/// A larger momentum has not settled after [`STEPPED`] steps.
const SETTLING_MOMENTUM: f64 = 0.9999;
/// Steps of a round with such a momentum and a proximal term that are computed one by one, in about 20 milliseconds.
const SLOWLY_STEPPED: u64 = 1 << 22;

/// A bound on the distance of further steps of a momentum that has not settled: as far as without the proximal term, and
/// no farther than a swing from the start around 1 / mu, where the gradient vanishes. An undamped swing from 0 ends at
/// 2 / mu; steps this small exceed it by less than a thousandth.
fn farthest(mut reach: Reach, sgd: &Sgd, mu: f64, steps: u64) -> f64 {
    reach.leap(sgd, 0.0, steps + 1);
    reach.distance().min(2.001 / mu)
}

/// The range, widened by a distance if an update can be normalised by it.
fn widened([least, greatest]: [f64; 2], distance: f64) -> [f64; 2] {
    if distance > 0.0 { [least.min(distance), greatest.max(distance)] } else { [least, greatest] }
}

/// The result of all passes of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalRun {
    /// The trained model.
    pub params: Params,
    /// Optimiser steps made.
    pub steps: u64,
    /// lr ‖a‖₁ of those steps.
    pub reach: f64,
    /// Mean loss per sample of the first and of the last epoch.
    pub losses: [f64; 2],
    /// The mean of the batch statistics over all steps: see [`crate::train::PassReport::statistics`].
    pub statistics: Option<Vec<f64>>,
}

impl LocalRun {
    /// Trains from `start` as configured by `local`, with `pull` and `push` in every gradient.
    pub fn run<'a>(
        start: &Params,
        rows: &[u32],
        local: &Local,
        pass: &Pass<'a>,
        pull: Option<Pull<'a>>,
        push: Option<&'a [f32]>,
        trainer: &mut dyn Trainer,
    ) -> Result<Self, TrainFailure> {
        let mut passes = Passes::from(start);
        // A learning rate that changes within the round needs several passes.
        let stride = if local.epoch_decay == 1.0 { pass.epochs.max(1) } else { 1 };
        let mut epoch = 0;
        while epoch < pass.epochs {
            let part = Pass {
                epochs: stride,
                first_epoch: pass.first_epoch + epoch,
                keep_state: epoch > 0,
                optimizer: local.in_epoch(epoch),
                pull,
                push,
                ..*pass
            };
            passes.train(rows, &part, trainer)?;
            epoch += stride;
        }
        passes.finished()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::Adam;

    /// Every step of every epoch.
    fn stepped(local: &Local, mu: f64, size: u64) -> [f64; 2] {
        let (mut reach, mut range) = (Reach::default(), [f64::INFINITY, 0.0]);
        for epoch in 0..local.epochs {
            for _ in 0..size.div_ceil(local.batch as u64) {
                reach.advance(&local.in_epoch(epoch), mu, true, 1);
                range = widened(range, reach.distance());
            }
        }
        range
    }

    #[test]
    fn samples_of_a_number_of_steps_are_those_of_their_batches() {
        // 70 samples in batches of 32: 32, 32 and 6 in each of four epochs.
        let local = Local::default();
        let samples: Vec<u64> = [1, 2, 3, 4, 6, 12].map(|steps| local.samples(70, Some(steps))).to_vec();
        assert_eq!(samples, [32, 64, 70, 102, 140, 280]);
        assert_eq!(local.samples(70, None), 280, "a record without steps counts all epochs");
    }

    #[test]
    fn reaches_of_realistic_sizes_equal_those_of_single_steps_bit_for_bit() {
        for epoch_decay in [1.0, 0.9] {
            let local = Local { epoch_decay, ..Local::default() };
            for mu in [0.0, 0.01, 150.0, 200.0, 300.0] {
                for size in [1, 32, 33, 60_000, 500_000] {
                    assert_eq!(local.reaches(mu, size), stepped(&local, mu, size), "mu {mu}, size {size}");
                }
            }
        }
    }

    #[test]
    fn reaches_of_adam_are_those_of_single_steps_at_once_for_any_claim() {
        let adam = Adam { lr: 0.001, beta1: 0.9, beta2: 0.999, eps: 1e-3, weight_decay: 0.1 };
        for optimizer in [Optimizer::Adam(adam), Optimizer::AdamW(adam)] {
            for epoch_decay in [1.0, 0.5, 1.1] {
                let local = Local { optimizer, epoch_decay, ..Local::default() };
                for (mu, size) in [(0.0, 1), (0.0, 33), (0.5, 60_000)] {
                    let (once, every) = (local.reaches(mu, size), stepped(&local, mu, size));
                    for (once, every) in once.into_iter().zip(every) {
                        // 7,500 steps, each rounded to 1e-16.
                        assert!((once - every).abs() < 1e-12 * every, "{mu} {size}: {once} and {every}");
                    }
                }
            }
            let local = Local { optimizer, batch: 1, epochs: 10_000, ..Local::default() };
            let [least, greatest] = local.reaches(0.0, 100_000_000);
            assert_eq!((least, greatest.is_finite()), (0.001 / 1.001, true));
        }
    }

    #[test]
    fn reaches_of_huge_claims_equal_those_of_single_steps_up_to_rounding() {
        for (epoch_decay, momentum, mu) in
            [(1.0, 0.9, 0.0), (0.5, 0.9, 0.0), (1.0, 0.9, 1e-6), (1.1, 0.0, 1e-5), (1.0, 0.0, 199.999_999)]
        {
            let sgd = Sgd { lr: 0.01, momentum, nesterov: false, weight_decay: 0.0 };
            let local = Local { epoch_decay, optimizer: sgd.into(), ..Local::default() };
            let (leapt, every) = (local.reaches(mu, 20_000_000), stepped(&local, mu, 20_000_000));
            for (leapt, every) in leapt.into_iter().zip(every) {
                // 2.5 million steps, each rounded to 1e-16.
                assert!((leapt - every).abs() < 1e-9 * every, "mu {mu}: {leapt} and {every}");
            }
        }
    }

    #[test]
    fn no_claim_and_no_momentum_makes_the_server_compute_more_than_a_few_million_steps() {
        for momentum in [0.0, 0.9, 0.9999, 0.99999, 1f64.next_down()] {
            for (mu, epoch_decay) in [(0.0, 1.0), (0.0, 0.9), (0.1, 1.0), (1e-9, 0.9)] {
                let sgd = Sgd { lr: 0.01, momentum, nesterov: false, weight_decay: 0.0 };
                let local = Local { epoch_decay, batch: 1, optimizer: sgd.into(), ..Local::default() };
                let ([least, greatest], computed) = local.reaches_in_steps(mu, 1 << 50);
                assert!(computed <= SLOWLY_STEPPED + 4 * SETTLED, "momentum {momentum}, mu {mu}: {computed}");
                assert!(0.0 < least && least <= greatest && greatest.is_finite());
            }
        }
    }

    #[test]
    fn reaches_of_a_momentum_that_settles_late_include_those_of_single_steps() {
        for (momentum, mu, epoch_decay) in
            [(0.99999, 0.0, 1.0), (0.99999, 0.0, 0.5), (0.999_999_9, 1e-9, 1.0), (0.999_999, 0.01, 1.0)]
        {
            let sgd = Sgd { lr: 0.01, momentum, nesterov: false, weight_decay: 0.0 };
            let local = Local { epoch_decay, optimizer: sgd.into(), ..Local::default() };
            let size = 80_000_000;
            let ([least, greatest], [low, high]) = (local.reaches(mu, size), stepped(&local, mu, size));
            // 10 million steps, each rounded to 1e-16.
            assert!(least <= low * (1.0 + 1e-9) && high <= greatest * (1.0 + 1e-9), "{momentum} {mu}");
            if mu == 0.0 {
                assert!((greatest - high).abs() < 1e-9 * high, "{momentum}: {greatest} and {high}");
            }
        }
    }
}
