//! The samples, the split and the model of a run.

use crate::backend::{ModelSource, other_model, other_models};
use crate::configuration::table_model::{is_table, table_layers};
use crate::configuration::{ClassMismatch, Experiment, LiarsError};
use crate::directory::digest;
use fedtvd_core::matching::{Chain, ChainError};
use fedtvd_core::model::{
    DefinitionError, Layout, ModelDefinition, OtherModel, Parts, PartsError, Role, Shape,
};
use fedtvd_core::round::ClientData;
use fedtvd_core::rules::Extent;
use fedtvd_core::train::{ClassWeightsError, Samples};
use fedtvd_data::holdout::ClientRows;
use fedtvd_data::set::{DataOptions, LoadError, Loaded, Places};
use fedtvd_data::split::{Dealt, Deck, Partition, ShiftError, SplitError, Terms};
use fedtvd_data::statistics::counts;
use fedtvd_data::table::{Remark, Schema, StandardsError, standards};
use fedtvd_nn::models::{self, LayersError, ModelError};
use std::sync::Arc;
use thiserror::Error;

/// Data, split and model of a run.
#[derive(Debug)]
pub struct Setup {
    /// The data set, with the clients' rows as they see them.
    pub samples: Arc<Samples>,
    /// The data set that clients train on: the same, unless liars change their labels.
    pub training: Arc<Samples>,
    /// The split of the training rows, before hold-out.
    pub partition: Partition,
    /// Hash of the split, the hold-out and the feature shift.
    pub split_hash: String,
    /// The data of each client.
    pub clients: Vec<ClientData>,
    /// The clients' names, if they have any.
    pub names: Option<Vec<String>>,
    /// Notes for the user about the data and the split.
    pub notes: Vec<String>,
    /// The model.
    pub model: ModelDefinition,
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
    /// A feature shift.
    #[error(transparent)]
    Shift(#[from] ShiftError),
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
    /// The model's layers or tensors.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// A registered model that cannot be made.
    #[error("model {name}: {why}")]
    Other {
        /// The model.
        name: String,
        /// What its source says.
        why: String,
    },
    /// A model whose units cannot be matched.
    #[error(
        "{strategy} matches the units of the clients' networks: {why}; choose another model with model.name or model.layers"
    )]
    Matching {
        /// The strategy.
        strategy: String,
        /// Why they cannot be matched.
        why: ChainError,
    },
    /// A strategy that begins with several models.
    #[error(
        "{strategy} begins with several models, and the source of model {model} makes one; choose another model or another strategy"
    )]
    SeveralModels {
        /// The strategy.
        strategy: String,
        /// The model.
        model: String,
    },
    /// A strategy that carries batch statistics, for a model with other buffers.
    #[error(
        "{strategy} carries the statistics of batch norms, and the model has a buffer {tensor} that is none; choose another model \
         or another strategy"
    )]
    OtherBuffer {
        /// The strategy.
        strategy: String,
        /// The buffer.
        tensor: String,
    },
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
        let shifted = dealt.shifted(&experiment.data.set, samples)?;
        let Dealt { partition, clients, names, notes, .. } = dealt;
        let notes = [data.loaded.notes.clone(), notes].concat();
        let (loaded, remarks) = standardised(experiment, &data.loaded, &clients)?;
        let notes = [notes, remarks.iter().map(Remark::to_string).collect()].concat();
        let schema = loaded.table.as_ref().map(|table| table.schema.clone());
        let (samples, classes) = (shifted.map_or(loaded.samples, Arc::new), samples.classes());
        let model = definition(experiment, samples.shape(), classes)?;
        let layout = Arc::new(model.layout()?);
        let parts = parts(experiment, &model, &layout)?;
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
            model,
            parts,
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
pub fn parts(
    experiment: &Experiment,
    model: &ModelDefinition,
    layout: &Arc<Layout>,
) -> Result<Parts, SetupError> {
    let strategy = &experiment.run.strategy;
    if let (true, ModelDefinition::Other(other)) = (strategy.models() > 1, model) {
        let (strategy, model) = (strategy.label.clone(), other.other.clone());
        return Err(SetupError::SeveralModels { strategy, model });
    }
    let parts = strategy.parts(layout);
    if let Some(stays) = strategy.sharing.stays() {
        let label = || strategy.label.clone();
        parts.check().map_err(|why| SetupError::Parts { strategy: label(), stays, why })?;
    }
    let carries_statistics = strategy.needs().carries.iter().any(|carried| carried.extent == Extent::Buffers);
    let other = layout.tensors().iter().find(|tensor| tensor.role == Role::Buffer);
    if let Some(tensor) = other.filter(|_| carries_statistics) {
        let (strategy, tensor) = (strategy.label.clone(), tensor.name.clone());
        return Err(SetupError::OtherBuffer { strategy, tensor });
    }
    Ok(parts)
}

/// The model that an experiment names or defines, for samples of this shape and this number of classes.
pub fn definition(
    experiment: &Experiment,
    shape: Shape,
    classes: usize,
) -> Result<ModelDefinition, SetupError> {
    let network = match experiment.layers.as_slice() {
        [] if !experiment.model_chosen && is_table(shape) => {
            models::from_lines(&table_layers(shape[0]), shape, classes).map_err(SetupError::Layers)?
        }
        [] => match other_model(&experiment.model) {
            Some(source) => {
                let model = registered(&experiment.model, source.as_ref(), shape, classes)?;
                return match experiment.run.strategy.matching {
                    None => Ok(model),
                    Some(_) => Err(SetupError::Matching {
                        strategy: experiment.run.strategy.label.clone(),
                        why: ChainError::NoLayers(experiment.model.clone()),
                    }),
                };
            }
            None => models::named(&experiment.model, shape, classes).map_err(also_registered)?,
        },
        lines => models::from_lines(lines, shape, classes).map_err(SetupError::Layers)?,
    };
    let strategy = &experiment.run.strategy;
    if strategy.matching.is_some() {
        let label = || strategy.label.clone();
        Chain::of_network(&network).map_err(|why| SetupError::Matching { strategy: label(), why })?;
    }
    Ok(ModelDefinition::Network(network))
}

fn registered(
    name: &str,
    source: &dyn ModelSource,
    shape: Shape,
    classes: usize,
) -> Result<ModelDefinition, SetupError> {
    let failed = |why: String| SetupError::Other { name: name.to_owned(), why };
    let model = source.define(shape, classes).map_err(failed)?;
    if (model.other.as_str(), model.input, model.classes) != (name, shape, classes) {
        let OtherModel { other, input, classes: own, .. } = model;
        return Err(failed(format!(
            "its source made {other} for {input:?} and {own} classes; asked for was {shape:?} and {classes}"
        )));
    }
    Ok(ModelDefinition::Other(model))
}

/// The error, with the registered models among the known ones.
fn also_registered(error: ModelError) -> SetupError {
    SetupError::Model(match error {
        ModelError::Unknown { name, known } => {
            let names: Vec<String> = std::iter::once(known).chain(other_models()).collect();
            ModelError::Unknown { name, known: names.join(", ") }
        }
        other => other,
    })
}
