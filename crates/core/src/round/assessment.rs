//! What an evaluation of the global model says: by the server on its test set, or by clients on their hold-outs.
//!
//! ```text
//! paper      the sum of all clients' counts
//! hardened   Σ v_k accuracy_k,  v: the clients' numbers of samples, capped as their weights are
//!            loss: the median of the clients' mean losses, since one claimed loss can be arbitrarily large
//! ```
//!
//! A client may disclose only how many samples were classified correctly, of how many.
//!
//! A client whose loss is not finite still counts with its predictions: a broken model has such a loss at every honest
//! client, and without their counts only liars would be heard.

use crate::median::median;
use crate::round::balanced::trimmed_class_accuracies;
use crate::round::hardened::{LEAST, size_weights};
use crate::round::macro_f1::{macro_f1, trimmed_macro_f1};
use crate::round::missed_classes::missed_classes;
use crate::round::{Balanced, MissedClass, Mode};
use crate::train::Evaluation;

/// The quality of a model. Fractions; all `None` or empty if nobody could evaluate it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assessment {
    /// Accuracy.
    pub accuracy: Option<f64>,
    /// Mean cross-entropy; `None` if it is not finite.
    pub loss: Option<f64>,
    /// Accuracy of always predicting the most frequent class of the evaluated samples.
    pub chance: Option<f64>,
    /// Accuracy of each class of the model; `None` for classes without samples, and if it is not disclosed.
    pub class_accuracy: Vec<Option<f64>>,
    /// Mean of the accuracies of the classes, if they are known.
    pub balanced: Option<Balanced>,
    /// Mean of the F1 scores of the classes, if the confusion matrix is known.
    pub macro_f1: Option<f64>,
    /// The classes with samples of which none was classified correctly, if the accuracies of the classes are known.
    pub missed_classes: Option<Vec<MissedClass>>,
    /// Median of the clients' accuracies, if they evaluated the model.
    pub median_accuracy: Option<f64>,
    /// Median of the clients' mean losses, if they evaluated the model; `None` if it is not finite.
    pub median_loss: Option<f64>,
}

impl From<&Evaluation> for Assessment {
    /// The assessment by the server.
    fn from(evaluation: &Evaluation) -> Self {
        if evaluation.samples() == 0 {
            return Self::default();
        }
        let (class_accuracy, classes) = (evaluation.class_accuracies(), evaluation.confusion.len().isqrt());
        let confusion: Vec<f64> = evaluation.confusion.iter().map(|&count| count as f64).collect();
        let total = evaluation.samples() as f64;
        Self {
            accuracy: Some(evaluation.accuracy()),
            loss: Some(evaluation.mean_loss()).filter(|loss| loss.is_finite()),
            chance: Some(evaluation.chance()),
            balanced: Balanced::of(&class_accuracy),
            macro_f1: macro_f1(&confusion, classes),
            missed_classes: Some(missed_classes(
                &class_accuracy,
                rows(&confusion, classes).map(|row| row / total),
            )),
            class_accuracy,
            median_accuracy: None,
            median_loss: None,
        }
    }
}

/// A client's evaluation of the model on its hold-out: as much of it as the client discloses.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientEvaluation {
    /// Sum of the loss over the samples.
    pub loss: f64,
    /// Number of samples that were classified correctly.
    pub correct: u64,
    /// Number of samples.
    pub total: u64,
    /// Samples by true class and predicted class, row by row.
    pub confusion: Option<Vec<u64>>,
}

impl From<Evaluation> for ClientEvaluation {
    /// All of an evaluation.
    fn from(evaluation: Evaluation) -> Self {
        let (correct, total) = (evaluation.correct(), evaluation.samples());
        Self { loss: evaluation.loss, correct, total, confusion: Some(evaluation.confusion) }
    }
}

impl ClientEvaluation {
    /// Fraction of samples that were classified correctly; 0 without samples.
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.total.max(1) as f64
    }

    /// The mean loss; infinite if it is not finite: without it, a liar's claim would be the only one.
    fn mean_loss(&self) -> f64 {
        let loss = self.loss / self.total.max(1) as f64;
        if loss.is_finite() { loss } else { f64::INFINITY }
    }
}

impl Assessment {
    /// The assessment by clients, in client order. In hardened mode it needs three of them. Accuracies of classes, their
    /// mean and that of chance are known only if all clients disclose their confusion matrices.
    pub fn by_clients<'a>(
        mode: Mode,
        classes: usize,
        evaluations: impl IntoIterator<Item = &'a ClientEvaluation>,
    ) -> Self {
        let found: Vec<&ClientEvaluation> = evaluations.into_iter().filter(|found| found.total > 0).collect();
        if found.is_empty() || mode == Mode::Hardened && found.len() < LEAST {
            return Self::default();
        }
        let totals = || found.iter().map(|found| found.total);
        let median_loss = median(found.iter().map(|found| found.mean_loss()).collect());
        let (weights, accuracy, loss): (Vec<f64>, f64, _) = match mode {
            Mode::Paper => {
                let total: f64 = totals().map(|total| total as f64).sum();
                let correct: f64 = found.iter().map(|found| found.correct as f64).sum();
                let loss = found.iter().map(|found| found.loss).sum::<f64>() / total;
                (totals().map(|own| own as f64 / total).collect(), correct / total, Some(loss))
            }
            Mode::Hardened => {
                let weights = size_weights(totals().collect());
                let accuracy =
                    weights.iter().zip(&found).map(|(weight, found)| weight * found.accuracy()).sum();
                (weights, accuracy, median_loss)
            }
        };
        let mixed = mixed_confusion(&weights, &found);
        let chance = mixed.as_ref().and_then(|mixed| rows(mixed, classes).reduce(f64::max));
        let macro_f1 = match mode {
            Mode::Paper => mixed.as_ref().and_then(|mixed| macro_f1(mixed, classes)),
            Mode::Hardened => trimmed_macro_f1(classes, &found),
        };
        let shares = mixed.as_ref().map(|mixed| rows(mixed, classes).collect::<Vec<_>>());
        let class_accuracy =
            mixed.map_or_else(|| vec![None; classes], |mixed| class_accuracies(&mixed, classes));
        // What a single client cannot change.
        let trusted = match mode {
            Mode::Paper => class_accuracy.clone(),
            Mode::Hardened => trimmed_class_accuracies(classes, &found).unwrap_or_default(),
        };
        Self {
            accuracy: Some(accuracy),
            loss: loss.filter(|loss| loss.is_finite()),
            chance,
            balanced: Balanced::of(&trusted),
            macro_f1,
            missed_classes: shares.map(|shares| missed_classes(&trusted, shares)),
            class_accuracy,
            median_accuracy: median(found.iter().map(|found| found.accuracy()).collect()),
            median_loss: median_loss.filter(|loss| loss.is_finite()),
        }
    }
}

/// The weighted mean of the clients' confusion matrices as shares of their samples.
fn mixed_confusion(weights: &[f64], found: &[&ClientEvaluation]) -> Option<Vec<f64>> {
    let matrices: Vec<&Vec<u64>> =
        found.iter().map(|found| found.confusion.as_ref()).collect::<Option<_>>()?;
    let mut mixed = vec![0.0; matrices.first().map_or(0, |matrix| matrix.len())];
    for ((weight, matrix), found) in weights.iter().zip(matrices).zip(found) {
        for (sum, &count) in mixed.iter_mut().zip(matrix) {
            *sum += weight * (count as f64 / found.total as f64);
        }
    }
    Some(mixed)
}

/// The share of each true class.
fn rows(confusion: &[f64], classes: usize) -> impl Iterator<Item = f64> {
    confusion.chunks(classes.max(1)).map(|row| row.iter().sum())
}

fn class_accuracies(confusion: &[f64], classes: usize) -> Vec<Option<f64>> {
    let right = |class: usize| confusion[class * (classes + 1)];
    rows(confusion, classes).enumerate().map(|(c, row)| (row > 0.0).then(|| right(c) / row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two classes: samples of class 0 and of class 1, and how many of each are right.
    fn evaluation([zeros, ones]: [u64; 2], [right0, right1]: [u64; 2], loss: f64) -> ClientEvaluation {
        Evaluation { loss, confusion: vec![right0, zeros - right0, ones - right1, right1] }.into()
    }

    #[test]
    fn a_client_that_invents_a_million_samples_does_not_decide_the_accuracy() {
        let honest = evaluation([50, 50], [10, 10], 90.0);
        let liar = evaluation([1_000_000, 0], [1_000_000, 0], 0.0);
        let all = [&honest, &honest, &honest, &liar];
        let paper = Assessment::by_clients(Mode::Paper, 2, all);
        assert!(paper.accuracy.unwrap() > 0.999, "{paper:?}");
        // Four equal weights after the cap at the median: 3/4 of 0.2 and 1/4 of 1.
        let hardened = Assessment::by_clients(Mode::Hardened, 2, all);
        assert!((hardened.accuracy.unwrap() - 0.4).abs() < 1e-12, "{hardened:?}");
        assert_eq!((paper.median_accuracy, hardened.median_accuracy), (Some(0.2), Some(0.2)));
        assert_eq!(hardened.loss, Some(0.9));
        // Class 1 exists at honest clients only.
        assert!((hardened.class_accuracy[1].unwrap() - 0.2).abs() < 1e-12);
        // 3/4 of 1/2 and 1/4 of class 0.
        assert!((hardened.chance.unwrap() - 0.625).abs() < 1e-12);
    }

    #[test]
    fn a_loss_that_is_not_finite_does_not_silence_a_clients_counts() {
        let broken = evaluation([50, 50], [50, 0], f64::NAN);
        let fine = evaluation([50, 50], [50, 50], 10.0);
        for mode in [Mode::Paper, Mode::Hardened] {
            let got = Assessment::by_clients(mode, 2, [&broken, &broken, &fine]);
            assert!((got.accuracy.unwrap() - 2.0 / 3.0).abs() < 1e-12, "{got:?}");
        }
        for mode in [Mode::Paper, Mode::Hardened] {
            assert_eq!(Assessment::by_clients(mode, 2, [&broken, &broken, &fine]).loss, None);
        }
        assert_eq!(Assessment::by_clients(Mode::Hardened, 2, [&broken, &fine, &fine]).loss, Some(0.1));
        let paper = Assessment::by_clients(Mode::Paper, 2, [&broken, &fine, &fine]);
        assert_eq!((paper.loss, paper.median_loss), (None, Some(0.1)));
    }

    #[test]
    fn clients_that_disclose_no_matrix_count_with_their_accuracy_and_hide_those_of_classes() {
        let open = evaluation([50, 50], [50, 0], 10.0);
        let closed = ClientEvaluation { confusion: None, ..evaluation([50, 50], [50, 50], 30.0) };
        for mode in [Mode::Paper, Mode::Hardened] {
            let all = Assessment::by_clients(mode, 2, [&open, &open, &open, &open]);
            assert_eq!((all.chance, all.class_accuracy), (Some(0.5), vec![Some(1.0), Some(0.0)]));
            assert_eq!(all.balanced, Some(Balanced { accuracy: 0.5, classes: 2 }));
            // Class 1 is never predicted: F1 is 2 · 50 / 150 and 0.
            assert!((all.macro_f1.unwrap() - 1.0 / 3.0).abs() < 1e-15, "{mode:?}: {:?}", all.macro_f1);
            assert_eq!(all.missed_classes, Some(vec![MissedClass { class: 1, share: 0.5 }]));
            let mixed = Assessment::by_clients(mode, 2, [&open, &closed, &open, &open]);
            assert!((mixed.accuracy.unwrap() - 0.625).abs() < 1e-12, "{mixed:?}");
            assert_eq!((mixed.chance, mixed.class_accuracy), (None, vec![None, None]));
            assert_eq!((mixed.balanced, mixed.macro_f1, mixed.missed_classes), (None, None, None));
        }
    }

    #[test]
    fn one_client_cannot_hide_a_missed_class_in_hardened_mode() {
        let (honest, liar) = (evaluation([80, 20], [80, 0], 10.0), evaluation([80, 20], [80, 20], 10.0));
        let hardened = Assessment::by_clients(Mode::Hardened, 2, [&honest, &liar, &honest, &honest]);
        let missed = hardened.missed_classes.unwrap();
        assert!(
            matches!(missed.as_slice(), [MissedClass { class: 1, share }] if (share - 0.2).abs() < 1e-12),
            "{missed:?}"
        );
        let paper = Assessment::by_clients(Mode::Paper, 2, [&honest, &liar, &honest, &honest]);
        assert_eq!(paper.missed_classes, Some(Vec::new()));
    }

    #[test]
    fn hardened_mode_needs_three_clients_with_samples() {
        let (fine, none) = (evaluation([5, 5], [5, 5], 1.0), evaluation([0, 0], [0, 0], 0.0));
        assert_eq!(Assessment::by_clients(Mode::Hardened, 2, [&fine, &none, &fine]), Assessment::default());
        assert_eq!(Assessment::by_clients(Mode::Paper, 2, [&none]), Assessment::default());
        assert_eq!(Assessment::by_clients(Mode::Paper, 2, [&fine, &none]).accuracy, Some(1.0));
    }
}
