//! A trained model from its file, with all that is needed to use it: its layers, its classes, and how samples are read.

use crate::request::{Failure, quoted};
use anyhow::{Context, anyhow};
use fedtvd_core::model::{ModelCard, ModelDefinition, Params};
use fedtvd_core::rules::Strategy;
use fedtvd_core::train::{Samples, probabilities};
use fedtvd_data::set::{Places, named};
use fedtvd_data::table::Schema;
use fedtvd_net::federation::Ledger;
use fedtvd_run::backend::Device;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::directory::{HistoryError, RunDirectory, history};
use fedtvd_run::setup::{Data, definition};
use fedtvd_run::start_model::model_bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A model that can be used.
pub(crate) struct TrainedModel {
    /// The file that holds it.
    pub(crate) file: PathBuf,
    pub(crate) definition: ModelDefinition,
    pub(crate) params: Arc<Params>,
    pub(crate) class_names: Vec<String>,
    /// How rows become its input, if it is for tables.
    pub(crate) schema: Option<Schema>,
    /// Mean and standard deviation of each channel, if it is for images.
    pub(crate) normal: Vec<(f32, f32)>,
    /// What evaluates it.
    pub(crate) device: Device,
}

/// The model's file in a run directory, or the file itself.
pub(crate) fn file(model: &Path) -> Result<PathBuf, Failure> {
    if model.join("manifest.json").is_file() {
        let run = RunDirectory::open(model).map_err(Failure::request)?;
        return run.model().map_err(Failure::request)?.ok_or_else(|| unfinished(&run));
    }
    Ok(if model.is_dir() { model.join("model.safetensors") } else { model.to_owned() })
}

/// What to do with a run that has no final model yet.
fn unfinished(run: &RunDirectory) -> Failure {
    let name = quoted(&run.path().display().to_string());
    let finished = run.summary().is_ok_and(|summary| summary.is_some());
    let state = if finished && !run.is_federation() {
        format!(
            "the run is finished, but its model.safetensors is gone; to compute it again: fedtvd resume {name}"
        )
    } else if !run.is_federation() {
        format!("the run is unfinished; to resume it: fedtvd resume {name}")
    } else if Ledger::in_use(&run.file("federation")) {
        format!("its server is running; to see how far it is: fedtvd serve --status --out {name}")
    } else {
        format!(
            "the federation is unfinished; to resume it: fedtvd serve {name} with the options of its server"
        )
    };
    let yet = if finished { "" } else { " yet" };
    let kept = history::rounds(run).unwrap_or_default();
    let earlier = kept.last().map_or_else(String::new, |round| {
        format!("; to evaluate the model after round {round}: fedtvd evaluate {name} --round {round}")
    });
    Failure::Request(anyhow!("{name} has no model{yet}: {state}{earlier}"))
}

/// The schema of a model for tables: from its file, or from the run directory that it is in.
pub(crate) fn schema(file: &Path, bytes: &[u8]) -> Result<Option<Schema>, Failure> {
    let card = ModelCard::of(bytes).map(|card| (file.to_owned(), card.schema));
    let beside = || {
        let path = file.with_file_name("schema.toml");
        std::fs::read_to_string(&path).ok().map(|text| (path, text))
    };
    let Some((path, text)) = card.or_else(beside) else { return Ok(None) };
    let schema: Schema = text
        .parse()
        .with_context(|| format!("the schema of {}", path.display()))
        .map_err(Failure::Request)?;
    // Their inputs would be 0 in every row.
    let open: Vec<&str> = schema.open().map(|(name, _)| name).collect();
    if !open.is_empty() {
        return Err(Failure::Request(anyhow!(
            "the schema of {} has no centre and scale of {}; a trained model's schema has all of them",
            path.display(),
            open.join(", ")
        )));
    }
    Ok(Some(schema))
}

/// Fails if a card's layers are not for the rows and classes of its schema.
fn check_card(path: &Path, definition: &ModelDefinition, schema: &Schema) -> Result<(), Failure> {
    let (inputs, classes) = (schema.inputs(), schema.label.classes.len());
    if definition.input() == [inputs, 1, 1] && definition.classes() == classes {
        return Ok(());
    }
    Err(Failure::Request(anyhow!(
        "{} contradicts itself: its layers are for inputs of shape {:?} and {} classes, its schema for [{inputs}, 1, 1] and \
         {classes}",
        path.display(),
        definition.input(),
        definition.classes()
    )))
}

/// Whether a file starts as safetensors do: the length of a header, and the header in JSON.
fn is_safetensors(bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk() else { return false };
    u64::from_le_bytes(*length) <= rest.len() as u64 && rest.first() == Some(&b'{')
}

impl TrainedModel {
    /// Reads a model; the configuration beside it is used for what its file does not say.
    pub(crate) fn read(model: &Path, config: Option<Config>, places: &Places) -> Result<Self, Failure> {
        let path = file(model)?;
        if model.is_dir() {
            one_model(&path)?;
        }
        let bytes = model_bytes(&path)
            .with_context(|| format!("reading {}", path.display()))
            .map_err(Failure::Request)?;
        if !is_safetensors(&bytes) {
            return Err(Failure::Request(anyhow!(
                "{} is not a model file; name a run directory, or the model.safetensors in it",
                path.display()
            )));
        }
        let schema = schema(&path, &bytes)?;
        let Description { definition, class_names, normal } = match (ModelCard::of(&bytes), &schema) {
            (Some(card), Some(schema)) => {
                check_card(&path, &card.network, schema)?;
                let class_names = schema.class_names();
                Description { definition: card.network, class_names, normal: Vec::new() }
            }
            _ => described(&path, config, schema.as_ref(), places)?,
        };
        let layout = Arc::new(definition.layout().map_err(Failure::request)?);
        let params = Params::from_safetensors_of_any_width(&bytes, &layout);
        let params = match (params, part_of_model(&path)) {
            (Err(_), Some(why)) => return Err(why),
            (params, _) => params.with_context(|| path.display().to_string()).map_err(Failure::Request)?,
        };
        let definition = definition.with_widths(params.layout.widths());
        let (params, device) = (Arc::new(params), Device::default());
        Ok(Self { file: path, definition, params, class_names, schema, normal, device })
    }

    /// The model after a round: a checkpoint, or the final model.
    pub(crate) fn after_round(
        run: &RunDirectory,
        round: u32,
        config: Option<Config>,
        places: &Places,
    ) -> Result<Self, Failure> {
        let path = run.file("model.safetensors");
        one_model(&path)?;
        let schema = schema(&path, &[])?;
        let Description { definition, class_names, normal } =
            described(&path, config.clone(), schema.as_ref(), places)?;
        let layout = Arc::new(definition.layout().map_err(Failure::request)?);
        let rounds = run.summary().map_err(Failure::request)?.map(|summary| summary.rounds);
        match history::model(run, &layout, round) {
            Ok((params, file)) => {
                let device = Device::default();
                Ok(Self { file, definition, params, class_names, schema, normal, device })
            }
            Err(HistoryError::NotKept { .. }) if rounds == Some(round) => {
                Self::read(run.path(), config, places)
            }
            Err(HistoryError::NotKept { directory, round, mut available }) => {
                available.extend(rounds.filter(|last| !available.contains(last)));
                Err(Failure::request(HistoryError::NotKept { directory, round, available }))
            }
            Err(error) => Err(Failure::request(error)),
        }
    }

    /// The probability of each class for all of these samples.
    pub(crate) fn probabilities(&self, samples: Samples) -> Result<Vec<Vec<f64>>, Failure> {
        let rows: Vec<u32> = (0..samples.rows() as u32).collect();
        let trainer = self.device.trainer(&self.definition, &Arc::new(samples));
        let logits = trainer.map_err(Failure::request)?.logits(&self.params, &rows).map_err(Failure::work)?;
        let found: Vec<Vec<f64>> = logits.chunks(self.definition.classes()).map(probabilities).collect();
        match found.iter().position(|row| row.iter().any(|p| !p.is_finite())) {
            Some(place) => Err(Failure::Work(anyhow!(
                "{}: the probabilities of sample {} are not finite: a value of it is too large, or the model is broken",
                self.file.display(),
                place + 1
            ))),
            None => Ok(found),
        }
    }

    /// The name of the most probable class; the first of equal ones.
    pub(crate) fn best(&self, probabilities: &[f64]) -> &str {
        let better =
            |best: usize, class: usize| if probabilities[class] > probabilities[best] { class } else { best };
        &self.class_names[(1..probabilities.len()).fold(0, better)]
    }
}

/// The strategy of the run that a file is in.
fn strategy_beside(path: &Path) -> Option<Strategy> {
    let config = Config::parse(&std::fs::read_to_string(path.with_file_name("config.toml")).ok()?).ok()?;
    Some(Experiment::of(&config).ok()?.run.strategy)
}

/// The folder of a file, for messages.
fn folder(path: &Path) -> String {
    path.parent().map_or_else(String::new, |run| quoted(&run.display().to_string()))
}

/// Fails if the run that a file is in has several models.
fn one_model(path: &Path) -> Result<(), Failure> {
    let Some(strategy) = strategy_beside(path).filter(|strategy| strategy.grouping.is_some()) else {
        return Ok(());
    };
    let run = folder(path);
    Err(Failure::Request(anyhow!(
        "{} has a model for each branch; name the file of one, such as {}, or evaluate the one that each client uses: \
         fedtvd evaluate {run} --clients",
        strategy.label,
        path.with_file_name("model-1.safetensors").display()
    )))
}

/// Why the model of the run that a file is in is not complete: a part of it stays at each client.
fn part_of_model(path: &Path) -> Option<Failure> {
    let strategy = strategy_beside(path)?;
    let stays = strategy.sharing.stays()?;
    let run = folder(path);
    Some(Failure::Request(anyhow!(
        "{} has only what clients share: under {} the {stays} stay at each client. To evaluate each client's own model: \
         fedtvd evaluate {run} --clients",
        path.display(),
        strategy.label
    )))
}

/// What a model is and how its samples are read.
struct Description {
    definition: ModelDefinition,
    class_names: Vec<String>,
    normal: Vec<(f32, f32)>,
}

/// Layers, class names and normalisation from the configuration of the run and its data set.
fn described(
    path: &Path,
    config: Option<Config>,
    schema: Option<&Schema>,
    places: &Places,
) -> Result<Description, Failure> {
    let beside = path.with_file_name("config.toml");
    let config = match config {
        Some(config) => config,
        None => {
            let text = std::fs::read_to_string(&beside).with_context(|| {
                format!("{} does not say what its layers are: reading {}", path.display(), beside.display())
            });
            let config = Config::parse(&text.map_err(Failure::Request)?);
            config.with_context(|| beside.display().to_string()).map_err(Failure::Request)?
        }
    };
    let experiment = Experiment::of(&config).map_err(Failure::request)?;
    let (shape, class_names, normal) = match (schema, named(&experiment.data.set)) {
        (Some(schema), _) => ([schema.inputs(), 1, 1], schema.class_names(), Vec::new()),
        (None, Some(entry)) => (entry.shape, entry.class_names(), entry.normal()),
        (None, None) => {
            let loaded = Data::load(&experiment.data, places).map_err(Failure::request)?.loaded;
            (loaded.samples.shape(), loaded.class_names, loaded.normal)
        }
    };
    let definition = definition(&experiment, shape, class_names.len()).map_err(Failure::request)?;
    Ok(Description { definition, class_names, normal })
}
