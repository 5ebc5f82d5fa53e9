//! Which rows of a set without test data are for testing.

/// Which rows are for testing: in each stratum the same share, spread evenly over the rows.
pub(crate) fn test_rows(strata: &[usize], share: f64) -> Vec<bool> {
    let mut seen = vec![0.0; strata.iter().max().map_or(0, |most| most + 1)];
    let test = |stratum: &usize| {
        let before: f64 = seen[*stratum];
        seen[*stratum] += 1.0;
        // The last of every 1 / share rows; the tolerance keeps 5 * 0.2 at 1.
        ((before + 1.0) * share + 1e-9).floor() > (before * share + 1e-9).floor()
    };
    strata.iter().map(test).collect()
}

/// The rows in the order that a data set has them: for training, then for testing.
pub(crate) fn train_first(test: &[bool]) -> (Vec<usize>, usize) {
    let (train, test): (Vec<usize>, Vec<usize>) = (0..test.len()).partition(|row| !test[*row]);
    let count = train.len();
    ([train, test].concat(), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stratum_gives_the_same_share_for_testing() {
        let strata: Vec<usize> = (0..100).map(|row| usize::from(row % 10 == 0)).collect();
        let test = test_rows(&strata, 0.2);
        assert_eq!(test.iter().filter(|test| **test).count(), 20);
        assert_eq!((0..100).filter(|row| test[*row] && row % 10 == 0).collect::<Vec<_>>(), [40, 90]);
        assert_eq!(train_first(&[false, true, false]), (vec![0, 2, 1], 2));
    }
}
