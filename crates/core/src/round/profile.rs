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
    /// The size that it counts as at most in hardened mode, if its claim is above what the operator listed for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<u64>,
}

impl Profile {
    /// The profile of a client whose size is not limited by the operator.
    pub fn new(client: ClientId, size: u64, statistic: Statistic) -> Self {
        Self { client, size, statistic, listed: None }
    }

    /// The size that it counts as in hardened mode, before the cap at the median.
    pub fn counted_size(&self) -> u64 {
        self.listed.map_or(self.size, |listed| self.size.min(listed))
    }
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
