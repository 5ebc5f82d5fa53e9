//! Columns of a table as numbers that a network can read.
//!
//! Numbers are standardised with the mean and standard deviation of the training rows. A missing number is replaced by
//! the mean, with a missing-value indicator as a further input. Categories are one-hot, all 0 if missing.

use fedtvd_core::train::Values;

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    /// Its name.
    pub(crate) name: String,
    /// Its entries, row by row.
    pub(crate) entries: Entries,
}

/// The entries of a column; `None` if missing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entries {
    /// Numbers.
    Numbers(Vec<Option<f64>>),
    /// One of several categories.
    Categories(Vec<Option<usize>>, usize),
}

/// Inputs, row after row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Features {
    /// Inputs of a row.
    pub(crate) width: usize,
    /// All inputs.
    pub(crate) values: Vec<f32>,
    /// What was done about missing entries, one sentence per column.
    pub(crate) notes: Vec<String>,
}

impl Features {
    /// The inputs of the columns; mean and standard deviation are those of the first `train` rows.
    pub(crate) fn of(columns: &[Column], train: usize) -> Self {
        let mut inputs: Vec<Vec<f32>> = Vec::new();
        let mut notes = Vec::new();
        for Column { name, entries } in columns {
            let (missing, rows) = match entries {
                Entries::Numbers(numbers) => {
                    inputs.push(standardised(numbers, train));
                    let missing = numbers.iter().filter(|number| number.is_none()).count();
                    if missing > 0 {
                        inputs.push(numbers.iter().map(|x| f32::from(u8::from(x.is_none()))).collect());
                    }
                    (missing, numbers.len())
                }
                Entries::Categories(places, count) => {
                    for category in 0..*count {
                        let hit = |place: &Option<usize>| f32::from(u8::from(*place == Some(category)));
                        inputs.push(places.iter().map(hit).collect());
                    }
                    (places.iter().filter(|place| place.is_none()).count(), places.len())
                }
            };
            if missing > 0 {
                let instead = match entries {
                    Entries::Numbers(_) => "the mean replaces them, and a missing-value indicator is added",
                    Entries::Categories(..) => "their one-hot inputs are all 0",
                };
                notes.push(format!("{name}: {missing} of {rows} are missing; {instead}"));
            }
        }
        let rows = inputs.first().map_or(0, Vec::len);
        let values = (0..rows).flat_map(|row| inputs.iter().map(move |input| input[row])).collect();
        Self { width: inputs.len(), values, notes }
    }

    pub(crate) fn into_values(self) -> Values {
        Values::Floats(self.values)
    }
}

fn standardised(numbers: &[Option<f64>], train: usize) -> Vec<f32> {
    let seen: Vec<f64> = numbers[..train].iter().flatten().copied().collect();
    let count = seen.len().max(1) as f64;
    // Squares of 1e300 are beyond a float, so numbers are divided by the largest first.
    let largest = numbers.iter().flatten().fold(0.0, |most: f64, x| most.max(x.abs()));
    let unit = if largest > 1e100 { largest } else { 1.0 };
    let mean = seen.iter().map(|x| x / unit).sum::<f64>() / count;
    let deviation = (seen.iter().map(|x| (x / unit - mean).powi(2)).sum::<f64>() / count).sqrt();
    // A constant column carries no information; it becomes zeros instead of a division by 0.
    let scale = if deviation > 1e-12 * mean.abs() { 1.0 / deviation } else { 0.0 };
    let standard = |x: f64| ((x / unit - mean) * scale) as f32;
    numbers.iter().map(|x| x.map_or(0.0, standard)).collect()
}

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

    fn column(name: &str, entries: Entries) -> Column {
        Column { name: name.to_owned(), entries }
    }

    #[test]
    fn missing_entries_are_filled_and_marked_with_a_note() {
        let columns = [
            column("age", Entries::Numbers(vec![Some(1.0), Some(3.0), None, Some(5.0)])),
            column("town", Entries::Categories(vec![Some(1), None, Some(0), Some(1)], 2)),
            column("constant", Entries::Numbers(vec![Some(0.1); 4])),
        ];
        let features = Features::of(&columns, 3);
        // Age: mean 2 and deviation 1 over the first three rows.
        assert_eq!(features.width, 5);
        assert_eq!(features.values[..5], [-1.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(features.values[5..10], [1.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(features.values[10..15], [0.0, 1.0, 1.0, 0.0, 0.0]);
        assert_eq!(features.values[15..], [3.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(
            features.notes,
            [
                "age: 1 of 4 are missing; the mean replaces them, and a missing-value indicator is added",
                "town: 1 of 4 are missing; their one-hot inputs are all 0"
            ]
        );
    }

    #[test]
    fn huge_numbers_are_standardised_like_small_ones() {
        let column = |unit: f64| [1.0, 3.0, 2.0, 6.0].map(|x| Some(x * unit)).to_vec();
        // Mean 2 and deviation sqrt(2 / 3) of the first three.
        let expected = [-1.224_744_9, 1.224_744_9, 0.0, 4.898_979_5];
        for unit in [1.0, 1e150, 1e300] {
            let standard = standardised(&column(unit), 3);
            assert!(standard.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-5), "{unit}: {standard:?}");
        }
    }

    #[test]
    fn every_stratum_gives_the_same_share_for_testing() {
        let strata: Vec<usize> = (0..100).map(|row| usize::from(row % 10 == 0)).collect();
        let test = test_rows(&strata, 0.2);
        assert_eq!(test.iter().filter(|test| **test).count(), 20);
        assert_eq!((0..100).filter(|row| test[*row] && row % 10 == 0).collect::<Vec<_>>(), [40, 90]);
        assert_eq!(train_first(&[false, true, false]), (vec![0, 2, 1], 2));
    }
}
