//! What is known about a client: fixed at its first contact, the same in every round.

use crate::labels::Statistic;
use serde::{Deserialize, Serialize};

/// The id of a client.
pub type ClientId = u32;

/// What the server knows about a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The client.
    pub client: ClientId,
    /// Number of training samples.
    pub size: u64,
    /// The label statistic that the strategy asks for.
    pub statistic: Statistic,
}

/// A client's data, which never leave the client.
#[derive(Clone, Debug)]
pub struct ClientData {
    /// Training rows.
    pub rows: Vec<u32>,
    /// Rows held out from training.
    pub holdout: Vec<u32>,
    /// Label counts of the training rows.
    pub counts: Vec<u64>,
}
