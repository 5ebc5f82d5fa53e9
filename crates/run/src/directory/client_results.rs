//! `clients.json`: the final model on each client's own hold-out, with the client's size and label skew.

use crate::setup::Setup;
use fedtvd_core::labels::{Reference, size, tvd};
use fedtvd_core::round::{ClientId, Holdouts, Spread};
use serde::{Deserialize, Serialize};

/// Its name.
pub(crate) const FILE: &str = "clients.json";

/// A model on one client's hold-out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientResult {
    /// The client.
    pub client: ClientId,
    /// Its number of training samples.
    pub size: u64,
    /// Total variation distance (TVD) of its labels to the reference.
    pub tvd: f64,
    /// Number of samples that it holds out.
    pub holdout: u64,
    /// Accuracy on them.
    pub accuracy: f64,
    /// Mean cross-entropy on them; null if it is not finite.
    pub loss: Option<f64>,
}

/// The results of all clients that hold out samples, by id.
pub fn client_results(holdouts: &Holdouts, setup: &Setup, reference: &Reference) -> Vec<ClientResult> {
    let result = |(client, found): &(ClientId, fedtvd_core::round::ClientEvaluation)| {
        let data = setup.clients.get(*client as usize)?;
        Some(ClientResult {
            client: *client,
            size: size(&data.counts),
            tvd: tvd(&data.counts, reference),
            holdout: found.total,
            accuracy: found.accuracy(),
            loss: Some(found.loss / found.total.max(1) as f64).filter(|loss| loss.is_finite()),
        })
    };
    holdouts.clients.iter().filter_map(result).collect()
}

/// The distribution of the accuracy over clients; `None` without clients.
pub fn spread(results: &[ClientResult]) -> Option<Spread> {
    (!results.is_empty()).then(|| Spread::of(results.iter().map(|result| result.accuracy).collect()))
}
