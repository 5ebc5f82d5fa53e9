//! The server's own evaluation of models, on its test rows.

use crate::federation::FederationError;
use crate::federation::fleet::Evaluator;
use crate::federation::table_schema::TableSchema;
use fedtvd_core::model::Network;
use fedtvd_core::train::{Samples, Trainer};
use fedtvd_data::set::Loaded;
use fedtvd_nn::{Cpu, CpuError};
use fedtvd_run::fleet::FleetFailure;
use std::sync::Arc;

/// A table of the server that can be read only when the sites have fixed its centres and scales.
pub(crate) struct OpenTable {
    pub(crate) loaded: Loaded,
    pub(crate) network: Network,
    pub(crate) workers: usize,
    pub(crate) tables: Arc<TableSchema>,
}

impl OpenTable {
    /// The evaluator on the standardised table.
    pub(crate) fn evaluator(&self) -> Result<Evaluator, FleetFailure> {
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| FleetFailure::Other(error);
        let standards = self.tables.standards().ok_or_else(|| failed("the schema is not complete".into()))?;
        let loaded = self.loaded.standardised(&standards).map_err(|error| failed(error.into()))?;
        on_samples(&self.network, &loaded.samples, self.workers).map_err(|error| failed(error.into()))
    }
}

/// An evaluator on the test rows of these samples.
fn on_samples(network: &Network, samples: &Arc<Samples>, workers: usize) -> Result<Evaluator, CpuError> {
    let cpu = |_| Cpu::new(network, Arc::clone(samples));
    let cpus: Vec<Cpu> = (0..workers.max(1)).map(cpu).collect::<Result<_, _>>()?;
    let workers = cpus.into_iter().map(|cpu| Box::new(cpu) as Box<dyn Trainer>).collect();
    Ok(Evaluator::Server { workers, rows: samples.test_rows(), classes: samples.classes() })
}

/// The evaluator of a data set: at once, or when its table's schema is complete.
pub(crate) fn server_evaluator(
    loaded: &Loaded,
    network: &Network,
    workers: usize,
    tables: Option<&Arc<TableSchema>>,
) -> Result<Evaluator, FederationError> {
    let open = loaded.table.as_ref().is_some_and(|table| table.columns.is_some());
    match tables.filter(|_| open) {
        Some(tables) => {
            let (loaded, network, tables) = (loaded.clone(), network.clone(), Arc::clone(tables));
            Ok(Evaluator::Open(Box::new(OpenTable { loaded, network, workers, tables })))
        }
        None => Ok(on_samples(network, &loaded.samples, workers)?),
    }
}
