//! Local training: the trainer interface, the optimiser step, and what a client does with a job.
//! `conformance` is the suite that every trainer must pass.

pub(crate) mod augment;
pub(crate) mod class_weights;
pub mod client;
pub mod conformance;
pub(crate) mod local;
pub(crate) mod pass;
pub(crate) mod samples;
pub(crate) mod step;
pub(crate) mod trainer;

pub use augment::Augment;
pub use class_weights::{ClassWeights, ClassWeightsError};
pub use local::{Local, LocalRun};
pub use pass::{Pass, Pull, Sgd};
pub use samples::{Samples, SamplesError, Values};
pub use step::{Reach, step};
pub use trainer::{Evaluation, PassReport, TrainFailure, Trainer};
