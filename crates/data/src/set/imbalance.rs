//! Long tails: of class c a share of r^c is kept, for training and testing, so that the true prior is not uniform.

use super::load::{LoadError, Loaded};
use super::table::TableData;
use crate::split::Groups;
use fedtvd_core::train::{Samples, Values};
use std::sync::Arc;

/// The first round(n_c r^c) rows of each class c, and at least one.
pub(crate) fn thinned(loaded: &Loaded, r: f64) -> Result<Loaded, LoadError> {
    let samples = &loaded.samples;
    let train = samples.train_rows();
    let kept = [kept(&samples.labels()[..train], samples.classes(), r), {
        let test = kept(&samples.labels()[train..], samples.classes(), r);
        test.into_iter().map(|row| row + train).collect()
    }];
    let rows = kept.concat();
    let size: usize = samples.shape().iter().product();
    let values = match samples.values() {
        Values::Bytes(bytes, worth) => Values::Bytes(chosen(bytes, &rows, size), worth.clone()),
        Values::Floats(floats) => Values::Floats(chosen(floats, &rows, size)),
    };
    let labels = rows.iter().map(|row| samples.labels()[*row]).collect();
    let samples = Samples::new(samples.shape(), samples.classes(), values, labels, kept[0].len())?;
    let groups = loaded.groups.as_ref().map(|groups| Groups {
        names: groups.names.clone(),
        of: kept[0].iter().map(|row| groups.of[*row]).collect(),
    });
    let table = loaded.table.as_ref().map(|table| {
        Arc::new(TableData {
            schema: table.schema.clone(),
            columns: table.columns.as_ref().map(|columns| columns.chosen(&rows)),
            rows: rows.iter().map(|row| table.rows[*row]).collect(),
        })
    });
    Ok(Loaded { samples: Arc::new(samples), groups, table, ..loaded.clone() })
}

fn kept(labels: &[u32], classes: usize, r: f64) -> Vec<usize> {
    let mut counts = vec![0.0; classes];
    labels.iter().for_each(|label| counts[*label as usize] += 1.0);
    let mut left: Vec<f64> = counts
        .iter()
        .enumerate()
        .map(|(c, n): (usize, &f64)| (n * r.powi(c as i32)).round().max(1.0))
        .collect();
    let keep = |row: &usize| {
        let left = &mut left[labels[*row] as usize];
        *left -= 1.0;
        *left >= 0.0
    };
    (0..labels.len()).filter(keep).collect()
}

fn chosen<T: Copy>(values: &[T], rows: &[usize], size: usize) -> Vec<T> {
    rows.iter().flat_map(|row| values[row * size..(row + 1) * size].iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_c_keeps_its_power_of_r_in_training_and_test_and_rows_keep_their_values() {
        let labels: Vec<u32> = (0..150).map(|row| row % 3).collect();
        let values = Values::Floats((0..150).map(|row| row as f32).collect());
        let samples = Samples::new([1, 1, 1], 3, values, labels, 120).unwrap();
        let groups =
            Groups { names: vec!["even".into(), "odd".into()], of: (0..120).map(|r| r % 2).collect() };
        let loaded = Loaded {
            samples: Arc::new(samples),
            groups: Some(groups),
            normal: vec![],
            class_names: vec![],
            notes: vec![],
            table: None,
        };
        let thin = thinned(&loaded, 0.5).unwrap();
        let count = |labels: &[u32], class| labels.iter().filter(|label| **label == class).count();
        let (train, test) = thin.samples.labels().split_at(thin.samples.train_rows());
        assert_eq!([0, 1, 2].map(|class| count(train, class)), [40, 20, 10]);
        assert_eq!([0, 1, 2].map(|class| count(test, class)), [10, 5, 3]);
        // However small r is, no class is lost.
        let thinnest = thinned(&loaded, 0.001).unwrap().samples;
        assert_eq!([0, 1, 2].map(|class| count(thinnest.labels(), class)), [50, 2, 2]);
        let mut value = [0.0];
        for (row, label) in thin.samples.labels().iter().enumerate() {
            thin.samples.read(row as u32, &mut value);
            assert_eq!(value[0] as u32 % 3, *label);
            if let Some(owner) = thin.groups.as_ref().unwrap().of.get(row) {
                assert_eq!(value[0] as u32 % 2, *owner);
            }
        }
    }
}
