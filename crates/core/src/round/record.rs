//! The record of a round: one type from aggregation to the tables, and one line of `rounds.jsonl`.

use crate::labels::{Reference, Statistic, tvd};
use crate::round::{
    Balanced, BranchRecord, Checked, ClientFailure, ClientId, Drift, Job, MissedClass, Personal, Profile,
    State, Validation,
};
use crate::rules::Shares;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One round. `close` records the clients' weights and their parts; the loop over rounds adds its measurements.
/// Accuracies are fractions; what does not apply is `None`, and null in JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundRecord {
    /// The round, counted from 1.
    pub round: u32,
    /// Accuracy of the global model after the round; null if it was not evaluated.
    pub accuracy: Option<f64>,
    /// Its mean cross-entropy; null if it was not evaluated.
    pub loss: Option<f64>,
    /// Accuracy of always predicting the most frequent class of the evaluated samples; null if clients evaluated the model
    /// and do not disclose their confusion matrices.
    #[serde(default)]
    pub chance: Option<f64>,
    /// Mean of the accuracies of the classes; null where `chance` is, and for fewer than two classes.
    #[serde(default)]
    pub balanced: Option<Balanced>,
    /// Mean of the F1 scores of the classes; null where `chance` is.
    #[serde(default)]
    pub macro_f1: Option<f64>,
    /// The classes with samples of which none was classified correctly; null where `chance` is.
    #[serde(default)]
    pub missed_classes: Option<Vec<MissedClass>>,
    /// Number of classes that the model distinguishes; null if it was not evaluated, and in records of earlier versions.
    #[serde(default)]
    pub classes: Option<usize>,
    /// Median of the clients' accuracies if they evaluated the model on their hold-outs; null if the server did.
    #[serde(default)]
    pub median_accuracy: Option<f64>,
    /// Median of their mean losses; null if it is not finite, or if the server evaluated the model.
    #[serde(default)]
    pub median_loss: Option<f64>,
    /// What the hold-outs of a simulation's clients say about the model; null without hold-outs, and if it was not evaluated.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub validation: Option<Validation>,
    /// How the models that clients use themselves do; null unless the strategy has such models, and if they were not evaluated.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub personal: Option<Personal>,
    /// How long the round took.
    pub seconds: f64,
    /// Bytes that clients sent; in a simulation, what they would have sent.
    pub bytes_up: u64,
    /// Bytes sent to clients; in a simulation, what would have been sent.
    pub bytes_down: u64,
    /// Hash of the global model after the round.
    pub model_hash: String,
    /// A short hash of every tensor.
    pub tensor_hashes: Vec<String>,
    /// Effective number of clients, 1 / Σ s², of the weights s with which they entered the aggregate; with several models the
    /// sum over them.
    pub effective_clients: Option<f64>,
    /// How far the clients' models drifted apart; null with several models, each of which has its own.
    #[serde(default)]
    pub drift: Option<Drift>,
    /// Why the model stayed unchanged, if it did.
    pub unchanged: Option<String>,
    /// Whether it stayed unchanged because its next value would not have been finite.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub discarded: bool,
    /// What a person should look at in this round, with the client whose update was farthest from the others'.
    #[serde(default)]
    pub alarm: Option<String>,
    /// The last round before the run was rolled back to the round before this one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rolled_back_from: Option<u32>,
    /// Number of enrolled clients; unknown in records of earlier versions.
    #[serde(default)]
    pub roster: Option<usize>,
    /// Number of clients that were asked beyond the cohort; as many are expected to have no answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub extra: Option<usize>,
    /// Accuracy of each class, if asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub class_accuracy: Option<Vec<Option<f64>>>,
    /// Per-client accuracy, on each client's label distribution, if asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client_accuracy: Option<Spread>,
    /// The models and their clients, for strategies with several models: `accuracy` is null then.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub branches: Vec<BranchRecord>,
    /// The clients of the cohort, by id.
    pub clients: Vec<ClientRecord>,
}

/// One client in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientRecord {
    /// The client.
    pub client: ClientId,
    /// Its number of training samples.
    pub size: u64,
    /// The branch whose model it trained, for strategies with several models; null if its update was not used.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub branch: Option<u32>,
    /// Total variation distance of its labels to the reference, by the statistic that it reported; if that does not say it,
    /// a simulation computes it from the client's data, and in a federation it is null.
    pub tvd: Option<f64>,
    /// The label statistic that it reported.
    pub statistic: Statistic,
    /// Its share by label quality.
    pub quality_share: Option<f64>,
    /// Its share by size.
    pub size_share: Option<f64>,
    /// The weight that the strategy gives it; null if its update was not used.
    pub weight: Option<f64>,
    /// The weight with which it entered the aggregate, if the strategy does not combine by a weighted mean: the share of the
    /// parameters that a median takes from it, or 0 if Krum does not select it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub entered_weight: Option<f64>,
    /// Optimiser steps made; unknown in records of earlier versions.
    #[serde(default)]
    pub steps: Option<u64>,
    /// How far it moved the model: ‖w_k − w_t‖; unknown in records of earlier versions.
    #[serde(default)]
    pub norm: Option<f64>,
    /// Distance of its change of the model from the weighted mean change of the other clients.
    #[serde(default)]
    pub distance: Option<f64>,
    /// How screening scaled its update down or rejected it; null if it was within the bounds, or not screened.
    #[serde(default)]
    pub screened: Option<Screened>,
    /// Mean training loss of its first local epoch, with offsets and class weights.
    pub first_loss: Option<f64>,
    /// Mean training loss of its last local epoch, with offsets and class weights.
    pub last_loss: Option<f64>,
    /// Whether it had lost the memory named in its job; carried vectors are then no longer exact means.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub forgot: bool,
    /// Why its update was not used; a sentence in JSON.
    #[serde(serialize_with = "sentence", deserialize_with = "from_sentence")]
    pub failure: Option<ClientFailure>,
}

/// An update that was scaled down, or rejected, because its norm exceeded a bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Screened {
    /// The part that exceeded its bound the most.
    pub part: String,
    /// Its norm.
    pub norm: f64,
    /// The bound.
    pub bound: f64,
    /// The factor on the update; 0 if it was rejected.
    pub factor: f64,
}

/// The distribution of a quantity over all clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Its mean.
    pub mean: f64,
    /// Its standard deviation.
    pub deviation: f64,
    /// Mean of the worst tenth of the clients, at least one.
    pub worst_decile: f64,
}

impl RoundRecord {
    /// An empty record of the round that begins in this state.
    pub(crate) fn new(state: &State) -> Self {
        Self { round: state.round + 1, roster: Some(state.roster.len()), ..Self::default() }
    }

    /// Records the weight of each accepted client of a branch, and the one with which it entered the aggregate.
    pub(crate) fn count(&mut self, places: &[usize], shares: &Shares, entered: &[f64]) {
        for (k, &place) in places.iter().enumerate() {
            let client = &mut self.clients[place];
            client.quality_share = shares.quality.as_ref().map(|quality| quality[k]);
            client.size_share = Some(shares.size[k]);
            client.weight = Some(shares.weight[k]);
            client.entered_weight = Some(entered[k]).filter(|_| entered != shares.weight);
        }
        self.effective_clients = Some(self.effective_clients.unwrap_or_default() + effective(entered));
    }

    /// Records the distance of each accepted client of a branch.
    pub(crate) fn locate(&mut self, places: &[usize], distances: &[Option<f64>]) {
        for (&place, distance) in places.iter().zip(distances) {
            self.clients[place].distance = distance.filter(|distance| distance.is_finite());
        }
    }
}

impl ClientRecord {
    pub(crate) fn new(
        profile: &Profile,
        reference: &Reference,
        job: &Job,
        answer: Result<Checked, ClientFailure>,
    ) -> Self {
        let report = answer.as_ref().ok().map(Checked::report);
        Self {
            client: profile.client,
            size: profile.size,
            branch: None,
            tvd: match &profile.statistic {
                Statistic::Distance(distance) => Some(*distance),
                Statistic::Histogram(counts) => Some(tvd(counts, reference)),
                _ => None,
            },
            statistic: profile.statistic.clone(),
            quality_share: None,
            size_share: None,
            weight: None,
            entered_weight: None,
            steps: report.map(|report| report.steps),
            norm: answer.as_ref().ok().map(Checked::norm),
            distance: None,
            screened: None,
            first_loss: report.map(|report| report.losses[0]),
            last_loss: report.map(|report| report.losses[1]),
            forgot: job.accepted.is_some() && report.is_some_and(|report| !report.remembers),
            failure: answer.err(),
        }
    }
}

impl Spread {
    /// The spread of at least one value.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let worst = &values[..(values.len() / 10).max(1)];
        let worst_decile = worst.iter().sum::<f64>() / worst.len() as f64;
        Self { mean, deviation: variance.sqrt(), worst_decile }
    }

    /// The mean of each part over several rounds; `None` without rounds, and if one of them has no spread.
    pub fn mean_of(rounds: impl Iterator<Item = Option<Self>>) -> Option<Self> {
        let rounds: Vec<Self> = rounds.collect::<Option<_>>()?;
        let mean = |part: fn(&Self) -> f64| rounds.iter().map(part).sum::<f64>() / rounds.len() as f64;
        (!rounds.is_empty()).then(|| Self {
            mean: mean(|spread| spread.mean),
            deviation: mean(|spread| spread.deviation),
            worst_decile: mean(|spread| spread.worst_decile),
        })
    }
}

/// Effective number of clients: 1 / Σ s².
pub fn effective(weights: &[f64]) -> f64 {
    1.0 / weights.iter().map(|s| s * s).sum::<f64>()
}

fn sentence<S: Serializer>(failure: &Option<ClientFailure>, serializer: S) -> Result<S::Ok, S::Error> {
    failure.as_ref().map(ToString::to_string).serialize(serializer)
}

fn from_sentence<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ClientFailure>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(ClientFailure::Recorded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_decile_is_the_mean_of_the_lowest_tenth() {
        let spread = Spread::of((0..20).map(f64::from).rev().collect());
        assert_eq!((spread.mean, spread.worst_decile), (9.5, 0.5));
        // Standard deviation of 0..20: sqrt((400 - 1) / 12).
        assert!((spread.deviation - (399.0f64 / 12.0).sqrt()).abs() < 1e-12);
        assert_eq!(Spread::of(vec![0.25]).worst_decile, 0.25);
    }
}
