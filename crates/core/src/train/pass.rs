//! A training pass described as plain data: everything that a method does between gradient and step is a field.
//!
//! So a trainer elsewhere (another process, PyTorch, a GPU) can run a pass entirely on its device, and parameters are
//! transferred once in each direction.

use crate::stream::{Key, Purpose, Stream};
use crate::train::{Frozen, Optimizer};

/// A proximal term: the gradient gets + mu (w - anchor).
#[derive(Clone, Copy, Debug)]
pub struct Pull<'a> {
    /// The strength.
    pub mu: f64,
    /// The anchor; one number per trainable parameter.
    pub anchor: &'a [f32],
}

/// Constants added to what batch norms measure on a batch while training. Gradients flow through the batch's own mean and
/// variance; the constants have none, nor has a variance that is at its floor.
#[derive(Clone, Copy, Debug)]
pub struct NormShift<'a> {
    /// Added to the mean and to the biased variance of each channel; one number per buffer.
    pub shift: &'a [f32],
    /// The least variance after that, at the places of the variances; one number per buffer.
    pub floor: &'a [f32],
}

/// Some epochs of local training.
#[derive(Clone, Copy, Debug)]
pub struct Pass<'a> {
    /// Number of epochs.
    pub epochs: u32,
    /// Index of the first epoch: epoch e draws from stream e, so four passes of one equal one pass of four.
    pub first_epoch: u32,
    /// Samples per step; the last step of an epoch takes the rest.
    pub batch: usize,
    /// Key of sample order, dropout and augmentation.
    pub key: Key,
    /// Whether to keep the optimiser's state of the previous pass (velocity, or Adam's means and number of steps);
    /// otherwise it starts anew.
    pub keep_state: bool,
    /// The optimiser.
    pub optimizer: Optimizer,
    /// Greatest norm of the gradient of the loss and the pull together; weight decay and push are added afterwards.
    pub clip: Option<f64>,
    /// A proximal term.
    pub pull: Option<Pull<'a>>,
    /// A constant vector added to the gradient; one number per trainable parameter.
    pub push: Option<&'a [f32]>,
    /// Added to the logits inside the loss; one number per class.
    pub offsets: Option<&'a [f32]>,
    /// Weights w of the classes in the loss, Σ w_y loss / Σ w_y over the samples of a batch; one number per class.
    pub class_weights: Option<&'a [f32]>,
    /// Label smoothing, 0 to 1: the share of the target that is spread evenly over all classes.
    pub smoothing: f64,
    /// Constants for the batch norms; a pass with them reports the mean of the batch statistics.
    pub norm: Option<NormShift<'a>>,
    /// Tensors that do not move.
    pub frozen: Option<&'a Frozen>,
}

impl Pass<'_> {
    /// One epoch from a new optimiser's state, with nothing added to the gradient of plain cross-entropy.
    pub fn new(optimizer: impl Into<Optimizer>, batch: usize, key: Key) -> Self {
        Self {
            epochs: 1,
            first_epoch: 0,
            batch,
            key,
            keep_state: false,
            optimizer: optimizer.into(),
            clip: None,
            pull: None,
            push: None,
            offsets: None,
            class_weights: None,
            smoothing: 0.0,
            norm: None,
            frozen: None,
        }
    }

    /// The weight of a sample of this class in the loss.
    pub fn weight(&self, class: u32) -> f64 {
        self.class_weights.map_or(1.0, |weights| f64::from(weights[class as usize]))
    }

    /// The order in which epoch `epoch` visits the rows.
    pub fn order(&self, epoch: u32, rows: &[u32]) -> Vec<u32> {
        let mut order = rows.to_vec();
        self.stream(Purpose::Order, epoch).shuffle(&mut order);
        order
    }

    /// The stream of one purpose in one epoch.
    pub fn stream(&self, purpose: Purpose, epoch: u32) -> Stream {
        self.key.at(purpose, 0, 0).stream(u64::from(epoch))
    }

    /// Number of optimiser steps for `samples` samples.
    pub fn steps(&self, samples: usize) -> u64 {
        u64::from(self.epochs) * samples.div_ceil(self.batch) as u64
    }
}
