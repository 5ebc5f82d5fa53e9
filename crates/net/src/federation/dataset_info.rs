//! What the server knows about the data set, even if it does not have the data.

use crate::federation::FederationError;
use fedtvd_core::model::Shape;
use fedtvd_data::set::{LoadError, Places, named};
use fedtvd_run::RunError;
use fedtvd_run::configuration::Experiment;
use fedtvd_run::setup::{Data, SetupError};

/// What the server knows about the data set.
pub(crate) struct DatasetInfo {
    pub(crate) shape: Shape,
    pub(crate) classes: usize,
    pub(crate) names: Vec<String>,
    pub(crate) checksum: String,
    /// The data, if the server evaluates the model on its test rows.
    pub(crate) data: Option<Data>,
}

impl DatasetInfo {
    /// From the data if the server has them, otherwise from the catalogue.
    pub(crate) fn find(
        experiment: &Experiment,
        places: &Places,
        clients_evaluate: bool,
    ) -> Result<Self, FederationError> {
        match Data::load(&experiment.data, places) {
            Ok(data) => {
                let (shape, classes) = (data.loaded.samples.shape(), data.loaded.samples.classes());
                let (checksum, names) = (data.checksum.clone(), data.loaded.class_names.clone());
                let evaluates = !clients_evaluate && !data.loaded.samples.test_rows().is_empty();
                Ok(Self { shape, classes, names, checksum, data: evaluates.then_some(data) })
            }
            Err(SetupError::Load(LoadError::Missing(_) | LoadError::Unknown { .. })) => {
                let entry = named(&experiment.data.set)
                    .ok_or_else(|| FederationError::Shapeless(experiment.data.set.clone()))?;
                let (shape, names) = (entry.shape, entry.class_names());
                Ok(Self { shape, classes: names.len(), names, checksum: String::new(), data: None })
            }
            Err(error) => Err(RunError::from(error).into()),
        }
    }
}
