//! What normalises one channel of a batch norm. With constants a and b and a floor, the batch's mean and variance become
//!
//! ```text
//! m~ = m + a;   v~ = max(v + b, floor)
//! ```

use fedtvd_core::train::NormShift;

/// The mean and variance that normalise a channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Normaliser {
    pub(crate) mean: f64,
    pub(crate) variance: f64,
    /// Whether the variance is the floor, and so does not depend on the batch.
    pub(crate) floored: bool,
}

impl Normaliser {
    /// Statistics as they are.
    pub(crate) fn of((mean, variance): (f64, f64)) -> Self {
        Self { mean, variance, floored: false }
    }

    /// A batch's statistics with constants, which lie at these places among the buffers.
    pub(crate) fn shifted(
        (mean, variance): (f64, f64),
        norm: &NormShift<'_>,
        [of_mean, of_variance]: [usize; 2],
    ) -> Self {
        let variance = variance + f64::from(norm.shift[of_variance]);
        let floor = f64::from(norm.floor[of_variance]);
        Self {
            mean: mean + f64::from(norm.shift[of_mean]),
            variance: variance.max(floor),
            floored: variance < floor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn shifted_statistics_are_the_golden_ones_and_a_variance_is_never_below_its_floor() {
        let golden: Value =
            serde_json::from_str(include_str!("../../tests/golden/bn_scaffold.json")).unwrap();
        let number = |name: &str| golden[name].as_f64().unwrap();
        let batch = (number("mu_B"), number("var_B"));
        let shift = [number("mu") - number("mu_i"), number("var") - number("var_i")].map(|x| x as f32);
        let floor = [0.0, number("var_floor") as f32];
        let norm = NormShift { shift: &shift, floor: &floor };
        let shifted = Normaliser::shifted(batch, &norm, [0, 1]);
        // All of them are exact in f32.
        assert_eq!((shifted.mean, shifted.variance), (number("mu_tilde"), number("var_tilde")));
        assert!(!shifted.floored);
        let values = golden["x"].as_array().unwrap().iter().zip(golden["y"].as_array().unwrap());
        for (x, y) in values.map(|(x, y)| (x.as_f64().unwrap(), y.as_f64().unwrap())) {
            let found = (x - shifted.mean) / (shifted.variance + number("eps")).sqrt();
            assert!((found - y).abs() < 1e-12, "{found} is not {y}");
        }
        let norm = NormShift { shift: &[0.0, -5.2495], ..norm };
        let low = Normaliser::shifted(batch, &norm, [0, 1]);
        assert_eq!((low.mean, low.variance, low.floored), (3.5, f64::from(0.001f32), true));
    }
}
