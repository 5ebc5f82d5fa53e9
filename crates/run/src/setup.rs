//! The samples, the split and the model of a run.

use crate::configuration::table_model::{is_table, table_layers};
use crate::configuration::{ClassMismatch, Experiment, LiarsError};
use crate::directory::digest;
use fedtvd_core::model::{Layout, Network, NetworkError, Parts, PartsError, Shape};
use fedtvd_core::round::ClientData;
use fedtvd_core::train::{ClassWeightsError, Samples};
use fedtvd_data::holdout::ClientRows;
use fedtvd_data::set::{DataOptions, LoadError, Loaded, Places};
use fedtvd_data::split::{Dealt, Deck, Partition, SplitError, Terms};
use fedtvd_data::statistics::counts;
use fedtvd_data::table::{Remark, Schema, StandardsError, standards};
use fedtvd_nn::models::{self, LayersError, ModelError};
use std::sync::Arc;
use thiserror::Error;

/// Data, split and model of a run.
#[derive(Debug)]
pub struct Setup {
    /// The data set.
    pub samples: Arc<Samples>,
    /// The data set that clients train on: the same, unless liars change their labels.
    pub training: Arc<Samples>,
    /// The split of the training rows, before hold-out.
    pub partition: Partition,
    /// Hash of the split and the hold-out.
    pub split_hash: String,
    /// The data of each client.
    pub clients: Vec<ClientData>,
    /// The clients' names, if they have any.
    pub names: Option<Vec<String>>,
    /// Notes for the user about the data and the split.
    pub notes: Vec<String>,
    /// The model.
    pub network: Network,
    /// Its tensors.
    pub layout: Arc<Layout>,
    /// What of it travels, and what stays at the clients.
    pub parts: Parts,
    /// Checksum of the data set.
    pub data_checksum: String,
    /// Hash of the schema that the data was read with; empty if it is not a table.
    pub schema_hash: String,
    /// The same schema with all centres and scales.
    pub schema: Option<Schema>,
}

/// A data set that several runs share.
#[derive(Clone, Debug)]
pub struct Data {
    /// Values, labels, owners.
    pub loaded: Loaded,
    /// Checksum of values and labels.
    pub checksum: String,
}

impl Data {
    /// Reads a data set.
    pub fn load(options: &DataOptions, places: &Places) -> Result<Self, SetupError> {
        Ok(Self::from(options.load(places)?))
    }
}

impl Data {
    /// Hash of the table's schema as it was given or made; empty if there is none.
    pub fn schema_hash(&self) -> String {
        let schema = self.loaded.table.as_ref().map(|table| digest::sha256(table.schema.text().as_bytes()));
        schema.unwrap_or_default()
    }
}

impl From<Loaded> for Data {
    fn from(loaded: Loaded) -> Self {
        Self { checksum: digest::samples(&loaded.samples), loaded }
    }
}

/// Why data, split or model cannot be created.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The data set.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The split.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// The model's name.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The reference.
    #[error(transparent)]
    Reference(#[from] ClassMismatch),
    /// The class weights.
    #[error("local.class_weights: {0}")]
    ClassWeights(#[from] ClassWeightsError),
    /// The liars.
    #[error(transparent)]
    Liars(#[from] LiarsError),
    /// A user-defined model.
    #[error("model.layers: {0}")]
    Layers(LayersError),
    /// A table's centres and scales.
    #[error(transparent)]
    Standards(#[from] StandardsError),
    /// The model's layers.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A model that cannot be divided as the strategy needs it.
    #[error(
        "{strategy} keeps {stays} at each client: {why}; choose another model with model.name or model.layers"
    )]
    Parts {
        /// The strategy.
        strategy: String,
        /// What would stay.
        stays: &'static str,
        /// Why it cannot be divided.
        why: PartsError,
    },
}

impl Setup {
    /// Splits the samples and creates the model as the experiment says.
    pub fn new(experiment: &Experiment, data: &Data) -> Result<Self, SetupError> {
        let samples = &data.loaded.samples;
        let deck = Deck::new(samples, data.loaded.groups.as_ref());
        let Experiment { split_seed: seed, holdout, .. } = *experiment;
        let reference = experiment.reference.resolve(samples.classes())?;
        experiment.run.class_weights.check(samples.classes())?;
        let terms = Terms { set: &experiment.data.set, seed, holdout, reference: reference.as_ref() };
        let dealt = experiment.split.deal(&deck, &terms)?;
        let split_hash = dealt.hash();
        let Dealt { partition, clients, names, notes } = dealt;
        let notes = [data.loaded.notes.clone(), notes].concat();
        let (loaded, remarks) = standardised(experiment, &data.loaded, &clients)?;
        let notes = [notes, remarks.iter().map(Remark::to_string).collect()].concat();
        let schema = loaded.table.as_ref().map(|table| table.schema.clone());
        let (samples, classes) = (loaded.samples, samples.classes());
        let network = network(experiment, &samples)?;
        let layout = Arc::new(Layout::of(&network)?);
        let training = match &experiment.liars {
            None => Arc::clone(&samples),
            Some(liars) => {
                liars.check(&experiment.run, clients.len())?;
                let rows: Vec<&[u32]> = clients.iter().map(|client| client.train.as_slice()).collect();
                liars.samples(&samples, &rows)
            }
        };
        let client = |ClientRows { train, holdout }| {
            let counts = counts(&train, training.labels(), classes);
            ClientData { rows: train, holdout, counts }
        };
        let clients = clients.into_iter().map(client).collect();
        let data_checksum = data.checksum.clone();
        let schema_hash = data.schema_hash();
        Ok(Self {
            samples,
            training,
            partition,
            split_hash,
            clients,
            names,
            notes,
            network,
            parts: parts(experiment, &layout)?,
            layout,
            data_checksum,
            schema_hash,
            schema,
        })
    }
}

/// The data with the centres and scales that the clients of a federation would compute together, and remarks on them.
fn standardised(
    experiment: &Experiment,
    loaded: &Loaded,
    clients: &[ClientRows],
) -> Result<(Loaded, Vec<Remark>), SetupError> {
    let open = loaded.table.as_ref().and_then(|table| Some((&table.schema, table.columns.as_ref()?)));
    let Some((schema, columns)) = open else { return Ok((loaded.clone(), Vec::new())) };
    let moments = (0..).zip(clients.iter().map(|client| columns.moments(schema, &client.train))).collect();
    let (found, remarks) = standards(schema, &moments, experiment.run.mode)?;
    Ok((loaded.standardised(&found)?, remarks))
}

/// What travels of a model under the experiment's strategy, and what stays at the clients.
pub fn parts(experiment: &Experiment, layout: &Arc<Layout>) -> Result<Parts, SetupError> {
    let strategy = &experiment.run.strategy;
    let parts = strategy.parts(layout);
    if let Some(stays) = strategy.sharing.stays() {
        let label = || strategy.label.clone();
        parts.check().map_err(|why| SetupError::Parts { strategy: label(), stays, why })?;
    }
    Ok(parts)
}

/// The model that an experiment names or defines, for samples of this shape.
pub fn network(experiment: &Experiment, samples: &Samples) -> Result<Network, SetupError> {
    network_for(experiment, samples.shape(), samples.classes())
}

/// The same without samples, as on a server without data.
pub fn network_for(experiment: &Experiment, shape: Shape, classes: usize) -> Result<Network, SetupError> {
    Ok(match experiment.layers.as_slice() {
        [] if !experiment.model_chosen && is_table(shape) => {
            models::from_lines(&table_layers(shape[0]), shape, classes).map_err(SetupError::Layers)?
        }
        [] => models::named(&experiment.model, shape, classes)?,
        lines => models::from_lines(lines, shape, classes).map_err(SetupError::Layers)?,
    })
}
