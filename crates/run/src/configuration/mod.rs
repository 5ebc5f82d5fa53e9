//! Configuration: the keys with their defaults and ranges, files and `--set`, the lists of a sweep, and the experiment
//! that a configuration describes.

pub(crate) mod axes;
pub(crate) mod config;
pub(crate) mod effects;
pub(crate) mod evaluation;
pub(crate) mod experiment;
pub(crate) mod federation;
pub mod keys;
pub(crate) mod liars;
pub(crate) mod lookup;
pub(crate) mod reference;
pub(crate) mod resolved;
pub(crate) mod table_model;
pub(crate) mod training;
pub(crate) mod value;

pub use axes::{Axis, axes, tuned_axes};
pub use config::{Config, ConfigError};
pub use effects::{no_effect, overruled};
pub use evaluation::{EvaluationOptions, Metric};
pub use experiment::{Experiment, ExperimentError};
pub use keys::Key;
pub use liars::{Liars, LiarsError};
pub use reference::{ClassMismatch, ReferenceSource};
pub use training::TrainingError;
pub use value::Value;
