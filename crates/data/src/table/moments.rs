//! Count, mean and squared deviations of a column, and the centre and scale of a column whose rows are elsewhere.
//!
//! ```text
//! n_k, m_k = Σ x / n_k, q_k = Σ (x - m_k)²         of client k's training rows
//! centre = Σ w_k m_k                               w_k = n_k / Σ n, in hardened mode capped as weights are
//! scale  = sqrt(Σ w_k (q_k / n_k + (m_k - centre)²))
//! ```
//!
//! Sums run in client order. No square of a large mean is subtracted from another, so nothing cancels.

use super::schema::{Number, Schema, Standard};
use fedtvd_core::round::{Mode, hardened};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Statistics of fewer values than this are not sent: a mean of few is close to each of them.
pub const LEAST_VALUES: u64 = 10;

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
        let [least, most] = column.bounds?;
        // Of all values within bounds, those at the two bounds deviate most; the tolerance is for rounding.
        let widest = count as f64 * ((most - least) / 2.0).powi(2) * (1.0 + 1e-9);
        let within = (least..=most).contains(&mean) && squares <= widest;
        (!within)
            .then(|| format!("mean {mean} and squared deviations {squares} of values from {least} to {most}"))
    }
}

/// Centre and scale of a column from its clients' moments, in client order; `None` if nobody has 10 values.
pub fn combined(clients: &[Moments], mode: Mode) -> Option<Standard> {
    let known: Vec<&Moments> = clients.iter().filter(|moments| moments.count > 0).collect();
    let counts: Vec<u64> = known.iter().map(|moments| moments.count).collect();
    let first = known.first()?.mean;
    let weights = match mode {
        Mode::Paper => {
            let total: f64 = counts.iter().map(|&count| count as f64).sum();
            counts.iter().map(|&count| count as f64 / total).collect()
        }
        Mode::Hardened => hardened::size_weights(counts),
    };
    let weighted = || known.iter().zip(&weights);
    let centre = first + weighted().map(|(k, w)| w * (k.mean - first)).sum::<f64>();
    let variance = |k: &Moments| k.squares / k.count as f64 + (k.mean - centre).powi(2);
    let deviation = weighted().map(|(k, w)| w * variance(k)).sum::<f64>().sqrt();
    // A constant column carries no information; its input is 0 instead of a division by 0.
    let scale = if deviation > 1e-12 * centre.abs() { deviation } else { 0.0 };
    (centre.is_finite() && scale.is_finite()).then_some(Standard { centre, scale })
}

/// A column of which no client has statistics.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "column {0:?}: no client has {LEAST_VALUES} values to compute centre and scale from; set both in the schema, or kind \
     = \"ignored\""
)]
pub struct NoValues(pub String);

/// Centre and scale of a schema's open columns from the moments of each client, in client order.
pub fn standards(schema: &Schema, clients: &[Vec<Moments>], mode: Mode) -> Result<Vec<Standard>, NoValues> {
    let standard = |(place, (name, _)): (usize, (&str, &Number))| {
        let told: Vec<Moments> = clients.iter().filter_map(|columns| columns.get(place)).copied().collect();
        combined(&told, mode).ok_or_else(|| NoValues(name.to_owned()))
    };
    schema.open().enumerate().map(standard).collect()
}

/// Centre and scale of these values, NaN for a missing one.
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
    use proptest::prelude::*;

    fn close(a: f64, b: f64, unit: f64) -> bool {
        (a - b).abs() <= 1e-9 * unit.abs().max(a.abs()).max(b.abs())
    }

    proptest! {
        #[test]
        fn combined_moments_are_those_of_all_rows(
            sizes in proptest::collection::vec(10usize..60, 1..6),
            offset in -1e9..1e9,
            seed in any::<u64>(),
        ) {
            let mut state = seed | 1;
            let mut draw = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                offset + (state % 10_000) as f64 / 100.0
            };
            let clients: Vec<Vec<f64>> = sizes.iter().map(|n| (0..*n).map(|_| draw()).collect()).collect();
            let moments: Vec<Moments> = clients.iter().map(|rows| Moments::of(rows.iter().copied())).collect();
            let all = clients.concat();
            let together = combined(&moments, Mode::Paper).unwrap();
            let alone = pooled(&all, &all);
            prop_assert!(close(together.centre, alone.centre, 1.0), "{:?} {:?}", together, alone);
            // 1e9 + x has six digits of x left, so that the deviations differ in the last of them.
            prop_assert!((together.scale - alone.scale).abs() < 1e-5, "{:?} {:?}", together, alone);
            let number = Number { bounds: None, standard: None, missing: crate::table::MissingNumber::Centre,
                missing_values: vec![], not_numbers: crate::table::NotNumbers::Refuse };
            for (moments, rows) in moments.iter().zip(&clients) {
                prop_assert_eq!(moments.refusal(rows.len() as u64, &number), None);
            }
        }
    }

    #[test]
    fn one_client_in_hardened_mode_moves_the_centre_no_further_than_its_cap() {
        let honest = Moments { count: 100, mean: 0.0, squares: 100.0 };
        let liar = Moments { count: 1_000_000, mean: 1.0, squares: 0.0 };
        let clients = [honest, honest, honest, liar];
        let paper = combined(&clients, Mode::Paper).unwrap();
        assert!(paper.centre > 0.999, "{paper:?}");
        // All four count as 100 values.
        let hardened = combined(&clients, Mode::Hardened).unwrap();
        assert_eq!(hardened.centre, 0.25);
        assert!((hardened.scale - (0.75_f64 * (1.0 + 0.0625) + 0.25 * 0.5625).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn few_values_are_not_told_and_false_moments_are_refused() {
        assert_eq!(Moments::of((0..9).map(f64::from)), Moments::default());
        let ten = Moments::of((0..10).map(f64::from).chain([f64::NAN]));
        assert_eq!((ten.count, ten.mean, ten.squares), (10, 4.5, 82.5));
        assert_eq!(combined(&[Moments::default(); 3], Mode::Paper), None);
        assert_eq!(combined(&[Moments::default(), ten], Mode::Paper).unwrap().centre, 4.5);
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
        ] {
            assert!(refused(Moments { count, mean, squares }, &number), "{count} {mean} {squares}");
        }
        assert_eq!(ten.limited(10), ten);
        assert_eq!(ten.limited(5), Moments { count: 5, mean: 4.5, squares: 41.25 });
        assert_eq!(ten.limited(0), Moments::default());
        number.bounds = Some([0.0, 10.0]);
        assert!(!refused(ten, &number));
        assert!(refused(Moments { mean: 11.0, ..ten }, &number));
        assert!(refused(Moments { squares: 251.0, ..ten }, &number));
    }
}
