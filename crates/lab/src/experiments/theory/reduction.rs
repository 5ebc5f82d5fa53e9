//! How often and by how much FedTVD's weights reduce δ², over many comparisons.

use super::dissimilarity::Dissimilarity;
use serde::Serialize;

/// How often and by how much FedTVD's weights reduce δ².
#[derive(Clone, Debug, Serialize)]
pub struct Reduction {
    /// All clients, or random cohorts.
    pub of: &'static str,
    /// Number of comparisons.
    pub count: usize,
    /// Fraction of them in which δ² is at most that with 1/K, the paper's definition for FedAvg.
    pub below_even: f64,
    /// Mean ratio to δ² with 1/K.
    pub ratio_even: f64,
    /// Fraction of them in which δ² is at most that with FedAvg's weights.
    pub below_size: f64,
    /// Mean ratio to δ² with FedAvg's weights.
    pub ratio_size: f64,
}

impl Reduction {
    /// The summary of these comparisons.
    pub fn of(of: &'static str, dissimilarities: &[Dissimilarity]) -> Self {
        let count = dissimilarities.len();
        let mean = |value: &dyn Fn(&Dissimilarity) -> f64| {
            dissimilarities.iter().map(value).sum::<f64>() / count.max(1) as f64
        };
        Self {
            of,
            count,
            below_even: mean(&|d| f64::from(u8::from(d.weighted <= d.even))),
            ratio_even: mean(&|d| d.weighted / d.even),
            below_size: mean(&|d| f64::from(u8::from(d.weighted <= d.size))),
            ratio_size: mean(&|d| d.weighted / d.size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reduction_counts_values_that_do_not_increase_and_averages_the_ratios() {
        let dissimilarity = |even, size, weighted| Dissimilarity { even, size, weighted };
        let all = [
            dissimilarity(2.0, 4.0, 2.0),
            dissimilarity(2.0, 2.0, 3.0),
            dissimilarity(4.0, 1.0, 1.0),
            dissimilarity(1.0, 1.0, 2.0),
        ];
        let reduction = Reduction::of("cohorts", &all);
        assert_eq!(
            (reduction.count, reduction.below_even, reduction.below_size),
            (4, 0.5, 0.5),
            "an equal value is not an increase"
        );
        // (1 + 1.5 + 0.25 + 2) / 4 and (0.5 + 1.5 + 1 + 2) / 4.
        assert_eq!((reduction.ratio_even, reduction.ratio_size), (1.1875, 1.25));
    }
}
