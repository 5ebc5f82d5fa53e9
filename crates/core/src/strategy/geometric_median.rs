//! Geometric median, as in RFA: the point with the least weighted sum of distances to the clients' models.
//!
//! ```text
//! z = argmin Σ s_k ‖z - w_k‖                              trainable tensors
//! b_k ∝ s_k / max(nu, ‖z - w_k‖),  z = Σ b_k w_k          repeated: smoothed Weiszfeld, nu = 1e-6
//! g = Σ s_k (z - w_k) / max(nu, ‖z - w_k‖)                the gradient at z
//! ```
//!
//! The iterations start at the mean (b = s). Where huge updates have dragged it away from more than half of the weight, they start at
//! the client's model that is nearest to that half: from the mean each iteration would shrink their pull only by a factor that nears 1 as
//! liars near half of the weight.
//!
//! z always lies between the clients' models, so the iterations change the weights b alone; the models are read once for
//! their inner products and once for Σ b_k w_k. They end when ‖g‖ ≤ 1e-9: the smoothed sum of distances is then at most
//! 1e-9 ‖z - z*‖ above its minimum, whatever a liar sent, since the sum is convex. While liars with less than half of the
//! weight pull z out of reach of the others, ‖g‖ stays near 1 - 2 (their weight), so a huge update cannot end them early.
//! Buffers are averaged with b.
//!
//! Pillutla, Kakade, Harchaoui, "Robust Aggregation for Federated Learning", IEEE Transactions on Signal Processing 2022.

use crate::memory::Memory;
use crate::model::Params;
use crate::round::products::Products;
use crate::round::{Accepted, ReadFailure, UpdatePart};
use crate::rules::{Combine, Combined, Guide, Property, Recipe, Spec};
use crate::settings::Param;
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "the model with the least Σ s_k ‖w - w_k‖",
        choose: "where less than half of the weight may lie, and rotations of the parameters should not matter as they do for `median`",
        avoid: "under label skew against colluding liars: the median leans to the largest group of similar updates; and with weights that clients claim (by size or labels) without strategy.mode = hardened",
        cost: "as `fedavg`; the server computes K² distances",
    },
    params: &[Param::whole(
        "iterations",
        1000,
        (1, 100_000),
        "greatest number of Weiszfeld iterations; they end earlier when they have converged",
    )],
    suggests: Some("uniform"),
    lacks: &[(Property::AveragesBuffers, "they are averaged with the weights of the geometric median")],
    ..Spec::new(
        "geometric-median",
        "the model with the least sum of distances to the clients' models (RFA)",
        "Pillutla, Kakade, Harchaoui, Robust Aggregation for Federated Learning, IEEE Trans. Signal Processing 2022",
        |settings| Recipe {
            combine: Some(Arc::new(GeometricMedian { iterations: settings.whole("iterations") })),
            ..Recipe::default()
        },
    )
};

/// nu: distances below it count as this one, so that a model on the median does not get an infinite weight.
const SMOOTHING: f64 = 1e-6;
/// How much nearer than the mean a client's model must be to half of the weight for the iterations to start there.
const FAR: f64 = 0.1;
/// The norm of the gradient at which the iterations end.
const CONVERGED: f64 = 1e-9;

#[derive(Debug)]
struct GeometricMedian {
    iterations: u64,
}

impl Combine for GeometricMedian {
    fn combine(
        &self,
        base: &Params,
        accepted: &mut Accepted<'_>,
        weights: &[f64],
        _: &mut Memory,
    ) -> Result<Combined, ReadFailure> {
        let products = Products::new(base, accepted, &[])?;
        let counted = self.weights(&products, weights);
        let values = accepted.weighted_sum(UpdatePart::Model, 0..base.values.len(), &counted)?;
        Ok(Combined { values, counted })
    }
}

impl GeometricMedian {
    /// b: the weights with which the clients' models make up the geometric median.
    fn weights(&self, products: &Products, s: &[f64]) -> Vec<f64> {
        let mut b = start(products, s);
        for _ in 0..self.iterations {
            let distances = products.distances(&b);
            let pulls: Vec<f64> = s.iter().zip(distances).map(|(s, d)| s / d.max(SMOOTHING)).collect();
            let sum: f64 = pulls.iter().sum();
            let next: Vec<f64> = pulls.iter().map(|pull| pull / sum).collect();
            let moved: Vec<f64> = next.iter().zip(&b).map(|(next, b)| next - b).collect();
            b = next;
            // The step of Weiszfeld is -g / sum.
            if sum * products.norm(&moved) <= CONVERGED {
                break;
            }
        }
        b
    }
}

/// The mean, or the client's model to which more than half of the weight is near, if that weight is far from the mean.
fn start(products: &Products, s: &[f64]) -> Vec<f64> {
    let around =
        |k: usize| (0..s.len()).map(|j| products.squared_distance(k, j).sqrt()).collect::<Vec<f64>>();
    let one = |k: usize| (0..s.len()).map(|j| f64::from(u8::from(j == k))).collect();
    let nearest = (0..s.len()).map(|k| (radius(&around(k), s), k)).min_by(|(a, _), (b, _)| a.total_cmp(b));
    match nearest {
        Some((near, k)) if near < FAR * radius(&products.distances(s), s) => one(k),
        _ => s.to_vec(),
    }
}

/// The least distance within which more than half of the weight lies.
fn radius(distances: &[f64], weights: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|&a, &b| distances[a].total_cmp(&distances[b]));
    let mut within = 0.0;
    let most = order.iter().find(|&&k| {
        within += weights[k];
        within > 0.5 + 1e-12
    });
    most.or(order.last()).map_or(0.0, |&k| distances[k])
}
