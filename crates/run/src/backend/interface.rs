//! What a backend is: something that makes trainers.

use crate::backend::UnknownDevice;
use crate::directory::Fingerprint;
use fedtvd_core::model::{DefinitionError, ModelDefinition};
use fedtvd_core::train::{Optimizer, Samples, Trainer};
use fedtvd_nn::{CpuError, InstructionsError};
use std::fmt::Debug;
use std::sync::Arc;
use thiserror::Error;

/// Makes trainers on one device. Its trainers pass core's conformance suite, within tolerances where their bits are not those of
/// this program's own kernels.
pub trait Backend: Debug + Send + Sync {
    /// What it is, as far as it can say here and now.
    fn describe(&self) -> Result<Description, BackendError>;

    /// Bytes that training a model in batches of up to `batch` samples takes, besides the samples. Allocates none of them.
    fn training_memory(
        &self,
        model: &ModelDefinition,
        batch: usize,
        optimizer: &Optimizer,
    ) -> Result<u128, BackendError>;

    /// A trainer of this model on these samples. Several may work at the same time.
    fn trainer(
        &self,
        model: &ModelDefinition,
        samples: &Arc<Samples>,
    ) -> Result<Box<dyn Trainer>, BackendError>;
}

/// What a backend says about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// What the bits of its results depend on.
    pub fingerprint: Fingerprint,
    /// Number of trainers that keep it busy; `None` for one per core.
    pub workers: Option<usize>,
}

/// Why a model cannot be trained on a device.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BackendError {
    /// No such device.
    #[error(transparent)]
    Unknown(#[from] UnknownDevice),
    /// The model makes no sense on any device.
    #[error(transparent)]
    Model(#[from] DefinitionError),
    /// The kernels of this program cannot train it.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// The environment asks for instructions that this machine does not have.
    #[error(transparent)]
    Instructions(#[from] InstructionsError),
    /// A model without layers on a device that needs them.
    #[error(
        "model {model} is not made of this program's layers, and {device} trains nothing else; choose the --device of the backend \
         that made it"
    )]
    NeedsLayers {
        /// The device.
        device: String,
        /// The model.
        model: String,
    },
    /// The device or its driver.
    #[error("{device}: {why}")]
    Device {
        /// The device.
        device: String,
        /// What it says.
        why: String,
    },
}
