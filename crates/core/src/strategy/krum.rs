//! Krum: the model of the one client that is nearest to its neighbours.
//!
//! ```text
//! score_k = Σ ‖w_k - w_j‖² over the K - f - 2 nearest other clients j     trainable tensors
//! w = w_k of the lowest score; of equal scores, the first client's
//! ```
//!
//! f = byzantine K, rounded up, and at most the number with which 2f + 2 < K: beyond it the liars could be each other's
//! nearest neighbours. So one liar takes five clients; with fewer, a round changes nothing. A score counts one neighbour at least. Weights do not enter, except that a client of weight 0 does
//! not take part; buffers are those of the same client.
//!
//! Blanchard, El Mhamdi, Guerraoui, Stainer, "Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent",
//! NeurIPS 2017.

use crate::memory::Memory;
use crate::model::Params;
use crate::round::products::Products;
use crate::round::{Accepted, ReadFailure, UpdatePart};
use crate::rules::{Combine, Combined, Guide, Property, Recipe, Spec};
use crate::settings::{Param, Range};
use std::sync::Arc;

pub(super) const PAPER: &str =
    "Blanchard et al., Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent, NeurIPS 2017";

pub(super) const BYZANTINE: Param = Param::number(
    "byzantine",
    0.2,
    Range::BELOW_HALF,
    "greatest fraction of a round's clients that are assumed to lie: rounded up to f clients, with 2f + 2 below the number of clients",
);

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "the update with the least Σ ‖Δ_k - Δ_j‖² over its K - f - 2 nearest others,   f = byzantine K",
        choose: "to see what the classic rule does; against few liars among alike clients, at least five per round: with fewer, a round changes nothing",
        avoid: "under label skew: each round adopts a single client's model; weights play no part in which one",
        cost: "as `fedavg`; the server computes K² distances",
    },
    params: &[BYZANTINE],
    suggests: Some("uniform"),
    lacks: &[(Property::AveragesBuffers, "they are those of the selected client")],
    ..Spec::new("krum", "the model of the one client that is nearest to its neighbours", PAPER, |settings| {
        Recipe { combine: Some(Arc::new(Krum { liars: settings.number("byzantine") })), ..Recipe::default() }
    })
};

#[derive(Debug)]
struct Krum {
    liars: f64,
}

impl Combine for Krum {
    fn least_clients(&self) -> usize {
        least_clients(self.liars)
    }

    fn combine(
        &self,
        base: &Params,
        accepted: &mut Accepted<'_>,
        weights: &[f64],
        _: &mut Memory,
    ) -> Result<Combined, ReadFailure> {
        let candidates = candidates(weights);
        let products = Products::new(base, accepted, &[])?;
        let best = ranked(&products, &candidates, liars(self.liars, candidates.len()))[0];
        let counted: Vec<f64> = (0..weights.len()).map(|k| f64::from(u8::from(k == best))).collect();
        let values = accepted.weighted_sum(UpdatePart::Model, 0..base.values.len(), &counted)?;
        Ok(Combined { values, counted })
    }
}

/// The fewest clients of which one can be assumed to lie: 2f + 2 < K.
pub(super) fn least_clients(fraction: f64) -> usize {
    if fraction > 0.0 { 5 } else { 1 }
}

/// The clients that have a weight; there is always one, since weights sum to 1.
pub(super) fn candidates(weights: &[f64]) -> Vec<usize> {
    (0..weights.len()).filter(|&k| weights[k] > 0.0).collect()
}

/// f: the number of liars that are assumed among this many clients.
pub(super) fn liars(fraction: f64, clients: usize) -> usize {
    // 0.07 · 100 is 7.000000000000001.
    let assumed = (fraction * clients as f64 - 1e-9).ceil() as usize;
    assumed.min(clients.saturating_sub(3) / 2)
}

/// The candidates by ascending score; those of equal scores in client order.
pub(super) fn ranked(products: &Products, candidates: &[usize], liars: usize) -> Vec<usize> {
    let neighbours = candidates.len().saturating_sub(liars + 2).max(1);
    let score = |&k: &usize| -> (usize, f64) {
        let others = candidates.iter().filter(|&&j| j != k);
        let mut squares: Vec<f64> = others.map(|&j| products.squared_distance(k, j)).collect();
        squares.sort_by(f64::total_cmp);
        (k, squares.iter().take(neighbours).sum())
    };
    let mut scores: Vec<(usize, f64)> = candidates.iter().map(score).collect();
    scores.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    scores.into_iter().map(|(k, _)| k).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_liars_is_rounded_up_and_leaves_them_a_minority_of_the_neighbours() {
        for (fraction, clients, expected) in
            [(0.2, 10, 2), (0.2, 11, 3), (0.07, 100, 7), (0.3, 10, 3), (0.4, 10, 3), (0.2, 4, 0), (0.2, 5, 1)]
        {
            assert_eq!(liars(fraction, clients), expected, "{fraction} of {clients}");
        }
        assert!((0..200).all(|clients| {
            let f = liars(0.4999, clients);
            f == 0 || 2 * f + 2 < clients
        }));
    }
}
