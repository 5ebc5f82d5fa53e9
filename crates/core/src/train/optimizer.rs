//! The optimisers of local training, as data.

use crate::settings::Range;

/// An optimiser with its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Optimizer {
    /// `torch.optim.SGD` without dampening.
    Sgd(Sgd),
    /// `torch.optim.Adam`: weight_decay w is added to the gradient.
    Adam(Adam),
    /// `torch.optim.AdamW`: w is multiplied by 1 - lr weight_decay before each step.
    AdamW(Adam),
}

/// Settings of SGD.
#[derive(Clone, Copy, Debug, PartialEq)]
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

/// Settings of Adam and AdamW.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the mean of the gradients, per step.
    pub beta1: f64,
    /// Decay of the mean of their squares, per step.
    pub beta2: f64,
    /// Added to the root of that mean.
    pub eps: f64,
    /// Weight decay.
    pub weight_decay: f64,
}

impl Adam {
    /// Range of `eps`, which must not vanish in f32.
    pub const EPS: Range = Range::closed(1e-12, 1.0);
}

impl Optimizer {
    /// The names that users write.
    pub const WORDS: &'static [&'static str] = &["sgd", "adam", "adamw"];

    /// Its name, one of [`Optimizer::WORDS`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sgd(_) => "sgd",
            Self::Adam(_) => "adam",
            Self::AdamW(_) => "adamw",
        }
    }

    /// Learning rate.
    pub fn lr(&self) -> f64 {
        match self {
            Self::Sgd(sgd) => sgd.lr,
            Self::Adam(adam) | Self::AdamW(adam) => adam.lr,
        }
    }

    /// The same with another learning rate.
    pub fn with_lr(self, lr: f64) -> Self {
        match self {
            Self::Sgd(sgd) => Self::Sgd(Sgd { lr, ..sgd }),
            Self::Adam(adam) => Self::Adam(Adam { lr, ..adam }),
            Self::AdamW(adam) => Self::AdamW(Adam { lr, ..adam }),
        }
    }

    /// Number of vectors as long as the trainable parameters that it keeps from step to step.
    pub fn vectors(&self) -> usize {
        match self {
            Self::Sgd(_) => 1,
            Self::Adam(_) | Self::AdamW(_) => 2,
        }
    }
}

impl From<Sgd> for Optimizer {
    fn from(sgd: Sgd) -> Self {
        Self::Sgd(sgd)
    }
}
