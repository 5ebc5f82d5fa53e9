//! Passes of one round, one after the other.

use crate::model::Params;
use crate::train::{LocalRun, Pass, Reach, TrainFailure, Trainer};

/// A model on its way through the passes of a round, and what they add up to.
#[derive(Clone, Debug)]
pub struct Passes {
    /// The model after the passes so far.
    pub params: Params,
    reach: Reach,
    steps: u64,
    losses: Option<[f64; 2]>,
    statistics: Option<Vec<f64>>,
}

impl Passes {
    /// No pass yet.
    pub fn from(start: &Params) -> Self {
        Self { params: start.clone(), reach: Reach::default(), steps: 0, losses: None, statistics: None }
    }

    /// Trains one more pass.
    pub fn train(
        &mut self,
        rows: &[u32],
        pass: &Pass<'_>,
        trainer: &mut dyn Trainer,
    ) -> Result<(), TrainFailure> {
        let report = trainer.pass(&mut self.params, rows, pass)?;
        let mu = pass.pull.map_or(0.0, |pull| pull.mu);
        self.reach.advance(&pass.optimizer, mu, pass.keep_state, report.steps);
        self.statistics = match (self.statistics.take(), report.statistics) {
            (Some(before), Some(next)) => Some(joined(before, self.steps, &next, report.steps)),
            (_, next) => next,
        };
        self.steps += report.steps;
        let first = self.losses.map_or(report.losses[0], |[first, _]| first);
        self.losses = Some([first, report.losses[1]]);
        Ok(())
    }

    /// What all passes together amount to; fails if there was none.
    pub fn finished(self) -> Result<LocalRun, TrainFailure> {
        let Self { params, reach, steps, losses, statistics } = self;
        let losses = losses.ok_or(TrainFailure::NoSamples)?;
        Ok(LocalRun { params, steps, reach: reach.distance(), losses, statistics })
    }
}

/// The mean over both numbers of steps.
fn joined(mut before: Vec<f64>, steps: u64, next: &[f64], more: u64) -> Vec<f64> {
    let (steps, more) = (steps as f64, more as f64);
    for (mean, next) in before.iter_mut().zip(next) {
        *mean = (*mean * steps + next * more) / (steps + more);
    }
    before
}
