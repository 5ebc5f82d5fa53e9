//! Changes how long a run lasts: more rounds for a finished one, or another rule for stopping.
//!
//! No bit of a round depends on how many follow it, so a run of 50 rounds that is extended to 400 is a run of 400. The configuration
//! refuses what would make a difference, such as a schedule that ends before the new last round.

use crate::collapse::Detector;
use crate::configuration::{Config, Experiment};
use crate::directory::files::write;
use crate::directory::{DirectoryError, Lines, RunDirectory};
use crate::monitor::Monitor;
use crate::run_error::RunError;
use fedtvd_core::round::RoundRecord;
use std::path::Path;
use thiserror::Error;

/// The keys that may change after a run was started.
const KEYS: [&str; 3] = ["rounds", "stop.target", "stop.patience"];

/// Why a run cannot be changed.
#[derive(Debug, Error)]
pub enum ExtendError {
    /// A key that is fixed.
    #[error("{0} cannot change after a run was started; only {known} can", known = KEYS.join(", "))]
    Fixed(String),
    /// Fewer rounds than are finished.
    #[error(
        "rounds = {rounds}, but {done} rounds are finished; \"fedtvd resume RUN --from ROUND\" goes back to an earlier one"
    )]
    Fewer {
        /// The new number of rounds.
        rounds: u32,
        /// The finished rounds.
        done: usize,
    },
    /// A rule by which the run would have stopped before.
    #[error(
        "the run would have stopped after round {round}, and {done} rounds are finished: {why}; start a new run for that, or add \
         --from {round}"
    )]
    Sooner {
        /// The round after which it would have stopped.
        round: u32,
        /// The finished rounds.
        done: usize,
        /// Why.
        why: String,
    },
}

/// Changes the configuration of the run in this directory, which is then no longer finished unless its rounds are.
/// Each setting is `key=value`.
pub fn extend(path: &Path, settings: &[String]) -> Result<(), RunError> {
    let directory = RunDirectory::open(path)?;
    if directory.is_federation() {
        return Err(DirectoryError::Federation(path.display().to_string()).into());
    }
    let mut lines = directory.lock()?;
    let config = changed(&directory, settings, None)?;
    apply(&directory, &config, &mut lines)
}

/// The configuration of a run with these settings; fails if the run, after a rollback to round `from`, cannot continue with it.
pub(crate) fn changed(
    directory: &RunDirectory,
    settings: &[String],
    from: Option<u32>,
) -> Result<Config, RunError> {
    let path = || directory.file("config.toml").display().to_string();
    let mut config = Config::parse(&directory.config()?)
        .map_err(|error| DirectoryError::Config { path: path(), why: error.to_string() })?;
    for setting in settings {
        config.set(setting)?;
        refuse_fixed(setting)?;
    }
    if settings.is_empty() {
        return Ok(config);
    }
    let experiment = Experiment::of(&config)?;
    let mut lines = directory.lines()?;
    lines.truncate(from.map_or(usize::MAX, |round| round as usize));
    let done = lines.len();
    if (experiment.rounds as usize) < done {
        return Err(ExtendError::Fewer { rounds: experiment.rounds, done }.into());
    }
    let mut monitor = Monitor::new(experiment.evaluation);
    let stops = lines.iter().find(|line| {
        monitor.observe(line);
        monitor.stopped().is_some()
    });
    match (stops.filter(|line| (line.round as usize) < done), monitor.stopped()) {
        (Some(line), Some(why)) => {
            Err(ExtendError::Sooner { round: line.round, done, why: why.clone() }.into())
        }
        _ => Ok(config),
    }
}

/// Stores a changed configuration.
pub(crate) fn apply(directory: &RunDirectory, config: &Config, lines: &mut Lines) -> Result<(), RunError> {
    if config.resolved() == directory.config()? {
        return Ok(());
    }
    // The summary goes first: without it a crash leaves a run of the old length that is to be finished again.
    directory.remove_summary()?;
    let done = directory.lines()?;
    let every = Experiment::of(config)?.evaluation.every;
    if let Some((last, before)) = done.split_last().filter(|(last, _)| !last.round.is_multiple_of(every)) {
        // Evaluated because it was the last one, which it is no longer.
        lines.truncate(last.round - 1)?;
        let mut record = without_evaluation(last.clone());
        record.alarm = Detector::of(before).observe(&record);
        lines.write(&record)?;
        lines.sync()?;
    }
    Ok(write(&directory.file("config.toml"), config.resolved().as_bytes())?)
}

/// The record of a round after which the model was not evaluated.
fn without_evaluation(record: RoundRecord) -> RoundRecord {
    RoundRecord {
        accuracy: None,
        loss: None,
        chance: None,
        balanced: None,
        macro_f1: None,
        missed_classes: None,
        classes: None,
        median_accuracy: None,
        median_loss: None,
        validation: None,
        class_accuracy: None,
        client_accuracy: None,
        ..record
    }
}

/// Fails if a setting is of another key.
fn refuse_fixed(setting: &str) -> Result<(), RunError> {
    let mut alone = Config::default();
    alone.set(setting)?;
    match alone.paths().into_iter().find(|path| !KEYS.contains(&path.as_str())) {
        Some(path) => Err(ExtendError::Fixed(path).into()),
        None => Ok(()),
    }
}
