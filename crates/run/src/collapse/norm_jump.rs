//! A sudden jump in the norms of the clients' updates: of all, or of one.
//!
//! Honest clients of one round differ in their norms by more than a factor of 10, because their data differ in size and
//! skew. So one client's norm must also be far above the largest norms of recent rounds; in the first rounds, which have
//! nothing to compare with, it must be 100 times the median of the others.

use super::recent::{Recent, magnitude, times};
use crate::directory::LAST;
use fedtvd_core::median::median;
use fedtvd_core::round::{ClientId, RoundRecord};

const FACTOR: f64 = 10.0;
const FACTOR_WITHOUT_HISTORY: f64 = 100.0;

/// The norms of a run's updates.
#[derive(Clone, Debug, Default)]
pub(super) struct NormJump {
    medians: Recent<f64, LAST>,
    largest: Recent<f64, LAST>,
}

impl NormJump {
    /// The sign of trouble in this round.
    pub(super) fn observe(&mut self, record: &RoundRecord) -> Option<String> {
        let norm = |norm: Option<f64>| norm.filter(|norm| norm.is_finite());
        let norms: Vec<(ClientId, f64)> =
            record.clients.iter().filter_map(|client| Some((client.client, norm(client.norm)?))).collect();
        let &(client, largest) = norms.iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let middle = median(norms.iter().map(|(_, norm)| *norm).collect())?;
        let sign = self.all(middle).or_else(|| {
            let others: Vec<f64> =
                norms.iter().filter(|(other, _)| *other != client).map(|(_, norm)| *norm).collect();
            if others.len() < 2 {
                return None;
            }
            self.one(client, largest, median(others)?)
        });
        self.medians.push(middle);
        // What screening scaled down or rejected is not usual, however often it comes.
        let usual = |(client, _): &&(ClientId, f64)| {
            let client = record.clients.iter().find(|one| one.client == *client);
            client.is_some_and(|client| client.screened.is_none() && client.failure.is_none())
        };
        let largest = norms.iter().filter(usual).map(|(_, norm)| *norm).reduce(f64::max);
        self.largest.push(largest.unwrap_or(middle));
        sign
    }

    fn all(&self, middle: f64) -> Option<String> {
        let usual = self.medians.usual().filter(|usual| *usual > 0.0 && middle >= FACTOR * usual)?;
        let (middle, ratio) = (magnitude(middle), times(middle / usual));
        Some(format!("the median norm of the updates is {middle}, {ratio} that of recent rounds"))
    }

    fn one(&self, client: ClientId, norm: f64, others: f64) -> Option<String> {
        let far = match self.largest.usual() {
            Some(usual) => norm >= FACTOR * others && norm >= FACTOR * usual,
            None => norm >= FACTOR_WITHOUT_HISTORY * others,
        };
        let (norm, ratio) = (magnitude(norm), times(norm / others));
        (far && others > 0.0).then(|| {
            format!("the update of client {client} has norm {norm}, {ratio} the median of the others")
        })
    }
}
