//! Why a client's work does not count. A failed client is data: the round goes on without it.

use crate::train::TrainFailure;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a client gave no update, or why its update was rejected.
#[derive(Clone, Debug, PartialEq, Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientFailure {
    /// No answer came in time.
    #[error("no answer")]
    Absent,
    /// It gave two different answers to one job.
    #[error("two different answers to one job")]
    Twice,
    /// Training failed.
    #[error("training failed: {0}")]
    Training(String),
    /// The job names a strategy that the client does not know.
    #[error("the job cannot be carried out: {0}")]
    BadJob(String),
    /// The update is not in the byte form.
    #[error("the update cannot be read: {0}")]
    Unreadable(String),
    /// The update belongs to another round.
    #[error("the update is for round {got}; this is round {expected}")]
    WrongRound {
        /// The round it names.
        got: u32,
        /// The round that is open.
        expected: u32,
    },
    /// A tensor is too long or too short.
    #[error("{part} has {got} numbers; this model has {expected}")]
    WrongShape {
        /// Which part.
        part: String,
        /// How many came.
        got: usize,
        /// How many belong there.
        expected: usize,
    },
    /// A number is infinite or none.
    #[error("{part} holds {value} at {place}; every number must be finite")]
    NotFinite {
        /// Which part.
        part: String,
        /// Where.
        place: usize,
        /// What.
        value: String,
    },
    /// More steps than its data allow, or none.
    #[error("{steps} steps are outside 1 to {most}")]
    Steps {
        /// How many it claims.
        steps: u64,
        /// How many its size allows.
        most: u64,
    },
    /// A reach that no number of steps has.
    #[error("reach {reach} is outside {least} to {greatest}")]
    Reach {
        /// What it claims.
        reach: String,
        /// The least possible.
        least: f64,
        /// The greatest possible.
        greatest: f64,
    },
    /// A batch norm's variance below zero.
    #[error("{tensor} holds the variance {value}; none is below 0")]
    NegativeVariance {
        /// Which tensor.
        tensor: String,
        /// What it holds.
        value: f32,
    },
    /// A failure as the record of an earlier round states it.
    #[error("{0}")]
    Recorded(String),
}

impl From<TrainFailure> for ClientFailure {
    fn from(failure: TrainFailure) -> Self {
        Self::Training(failure.to_string())
    }
}
