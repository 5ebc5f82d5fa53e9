//! What a run works on: the samples, who has which of them, and the model's shape.

use crate::experiment::Experiment;
use fedtvd_core::layout::Layout;
use fedtvd_core::network::{Network, NetworkError};
use fedtvd_core::profile::{Client, ClientId};
use fedtvd_core::samples::Samples;
use fedtvd_data::mini::{self, MiniError};
use fedtvd_data::split::{Partition, SplitError};
use fedtvd_nn::models::{self, ModelError};
use std::sync::Arc;
use thiserror::Error;

/// Data, split and model of a run.
#[derive(Debug)]
pub struct Setup {
    /// The data set.
    pub samples: Arc<Samples>,
    /// Each client's rows and label counts.
    pub clients: Vec<ClientData>,
    /// The model.
    pub network: Network,
    /// Its tensors.
    pub layout: Arc<Layout>,
}

/// What one client has.
#[derive(Clone, Debug)]
pub struct ClientData {
    /// Rows that it trains on.
    pub rows: Vec<u32>,
    /// Label counts of those rows.
    pub counts: Vec<u64>,
}

/// Why there is nothing to work on.
#[derive(Debug, Error)]
pub enum SetupError {
    /// No such data set.
    #[error("data.set = {0} is no data set; fmnist-mini is in the program")]
    NoSuchSet(String),
    /// The embedded data set.
    #[error(transparent)]
    Mini(#[from] MiniError),
    /// The split.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// The model's name.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model's layers.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// The data set of this name.
pub fn samples(name: &str) -> Result<Arc<Samples>, SetupError> {
    match name {
        "fmnist-mini" => Ok(Arc::new(mini::load()?)),
        other => Err(SetupError::NoSuchSet(other.to_owned())),
    }
}

impl Setup {
    /// Splits the samples and shapes the model as the experiment says.
    pub fn new(experiment: &Experiment, samples: Arc<Samples>) -> Result<Self, SetupError> {
        let labels = &samples.labels()[..samples.train_rows()];
        let partition = experiment.split.split(labels, samples.classes(), experiment.split_seed)?;
        let network = models::named(&experiment.model, samples.shape(), samples.classes())?;
        let layout = Arc::new(Layout::of(&network)?);
        Ok(Self { clients: clients(&partition, &samples), samples, network, layout })
    }

    /// What client `id` has.
    pub fn client(&self, id: ClientId) -> Option<Client<'_>> {
        let data = self.clients.get(id as usize)?;
        Some(Client { id, rows: &data.rows, holdout: &[], counts: &data.counts })
    }
}

fn clients(partition: &Partition, samples: &Samples) -> Vec<ClientData> {
    let counted = |rows: &Vec<u32>| {
        let mut counts = vec![0; samples.classes()];
        rows.iter().for_each(|&row| counts[samples.labels()[row as usize] as usize] += 1);
        ClientData { rows: rows.clone(), counts }
    };
    partition.clients.iter().map(counted).collect()
}
