//! Weights of the classes in a client's loss, as `torch.nn.CrossEntropyLoss(weight=w)` applies them:
//!
//! ```text
//! loss of a batch = Σ w_y l / Σ w_y
//! inverse:  w_c = n / (C n_c)     n samples, n_c of class c, C classes that the client has; 0 for a class that it lacks
//! ```
//!
//! Only training uses them. An evaluation counts every sample the same.

use crate::labels::size;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How much the samples of each class count in a client's loss.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClassWeights {
    /// All samples count the same.
    #[default]
    Equal,
    /// All classes that a client has count the same: each client uses its own label counts.
    Inverse,
    /// The same numbers for every client.
    Given(Costs),
}

/// One number per class, the cost of an error relative to the other classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct Costs(Vec<f64>);

/// Why numbers are not class weights.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum ClassWeightsError {
    /// A weight that is not a positive number of reasonable size.
    #[error("class {class} has weight {value}; each must be from {} to {}", LEAST, MOST)]
    Weight {
        /// The class.
        class: usize,
        /// Its weight.
        value: f64,
    },
    /// Another number of weights than of classes.
    #[error("{given} numbers were given, but there are {classes} classes")]
    Count {
        /// Number of weights.
        given: usize,
        /// Number of classes of the data.
        classes: usize,
    },
}

/// The range of weights: f32 holds any of them, and any ratio of two.
const LEAST: f64 = 1e-6;
const MOST: f64 = 1e6;

impl ClassWeights {
    /// Given weights.
    pub fn given(costs: Vec<f64>) -> Result<Self, ClassWeightsError> {
        costs.try_into().map(Self::Given)
    }

    /// Whether all samples count the same.
    pub fn are_equal(&self) -> bool {
        *self == Self::Equal
    }

    /// Refuses given weights for another number of classes.
    pub fn check(&self, classes: usize) -> Result<(), ClassWeightsError> {
        match self {
            Self::Given(Costs(costs)) if costs.len() != classes => {
                Err(ClassWeightsError::Count { given: costs.len(), classes })
            }
            _ => Ok(()),
        }
    }

    /// As how many equally weighted samples the samples of a client count if the weights are given: (sum of weights)² / (sum
    /// of squared weights). `None` if the weights are not given, but follow from the counts.
    pub fn effective_samples(&self, counts: &[u64]) -> Option<f64> {
        let Self::Given(Costs(costs)) = self else { return None };
        let sum = |power: i32| -> f64 {
            costs.iter().zip(counts).map(|(cost, count)| *count as f64 * cost.powi(power)).sum()
        };
        Some(if sum(2) > 0.0 { sum(1).powi(2) / sum(2) } else { 0.0 })
    }

    /// The weights of a client with these label counts; `None` if all of its samples have the same weight, which
    /// changes nothing. With label smoothing, all classes are targets of every sample, and their weights must be equal.
    pub(crate) fn of_client(&self, counts: &[u64], smoothing: f64) -> Option<Vec<f32>> {
        let weights: Vec<f32> = match self {
            Self::Equal => return None,
            Self::Inverse => inverse(counts).into_iter().map(|weight| weight as f32).collect(),
            Self::Given(Costs(costs)) => costs.iter().map(|cost| *cost as f32).collect(),
        };
        let counts_in_loss = |count: u64| count > 0 || smoothing > 0.0;
        let mut present =
            weights.iter().zip(counts).filter(|(_, count)| counts_in_loss(**count)).map(|(weight, _)| weight);
        let first = present.next()?;
        if present.all(|weight| weight == first) { None } else { Some(weights) }
    }
}

fn inverse(counts: &[u64]) -> Vec<f64> {
    let present = counts.iter().filter(|count| **count > 0).count() as f64;
    let n = size(counts) as f64;
    counts.iter().map(|&count| if count == 0 { 0.0 } else { n / (present * count as f64) }).collect()
}

impl TryFrom<Vec<f64>> for Costs {
    type Error = ClassWeightsError;
    fn try_from(costs: Vec<f64>) -> Result<Self, ClassWeightsError> {
        match costs.iter().position(|cost| !(LEAST..=MOST).contains(cost)) {
            Some(class) => Err(ClassWeightsError::Weight { class, value: costs[class] }),
            None => Ok(Self(costs)),
        }
    }
}

impl From<Costs> for Vec<f64> {
    fn from(costs: Costs) -> Self {
        costs.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverse_weights_have_mean_one_and_are_zero_for_classes_that_a_client_lacks() {
        let counts = [80, 15, 0, 5];
        let weights = ClassWeights::Inverse.of_client(&counts, 0.0).unwrap();
        // n / (C n_c): 100 / (3 * 80), 100 / (3 * 15) and 100 / (3 * 5).
        for (weight, expected) in weights.iter().zip([100.0 / 240.0, 100.0 / 45.0, 0.0, 100.0 / 15.0]) {
            assert!((weight - expected).abs() <= f32::EPSILON * expected, "{weight} {expected}");
        }
        let sum: f64 = weights.iter().zip(counts).map(|(weight, n)| f64::from(*weight) * n as f64).sum();
        // Weights are rounded to f32.
        assert!((sum / 100.0 - 1.0).abs() < 1e-7);
    }

    #[test]
    fn weights_that_are_equal_for_all_samples_of_a_client_reach_no_trainer() {
        let given = |costs: &[f64]| ClassWeights::given(costs.to_vec()).unwrap();
        assert_eq!(ClassWeights::Equal.of_client(&[9, 1], 0.0), None);
        assert_eq!(ClassWeights::Inverse.of_client(&[7, 7, 7], 0.0), None);
        assert_eq!(ClassWeights::Inverse.of_client(&[0, 12, 0], 0.0), None);
        assert_eq!(given(&[3.0, 3.0]).of_client(&[9, 1], 0.0), None);
        assert_eq!(given(&[1.0, 5.0, 5.0]).of_client(&[0, 9, 1], 0.0), None);
        assert_eq!(given(&[1.0, 5.0]).of_client(&[9, 1], 0.0), Some(vec![1.0, 5.0]));
        // Label smoothing spreads a part of each target over classes that the client lacks, too.
        assert_eq!(given(&[1.0, 5.0, 5.0]).of_client(&[0, 9, 1], 0.1), Some(vec![1.0, 5.0, 5.0]));
        assert_eq!(ClassWeights::Inverse.of_client(&[0, 12, 0], 0.1), Some(vec![0.0, 1.0, 0.0]));
        assert_eq!(given(&[3.0, 3.0]).of_client(&[9, 0], 0.1), None);
    }

    #[test]
    fn few_samples_with_most_of_the_weight_count_as_few() {
        let effective =
            |costs: &[f64]| ClassWeights::given(costs.to_vec()).unwrap().effective_samples(&[39, 1]).unwrap();
        assert_eq!(effective(&[2.0, 2.0]), 40.0);
        // (39 + 5)² / (39 + 25)
        assert_eq!(effective(&[1.0, 5.0]), 30.25);
        assert!(effective(&[1e-6, 1e6]) < 1.0 + 1e-9);
        assert_eq!(ClassWeights::Inverse.effective_samples(&[39, 1]), None);
    }

    #[test]
    fn given_weights_must_be_positive_finite_and_one_per_class() {
        let refusal = |costs: &[f64]| ClassWeights::given(costs.to_vec()).unwrap_err().to_string();
        assert_eq!(refusal(&[1.0, 0.0]), "class 1 has weight 0; each must be from 0.000001 to 1000000");
        assert_eq!(refusal(&[-1.0, 1.0]), "class 0 has weight -1; each must be from 0.000001 to 1000000");
        assert_eq!(refusal(&[f64::NAN]), "class 0 has weight NaN; each must be from 0.000001 to 1000000");
        assert_eq!(
            refusal(&[f64::INFINITY]),
            "class 0 has weight inf; each must be from 0.000001 to 1000000"
        );
        let given = ClassWeights::given(vec![1.0, 5.0]).unwrap();
        assert_eq!(given.check(2), Ok(()));
        assert_eq!(given.check(3).unwrap_err().to_string(), "2 numbers were given, but there are 3 classes");
        assert_eq!(ClassWeights::Inverse.check(3), Ok(()));
    }

    #[test]
    fn received_weights_are_checked_as_configured_ones_are() {
        for weights in [ClassWeights::Inverse, ClassWeights::given(vec![0.1, 5.0]).unwrap()] {
            let text = serde_json::to_string(&weights).unwrap();
            assert_eq!(serde_json::from_str::<ClassWeights>(&text).unwrap(), weights);
        }
        for text in
            [r#"{"given":[1,0]}"#, r#"{"given":[1,-2]}"#, r#"{"given":[1,null]}"#, r#"{"given":[1e7]}"#]
        {
            assert!(serde_json::from_str::<ClassWeights>(text).is_err(), "{text}");
        }
    }
}
