//! The test set of a run, and what a model predicts for it.

use crate::backend::{BackendError, Device};
use crate::directory::TestPredictions;
use crate::setup::Setup;
use crate::simulation::Resources;
use fedtvd_core::model::{ModelDefinition, Params};
use fedtvd_core::train::{Samples, TrainFailure, prediction};
use std::sync::Arc;
use thiserror::Error;

/// The test rows of a data set, and the model that is evaluated on them.
#[derive(Clone, Debug)]
pub(crate) struct TestSet {
    model: ModelDefinition,
    samples: Arc<Samples>,
    device: Device,
    /// Number of threads.
    workers: usize,
}

/// Why there are no predictions.
#[derive(Debug, Error)]
pub enum PredictionError {
    /// The model cannot be evaluated here.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The evaluation failed.
    #[error(transparent)]
    Evaluate(#[from] TrainFailure),
}

impl TestSet {
    /// The test set of a simulation.
    pub(crate) fn of(setup: &Setup, resources: &Resources) -> Self {
        let (model, samples) = (setup.model.clone(), Arc::clone(&setup.samples));
        Self { model, samples, device: resources.device.clone(), workers: resources.workers.max(1) }
    }

    /// The model's prediction for each row. Rows do not influence each other, so the number of threads does not matter.
    pub(crate) fn predictions(&self, params: &Params) -> Result<TestPredictions, PredictionError> {
        let rows = self.samples.test_rows();
        let share = |rows: &[u32]| -> Result<Vec<u32>, PredictionError> {
            let logits = self.device.trainer(&self.model, &self.samples)?.logits(params, rows)?;
            Ok(logits.chunks(self.model.classes()).map(prediction).collect())
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
