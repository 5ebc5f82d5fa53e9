//! Local training: the trainer interface, the optimiser step, and what a client does with a job.
//! `conformance` is the suite that every trainer must pass.

pub(crate) mod augment;
pub(crate) mod class_weights;
pub mod client;
pub mod conformance;
pub(crate) mod frozen;
pub(crate) mod local;
pub(crate) mod logits;
pub(crate) mod optimizer;
pub(crate) mod pass;
pub(crate) mod passes;
pub(crate) mod reach;
pub(crate) mod samples;
pub(crate) mod schedule;
pub(crate) mod step;
pub(crate) mod trainer;

pub use augment::{Augment, Draw};
pub use class_weights::{ClassWeights, ClassWeightsError};
pub use frozen::Frozen;
pub use local::{Local, LocalRun};
pub use logits::{prediction, probabilities};
pub use optimizer::{Adam, Optimizer, Sgd};
pub use pass::{NormShift, Pass, Pull};
pub use passes::Passes;
pub use reach::Reach;
pub use samples::{Samples, SamplesError, Values};
pub use schedule::{Decay, Schedule};
pub use step::{OptimizerState, step};
pub use trainer::{Evaluation, PassReport, TrainFailure, Trainer};
