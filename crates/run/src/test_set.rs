//! The test set of a run, and what a model predicts for it.

use crate::directory::TestPredictions;
use crate::setup::Setup;
use fedtvd_core::model::{Network, Params};
use fedtvd_core::train::{Samples, TrainFailure};
use fedtvd_nn::{Cpu, CpuError};
use std::sync::Arc;
use thiserror::Error;

/// The test rows of a data set, and the model that is evaluated on them.
#[derive(Clone, Debug)]
pub(crate) struct TestSet {
    network: Network,
    samples: Arc<Samples>,
    /// Number of threads.
    workers: usize,
}

/// Why there are no predictions.
#[derive(Debug, Error)]
pub enum PredictionError {
    /// The model cannot be evaluated here.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// The evaluation failed.
    #[error(transparent)]
    Evaluate(#[from] TrainFailure),
}

impl TestSet {
    /// The test set of a simulation.
    pub(crate) fn of(setup: &Setup, workers: usize) -> Self {
        let (network, samples) = (setup.network.clone(), Arc::clone(&setup.samples));
        Self { network, samples, workers: workers.max(1) }
    }

    /// The model's prediction for each row. Rows do not influence each other, so the number of threads does not matter.
    pub(crate) fn predictions(&self, params: &Params) -> Result<TestPredictions, PredictionError> {
        let rows = self.samples.test_rows();
        let share = |rows: &[u32]| -> Result<Vec<u32>, PredictionError> {
            Ok(Cpu::new(&self.network, Arc::clone(&self.samples))?.predictions(params, rows)?)
        };
        let parts: Vec<Result<Vec<u32>, PredictionError>> = std::thread::scope(|scope| {
            let chunks = rows.chunks(rows.len().div_ceil(self.workers).max(1));
            let threads: Vec<_> = chunks.map(|rows| scope.spawn(move || share(rows))).collect();
            threads.into_iter().map(|thread| thread.join().expect("predicting does not panic")).collect()
        });
        let parts: Vec<Vec<u32>> = parts.into_iter().collect::<Result<_, _>>()?;
        let labels = rows.iter().map(|row| self.samples.labels()[*row as usize]).collect();
        Ok(TestPredictions { labels, predictions: parts.concat() })
    }
}
