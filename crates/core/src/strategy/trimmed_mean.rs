//! Trimmed mean: per parameter, the lowest and the highest values are dropped before the mean is taken.
//!
//! ```text
//! clients in ascending order of their values;  C_k = s_1 + ... + s_k
//! e_k = length of [C_(k-1), C_k] within [trim, 1 - trim]
//! m   = Σ e_k x_k / Σ e_k
//! ```
//!
//! A fraction `trim` of the weight is dropped at each end, so a client at the edge counts in part. With equal weights and
//! trim = b/K this is the ordinary mean without the b lowest and the b highest values: with at most b liars, each
//! parameter lies within the range of the honest clients. Clients with equal values share what is left of their weights.
//! Buffers are treated like trainable tensors.
//!
//! Yin et al., "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates", ICML 2018.

use crate::memory::Memory;
use crate::model::Params;
use crate::round::{Accepted, ReadFailure, UpdatePart};
use crate::rules::{Combine, Combined, Guide, Property, Recipe, Spec};
use crate::settings::{Param, Range};
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "per parameter: the weighted mean without the lowest and the highest `trim` of the weight",
        choose: "against up to `trim` of the weight in liars, with at least 1 / trim clients per round: of fewer, no client is dropped completely",
        avoid: "under strong label skew: what is trimmed is what rare classes need; and with weights that clients claim (by size or labels) without strategy.mode = hardened",
        cost: "as `fedavg`; the server sorts K values per parameter",
    },
    params: &[Param::number(
        "trim",
        0.2,
        Range::BELOW_HALF,
        "fraction of the weight that is dropped at each end, for every parameter",
    )],
    suggests: Some("uniform"),
    lacks: &[(Property::AveragesBuffers, "they are trimmed like trainable tensors")],
    ..Spec::new(
        "trimmed-mean",
        "the mean of the clients' models without the lowest and highest values of each parameter",
        "Yin et al., Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates, ICML 2018",
        |settings| Recipe {
            combine: Some(Arc::new(TrimmedMean { trim: settings.number("trim").min(NARROWEST) })),
            ..Recipe::default()
        },
    )
};

/// The largest trim: it leaves far more weight than sums of weights are rounded by.
const NARROWEST: f64 = 0.5 - 1e-6;
/// Weights that are left over by rounding. They must not count: a liar's value may be 3e38.
const ROUNDING: f64 = 1e-12;

#[derive(Debug)]
struct TrimmedMean {
    trim: f64,
}

impl Combine for TrimmedMean {
    fn combine(
        &self,
        base: &Params,
        accepted: &mut Accepted<'_>,
        weights: &[f64],
        _: &mut Memory,
    ) -> Result<Combined, ReadFailure> {
        let values = base.values.len();
        let mut next = Vec::with_capacity(values);
        let mut counted = vec![0.0; weights.len()];
        let mut order: Vec<usize> = (0..weights.len()).collect();
        let (mut column, mut left) = (vec![0.0; weights.len()], vec![0.0; weights.len()]);
        accepted.blocks(UpdatePart::Model, 0..values, |_, blocks| {
            for place in 0..blocks[0].len() {
                column.iter_mut().zip(blocks).for_each(|(value, block)| *value = block[place]);
                self.trim(&column, weights, &mut order, &mut left);
                let sum: f64 = left.iter().sum();
                let total: f64 = left.iter().zip(&column).map(|(e, &x)| e * f64::from(x)).sum();
                next.push(total / sum);
                counted.iter_mut().zip(&left).for_each(|(counted, e)| *counted += e / sum);
            }
        })?;
        counted.iter_mut().for_each(|counted| *counted /= values as f64);
        Ok(Combined { values: next, counted })
    }
}

impl TrimmedMean {
    /// Writes what is left of each client's weight. `order` is any order of the clients.
    fn trim(&self, values: &[f32], weights: &[f64], order: &mut [usize], left: &mut [f64]) {
        // Sums of weights depend on their order, so clients with equal values have a fixed one.
        order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]).then(a.cmp(&b)));
        let (low, high) = (self.trim, 1.0 - self.trim);
        let mut below = 0.0;
        for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
            let weight: f64 = equal.iter().map(|&client| weights[client]).sum();
            let above = below + weight;
            let within: f64 = (high.min(above) - low.max(below)).min(weight);
            let part = if within > ROUNDING { within / weight } else { 0.0 };
            equal.iter().for_each(|&client| left[client] = part * weights[client]);
            below = above;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(trim: f64, values: &[f32], weights: &[f64]) -> Vec<f64> {
        let (mut order, mut left) = ((0..values.len()).collect::<Vec<_>>(), vec![f64::NAN; values.len()]);
        TrimmedMean { trim }.trim(values, weights, &mut order, &mut left);
        left
    }

    fn near(got: &[f64], expected: &[f64]) -> bool {
        got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-15)
    }

    #[test]
    fn a_client_at_the_edge_counts_in_part() {
        // In ascending order 0.5, 0.3, 0.2: [0, 0.5], [0.5, 0.8], [0.8, 1] within [0.25, 0.75].
        let got = left(0.25, &[3.0, 1.0, 2.0], &[0.2, 0.5, 0.3]);
        assert!(near(&got, &[0.0, 0.25, 0.25]), "{got:?}");
        assert!(near(&left(0.0, &[3.0, 1.0], &[0.25, 0.75]), &[0.25, 0.75]));
    }

    #[test]
    fn rounding_of_the_weights_leaves_nothing_of_a_client_that_is_dropped() {
        for clients in 3..=100usize {
            let values: Vec<f32> = (0..clients).map(|k| k as f32).collect();
            let weights = vec![1.0 / clients as f64; clients];
            for dropped in 1..clients.div_ceil(2) {
                let got = left(dropped as f64 / clients as f64, &values, &weights);
                let kept: Vec<usize> = (0..clients).filter(|&k| got[k] != 0.0).collect();
                assert_eq!(kept, (dropped..clients - dropped).collect::<Vec<_>>(), "{dropped} of {clients}");
            }
        }
    }

    #[test]
    fn clients_with_equal_values_share_what_is_left_of_their_weights() {
        // The zeros of both signs are one value; they span [0, 0.75], of which [0.2, 0.75] is left.
        let got = left(0.2, &[0.0, -0.0, 5.0, 0.0], &[0.25; 4]);
        assert!(near(&got, &[0.55 / 3.0, 0.55 / 3.0, 0.05, 0.55 / 3.0]), "{got:?}");
    }
}
