//! The clients of a run, wherever they are: threads on this machine, the sites of a federation, nodes of a cluster.

use crate::directory::Memories;
use fedtvd_core::labels::{Reference, ReferenceError};
use fedtvd_core::model::Params;
use fedtvd_core::round::{Job, Profile, State, Updates};
use fedtvd_core::train::{Evaluation, TrainFailure};
use thiserror::Error;

/// The clients. A fleet can fail, and may be asked for the same round again.
pub trait Fleet: Send {
    /// Who is there before the next round of this state; may wait for clients. After a restart, `memories` is what
    /// [`Fleet::settle`] returned before it.
    fn gather(&mut self, state: &State, memories: Option<Memories>) -> Result<Gathered, FleetFailure>;

    /// The outcomes of a round's jobs. A client without an outcome did not answer.
    fn work(&mut self, jobs: &[Job]) -> Result<Answers, FleetFailure>;

    /// Evaluates the global model; no samples if nobody could.
    fn evaluate(&mut self, model: &Params) -> Result<Evaluation, FleetFailure>;

    /// The round is accepted and `state` follows it: clients' memories advance. Returns the memories that a checkpoint
    /// has to keep; clients on other machines keep theirs.
    fn settle(&mut self, state: &State) -> Result<&Memories, FleetFailure>;
}

/// Who is there.
#[derive(Clone, Debug)]
pub struct Gathered {
    /// The reference label distribution Q of the run.
    pub reference: Reference,
    /// Clients that are not enrolled yet.
    pub newcomers: Vec<Profile>,
}

/// What a round's clients answered.
pub struct Answers {
    /// Their updates.
    pub updates: Box<dyn Updates>,
    /// Bytes that were really sent; `None` in a simulation.
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

/// Why a fleet cannot go on.
#[derive(Debug, Error)]
pub enum FleetFailure {
    /// It was asked to stop in the middle of a round.
    #[error("stopped")]
    Stopped,
    /// The clients' label counts make no reference.
    #[error("labels.reference = aggregated: {0}")]
    Reference(ReferenceError),
    /// The global model could not be evaluated.
    #[error("evaluating the global model: {0}")]
    Evaluate(TrainFailure),
    /// The disk did not take the updates.
    #[error(
        "the updates of a round do not fit into a temporary file in {folder}: {why}; make room there, let TMPDIR name \
         another folder, or keep more updates in memory with --update-memory"
    )]
    Spool {
        /// Where temporary files are made.
        folder: String,
        /// What the system says.
        why: String,
    },
    /// What only this kind of fleet knows.
    #[error(transparent)]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}
