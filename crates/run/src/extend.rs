//! Changes how long a run lasts: more rounds for a finished one, or another rule for stopping.
//!
//! No bit of a round depends on how many follow it, so a run of 50 rounds that is extended to 400 is a run of 400. What could
//! make it otherwise is refused by the configuration itself, such as a schedule that ends before the new last round.

use crate::configuration::{Config, ConfigError, Experiment};
use crate::directory::files::{doing, sync, write};
use crate::directory::{DirectoryError, RunDirectory, disk};
use crate::run_error::RunError;
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
}

/// Changes the configuration of the run in this directory, which is then no longer finished unless its rounds are.
/// Each setting is `key=value`.
pub fn extend(path: &Path, settings: &[String]) -> Result<(), RunError> {
    let directory = RunDirectory::open(path)?;
    if directory.is_federation() {
        return Err(DirectoryError::Federation(path.display().to_string()).into());
    }
    let _lock = directory.lock()?;
    let was = Config::parse(&directory.config()?)?;
    let mut config = was.clone();
    for setting in settings {
        config.set(setting)?;
        fixed(setting)?;
    }
    let experiment = Experiment::of(&config)?;
    let done = directory.lines()?.len();
    if (experiment.rounds as usize) < done {
        return Err(ExtendError::Fewer { rounds: experiment.rounds, done }.into());
    }
    if config.resolved() == was.resolved() {
        return Ok(());
    }
    // The summary goes first: without it a crash leaves a run of the old length that is to be finished again.
    let summary = directory.file("summary.json");
    if summary.exists() {
        disk::remove_file(&summary).map_err(doing("removing", &summary))?;
        sync(directory.path())?;
    }
    Ok(write(&directory.file("config.toml"), config.resolved().as_bytes())?)
}

/// Fails if a setting is of another key.
fn fixed(setting: &str) -> Result<(), RunError> {
    let mut alone = Config::default();
    alone.set(setting).map_err(|error: ConfigError| RunError::from(error))?;
    match alone.paths().into_iter().find(|path| !KEYS.contains(&path.as_str())) {
        Some(path) => Err(ExtendError::Fixed(path).into()),
        None => Ok(()),
    }
}
