//! Balanced accuracy: the mean of the accuracies of the classes, so that every class counts the same however rare it is.
//!
//! ```text
//! b = mean over classes c of r_c,   r_c: the share of the samples of class c that are classified correctly
//! ```
//!
//! A model that predicts the same class for every sample has b = 1/C, whatever the shares of the classes are. In hardened
//! mode r_c is the mean of the clients' own shares without the lowest and the highest: one client can neither raise it to hide
//! that a model is worthless, nor lower it. So a class needs samples at three clients, or it is left out.

use crate::round::ClientEvaluation;
use crate::round::hardened::LEAST;
use serde::{Deserialize, Serialize};

/// A balanced accuracy, and over how many classes it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Balanced {
    /// Mean accuracy of the classes, from 0 to 1.
    pub accuracy: f64,
    /// Number of classes with samples, at least two.
    pub classes: usize,
}

impl Balanced {
    /// Of the accuracies of all classes; `None` if fewer than two are known.
    pub fn of(class_accuracies: &[Option<f64>]) -> Option<Self> {
        let known: Vec<f64> = class_accuracies.iter().copied().flatten().collect();
        let classes = known.len();
        (classes > 1).then(|| Self { accuracy: known.iter().sum::<f64>() / classes as f64, classes })
    }
}

/// The accuracy of each class by the confusion matrices of clients that may lie; `None` if one of them is not disclosed.
pub(super) fn trimmed_class_accuracies(
    classes: usize,
    found: &[&ClientEvaluation],
) -> Option<Vec<Option<f64>>> {
    let matrices: Vec<&Vec<u64>> =
        found.iter().map(|found| found.confusion.as_ref()).collect::<Option<_>>()?;
    let accuracy = |class: usize| {
        let own = |matrix: &&Vec<u64>| {
            let row = matrix.get(class * classes..(class + 1) * classes)?;
            let total: f64 = row.iter().map(|&count| count as f64).sum();
            (total > 0.0).then(|| row[class] as f64 / total)
        };
        trimmed_mean(matrices.iter().filter_map(own).collect())
    };
    Some((0..classes).map(accuracy).collect())
}

/// The mean without the lowest and the highest value; `None` for fewer than three values.
pub(super) fn trimmed_mean(mut values: Vec<f64>) -> Option<f64> {
    if values.len() < LEAST {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let kept = &values[1..values.len() - 1];
    Some(kept.iter().sum::<f64>() / kept.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::Evaluation;

    /// Two classes: samples of each, and how many of them are right.
    fn evaluation([zeros, ones]: [u64; 2], [right0, right1]: [u64; 2]) -> ClientEvaluation {
        Evaluation { loss: 1.0, confusion: vec![right0, zeros - right0, ones - right1, right1] }.into()
    }

    fn trimmed(found: &[&ClientEvaluation]) -> Option<Balanced> {
        Balanced::of(&trimmed_class_accuracies(2, found)?)
    }

    #[test]
    fn a_rare_class_counts_as_much_as_a_frequent_one() {
        let of = Balanced::of(&[Some(0.9), None, Some(0.3)]).unwrap();
        assert!((of.accuracy - 0.6).abs() < 1e-15 && of.classes == 2, "{of:?}");
        assert_eq!(Balanced::of(&[Some(0.9), None]), None, "one class says nothing");
    }

    #[test]
    fn one_client_can_neither_raise_nor_lower_the_balanced_accuracy() {
        let trimmed = |all: [&ClientEvaluation; 4]| trimmed(&all).unwrap().accuracy;
        let (dead, good) = (evaluation([990, 10], [990, 0]), evaluation([990, 10], [990, 8]));
        let (praise, blame) =
            (evaluation([5, 1_000_000], [5, 1_000_000]), evaluation([5, 1_000_000], [0, 0]));
        assert_eq!(trimmed([&dead, &dead, &praise, &dead]), 0.5);
        assert_eq!(trimmed([&good, &blame, &good, &good]), 0.9);
    }

    #[test]
    fn a_class_at_fewer_than_three_clients_is_left_out_and_an_undisclosed_matrix_hides_all() {
        let (both, zeros) = (evaluation([10, 10], [10, 10]), evaluation([10, 0], [10, 0]));
        assert_eq!(trimmed(&[&both, &both, &zeros]), None);
        assert!(trimmed(&[&both, &both, &both]).is_some());
        let closed = ClientEvaluation { confusion: None, ..both.clone() };
        assert_eq!(trimmed(&[&both, &both, &both, &closed]), None);
    }
}
