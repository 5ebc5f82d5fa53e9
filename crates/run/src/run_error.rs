//! Why a run cannot start, resume or end.

use crate::configuration::{ConfigError, ExperimentError};
use crate::directory::{CheckpointError, DirectoryError, FileError, HistoryError, NoCheckpoint};
use crate::extend::ExtendError;
use crate::rounds::RoundError;
use crate::setup::SetupError;
use crate::simulation::SimulationError;
use crate::test_set::PredictionError;
use thiserror::Error;

/// Why a run cannot start, resume or end.
#[derive(Debug, Error)]
pub enum RunError {
    /// The configuration's text.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The configuration's meaning.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// A change of a run that was started.
    #[error(transparent)]
    Extend(#[from] ExtendError),
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
    /// Finished rounds without a checkpoint.
    #[error(transparent)]
    NoCheckpoint(#[from] NoCheckpoint),
    /// The state of a past round.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The start of a simulation.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// A round.
    #[error(transparent)]
    Round(#[from] RoundError),
    /// The final model's predictions.
    #[error("predicting the test set: {0}")]
    Predictions(#[from] PredictionError),
    /// A server whose rounds do not change the model.
    #[error(
        "stopped after round {round}, the state is saved: {rounds} rounds in a row left the model unchanged, the last one \
         because {why}; find out in rounds.jsonl and in the clients' logs why updates are missing or rejected, \
         then resume it with \"fedtvd serve RUN\", without --rollback"
    )]
    Unchanged {
        /// Number of unchanged rounds.
        rounds: u32,
        /// The last round.
        round: u32,
        /// Why it did not change the model.
        why: String,
    },
    /// A run that was extended.
    #[error(
        "{path} holds a run of {rounds} rounds: it was extended, and this grid has runs of {expected}; move it elsewhere, or choose \
         another --out"
    )]
    Extended {
        /// The run directory.
        path: String,
        /// Its rounds.
        rounds: u64,
        /// The rounds of the grid.
        expected: u32,
    },
    /// A strategy that the program does not contain.
    #[error(
        "{path} was made with the strategy {name}, which is not one of fedtvd itself; register it first, in Python by importing \
         the module that defines it"
    )]
    Unregistered {
        /// The method's name.
        name: String,
        /// The run directory.
        path: String,
    },
    /// The data differ from those that the run was started with.
    #[error(
        "the {what} changed since the run began: its hash was {was} and is {is}; restore the old one, or \
         start a new run with another --out"
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
    /// Whether the user's input is at fault, rather than the work itself.
    pub fn request(&self) -> bool {
        match self {
            Self::Config(_)
            | Self::Experiment(_)
            | Self::Extend(_)
            | Self::Setup(_)
            | Self::Unregistered { .. }
            | Self::Simulation(_) => true,
            Self::Directory(error) | Self::History(HistoryError::Directory(error)) => {
                !matches!(error, DirectoryError::File(_))
            }
            Self::History(HistoryError::NotKept { .. }) => true,
            Self::Round(error) => error.request(),
            Self::File(_)
            | Self::Checkpoint(_)
            | Self::NoCheckpoint(_)
            | Self::Changed { .. }
            | Self::Extended { .. }
            | Self::Predictions(_)
            | Self::Unchanged { .. } => false,
        }
    }
}
