//! Starts a run: in a new directory, from its last checkpoint or an earlier round, or over a given fleet.

use crate::configuration::{Config, Experiment};
use crate::directory::checkpoints::Found;
use crate::directory::manifest::VERSION;
use crate::directory::run_directory::damaged;
use crate::directory::{
    Checkpoints, DirectoryError, FORMAT, Inputs, Manifest, RunDirectory, Summary, rollback, rules, sha256,
};
use crate::extend;
use crate::rounds::Rounds;
use crate::run_error::RunError;
use crate::runner::{Runner, Saving};
use crate::setup::{Data, Setup};
use crate::simulation::{Resources, SimulationError, Workers, simulation};
use crate::start_model::{StartModel, model_bytes};
use crate::test_set::TestSet;
use fedtvd_core::round::{State, restored};
use fedtvd_core::rules::notation;
use fedtvd_data::set::Places;
use fedtvd_data::split::{Deck, PartitionFile};
use fedtvd_data::table::Schema;
use std::path::Path;
use std::sync::Arc;

impl Runner {
    /// Starts a new run in this directory.
    pub fn start(config: &Config, data: &Data, path: &Path, resources: Resources) -> Result<Self, RunError> {
        let experiment = Experiment::of(config)?;
        let setup = Arc::new(Setup::new(&experiment, data)?);
        Self::start_with(config, experiment, setup, path, resources)
    }

    /// Starts a new run of an experiment that is already set up.
    pub fn start_with(
        config: &Config,
        experiment: Experiment,
        setup: Arc<Setup>,
        path: &Path,
        resources: Resources,
    ) -> Result<Self, RunError> {
        let Workers { trainers, fingerprint } = Workers::on(&resources.device, &setup, resources.workers)?;
        let rounds = simulation(&experiment, &setup, trainers, resources.update_memory)?;
        let start =
            StartModel::of(&experiment, &setup.model, &setup.layout).map_err(SimulationError::from)?;
        let manifest = Manifest {
            format: FORMAT,
            version: VERSION.to_owned(),
            fingerprint,
            strategy: experiment.run.strategy.label.clone(),
            data_checksum: setup.data_checksum.clone(),
            split_hash: setup.split_hash.clone(),
            schema_hash: setup.schema_hash.clone(),
            start_hash: start.file.as_deref().map_or_else(String::new, sha256),
            rules: rules(&experiment.run.strategy),
            model_source: setup.model.source().to_owned(),
        };
        let deck = Deck::new(&setup.samples, None);
        let partition =
            PartitionFile::new(&experiment.data.set, &deck, &setup.partition, setup.names.clone());
        let partition = serde_json::to_string(&partition).expect("a partition is plain data");
        let schema = setup.schema.as_ref().map(Schema::text);
        let directory = RunDirectory::create_with(
            path,
            &config.with_model_for(setup.samples.shape()).resolved(),
            &manifest,
            &Inputs { partition: Some(&partition), schema: schema.as_deref(), start: start.file.as_deref() },
        )?;
        let lines = directory.append(0)?;
        let test_set = experiment.evaluation.test.then(|| TestSet::of(&setup, &resources));
        let mut runner = Self::new(directory, experiment, Some(setup), rounds, lines);
        runner.notes.extend(start.note);
        runner.test_set = test_set;
        Ok(runner)
    }

    /// A run over a given fleet, after the rounds that its directory holds. A checkpoint is saved after every round.
    pub fn over(
        directory: RunDirectory,
        experiment: Experiment,
        rounds: Rounds,
        checkpoints: Checkpoints,
    ) -> Result<Self, RunError> {
        let round = rounds.state().round;
        let done = directory.lines()?;
        let lines = directory.append(round)?;
        let rolled_back = rollback::ended_at(&directory, round)?;
        let mut runner = Self::new(directory, experiment, None, rounds, lines);
        runner.rolled_back_from = rolled_back.map(|rollback| rollback.from);
        runner.when = Saving::EveryRound;
        runner.checkpoints = checkpoints;
        done[..round as usize].iter().for_each(|line| runner.recall(line));
        runner.discard_other_best()?;
        Ok(runner)
    }

    /// Resumes the run in this directory; `Err` holds the summary of a finished one.
    pub fn resume(
        path: &Path,
        places: &Places,
        resources: Resources,
    ) -> Result<Result<Self, Summary>, RunError> {
        Self::resume_with(path, places, resources, None, &[])
    }

    /// Resumes the run in this directory, after going back to round `from` and with changed settings (see
    /// [`crate::extend()`]), if any are given. A refusal changes nothing. `Err` holds the summary of a run that is finished.
    pub fn resume_with(
        path: &Path,
        places: &Places,
        resources: Resources,
        from: Option<u32>,
        settings: &[String],
    ) -> Result<Result<Self, Summary>, RunError> {
        let directory = RunDirectory::open(path)?;
        if let Some(summary) = directory.summary()?.filter(|_| from.is_none() && settings.is_empty())
            && (directory.is_federation() || directory.model()?.is_some())
        {
            return Ok(Err(summary));
        }
        if directory.is_federation() {
            return Err(DirectoryError::Federation(path.display().to_string()).into());
        }
        let config = extend::changed(&directory, settings, from)?;
        let (experiment, setup) = set_up(&directory, &config, places)?;
        let Workers { trainers, fingerprint } = Workers::on(&resources.device, &setup, resources.workers)?;
        let mut rounds = simulation(&experiment, &setup, trainers, resources.update_memory)?;
        let manifest = directory.manifest()?;
        let mut notes = Vec::new();
        if manifest.version != VERSION {
            notes.push(format!(
                "this run was started with fedtvd {} and is resumed with {VERSION}: the result may differ",
                manifest.version
            ));
        }
        if let Some(difference) = manifest.fingerprint.difference(&fingerprint) {
            notes.push(format!(
                "this run was started with other arithmetic ({difference}): the result will not be bit-identical"
            ));
        }
        let mut lines = directory.lock()?;
        if let Some(begun) = rollback::begun(&directory)? {
            begun.complete(&mut lines)?;
        }
        match from {
            Some(round) if round as usize != directory.lines()?.len() => {
                rollback::begin(&directory, &setup.parts.shared, round)?.complete(&mut lines)?;
            }
            _ => {}
        }
        if !settings.is_empty() {
            let checkpoints = Checkpoints::new(directory.file("checkpoint"), experiment.rounds);
            let found = checkpoints.find(&setup.parts.shared, directory.lines()?.len() as u32)?;
            if let Some(checkpoint) = &found.checkpoint {
                fits(path, &experiment, &checkpoint.state)?;
            }
            extend::apply(&directory, &config, &mut lines)?;
        }
        match directory.summary()? {
            Some(summary) if directory.model()?.is_some() => return Ok(Err(summary)),
            // Its model is gone: the last rounds are computed again.
            Some(_) => directory.remove_summary()?,
            None => {}
        }
        let done = directory.lines()?;
        let checkpoints = Checkpoints::new(directory.file("checkpoint"), experiment.rounds);
        let Found { checkpoints, checkpoint, notes: passed_over } = checkpoints
            .find(&setup.parts.shared, done.len() as u32)?
            .or_refuse(done.len() as u32, u32::MAX)?;
        notes.extend(passed_over);
        let round = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.state.round);
        if let Some(checkpoint) = checkpoint {
            fits(path, &experiment, &checkpoint.state)?;
            rounds.restore(checkpoint.state, checkpoint.memories);
        }
        lines.truncate(round)?;
        let rolled_back = rollback::ended_at(&directory, round)?;
        let test_set = experiment.evaluation.test.then(|| TestSet::of(&setup, &resources));
        let mut runner = Self::new(directory, experiment, Some(setup), rounds, lines);
        runner.test_set = test_set;
        runner.rolled_back_from = rolled_back.map(|rollback| rollback.from);
        runner.notes.extend(notes);
        runner.checkpoints = checkpoints;
        done[..round as usize].iter().for_each(|line| runner.recall(line));
        runner.discard_other_best()?;
        Ok(Ok(runner))
    }
}

/// Fails unless a state that was read from a checkpoint of this directory fits the run.
pub fn fits(path: &Path, experiment: &Experiment, state: &State) -> Result<(), DirectoryError> {
    restored::check(&experiment.run, state).map_err(|misfit| {
        let path = path.display().to_string();
        DirectoryError::Checkpoint { path, round: state.round, misfit: Box::new(misfit) }
    })
}

/// Experiment and setup of a run directory, on the data that it was started with.
pub fn reopen(directory: &RunDirectory, places: &Places) -> Result<(Experiment, Arc<Setup>), RunError> {
    let path = || directory.file("config.toml").display().to_string();
    let config = Config::parse(&directory.config()?)
        .map_err(|error| DirectoryError::Config { path: path(), why: error.to_string() })?;
    set_up(directory, &config, places)
}

fn set_up(
    directory: &RunDirectory,
    config: &Config,
    places: &Places,
) -> Result<(Experiment, Arc<Setup>), RunError> {
    let unusable = |error: &dyn std::fmt::Display| DirectoryError::Config {
        path: directory.file("config.toml").display().to_string(),
        why: error.to_string(),
    };
    let manifest = directory.manifest()?;
    all_registered(directory, &manifest)?;
    let mut experiment = Experiment::of(config).map_err(|error| unusable(&error))?;
    same_sources(&manifest, &experiment)?;
    directory.use_start(&mut experiment);
    let data = Data::load(&experiment.data, places)?;
    same_data(&manifest, &experiment, &data.checksum, &data.schema_hash())?;
    let setup = Arc::new(Setup::new(&experiment, &data)?);
    if let (Some(stored), Some(schema)) = (directory.schema()?, &setup.schema) {
        let path = directory.file("schema.toml");
        let stored: Schema = stored.parse().map_err(|why| damaged(&path, why))?;
        let hash = |schema: &Schema| sha256(schema.text().as_bytes());
        same(&path.display().to_string(), &hash(schema), &hash(&stored))?;
    }
    same_split(&manifest, &setup)?;
    same_model(&manifest, &setup)?;
    Ok((experiment, setup))
}

/// Fails if the data, their schema or their split differ from those that a run was made with.
pub fn same_inputs(directory: &RunDirectory, experiment: &Experiment, setup: &Setup) -> Result<(), RunError> {
    let manifest = directory.manifest()?;
    same_sources(&manifest, experiment)?;
    same_data(&manifest, experiment, &setup.data_checksum, &setup.schema_hash)?;
    same_split(&manifest, setup)?;
    same_model(&manifest, setup)?;
    match experiment.start.as_ref().map(|path| (path, model_bytes(path))) {
        Some((path, Ok(file))) => {
            same(&format!("model {}", path.display()), &manifest.start_hash, &sha256(&file))
        }
        // A finished run has its own copy.
        _ => Ok(()),
    }
}

/// Fails unless the program has the methods of a run that are not its own, with the sources that the run was made with.
pub fn same_rules(directory: &RunDirectory, config: &Config) -> Result<(), RunError> {
    let manifest = directory.manifest()?;
    all_registered(directory, &manifest)?;
    same_sources(&manifest, &Experiment::of(config)?)
}

fn all_registered(directory: &RunDirectory, manifest: &Manifest) -> Result<(), RunError> {
    let missing = manifest.rules.keys().find(|name| notation::find(name).is_err());
    missing.map_or(Ok(()), |name| {
        Err(RunError::Unregistered { name: name.clone(), path: directory.path().display().to_string() })
    })
}

fn same_sources(manifest: &Manifest, experiment: &Experiment) -> Result<(), RunError> {
    rules(&experiment.run.strategy).iter().try_for_each(|(name, source)| {
        let was = manifest.rules.get(name).map_or("", String::as_str);
        same(&format!("source of the strategy {name}"), was, source)
    })
}

fn same_data(
    manifest: &Manifest,
    experiment: &Experiment,
    checksum: &str,
    schema_hash: &str,
) -> Result<(), RunError> {
    // A run that was made before tables had schemas has no hash of one. A schema that is made changes with its table.
    if let Some(schema) = experiment.data.schema.as_ref().filter(|_| !manifest.schema_hash.is_empty()) {
        same(&format!("schema {}", schema.display()), &manifest.schema_hash, schema_hash)?;
    }
    same(&format!("data set {}", experiment.data.set), &manifest.data_checksum, checksum)
}

fn same_split(manifest: &Manifest, setup: &Setup) -> Result<(), RunError> {
    // The sites of a federation do not report their split; equal bits will show that it is the same.
    if manifest.split_hash.is_empty() {
        return Ok(());
    }
    same("split", &manifest.split_hash, &setup.split_hash)
}

fn same_model(manifest: &Manifest, setup: &Setup) -> Result<(), RunError> {
    same("source of the model", &manifest.model_source, setup.model.source())
}

fn same(what: &str, was: &str, is: &str) -> Result<(), RunError> {
    let short = |hash: &str| hash.chars().take(16).collect();
    let changed = || RunError::Changed { what: what.to_owned(), was: short(was), is: short(is) };
    if was == is { Ok(()) } else { Err(changed()) }
}
