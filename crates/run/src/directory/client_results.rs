//! `clients.json`: the final model on each client's own hold-out, with the client's size and label skew.

use crate::setup::Setup;
use fedtvd_core::labels::{Reference, size, tvd};
use fedtvd_core::round::{ClientData, ClientId, EvaluatedOn, Holdouts, OwnResults, Spread};
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
    /// Accuracy of the model that the client uses itself; null unless the strategy has such models. Where a part of the model
    /// stays at the clients there is no other, and `accuracy` and `loss` are those of this one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub personal: Option<f64>,
}

/// The results of all clients that hold out samples, by id.
pub fn client_results(
    shared: Option<&Holdouts>,
    own: Option<&OwnResults>,
    setup: &Setup,
    reference: &Reference,
) -> Vec<ClientResult> {
    let own = own.filter(|own| own.on == EvaluatedOn::HoldOuts);
    let of_client = |(client, data): (ClientId, &ClientData)| {
        let shared = shared.and_then(|shared| found(&shared.clients, client));
        let own = own.and_then(|own| found(&own.clients, client));
        let (accuracy, loss, holdout) = match (shared, own) {
            (Some(shared), _) => (shared.accuracy(), Some(shared.loss), shared.total),
            (None, Some(own)) => (own.accuracy, own.loss, own.samples),
            (None, None) => return None,
        };
        let loss = loss.map(|loss| loss / holdout.max(1) as f64).filter(|loss| loss.is_finite());
        let (size, tvd) = (size(&data.counts), tvd(&data.counts, reference));
        let personal = own.map(|own| own.accuracy);
        Some(ClientResult { client, size, tvd, holdout, accuracy, loss, personal })
    };
    (0..).zip(&setup.clients).filter_map(of_client).collect()
}

/// What belongs to a client in a list that is sorted by client.
fn found<T>(results: &[(ClientId, T)], client: ClientId) -> Option<&T> {
    let place = results.binary_search_by_key(&client, |(client, _)| *client).ok()?;
    Some(&results[place].1)
}

/// The distribution of the accuracy over clients; `None` without clients.
pub fn spread(results: &[ClientResult]) -> Option<Spread> {
    (!results.is_empty()).then(|| Spread::of(results.iter().map(|result| result.accuracy).collect()))
}
