//! Why a client's update is not used. A failed client is data: the round continues without it.

use crate::round::Screened;
use crate::train::TrainFailure;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a client sent no update, or why its update was rejected.
#[derive(Clone, Debug, PartialEq, Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientFailure {
    /// No answer arrived in time.
    #[error("no answer")]
    Absent,
    /// It sent two different answers to one job.
    #[error("two different answers to one job")]
    Twice,
    /// Training failed.
    #[error("training failed: {0}")]
    Training(String),
    /// The job names a strategy that the client does not know.
    #[error("the job cannot be carried out: {0}")]
    BadJob(String),
    /// The client has lost the tensors that stay at it. Its next job brings their initial values.
    #[error("it has lost its own part of the model; it begins again with the initial values in its next job")]
    LostOwnPart,
    /// The update cannot be decoded.
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
    /// The update belongs to a model that the job did not bring.
    #[error("the update is for the model of branch {got}; its job brought {}", offered(*.first, *.last))]
    WrongBranch {
        /// The branch it names.
        got: u32,
        /// The first branch of the job.
        first: u32,
        /// The last one.
        last: u32,
    },
    /// A part has the wrong length.
    #[error("{part} has {got} numbers; this model has {expected}")]
    WrongShape {
        /// The part.
        part: String,
        /// Its length.
        got: usize,
        /// The expected length.
        expected: usize,
    },
    /// A value is NaN or infinite.
    #[error("{part} holds {value} at {place}; every number must be finite")]
    NotFinite {
        /// The part.
        part: String,
        /// Its index in the part.
        place: usize,
        /// The value.
        value: String,
    },
    /// No steps, or more than its data allow.
    #[error("{steps} steps are outside 1 to {most}")]
    Steps {
        /// The reported number of steps.
        steps: u64,
        /// The maximum for its size.
        most: u64,
    },
    /// A reach that no number of steps can have.
    #[error("reach {reach} {}", possible(*.least, *.greatest))]
    Reach {
        /// The reported reach.
        reach: String,
        /// The least possible.
        least: f64,
        /// The greatest possible.
        greatest: f64,
    },
    /// A negative running variance of a batch norm.
    #[error("{tensor} holds the variance {value}; it must not be negative")]
    NegativeVariance {
        /// The tensor.
        tensor: String,
        /// Its value.
        value: f32,
    },
    /// A change far larger than those of the other clients.
    #[error("the change of {part} has norm {norm}, above this round's bound of {bound}")]
    BeyondBound {
        /// The part.
        part: String,
        /// Its norm.
        norm: f64,
        /// The bound.
        bound: f64,
    },
    /// A failure as text, read from the record of an earlier round.
    #[error("{0}")]
    Recorded(String),
}

impl ClientFailure {
    /// Whether it is [`ClientFailure::LostOwnPart`], which clients of a federation report as a sentence.
    pub(crate) fn is_lost_own_part(&self) -> bool {
        self.to_string().ends_with(&Self::LostOwnPart.to_string())
    }
}

impl From<Screened> for ClientFailure {
    /// The failure of an update that screening rejected.
    fn from(Screened { part, norm, bound, .. }: Screened) -> Self {
        Self::BeyondBound { part, norm, bound }
    }
}

impl From<TrainFailure> for ClientFailure {
    fn from(failure: TrainFailure) -> Self {
        Self::Training(failure.to_string())
    }
}

fn offered(first: u32, last: u32) -> String {
    if first == last { format!("branch {first}") } else { format!("branches {first} to {last}") }
}

/// Why a reach is impossible, given the least and the greatest one; there is none if no step leads away from the start.
fn possible(least: f64, greatest: f64) -> String {
    if least > greatest {
        return "is impossible: with this learning rate, no step leads away from the start".to_owned();
    }
    format!("is outside {least} to {greatest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reach_where_none_is_possible_is_refused_without_an_empty_range() {
        assert_eq!(possible(0.1, 2.0), "is outside 0.1 to 2");
        assert!(possible(f64::INFINITY, 0.0).starts_with("is impossible: with this learning rate"));
    }
}
