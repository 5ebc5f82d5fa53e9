//! Client drift: how far the models of a round's clients move apart during local training.
//!
//! ```text
//! m = Σ s_k w_k,   apart² = Σ s_k ‖w_k − m‖² = Σ s_k ‖w_k − w_t‖² − ‖m − w_t‖²,   along = ‖m − w_t‖
//! ```
//!
//! Over trainable tensors, with the weights of the round. The two are the legs of a right triangle whose
//! hypotenuse is the root mean square of the clients' updates.

use crate::model::Params;
use serde::{Deserialize, Serialize};

/// The clients' drift in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Weighted spread of the clients' models around their mean.
    pub apart: f64,
    /// Distance of that mean from the model that they started with.
    pub along: f64,
}

/// Running sums of a drift, while the models are read in blocks from the first value on.
pub(crate) struct DriftSum<'a> {
    base: &'a [f32],
    weights: &'a [f64],
    /// Number of values added.
    done: usize,
    /// ‖Δ_k‖² of each client.
    squares: Vec<f64>,
    /// ⟨Δ_k, m⟩ of each client with the mean change m.
    dots: Vec<f64>,
    along: f64,
}

impl<'a> DriftSum<'a> {
    /// The drift from `base` of clients with these weights, before any value is added.
    pub(crate) fn new(base: &'a Params, weights: &'a [f64]) -> Self {
        let zeros = vec![0.0; weights.len()];
        Self { base: base.trainable(), weights, done: 0, squares: zeros.clone(), dots: zeros, along: 0.0 }
    }

    /// Adds the clients' values from `start` on. A block that was already added is skipped.
    pub(crate) fn add(&mut self, start: usize, blocks: &[Vec<f32>]) {
        let len = blocks.first().map_or(0, Vec::len).min(self.base.len().saturating_sub(start));
        if start != self.done || len == 0 {
            return;
        }
        let base = &self.base[start..start + len];
        let mut mean = vec![0.0; len];
        for (s, block) in self.weights.iter().zip(blocks) {
            for ((mean, &x), &w) in mean.iter_mut().zip(block).zip(base) {
                *mean += s * (f64::from(x) - f64::from(w));
            }
        }
        for ((square, dot), block) in self.squares.iter_mut().zip(&mut self.dots).zip(blocks) {
            for ((mean, &x), &w) in mean.iter().zip(block).zip(base) {
                let update = f64::from(x) - f64::from(w);
                *square += update * update;
                *dot += update * mean;
            }
        }
        self.along += mean.iter().map(|m| m * m).sum::<f64>();
        self.done += len;
    }

    /// The drift; `None` unless all values were added.
    pub(crate) fn finish(&self) -> Option<Drift> {
        let squares: f64 = self.weights.iter().zip(&self.squares).map(|(s, square)| s * square).sum();
        // Rounding may make this slightly negative for clients that agree.
        let apart = (squares - self.along).max(0.0).sqrt();
        (self.done == self.base.len()).then_some(Drift { apart, along: self.along.sqrt() })
    }

    /// ‖Δ_k − m_k‖ of each client, where m_k is the weighted mean change of the others; empty unless all values were
    /// added. A client that has all the weight has no others.
    pub(crate) fn distances(&self) -> Vec<Option<f64>> {
        if self.done != self.base.len() {
            return Vec::new();
        }
        // m_k = (m − s_k Δ_k) / (1 − s_k), so Δ_k − m_k = (Δ_k − m) / (1 − s_k).
        let distance = |((square, dot), s): ((&f64, &f64), &f64)| {
            let square: f64 = square - 2.0 * dot + self.along;
            (*s < 1.0).then(|| square.max(0.0).sqrt() / (1.0 - s))
        };
        self.squares.iter().zip(&self.dots).zip(self.weights).map(distance).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Layout;
    use crate::round::BLOCK;
    use std::sync::Arc;

    fn drift(base: &[f32], models: &[Vec<f32>], weights: &[f64]) -> Drift {
        let base = Params { layout: Arc::new(Layout::vector(base.len())), values: base.to_vec() };
        let mut sum = DriftSum::new(&base, weights);
        for start in (0..base.values.len()).step_by(BLOCK) {
            let block = |model: &Vec<f32>| model[start..model.len().min(start + BLOCK)].to_vec();
            let blocks: Vec<Vec<f32>> = models.iter().map(block).collect();
            assert_eq!(sum.finish(), None, "some values are missing");
            sum.add(start, &blocks);
            // A rule may read a block again.
            sum.add(start, &blocks);
        }
        sum.finish().unwrap()
    }

    #[test]
    fn clients_that_agree_do_not_drift_apart() {
        let got = drift(&[1.0, 1.0], &[vec![4.0, 5.0], vec![4.0, 5.0]], &[0.25, 0.75]);
        assert_eq!(got, Drift { apart: 0.0, along: 5.0 });
    }

    #[test]
    fn opposite_updates_give_spread_without_movement() {
        // Updates +3 and -1 with weights 1/4 and 3/4: the mean is 0, the spread sqrt(9/4 + 3/4).
        let got = drift(&[0.0], &[vec![3.0], vec![-1.0]], &[0.25, 0.75]);
        assert_eq!(got, Drift { apart: 3f64.sqrt(), along: 0.0 });
    }

    #[test]
    fn a_distance_is_that_from_the_weighted_mean_of_the_others() {
        let base = Params { layout: Arc::new(Layout::vector(2)), values: vec![1.0, 1.0] };
        let mut sum = DriftSum::new(&base, &[0.25, 0.25, 0.5]);
        assert!(sum.distances().is_empty(), "no values yet");
        sum.add(0, &[vec![1.0, 1.0], vec![4.0, 1.0], vec![1.0, 7.0]]);
        // Changes (0, 0), (3, 0), (0, 6). The others' means: (1, 4), (0, 4), (1.5, 0).
        for (got, expected) in sum.distances().iter().zip([17f64.sqrt(), 5.0, (2.25f64 + 36.0).sqrt()]) {
            assert!((got.unwrap() - expected).abs() < 1e-12, "{got:?} is not {expected}");
        }
        let mut alone = DriftSum::new(&base, &[1.0]);
        alone.add(0, &[vec![2.0, 2.0]]);
        assert_eq!(alone.distances(), [None]);
    }

    #[test]
    fn blocks_do_not_change_the_sum() {
        let length = BLOCK + 7;
        let got = drift(&vec![0.0; length], &[vec![1.0; length], vec![0.0; length]], &[0.5, 0.5]);
        // Each coordinate adds 0.25 to both squares.
        let expected = (0.25 * length as f64).sqrt();
        assert!((got.apart - expected).abs() < 1e-9 && (got.along - expected).abs() < 1e-9, "{got:?}");
    }
}
