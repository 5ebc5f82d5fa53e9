//! What happened in a round: who counted how much, and why.

use crate::drift::Drift;
use crate::failure::ClientFailure;
use crate::profile::ClientId;
use crate::rules::Shares;
use crate::statistic::Statistic;
use serde::{Deserialize, Serialize};

/// One round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundRecord {
    /// Which.
    pub round: u32,
    /// How many clients were enrolled.
    pub roster: usize,
    /// Those that were asked, by id.
    pub clients: Vec<ClientRecord>,
    /// 1 / Σ s²: how many clients counting alike would mix as much; `None` where none counted.
    pub effective_clients: Option<f64>,
    /// How far the clients' models pulled apart; `None` where none counted.
    pub drift: Option<Drift>,
    /// Why the model stayed as it was, if it did.
    pub unchanged: Option<String>,
}

/// One client in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientRecord {
    /// Who.
    pub client: ClientId,
    /// Its samples.
    pub size: u64,
    /// What it said of its labels.
    pub statistic: Statistic,
    /// What its labels earned it.
    pub quality_share: Option<f64>,
    /// What its size earned it.
    pub size_share: Option<f64>,
    /// What it counted; `None` where it did not.
    pub weight: Option<f64>,
    /// Optimiser steps made.
    pub steps: Option<u64>,
    /// Mean training loss of the first and of the last local epoch.
    pub losses: Option<[f64; 2]>,
    /// Whether it had lost the memory that its job named; carried vectors are then no longer exact means.
    pub forgot: bool,
    /// Why it did not count.
    pub failure: Option<ClientFailure>,
}

impl RoundRecord {
    pub(crate) fn new(round: u32, roster: usize, clients: Vec<ClientRecord>) -> Self {
        Self { round, roster, clients, effective_clients: None, drift: None, unchanged: None }
    }

    /// Writes in what each accepted client counted.
    pub(crate) fn count(&mut self, shares: &Shares) {
        let accepted = self.clients.iter_mut().filter(|client| client.failure.is_none());
        for (k, client) in accepted.enumerate() {
            client.quality_share = shares.quality.as_ref().map(|quality| quality[k]);
            client.size_share = Some(shares.size[k]);
            client.weight = Some(shares.weight[k]);
        }
        self.effective_clients = Some(effective(&shares.weight));
    }
}

/// 1 / Σ s².
pub fn effective(weights: &[f64]) -> f64 {
    1.0 / weights.iter().map(|s| s * s).sum::<f64>()
}
