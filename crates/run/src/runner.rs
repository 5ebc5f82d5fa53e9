//! One experiment into a run directory: start, go on after a stop or a crash, finish.

use crate::checkpoint::CheckpointError;
use crate::checkpoints::{Checkpoints, Found};
use crate::config::{Config, ConfigError};
use crate::directory::{DirectoryError, Lines, RunDirectory};
use crate::experiment::{Experiment, ExperimentError};
use crate::files::{FileError, write};
use crate::fleet::FleetFailure;
use crate::manifest::{FORMAT, Manifest, VERSION};
use crate::rounds::{RoundError, Rounds};
use crate::setup::{Data, Setup, SetupError};
use crate::simulation::{Resources, SimulationError, Workers, simulation};
use crate::summary::{Summary, images, last_accuracy, peak_memory};
use fedtvd_core::record::RoundRecord;
use fedtvd_data::set::Places;
use fedtvd_data::split::{Deck, PartitionFile};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thiserror::Error;

/// A run with its directory.
pub struct Runner {
    directory: RunDirectory,
    experiment: Experiment,
    /// What a simulation works on; the sites of a federation keep it to themselves.
    setup: Option<Arc<Setup>>,
    rounds: Rounds,
    lines: Lines,
    accuracies: Vec<Option<f64>>,
    seconds: f64,
    images: u64,
    started: Instant,
    saved: Instant,
    /// What the last checkpoint cost, and what all did.
    saving: Duration,
    spent: Duration,
    checkpoints: Checkpoints,
    when: When,
    notes: Vec<String>,
}

/// When the state is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// Never: the run starts again when it is interrupted.
    Never,
    /// Now and then: what is lost is computed again.
    Seldom,
    /// After every round, before the next one's jobs go out.
    Always,
}

/// Why a run cannot start, go on or end.
#[derive(Debug, Error)]
pub enum RunError {
    /// The configuration's text.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The configuration's meaning.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// Data, split or model.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The run directory.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The start of a simulation.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// A round.
    #[error(transparent)]
    Round(#[from] RoundError),
    /// The data are not those that the run began with.
    #[error(
        "the {what} changed since the run began: its hash was {was} and is {is}; bring back the old one, or start a new run"
    )]
    Changed {
        /// Data set or split.
        what: String,
        /// The hash in the manifest.
        was: String,
        /// The hash now.
        is: String,
    },
}

impl RunError {
    /// Whether the request was wrong, rather than the work.
    pub fn request(&self) -> bool {
        match self {
            Self::Config(_) | Self::Experiment(_) | Self::Setup(_) | Self::Simulation(_) => true,
            Self::Directory(error) => !matches!(error, DirectoryError::File(_)),
            Self::Round(error) => error.request(),
            Self::File(_) | Self::Checkpoint(_) | Self::Changed { .. } => false,
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug)]
pub enum End {
    /// All rounds are done.
    Done(Summary),
    /// It was asked to stop after this many rounds, and is saved.
    Stopped(u32),
}

/// A checkpoint is due after this time, and when all of them with one more like the last cost no more than one part in
/// so many of the time.
const INTERVAL: Duration = Duration::from_secs(3);
const COST_FACTOR: u32 = 60;

impl Runner {
    /// A new run in this directory.
    pub fn start(config: &Config, data: &Data, path: &Path, resources: Resources) -> Result<Self, RunError> {
        let experiment = Experiment::of(config)?;
        let setup = Arc::new(Setup::new(&experiment, data)?);
        Self::start_with(config, experiment, setup, path, resources)
    }

    /// A new run of an experiment that is set up already.
    pub fn start_with(
        config: &Config,
        experiment: Experiment,
        setup: Arc<Setup>,
        path: &Path,
        resources: Resources,
    ) -> Result<Self, RunError> {
        let Workers { trainers, fingerprint } = Workers::on_cpu(&setup, resources.workers)?;
        let rounds = simulation(&experiment, &setup, trainers, resources.update_memory)?;
        let manifest = Manifest {
            format: FORMAT,
            version: VERSION.to_owned(),
            fingerprint,
            strategy: experiment.run.strategy.label.clone(),
            data_checksum: setup.data_checksum.clone(),
            split_hash: setup.split_hash.clone(),
        };
        let deck = Deck::new(&setup.samples, None);
        let partition =
            PartitionFile::new(&experiment.data.set, &deck, &setup.partition, setup.names.clone());
        let partition = serde_json::to_string(&partition).expect("a partition is plain data");
        let directory = RunDirectory::create(path, &config.resolved(), &manifest, Some(&partition))?;
        let lines = directory.append(0)?;
        Ok(Self::new(directory, experiment, Some(setup), rounds, lines))
    }

    /// A run whose rounds come from elsewhere, after so many that its directory holds. It is saved after every round,
    /// beside the checkpoints that are there.
    pub fn over(
        directory: RunDirectory,
        experiment: Experiment,
        rounds: Rounds,
        checkpoints: Checkpoints,
    ) -> Result<Self, RunError> {
        let round = rounds.state().round;
        let done = directory.lines()?;
        let lines = directory.append(round)?;
        let mut runner = Self::new(directory, experiment, None, rounds, lines);
        runner.when = When::Always;
        runner.checkpoints = checkpoints;
        done[..round as usize].iter().for_each(|line| runner.count(line));
        Ok(runner)
    }

    /// Goes on with the run in this directory; `Err` holds the summary of one that is done.
    pub fn resume(
        path: &Path,
        places: &Places,
        resources: Resources,
    ) -> Result<Result<Self, Summary>, RunError> {
        let directory = RunDirectory::open(path)?;
        if let Some(summary) = directory.summary()? {
            return Ok(Err(summary));
        }
        if directory.is_federation() {
            return Err(DirectoryError::Federation(path.display().to_string()).into());
        }
        let (experiment, setup) = reopen(&directory, places)?;
        let Workers { trainers, fingerprint } = Workers::on_cpu(&setup, resources.workers)?;
        let mut rounds = simulation(&experiment, &setup, trainers, resources.update_memory)?;
        let manifest = directory.manifest()?;
        let mut notes = Vec::new();
        if manifest.version != VERSION {
            notes.push(format!(
                "fedtvd {} began this run and this is {VERSION}: where they compute differently, so will the result",
                manifest.version
            ));
        }
        if manifest.fingerprint != fingerprint {
            notes.push(
                "this machine computes with other instructions or caches than the one that began: \
                the result will not be the same to the bit"
                    .to_owned(),
            );
        }
        let done = directory.lines()?;
        let Found { checkpoints, checkpoint, notes: passed_over } =
            Checkpoints::find(directory.file("checkpoint"), &setup.layout, done.len() as u32)?;
        notes.extend(passed_over);
        let round = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.state.round);
        if let Some(checkpoint) = checkpoint {
            rounds.restore(checkpoint.state, checkpoint.memories);
        }
        let lines = directory.append(round)?;
        let mut runner = Self::new(directory, experiment, Some(setup), rounds, lines);
        runner.notes.extend(notes);
        runner.checkpoints = checkpoints;
        done[..round as usize].iter().for_each(|line| runner.count(line));
        Ok(Ok(runner))
    }

    fn new(
        directory: RunDirectory,
        experiment: Experiment,
        setup: Option<Arc<Setup>>,
        rounds: Rounds,
        lines: Lines,
    ) -> Self {
        Self {
            notes: setup.as_ref().map_or_else(Vec::new, |setup| setup.notes.clone()),
            checkpoints: Checkpoints::new(directory.file("checkpoint")),
            directory,
            experiment,
            setup,
            rounds,
            lines,
            accuracies: Vec::new(),
            seconds: 0.0,
            images: 0,
            started: Instant::now(),
            saved: Instant::now(),
            saving: Duration::ZERO,
            spent: Duration::ZERO,
            when: When::Seldom,
        }
    }

    /// The same run without checkpoints: it starts again when it is interrupted.
    pub fn without_checkpoints(mut self) -> Self {
        self.when = When::Never;
        self
    }

    /// What the user should know before it goes on.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The run directory.
    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// What is run.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// Rounds that are done.
    pub fn rounds_done(&self) -> u32 {
        self.accuracies.len() as u32
    }

    /// Runs to the end, or until `stop` is set; `show` sees every line.
    pub fn run(mut self, stop: &AtomicBool, show: &mut dyn FnMut(&RoundRecord)) -> Result<End, RunError> {
        while self.rounds_done() < self.experiment.rounds {
            if stop.load(Ordering::Relaxed) {
                self.save()?;
                return Ok(End::Stopped(self.rounds_done()));
            }
            let record = match self.rounds.round() {
                Ok(record) => record,
                Err(RoundError::Fleet(FleetFailure::Stopped)) => return Ok(End::Stopped(self.rounds_done())),
                Err(error) => {
                    // If it cannot be saved, the last checkpoint still stands, and the first failure says more.
                    let _ = self.save();
                    return Err(error.into());
                }
            };
            self.lines.write(&record)?;
            self.count(&record);
            show(&record);
            let cheap = || self.started.elapsed() >= COST_FACTOR * (self.spent + self.saving);
            let due = match self.when {
                When::Never => false,
                When::Seldom => self.saved.elapsed() >= INTERVAL && cheap(),
                When::Always => true,
            };
            if due {
                self.save()?;
            }
        }
        self.finish().map(End::Done)
    }

    fn count(&mut self, record: &RoundRecord) {
        self.accuracies.push(record.accuracy);
        self.seconds += record.seconds;
        self.images += images(record, &self.experiment.run.local);
    }

    /// Lines first: a checkpoint must not be ahead of them.
    fn save(&mut self) -> Result<(), RunError> {
        let started = Instant::now();
        self.lines.sync()?;
        let (state, memories) = self.rounds.checkpoint()?;
        self.checkpoints.save(state, memories)?;
        self.saved = Instant::now();
        self.saving = self.saved - started;
        self.spent += self.saving;
        Ok(())
    }

    fn finish(self) -> Result<Summary, RunError> {
        self.lines.sync()?;
        let model = self.directory.file("model.safetensors");
        write(&model, &self.rounds.state().params.to_safetensors())?;
        let summary = Summary {
            strategy: self.experiment.run.strategy.label.clone(),
            seed: self.experiment.seed,
            rounds: self.rounds_done(),
            accuracy: self.accuracies.last().copied().flatten(),
            last10_accuracy: last_accuracy(&self.accuracies),
            seconds: self.seconds,
            images_per_second: self.images as f64 / self.seconds.max(f64::MIN_POSITIVE),
            peak_memory_bytes: peak_memory(),
            split_hash: self.setup.as_ref().map_or_else(String::new, |setup| setup.split_hash.clone()),
            directory: self.directory.path().display().to_string(),
            model: model.display().to_string(),
        };
        // With the summary the run is done.
        let text = serde_json::to_string_pretty(&summary).expect("a summary is plain data");
        write(&self.directory.file("summary.json"), text.as_bytes())?;
        Ok(summary)
    }
}

/// Experiment and setup of a run directory, on the data that it began with.
pub fn reopen(directory: &RunDirectory, places: &Places) -> Result<(Experiment, Arc<Setup>), RunError> {
    let unusable = |error: &dyn std::fmt::Display| DirectoryError::Config {
        path: directory.file("config.toml").display().to_string(),
        why: error.to_string(),
    };
    let config = Config::parse(&directory.config()?).map_err(|error| unusable(&error))?;
    let experiment = Experiment::of(&config).map_err(|error| unusable(&error))?;
    let manifest = directory.manifest()?;
    let data = Data::load(&experiment.data, places)?;
    same(&format!("data set {}", experiment.data.set), &manifest.data_checksum, &data.checksum)?;
    let setup = Arc::new(Setup::new(&experiment, &data)?);
    // The sites of a federation do not tell their split; that it is this one shows when the bits are the same.
    if !manifest.split_hash.is_empty() {
        same("split", &manifest.split_hash, &setup.split_hash)?;
    }
    Ok((experiment, setup))
}

fn same(what: &str, was: &str, is: &str) -> Result<(), RunError> {
    // So many digits tell two hashes apart.
    let short = |hash: &str| hash.chars().take(16).collect();
    let changed = || RunError::Changed { what: what.to_owned(), was: short(was), is: short(is) };
    if was == is { Ok(()) } else { Err(changed()) }
}
