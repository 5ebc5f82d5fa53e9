//! What is known of a client: pinned at its first contact, the same in every round.

use crate::labels::Statistic;
use serde::{Deserialize, Serialize};

/// A client's number.
pub type ClientId = u32;

/// What the server knows of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Who.
    pub client: ClientId,
    /// Training samples.
    pub size: u64,
    /// The label statistic that the strategy asks for, and no other.
    pub statistic: Statistic,
}

/// What a client has. It stays at the client.
#[derive(Clone, Debug)]
pub struct ClientData {
    /// Rows that it trains on.
    pub rows: Vec<u32>,
    /// Rows that it keeps back from training.
    pub holdout: Vec<u32>,
    /// Label counts of the rows that it trains on.
    pub counts: Vec<u64>,
}
