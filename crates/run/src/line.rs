//! One line of `rounds.jsonl`: what a round came to.

use crate::digest;
use crate::setup::Setup;
use crate::simulation::Round;
use fedtvd_core::drift::Drift;
use fedtvd_core::params::Params;
use fedtvd_core::profile::ClientId;
use fedtvd_core::record::ClientRecord;
use fedtvd_core::statistic::{Reference, Statistic, tvd};
use serde::{Deserialize, Deserializer, Serialize};

/// What a round came to. Accuracies are fractions; what does not apply is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Which round, counted from 1.
    pub round: u32,
    /// Of the global model on the test set, after the round; none, and null, where nobody could judge it.
    #[serde(deserialize_with = "or_none")]
    pub accuracy: f64,
    /// Mean cross-entropy on the test set; null where nobody could judge it.
    #[serde(deserialize_with = "or_none")]
    pub loss: f64,
    /// How long the round took.
    pub seconds: f64,
    /// What the clients of a real federation would have sent.
    pub bytes_up: u64,
    /// What they would have been sent.
    pub bytes_down: u64,
    /// Hash of the global model after the round.
    pub model_hash: String,
    /// A short hash of every tensor.
    pub tensor_hashes: Vec<String>,
    /// 1 / Σ s².
    pub effective_clients: Option<f64>,
    /// How far the clients' models pulled apart.
    #[serde(default)]
    pub drift: Option<Drift>,
    /// Why the model stayed as it was, if it did.
    pub unchanged: Option<String>,
    /// How many clients were enrolled; unknown in lines of earlier versions.
    #[serde(default)]
    pub roster: Option<usize>,
    /// Accuracy of each class, where asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub class_accuracy: Option<Vec<Option<f64>>>,
    /// Accuracy on the clients' own label distributions, where asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client_accuracy: Option<Spread>,
    /// The clients that were asked.
    pub clients: Vec<ClientLine>,
}

/// One client in a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientLine {
    /// Who.
    pub client: ClientId,
    /// Its training samples.
    pub size: u64,
    /// Total variation distance of its labels to the reference; none, and null, where the client did not tell it.
    #[serde(deserialize_with = "or_none")]
    pub tvd: f64,
    /// What it told the server about its labels.
    pub statistic: Statistic,
    /// What its labels earned it.
    pub quality_share: Option<f64>,
    /// What its size earned it.
    pub size_share: Option<f64>,
    /// What it counted.
    pub weight: Option<f64>,
    /// Mean training loss of its first local epoch.
    pub first_loss: Option<f64>,
    /// Mean training loss of its last local epoch.
    pub last_loss: Option<f64>,
    /// Whether it had lost the memory that its job named.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub forgot: bool,
    /// Why it did not count.
    pub failure: Option<String>,
}

/// A quantity over all clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Its mean.
    pub mean: f64,
    /// Its deviation.
    pub deviation: f64,
    /// Mean of the worst tenth of the clients, at least one.
    pub worst_decile: f64,
}

impl Line {
    /// The line of a round. Without a setup the clients are elsewhere, and their labels are their own.
    pub fn new(
        round: &Round,
        params: &Params,
        reference: &Reference,
        setup: Option<&Setup>,
        details: bool,
    ) -> Self {
        let (model_hash, tensor_hashes) = digest::model(params);
        let classes = round.evaluation.class_accuracies();
        let judged = if round.evaluation.samples() == 0 { f64::NAN } else { 1.0 };
        Self {
            round: round.record.round + 1,
            accuracy: judged * round.evaluation.accuracy(),
            loss: judged * round.evaluation.mean_loss(),
            seconds: round.seconds,
            bytes_up: round.bytes_up,
            bytes_down: round.bytes_down,
            model_hash,
            tensor_hashes,
            effective_clients: round.record.effective_clients,
            drift: round.record.drift,
            unchanged: round.record.unchanged.clone(),
            roster: Some(round.record.roster),
            client_accuracy: setup
                .filter(|_| details)
                .map(|setup| Spread::of(own_accuracies(&classes, setup))),
            class_accuracy: details.then_some(classes),
            clients: round
                .record
                .clients
                .iter()
                .map(|client| client_line(client, reference, setup))
                .collect(),
        }
    }
}

/// null as no number, which is printed as null again.
pub(crate) fn or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// What is known of the distance of a client's labels: all in a simulation, else what it told.
fn distance(record: &ClientRecord, reference: &Reference, setup: Option<&Setup>) -> f64 {
    match (setup, &record.statistic) {
        (Some(setup), _) => {
            setup.clients.get(record.client as usize).map_or(f64::NAN, |data| tvd(&data.counts, reference))
        }
        (None, Statistic::Distance(distance)) => *distance,
        (None, Statistic::Histogram(counts)) => tvd(counts, reference),
        (None, _) => f64::NAN,
    }
}

fn client_line(record: &ClientRecord, reference: &Reference, setup: Option<&Setup>) -> ClientLine {
    ClientLine {
        client: record.client,
        size: record.size,
        tvd: distance(record, reference, setup),
        statistic: record.statistic.clone(),
        quality_share: record.quality_share,
        size_share: record.size_share,
        weight: record.weight,
        first_loss: record.losses.map(|[first, _]| first),
        last_loss: record.losses.map(|[_, last]| last),
        forgot: record.forgot,
        failure: record.failure.as_ref().map(ToString::to_string),
    }
}

/// For each client Σ_c P_k[c] acc_c: the global model on the client's own label distribution.
fn own_accuracies(classes: &[Option<f64>], setup: &Setup) -> Vec<f64> {
    let own = |counts: &Vec<u64>| {
        let known = counts.iter().zip(classes).filter_map(|(&h, accuracy)| Some((h as f64, (*accuracy)?)));
        let (hits, total) = known.fold((0.0, 0.0), |(hits, total), (h, a)| (hits + h * a, total + h));
        if total > 0.0 { hits / total } else { 0.0 }
    };
    setup.clients.iter().map(|client| own(&client.counts)).collect()
}

impl Spread {
    /// The spread of some values; there is at least one.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let worst = &values[..(values.len() / 10).max(1)];
        let worst_decile = worst.iter().sum::<f64>() / worst.len() as f64;
        Self { mean, deviation: variance.sqrt(), worst_decile }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_decile_is_the_mean_of_the_lowest_tenth() {
        let spread = Spread::of((0..20).map(f64::from).rev().collect());
        assert_eq!((spread.mean, spread.worst_decile), (9.5, 0.5));
        // Deviation of 0..20: sqrt((400 - 1) / 12).
        assert!((spread.deviation - (399.0f64 / 12.0).sqrt()).abs() < 1e-12);
        assert_eq!(Spread::of(vec![0.25]).worst_decile, 0.25);
    }
}
