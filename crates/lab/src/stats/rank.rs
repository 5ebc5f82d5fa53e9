//! Spearman's rank correlation: whether one quantity goes up with another, however it does so.
//!
//! ```text
//! r = the correlation of the ranks; equal values share the mean of their ranks
//! ```

use crate::stats::statistics::mean;

/// From -1 to 1; `None` for fewer than three pairs, or if one of the quantities is the same everywhere.
pub fn rank_correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let x = ranks(&pairs.iter().map(|(x, _)| *x).collect::<Vec<_>>());
    let y = ranks(&pairs.iter().map(|(_, y)| *y).collect::<Vec<_>>());
    let (mx, my) = (mean(&x), mean(&y));
    let sum = |f: &dyn Fn(f64, f64) -> f64| x.iter().zip(&y).map(|(x, y)| f(x - mx, y - my)).sum::<f64>();
    let scale = sum(&|x, _| x * x) * sum(&|_, y| y * y);
    (scale > 0.0).then(|| sum(&|x, y| x * y) / scale.sqrt())
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| **other < *value).count() as f64;
        let equal = values.iter().filter(|other| **other == *value).count() as f64;
        below + 0.5 * (equal + 1.0)
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_correlation_is_that_of_scipy_also_with_ties() {
        // scipy.stats.spearmanr([1, 2, 2, 5, 9], [3, 1, 4, 4, 20]) of SciPy 1.17.1: 0.7631578947368421.
        let pairs = [(1.0, 3.0), (2.0, 1.0), (2.0, 4.0), (5.0, 4.0), (9.0, 20.0)];
        assert!((rank_correlation(&pairs).unwrap() - 0.7631578947368421).abs() < 1e-12);
        assert_eq!(rank_correlation(&[(1.0, 3.0), (2.0, 2.0), (9.0, -7.0)]), Some(-1.0));
        assert_eq!(rank_correlation(&[(1.0, 3.0), (1.0, 2.0), (1.0, 1.0)]), None);
        assert_eq!(rank_correlation(&[(1.0, 3.0), (2.0, 2.0)]), None);
    }
}
