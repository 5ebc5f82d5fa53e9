//! Local training as the server orders it, the passes that it becomes, and how far they can reach.

use crate::params::Params;
use crate::pass::{Pass, Pull, Sgd};
use crate::step::Reach;
use crate::stream::Key;
use crate::trainer::{TrainFailure, Trainer};
use serde::{Deserialize, Serialize};

/// How clients train, the same for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Local {
    /// Epochs per round.
    pub epochs: u32,
    /// Samples per step.
    pub batch: usize,
    /// The optimiser; its lr is that of round 0, epoch 0.
    pub sgd: Sgd,
    /// Factor on the learning rate from round to round.
    pub round_decay: f64,
    /// Factor on the learning rate from epoch to epoch inside a round.
    pub epoch_decay: f64,
}

impl Default for Local {
    /// The paper's: four epochs of SGD, batches of 32, lr 0.01, momentum 0.9.
    fn default() -> Self {
        let sgd = Sgd { lr: 0.01, momentum: 0.9, nesterov: false, weight_decay: 0.0 };
        Self { epochs: 4, batch: 32, sgd, round_decay: 1.0, epoch_decay: 1.0 }
    }
}

impl Local {
    /// The order as it stands in a round: its learning rate is that round's.
    pub fn in_round(&self, round: u32) -> Self {
        let lr = self.sgd.lr * self.round_decay.powi(round as i32);
        Self { sgd: Sgd { lr, ..self.sgd }, ..*self }
    }

    /// The pass to start from: all epochs, nothing added to the gradient.
    pub fn pass<'a>(&self, key: Key, logits: Option<&'a [f32]>) -> Pass<'a> {
        Pass {
            epochs: self.epochs,
            first_epoch: 0,
            batch: self.batch,
            key,
            keep_velocity: false,
            sgd: self.sgd,
            pull: None,
            push: None,
            logits,
        }
    }

    /// Most steps that a client of this size can make in a round.
    pub fn most_steps(&self, size: u64) -> u64 {
        u64::from(self.epochs) * size.div_ceil(self.batch as u64)
    }

    /// The least and the greatest reach that any number of steps up to all of them has.
    ///
    /// A proximal term with lr mu >= 2 leads back to the start or beyond; such steps reach nothing that an
    /// update could be normalised by, and are left out.
    pub fn reaches(&self, mu: f64, size: u64) -> [f64; 2] {
        let steps = size.div_ceil(self.batch as u64);
        let mut reach = Reach::default();
        let [mut least, mut greatest] = [f64::INFINITY, 0.0f64];
        for epoch in 0..self.epochs {
            let sgd = self.in_epoch(epoch);
            for _ in 0..steps {
                reach.advance(&sgd, mu, true, 1);
                if reach.distance() > 0.0 {
                    least = least.min(reach.distance());
                    greatest = greatest.max(reach.distance());
                }
            }
        }
        [least, greatest]
    }

    fn in_epoch(&self, epoch: u32) -> Sgd {
        Sgd { lr: self.sgd.lr * self.epoch_decay.powi(epoch as i32), ..self.sgd }
    }
}

/// What all passes of a round came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// The trained model.
    pub params: Params,
    /// Optimiser steps made.
    pub steps: u64,
    /// lr ‖a‖₁ of those steps.
    pub reach: f64,
    /// Mean loss per sample of the first and of the last epoch.
    pub losses: [f64; 2],
}

impl Course {
    /// Trains from `start` as `local` orders, with `pull` and `push` in every gradient.
    pub fn run<'a>(
        start: &Params,
        rows: &[u32],
        local: &Local,
        pass: &Pass<'a>,
        pull: Option<Pull<'a>>,
        push: Option<&'a [f32]>,
        trainer: &mut dyn Trainer,
    ) -> Result<Self, TrainFailure> {
        let mut params = start.clone();
        let mut reach = Reach::default();
        let mut steps = 0;
        let mut losses = None;
        // A learning rate that changes inside the round is several passes.
        let stride = if local.epoch_decay == 1.0 { pass.epochs.max(1) } else { 1 };
        let mut epoch = 0;
        while epoch < pass.epochs {
            let sgd = local.in_epoch(epoch);
            let part = Pass {
                epochs: stride,
                first_epoch: pass.first_epoch + epoch,
                keep_velocity: epoch > 0,
                sgd,
                pull,
                push,
                ..*pass
            };
            let report = trainer.pass(&mut params, rows, &part)?;
            reach.advance(&sgd, pull.map_or(0.0, |pull| pull.mu), true, report.steps);
            steps += report.steps;
            losses = Some([losses.map_or(report.losses[0], |[first, _]: [f64; 2]| first), report.losses[1]]);
            epoch += stride;
        }
        let losses = losses.ok_or(TrainFailure::NoSamples)?;
        Ok(Self { params, steps, reach: reach.distance(), losses })
    }
}
