//! What the server knows about the data set, even if it does not have the data.

use crate::federation::FederationError;
use fedtvd_core::model::Shape;
use fedtvd_data::set::{LoadError, Places, named, read_schema};
use fedtvd_data::table::Schema;
use fedtvd_run::RunError;
use fedtvd_run::configuration::Experiment;
use fedtvd_run::directory::sha256;
use fedtvd_run::setup::{Data, SetupError};
use std::path::Path;

/// What the server knows about the data set.
pub(crate) struct DatasetInfo {
    pub(crate) shape: Shape,
    pub(crate) classes: usize,
    pub(crate) names: Vec<String>,
    pub(crate) checksum: String,
    /// The data, if the server evaluates the model on its test rows.
    pub(crate) data: Option<Data>,
    /// The schema of the sites' tables, as it was given or made.
    pub(crate) schema: Option<Schema>,
}

impl DatasetInfo {
    /// From the data if the server has them, otherwise from a schema or from the catalogue.
    pub(crate) fn find(
        experiment: &Experiment,
        places: &Places,
        clients_evaluate: bool,
    ) -> Result<Self, FederationError> {
        match Data::load(&experiment.data, places) {
            Ok(data) => {
                let (shape, classes) = (data.loaded.samples.shape(), data.loaded.samples.classes());
                let (checksum, names) = (data.checksum.clone(), data.loaded.class_names.clone());
                let schema = data.loaded.table.as_ref().map(|table| table.schema.clone());
                let evaluates = !clients_evaluate && !data.loaded.samples.test_rows().is_empty();
                Ok(Self { shape, classes, names, checksum, data: evaluates.then_some(data), schema })
            }
            Err(SetupError::Load(LoadError::Missing(_) | LoadError::Unknown { .. })) => {
                if let Some(path) = &experiment.data.schema {
                    let schema = read_schema(path).map_err(SetupError::from).map_err(RunError::from)?;
                    let (shape, names) = ([schema.inputs(), 1, 1], schema.class_names());
                    let (classes, checksum) = (names.len(), String::new());
                    return Ok(Self { shape, classes, names, checksum, data: None, schema: Some(schema) });
                }
                let entry = named(&experiment.data.set)
                    .ok_or_else(|| FederationError::Shapeless(experiment.data.set.clone()))?;
                let (shape, names) = (entry.shape, entry.class_names());
                let (classes, checksum) = (names.len(), String::new());
                Ok(Self { shape, classes, names, checksum, data: None, schema: None })
            }
            Err(error) => Err(RunError::from(error).into()),
        }
    }

    /// A sentence about who evaluates the models of this data set, and why.
    pub(crate) fn evaluation(&self, set: &str, clients_evaluate: bool) -> String {
        let clients = "clients evaluate each model on their hold-outs";
        // A name such as "patients" is fine for data that only sites have.
        let path = Path::new(set).extension().is_some() || set.contains(std::path::MAIN_SEPARATOR);
        match &self.data {
            Some(data) => {
                let samples = data.loaded.samples.test_rows().len();
                format!("the server evaluates each model on the {samples} test samples of {set}")
            }
            None if clients_evaluate => clients.to_owned(),
            None if !self.checksum.is_empty() => format!("{set} has no test samples: {clients}"),
            None if set.is_empty() => format!("the server has a schema and no data: {clients}"),
            None if path && self.schema.is_some() => format!(
                "there is no {set} here: {clients}; if it is a mistyped path, stop the server, correct data.set, and use \
                 another --out"
            ),
            None => format!("data.set = {set:?} is not on this machine: {clients}"),
        }
    }

    /// Whether centres and scales come from the sites.
    pub(crate) fn open(&self) -> bool {
        self.schema.as_ref().is_some_and(|schema| schema.open().count() > 0)
    }

    /// Hash of the schema; empty if the data is not a table.
    pub(crate) fn schema_hash(&self) -> String {
        self.schema.as_ref().map_or_else(String::new, |schema| sha256(schema.text().as_bytes()))
    }

    /// The schema as TOML if it has all centres and scales.
    pub(crate) fn complete_schema(&self) -> Option<String> {
        self.schema.as_ref().filter(|schema| schema.open().count() == 0).map(Schema::text)
    }
}
