//! A training pass described as plain data: everything that a method does between gradient and step is a field.
//!
//! So a trainer elsewhere (another process, PyTorch, a GPU) can run a pass entirely on its device, and parameters are
//! transferred once in each direction.

use crate::stream::{Key, Purpose, Stream};
use serde::{Deserialize, Serialize};

/// The optimiser of `torch.optim.SGD` (no dampening).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sgd {
    /// Learning rate.
    pub lr: f64,
    /// Momentum; 0 is plain SGD.
    pub momentum: f64,
    /// Whether to use Nesterov momentum.
    pub nesterov: bool,
    /// Added to the gradient as weight_decay * w.
    pub weight_decay: f64,
}

/// A proximal term: the gradient gets + mu (w - anchor).
#[derive(Clone, Copy, Debug)]
pub struct Pull<'a> {
    /// The strength.
    pub mu: f64,
    /// The anchor; one number per trainable parameter.
    pub anchor: &'a [f32],
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
    /// Whether to keep the momentum buffer of the previous pass; otherwise it starts at zero.
    pub keep_velocity: bool,
    /// The optimiser.
    pub sgd: Sgd,
    /// A proximal term.
    pub pull: Option<Pull<'a>>,
    /// A constant vector added to the gradient; one number per trainable parameter.
    pub push: Option<&'a [f32]>,
    /// Added to the logits inside the loss; one number per class.
    pub offsets: Option<&'a [f32]>,
    /// Weights w of the classes in the loss, Σ w_y loss / Σ w_y over the samples of a batch; one number per class.
    pub class_weights: Option<&'a [f32]>,
}

impl Pass<'_> {
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
