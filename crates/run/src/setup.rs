//! What a run works on: the samples, who has which of them, and the model's shape.

use crate::experiment::Experiment;
use fedtvd_core::layout::Layout;
use fedtvd_core::network::{Network, NetworkError};
use fedtvd_core::profile::{Client, ClientId};
use fedtvd_core::samples::Samples;
use fedtvd_data::holdout::{Rows, keep_back};
use fedtvd_data::set::{LoadError, Loaded};
use fedtvd_data::split::{Deck, Partition, SplitError};
use fedtvd_data::statistics::counts;
use fedtvd_nn::models::{self, ModelError};
use std::sync::Arc;
use thiserror::Error;

/// Data, split and model of a run.
#[derive(Debug)]
pub struct Setup {
    /// The data set.
    pub samples: Arc<Samples>,
    /// Who has which training rows.
    pub partition: Partition,
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
    /// Rows that it keeps back.
    pub holdout: Vec<u32>,
    /// Label counts of the rows that it trains on.
    pub counts: Vec<u64>,
}

/// Why there is nothing to work on.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The data set.
    #[error(transparent)]
    Data(#[from] LoadError),
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

impl Setup {
    /// Splits the data and shapes the model as the experiment says.
    pub fn new(experiment: &Experiment, data: &Loaded) -> Result<Self, SetupError> {
        let samples = Arc::clone(&data.samples);
        let deck = Deck::new(&samples, data.groups.as_ref());
        let partition = experiment.split.split(&deck, experiment.split_seed)?;
        let rows = keep_back(&partition, experiment.holdout, experiment.split_seed);
        let client = |Rows { train, holdout }| {
            let counts = counts(&train, samples.labels(), samples.classes());
            ClientData { rows: train, holdout, counts }
        };
        let clients = rows.into_iter().map(client).collect();
        let network = models::named(&experiment.model, samples.shape(), samples.classes())?;
        let layout = Arc::new(Layout::of(&network)?);
        Ok(Self { samples, partition, clients, network, layout })
    }

    /// What client `id` has.
    pub fn client(&self, id: ClientId) -> Option<Client<'_>> {
        let data = self.clients.get(id as usize)?;
        Some(Client { id, rows: &data.rows, holdout: &data.holdout, counts: &data.counts })
    }
}
