//! How often and by how much FedTVD's weights reduce δ², over many comparisons.

use super::dissent::Dissent;
use serde::Serialize;

/// How often and by how much FedTVD's weights reduce δ².
#[derive(Clone, Debug, Serialize)]
pub struct Reduction {
    /// All clients, or random cohorts.
    pub of: &'static str,
    /// How many comparisons.
    pub count: usize,
    /// Share of them in which it is no more than with 1/K, as the paper has it.
    pub below_even: f64,
    /// Mean of its ratio to that.
    pub ratio_even: f64,
    /// Share of them in which it is no more than with FedAvg's own weights.
    pub below_size: f64,
    /// Mean of its ratio to that.
    pub ratio_size: f64,
}

impl Reduction {
    /// Over these, which are of all clients or of random cohorts.
    pub fn of(of: &'static str, dissents: &[Dissent]) -> Self {
        let count = dissents.len();
        let mean =
            |value: &dyn Fn(&Dissent) -> f64| dissents.iter().map(value).sum::<f64>() / count.max(1) as f64;
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
    fn a_reduction_counts_what_does_not_rise_and_averages_the_ratios() {
        let dissent = |even, size, weighted| Dissent { even, size, weighted };
        let all =
            [dissent(2.0, 4.0, 2.0), dissent(2.0, 2.0, 3.0), dissent(4.0, 1.0, 1.0), dissent(1.0, 1.0, 2.0)];
        let told = Reduction::of("cohorts", &all);
        assert_eq!(
            (told.count, told.below_even, told.below_size),
            (4, 0.5, 0.5),
            "as much as before is no rise"
        );
        // (1 + 1.5 + 0.25 + 2) / 4 and (0.5 + 1.5 + 1 + 2) / 4.
        assert_eq!((told.ratio_even, told.ratio_size), (1.1875, 1.25));
    }
}
