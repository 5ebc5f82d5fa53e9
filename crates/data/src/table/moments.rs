//! Count, mean and squared deviations of a column: what a client sends about it, and what cannot be true.

use super::schema::{Number, Standard};
use serde::{Deserialize, Serialize};

/// Statistics of fewer values than this are not sent: a mean of few is close to each of them.
pub const LEAST_VALUES: u64 = 10;

/// Greatest mean, and its square the greatest variance: squares of larger ones overflow when they are combined.
const GREATEST: f64 = 1e100;

/// The statistics of a column of numbers that a client sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// Number of values; 0 if there are fewer than 10.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Sum of their squared deviations from the mean.
    pub squares: f64,
}

impl Moments {
    /// The moments of these values, NaN for a missing one.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let values = values.filter(|x| !x.is_nan());
        let count = values.clone().count() as u64;
        if count < LEAST_VALUES {
            return Self::default();
        }
        // The mean of differences from the first value: sums of 1e300 would overflow, and 1e9 + small would lose digits.
        let first = values.clone().next().unwrap_or_default();
        let mean = first + values.clone().map(|x| (x - first) / count as f64).sum::<f64>();
        let squares = values.map(|x| (x - mean).powi(2)).sum();
        Self { count, mean, squares }
    }

    /// The same mean and variance, of at most this many values.
    pub fn limited(self, most: u64) -> Self {
        match most {
            0 => Self::default(),
            most if most < self.count => {
                Self { count: most, squares: self.squares / self.count as f64 * most as f64, ..self }
            }
            _ => self,
        }
    }

    /// The standard deviation.
    pub(super) fn deviation(&self) -> f64 {
        (self.squares / self.count as f64).sqrt()
    }

    /// Whether no sum with the moments of others can overflow.
    pub(super) fn combinable(&self) -> bool {
        self.count == 0 || self.mean.abs() <= GREATEST && self.deviation() <= GREATEST
    }

    /// Why these cannot be the moments of at most `size` values of a column.
    pub fn refusal(&self, size: u64, column: &Number) -> Option<String> {
        let Self { count, mean, squares } = *self;
        if count == 0 {
            return (mean != 0.0 || squares != 0.0).then(|| format!("mean {mean} of no values"));
        }
        if count < LEAST_VALUES || count > size {
            return Some(format!("{count} values; it must be 0, or {LEAST_VALUES} to {size}"));
        }
        if !mean.is_finite() || !squares.is_finite() || squares < 0.0 {
            return Some(format!(
                "mean {mean} and squared deviations {squares}; both must be finite, and the latter not negative"
            ));
        }
        if !self.combinable() {
            return Some(format!(
                "mean {mean} and squared deviations {squares} are too large to be combined with those of others; set \
                 bounds, or centre and scale, in the schema"
            ));
        }
        let [least, most] = column.bounds?;
        // Of all values within bounds that have this mean, those at the two bounds deviate most. The tolerances are for
        // rounding.
        let (width, near) = (most - least, 1e-9 * (most - least));
        let widest = count as f64 * ((most - mean) * (mean - least) + 2.0 * near * width);
        let within = (least - near..=most + near).contains(&mean) && squares <= widest;
        (!within)
            .then(|| format!("mean {mean} and squared deviations {squares} of values from {least} to {most}"))
    }
}

/// Centre and scale of these values, NaN for a missing one. `all` are those of the whole column, test rows included: if one of
/// them is beyond 1e100, sums are taken in units of the largest.
pub(crate) fn pooled(values: &[f64], all: &[f64]) -> Standard {
    let seen: Vec<f64> = values.iter().copied().filter(|x| !x.is_nan()).collect();
    let count = seen.len().max(1) as f64;
    // Squares of 1e300 are beyond a float, so numbers are divided by the largest first.
    let largest = all.iter().filter(|x| !x.is_nan()).fold(0.0, |most: f64, x| most.max(x.abs()));
    let unit = if largest > 1e100 { largest } else { 1.0 };
    let mean = seen.iter().map(|x| x / unit).sum::<f64>() / count;
    let deviation = (seen.iter().map(|x| (x / unit - mean).powi(2)).sum::<f64>() / count).sqrt();
    let scale = if deviation > 1e-12 * mean.abs() { deviation } else { 0.0 };
    Standard { centre: mean * unit, scale: scale * unit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_few_values_are_not_sent_and_false_ones_are_refused() {
        assert_eq!(Moments::of((0..9).map(f64::from)), Moments::default());
        let ten = Moments::of((0..10).map(f64::from).chain([f64::NAN]));
        assert_eq!((ten.count, ten.mean, ten.squares), (10, 4.5, 82.5));
        let mut number = Number {
            bounds: None,
            standard: None,
            missing: crate::table::MissingNumber::Centre,
            missing_values: vec![],
            not_numbers: crate::table::NotNumbers::Refuse,
        };
        let refused = |moments: Moments, number: &Number| moments.refusal(20, number).is_some();
        assert!(!refused(ten, &number) && !refused(Moments::default(), &number));
        for (count, mean, squares) in [
            (9, 0.0, 1.0),
            (21, 0.0, 1.0),
            (10, f64::NAN, 1.0),
            (10, 0.0, -1.0),
            (10, 0.0, f64::INFINITY),
            (0, 1.0, 0.0),
            (10, 1e101, 0.0),
            (10, -1e300, 0.0),
            (10, 0.0, 1e202),
        ] {
            assert!(refused(Moments { count, mean, squares }, &number), "{count} {mean} {squares}");
        }
        assert_eq!(ten.limited(10), ten);
        assert_eq!(ten.limited(5), Moments { count: 5, mean: 4.5, squares: 41.25 });
        assert_eq!(ten.limited(0), Moments::default());
        number.bounds = Some([0.0, 10.0]);
        assert!(!refused(ten, &number));
        assert!(refused(Moments { mean: 11.0, ..ten }, &number));
        // All of them at 0 or 10, with this mean: 10 * 5.5 * 4.5.
        assert!(refused(Moments { squares: 247.6, ..ten }, &number));
        assert!(!refused(Moments { squares: 247.5, ..ten }, &number));
        assert!(refused(Moments { count: 10, mean: 10.0, squares: 1e-3 }, &number));
        for [low, high] in [[0.0, 10.0], [0.1, 0.3], [-1e9, 1e-9]] {
            number.bounds = Some([low, high]);
            for highs in 0..=20 {
                let values = (0..20).map(|place| if place < highs { high } else { low });
                assert!(!refused(Moments::of(values), &number), "{low} {high} {highs}");
            }
        }
    }
}
