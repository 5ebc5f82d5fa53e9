//! Centred clipping: clients pull the last round's change towards their own, each by a limited distance.
//!
//! ```text
//! x_k = w_k - w_t,   v = the change of the last round, 0 at first
//! v <- v + Σ s_k (x_k - v) min(1, r / ‖x_k - v‖)          `iterations` times
//! r = tau · weighted median of ‖x_k - v‖                  anew in every iteration
//! w = w_t + v
//! ```
//!
//! The paper has a fixed radius r, tuned for each task. The length of a change of a deep network depends on the model, the
//! learning rate, the local steps and the round, so no number fits without tuning; the radius here is relative to the
//! round's own distances instead. This is a choice of this project, not of the paper. While liars have less than half of
//! the weight, the median is at most the greatest distance of an honest client, so in one iteration liars with weight a
//! move v by at most a · r.
//!
//! v stays a combination of its start and the clients' changes, so the iterations change the weights of a sum, and the
//! models are read twice. Norms are over trainable tensors. Buffers are summed with the same weights; their start is w_t
//! itself, since a running variance that changed twice as much could be negative.
//!
//! Karimireddy, He, Jaggi, "Learning from History for Byzantine Robust Optimization", ICML 2021.

use crate::memory::Memory;
use crate::model::Params;
use crate::round::products::Products;
use crate::round::{Accepted, ReadFailure, UpdatePart};
use crate::rules::{Combine, Combined, Guide, Property, Recipe, Spec};
use crate::settings::{Param, Range};
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "v <- v + Σ s_k (Δ_k - v) min(1, r / ‖Δ_k - v‖),   r = tau · median of ‖Δ_k - v‖,   from the last round's change",
        choose: "against liars that change slowly over rounds: the last round's change is where each round starts",
        avoid: "where cohorts change completely from round to round: the last round's change is then a poor centre; and with weights that clients claim (by size or labels) without strategy.mode = hardened",
        cost: "as `fedavg`; the server keeps one more vector as long as the model",
    },
    params: &[
        Param::number(
            "tau",
            1.0,
            Range::closed(0.01, 1000.0),
            "clipping radius, as a multiple of the median distance of the clients from the centre",
        ),
        Param::whole(
            "iterations",
            3,
            (1, 1000),
            "how often the centre is moved; with one, it stays near the last change",
        ),
    ],
    suggests: Some("uniform"),
    lacks: &[
        (Property::StaysBetweenTheClients, "the change of the last round, or none in the first, counts too"),
        (Property::AveragesBuffers, "they are combined with the weights after clipping"),
    ],
    ..Spec::new(
        "centred-clipping",
        "each client pulls the last round's change towards its own by a limited distance",
        "Karimireddy, He, Jaggi, Learning from History for Byzantine Robust Optimization, ICML 2021",
        |settings| Recipe {
            combine: Some(Arc::new(CentredClipping {
                tau: settings.number("tau"),
                iterations: settings.whole("iterations"),
            })),
            ..Recipe::default()
        },
    )
};

/// The name of v in the memory.
const CENTRE: &str = "centre";

#[derive(Debug)]
struct CentredClipping {
    tau: f64,
    iterations: u64,
}

impl Combine for CentredClipping {
    fn combine(
        &self,
        base: &Params,
        accepted: &mut Accepted<'_>,
        weights: &[f64],
        memory: &mut Memory,
    ) -> Result<Combined, ReadFailure> {
        let trainable = base.layout.trainable();
        let start = memory.f32(CENTRE).map_or_else(|| vec![0.0; trainable], <[f32]>::to_vec);
        let products = Products::new(base, accepted, &[&start])?;
        let (clients, rest) = self.weights(&products, weights);
        let mut values = accepted.weighted_sum(UpdatePart::Model, 0..base.values.len(), &clients)?;
        values.iter_mut().zip(&base.values).for_each(|(value, &w)| *value += rest * f64::from(w));
        values.iter_mut().zip(&start).for_each(|(value, &v)| *value += rest * f64::from(v));
        let changes = values.iter().zip(base.trainable()).map(|(value, &w)| (value - f64::from(w)) as f32);
        memory.put(CENTRE, changes.collect::<Vec<f32>>());
        let sum: f64 = clients.iter().sum();
        Ok(Combined { values, counted: clients.iter().map(|weight| weight / sum).collect() })
    }
}

impl CentredClipping {
    /// The weights of the clients and of the start in the last v. The start is the last point of the products.
    fn weights(&self, products: &Products, s: &[f64]) -> (Vec<f64>, f64) {
        let mut b = vec![0.0; s.len()];
        let mut rest = 1.0;
        for _ in 0..self.iterations {
            let point: Vec<f64> = b.iter().copied().chain([rest]).collect();
            let distances = products.distances(&point);
            let radius = self.tau * median(&distances[..s.len()], s);
            let clipped = |(s, &d): (&f64, &f64)| s * if d <= radius { 1.0 } else { radius / d };
            let pulls: Vec<f64> = s.iter().zip(&distances).map(clipped).collect();
            let left = (1.0 - pulls.iter().sum::<f64>()).max(0.0);
            b.iter_mut().zip(pulls).for_each(|(b, pull)| *b = left * *b + pull);
            rest *= left;
        }
        (b, rest)
    }
}

/// The least distance that clients with half of the weight do not exceed.
fn median(distances: &[f64], weights: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..weights.len()).filter(|&k| weights[k] > 0.0).collect();
    order.sort_by(|&a, &b| distances[a].total_cmp(&distances[b]));
    let mut below = 0.0;
    for &k in &order {
        below += weights[k];
        if below >= 0.5 - 1e-12 {
            return distances[k];
        }
    }
    order.last().map_or(0.0, |&k| distances[k])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_weight_lies_within_the_median_distance() {
        assert_eq!(median(&[9.0, 1.0, 5.0], &[0.2, 0.2, 0.6]), 5.0);
        assert_eq!(median(&[9.0, 1.0], &[0.5, 0.5]), 1.0);
        assert_eq!(median(&[0.0, 4.0], &[0.0, 1.0]), 4.0);
        // Six weights of 1/12 sum to 0.49999999999999994.
        let distances: Vec<f64> = (0..12).map(f64::from).collect();
        assert_eq!(median(&distances, &[1.0 / 12.0; 12]), 5.0);
    }
}
