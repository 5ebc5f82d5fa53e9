//! The trainer interface. A trainer owns its model, its buffers and its view of the data set.

use crate::model::Params;
use crate::train::Pass;
use thiserror::Error;

/// Trains and evaluates. One per worker; it may be a CPU kernel, a GPU or another process, and may fail.
///
/// Rows are indices of samples of one data set; training and test rows share one numbering.
pub trait Trainer: Send {
    /// Trains `params` on the rows; every step must equal [`crate::train::step::step`].
    fn pass(
        &mut self,
        params: &mut Params,
        rows: &[u32],
        pass: &Pass<'_>,
    ) -> Result<PassReport, TrainFailure>;

    /// The gradient of the mean loss of the rows at fixed parameters; trainable tensors only.
    ///
    /// Offsets, class weights, label smoothing and batch norms' constants are those of the pass; nothing of its
    /// optimiser, clipping, pull or push is in it. The rows are taken in the batches of the pass's first epoch, in
    /// training mode, with that epoch's dropout and augmentation: a pass of a single step would see the same gradient.
    /// Batches count by the weights of their samples. Running statistics and the optimiser's state stay as they are.
    fn gradient(&mut self, params: &Params, rows: &[u32], pass: &Pass<'_>) -> Result<Vec<f32>, TrainFailure>;

    /// Evaluates in evaluation mode, without class weights; `offsets` are added to the logits, in the loss and in predictions.
    fn evaluate(
        &mut self,
        params: &Params,
        rows: &[u32],
        offsets: Option<&[f32]>,
    ) -> Result<Evaluation, TrainFailure>;

    /// The logits of each row in evaluation mode, row by row, one number per class.
    fn logits(&mut self, params: &Params, rows: &[u32]) -> Result<Vec<f32>, TrainFailure>;
}

/// The report of a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct PassReport {
    /// Optimiser steps made.
    pub steps: u64,
    /// Mean loss per sample of the first and of the last epoch, while training, with offsets and class weights.
    pub losses: [f64; 2],
    /// The batch statistics of the batch norms, mean and biased variance without any constant, averaged over the steps,
    /// in the order of the buffers; `None` unless the pass has [`Pass::norm`].
    pub statistics: Option<Vec<f64>>,
}

/// The result of an evaluation: counts, not data.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Sum of the loss over the samples.
    pub loss: f64,
    /// Samples by true class and predicted class, row by row.
    pub confusion: Vec<u64>,
}

impl Evaluation {
    /// An empty evaluation.
    pub fn empty(classes: usize) -> Self {
        Self { loss: 0.0, confusion: vec![0; classes * classes] }
    }

    /// Adds another part of the same evaluation.
    pub fn add(&mut self, other: &Self) {
        self.loss += other.loss;
        for (sum, count) in self.confusion.iter_mut().zip(&other.confusion) {
            *sum = sum.saturating_add(*count);
        }
    }

    /// Number of samples evaluated.
    pub fn samples(&self) -> u64 {
        self.confusion.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// Number of samples classified correctly.
    pub fn correct(&self) -> u64 {
        let classes = self.confusion.len().isqrt();
        self.confusion.iter().step_by(classes + 1).fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// Fraction of samples classified correctly; 0 without samples.
    pub fn accuracy(&self) -> f64 {
        self.correct() as f64 / self.samples().max(1) as f64
    }

    /// Accuracy of each class; `None` if the class has no samples.
    pub fn class_accuracies(&self) -> Vec<Option<f64>> {
        let classes = self.confusion.len().isqrt();
        (0..classes)
            .map(|c| {
                let row = &self.confusion[c * classes..(c + 1) * classes];
                let total: u64 = row.iter().sum();
                (total > 0).then(|| row[c] as f64 / total as f64)
            })
            .collect()
    }

    /// Fraction of samples that belong to the most frequent class: the accuracy of always predicting it.
    pub fn chance(&self) -> f64 {
        let classes = self.confusion.len().isqrt();
        let most = self.confusion.chunks(classes.max(1)).map(|row| row.iter().sum::<u64>()).max();
        most.unwrap_or(0) as f64 / self.samples().max(1) as f64
    }

    /// Mean loss per sample; 0 without samples.
    pub fn mean_loss(&self) -> f64 {
        self.loss / self.samples().max(1) as f64
    }
}

/// Why a trainer failed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TrainFailure {
    /// The loss is NaN or infinite.
    #[error("the loss became {loss} in epoch {}", epoch + 1)]
    Diverged {
        /// The epoch, counted from 0.
        epoch: u32,
        /// The loss.
        loss: f64,
    },
    /// No samples to train on.
    #[error("no samples to train on")]
    NoSamples,
    /// A row that the data set does not have.
    #[error("row {row} does not exist; the data set has {rows} rows")]
    NoSuchRow {
        /// The row.
        row: u32,
        /// Number of rows.
        rows: usize,
    },
    /// A batch size of 0.
    #[error("the batch size is 0; it must be at least 1")]
    EmptyBatch,
    /// The device failed.
    #[error("the training device failed: {0}")]
    Device(String),
}
