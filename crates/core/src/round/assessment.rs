//! What an evaluation of the global model says: by the server on its test set, or by clients on their hold-outs.
//!
//! ```text
//! paper      the sum of all clients' counts
//! hardened   Σ v_k accuracy_k,  v: the clients' numbers of samples, capped as their weights are
//!            loss: the median of the clients' mean losses, since one claimed loss can be arbitrarily large
//! ```
//!
//! A client whose loss is not finite still counts with its predictions: a broken model has such a loss at every honest
//! client, and without their counts only liars would be heard.

use crate::median::median;
use crate::round::Mode;
use crate::round::hardened::{LEAST, size_weights};
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
    /// Accuracy of each class; `None` for classes without samples.
    pub class_accuracy: Vec<Option<f64>>,
    /// Median of the clients' accuracies, if they evaluated the model.
    pub median_accuracy: Option<f64>,
}

impl From<&Evaluation> for Assessment {
    /// The assessment by the server.
    fn from(evaluation: &Evaluation) -> Self {
        if evaluation.samples() == 0 {
            return Self::default();
        }
        Self {
            accuracy: Some(evaluation.accuracy()),
            loss: Some(evaluation.mean_loss()).filter(|loss| loss.is_finite()),
            chance: Some(evaluation.chance()),
            class_accuracy: evaluation.class_accuracies(),
            median_accuracy: None,
        }
    }
}

impl Assessment {
    /// The assessment by clients, in client order. In hardened mode it needs three of them.
    pub fn by_clients<'a>(mode: Mode, evaluations: impl IntoIterator<Item = &'a Evaluation>) -> Self {
        let evaluations: Vec<&Evaluation> =
            evaluations.into_iter().filter(|evaluation| evaluation.samples() > 0).collect();
        let median_accuracy = median(evaluations.iter().map(|evaluation| evaluation.accuracy()).collect());
        let assessment = match mode {
            Mode::Paper => Self::from(&sum(&evaluations)),
            Mode::Hardened if evaluations.len() < LEAST => return Self::default(),
            Mode::Hardened => capped(&evaluations),
        };
        Self { median_accuracy, ..assessment }
    }
}

fn sum(evaluations: &[&Evaluation]) -> Evaluation {
    let mut total = Evaluation::empty(0);
    for (place, evaluation) in evaluations.iter().enumerate() {
        if place == 0 {
            total = (*evaluation).clone();
        } else {
            total.add(evaluation);
        }
    }
    total
}

fn capped(evaluations: &[&Evaluation]) -> Assessment {
    let weights = size_weights(evaluations.iter().map(|evaluation| evaluation.samples()).collect());
    let mut confusion = vec![0.0; evaluations.first().map_or(0, |evaluation| evaluation.confusion.len())];
    for (weight, evaluation) in weights.iter().zip(evaluations) {
        let samples = evaluation.samples() as f64;
        for (sum, &count) in confusion.iter_mut().zip(&evaluation.confusion) {
            *sum += weight * (count as f64 / samples);
        }
    }
    let classes = confusion.len().isqrt();
    let rows: Vec<f64> = confusion.chunks(classes.max(1)).map(|row| row.iter().sum()).collect();
    let right = |class: usize| confusion[class * (classes + 1)];
    // A loss that is not finite is worse than any other: without it, a liar's claim would be the only one.
    let finite = |loss: f64| if loss.is_finite() { loss } else { f64::INFINITY };
    let losses = evaluations.iter().map(|evaluation| finite(evaluation.mean_loss()));
    Assessment {
        accuracy: Some((0..classes).map(right).sum()),
        loss: median(losses.collect()).filter(|loss| loss.is_finite()),
        chance: rows.iter().copied().reduce(f64::max),
        class_accuracy: (0..classes).map(|c| (rows[c] > 0.0).then(|| right(c) / rows[c])).collect(),
        median_accuracy: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two classes: samples of class 0 and of class 1, and how many of each are right.
    fn evaluation([zeros, ones]: [u64; 2], [right0, right1]: [u64; 2], loss: f64) -> Evaluation {
        Evaluation { loss, confusion: vec![right0, zeros - right0, ones - right1, right1] }
    }

    #[test]
    fn a_client_that_invents_a_million_samples_does_not_decide_the_accuracy() {
        let honest = evaluation([50, 50], [10, 10], 90.0);
        let liar = evaluation([1_000_000, 0], [1_000_000, 0], 0.0);
        let all = [&honest, &honest, &honest, &liar];
        let paper = Assessment::by_clients(Mode::Paper, all);
        assert!(paper.accuracy.unwrap() > 0.999, "{paper:?}");
        // Four equal weights after the cap at the median: 3/4 of 0.2 and 1/4 of 1.
        let hardened = Assessment::by_clients(Mode::Hardened, all);
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
            let got = Assessment::by_clients(mode, [&broken, &broken, &fine]);
            assert!((got.accuracy.unwrap() - 2.0 / 3.0).abs() < 1e-12, "{got:?}");
        }
        for mode in [Mode::Paper, Mode::Hardened] {
            assert_eq!(Assessment::by_clients(mode, [&broken, &broken, &fine]).loss, None);
        }
        assert_eq!(Assessment::by_clients(Mode::Hardened, [&broken, &fine, &fine]).loss, Some(0.1));
    }

    #[test]
    fn hardened_mode_needs_three_clients_with_samples() {
        let (fine, none) = (evaluation([5, 5], [5, 5], 1.0), evaluation([0, 0], [0, 0], 0.0));
        assert_eq!(Assessment::by_clients(Mode::Hardened, [&fine, &none, &fine]), Assessment::default());
        assert_eq!(Assessment::by_clients(Mode::Paper, [&none]), Assessment::default());
        assert_eq!(Assessment::by_clients(Mode::Paper, [&fine, &none]).accuracy, Some(1.0));
    }
}
