//! A strategy's mean difference to the baseline over shared seeds, and how uncertain it is.
//!
//! ```text
//! d ± t e,   e = sqrt(e_seeds² + e_rows²)
//! e_seeds: standard deviation of the differences over n seeds, divided by sqrt(n)
//! e_rows:  standard error over the test rows, where all seeds share them (`row_error.rs`); else 0
//! t:       quantile of Student's t with n - 1 degrees of freedom
//! ```
//!
//! Seeds and test rows are crossed: every model predicts every row. With the variances A over seeds, B over rows and C of
//! their interaction, n seeds and r rows, the variance of d is A/n + B/r + C/(nr); e_seeds² estimates A/n + C/(nr) and e_rows²
//! estimates B/r + C/(nr). So e² counts the interaction twice and is too large by C/(nr), and t is that of the seeds alone:
//! both make an interval wider, never narrower. Interval and p come from the same e, so that they agree.

use crate::stats::statistics::{deviation, mean, student, student_beyond};

/// The number of shared seeds from which on there are intervals, p-values and verdicts.
pub const MIN_SEEDS: usize = 3;

/// A mean difference with its standard errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Mean over seeds.
    pub mean: f64,
    /// Number of seeds.
    pub seeds: usize,
    /// Standard error over seeds.
    pub seed_error: f64,
    /// Standard error over the rows of a test set that all seeds share; `None` if it is not counted.
    pub row_error: Option<f64>,
}

impl Difference {
    /// The difference of these seeds; `None` for fewer than [`MIN_SEEDS`].
    pub fn of(differences: &[f64], row_error: Option<f64>) -> Option<Self> {
        let seeds = differences.len();
        let deviation = deviation(differences).filter(|_| seeds >= MIN_SEEDS)?;
        let seed_error = deviation / (seeds as f64).sqrt();
        Some(Self { mean: mean(differences), seeds, seed_error, row_error })
    }

    /// The combined standard error.
    pub fn error(&self) -> f64 {
        self.seed_error.hypot(self.row_error.unwrap_or(0.0))
    }

    /// The confidence interval at a level such as 0.95.
    pub fn interval(&self, level: f64) -> [f64; 2] {
        let half = student(0.5 + 0.5 * level, (self.seeds - 1) as f64) * self.error();
        [self.mean - half, self.mean + half]
    }

    /// The two-sided p-value of no difference.
    pub fn p(&self) -> f64 {
        match self.error() {
            0.0 => f64::from(u8::from(self.mean == 0.0)),
            error => student_beyond(self.mean.abs() / error, (self.seeds - 1) as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_than_three_seeds_have_no_interval() {
        assert_eq!(Difference::of(&[0.1, 0.1], None), None);
        assert!(Difference::of(&[0.1, 0.1, 0.1], None).is_some());
    }

    #[test]
    fn the_error_of_the_rows_widens_interval_and_p_alike() {
        let values = [0.0, 1.0, 2.0, 3.0, 4.0];
        let (alone, both) =
            (Difference::of(&values, None).unwrap(), Difference::of(&values, Some(0.5)).unwrap());
        // sqrt(0.5) over seeds, and sqrt(0.5 + 0.25) with the rows.
        assert!(
            (alone.error() - 0.5f64.sqrt()).abs() < 1e-15 && (both.error() - 0.75f64.sqrt()).abs() < 1e-15
        );
        // t = 2 / sqrt(0.75) = 2.3094 with 4 degrees of freedom: p = 0.0820863 (SciPy 1.17.1, 2 * stats.t.sf).
        assert!((both.p() - 0.082_086_3).abs() < 1e-6, "{}", both.p());
        assert!(alone.interval(0.95)[0] > 0.0 && both.interval(0.95)[0] < 0.0);
    }
}
