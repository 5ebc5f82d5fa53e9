//! What a client may say about its labels, and nothing more than the strategy asks for.
//!
//! ```text
//! P[c] = h[c] / n                           label distribution of a client with counts h, n = Σ h
//! TVD  = 1/2 Σ |P[c] - Q[c]|                total variation distance to the reference Q
//! d'   = 1/2 Σ |h[c] / (n + 1) - Q[c]|      what the authors' public code computes instead
//! ```

use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// The reference label distribution Q of a run: not negative, sum 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct Reference(Vec<f64>);

/// Why numbers are no distribution.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ReferenceError {
    /// Fewer than two classes.
    #[error("a reference over {0} classes says nothing; at least 2 are needed")]
    Short(usize),
    /// A share that is no share.
    #[error("class {class} has reference {value}; each must be from 0 to 1")]
    Share {
        /// Which class.
        class: usize,
        /// What it says.
        value: f64,
    },
    /// The shares do not make a whole.
    #[error("the reference sums to {0}; it must sum to 1")]
    Sum(f64),
}

impl Reference {
    /// Every class alike, as in the paper.
    ///
    /// # Panics
    /// When there are no classes.
    pub fn uniform(classes: usize) -> Self {
        assert!(classes > 0, "a reference needs classes");
        Self(vec![1.0 / classes as f64; classes])
    }

    /// A given distribution; its sum may miss 1 by 1e-6 and is then made exact.
    pub fn given(shares: Vec<f64>) -> Result<Self, ReferenceError> {
        if shares.len() < 2 {
            return Err(ReferenceError::Short(shares.len()));
        }
        if let Some(class) = shares.iter().position(|share| !(0.0..=1.0).contains(share)) {
            return Err(ReferenceError::Share { class, value: shares[class] });
        }
        let sum: f64 = shares.iter().sum();
        if (sum - 1.0).abs() > 1e-6 {
            return Err(ReferenceError::Sum(sum));
        }
        Ok(Self(shares.into_iter().map(|share| share / sum).collect()))
    }

    /// The distribution of all samples of clients with these counts.
    pub fn aggregated<'a>(counts: impl IntoIterator<Item = &'a [u64]>) -> Result<Self, ReferenceError> {
        let mut total: Vec<f64> = Vec::new();
        for counts in counts {
            total.resize(total.len().max(counts.len()), 0.0);
            for (sum, &count) in total.iter_mut().zip(counts) {
                *sum += count as f64;
            }
        }
        let sum: f64 = total.iter().sum();
        Self::given(total.into_iter().map(|count| count / sum).collect())
    }

    /// The share of each class.
    pub fn shares(&self) -> &[f64] {
        &self.0
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.0.len()
    }

    /// Whether every class has the same share.
    pub fn is_uniform(&self) -> bool {
        self.0.iter().all(|share| *share == self.0[0])
    }

    /// The largest distance that a client can have: all its samples in the rarest class.
    pub fn farthest(&self) -> f64 {
        1.0 - self.0.iter().copied().fold(1.0, f64::min)
    }
}

impl TryFrom<Vec<f64>> for Reference {
    type Error = ReferenceError;
    fn try_from(shares: Vec<f64>) -> Result<Self, ReferenceError> {
        // The sum was made exact when the value was first made; dividing again could change bits.
        match shares.as_slice() {
            [1.0] => Ok(Self::uniform(1)),
            _ => Self::given(shares.clone()).map(|_| Self(shares)),
        }
    }
}

impl From<Reference> for Vec<f64> {
    fn from(reference: Reference) -> Self {
        reference.0
    }
}

/// What a strategy asks a client about its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// Nothing beyond the size.
    Nothing,
    /// One number: the total variation distance to the reference.
    Distance,
    /// One number: the distance as the authors' public code has it.
    Released,
    /// The label counts.
    Histogram,
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "no label statistic",
            Self::Distance => "a distance to the reference",
            Self::Released => "a distance as the authors' public code has it",
            Self::Histogram => "label counts",
        })
    }
}

impl Ask {
    /// The answer of a client with these counts.
    pub fn answer(self, counts: &[u64], reference: &Reference) -> Statistic {
        match self {
            Self::Nothing => Statistic::Nothing,
            Self::Distance => Statistic::Distance(tvd(counts, reference)),
            Self::Released => Statistic::Released(released_distance(counts, reference)),
            Self::Histogram => Statistic::Histogram(counts.to_vec()),
        }
    }
}

/// What a client answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// Nothing.
    Nothing,
    /// TVD to the reference.
    Distance(f64),
    /// d' of the authors' public code.
    Released(f64),
    /// Label counts.
    Histogram(Vec<u64>),
}

impl Statistic {
    /// The question that this answers.
    pub fn ask(&self) -> Ask {
        match self {
            Self::Nothing => Ask::Nothing,
            Self::Distance(_) => Ask::Distance,
            Self::Released(_) => Ask::Released,
            Self::Histogram(_) => Ask::Histogram,
        }
    }
}

/// TVD = 1/2 Σ |P - Q| of a client with these counts.
pub fn tvd(counts: &[u64], reference: &Reference) -> f64 {
    distance(counts, size(counts) as f64, reference)
}

/// d' = 1/2 Σ |h / (n + 1) - Q|, the distance of the authors' public code.
pub fn released_distance(counts: &[u64], reference: &Reference) -> f64 {
    distance(counts, size(counts) as f64 + 1.0, reference)
}

/// n = Σ h.
pub fn size(counts: &[u64]) -> u64 {
    counts.iter().sum()
}

fn distance(counts: &[u64], total: f64, reference: &Reference) -> f64 {
    let gaps = counts.iter().zip(reference.shares()).map(|(&h, q)| (h as f64 / total - q).abs());
    0.5 * gaps.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_three_clients_have_distance_0_and_2_15ths_and_10_33rds() {
        let q = Reference::uniform(3);
        let distances = [[30, 30, 30], [20, 40, 40], [10, 30, 70]].map(|h| tvd(&h, &q));
        for (distance, expected) in distances.iter().zip([0.0, 2.0 / 15.0, 10.0 / 33.0]) {
            assert!((distance - expected).abs() < 1e-15, "{distance} is not {expected}");
        }
    }

    #[test]
    fn a_reference_must_be_a_distribution() {
        let refusal = |shares: &[f64]| Reference::given(shares.to_vec()).unwrap_err().to_string();
        assert_eq!(refusal(&[0.5, 0.6]), "the reference sums to 1.1; it must sum to 1");
        assert_eq!(refusal(&[1.5, -0.5]), "class 0 has reference 1.5; each must be from 0 to 1");
        assert_eq!(refusal(&[f64::NAN, 1.0]), "class 0 has reference NaN; each must be from 0 to 1");
        assert_eq!(refusal(&[1.0]), "a reference over 1 classes says nothing; at least 2 are needed");
    }

    #[test]
    fn an_aggregated_reference_is_the_distribution_of_all_samples() {
        let counts: [&[u64]; 3] = [&[30, 30, 30], &[20, 40, 40], &[10, 30, 70]];
        let q = Reference::aggregated(counts).unwrap();
        // 60, 100 and 140 of 300.
        for (share, expected) in q.shares().iter().zip([0.2, 1.0 / 3.0, 140.0 / 300.0]) {
            assert!((share - expected).abs() < 1e-15);
        }
    }
}
