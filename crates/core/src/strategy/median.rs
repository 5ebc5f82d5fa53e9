//! Coordinate-wise median of the clients' models.
//!
//! ```text
//! m = the value at which the ascending cumulative weight passes 1/2;
//!     where it equals 1/2 (within 1e-12), the mean of that value and the next one of positive weight
//! ```
//!
//! With the uniform weights that it suggests this is the ordinary median. Buffers are treated like trainable tensors.
//!
//! Yin et al., "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates", ICML 2018.

use crate::model::Params;
use crate::round::{Accepted, ReadFailure, UpdatePart};
use crate::rules::{Combine, Property, Recipe, Spec};
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    suggests: Some("uniform"),
    lacks: &[(Property::AveragesBuffers, "they are combined by the median, like trainable tensors")],
    ..Spec::new(
        "median",
        "the coordinate-wise median of the clients' models; a single outlier cannot move it far",
        "Yin et al., Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates, ICML 2018",
        |_| Recipe { combine: Some(Arc::new(Median)), ..Recipe::default() },
    )
};

#[derive(Debug)]
struct Median;

impl Combine for Median {
    fn combine(
        &self,
        base: &Params,
        accepted: &mut Accepted<'_>,
        weights: &[f64],
    ) -> Result<Vec<f64>, ReadFailure> {
        let mut next = Vec::with_capacity(base.values.len());
        let mut column = Vec::with_capacity(weights.len());
        accepted.blocks(UpdatePart::Model, 0..base.values.len(), |_, blocks| {
            for place in 0..blocks[0].len() {
                column.clear();
                column.extend(blocks.iter().map(|block| block[place]).zip(weights.iter().copied()));
                next.push(weighted_median(&mut column));
            }
        })?;
        Ok(next)
    }
}

/// The weighted median of (value, weight) pairs whose weights sum to 1.
fn weighted_median(pairs: &mut Vec<(f32, f64)>) -> f64 {
    pairs.retain(|(_, weight)| *weight > 0.0);
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut below = 0.0;
    for (place, &(value, weight)) in pairs.iter().enumerate() {
        below += weight;
        let next = pairs.get(place + 1);
        match next {
            Some(&(next, _)) if (below - 0.5f64).abs() <= 1e-12 => {
                return 0.5 * (f64::from(value) + f64::from(next));
            }
            Some(_) if below < 0.5 => {}
            _ => return f64::from(value),
        }
    }
    unreachable!("the weights of a round's clients sum to 1, so one of them is positive")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn median(values: &[f32], weights: &[f64]) -> f64 {
        weighted_median(&mut values.iter().copied().zip(weights.iter().copied()).collect())
    }

    #[test]
    fn equal_weights_give_the_ordinary_median() {
        assert_eq!(median(&[3.0, 1.0, 2.0], &[1.0 / 3.0; 3]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0], &[0.25; 4]), 2.5);
        assert_eq!(median(&[5.0], &[1.0]), 5.0);
        // Ten weights of 0.1 sum to 0.5 only within rounding.
        assert_eq!(median(&[0., 1., 2., 3., 4., 5., 6., 7., 8., 9.], &[0.1; 10]), 4.5);
    }

    #[test]
    fn weights_move_the_median_and_zero_weights_do_not_count() {
        assert_eq!(median(&[1.0, 2.0, 3.0], &[0.6, 0.3, 0.1]), 1.0);
        assert_eq!(median(&[1.0, 2.0, 3.0], &[0.5, 0.0, 0.5]), 2.0);
        assert_eq!(median(&[-0.0, 9.0, 7.0], &[0.0, 0.4, 0.6]), 7.0);
    }
}
