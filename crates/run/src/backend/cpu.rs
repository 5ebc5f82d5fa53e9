//! The backend of this program's own kernels.

use crate::backend::{Backend, BackendError, Description};
use crate::directory::Fingerprint;
use fedtvd_core::model::{DefinitionError, ModelDefinition, Network};
use fedtvd_core::train::{Optimizer, Samples, Trainer};
use fedtvd_nn::{Cpu, instructions};
use std::sync::Arc;

/// What it is called.
pub(super) const NAME: &str = "cpu";

/// The cores of this machine; each trainer uses one.
#[derive(Debug)]
pub(super) struct OwnKernels;

impl Backend for OwnKernels {
    fn describe(&self) -> Result<Description, BackendError> {
        Ok(Description { fingerprint: Fingerprint::here(instructions()?), workers: None })
    }

    fn training_memory(
        &self,
        model: &ModelDefinition,
        batch: usize,
        optimizer: &Optimizer,
    ) -> Result<u128, BackendError> {
        let memory = Cpu::training_memory(layers(model)?, batch, optimizer);
        memory.map_err(|error| DefinitionError::from(error).into())
    }

    fn trainer(
        &self,
        model: &ModelDefinition,
        samples: &Arc<Samples>,
    ) -> Result<Box<dyn Trainer>, BackendError> {
        Ok(Box::new(Cpu::new(layers(model)?, Arc::clone(samples))?))
    }
}

fn layers(model: &ModelDefinition) -> Result<&Network, BackendError> {
    match model {
        ModelDefinition::Network(network) => Ok(network),
        ModelDefinition::Other(other) => {
            Err(BackendError::NeedsLayers { device: NAME.to_owned(), model: other.other.clone() })
        }
    }
}
