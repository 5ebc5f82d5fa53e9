//! How much a difference depends on which rows are in the test set.
//!
//! ```text
//! d_i = mean over seeds of (row i right by the strategy) - (row i right by the baseline)
//! e_rows = sqrt(Σ (d_i - d)²) / r,   d: the mean of d_i over r rows
//! ```
//!
//! This is the standard error of the paired bootstrap over test rows (the same resample of rows for both strategies and all
//! seeds) with infinitely many resamples; of a mean it has this closed form, so that nothing has to be drawn. It is
//! measured with the final models, and stands for the mean over the last rounds.

use crate::stats::statistics::mean;

/// The models of one seed: which test rows the strategy classifies correctly, and which the baseline does.
pub type PairedRows<'a> = [&'a [bool]; 2];

/// The standard error over test rows of the mean difference over seeds; `None` without rows or seeds.
///
/// # Panics
/// Panics if the models have different numbers of rows.
pub fn row_error(seeds: &[PairedRows<'_>]) -> Option<f64> {
    let rows = seeds.first()?[0].len();
    assert!(seeds.iter().flatten().all(|right| right.len() == rows), "all models have the same test rows");
    if rows == 0 {
        return None;
    }
    let difference = |row: usize| {
        let of = |[own, baseline]: &PairedRows<'_>| f64::from(own[row]) - f64::from(baseline[row]);
        seeds.iter().map(of).sum::<f64>() / seeds.len() as f64
    };
    let differences: Vec<f64> = (0..rows).map(difference).collect();
    let all = mean(&differences);
    let squares: f64 = differences.iter().map(|d| (d - all).powi(2)).sum();
    Some(squares.sqrt() / rows as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_core::stream::{Purpose, Stream};

    #[test]
    fn the_error_is_that_of_resampled_rows() {
        let mut stream = Stream::at(7, Purpose::Bootstrap, 1, 0);
        let mut right =
            |percent: u64| -> Vec<bool> { (0..150).map(|_| stream.below(100) < percent).collect() };
        let models = [[right(80), right(70)], [right(60), right(75)], [right(90), right(72)]];
        let seeds: Vec<PairedRows<'_>> = models.iter().map(|[own, other]| [&own[..], &other[..]]).collect();
        let exact = row_error(&seeds).unwrap();
        let mut stream = Stream::at(8, Purpose::Bootstrap, 1, 0);
        let mut resample = || {
            let rows: Vec<usize> = (0..150).map(|_| stream.below(150) as usize).collect();
            let hits = |right: &[bool]| rows.iter().filter(|row| right[**row]).count() as f64 / 150.0;
            mean(&seeds.iter().map(|[own, other]| hits(own) - hits(other)).collect::<Vec<_>>())
        };
        let drawn: Vec<f64> = (0..4000).map(|_| resample()).collect();
        let drawn = crate::stats::statistics::deviation(&drawn).unwrap();
        // The standard deviation of 4,000 draws has a relative error of 1.1 %; the tolerance is four of these.
        assert!((drawn / exact - 1.0).abs() < 0.045, "{drawn} is not {exact}");
    }

    #[test]
    fn equal_predictions_have_no_error_and_no_rows_have_none_to_count() {
        let right = [true, false, true];
        assert_eq!(row_error(&[[&right, &right], [&right, &right]]), Some(0.0));
        assert_eq!((row_error(&[]), row_error(&[[&[], &[]]])), (None, None));
    }
}
