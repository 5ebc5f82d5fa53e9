//! All comparisons of one table with its baseline, so that their verdicts hold together.
//!
//! ```text
//! the interval that is shown and decides: level 1 - 0.05 / m, m: number of comparisons in the table (Bonferroni)
//! the p that belongs to it: min(1, m p); below 0.05 if and only if the interval excludes 0
//! ```
//!
//! With 95 % probability all m intervals contain the true differences at once. The interval of a single comparison (level
//! 0.95) and Holm's p, which is smaller than m p for all but the clearest difference, are given beside them and decide nothing.

use crate::stats::difference::Difference;
use crate::stats::holm::holm;

/// The probability of any wrong verdict in a table.
pub const LEVEL: f64 = 0.05;

/// One comparison in its table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// The difference.
    pub difference: Difference,
    /// Its 95 % interval, as if it were the only comparison.
    pub single: [f64; 2],
    /// Its interval together with all others of the table; it decides the verdict.
    pub simultaneous: [f64; 2],
    /// The p-value, uncorrected.
    pub p: f64,
    /// The p-value corrected by Bonferroni's method.
    pub p_bonferroni: f64,
    /// The p-value corrected by Holm's method.
    pub p_holm: f64,
}

/// The comparisons of a table, in the order of the input.
pub fn compared(differences: &[Difference]) -> Vec<Compared> {
    let all = differences.len() as f64;
    let p: Vec<f64> = differences.iter().map(Difference::p).collect();
    let of = |((difference, p), p_holm): ((&Difference, &f64), f64)| Compared {
        difference: *difference,
        single: difference.interval(1.0 - LEVEL),
        simultaneous: difference.interval(1.0 - LEVEL / all),
        p: *p,
        p_bonferroni: (all * p).min(1.0),
        p_holm,
    };
    differences.iter().zip(&p).zip(holm(&p)).map(of).collect()
}

impl Compared {
    /// The sign of a significant difference: 1 if the interval is above 0, -1 if it is below, 0 if it contains 0.
    pub fn sign(&self) -> i8 {
        let [low, high] = self.simultaneous;
        i8::from(low > 0.0) - i8::from(high < 0.0)
    }
}
