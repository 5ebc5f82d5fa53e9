//! The reference label distribution Q, which clients' labels are compared with.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The reference label distribution Q of a run: not negative, sum 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct Reference(Vec<f64>);

/// Why numbers are not a distribution.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ReferenceError {
    /// Fewer than two classes.
    #[error("a reference needs at least 2 classes, not {0}")]
    Short(usize),
    /// A share outside 0 to 1.
    #[error("class {class} has reference {value}; each must be from 0 to 1")]
    Share {
        /// The class.
        class: usize,
        /// Its share.
        value: f64,
    },
    /// The shares do not sum to 1.
    #[error("the reference sums to {0}; it must sum to 1")]
    Sum(f64),
}

impl Reference {
    /// The uniform distribution, as in the paper.
    ///
    /// # Panics
    /// Panics if there are no classes.
    pub fn uniform(classes: usize) -> Self {
        assert!(classes > 0, "a reference needs at least one class");
        Self(vec![1.0 / classes as f64; classes])
    }

    /// A given distribution, normalised if its sum is within 1e-6 of 1.
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

    /// The label distribution of all samples of clients with these counts.
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

    /// The mixture of clients' label distributions with these weights, which sum to 1.
    pub(crate) fn mixed<'a>(
        clients: impl IntoIterator<Item = (f64, &'a [u64])>,
    ) -> Result<Self, ReferenceError> {
        let mut total: Vec<f64> = Vec::new();
        for (weight, counts) in clients {
            total.resize(total.len().max(counts.len()), 0.0);
            let size: f64 = counts.iter().map(|&count| count as f64).sum();
            for (sum, &count) in total.iter_mut().zip(counts) {
                *sum += weight * (count as f64 / size);
            }
        }
        Self::given(total)
    }

    /// The share of each class.
    pub fn shares(&self) -> &[f64] {
        &self.0
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.0.len()
    }

    /// Whether every class has the same share.
    pub fn is_uniform(&self) -> bool {
        self.0.iter().all(|share| *share == self.0[0])
    }

    /// The largest TVD that a client can have: all its samples in the rarest class.
    pub fn farthest(&self) -> f64 {
        1.0 - self.0.iter().copied().fold(1.0, f64::min)
    }
}

impl TryFrom<Vec<f64>> for Reference {
    type Error = ReferenceError;
    fn try_from(shares: Vec<f64>) -> Result<Self, ReferenceError> {
        // The shares were normalised when the value was created; dividing again could change bits.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_must_be_a_distribution() {
        let refusal = |shares: &[f64]| Reference::given(shares.to_vec()).unwrap_err().to_string();
        assert_eq!(refusal(&[0.5, 0.6]), "the reference sums to 1.1; it must sum to 1");
        assert_eq!(refusal(&[1.5, -0.5]), "class 0 has reference 1.5; each must be from 0 to 1");
        assert_eq!(refusal(&[f64::NAN, 1.0]), "class 0 has reference NaN; each must be from 0 to 1");
        assert_eq!(refusal(&[1.0]), "a reference needs at least 2 classes, not 1");
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
