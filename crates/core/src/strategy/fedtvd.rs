//! FedTVD: clients get larger weights the more balanced their labels and the larger their data are.
//!
//! ```text
//! TVD_k = 1/2 Σ_c |P_k[c] - Q[c]|                       sent by the client         (1-3)
//! a_k   = exp(-TVD_k / T) / Σ_j exp(-TVD_j / T)         quality; the paper: T = 1  (4)
//! s_k   = lambda a_k + (1 - lambda) n_k / Σ_j n_j                                  (5-6)
//! w     = Σ_k s_k w_k                                                              (7)
//! ```
//!
//! Sums run over the round's clients. lambda = 0 is FedAvg. At T = 1 the quality shares of ten classes lie
//! within a factor of exp(0.9) = 2.46 of each other, so the weights are close to a mixture of uniform and size.
//!
//! Selo, Kundroo, Kim, "FedTVD: Balancing Data Quality and Quantity for Robust Federated Learning", FGCS 2025.

use crate::labels::{Ask, Reference, Statistic};
use crate::memory::Memory;
use crate::round::Profile;
use crate::rules::{Guide, Recipe, Settings, Shares, Spec, Weighting};
use crate::settings::{Param, Range};
use crate::strategy::fedavg::{mixed, size_shares};
use std::sync::Arc;

pub(super) const LAMBDA: Param = Param::number(
    "lambda",
    0.5,
    Range::UNIT,
    "share of label balance in the weights: 0 is size alone, 1 is balance alone",
);

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "TVD_k = 1/2 Σ_c |P_k[c] - Q[c]|,   a = softmax(-TVD / temperature),   s = lambda a + (1 - lambda) n / Σ n",
        choose: "to reproduce the paper, and where sizes and label balance of clients differ much",
        avoid: "as the only remedy against label skew: at temperature 1 its weights are nearly half uniform, half by size; `balanced` gains far more",
        cost: "as `fedavg`, and one number per client once",
    },
    params: &[
        LAMBDA,
        Param::number(
            "temperature",
            1.0,
            Range::POSITIVE,
            "temperature of the softmax: the smaller, the more the weights differ; the paper uses 1",
        ),
    ],
    ..Spec::new(
        "fedtvd",
        "clients with balanced labels get larger weights, by the total variation distance (TVD) of their labels",
        "Selo, Kundroo, Kim, FedTVD: Balancing Data Quality and Quantity for Robust Federated Learning, FGCS 2025",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    let (lambda, temperature) = (settings.number("lambda"), settings.number("temperature"));
    Recipe { weighting: Some(Arc::new(Tvd { lambda, temperature })), ..Recipe::default() }
}

#[derive(Debug)]
struct Tvd {
    lambda: f64,
    temperature: f64,
}

impl Weighting for Tvd {
    fn asks(&self) -> Ask {
        Ask::Distance
    }

    fn shares(&self, profiles: &[&Profile], _: &Reference, _: &mut Memory) -> Shares {
        let distances: Vec<f64> = profiles.iter().map(|profile| distance(profile)).collect();
        // Relative to the nearest client, so that the largest logit is 0 at any temperature.
        let nearest = distances.iter().copied().fold(f64::INFINITY, f64::min);
        let logits: Vec<f64> = distances.iter().map(|d| (nearest - d) / self.temperature).collect();
        mixed(self.lambda, softmax(&logits), size_shares(profiles))
    }
}

/// The distance that a client reported at enrolment.
///
/// # Panics
/// Panics if it reported another statistic, which enrolment refuses.
fn distance(profile: &Profile) -> f64 {
    match profile.statistic {
        Statistic::Distance(distance) => distance,
        _ => panic!("client {} was enrolled without the distance that its strategy asks for", profile.client),
    }
}

/// exp(x_k) / Σ exp(x_j), with the largest x subtracted first so that nothing overflows.
pub(super) fn softmax(logits: &[f64]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = logits.iter().map(|x| (x - largest).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}
