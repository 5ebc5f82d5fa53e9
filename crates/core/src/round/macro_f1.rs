//! Macro F1: the mean of the F1 scores of the classes, so that every class counts the same however rare it is.
//!
//! ```text
//! F_c = 2 t_c / (n_c + m_c),   t_c: samples of class c that are classified correctly, n_c: samples of class c,
//!                              m_c: samples that are classified as c
//! macro F1 = mean of F_c over the classes with n_c + m_c > 0
//! ```
//!
//! A class with samples that is never predicted has F_c = 0, and so has a class that is predicted and has no samples; a class
//! with neither is left out. These are scikit-learn's `f1_score(average="macro", zero_division=0)`. In hardened mode F_c is the
//! mean of the clients' own F_c without the lowest and the highest, for the reason given in `balanced.rs`, over classes that three
//! clients have or predict.

use crate::round::ClientEvaluation;
use crate::round::balanced::trimmed_mean;

/// Macro F1 of a confusion matrix, row by row by true class; `None` if it is empty.
pub(super) fn macro_f1(confusion: &[f64], classes: usize) -> Option<f64> {
    mean((0..classes).filter_map(|class| f1(confusion, classes, class)))
}

/// Macro F1 of the confusion matrices of clients that may lie; `None` if one of them is not disclosed.
pub(super) fn trimmed_macro_f1(classes: usize, found: &[&ClientEvaluation]) -> Option<f64> {
    let matrices: Vec<Vec<f64>> = found
        .iter()
        .map(|found| Some(found.confusion.as_ref()?.iter().map(|&count| count as f64).collect()))
        .collect::<Option<_>>()?;
    let of = |class| trimmed_mean(matrices.iter().filter_map(|matrix| f1(matrix, classes, class)).collect());
    mean((0..classes).filter_map(of))
}

/// F1 of a class; `None` if it has neither samples nor predictions.
fn f1(confusion: &[f64], classes: usize, class: usize) -> Option<f64> {
    let row = confusion.get(class * classes..(class + 1) * classes)?;
    let samples: f64 = row.iter().sum();
    let predictions: f64 = confusion.iter().skip(class).step_by(classes).sum();
    let both = samples + predictions;
    (both > 0.0).then(|| 2.0 * row[class] / both)
}

fn mean(scores: impl Iterator<Item = f64>) -> Option<f64> {
    let known: Vec<f64> = scores.collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::Assessment;
    use crate::train::Evaluation;

    #[test]
    fn macro_f1_and_balanced_accuracy_are_those_of_scikit_learn() {
        // Made by tests/golden/make_macro_f1.py; the file names the versions.
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/golden/macro_f1.json")).unwrap();
        for case in golden["cases"].as_array().unwrap() {
            let rows = case["confusion"].as_array().unwrap();
            let counts = rows.iter().flat_map(|row| row.as_array().unwrap());
            let confusion = counts.map(|count| count.as_u64().unwrap()).collect();
            let got = Assessment::from(&Evaluation { loss: 1.0, confusion });
            let close = |got: f64, name: &str| {
                let expected = case[name].as_f64().unwrap();
                assert!((got - expected).abs() < 1e-15, "{}: {name} {got} is not {expected}", case["name"]);
            };
            close(got.macro_f1.unwrap(), "macro_f1");
            // A single class has no balanced accuracy here.
            got.balanced.iter().for_each(|balanced| close(balanced.accuracy, "balanced_accuracy"));
        }
    }

    #[test]
    fn one_client_can_neither_raise_nor_lower_the_macro_f1() {
        let evaluation = |confusion: [u64; 4]| {
            ClientEvaluation::from(Evaluation { loss: 1.0, confusion: confusion.to_vec() })
        };
        // Class 1 is never predicted: F_0 = 2 · 90 / 190, F_1 = 0.
        let dead = evaluation([90, 0, 10, 0]);
        let (praise, blame) = (evaluation([90, 0, 0, 1_000_000]), evaluation([0, 90, 10, 0]));
        let honest = trimmed_macro_f1(2, &[&dead, &dead, &dead, &dead]).unwrap();
        assert!((honest - 90.0 / 190.0).abs() < 1e-15, "{honest}");
        for liar in [&praise, &blame] {
            assert_eq!(trimmed_macro_f1(2, &[&dead, liar, &dead, &dead]), Some(honest));
        }
        let closed = ClientEvaluation { confusion: None, ..dead.clone() };
        assert_eq!(trimmed_macro_f1(2, &[&dead, &dead, &dead, &closed]), None);
    }
}
