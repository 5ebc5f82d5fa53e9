//! The server's own evaluation of models, on its test rows.

use crate::federation::FederationError;
use crate::federation::fleet::Evaluator;
use crate::federation::table_schema::TableSchema;
use fedtvd_core::model::ModelDefinition;
use fedtvd_core::train::Samples;
use fedtvd_data::set::Loaded;
use fedtvd_run::backend::{BackendError, Device};
use fedtvd_run::fleet::FleetFailure;
use std::sync::Arc;

/// A model, and what evaluates it.
#[derive(Clone)]
pub(crate) struct Judge {
    pub(crate) model: ModelDefinition,
    pub(crate) device: Device,
    /// Number of threads.
    pub(crate) workers: usize,
}

/// A table of the server that can be read only when the sites have fixed its centres and scales.
pub(crate) struct OpenTable {
    pub(crate) loaded: Loaded,
    pub(crate) judge: Judge,
    pub(crate) tables: Arc<TableSchema>,
}

impl OpenTable {
    /// The evaluator on the standardised table.
    pub(crate) fn evaluator(&self) -> Result<Evaluator, FleetFailure> {
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| FleetFailure::Other(error);
        let standards = self.tables.standards().ok_or_else(|| failed("the schema is not complete".into()))?;
        let loaded = self.loaded.standardised(&standards).map_err(|error| failed(error.into()))?;
        self.judge.on_samples(&loaded.samples).map_err(|error| failed(error.into()))
    }
}

impl Judge {
    /// An evaluator on the test rows of these samples.
    fn on_samples(&self, samples: &Arc<Samples>) -> Result<Evaluator, BackendError> {
        let trainer = |_| self.device.trainer(&self.model, samples);
        let workers = (0..self.workers.max(1)).map(trainer).collect::<Result<_, _>>()?;
        Ok(Evaluator::Server { workers, rows: samples.test_rows(), classes: samples.classes() })
    }
}

/// The evaluator of a data set: at once, or when its table's schema is complete.
pub(crate) fn server_evaluator(
    loaded: &Loaded,
    judge: Judge,
    tables: Option<&Arc<TableSchema>>,
) -> Result<Evaluator, FederationError> {
    let open = loaded.table.as_ref().is_some_and(|table| table.columns.is_some());
    match tables.filter(|_| open) {
        Some(tables) => {
            let (loaded, tables) = (loaded.clone(), Arc::clone(tables));
            Ok(Evaluator::Open(Box::new(OpenTable { loaded, judge, tables })))
        }
        None => Ok(judge.on_samples(&loaded.samples)?),
    }
}
