//! `predictions.npy`: what the final model of a run predicts for each test row, so that reports can compare models row by row.
//!
//! An array of shape (2, rows), of bytes up to 256 classes and of 32-bit integers beyond: the labels, then the predicted
//! classes. Rows are in the order of the test set.

use crate::directory::run_directory::damaged;
use crate::directory::{DirectoryError, RunDirectory};
use fedtvd_data::decode::Source;
use fedtvd_data::decode::npy::{Array, Numbers, array, npy};

/// The name of the file.
pub(crate) const FILE: &str = "predictions.npy";

/// Labels and predictions of all test rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestPredictions {
    /// The class of each test row.
    pub labels: Vec<u32>,
    /// The predicted class of each test row.
    pub predictions: Vec<u32>,
}

impl TestPredictions {
    /// Fraction of the rows that are predicted correctly; 0 without rows.
    pub fn accuracy(&self) -> f64 {
        let right =
            self.labels.iter().zip(&self.predictions).filter(|(label, prediction)| label == prediction);
        right.count() as f64 / self.labels.len().max(1) as f64
    }

    /// The content of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let classes: Vec<u32> = self.labels.iter().chain(&self.predictions).copied().collect();
        let bytes: Result<Vec<u8>, _> = classes.iter().map(|class| u8::try_from(*class)).collect();
        let numbers = bytes.map_or(Numbers::Counts(classes), Numbers::Bytes);
        npy(&Array { shape: vec![2, self.labels.len()], numbers })
    }
}

impl RunDirectory {
    /// The predictions of the final model; `None` if the run has none, such as one of an earlier version.
    pub fn predictions(&self) -> Result<Option<TestPredictions>, DirectoryError> {
        let path = self.file(FILE);
        if !path.is_file() || self.summary()?.is_none() {
            return Ok(None);
        }
        let read = Source::open(&path).and_then(|mut source| array(&mut source));
        let Array { shape, numbers } = read.map_err(|flaw| damaged(&path, flaw))?;
        let classes: Vec<u32> = match numbers {
            Numbers::Bytes(bytes) => bytes.into_iter().map(u32::from).collect(),
            Numbers::Counts(counts) => counts,
            Numbers::Floats(_) => return Err(damaged(&path, "it has fractions instead of classes")),
        };
        let [2, rows] = shape[..] else {
            return Err(damaged(&path, format!("its shape is {shape:?} instead of [2, rows]")));
        };
        let (labels, predictions) = classes.split_at(rows);
        Ok(Some(TestPredictions { labels: labels.to_vec(), predictions: predictions.to_vec() }))
    }
}
