//! Which test rows a run's final model classifies correctly, and whether runs share their test set.

use crate::runs::record::Record;
use fedtvd_run::directory::{TestPredictions, sha256};

/// The test rows of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRows {
    /// Whether the prediction of each row is correct.
    pub right: Vec<bool>,
    /// Hash of the labels, in the order of the rows.
    pub labels: String,
}

impl From<&TestPredictions> for TestRows {
    fn from(TestPredictions { labels, predictions }: &TestPredictions) -> Self {
        let bytes: Vec<u8> = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
        Self {
            right: labels.iter().zip(predictions).map(|(label, prediction)| label == prediction).collect(),
            labels: sha256(&bytes),
        }
    }
}

/// What is known about the test sets of some runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestSets {
    /// All have the same one, with this number of rows.
    Shared(usize),
    /// They have different ones.
    Different,
    /// Some of the runs did not store their predictions.
    Unknown,
}

/// The test sets of these runs: the same if data set and labels of the test rows have the same hashes.
pub fn test_sets<'a>(runs: impl Iterator<Item = &'a Record> + Clone) -> TestSets {
    let mut data: Vec<&str> = runs.clone().map(|run| run.manifest.data_checksum.as_str()).collect();
    data.dedup();
    if data.len() > 1 {
        return TestSets::Different;
    }
    let Some(rows) = runs.map(|run| run.test_rows.as_ref()).collect::<Option<Vec<_>>>() else {
        return TestSets::Unknown;
    };
    match rows.as_slice() {
        [first, others @ ..] if others.iter().all(|rows| rows.labels == first.labels) => {
            TestSets::Shared(first.right.len())
        }
        [] => TestSets::Unknown,
        _ => TestSets::Different,
    }
}
