//! The interface to the clients of a run: threads on this machine, the sites of a federation, nodes of a cluster.

use crate::directory::Memories;
use fedtvd_core::labels::{Reference, ReferenceError};
use fedtvd_core::round::{Assessment, Holdouts, Job, OwnResults, Profile, State, Updates};
use fedtvd_core::train::TrainFailure;
use std::collections::BTreeMap;
use thiserror::Error;

/// The clients of a run. A fleet can fail, and may be asked for the same round again.
pub trait Fleet: Send {
    /// The clients available for the next round of this state; may wait for clients. After a restart, `memories` is
    /// what [`Fleet::settle`] returned before it.
    fn gather(&mut self, state: &State, memories: Option<Memories>) -> Result<Gathered, FleetFailure>;

    /// The outcomes of a round's jobs. A client without an outcome did not answer.
    fn work(&mut self, jobs: &[Job]) -> Result<Answers, FleetFailure>;

    /// Evaluates the global model of this state; the assessment is empty if nobody could, or if clients keep a part of it.
    /// `own` has what each client needs to make the model that it uses itself, if the strategy has such models.
    fn evaluate(&mut self, state: &State, own: &[Job]) -> Result<Evaluated, FleetFailure>;

    /// Accepts the round that led to `state`: clients' memories advance. Returns the memories that a checkpoint must
    /// store; clients on other machines store their own.
    fn settle(&mut self, state: &State) -> Result<&Memories, FleetFailure>;
}

/// The available clients.
#[derive(Clone, Debug)]
pub struct Gathered {
    /// The reference label distribution Q of the run.
    pub reference: Reference,
    /// Clients that are not yet enrolled.
    pub newcomers: Vec<Profile>,
}

/// What an evaluation of the global model found.
#[derive(Clone, Debug, Default)]
pub struct Evaluated {
    /// By the server on its test set, or by the clients of a federation on their hold-outs.
    pub assessment: Assessment,
    /// By the clients of a simulation on their hold-outs, if they have any.
    pub holdouts: Option<Holdouts>,
    /// How the models do that clients use themselves, if they have any.
    pub own: Option<OwnResults>,
    /// The model of each branch in use, by the server on its test set, for strategies with several models. There is no global
    /// model then, and the assessment is empty.
    pub branches: BTreeMap<u32, Assessment>,
}

impl From<Assessment> for Evaluated {
    fn from(assessment: Assessment) -> Self {
        Self { assessment, ..Self::default() }
    }
}

/// The answers of a round's clients.
pub struct Answers {
    /// Their updates.
    pub updates: Box<dyn Updates>,
    /// Bytes actually sent; `None` in a simulation.
    pub traffic: Option<Traffic>,
}

/// Bytes between server and clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// To the server.
    pub up: u64,
    /// To the clients.
    pub down: u64,
}

/// Why a fleet cannot continue.
#[derive(Debug, Error)]
pub enum FleetFailure {
    /// It was asked to stop in the middle of a round.
    #[error("stopped")]
    Stopped,
    /// The clients' label counts do not give a valid reference.
    #[error("labels.reference = aggregated: {0}")]
    Reference(ReferenceError),
    /// The global model could not be evaluated.
    #[error("evaluating the global model: {0}")]
    Evaluate(TrainFailure),
    /// Updates could not be written to a temporary file.
    #[error(
        "the updates of a round cannot be written to a temporary file in {folder}: {why}; free space there, set TMPDIR to \
         another folder, or keep more updates in memory with --update-memory"
    )]
    Spool {
        /// The folder for temporary files.
        folder: String,
        /// The system's error.
        why: String,
    },
    /// An error specific to this kind of fleet.
    #[error(transparent)]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}
