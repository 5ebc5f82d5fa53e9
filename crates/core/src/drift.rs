//! Client drift: how far the models of a round's clients pull apart while they train.
//!
//! ```text
//! m = Σ s_k w_k,   apart² = Σ s_k ‖w_k − m‖² = Σ s_k ‖w_k − w_t‖² − ‖m − w_t‖²,   along = ‖m − w_t‖
//! ```
//!
//! Over trainable tensors, with the weights that the round used. The two are the legs of a right triangle whose
//! hypotenuse is the root mean square of the clients' updates.

use crate::params::Params;
use crate::updates::{Accepted, BLOCK, Part, ReadFailure};
use serde::{Deserialize, Serialize};

/// The clients' drift in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Weighted spread of the clients' models around their mean.
    pub apart: f64,
    /// How far that mean is from the model that they started with.
    pub along: f64,
}

impl Drift {
    /// The drift of accepted updates from `base`, in blocks and in client order.
    pub(crate) fn of(base: &Params, accepted: &Accepted<'_>, weights: &[f64]) -> Result<Self, ReadFailure> {
        let (mut squares, mut along) = (0.0, 0.0);
        let (mut model, mut mean) = (vec![0.0; BLOCK], vec![0.0; BLOCK]);
        for (place, base) in base.trainable().chunks(BLOCK).enumerate() {
            let start = place * BLOCK;
            let (model, mean) = (&mut model[..base.len()], &mut mean[..base.len()]);
            mean.fill(0.0);
            for (k, s) in weights.iter().enumerate() {
                accepted.read(k, Part::Model, start..start + base.len(), model)?;
                for ((mean, &x), &w) in mean.iter_mut().zip(&*model).zip(base) {
                    let update = f64::from(x) - f64::from(w);
                    *mean += s * update;
                    squares += s * update * update;
                }
            }
            along += mean.iter().map(|m| m * m).sum::<f64>();
        }
        // Rounding may leave a little less than nothing between clients that agree.
        Ok(Self { apart: (squares - along).max(0.0).sqrt(), along: along.sqrt() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::memory::Memory;
    use crate::updates::{InMemory, Report, Upload};
    use std::sync::Arc;

    fn drift(base: &[f32], models: &[Vec<f32>], weights: &[f64]) -> Drift {
        let layout = Arc::new(Layout::vector(base.len()));
        let params = |values: &[f32]| Params { layout: Arc::clone(&layout), values: values.to_vec() };
        let report = Report { round: 0, steps: 1, reach: 0.1, losses: [1.0, 1.0], remembers: true };
        let answer = |(k, model): (usize, &Vec<f32>)| {
            let client = k as u32;
            (client, Ok(Upload { client, params: params(model), carried: Memory::default(), report }))
        };
        let updates = InMemory::new(models.iter().enumerate().map(answer).collect());
        let accepted = Accepted::new(&updates, (0..models.len()).collect(), vec![report; models.len()]);
        Drift::of(&params(base), &accepted, weights).unwrap()
    }

    #[test]
    fn clients_that_agree_do_not_drift_apart() {
        let got = drift(&[1.0, 1.0], &[vec![4.0, 5.0], vec![4.0, 5.0]], &[0.25, 0.75]);
        assert_eq!(got, Drift { apart: 0.0, along: 5.0 });
    }

    #[test]
    fn clients_that_go_opposite_ways_only_drift_apart() {
        // Updates +3 and -1 with weights 1/4 and 3/4: the mean is 0, the spread sqrt(9/4 + 3/4).
        let got = drift(&[0.0], &[vec![3.0], vec![-1.0]], &[0.25, 0.75]);
        assert_eq!(got, Drift { apart: 3f64.sqrt(), along: 0.0 });
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
